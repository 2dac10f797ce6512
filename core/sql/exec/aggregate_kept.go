package exec

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// The states of this file keep every value of a group.

// emptied returns list with at least n elements, the further ones empty, with the memory that they had before a reset.
func emptied[T any](list [][]T, n int) [][]T {
	for i := len(list); i < n; i++ {
		if i == cap(list) {
			return grown(list, n)
		}
		list = list[:i+1]
		list[i] = list[i][:0]
	}
	return list
}

// keptState keeps values in any order.
type keptState struct {
	of     column.Type
	values [][]float64
	held   int64
}

func (s *keptState) resize(n int) { s.values = emptied(s.values, n) }
func (s *keptState) reset()       { s.values = s.values[:0] }
func (s *keptState) size() int64  { return int64(cap(s.values))*24 + s.held }

func (s *keptState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		if v := a.x[i]; v == v {
			list := s.values[id]
			before := cap(list)
			list = append(list, v)
			s.held += int64(cap(list)-before) * 8
			s.values[id] = list
		}
	}
}

func (s *keptState) take(ids []int32, o *keptState) {
	for i, list := range o.values {
		if at := &s.values[ids[i]]; *at == nil {
			*at = list
		} else {
			*at = append(*at, list...)
		}
	}
	s.held += o.held
	o.values, o.held = nil, 0
}

// rankState computes percentiles, or the median of the distances from the median.
type rankState struct {
	keptState
	percent   float64
	deviation bool
}

func (s *rankState) merge(ids []int32, from state) { s.take(ids, &from.(*rankState).keptState) }

func (s *rankState) result(order, _ []int32) *column.Vector {
	v := newAnswer(s.of, len(order))
	for i, g := range order {
		values := s.values[g]
		if len(values) == 0 {
			v.setNone(i)
			continue
		}
		if s.deviation {
			v.setFloat(i, medianDeviation(values))
		} else {
			v.setFloat(i, percentileOf(values, s.percent))
		}
	}
	return &v.Vector
}

// medianDeviation returns the median of the distances of values from their median.
func medianDeviation(values []float64) float64 {
	median := percentileOf(values, 50)
	away := make([]float64, len(values))
	for i, v := range values {
		away[i] = math.Abs(calc.Minus(v, median))
	}
	return percentileOf(away, 50)
}

// timedState keeps values with their times.
type timedState struct {
	of      column.Type
	samples [][]timed
	held    int64
}

type timed struct {
	time  int64
	value float64
	rank  int32
}

func (s *timedState) resize(n int) { s.samples = emptied(s.samples, n) }
func (s *timedState) reset()       { s.samples = s.samples[:0] }
func (s *timedState) size() int64  { return int64(cap(s.samples))*24 + s.held }

func (s *timedState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		if v := a.x[i]; v == v {
			list := s.samples[id]
			before := cap(list)
			list = append(list, timed{a.time(i), v, a.rank})
			s.held += int64(cap(list)-before) * 24
			s.samples[id] = list
		}
	}
}

func (s *timedState) take(ids []int32, o *timedState) {
	for i, list := range o.samples {
		s.samples[ids[i]] = append(s.samples[ids[i]], list...)
	}
	s.held += o.held
	o.samples, o.held = nil, 0
}

// ordered returns the values of a group by time.
func (s *timedState) ordered(g int32) []timed {
	list := s.samples[g]
	order := func(a, b timed) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.rank, b.rank)) }
	if !slices.IsSortedFunc(list, order) {
		slices.SortStableFunc(list, order)
	}
	return list
}

// stepState adds up the differences between a value and the one before it.
type stepState struct {
	timedState
	counter bool // a decrease counts as a restart from zero
}

func (s *stepState) merge(ids []int32, from state) { s.take(ids, &from.(*stepState).timedState) }

func (s *stepState) result(order, before []int32) *column.Vector {
	v := newAnswer(s.of, len(order))
	for i, g := range order {
		list := s.ordered(g)
		if len(list) == 0 {
			v.setNone(i)
			continue
		}
		previous, ok := s.previous(g, before)
		if !ok {
			previous, list = list[0].value, list[1:]
		}
		if len(list) == 0 {
			v.setFloat(i, nan)
			continue
		}
		if s.counter {
			v.setFloat(i, increase(previous, list))
		} else {
			v.setFloat(i, calc.Minus(list[len(list)-1].value, previous))
		}
	}
	return &v.Vector
}

// previous returns the last value of the latest period before that of group g that has one.
func (s *stepState) previous(g int32, before []int32) (float64, bool) {
	for before != nil {
		if g = before[g]; g < 0 {
			break
		}
		if list := s.ordered(g); len(list) > 0 {
			return list[len(list)-1].value, true
		}
	}
	return 0, false
}

// increase is the growth of a counter that starts over at zero: a value below the one before counts whole.
func increase(base float64, list []timed) float64 {
	var sum calc.ExactSum
	for _, s := range list {
		if sum.Add(s.value); s.value >= base {
			sum.Add(-base)
		}
		base = s.value
	}
	return sum.Sum()
}

// weightedState computes means in which later values count more.
type weightedState struct {
	timedState
	byTime bool
}

func (s *weightedState) merge(ids []int32, from state) {
	s.take(ids, &from.(*weightedState).timedState)
}

func (s *weightedState) result(order, _ []int32) *column.Vector {
	v := newAnswer(s.of, len(order))
	var times []core.Time
	var values []float64
	for i, g := range order {
		times, values = times[:0], values[:0]
		for _, e := range s.ordered(g) {
			times, values = append(times, core.Time(e.time)), append(values, e.value)
		}
		switch {
		case len(values) == 0:
			v.setNone(i)
		case s.byTime:
			v.setFloat(i, calc.ExactSecondWeightedMean(times, values))
		default:
			v.setFloat(i, calc.ExactWeightedMean(values))
		}
	}
	return &v.Vector
}
