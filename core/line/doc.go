// Package line reads the line protocols of other products into batches: what a Graphite, OpenTSDB, StatsD or InfluxDB sender writes becomes samples of
// series. It is pure: no sockets, no clock of its own.
//
//	put sys.load 1620036000 1.5 host=web-9        tcollector    collector.go
//	web-9.load.short 1.5 1620036000               Graphite      graphite.go, mapping.go; pickle.go for its binary form
//	web-9/hits:20.5|c                             StatsD        statsd.go
//	cpu,host=web-9 user=1.5,idle=97i 162003600000 InfluxDB      influx.go
//
// A line is read completely before its first sample goes into the batch: a refused one leaves the batch as it was. Refusals are of code Invalid; their
// cause carries a command.Reason.
package line

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// The entities of samples that name none.
const (
	CollectorEntity = "tcollector"
	GraphiteEntity  = "graphite"
	StatsDEntity    = "statsd"
	InfluxEntity    = "influx"
)

// Parser reads the protocols that share a port with the text commands. It belongs to one connection.
type Parser struct {
	Received core.Time // time of samples that carry none
	Mapping  *Mapping  // of Graphite names; nil = none
}

// Line reads one line of any of the three protocols, told apart by their shape. foreign is false for a line that has none of these shapes. line is not kept.
func (p *Parser) Line(b *core.Batch, line []byte) (foreign bool, err error) {
	first := line
	for i, c := range line {
		if c == ' ' || c == '\t' {
			first = line[:i]
			break
		}
	}
	switch {
	case len(first) == 3 && strings.EqualFold(string(first), "put"):
		return true, p.collector(b, string(line))
	case len(first) == len(line):
		if !looksLikeStatsD(line) {
			return false, nil
		}
		return true, p.statsD(b, string(line))
	}
	text := string(line)
	name, value, stamp, ok := threeWords(text)
	if !ok || !numeric(value) && !gap(value) || !integer(stamp) {
		return false, nil
	}
	return true, p.graphite(b, name, value, stamp)
}

// Whole reports whether a line is one of StatsD, whose clients do not end the last line of a datagram.
func Whole(text []byte) bool { return !bytes.ContainsAny(text, " \t") && looksLikeStatsD(text) }

// refuse is the refusal of a line.
func refuse(reason command.Reason, format string, args ...any) error {
	cause := command.Rejectf(reason, format, args...)
	return &core.Error{Code: core.Invalid, Text: cause.Error(), Cause: cause}
}

// add appends one sample to the batch.
func add(b *core.Batch, key core.SeriesKey, t core.Time, n command.Number) {
	i := b.Add(b.Ref(key), t, n.Value)
	if n.Inexact {
		b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: uint32(i), Decimal: n.Decimal})
	}
}

// name makes a name of what was sent: lower case, and `_` for every character that a name may not have, as uploads do it. The senders of these protocols
// cannot be asked to choose other names.
func name(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s))
}

// value makes a tag value of what was sent: trimmed, without the characters that separate the parts of a series key.
func value(s string) string {
	s = strings.TrimSpace(s)
	if strings.IndexByte(s, 0) >= 0 || strings.IndexByte(s, 1) >= 0 || !utf8.ValidString(s) {
		s = strings.ToValidUTF8(strings.NewReplacer("\x00", "_", "\x01", "_").Replace(s), "_")
	}
	return s
}

// excerpt is the start of an offending text, short enough for an error.
func excerpt(s string) string {
	const most = 120
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// ParseTime reads the time of a point as OpenTSDB has it.
func ParseTime(text string) (core.Time, error) { return secondsOrMillis(text) }

// secondsOrMillis reads Unix seconds, or milliseconds where the number has 13 digits.
func secondsOrMillis(text string) (core.Time, error) {
	var n int64
	digits := 0
	for i := range len(text) {
		c := text[i] - '0'
		if c > 9 || digits == 13 {
			return 0, refuse(command.BadTime, "bad time %q: Unix seconds or 13 digits of milliseconds are expected", excerpt(text))
		}
		if n > 0 || c > 0 {
			digits++
		}
		n = n*10 + int64(c)
	}
	if text == "" {
		return 0, refuse(command.BadTime, "no time")
	}
	if digits < 13 {
		n *= 1000
	}
	return storable(core.Time(n), text)
}

// storable refuses a time outside the range of the store.
func storable(t core.Time, text string) (core.Time, error) {
	if !t.Storable() {
		return 0, refuse(command.BadTime, "time %q is outside 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z", excerpt(text))
	}
	return t, nil
}
