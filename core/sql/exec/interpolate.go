package exec

import (
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// Functions of plan.Interpolate; whatever is neither is LINEAR.
const (
	functionPrevious = "previous"
	functionAuto     = "auto" // of the entity, otherwise of the metric
)

// Boundaries of plan.Interpolate: which samples outside an interval are read.
const (
	boundaryInner = "inner" // none
	boundaryOuter = "outer" // the last one before and the first one after, if the interval has samples of its own
	boundaryFull  = "full"  // the same, of every interval
)

// reading is a sample of a series, or a row of a view that stands for one. NaN is no number; Carried is what goes on from a sample to the points up
// to the next one, such as its text.
type reading[T any] struct {
	time    core.Time
	value   float64
	carried T
}

func (r *reading[T]) number() bool { return r.value == r.value }

// point is a row at a point of the grid. Raw: it is the sample at this time, unchanged.
type point[T any] struct {
	reading[T]
	raw bool
	of  *T // what the sample carries whose number this is, unchanged; nil: it is computed. Valid until the next sample
}

// ticks are ascending points of time.
type ticks interface {
	// seek returns the first point that is not earlier than t, which never goes back; false when there is none.
	seek(t core.Time) (core.Time, bool)
}

// filling says how samples become points. Grid lays out the points of an interval; first is the time of the first sample that may be read.
type filling struct {
	previous bool // PREVIOUS, otherwise LINEAR
	boundary string
	fill     ast.Fill
	number   float64 // of ast.FillValue
	grid     func(in plan.Interval, first core.Time) (ticks, error)
}

// regular makes points of the samples of one series, interval by interval. Samples come in ascending order, those before, between and after the
// intervals included, as far as the boundary needs them.
//
// Points between two numbers are made when the second one is known. What has no number is as if it were absent for the values, but not for what it
// carries, nor for whether an interval has samples: that is why such samples wait in gap. A series without any number is carried by the rule of PREVIOUS,
// and its points have NaN.
type regular[T any] struct {
	filling
	intervals []plan.Interval // ascending, disjoint; those passed are cut off
	yield     func(point[T]) bool
	err       error
	stopped   bool // by yield, or err

	last    *reading[T] // sample, of any kind and wherever
	left    *reading[T] // last number that the current interval may read; nil = none
	gap     []reading[T]
	waiting *account       // is charged for gap; nil = it is not counted
	size    func(*T) int64 // bytes of what a sample carries that lie elsewhere; nil = none
	own     bool           // the current interval contains samples
	ticks   ticks
	at      core.Time // the next point
	more    bool      // at is valid
	carry   int       // how many of gap are not later than at
	samples [2]reading[T]
}

// start begins a series.
func (r *regular[T]) start(intervals []plan.Interval) {
	r.intervals = intervals
	r.last = nil
	r.reset()
}

// reset begins an interval.
func (r *regular[T]) reset() {
	r.forget()
	r.left, r.own, r.ticks, r.more = nil, false, nil, false
	if r.boundary != boundaryInner && r.last != nil {
		r.read(*r.last)
	}
}

// done reports that later samples of the series change nothing.
func (r *regular[T]) done() bool { return len(r.intervals) == 0 || r.stopped }

// take adds the next sample.
func (r *regular[T]) take(s reading[T]) {
	for !r.done() && s.time >= r.intervals[0].End {
		r.close(&s)
		r.intervals = r.intervals[1:]
		r.reset()
	}
	if r.done() {
		return
	}
	r.samples[1] = s
	r.last = &r.samples[1]
	if s.time < r.intervals[0].Start {
		if r.boundary != boundaryInner {
			r.left = nil
			r.forget()
			r.read(s)
		}
		return
	}
	r.own = true
	if !s.number() {
		r.wait(s)
		return
	}
	r.upTo(s.time, &s)
	if !r.stopped && r.more && r.at == s.time {
		r.emit(point[T]{s, true, &r.samples[1].carried})
		r.step()
	}
	r.read(s)
}

// read makes s what the next points have on their left.
func (r *regular[T]) read(s reading[T]) {
	if !s.number() {
		r.wait(s)
		return
	}
	r.forget()
	r.samples[0] = s
	r.left = &r.samples[0]
}

// gapBytes is what a sample in gap takes, with the room that the list has beyond its end.
const gapBytes = 64

// wait puts s into gap.
func (r *regular[T]) wait(s reading[T]) {
	if r.waiting != nil {
		n := int64(gapBytes)
		if r.size != nil {
			n += r.size(&s.carried)
		}
		if r.err = r.waiting.grow(n); r.err != nil {
			r.stopped = true
			return
		}
	}
	r.gap = append(r.gap, s)
}

// forget empties gap.
func (r *regular[T]) forget() {
	if len(r.gap) > 0 && r.waiting != nil {
		r.waiting.release()
	}
	r.gap, r.carry = r.gap[:0], 0
}

// finish ends the series.
func (r *regular[T]) finish() {
	for !r.done() {
		r.close(nil)
		r.intervals = r.intervals[1:]
		r.reset()
	}
}

// close makes the points of the interval that are left. Next is the sample that follows the interval, nil for none.
func (r *regular[T]) close(next *reading[T]) {
	if r.boundary == boundaryInner {
		next = nil
	}
	if r.stopped || !r.own && (r.boundary != boundaryFull || r.last == nil && next == nil) {
		return
	}
	if next != nil && next.number() {
		r.upTo(r.intervals[0].End, next)
		return
	}
	r.open(next)
	if next != nil {
		r.gap = append(r.gap, *next) // what it carries lies beyond the interval, but shows that the one before goes on
	}
	r.tail()
}

// open lays out the grid, when that has not happened. Next is the sample at hand.
func (r *regular[T]) open(next *reading[T]) {
	if r.ticks != nil {
		return
	}
	in := r.intervals[0]
	in.Start = max(in.Start, core.MinTime)
	if !in.HasFrom {
		in.Start = r.first(next).time
	}
	if r.ticks, r.err = r.grid(in, in.Start); r.err != nil {
		r.stopped = true
		return
	}
	r.at, r.more = r.ticks.seek(in.Start)
	r.more = r.more && r.at < in.End
}

// first returns the first sample that the interval may read, of which next is the one at hand.
func (r *regular[T]) first(next *reading[T]) *reading[T] {
	switch {
	case r.left != nil:
		return r.left
	case len(r.gap) > 0:
		return &r.gap[0]
	}
	return next
}

// step goes to the next point.
func (r *regular[T]) step() { r.seek(r.at + 1) }

func (r *regular[T]) seek(t core.Time) {
	if r.more && r.at < t {
		r.at, r.more = r.ticks.seek(t)
		r.more = r.more && r.at < r.intervals[0].End
	}
}

// upTo makes the points before end, where right is the next number.
func (r *regular[T]) upTo(end core.Time, right *reading[T]) {
	if r.open(right); r.stopped {
		return
	}
	end = min(end, right.time)
	if r.left == nil && r.fill == ast.FillNone {
		r.seek(end)
	}
	for ; r.more && r.at < end && !r.stopped; r.step() {
		p := point[T]{reading: reading[T]{time: r.at, carried: r.carried(right)}}
		switch {
		case r.left == nil && r.fill == ast.FillValue:
			p.value = r.number
		case r.left == nil:
			p.value = right.value
			if right.time == r.samples[1].time {
				p.of = &r.samples[1].carried
			}
		case r.previous:
			p.value, p.of = r.left.value, &r.left.carried
		default:
			p.value = linearAt(calc.Point{Time: r.left.time, Value: r.left.value}, calc.Point{Time: right.time, Value: right.value}, r.at)
		}
		r.emit(p)
	}
}

// carried returns what goes on at the current point. Before the first sample that is nothing, unless the first one is extended.
func (r *regular[T]) carried(next *reading[T]) (c T) {
	for r.carry < len(r.gap) && r.gap[r.carry].time <= r.at {
		r.carry++
	}
	switch {
	case r.carry > 0:
		return r.gap[r.carry-1].carried
	case r.left != nil:
		return r.left.carried
	case r.fill == ast.FillExtend:
		return r.first(next).carried
	}
	return c
}

// tail makes the points after the last number, and those of an interval that has none.
func (r *regular[T]) tail() {
	first, last := r.first(nil), r.left
	if len(r.gap) > 0 {
		last = &r.gap[len(r.gap)-1]
	}
	if r.left == nil && r.fill == ast.FillNone {
		r.seek(first.time)
	}
	oneMore := true                      // no point after the last sample has been made
	known := r.left == nil || r.previous // the point is no missing one
	for ; r.more && !r.stopped; r.step() {
		past := r.at > last.time
		if past && !r.intervals[0].HasTo && !(oneMore && (r.left == nil || r.previous)) {
			return
		}
		p := point[T]{reading: reading[T]{time: r.at, value: math.NaN()}}
		if r.left != nil {
			p.value, p.of = r.left.value, &r.left.carried
		} else {
			known = r.at >= first.time && (!past || oneMore)
		}
		if !known && r.fill == ast.FillNone {
			return
		}
		if !known && r.fill == ast.FillValue {
			p.value, p.of = r.number, nil
		}
		if !past || oneMore || r.fill == ast.FillExtend {
			p.carried = r.carried(nil)
		}
		r.emit(p)
		oneMore = oneMore && !past
		known = false
	}
}

func (r *regular[T]) emit(p point[T]) {
	if !r.yield(p) {
		r.stopped = true
	}
}
