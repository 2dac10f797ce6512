package exec

import (
	"math"
	"math/bits"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// framed is an aggregate function over the frame of each row.
type framed struct {
	args  aggregates // evaluates the arguments
	of    column.Type
	state frameState
	// kept holds the usable rows of the current frame from head on, when the frame has an end at the back: then rows leave it.
	slides bool
	kept   []framedRow
	head   int
	counts map[string]int // with DISTINCT: how many rows of the frame have each value
	key    []byte
	keys   int64 // bytes of the keys in kept, or of those in counts when no row leaves

	row, old framedRow // the ones at hand
}

// framedRow is a row whose arguments are usable.
type framedRow struct {
	edge
	row int64 // its number
	y   float64
	key string // with DISTINCT: of its value
}

// frameState is what a function knows of the rows of a frame.
type frameState interface {
	reset()
	add(r *framedRow)
	// drop takes the oldest row away; rest are the ones that stay.
	drop(r *framedRow, rest []framedRow)
	// result sets row i of v; rows are those of the frame if it slides.
	result(v *answer, i int, rows []framedRow)
}

func (x *execution) newFramed(f *plan.Analytic, frame plan.Frame) (*framed, error) {
	c := &framed{of: f.Type, slides: frame.Rows > 0 || frame.Span != nil,
		args: aggregates{x: x, plan: []plan.Aggregate{f.Aggregate}, args: make([]arguments, 1)}}
	switch f.Func {
	case "count":
		c.of, c.state = column.Bigint, &frameCount{}
	case "sum", "avg":
		c.state = &frameSum{mean: f.Func == "avg"}
	case "min", "max":
		c.state = &frameExtreme{max: f.Func == "max"}
	case "first", "last":
		c.state = &frameEdge{last: f.Func == "last"}
	case "delta":
		c.state = &frameDelta{}
	case "counter":
		c.state = &frameCounter{}
	default:
		state, err := newRecomputed(f)
		if err != nil {
			return nil, err
		}
		c.state = &frameWhole{state: state, slides: c.slides}
	}
	if f.Distinct && (f.Func == "count" || f.Func == "sum" || f.Func == "avg") {
		c.counts = map[string]int{}
	}
	return c, nil
}

func (f *framed) size() int64 {
	const rowBytes, countBytes = 96, 80
	size := int64(cap(f.kept))*rowBytes + int64(len(f.counts))*countBytes + f.keys
	if s, ok := f.state.(*frameExtreme); ok {
		size += int64(cap(s.rows)) * rowBytes
	}
	return size
}

func (f *framed) rows(w *windowRows) (*column.Vector, error) {
	if err := f.args.load(0, w.Batch); err != nil {
		return nil, err
	}
	a := &f.args.args[0]
	out := newAnswer(f.of, w.Len)
	steps := 0
	for i := range w.Len {
		if steps += 1 + len(f.kept); steps > patience { // some functions look at all rows of the frame
			steps = 0
			if err := f.args.x.halted(); err != nil {
				return nil, err
			}
		}
		n := w.first + int64(i)
		if w.starts[i] == n {
			f.restart()
		}
		for f.head < len(f.kept) && f.kept[f.head].row < w.frames[i] {
			f.dropOldest()
		}
		if r := &f.row; f.usable(a, i) {
			r.row = n
			f.add(r)
		}
		f.state.result(out, i, f.kept[f.head:])
	}
	return &out.Vector, nil
}

// usable loads row i and reports whether no argument is NULL, NaN or no number.
func (f *framed) usable(a *arguments, i int) (ok bool) {
	r := &f.row
	switch {
	case a.vector == nil: // count(*)
		return true
	case f.args.plan[0].Func == "count":
		ok = !a.vector.IsMissing(i)
	default:
		a.load(&r.edge, i)
		ok = r.value == r.value
		if len(f.args.plan[0].Args) > 1 {
			r.y = a.y[i]
			ok = ok && r.y == r.y
		}
	}
	if ok && f.counts != nil {
		f.key = appendKey(f.key[:0], a.vector, i)
		r.key = string(f.key)
	}
	return ok
}

func (f *framed) restart() {
	f.state.reset()
	f.kept, f.head, f.keys = f.kept[:0], 0, 0
	clear(f.counts)
}

func (f *framed) add(r *framedRow) {
	if f.slides {
		f.kept = append(f.kept, *r)
	}
	if f.slides || f.counts[r.key] == 0 {
		f.keys += int64(len(r.key))
	}
	if f.counts != nil {
		if f.counts[r.key]++; f.counts[r.key] > 1 {
			return
		}
	}
	f.state.add(r)
}

func (f *framed) dropOldest() {
	r := &f.old
	*r = f.kept[f.head]
	f.keys -= int64(len(r.key))
	f.head++
	if f.head > len(f.kept)/2 && f.head > 64 {
		f.kept = append(f.kept[:0], f.kept[f.head:]...)
		f.head = 0
	}
	if f.counts != nil {
		if f.counts[r.key]--; f.counts[r.key] > 0 {
			return
		}
		delete(f.counts, r.key)
	}
	f.state.drop(r, f.kept[f.head:])
}

// frameCount counts rows.
type frameCount struct{ n int64 }

func (s *frameCount) reset()                                 { s.n = 0 }
func (s *frameCount) add(*framedRow)                         { s.n++ }
func (s *frameCount) drop(*framedRow, []framedRow)           { s.n-- }
func (s *frameCount) result(v *answer, i int, _ []framedRow) { v.Ints[i] = s.n }

// frameSum adds up decimals. What is added exactly can be taken away exactly.
type frameSum struct {
	mean bool
	sum  calc.ExactSum
	n    int64
}

func (s *frameSum) reset() { s.sum, s.n = calc.ExactSum{}, 0 }

func (s *frameSum) add(r *framedRow) {
	s.n++
	if r.isWhole {
		s.sum.AddDecimal(r.whole, int32(r.exponent))
	} else {
		s.sum.Add(r.value)
	}
}

func (s *frameSum) drop(r *framedRow, rest []framedRow) {
	switch {
	case r.isWhole && r.whole == math.MinInt64: // it has no opposite
		s.reset()
		for i := range rest {
			s.add(&rest[i])
		}
		return
	case r.isWhole:
		s.sum.AddDecimal(-r.whole, int32(r.exponent))
	default:
		s.sum.Remove(r.value)
	}
	s.n--
}

func (s *frameSum) result(v *answer, i int, _ []framedRow) {
	switch {
	case s.n == 0:
		v.setNone(i)
	case s.mean:
		v.setFloat(i, s.sum.Over(s.n))
	default:
		v.setFloat(i, s.sum.Sum())
	}
}

// frameExtreme finds the least or greatest value: the rows that may still become it wait, the current one first.
type frameExtreme struct {
	max  bool
	rows []framedRow
}

func (s *frameExtreme) reset() { s.rows = s.rows[:0] }

func (s *frameExtreme) add(r *framedRow) {
	for n := len(s.rows); n > 0; n-- {
		if c := s.rows[n-1].compare(&r.edge); s.max && c > 0 || !s.max && c < 0 {
			break
		}
		s.rows = s.rows[:n-1]
	}
	s.rows = append(s.rows, *r)
}

func (s *frameExtreme) drop(r *framedRow, _ []framedRow) {
	if len(s.rows) > 0 && s.rows[0].row == r.row {
		s.rows = s.rows[1:]
	}
}

func (s *frameExtreme) result(v *answer, i int, _ []framedRow) {
	if len(s.rows) == 0 {
		v.setNone(i)
		return
	}
	v.setEdge(i, &s.rows[0].edge)
}

// frameEdge is the first or last value, in the order of the rows.
type frameEdge struct {
	last        bool
	some        bool
	first, late edge
}

func (s *frameEdge) reset() { s.some = false }

func (s *frameEdge) add(r *framedRow) {
	if !s.some {
		s.first, s.some = r.edge, true
	}
	s.late = r.edge
}

func (s *frameEdge) drop(_ *framedRow, rest []framedRow) {
	if s.some = len(rest) > 0; s.some {
		s.first = rest[0].edge
	}
}

func (s *frameEdge) result(v *answer, i int, _ []framedRow) {
	switch {
	case !s.some:
		v.setNone(i)
	case s.last:
		v.setEdge(i, &s.late)
	default:
		v.setEdge(i, &s.first)
	}
}

// frameDelta is the last value minus the first one.
type frameDelta struct {
	frameEdge
	n int64
}

func (s *frameDelta) reset() {
	s.frameEdge.reset()
	s.n = 0
}

func (s *frameDelta) add(r *framedRow) {
	s.frameEdge.add(r)
	s.n++
}

func (s *frameDelta) drop(r *framedRow, rest []framedRow) {
	s.frameEdge.drop(r, rest)
	s.n--
}

func (s *frameDelta) result(v *answer, i int, _ []framedRow) {
	switch s.n {
	case 0:
		v.setNone(i)
	case 1:
		v.setFloat(i, nan)
	default:
		v.setFloat(i, calc.Minus(s.late.value, s.first.value))
	}
}

// frameCounter adds up increases; a value below the one before counts whole.
type frameCounter struct {
	sum  calc.ExactSum
	n    int64
	late float64
}

func (s *frameCounter) reset() { s.sum, s.n = calc.ExactSum{}, 0 }

func (s *frameCounter) add(r *framedRow) {
	if s.n > 0 {
		if s.sum.Add(r.value); r.value >= s.late {
			s.sum.Remove(s.late)
		}
	}
	s.n++
	s.late = r.value
}

func (s *frameCounter) drop(r *framedRow, rest []framedRow) {
	if s.n--; len(rest) == 0 {
		return
	}
	next := rest[0].value // what it adds to the oldest row goes
	if s.sum.Remove(next); next >= r.value {
		s.sum.Add(r.value)
	}
}

func (s *frameCounter) result(v *answer, i int, _ []framedRow) {
	switch s.n {
	case 0:
		v.setNone(i)
	case 1:
		v.setFloat(i, nan)
	default:
		v.setFloat(i, s.sum.Sum())
	}
}

// frameWhole is a function that cannot forget a row: of a frame that slides it is computed anew for each row.
type frameWhole struct {
	state  recomputed
	slides bool
}

// recomputed is a function of rows that are added one after another.
type recomputed interface {
	reset()
	add(r *framedRow)
	value() (v float64, ok bool)
}

func (s *frameWhole) reset() { s.state.reset() }

func (s *frameWhole) add(r *framedRow) {
	if !s.slides {
		s.state.add(r)
	}
}

func (s *frameWhole) drop(*framedRow, []framedRow) {}

func (s *frameWhole) result(v *answer, i int, rows []framedRow) {
	if s.slides {
		s.state.reset()
		for j := range rows {
			s.state.add(&rows[j])
		}
	}
	if f, ok := s.state.value(); ok {
		v.setFloat(i, f)
	} else {
		v.setNone(i)
	}
}

func newRecomputed(f *plan.Analytic) (recomputed, error) {
	switch f.Func {
	case "product":
		return &frameProduct{}, nil
	case "stddev":
		return &frameDeviation{population: f.Population}, nil
	case "wavg", "wtavg":
		return &frameWeighted{byTime: f.Func == "wtavg"}, nil
	case "ema":
		return &frameEMA{factor: f.Factor}, nil
	case "correl", "covar", "regr_slope", "regr_intercept":
		return &framePair{function: pairState{kind: f.Func, population: f.Population}}, nil
	}
	return nil, core.Errorf(core.Internal, "sql: analytic function %q cannot be run", f.Func)
}

type frameProduct struct{ product }

func (s *frameProduct) reset()                 { s.product = product{} }
func (s *frameProduct) add(r *framedRow)       { s.times(r.value) }
func (s *frameProduct) value() (float64, bool) { return s.float(), s.n > 0 }

type frameDeviation struct {
	moments
	population bool
}

func (s *frameDeviation) reset()           { s.moments = moments{} }
func (s *frameDeviation) add(r *framedRow) { s.moments.add(r.value) }
func (s *frameDeviation) value() (float64, bool) {
	if s.n == 0 {
		return 0, false
	}
	if v, ok := s.quick(); ok {
		return v, true
	}
	return s.deviation(s.population), true
}

// quick computes the deviation without big numbers when 128 bits hold n·Σx² - (Σx)². Since it is asked for every row, a last bit is left to chance where these
// have more than 53.
func (s *frameDeviation) quick() (float64, bool) {
	degrees := s.n
	if !s.population {
		degrees--
	}
	sum := int64(s.sum.lo)
	if s.loose || degrees == 0 || s.squares.hi != 0 || s.sum.hi != sum>>63 || 2*int(s.places) >= len(tens) {
		return 0, false
	}
	if sum < 0 {
		sum = -sum
	}
	hi, lo := bits.Mul64(uint64(s.n), s.squares.lo)
	sumHi, sumLo := bits.Mul64(uint64(sum), uint64(sum))
	lo, borrow := bits.Sub64(lo, sumLo, 0)
	hi, _ = bits.Sub64(hi, sumHi, borrow)
	return math.Sqrt((float64(float64(hi)*(1<<64)) + float64(lo)) / (float64(s.n) * float64(degrees) * tens[2*s.places])), true
}

// frameWeighted weighs rows 1, 2, 3 and so on, or by the seconds since the first one plus 1.
type frameWeighted struct {
	byTime   bool
	n, first int64
	sum      calc.WeightedSum
}

func (s *frameWeighted) reset() { *s = frameWeighted{byTime: s.byTime} }

func (s *frameWeighted) add(r *framedRow) {
	if s.n++; s.n == 1 {
		s.first = r.time
	}
	weight := s.n
	if s.byTime {
		weight = r.time - s.first + 1000 // in milliseconds
	}
	s.sum.Add(r.value, weight)
}

func (s *frameWeighted) value() (float64, bool) { return s.sum.Mean(), s.n > 0 }

// frameEMA is the exponential moving average.
type frameEMA struct {
	factor float64
	some   bool
	e      float64
}

func (s *frameEMA) reset() { s.some = false }

func (s *frameEMA) add(r *framedRow) {
	if !s.some {
		s.e, s.some = r.value, true
		return
	}
	s.e = calc.EMA([]float64{s.e, r.value}, s.factor)
}

func (s *frameEMA) value() (float64, bool) { return s.e, s.some }

type framePair struct {
	function pairState
	pair
}

func (s *framePair) reset()                 { s.pair = pair{} }
func (s *framePair) add(r *framedRow)       { s.pair.add(r.edge.value, r.y) }
func (s *framePair) value() (float64, bool) { return s.function.value(&s.pair), s.n > 0 }
