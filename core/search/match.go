package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	wordBoost  uint8 = 1
	wholeBoost uint8 = 2
)

// maxKnown is how many entities and metrics are remembered, some 5 MB; then all are forgotten. Series come by metric, so that metrics are not computed again.
const maxKnown = 16_384

// matcher holds what the leaves of a query say of the series at hand. What they say of an entity or a metric is computed once for many of its series.
type matcher struct {
	query    *Query
	boost    []uint8 // by leaf; 0 = no match
	found    []int   // documents by leaf
	entities map[string][]uint8
	metrics  map[string][]uint8
}

func newMatcher(q *Query) *matcher {
	return &matcher{query: q, boost: make([]uint8, len(q.leaves)), found: make([]int, len(q.leaves)), entities: map[string][]uint8{}, metrics: map[string][]uint8{}}
}

// remember keeps what was computed of a name.
func remember(known map[string][]uint8, name string, boost []uint8) {
	if len(known) >= maxKnown {
		clear(known)
	}
	known[name] = boost
}

// value is a text that can be found, lower case, with its words.
type value struct {
	text  string
	words []string
}

func newValue(text string) value {
	text = strings.ToLower(text)
	return value{text, words(text)}
}

// words splits at everything but letters, digits, and the three characters that join parts of names.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r != '.' && r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// load computes the boosts of all leaves for one series.
func (m *matcher) load(d Document) {
	entity, ok := m.entities[d.Key.Entity]
	if !ok {
		entity = m.ofEntity(&d)
		remember(m.entities, d.Key.Entity, entity)
	}
	metric, ok := m.metrics[d.Key.Metric]
	if !ok {
		metric = m.ofMetric(&d)
		remember(m.metrics, d.Key.Metric, metric)
	}
	for i := range m.boost {
		m.boost[i] = max(entity[i], metric[i])
	}
	for _, t := range d.Key.Tags {
		m.tag(m.boost, t.Name, t.Value)
	}
	for i, leaf := range m.query.leaves {
		if leaf.field == "date" {
			m.boost[i] = max(m.boost[i], leaf.match(newValue(d.Last.Std().UTC().Format("2006-01-02"))))
		}
	}
}

func (m *matcher) ofEntity(d *Document) []uint8 {
	boost := make([]uint8, len(m.boost))
	m.field(boost, "entity", d.Key.Entity)
	if e := d.Entity; e != nil {
		m.field(boost, "entity.label", e.Label)
		for name, text := range e.Tags {
			m.tag(boost, name, text)
		}
	}
	return boost
}

func (m *matcher) ofMetric(d *Document) []uint8 {
	boost := make([]uint8, len(m.boost))
	m.field(boost, "metric", d.Key.Metric)
	if f := d.Metric; f != nil {
		m.field(boost, "metric.label", f.Label)
		for name, text := range f.Tags {
			m.tag(boost, name, text)
		}
	}
	return boost
}

// field offers a text to the leaves of a field and to those of all contents.
func (m *matcher) field(boost []uint8, name, text string) {
	if text == "" {
		return
	}
	v := newValue(text)
	for i, leaf := range m.query.leaves {
		if leaf.field == name || leaf.field == defaultField {
			boost[i] = max(boost[i], leaf.match(v))
		}
	}
}

// tag offers a tag: its value to the leaves of its name, both to those of all contents.
func (m *matcher) tag(boost []uint8, name, text string) {
	m.field(boost, name, text)
	v := newValue(name)
	for i, leaf := range m.query.leaves {
		if leaf.field == defaultField {
			boost[i] = max(boost[i], leaf.match(v))
		}
	}
}

func (m *matcher) matches(n *node) bool {
	switch n.kind {
	case nodeAnd:
		return !slices.ContainsFunc(n.args, func(arg *node) bool { return !m.matches(arg) })
	case nodeOr:
		return slices.ContainsFunc(n.args, m.matches)
	case nodeNot:
		return !m.matches(n.args[0])
	}
	return m.boost[n.index] > 0
}

// match returns the boost of a text, 0 when the leaf does not match it.
func (n *node) match(v value) uint8 {
	switch {
	case n.kind == nodePhrase:
		return n.matchPhrase(v)
	case n.wild:
		if like(n.pattern, v.text) || slices.ContainsFunc(v.words, func(w string) bool { return like(n.pattern, w) }) {
			return wordBoost
		}
		return 0
	case len(n.same) == 0:
		return matchTerm(n.text, v)
	}
	best := uint8(0)
	for _, word := range n.same {
		best = max(best, matchTerm(word, v))
	}
	return best
}

func matchTerm(text string, v value) uint8 {
	switch {
	case v.text == text:
		return wholeBoost
	case slices.Contains(v.words, text):
		return wordBoost
	}
	return 0
}

// matchPhrase looks for the words of the phrase one after the other. A phrase without any, such as "/", can only be a whole text.
func (n *node) matchPhrase(v value) uint8 {
	if v.text == n.text {
		return wholeBoost
	}
	for i := 0; len(n.words) > 0 && i+len(n.words) <= len(v.words); i++ {
		if slices.Equal(v.words[i:i+len(n.words)], n.words) {
			return wordBoost
		}
	}
	return 0
}

// like matches a pattern against a whole text. Only the last star is gone back to, so that the time is at most the product of the lengths.
func like(pattern []glyph, text string) bool {
	p, t := 0, 0
	star, from := -1, 0
	for t < len(text) {
		r, size := utf8.DecodeRuneInString(text[t:])
		switch {
		case p < len(pattern) && pattern[p].kind == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p].kind == '?' || pattern[p].kind == 0 && pattern[p].r == r):
			p++
			t += size
		case star >= 0:
			_, size = utf8.DecodeRuneInString(text[from:])
			from += size
			p, t = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p].kind == '*' {
		p++
	}
	return p == len(pattern)
}
