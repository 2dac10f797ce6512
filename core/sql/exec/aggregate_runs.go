package exec

import (
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core/calc"
)

// What the states make of many samples of one group at once.

func (s *countState) addRun(id int32, r *sampleRun) {
	if s.all {
		s.n[id] += int64(len(r.values))
		return
	}
	n := int64(0)
	for _, v := range r.values {
		if v == v {
			n++
		}
	}
	s.n[id] += n
}

func (s *countState) addStats(id int32, r *statsRun) bool {
	if r.put {
		s.n[id] += r.Count
	}
	return true
}

func (s *sumState) addRun(id int32, r *sampleRun) {
	if r.places > 0 {
		s.sums[id].AddMultiples(r.values, int(r.places)-1)
		return
	}
	s.sums[id].AddRun(r.values)
}

func (s *sumState) addStats(id int32, r *statsRun) bool {
	most := max(math.Abs(r.Min), math.Abs(r.Max))
	m, ok := wholeSum(r.Sum, r.Count, most, r.Decimals)
	if ok && r.put {
		s.sums[id].AddDecimal(m, -int32(r.Decimals))
		s.more[id] += r.Count - 1
	}
	return ok
}

func (s *extremeState) addRun(id int32, r *sampleRun) {
	best := s.extreme(r.values)
	if best != best {
		if best = s.extremeAmongNaN(r.values); best != best {
			return
		}
	}
	e := &s.edges[id]
	if e.some && (s.max && best < e.value || !s.max && best > e.value) {
		return
	}
	at := 0 // when it was does not matter
	if s.time {
		at = slices.Index(r.values, best)
	}
	found := edge{value: best, time: int64(r.times[at]), rank: r.rank, some: true}
	s.put(e, &found)
}

// extreme returns the least or greatest value, NaN if one is.
func (s *extremeState) extreme(values []float64) float64 {
	if s.max {
		return calc.Greatest(values)
	}
	return calc.Least(values)
}

// extremeAmongNaN returns the least or greatest number, NaN if there is none.
func (s *extremeState) extremeAmongNaN(values []float64) float64 {
	best := nan
	for _, v := range values {
		if best != best || s.max && v > best || !s.max && v < best {
			best = v
		}
	}
	return best
}

func (s *extremeState) addStats(id int32, r *statsRun) bool {
	if s.digits {
		return false
	}
	if r.put {
		e := edge{value: r.Min, time: int64(r.MinTime), rank: r.rank, some: true}
		if s.max {
			e.value, e.time = r.Max, int64(r.MaxTime)
		}
		s.put(&s.edges[id], &e)
	}
	return true
}

func (s *firstState) addRun(id int32, r *sampleRun) {
	at := -1
	if s.last {
		for i := len(r.values) - 1; i >= 0 && at < 0; i-- {
			if r.values[i] == r.values[i] {
				at = i
			}
		}
	} else {
		at = slices.IndexFunc(r.values, func(v float64) bool { return v == v })
	}
	if at >= 0 {
		e := edge{value: r.values[at], time: int64(r.times[at]), rank: r.rank, some: true}
		s.put(&s.edges[id], &e)
	}
}

func (s *firstState) addStats(id int32, r *statsRun) bool {
	if s.digits {
		return false
	}
	if r.put {
		e := edge{value: r.First, time: int64(r.FirstTime), rank: r.rank, some: true}
		if s.last {
			e.value, e.time = r.Last, int64(r.LastTime)
		}
		s.put(&s.edges[id], &e)
	}
	return true
}

func (s *deviationState) addRun(id int32, r *sampleRun) {
	m := &s.parts[id]
	for _, v := range r.values {
		if v == v {
			m.add(v)
		}
	}
}

func (s *keptState) addRun(id int32, r *sampleRun) {
	list := s.values[id]
	before := cap(list)
	if calc.AnyNaN(r.values) {
		for _, v := range r.values {
			if v == v {
				list = append(list, v)
			}
		}
	} else {
		list = append(list, r.values...)
	}
	s.held += int64(cap(list)-before) * 8
	s.values[id] = list
}

func (s *timedState) addRun(id int32, r *sampleRun) {
	list := s.samples[id]
	before := cap(list)
	for i, v := range r.values {
		if v == v {
			list = append(list, timed{int64(r.times[i]), v, r.rank})
		}
	}
	s.held += int64(cap(list)-before) * 24
	s.samples[id] = list
}

func (s *productState) addRun(id int32, r *sampleRun) {
	for _, v := range r.values {
		if v == v {
			s.parts[id].times(v)
		}
	}
}
