package exec

import (
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// valueRange is a filter that is true of the samples whose number lies from low to high, both included, and of no other. NaN lies nowhere.
type valueRange struct{ low, high float64 }

// rangeOf returns the filter of a scan as a range of values; nil when it is none.
func rangeOf(scan *plan.Scan) *valueRange {
	f, ok := scan.Filter.(interface {
		Between(column int) (low, high float64, ok bool)
	})
	if !ok {
		return nil
	}
	for i, c := range scan.Columns {
		if c.Kind != plan.SourceValue {
			continue
		}
		if low, high, ok := f.Between(i); ok {
			return &valueRange{low, high}
		}
	}
	return nil
}

// covers reports whether all numbers of a piece lie in the range.
func (r *valueRange) covers(stats *core.Stats) bool { return stats.Min >= r.low && stats.Max <= r.high }

// count returns how many values lie in the range.
func (r *valueRange) count(values []float64) int64 {
	// Numbers lie on either side of a bound in any order: a branch would be guessed wrong.
	var n int64
	low, high := r.low, r.high
	switch {
	case math.IsInf(high, 1):
		for _, v := range values {
			n += int64(flag(v >= low))
		}
	case math.IsInf(low, -1):
		for _, v := range values {
			n += int64(flag(v <= high))
		}
	default:
		for _, v := range values {
			n += int64(flag(v >= low) & flag(v <= high))
		}
	}
	return n
}

// keep copies the samples that lie in the range to the front of dst, which has room for all, and returns them.
func (r *valueRange) keep(dst *sampleRun, times []core.Time, values []float64) ([]core.Time, []float64) {
	if cap(dst.times) < len(times) {
		dst.times, dst.values = make([]core.Time, len(times)), make([]float64, len(times))
	}
	t, x := dst.times[:len(times)], dst.values[:len(times)]
	n := 0
	for i, v := range values {
		t[n], x[n] = times[i], v
		n += int(flag(v >= r.low) & flag(v <= r.high))
	}
	return t[:n], x[:n]
}

// countsAlone reports whether all aggregates count: with a range as filter rows and numbers are the same.
func (g *grouping) countsAlone() bool {
	for _, s := range g.states.states {
		if _, ok := s.(*countState); !ok {
			return false
		}
	}
	return true
}

// addCount counts the samples of a piece without their times, if that is all that is asked for and the piece lies in one interval. There are no periods.
func (w *groupWorker) addCount(s *seriesGroups, p *core.Piece) (taken bool, err error) {
	if !s.counts || p.Values == nil || p.Stats == nil {
		return false, nil
	}
	interval, ok := w.intervalOf(p.Stats)
	if !ok {
		return false, nil
	}
	values, err := p.Values()
	if err != nil {
		return false, err
	}
	w.x.count(len(values))
	n := s.within.count(values)
	if n == 0 {
		return true, nil // a group without rows is none
	}
	id, _, err := w.enterAt(p.Stats.FirstTime, interval)
	if err != nil {
		return false, err
	}
	for _, state := range w.states.states {
		state.(*countState).n[id] += n
	}
	return true, nil
}

// intervalOf returns the interval in which all numbers of a piece lie; false when there is none.
func (w *groupWorker) intervalOf(stats *core.Stats) (int32, bool) {
	intervals := w.metric.op.Intervals
	n := firstAfter(intervals, []core.Time{stats.FirstTime})
	ok := n < len(intervals) && intervals[n].Contains(stats.FirstTime) && intervals[n].Contains(stats.LastTime)
	return int32(n), ok
}
