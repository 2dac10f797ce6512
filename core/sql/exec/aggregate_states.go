package exec

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

var nan = math.NaN()

// grown returns list with at least n elements, the further ones zero.
func grown[T any](list []T, n int) []T {
	if n <= len(list) {
		return list
	}
	from := len(list)
	list = slices.Grow(list, n-from)[:n]
	clear(list[from:])
	return list
}

// countState counts rows, or those whose argument is neither NULL nor NaN.
type countState struct {
	all bool
	n   []int64
}

func (s *countState) resize(n int) { s.n = grown(s.n, n) }
func (s *countState) reset()       { s.n = s.n[:0] }
func (s *countState) size() int64  { return int64(cap(s.n)) * 8 }

func (s *countState) add(ids []int32, a *arguments) {
	if s.all || a.vector.Floats == nil && a.vector.Values == nil && a.vector.Nulls == nil && a.vector.Type != column.Null {
		for _, id := range ids {
			s.n[id]++
		}
		return
	}
	for i, id := range ids {
		if !a.vector.IsMissing(i) {
			s.n[id]++
		}
	}
}

func (s *countState) merge(ids []int32, from state) {
	for i, n := range from.(*countState).n {
		s.n[ids[i]] += n
	}
}

func (s *countState) result(order, _ []int32) *column.Vector {
	v := newAnswer(column.Bigint, len(order))
	for i, g := range order {
		v.Ints[i] = s.n[g]
	}
	return &v.Vector
}

// sumState adds up decimals.
type sumState struct {
	of   column.Type
	mean bool
	sums []calc.ExactSum
	more []int64 // numbers beyond those that sums counts: sums of many were added as one
}

func (s *sumState) resize(n int) { s.sums, s.more = grown(s.sums, n), grown(s.more, n) }
func (s *sumState) reset()       { s.sums, s.more = s.sums[:0], s.more[:0] }
func (s *sumState) size() int64  { return int64(cap(s.sums)) * 88 }

func (s *sumState) add(ids []int32, a *arguments) {
	if len(a.exact) > 0 {
		s.addExact(ids, a)
		return
	}
	for len(ids) > 0 {
		n := runOf(ids)
		if sum := &s.sums[ids[0]]; a.whole != nil {
			at := len(a.whole) - len(ids)
			sum.AddInts(a.whole[at : at+n])
		} else {
			at := a.n - len(ids)
			sum.AddRun(a.x[at : at+n])
		}
		ids = ids[n:]
	}
}

// runOf returns how many of the ids are equal to the first.
func runOf(ids []int32) int {
	for i, id := range ids {
		if id != ids[0] {
			return i
		}
	}
	return len(ids)
}

// addExact adds rows some of which have more digits than a double.
func (s *sumState) addExact(ids []int32, a *arguments) {
	exact := a.exact
	for i, id := range ids {
		for len(exact) > 0 && int(exact[0].Index) < i {
			exact = exact[1:]
		}
		if len(exact) > 0 && int(exact[0].Index) == i {
			s.sums[id].AddDecimal(exact[0].Significand, exact[0].Exponent)
		} else {
			s.sums[id].Add(a.x[i])
		}
	}
}

func (s *sumState) merge(ids []int32, from state) {
	o := from.(*sumState)
	for i := range o.sums {
		s.sums[ids[i]].Merge(&o.sums[i])
		s.more[ids[i]] += o.more[i]
	}
}

func (s *sumState) result(order, _ []int32) *column.Vector {
	v := newAnswer(s.of, len(order))
	for i, g := range order {
		switch sum := &s.sums[g]; {
		case sum.Count() == 0:
			v.setNone(i)
		case s.mean:
			v.setFloat(i, sum.Over(sum.Count()+s.more[g]))
		default:
			v.setFloat(i, sum.Sum())
		}
	}
	return &v.Vector
}

// edge is one row of a group that a function remembers.
type edge struct {
	value    float64
	whole    int64 // × 10^exponent is the value, when isWhole
	time     int64
	rank     int32
	exponent int16
	some     bool
	isWhole  bool
}

func (a *arguments) edge(i int) (e edge) {
	a.load(&e, i)
	return e
}

// load makes e row i.
func (a *arguments) load(e *edge, i int) {
	e.value, e.time, e.rank, e.some, e.isWhole = a.x[i], a.time(i), a.rank, true, false
	if a.whole != nil || a.exact != nil {
		a.addDigits(e, i)
	}
}

// addDigits adds to the number of row i what a double has no place for.
func (a *arguments) addDigits(e *edge, i int) {
	if a.whole != nil {
		e.whole, e.exponent, e.isWhole = a.whole[i], 0, true
	}
	v := column.Vector{Exact: a.exact}
	if d, ok := v.ExactAt(i); ok && d.Exponent == int32(int16(d.Exponent)) {
		e.whole, e.exponent, e.isWhole = d.Significand, int16(d.Exponent), true
	}
}

// compare orders by value.
func (e *edge) compare(o *edge) int {
	if c := cmp.Compare(e.value, o.value); c != 0 || !e.isWhole && !o.isWhole {
		return c
	}
	return cmp.Compare(e.excess(), o.excess())
}

// excess orders values that have the same nearest double.
func (e *edge) excess() int16 {
	switch {
	case !e.isWhole:
		return 0
	case e.exponent == 0:
		return column.ExcessOfInt(e.whole)
	}
	return column.Excess(core.Decimal{Significand: e.whole, Exponent: int32(e.exponent)}, e.value)
}

// earlier orders by time, then by series.
func (e *edge) earlier(o *edge) bool {
	return e.time < o.time || e.time == o.time && e.rank < o.rank
}

type edgeState struct {
	of     column.Type
	digits bool // values may have more digits than a double, and than statistics know
	edges  []edge
}

func (s *edgeState) resize(n int) { s.edges = grown(s.edges, n) }
func (s *edgeState) reset()       { s.edges = s.edges[:0] }
func (s *edgeState) size() int64  { return int64(cap(s.edges)) * 32 }

func (s *edgeState) values(order []int32) *column.Vector {
	v := newAnswer(s.of, len(order))
	for i, g := range order {
		if e := &s.edges[g]; e.some {
			v.setEdge(i, e)
		} else {
			v.setNone(i)
		}
	}
	return &v.Vector
}

// extremeState finds the least or greatest value, or the time of the first row that has it.
type extremeState struct {
	edgeState
	max, time bool
}

func (s *extremeState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		v := a.x[i]
		if v != v {
			continue
		}
		at := &s.edges[id]
		if at.some && a.whole == nil && (s.max && v < at.value || !s.max && v > at.value) {
			continue // the usual case, cheaply
		}
		e := a.edge(i)
		s.put(at, &e)
	}
}

func (s *extremeState) put(at, e *edge) {
	if !at.some {
		*at = *e
		return
	}
	c := e.compare(at)
	if s.max {
		c = -c
	}
	if c < 0 || c == 0 && e.earlier(at) {
		*at = *e
	}
}

func (s *extremeState) merge(ids []int32, from state) {
	for i, e := range from.(*extremeState).edges {
		if e.some {
			s.put(&s.edges[ids[i]], &e)
		}
	}
}

func (s *extremeState) result(order, _ []int32) *column.Vector {
	if !s.time {
		return s.values(order)
	}
	v := newAnswer(column.Bigint, len(order))
	for i, g := range order {
		if e := &s.edges[g]; e.some {
			v.Ints[i] = e.time
		} else {
			v.setNone(i)
		}
	}
	return &v.Vector
}

// firstState finds the earliest or latest value.
type firstState struct {
	edgeState
	last bool
}

func (s *firstState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		if v := a.x[i]; v == v {
			e := a.edge(i)
			s.put(&s.edges[id], &e)
		}
	}
}

func (s *firstState) put(at, e *edge) {
	if !at.some || (s.last && !e.earlier(at) || !s.last && e.earlier(at)) {
		*at = *e
	}
}

func (s *firstState) merge(ids []int32, from state) {
	for i, e := range from.(*firstState).edges {
		if e.some {
			s.put(&s.edges[ids[i]], &e)
		}
	}
}

func (s *firstState) result(order, _ []int32) *column.Vector { return s.values(order) }

// productState multiplies: exactly while 15 digits are enough.
type productState struct {
	of    column.Type
	parts []product
}

type product struct {
	n      int64
	m      int64 // × 10^-places
	places int8
	loose  bool
	value  float64 // when loose
}

func (p *product) times(v float64) {
	if p.n++; p.n == 1 {
		p.m = 1
	}
	if !p.loose {
		if places, m, ok := placesOf(v, 0); ok && p.places+places <= exactDigits {
			if r := float64(p.m) * float64(m); math.Abs(r) < mostScaled {
				p.m, p.places = p.m*m, p.places+places
				return
			}
		}
		p.value, p.loose = p.float(), true
	}
	p.value *= v
}

func (p *product) float() float64 {
	if p.loose {
		return p.value
	}
	return float64(p.m) / tens[p.places]
}

func (s *productState) resize(n int) { s.parts = grown(s.parts, n) }
func (s *productState) reset()       { s.parts = s.parts[:0] }
func (s *productState) size() int64  { return int64(cap(s.parts)) * 40 }

func (s *productState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		if v := a.x[i]; v == v {
			s.parts[id].times(v)
		}
	}
}

func (s *productState) merge(ids []int32, from state) {
	for i, p := range from.(*productState).parts {
		if p.n > 0 {
			at := &s.parts[ids[i]]
			at.times(p.float())
			at.n += p.n - 1
		}
	}
}

func (s *productState) result(order, _ []int32) *column.Vector {
	return answers(s.of, order, s.parts, func(p *product) (float64, bool) {
		if p.n == 0 {
			return 0, false
		}
		return p.float(), true
	})
}

// deviationState computes standard deviations.
type deviationState struct {
	of         column.Type
	population bool
	parts      []moments
}

func (s *deviationState) resize(n int) { s.parts = grown(s.parts, n) }
func (s *deviationState) reset()       { s.parts = s.parts[:0] }
func (s *deviationState) size() int64  { return int64(cap(s.parts)) * 72 }

func (s *deviationState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		if v := a.x[i]; v == v {
			s.parts[id].add(v)
		}
	}
}

func (s *deviationState) merge(ids []int32, from state) {
	o := from.(*deviationState)
	for i := range o.parts {
		s.parts[ids[i]].merge(&o.parts[i])
	}
}

func (s *deviationState) result(order, _ []int32) *column.Vector {
	return answers(s.of, order, s.parts, func(m *moments) (float64, bool) {
		if m.n == 0 {
			return 0, false
		}
		return m.deviation(s.population), true
	})
}
