package webhook

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
)

const requestIP = "request_ip"

// tags returns the tags of the message. Where names collide, headers win over JSON and JSON over parameters; request_ip is always the real address.
func (m *mapper) tags() (core.Tags, error) {
	filter, err := newTagFilter(m.params)
	if err != nil {
		return nil, err
	}
	var tags core.Tags
	for _, leaves := range [][]leaf{m.plain.leaves, m.payload.leaves} {
		for _, l := range leaves {
			if l.value != "" && l.name != "" && filter.keeps(l.name, l.value) {
				tags = append(tags, core.Tag{Name: l.name, Value: l.value})
			}
		}
	}
	// Header tags and the address come after the filters: who names a header wants it.
	for _, p := range m.params {
		name, isTag := strings.CutPrefix(p.name, headerTag)
		if !isTag || name == "" {
			continue
		}
		if value := m.header(p.value); value != "" {
			tags = append(tags, core.Tag{Name: tagName(name), Value: value})
		}
	}
	if m.RemoteIP != "" {
		tags = append(tags, core.Tag{Name: requestIP, Value: m.RemoteIP})
	}
	tags = tags.Normal()
	if len(tags) > m.MaxTags {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: %d tags in one message: at most %d are allowed, leave some out with exclude=", len(tags), m.MaxTags)
	}
	return tags, nil
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
func (f tagFilter) keeps(name, value string) bool {
	return (!matchAny(f.exclude, name) || matchAny(f.include, name)) &&
		(!matchAny(f.excludeValues, value) || matchAny(f.includeValues, value))
}

func matchAny(patterns []*glob.Pattern, text string) bool {
	return slices.ContainsFunc(patterns, func(p *glob.Pattern) bool { return p.Match(text) })
}
