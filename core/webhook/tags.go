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
	// Those that come later win. The candidates stay where they are: sorting their indexes moves no strings.
	all := append(m.plain.leaves, m.payload.leaves...)
	m.order = m.order[:0]
	for i := range all {
		if l := &all[i]; l.value != "" && l.name != "" && filter.keeps(l.name, l.value) {
			m.order = append(m.order, int32(i))
		}
	}
	add := func(name, value string) {
		m.order = append(m.order, int32(len(all)))
		all = append(all, leaf{name: name, value: value})
	}
	// Header tags and the address come after the filters: who names a header wants it.
	for _, p := range m.params {
		name, isTag := strings.CutPrefix(p.name, headerTag)
		if !isTag || name == "" {
			continue
		}
		if value := m.header(p.value); value != "" {
			add(tagName(name), value)
		}
	}
	if m.RemoteIP != "" {
		add(requestIP, m.RemoteIP)
	}
	m.plain.leaves = all
	tags := m.sorted(all)
	if len(tags) > m.MaxTags {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: %d tags in one message: at most %d are allowed, leave some out with exclude=", len(tags), m.MaxTags)
	}
	return tags, nil
}

// sorted makes tags of the leaves that m.order holds, by name; of equal names the last one counts.
func (m *mapper) sorted(leaves []leaf) core.Tags {
	if len(m.order) == 0 {
		return nil
	}
	slices.SortFunc(m.order, func(a, b int32) int {
		return cmp.Or(strings.Compare(leaves[a].name, leaves[b].name), cmp.Compare(a, b))
	})
	tags := make(core.Tags, 0, len(m.order))
	for i, at := range m.order {
		if i+1 == len(m.order) || leaves[m.order[i+1]].name != leaves[at].name {
			tags = append(tags, core.Tag{Name: leaves[at].name, Value: leaves[at].value})
		}
	}
	return tags
}

// filter returns the filter of the request, compiled once for each query string. Only a form adds to what the query string says.
func (m *mapper) filter() (*tagFilter, error) {
	ofQuery := len(m.params) == len(m.query.params)
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

// keeps reports whether a tag passes both tests: by name and by value.
func (f *tagFilter) keeps(name, value string) bool {
	return (!matchAny(f.exclude, name) || matchAny(f.include, name)) &&
		(!matchAny(f.excludeValues, value) || matchAny(f.includeValues, value))
}

func matchAny(patterns []*glob.Pattern, text string) bool {
	return slices.ContainsFunc(patterns, func(p *glob.Pattern) bool { return p.Match(text) })
}
