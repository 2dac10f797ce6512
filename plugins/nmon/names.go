package nmon

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The server refuses a batch for one name or value that it cannot store. A file may hold anything: no text of it must cost the snapshots around it.

// underscore makes a name of a text of the file: lower case, with _ for blanks and what does not print.
func underscore(name string) string {
	return strings.Map(func(r rune) rune {
		if !namable(r) {
			return '_'
		}
		return unicode.ToLower(r)
	}, name)
}

// settingName is underscore for the names of the configuration, which keep their blanks: `entitled capacity`.
func settingName(name string) string {
	return strings.Map(func(r rune) rune {
		if r != ' ' && !namable(r) {
			return '_'
		}
		return unicode.ToLower(r)
	}, strings.TrimFunc(name, isMargin))
}

func namable(r rune) bool { return r != utf8.RuneError && !isMargin(r) }

func isMargin(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// text makes a value: trimmed, and without the two characters that separate the parts of a series key.
func text(s string) string {
	s = strings.TrimFunc(s, isMargin)
	if strings.ContainsAny(s, "\x00\x01") {
		s = strings.NewReplacer("\x00", "\uFFFD", "\x01", "\uFFFD").Replace(s)
	}
	return s
}

// knownSections are the sections that the contract lists. A hash stands for a number, a star for any rest.
var knownSections = strings.Fields(`CPU# CPU_ALL PCPU# PCPU_ALL SCPU# SCPU_ALL CPUUTIL# CPUUTIL_ALL MHZ LPAR POOLS MEM MEMNEW MEMUSE PAGE MEMPAGES* LARGEPAGE PAGING
	VM PROC FILE PROCAIO NET NETPACKET NETSIZE NETERROR IOADAPT DISK* JFSFILE JFSINODE DG* VG* NFSSVRV# NFSCLIV# GPU_UTIL GPU_MEM GPU_TEMP GPU_MHZ GPU_WATTS
	HUGEPAGES MEMAMS MEMEXPERIMENTAL SEA* FC* WLM* RAW*`)

// isKnownSection reports whether a section is in the list.
func isKnownSection(name string) bool {
	numbered := strings.TrimRight(name, "0123456789") + "#"
	for _, known := range knownSections {
		begin, open := strings.CutSuffix(known, "*")
		if known == name || known == numbered || open && strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}
