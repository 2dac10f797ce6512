package query

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// flow is what stages hand on: results in the order of the answer, and at most one error, the last.
type flow = iter.Seq2[*Result, error]

// stage turns the results of the stage before it into its own. It keeps their order by entity and tags.
type stage struct {
	name    string // upper case, echoed
	run     func(ctx context.Context, e *execution, in flow) flow
	streams bool // it is done with an input, and with what it made of it, before it asks for the next one
	// pieces does as the first stage what run does, from the pieces of a series; nil = it needs the samples themselves.
	pieces func(r *Result, in iter.Seq2[core.Piece, error], hold holder) (out []*Result, some bool, err error)
}

// transformation is one of those that a request configures.
type transformation interface {
	// stage validates the transformation and prepares it for the query.
	stage(s setting) (stage, error)
}

// setting is what a transformation may know of the query around it. Moment has the zone of the query.
type setting struct {
	dates.Moment
	Range core.Range
	// Inherited is the period of an aggregation that follows, which a group without period takes.
	Inherited *Period
}

// Part is one member of an answer that repeats a transformation, as JSON.
type Part struct {
	Name string // such as "aggregate"
	JSON []byte
}

// partOrder is the order in which an answer shows its parts.
var partOrder = [...]string{"entities", "entityGroup", "aggregate", "rate", "group", "smooth", "downsample", "forecast"}

// with returns parts with another one, which replaces an earlier one of its name. It does not change the slice it was given, which results share.
func with(parts []Part, name string, json []byte) []Part {
	out := make([]Part, 0, len(parts)+1)
	for _, p := range parts {
		if p.Name != name {
			out = append(out, p)
		}
	}
	out = append(out, Part{name, json})
	slices.SortStableFunc(out, func(a, b Part) int {
		return slices.Index(partOrder[:], a.Name) - slices.Index(partOrder[:], b.Name)
	})
	return out
}

// mapped makes a stage of what turns each result into others, on its own. f may change its argument and return it.
func mapped(name string, f func(ctx context.Context, e *execution, r *Result) ([]*Result, error)) stage {
	run := func(ctx context.Context, e *execution, in flow) flow {
		return func(yield func(*Result, error) bool) {
			for r, err := range alive(ctx, in) {
				var out []*Result
				if err == nil {
					out, err = f(ctx, e, r)
				}
				if err != nil {
					yield(nil, err)
					return
				}
				for _, one := range out {
					if !yield(one, nil) {
						return
					}
				}
			}
		}
	}
	return stage{name: name, run: run, streams: true}
}

// reach returns the range that a stage works on: that of the query, or to the end of an input that goes on beyond it, as the output of a forecast does.
// The periods stay where they are.
func (r *Result) reach(of core.Range, p calc.Period) core.Range {
	if n := r.Samples.Len(); n > 0 && r.Samples.Times[n-1] >= of.End {
		of.End = p.Past(of.End, r.Samples.Times[n-1])
	}
	return of
}

// compute replaces the samples by what a calculation made of them. The result stays regular only while its samples follow each other on grid.
func (r *Result) compute(s calc.Series, grid *calc.Grid) {
	r.Samples, r.Computed = Samples{Times: s.Times, Values: s.Values, Decimals: s.Decimals}, true
	r.lieOn(grid)
}

// lieOn records that the samples stand on consecutive times of grid, if they do. grid is nil when nothing is known.
func (r *Result) lieOn(grid *calc.Grid) {
	r.Grid = nil
	if grid != nil && grid.Consecutive(r.Samples.Times) {
		r.Grid = grid
	}
}

// DefaultSamples is what a query may hold at one time unless its source says otherwise: 16 bytes each, some 100 MB.
const DefaultSamples = 6_000_000

// Budget bounds the samples that all queries together hold in memory.
type Budget struct {
	Limit int64 // samples; <= 0 = no bound
	used  atomic.Int64
}

// take reserves n samples.
func (b *Budget) take(n int) error {
	if b.Limit <= 0 || b.used.Add(int64(n)) <= b.Limit {
		return nil
	}
	b.used.Add(int64(-n))
	return &core.Error{Code: core.Unavailable, RetryAfter: time.Second,
		Text: fmt.Sprintf("the queries under way hold more than limits.queries (%d) samples together: try again", b.Limit)}
}

// charge is what one run of a query has reserved.
type charge struct {
	budget *Budget
	taken  int
}

// open returns the source for one run, and what gives back at its end what the run has reserved.
func (s Source) open() (Source, func()) {
	if s.Budget == nil || s.Budget.Limit <= 0 {
		return s, func() {}
	}
	c := &charge{budget: s.Budget}
	s.charge = c
	return s, func() { c.budget.used.Add(int64(-c.taken)) }
}

// held counts the samples that a query keeps in memory at the same time.
type held struct {
	limit, count int
	most         int // of count so far: what is reserved stays so until the end of the run
	charge       *charge
}

func (s Source) hold() held {
	h := held{limit: DefaultSamples, charge: s.charge}
	if s.Samples > 0 {
		h.limit = s.Samples
	}
	return h
}

// add refuses what would exceed the limit of a query, or that of all.
func (h *held) add(n int) error {
	if h.count += n; h.count > h.limit {
		return core.Errorf(core.TooLarge, "the query holds more than limits.samples (%d) samples at a time: shorten the range, narrow the filter or set a limit", h.limit)
	}
	if h.charge == nil || h.count <= h.most {
		return nil
	}
	more := h.count - h.most
	if err := h.charge.budget.take(more); err != nil {
		return err
	}
	h.most = h.count
	h.charge.taken += more
	return nil
}

// computes reports whether some stage makes samples of its own; the others hand on the versions of those that they keep.
func (p *Plan) computes() bool {
	return slices.ContainsFunc(p.stages, func(s stage) bool { return s.name != "DOWNSAMPLE" })
}
