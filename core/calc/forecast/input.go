package forecast

import (
	"fmt"
	"math"
)

// Input is a regular series and what is wanted of it.
type Input struct {
	Values []float64 // oldest first; NaN is a gap
	// Slots are the places of the values on the grid, ascending; nil means 0, 1, 2 and so on. Places are missing where a filter thinned the series.
	Slots []int
	// Ahead are the places of the wanted values, ascending, all after the last slot.
	Ahead []int
	// Score is how many of the last values judge automatic parameters; 0 is the default of the algorithm.
	Score int
}

// Output is what an algorithm made of an Input.
type Output struct {
	Forecast []float64 // one value for each place ahead
	Fitted   []float64 // the series as the model sees it; Fitted[i] belongs to Values[From+i]
	From     int
}

// ShortError reports an input with too few numbers for an algorithm.
type ShortError struct {
	Have, Need int
	For        string
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("%s: the input has %d numbers, the least is %d", e.For, e.Have, e.Need)
}

// series is an Input made ready: without gaps, scaled to magnitudes from 0.5 to 1.
type series struct {
	y        []float64
	slots    []int
	ahead    []int
	lead     int // values that were cut in front
	trail    int // places between the last number and the first value ahead
	exponent int // numbers were divided by 2^exponent
	constant bool
	original float64 // the value of a constant series
	score    int
	exact    float64 // a mean squared error that is rounding
}

// prepare cuts, fills and scales. It returns a ShortError when there is no number at all.
func (in Input) prepare() (*series, error) {
	first, last := 0, len(in.Values)-1
	for first <= last && math.IsNaN(in.Values[first]) {
		first++
	}
	for last >= first && math.IsNaN(in.Values[last]) {
		last--
	}
	if first > last {
		return nil, &ShortError{Need: 1, For: "forecast"}
	}
	s := &series{lead: first, trail: len(in.Values) - 1 - last, ahead: in.Ahead, constant: true, original: in.Values[first]}
	s.y = append(s.y, in.Values[first:last+1]...)
	s.slots = make([]int, len(s.y))
	for i := range s.slots {
		s.slots[i] = first + i
		if in.Slots != nil {
			s.slots[i] = in.Slots[first+i]
		}
	}
	greatest := 0.0
	for _, v := range s.y {
		if !math.IsNaN(v) {
			s.constant = s.constant && v == s.original
			greatest = max(greatest, math.Abs(v))
		}
	}
	s.score = in.Score
	if s.constant {
		return s, nil
	}
	_, s.exponent = math.Frexp(greatest)
	for i, v := range s.y {
		s.y[i] = scale(v, -s.exponent)
	}
	s.fill()
	mean := 0.0
	for _, v := range s.y {
		mean += v / float64(len(s.y))
	}
	for _, v := range s.y {
		s.exact += (v - mean) * (v - mean) / float64(len(s.y)) * 1e-20
	}
	s.exact = max(s.exact, 1e-31)
	return s, nil
}

// scale is math.Ldexp in two steps: one factor would overflow where the product does not.
func scale(v float64, exponent int) float64 {
	half := exponent / 2
	return math.Ldexp(math.Ldexp(v, half), exponent-half)
}

// fill puts inner gaps on the line between their neighbours.
func (s *series) fill() {
	at := 0 // the last number
	for i, v := range s.y {
		if math.IsNaN(v) {
			continue
		}
		for j := at + 1; j < i; j++ {
			s.y[j] = s.y[at] + (v-s.y[at])*float64(s.slots[j]-s.slots[at])/float64(s.slots[i]-s.slots[at])
		}
		at = i
	}
}

// steps is how many values lie between the last number and the last place ahead.
func (s *series) steps() int { return s.trail + len(s.ahead) }

// unchanging is the output of a constant series, of which the first values have no fit.
func (s *series) unchanging(skip int) Output {
	n := max(len(s.y)-skip, 0)
	out := Output{Forecast: make([]float64, len(s.ahead)), Fitted: make([]float64, n), From: s.lead + len(s.y) - n}
	for _, v := range [][]float64{out.Forecast, out.Fitted} {
		for i := range v {
			v[i] = s.original
		}
	}
	return out
}

// output takes the values after the last number, and the fitted ones from index skip on, back to the scale of the input.
func (s *series) output(following, fitted []float64, skip int) Output {
	last := s.y[len(s.y)-1]
	s.restore(following, last)
	s.restore(fitted, last)
	return Output{Forecast: following[s.trail:], Fitted: fitted, From: s.lead + skip}
}

func (s *series) restore(values []float64, last float64) {
	last = scale(last, s.exponent)
	for i, v := range values {
		if v = scale(v, s.exponent); math.IsNaN(v) || math.IsInf(v, 0) {
			v = last
		}
		values[i], last = v, v
	}
}

// better reports whether a more complex model, with mean squared error e, is worth it: by a part in a hundred, unless the simpler one is exact.
func (s *series) better(e, least float64) bool { return e < least*0.99 && least > s.exact }

// scored returns the number of values in the tail that judges automatic parameters: what was asked for, else standard, but at most half of n.
func (s *series) scored(n, standard int) int {
	if s.score > 0 {
		standard = s.score
	}
	return max(min(standard, n/2), 1)
}
