package chunk

import (
	"math"
	"slices"
)

// Stats is what the directory keeps of a block of values, so that a period that covers it needs no decoding. NaN is no number: it is
// neither counted nor added, and never smallest or largest. The zero Stats, but for Nulls, is that of a block without numbers.
type Stats struct {
	Count int // numbers
	Nulls int // NaN values
	// Sum is the first number, then the others added one at a time in their order: bit for bit what calc.Summary makes of the block.
	Sum                   float64
	Min, Max              float64
	First, Last           float64
	MinIndex, MaxIndex    int // of the first occurrence
	FirstIndex, LastIndex int
}

// Summarize computes the statistics of a block.
func Summarize(values []float64) Stats {
	i := slices.IndexFunc(values, func(v float64) bool { return !math.IsNaN(v) })
	if i < 0 {
		return Stats{Nulls: len(values)}
	}
	v := values[i]
	s := Stats{Nulls: i, Count: 1, Sum: v, Min: v, Max: v, First: v, Last: v, MinIndex: i, MaxIndex: i, FirstIndex: i, LastIndex: i}
	for i++; i < len(values); i++ {
		v := values[i]
		if math.IsNaN(v) {
			s.Nulls++
			continue
		}
		s.Count++
		s.Sum += v
		s.LastIndex = i
		if v < s.Min {
			s.Min, s.MinIndex = v, i
		}
		if v > s.Max {
			s.Max, s.MaxIndex = v, i
		}
	}
	s.Last = values[s.LastIndex]
	return s
}
