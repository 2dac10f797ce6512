package webhook

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
)

const requestIP = "request_ip"

// tags returns the tags of the message. Where names collide, headers win over JSON and JSON over parameters; request_ip is always the real address.
func (m *mapper) tags() (core.Tags, error) {
	filter, err := m.filter()
	if err != nil {
		return nil, err
	}
	m.kept = m.kept[:0]
	for _, i := range m.ranked(filter) {
		if l := m.leaf(i); l.value != "" && filter.keepsValue(l.value) {
			m.kept = append(m.kept, i)
		}
	}
	m.addFixed()
	tags := m.merged()
	if len(tags) > m.MaxTags {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: %d tags in one message: at most %d are allowed, leave some out with exclude=", len(tags), m.MaxTags)
	}
	return tags, nil
}

// leaf returns a leaf by its place among all: the parameters, then the payload.
func (m *mapper) leaf(i int32) *leaf {
	if plain := int32(len(m.plain.leaves)); i >= plain {
		return &m.payload.leaves[i-plain]
	}
	return &m.plain.leaves[i]
}

// addFixed collects header tags and the address, in the order of their names. They come after the filters: who names a header wants it.
func (m *mapper) addFixed() {
	m.fixed = m.fixed[:0]
	for _, p := range m.params {
		name, isTag := strings.CutPrefix(p.name, headerTag)
		if !isTag || name == "" {
			continue
		}
		if value := m.header(p.value); value != "" {
			m.fixed = append(m.fixed, core.Tag{Name: tagName(name), Value: value})
		}
	}
	if m.RemoteIP != "" {
		m.fixed = append(m.fixed, core.Tag{Name: requestIP, Value: m.RemoteIP})
	}
	slices.SortStableFunc(m.fixed, func(a, b core.Tag) int { return strings.Compare(a.Name, b.Name) })
}

// merged makes tags of the leaves in m.kept and of m.fixed, which both are sorted. Of equal names the last one counts, and a fixed one more than a leaf.
func (m *mapper) merged() core.Tags {
	if len(m.kept)+len(m.fixed) == 0 {
		return nil
	}
	tags := make(core.Tags, 0, len(m.kept)+len(m.fixed))
	put := func(t core.Tag) {
		if last := len(tags) - 1; last >= 0 && tags[last].Name == t.Name {
			tags[last] = t
			return
		}
		tags = append(tags, t)
	}
	fixed := m.fixed
	for _, i := range m.kept {
		l := m.leaf(i)
		for len(fixed) > 0 && fixed[0].Name < l.name {
			put(fixed[0])
			fixed = fixed[1:]
		}
		put(core.Tag{Name: l.name, Value: l.value})
	}
	for _, t := range fixed {
		put(t)
	}
	return tags
}

// ranking is the order of leaves by name, without those whose name a filter takes out. Services send the same fields with each request, so that it mostly
// need not be made again: names that come again as parts of the same text are compared by their address.
type ranking struct {
	names []string // of all leaves
	order []int32
}

// ranked returns the places of the leaves whose names the filter keeps, by name; equal names in the order of the request.
func (m *mapper) ranked(filter *tagFilter) []int32 {
	rank := &m.query.rank
	if !m.ofQuery() { // the names are parts of a form, which must not be held on to
		rank = new(ranking)
	}
	n := len(m.plain.leaves) + len(m.payload.leaves)
	same := len(rank.names) == n
	for i := 0; same && i < n; i++ {
		same = rank.names[i] == m.leaf(int32(i)).name
	}
	if same {
		return rank.order
	}
	clear(rank.names)
	rank.names, rank.order = rank.names[:0], rank.order[:0]
	for i := range int32(n) {
		name := m.leaf(i).name
		rank.names = append(rank.names, name)
		if name != "" && filter.keepsName(name) {
			rank.order = append(rank.order, i)
		}
	}
	slices.SortFunc(rank.order, func(a, b int32) int {
		return cmp.Or(strings.Compare(rank.names[a], rank.names[b]), cmp.Compare(a, b))
	})
	return rank.order
}

// ofQuery reports whether all parameters are those of the query string.
func (m *mapper) ofQuery() bool { return len(m.params) == len(m.query.params) }

// filter returns the filter of the request, compiled once for each query string. Only a form adds to what the query string says.
func (m *mapper) filter() (*tagFilter, error) {
	ofQuery := m.ofQuery()
	if ofQuery && m.query.filter != nil {
		return m.query.filter, nil
	}
	f, err := newTagFilter(m.params)
	if err == nil && ofQuery {
		m.query.filter = &f
	}
	return &f, err
}

// tagFilter decides which fields become tags. Names match ignoring case, values do not.
type tagFilter struct {
	exclude, include             []*glob.Pattern
	excludeValues, includeValues []*glob.Pattern
}

func newTagFilter(params parameters) (tagFilter, error) {
	var f tagFilter
	total := 0
	patterns := func(name string, change func(string) string) []*glob.Pattern {
		var out []*glob.Pattern
		list := params.list(name)
		if total += len(list); total > maxPatterns {
			return nil
		}
		for _, text := range list {
			out = append(out, glob.Compile(change(text)))
		}
		return out
	}
	asSent := func(s string) string { return s }
	f.exclude, f.include = patterns("exclude", strings.ToLower), patterns("include", strings.ToLower)
	f.excludeValues, f.includeValues = patterns("excludeValues", asSent), patterns("includeValues", asSent)
	if total > maxPatterns {
		return f, core.Errorf(core.Invalid, "%d filter patterns: at most %d are allowed", total, maxPatterns)
	}
	return f, nil
}

// keepsName and keepsValue are the two tests that a tag has to pass.
func (f *tagFilter) keepsName(name string) bool {
	return !matchAny(f.exclude, name) || matchAny(f.include, name)
}

func (f *tagFilter) keepsValue(value string) bool {
	return !matchAny(f.excludeValues, value) || matchAny(f.includeValues, value)
}

func matchAny(patterns []*glob.Pattern, text string) bool {
	return slices.ContainsFunc(patterns, func(p *glob.Pattern) bool { return p.Match(text) })
}
