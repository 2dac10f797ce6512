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

func (s Source) readable(entity string) bool {
	return s.Scope.All || slices.ContainsFunc(s.Scope.Groups, func(g string) bool { return s.Catalog.Member(entity, g) })
}
