package exec

import (
	"context"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// viewFill makes the rows of a view regular as if they were samples: those of equal metric, entity and tags are one series. Columns that are neither of these nor
// time, value and text go on from a row to the points up to the next one.
func (x *execution) viewFill(ctx context.Context, op *plan.View, in stream) stream {
	if op.Fill.Detail {
		return in
	}
	var byKey, natural []plan.Key
	for _, c := range []int{op.Metric, op.Entity, op.Tags, op.Time} {
		byKey = appendPlace(byKey, c)
	}
	for _, c := range []int{op.Metric, op.Entity, op.Time, op.Tags} {
		natural = appendPlace(natural, c)
	}
	made := func(yield func(*column.Batch, error) bool) {
		f := x.newViewFiller(op, func(b *column.Batch, err error) bool {
			if err == nil && ctx.Err() != nil {
				b, err = nil, ctx.Err()
			}
			return yield(b, err) && err == nil
		})
		defer f.release()
		for b, err := range x.sorted(ctx, byKey, 0, in) {
			for i := 0; err == nil && i < b.Len && !f.grid.stopped; i++ {
				err = f.add(b, i)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if f.grid.stopped {
				return
			}
		}
		if err := f.end(); err != nil {
			yield(nil, err)
		}
	}
	return x.sorted(ctx, natural, 0, made)
}

// viewFiller makes one series after the other regular.
type viewFiller struct {
	op       *plan.View
	fillings *fillings
	yield    func(*column.Batch, error) bool
	series   *rows // of the current series
	key      core.SeriesKey
	grid     regular[int32]
	points   pointRows
}

func (x *execution) newViewFiller(op *plan.View, yield func(*column.Batch, error) bool) *viewFiller {
	f := &viewFiller{op: op, fillings: x.newFillings(op.Fill), yield: yield, series: x.newRows()}
	f.grid.waiting = &account{memory: x.Memory}
	f.points.columns = pointColumnsOf(op, pointColumns{time: op.Time, value: op.Value})
	f.grid.yield = func(p point[int32]) bool {
		f.points.add(p)
		return f.points.len() < column.Size || f.flush()
	}
	return f
}

func (f *viewFiller) release() {
	f.series.release()
	f.grid.waiting.release()
}

// add takes row i of b, which belongs to the current series or to the next one.
func (f *viewFiller) add(b *column.Batch, i int) error {
	key := core.SeriesKey{Metric: nameAt(b, f.op.Metric, i).text, Entity: nameAt(b, f.op.Entity, i).text}
	if tags := nameAt(b, f.op.Tags, i).text; tags != "" {
		key.Tags = core.Tags{{Value: tags}} // whatever they are, they tell series apart
	}
	if f.series.n > 0 && f.key.Compare(key) != 0 {
		if err := f.end(); err != nil || f.grid.stopped {
			return err
		}
	}
	if f.series.n == 0 {
		f.key = key.Clone()
	}
	return f.series.addRow(b, i)
}

// end makes the current series regular.
func (f *viewFiller) end() error {
	if f.series.n == 0 || f.grid.stopped {
		return nil
	}
	intervals := f.op.Intervals
	if len(intervals) == 0 {
		intervals = []plan.Interval{{Range: core.AllTime}}
	}
	f.grid.filling = f.fillings.of(f.key)
	f.grid.start(intervals)
	all := f.series.batch()
	for i := 0; i < all.Len && !f.grid.done(); i++ {
		if t := timeAt(all, f.op.Time, i); t != math.MinInt64 {
			f.grid.take(reading[int32]{core.Time(t), numberAt(all, f.op.Value, i), int32(i) + 1})
		}
	}
	f.grid.finish()
	if f.grid.err != nil {
		return f.grid.err
	}
	if !f.grid.stopped && f.points.len() > 0 {
		f.grid.stopped = !f.flush()
	}
	f.series.reset()
	return nil
}

func (f *viewFiller) flush() bool {
	more := f.yield(f.points.batch(f.series.batch(), 0), nil)
	f.points.reset()
	return more
}

// numberAt returns the number in a column; where there is no such column every row has one, so that rows count as samples.
func numberAt(b *column.Batch, at, i int) float64 {
	if at < 0 {
		return 0
	}
	return b.Columns[at].Float(i)
}

// appendPlace appends the key of a column; -1 is none.
func appendPlace(keys []plan.Key, c int) []plan.Key {
	if c < 0 {
		return keys
	}
	return append(keys, plan.Key{Expr: place{c, column.Null}})
}
