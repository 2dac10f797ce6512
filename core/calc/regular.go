package calc

import (
	"fmt"
	"math"

	"github.com/tidemark-db/tidemark/core"
)

// Regular computes a series with a value at every period start from samples at any times.
type Regular struct {
	Range  core.Range
	Period Period
	Mode   FillMode // FillLinear or FillPrevious
	// Edge says what stands at period starts that Mode cannot compute, before the first and after the last sample.
	Edge  Edge
	Value float64 // for EdgeValue
	// Decimal computes exactly: the values stand for decimal numbers. Decimals are the digits that some of the samples lack as doubles.
	Decimal  bool
	Decimals []core.DecimalAt
}

// Edge is the treatment of period starts beyond the samples.
type Edge uint8

const (
	EdgeNone    Edge = iota // no value
	EdgeNearest             // the value of the first or last sample
	EdgeValue               // a constant
)

// Apply returns the regular series. Samples outside the range take part as neighbours: pass one on each side for values up to the edges. A sample exactly
// at a period start is kept; FillPrevious without a following sample repeats the last one once.
func (r Regular) Apply(times []core.Time, values []float64) (Series, error) {
	if r.Mode != FillLinear && r.Mode != FillPrevious {
		return Series{}, fmt.Errorf("interpolation function %v is neither LINEAR nor PREVIOUS", r.Mode)
	}
	n := neighbours{times: times, values: values, at: -1}
	n.skip()
	if n.next == len(times) {
		return Series{}, nil
	}
	grid, err := r.Grid(times, values)
	if err != nil {
		return Series{}, err
	}
	if grid.length > 0 && int64(r.Range.End-grid.boundary(grid.first))/grid.length > maxFilled {
		return Series{}, fmt.Errorf("interpolation would give more than %d values: shorten the range or lengthen the period", maxFilled)
	}
	var out Series
	repeated := false // FillPrevious has repeated the last sample
	for t := range grid.Starts() {
		n.move(t)
		from := r.sample(&n, t)
		if r.Mode == FillPrevious && n.at >= 0 && n.next == len(times) && from < 0 && !repeated {
			from, repeated = n.at, true
		}
		switch between := n.at >= 0 && n.next < len(times); {
		case from >= 0:
			out.add(t, values[from])
			out.addDigits(digitsAt(r.Decimals, from))
		case between:
			out.add(t, r.line(&n, t))
		case r.Edge == EdgeValue:
			out.add(t, r.Value)
		}
	}
	return out, nil
}

// Grid returns the times at which Apply looks.
func (r Regular) Grid(times []core.Time, values []float64) (Grid, error) {
	n := neighbours{times: times, values: values}
	return r.Period.Grid(r.Range, n.firstIn(r.Range))
}

// sample returns the index of the sample whose value stands at t; -1 when there is none.
func (r Regular) sample(n *neighbours, t core.Time) int {
	before, after := n.at >= 0, n.next < len(n.times)
	switch {
	case before && (n.times[n.at] == t || after && r.Mode == FillPrevious):
		return n.at
	case before && after || r.Edge != EdgeNearest:
		return -1
	case before:
		return n.at
	}
	return n.next
}

// line computes the value at t, which lies between two samples.
func (r Regular) line(n *neighbours, t core.Time) float64 {
	before, after := Point{n.times[n.at], n.values[n.at]}, Point{n.times[n.next], n.values[n.next]}
	if r.Decimal {
		return interpolateExact(t, before, after)
	}
	return Interpolate(t, before, after)
}

// neighbours walks over samples without NaN: at is the last one at or before the current time, -1 for none, next the one after it, len for none.
type neighbours struct {
	times    []core.Time
	values   []float64
	at, next int
}

func (n *neighbours) move(t core.Time) {
	for n.next < len(n.times) && n.times[n.next] <= t {
		n.at = n.next
		n.next++
		n.skip()
	}
}

func (n *neighbours) skip() {
	for n.next < len(n.times) && math.IsNaN(n.values[n.next]) {
		n.next++
	}
}

// firstIn returns the time of the first sample in a range, or the start of the range.
func (n *neighbours) firstIn(r core.Range) core.Time {
	for i, t := range n.times {
		if r.Contains(t) && !math.IsNaN(n.values[i]) {
			return t
		}
	}
	return r.Start
}
