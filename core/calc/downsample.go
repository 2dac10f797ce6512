package calc

import (
	"math"

	"github.com/tidemark-db/tidemark/core"
)

// Downsample leaves out samples that tell nothing more than those around them.
type Downsample struct {
	// Linear compares with the line between the last kept and the following sample, otherwise with each of both.
	Linear bool
	// Ratio is how many times a value may be the other; 0 means that Difference counts, which is how far they may be apart.
	Ratio, Difference float64
	// Gap reports whether two samples would be too far apart without one between them; nil = never.
	Gap func(last, t core.Time) bool
	// Needed reports whether the sample at index i is kept in any case; nil = none.
	Needed func(i int) bool
}

// Keep returns the indexes of the samples that stay, ascending. Times are distinct. The first and the last sample stay, and NaN values with their
// neighbours.
func (d Downsample) Keep(times []core.Time, values []float64) []int {
	var kept []int
	last := 0
	for i, v := range values {
		edge := i == 0 || i == len(values)-1 || math.IsNaN(v) || math.IsNaN(values[i-1]) || math.IsNaN(values[i+1])
		if edge || d.Needed != nil && d.Needed(i) || d.Gap != nil && d.Gap(times[last], times[i]) ||
			!d.duplicate(times[i], v, Point{times[last], values[last]}, Point{times[i+1], values[i+1]}) {
			kept = append(kept, i)
			last = i
		}
	}
	return kept
}

// duplicate reports whether the value at t can be left out between two kept ones.
func (d Downsample) duplicate(t core.Time, v float64, last, next Point) bool {
	if d.Linear {
		return d.near(v, Interpolate(t, last, next))
	}
	return d.near(v, last.Value) && d.near(v, next.Value)
}

// near compares ratios without a division, as the contract spells it.
func (d Downsample) near(v, w float64) bool {
	if d.Ratio > 0 {
		return v <= w*d.Ratio && w <= v*d.Ratio
	}
	return math.Abs(v-w) <= d.Difference
}
