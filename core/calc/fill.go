package calc

import (
	"fmt"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// FillMode says which value an empty period between two others takes.
type FillMode uint8

const (
	FillNone     FillMode = iota
	FillPrevious          // of the period before
	FillNext              // of the period after
	FillLinear            // on the line between both, by time
	FillValue             // a constant
)

var fillNames = [...]string{"NONE", "PREVIOUS", "NEXT", "LINEAR", "VALUE"}

// ParseFillMode reads the name of a mode, any case.
func ParseFillMode(text string) (FillMode, error) {
	for i, name := range fillNames {
		if strings.EqualFold(text, name) {
			return FillMode(i), nil
		}
	}
	return 0, fmt.Errorf("unknown interpolation type %q: use NONE, PREVIOUS, NEXT, LINEAR or VALUE", text)
}

// String returns the name of the contract: LINEAR.
func (m FillMode) String() string { return fillNames[m] }

// Fill gives values to periods without samples. It works on the values of periods, never on samples. Extend also fills the periods before the first and
// after the last one that has a value: with the constant of FillValue, else with that first or last value.
type Fill struct {
	Mode   FillMode
	Value  float64
	Extend bool
	exact  bool // the values stand for decimal numbers
}

// maxFilled bounds the periods of one filled series, some 80 MB: a millisecond period over a century must be an error, not a crash.
const maxFilled = 5_000_000

// apply returns s with the gaps of grid filled. Leading periods are added from start on. A series without values stays empty.
func (f Fill) apply(grid *Grid, start core.Time, s Series) (Series, error) {
	if len(s.Times) == 0 || f.Mode == FillNone && !f.Extend {
		return s, nil
	}
	first, end := grid.indexOf(s.Times[0]), s.Times[len(s.Times)-1]
	if f.Extend {
		first, end = grid.first, grid.end
	}
	if grid.length > 0 && int64(end-grid.boundary(first))/grid.length > maxFilled {
		return Series{}, fmt.Errorf("interpolation would fill more than %d periods: shorten the range or lengthen the period", maxFilled)
	}
	out := Series{Times: make([]core.Time, 0, len(s.Times)), Values: make([]float64, 0, len(s.Values))}
	i := 0 // s[i] is the next value at or after the period
	for t := range grid.startsFrom(first) {
		if i < len(s.Times) && s.Times[i] == t {
			out.add(t, s.Values[i])
			out.addDigits(digitsAt(s.Decimals, i))
			i++
			continue
		}
		if i == len(s.Times) && !f.Extend {
			break
		}
		if v, ok := f.value(s, i, t); ok && t >= start {
			out.add(t, v)
			if from, ok := f.repeated(i, len(s.Times)); ok {
				out.addDigits(digitsAt(s.Decimals, from))
			}
		}
	}
	return out, nil
}

// value returns the value of the empty period at t, which lies before s[i] and after s[i-1]; ok is false when it stays empty.
func (f Fill) value(s Series, i int, t core.Time) (v float64, ok bool) { return f.within(t, s, s, i) }

// within is value for periods that begin and end with different values: the gap at t lies after ends[i-1] and before begins[i].
func (f Fill) within(t core.Time, ends, begins Series, i int) (v float64, ok bool) {
	switch leading, trailing := i == 0, i == len(begins.Times); {
	case leading && trailing:
		return 0, false
	case f.Mode == FillValue && (f.Extend || !leading && !trailing):
		return f.Value, true
	case leading:
		return begins.Values[0], f.Extend
	case trailing:
		return ends.Values[i-1], f.Extend
	}
	switch f.Mode {
	case FillPrevious:
		return ends.Values[i-1], true
	case FillNext:
		return begins.Values[i], true
	case FillLinear:
		if f.exact {
			return interpolateExact(t, Point{ends.Times[i-1], ends.Values[i-1]}, Point{begins.Times[i], begins.Values[i]}), true
		}
		return Interpolate(t, Point{ends.Times[i-1], ends.Values[i-1]}, Point{begins.Times[i], begins.Values[i]}), true
	}
	return 0, false
}

// repeated returns the index of the value that an empty period before value i of n has as well; ok is false when its own is computed.
func (f Fill) repeated(i, n int) (from int, ok bool) {
	switch {
	case f.Mode == FillValue:
	case i == n || f.Mode == FillPrevious && i > 0:
		return i - 1, true
	case i == 0 || f.Mode == FillNext:
		return i, true
	}
	return 0, false
}

// Point is one sample.
type Point struct {
	Time  core.Time
	Value float64
}

// Interpolate returns the value at t on the line through two points of different times.
func Interpolate(t core.Time, a, b Point) float64 {
	return a.Value + (b.Value-a.Value)*float64(t-a.Time)/float64(b.Time-a.Time)
}
