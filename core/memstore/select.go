package memstore

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/glob"
)

// entities returns the test that an entity name must pass: in scope, named or matched, and narrowed by group and expression. Expressions of the question
// that are compiled after it learn nothing of entities out of scope.
func (q *question) entities(scope core.Scope, f core.EntityFilter) func(name string) bool {
	if !scope.All {
		q.readable = func(name string) bool {
			return slices.ContainsFunc(scope.Groups, func(group string) bool { return q.member(name, group) })
		}
	}
	match := q.compile(filter.Entities, f.Expression)
	return func(name string) bool {
		if q.readable != nil && !q.readable(name) {
			return false
		}
		if len(f.Names)+len(f.Patterns) > 0 && !slices.Contains(f.Names, name) && (len(f.Patterns) == 0 || !matchAny(f.Patterns, name)) {
			return false
		}
		if f.Group != "" && !q.member(name, f.Group) {
			return false
		}
		if f.Expression == "" {
			return true
		}
		entity, _ := q.entity(name)
		return match(filter.EntityEnv{Entity: &entity})
	}
}

// matchAny reports whether one of the patterns matches; no patterns match everything.
func matchAny(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return glob.Compile(p).Match(text) })
}

// matchTags reports whether each filter finds its tag with a value that one of its patterns matches.
func matchTags(tags core.Tags, filters []core.TagFilter) bool {
	for _, f := range filters {
		value, ok := tags.Get(f.Name)
		if !ok || !slices.ContainsFunc(f.Patterns, func(p string) bool { return glob.Compile(p).Match(value) }) {
			return false
		}
	}
	return true
}

// sameNames reports whether the filters name every tag; that each filter found its tag is known.
func sameNames(tags core.Tags, filters []core.TagFilter) bool {
	for _, tag := range tags {
		if !slices.ContainsFunc(filters, func(f core.TagFilter) bool { return f.Name == tag.Name }) {
			return false
		}
	}
	return true
}

func matchKey(key core.Tags, q core.PropertyQuery) bool {
	if q.ExactKey {
		return key.Equal(q.Key)
	}
	for _, want := range q.Key {
		if value, ok := key.Get(want.Name); !ok || value != want.Value {
			return false
		}
	}
	return true
}
