package query

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// Source is what queries read, and how much of it the caller may see.
type Source struct {
	Reader  core.Reader
	Catalog core.Catalog
	Scope   core.Scope
	// Transient says that the reader is done with a result before it asks for the next one or leaves the loop: the samples of a series query may then lie in
	// memory that is used again.
	Transient bool
	// Samples is how many samples a query may hold at one time; 0 = DefaultSamples.
	Samples int
	// ForecastSamples is how many samples one forecast may read, and how many it may give; 0 = DefaultForecastSamples.
	ForecastSamples int
	// Budget is shared by all queries; nil = none.
	Budget *Budget

	charge *charge // of the run under way
}

// alive yields what in yields until ctx ends. What a query does with a record, such as evaluating an expression, may take much longer than reading it:
// it must not depend on how often the backend looks at ctx.
func alive[T any](ctx context.Context, in iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one, err := range in {
			if err = cmp.Or(err, ctx.Err()); !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// authorise refuses entities that were named and lie outside the scope. Wildcards, groups and expressions only ever find what lies inside.
func (s Source) authorise(names []string) error {
	for _, name := range names {
		if _, known := s.Catalog.Entity(name); known && !s.readable(name) {
			return core.Errorf(core.Forbidden, "AccessDeniedException: no permission for entity '%s'", name)
		}
	}
	return nil
}

func (s Source) readable(entity string) bool { return s.within()(entity) }

// within returns the question whether the caller may read an entity, for whoever asks it many times.
func (s Source) within() func(entity string) bool {
	if s.Scope.All {
		return func(string) bool { return true }
	}
	return MemberOfAny(s.Catalog, s.Scope.Groups)
}

// grouped is what a catalog may know besides: to answer for several groups at once costs it less than one answer for each.
type grouped interface {
	// AnyMember returns the question whether an entity is in any of the groups as they are now.
	AnyMember(groups []string) func(entity string) bool
}

// MemberOfAny returns the question whether an entity is in any of the groups.
func MemberOfAny(c core.Catalog, groups []string) func(entity string) bool {
	if g, ok := c.(grouped); ok {
		return g.AnyMember(groups)
	}
	return func(entity string) bool {
		return slices.ContainsFunc(groups, func(group string) bool { return c.Member(entity, group) })
	}
}
