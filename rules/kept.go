package rules

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// ruleState is the document of kind DocRule: which version of a rule the windows belong to, where in the log it came into force, and what it was made of.
// A start with broken files takes the rule from there, so that a slip of the pen costs neither windows nor open alerts.
type ruleState struct {
	Fingerprint string        `json:"fingerprint"`
	Start       core.Position `json:"start"`
	File        string        `json:"file,omitempty"`
	Source      string        `json:"source,omitempty"` // YAML: the rule, then the endpoints and collections it needs; "" when it is too long
}

// maxState bounds one such document. Rules take a few kilobytes; only collections grow large.
const maxState = 64 << 10

// stateOf also reports whether the source is in it.
func stateOf(r *Rule, start core.Position) (s ruleState, whole bool) {
	s = ruleState{Fingerprint: r.windows, Start: start, File: r.File(), Source: r.sources(r.compiled.ev.set)}
	if whole = len(s.body()) <= maxState; !whole {
		s.Source = ""
	}
	return s, whole
}

func (s ruleState) body() []byte { return []byte(jsonText(s)) }

// sources returns the documents that r needs, with those of the set that it uses.
func (r *Rule) sources(set *Set) string {
	own := r.at.documentText()
	for _, e := range set.Endpoints {
		if slices.ContainsFunc(r.Actions, func(a Action) bool { return a.Endpoint == e.Name }) {
			own += e.at.documentText()
		}
	}
	if lower := strings.ToLower(own); !strings.Contains(lower, "collection") && !strings.Contains(lower, "matchlist") {
		return own
	}
	// The name of a collection may be computed, so all are kept if there is room, and otherwise those whose names are written out.
	all, named := own, own
	for _, c := range set.Collections {
		text := c.at.documentText()
		all += text
		if strings.Contains(own, c.Name) {
			named += text
		}
	}
	if len(all) > maxState/2 { // as JSON a text grows, by quotes and line ends
		return named
	}
	return all
}

// load reads the rule files. inService says how many rules there are to lose.
func (e *Engine) load(inService int) (*Set, Faults) {
	set, faults := &Set{}, Faults(nil)
	if e.files != nil {
		set, faults = Load(e.files)
		if _, err := fs.Stat(e.files, "."); inService > 0 && errors.Is(err, fs.ErrNotExist) {
			faults = Faults{{File: ".", Line: 1, Column: 1, Document: 1,
				Text: fmt.Sprintf("rules directory does not exist, and %d rules go on as they were: create it, without files in it to remove the rules", inService)}}
		}
	}
	e.faults.load(faults)
	return set, faults
}

// lastGood makes rules from the sources that were in force before the start.
func (e *Engine) lastGood(saved map[string]ruleState) map[string]*Rule {
	out := map[string]*Rule{}
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		var faults Faults
		l := loader{set: &Set{}, faults: &faults}
		l.file(cmp.Or(saved[name].File, "stored"), []byte(saved[name].Source))
		l.finish()
		i := slices.IndexFunc(l.set.Rules, func(r *Rule) bool { return r.Name == name })
		switch {
		case i >= 0:
			out[name] = l.set.Rules[i]
		case len(faults) > 0:
			e.reportText(name, fmt.Sprintf("last good source of the rule is not usable: %v", faults[0].Text))
		}
	}
	return out
}

// keep adds to a set that was read from faulty files what was in force before and is not in it: it may be what is faulty, or in a file that cannot be
// read, or its change may be half done. So nothing is removed before the files are without faults.
func (e *Engine) keep(set *Set, good map[string]*Rule) {
	for _, name := range slices.Sorted(maps.Keys(good)) {
		r := good[name]
		for _, c := range r.compiled.ev.set.Collections {
			if !slices.ContainsFunc(set.Collections, func(have *Collection) bool { return have.Name == c.Name }) {
				set.Collections = append(set.Collections, c)
			}
		}
		if !slices.ContainsFunc(set.Rules, func(have *Rule) bool { return have.Name == name }) {
			set.Rules = append(set.Rules, r)
			e.kept++
			e.log.Warn("rules: rule goes on as it was, because of faults in files", "rule", name, "file", r.File())
		}
	}
}
