package calc

import (
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// The functions of this file are statistics over a window of samples. They skip NaN values and return NaN when too few are left. Products stand in conversions,
// which forbids the fused multiplication that some processors have: a window gives the same number on all of them.

// Sum adds up the values; of none it is 0.
func Sum(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
		}
	}
	return sum
}

// Count returns the number of values that are not NaN.
func Count(values []float64) int {
	n := 0
	for _, v := range values {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// Mean is the arithmetic mean.
func Mean(values []float64) float64 { return Sum(values) / float64(Count(values)) }

// squares returns the sum of squared distances from the mean, in a second pass because a running sum of squares cancels.
func squares(values []float64) (sum float64, n int) {
	mean := Mean(values)
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += float64((v - mean) * (v - mean))
			n++
		}
	}
	return sum, n
}

// Variance is the sample variance, with n-1 in the denominator; NaN for fewer than two values.
func Variance(values []float64) float64 {
	sum, n := squares(values)
	if n < 2 {
		return math.NaN()
	}
	return sum / float64(n-1)
}

// PopulationVariance is the variance with n in the denominator.
func PopulationVariance(values []float64) float64 {
	sum, n := squares(values)
	return sum / float64(n)
}

// StdDev is the square root of Variance.
func StdDev(values []float64) float64 { return math.Sqrt(Variance(values)) }

// WeightedMean weighs the values 1, 2, 3 and so on, so that later ones count more.
func WeightedMean(values []float64) float64 {
	var sum, weights, w float64
	for _, v := range values {
		if !math.IsNaN(v) {
			w++
			sum += float64(w * v)
			weights += w
		}
	}
	return sum / weights
}

// ExactWeightedMean is WeightedMean of numbers that stand for decimals, none of them NaN: only the result is rounded.
func ExactWeightedMean(values []float64) float64 {
	var sum WeightedSum
	for i, v := range values {
		sum.Add(v, int64(i+1))
	}
	return sum.Mean()
}

// WeightedSum adds up numbers times whole weights, each number taken for the decimal of its shortest text, without rounding. The zero value is empty.
type WeightedSum struct {
	sum     ExactSum
	weights int64
	heavy   float64 // weights beyond those
}

// Add adds a number that is not NaN. Its weight is positive and below 2^60.
func (s *WeightedSum) Add(v float64, weight int64) {
	if s.weights > math.MaxInt64-weight {
		s.heavy, s.weights = s.heavy+float64(s.weights), 0
	}
	s.weights += weight
	if n := scaled(v); n/exactScale == v && isShort(n) && math.Abs(n*float64(weight)) < float64(shortFull) {
		s.sum.addShort(int64(n) * weight)
		return
	}
	if v-v != 0 { // infinite
		s.sum.Add(v)
		return
	}
	const part = 1e9 // products of what is below it and of the rest of 17 digits fit
	d := shortest(v)
	exponent := int32(d.exponent)
	s.sum.AddDecimal(d.mantissa/part*(weight/part), exponent+18)
	s.sum.AddDecimal(d.mantissa/part*(weight%part)+d.mantissa%part*(weight/part), exponent+9)
	s.sum.AddDecimal(d.mantissa%part*(weight%part), exponent)
}

// Mean returns the double nearest to the sum divided by that of the weights; of no numbers it is NaN.
func (s *WeightedSum) Mean() float64 {
	if s.heavy > 0 {
		return s.sum.Sum() / (s.heavy + float64(s.weights))
	}
	return s.sum.Over(s.weights)
}

// TimeWeightedMean is the time-weighted mean of rule windows: weight (t - first + 1)/(last - first + 1) with times in whole Unix seconds.
func TimeWeightedMean(times []core.Time, values []float64) float64 {
	first, last := bounds(values)
	if first < 0 {
		return math.NaN()
	}
	start := wholeSeconds(times[first])
	span := wholeSeconds(times[last]) - start + 1
	var sum, weights float64
	for i, v := range values {
		if !math.IsNaN(v) {
			w := (wholeSeconds(times[i]) - start + 1) / span
			sum += float64(w * v)
			weights += w
		}
	}
	return sum / weights
}

// SecondWeightedMean is the time-weighted mean of queries: it weighs each value with 1 + the seconds since the first one. No value is NaN.
func SecondWeightedMean(times []core.Time, values []float64) float64 {
	var sum, weights float64
	for i, v := range values {
		w := 1 + float64(times[i]-times[0])/1000
		sum += float64(w * v)
		weights += w
	}
	return sum / weights
}

// ExactSecondWeightedMean is SecondWeightedMean of numbers that stand for decimals.
func ExactSecondWeightedMean(times []core.Time, values []float64) float64 {
	var sum WeightedSum
	for i, v := range values {
		sum.Add(v, int64(times[i]-times[0])+1000) // in milliseconds
	}
	return sum.Mean()
}

func wholeSeconds(t core.Time) float64 { return math.Floor(float64(t) / 1000) }

// bounds returns the positions of the first and last value that is not NaN, or -1.
func bounds(values []float64) (first, last int) {
	first, last = -1, -1
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if last = i; first < 0 {
			first = i
		}
	}
	return first, last
}

// EMA is the exponential moving average at the last value: e1 = v1, ei = factor*vi + (1-factor)*e(i-1).
func EMA(values []float64, factor float64) float64 {
	e := math.NaN()
	for _, v := range values {
		switch {
		case math.IsNaN(v):
		case math.IsNaN(e):
			e = v
		default:
			e = float64(factor*v) + float64((1-factor)*e)
		}
	}
	return e
}

// RatePerSecond is the difference of the last and the first value over their distance in seconds; NaN for one sample.
func RatePerSecond(times []core.Time, values []float64) float64 {
	first, last := bounds(values)
	if first < 0 || times[first] == times[last] {
		return math.NaN()
	}
	return (values[last] - values[first]) * 1000 / float64(times[last]-times[first])
}

// CounterIncrease is the growth of a counter that starts over at zero: it adds up the increases from base through all values, and a value below the one
// before counts whole.
func CounterIncrease(base float64, values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		switch d := v - base; {
		case math.IsNaN(v):
			continue
		case d >= 0:
			sum += d
		default:
			sum += v
		}
		base = v
	}
	return sum
}

// Line is the least squares line through samples: Value + Slope*(t - Start), Slope per millisecond.
type Line struct {
	Slope, Value float64
	Start        core.Time // time of the first sample
}

// Fit computes the line; Slope and Value are NaN for fewer than two different times. Times are taken relative to the first, because Unix milliseconds
// squared lose the distances.
func Fit(times []core.Time, values []float64) Line {
	first, _ := bounds(values)
	if first < 0 {
		return Line{Slope: math.NaN(), Value: math.NaN()}
	}
	start := times[first]
	var n, sumX, sumY float64
	for i, v := range values {
		if !math.IsNaN(v) {
			n++
			sumX += float64(times[i] - start)
			sumY += v
		}
	}
	meanX, meanY := sumX/n, sumY/n
	var xx, xy float64
	for i, v := range values {
		if !math.IsNaN(v) {
			dx := float64(times[i]-start) - meanX
			xx += float64(dx * dx)
			xy += float64(dx * (v - meanY))
		}
	}
	slope := xy / xx // 0/0 for a single time
	return Line{Slope: slope, Value: meanY - float64(slope*meanX), Start: start}
}

// At returns the value of the line at t.
func (l Line) At(t core.Time) float64 { return l.Value + float64(l.Slope*float64(t-l.Start)) }

// Intercept returns the value of the line at Unix time 0.
func (l Line) Intercept() float64 { return l.At(0) }

// Sorter computes order statistics and keeps its buffer between calls. The zero Sorter is ready; it serves one goroutine.
type Sorter struct{ buf []float64 }

// Percentile is the value at rank p*(n+1)/100 of the sorted values (method R6), linear between neighbours; p is 0 to 100.
func (s *Sorter) Percentile(values []float64, p float64) float64 {
	s.load(values)
	slices.Sort(s.buf)
	return percentileSorted(s.buf, p)
}

// Median is the 50th percentile.
func (s *Sorter) Median(values []float64) float64 { return s.Percentile(values, 50) }

// MedianAbsDev is the median of the distances from the median.
func (s *Sorter) MedianAbsDev(values []float64) float64 {
	median := s.Median(values)
	for i, v := range s.buf {
		s.buf[i] = math.Abs(v - median)
	}
	slices.Sort(s.buf)
	return percentileSorted(s.buf, 50)
}

// load copies the values that are not NaN.
func (s *Sorter) load(values []float64) {
	s.buf = s.buf[:0]
	for _, v := range values {
		if !math.IsNaN(v) {
			s.buf = append(s.buf, v)
		}
	}
}

func percentileSorted(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	rank := p * float64(n+1) / 100
	switch {
	case rank < 1:
		return sorted[0]
	case rank >= float64(n):
		return sorted[n-1]
	}
	k := int(rank)
	return sorted[k-1] + float64((rank-float64(k))*(sorted[k]-sorted[k-1]))
}
