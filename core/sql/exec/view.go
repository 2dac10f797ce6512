package exec

import (
	"context"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// view yields the rows of another query.
func (x *execution) view(ctx context.Context, op *plan.View) stream {
	rows := narrow(x.inner(ctx, op.Query), len(op.Query.Columns))
	switch {
	case op.Fill != nil && !op.Fill.Detail:
		rows = x.viewFill(ctx, op, rows)
	case len(op.Intervals) > 0 && op.Time >= 0:
		rows = inIntervals(op, rows)
	}
	return x.filter(op.Filter, rows)
}

// inner yields all columns of another query.
func (x *execution) inner(ctx context.Context, q *plan.Query) stream {
	return func(yield func(*column.Batch, error) bool) {
		inner := &execution{Config: x.Config, env: q.Env, spill: x.spill, stopped: ctx.Err}
		held := account{memory: x.Memory}
		defer held.release()
		if err := inner.fit(q, &held); err != nil {
			yield(nil, err)
			return
		}
		inner.open(ctx, q.Root)(yield)
	}
}

// narrow yields the first columns of the rows of in.
func narrow(in stream, width int) stream {
	return func(yield func(*column.Batch, error) bool) {
		var out column.Batch
		for b, err := range in {
			if err == nil && len(b.Columns) > width {
				out.Len, out.Columns = b.Len, b.Columns[:width]
				b = &out
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// inIntervals keeps rows whose time lies in one of the intervals.
func inIntervals(op *plan.View, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		var pick []int32
		var out column.Batch
		for b, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			pick = pick[:0]
			times := b.Columns[op.Time]
			for i := range b.Len {
				if !times.IsNull(i) && anyContains(op.Intervals, instantOf(times, i)) {
					pick = append(pick, int32(i))
				}
			}
			if len(pick) < b.Len {
				gather(&out, b, pick)
				b = &out
			}
			if b.Len > 0 && !yield(b, nil) {
				return
			}
		}
	}
}

// instantOf returns row i of a column of times, which is not NULL.
func instantOf(v *column.Vector, i int) core.Time {
	if v.Ints != nil {
		return core.Time(v.Ints[v.Index(i)])
	}
	return core.Time(v.Float(i))
}

func anyContains(intervals []plan.Interval, t core.Time) bool {
	n := firstAfter(intervals, []core.Time{t})
	return n < len(intervals) && intervals[n].Contains(t)
}
