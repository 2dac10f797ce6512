package calc

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Series is a run of values, times ascending.
type Series struct {
	Times    []core.Time
	Values   []float64
	Decimals []core.DecimalAt // of values of decimal metrics that doubles do not give exactly
}

func (s *Series) add(t core.Time, v float64) {
	s.Times = append(s.Times, t)
	s.Values = append(s.Values, v)
}

// Aggregation says what to compute. A Period without unit is one period over the whole range; one that begins before the range is dropped.
type Aggregation struct {
	Range     core.Range
	Period    Period
	Functions []Function
	Fill      Fill
	Threshold *Threshold    // required by threshold functions
	Working   *MinutesOfDay // limits threshold functions to a part of the day
	// Workday limits threshold functions to the local days for which it is true; nil = all.
	Workday func(year int, month time.Month, day int) bool
	// Decimal makes functions exact, but SLOPE and INTERCEPT: the values stand for decimal numbers, and only the result is rounded to the nearest double.
	Decimal bool
}

// Validate reports what cannot be computed.
func (a Aggregation) Validate() error {
	var errs []error
	if len(a.Functions) == 0 {
		errs = append(errs, errors.New("aggregation has no function"))
	}
	if a.Period.Unit != nil || a.Period.Count != 0 {
		errs = append(errs, a.Period.Validate())
	}
	if a.Threshold == nil && slices.ContainsFunc(a.Functions, Function.NeedsThreshold) {
		errs = append(errs, errors.New("threshold functions need a threshold with min or max"))
	}
	return errors.Join(errs...)
}

// Aggregate computes the aggregation of one series at once; see Aggregator.
func Aggregate(a Aggregation, times []core.Time, values []float64) ([]Series, error) {
	g, err := NewAggregator(a)
	if err != nil {
		return nil, err
	}
	if err := g.Add(times, values); err != nil {
		return nil, err
	}
	return g.Finish()
}

// Aggregator computes an aggregation from samples that arrive in pieces, in ascending order. It keeps the samples of the current period only when a
// function needs them.
type Aggregator struct {
	Aggregation
	grid    Grid
	cursor  Cursor
	started bool
	keep    bool // some function needs the samples themselves
	exact   bool // some function reads decimals
	tracks  bool // some function passes a value on, with all its digits
	needs   need // what the functions read of the summary
	output  []Series

	open     bool  // the current period has samples
	index    int64 // of the current period
	from, to core.Time
	summary  Summary
	decimals ExactSum // of the values of the current period, when exact
	edges    edges    // their digits, when tracks
	side     []core.DecimalAt
	passed   int         // samples of the present call that are done with: side counts from its first one
	times    []core.Time // kept samples of the current period
	values   []float64

	latest struct { // period with samples
		any   bool
		index int64
		last  float64
	}
	sorter     Sorter
	sorted     []float64 // values in order; empty until a function of the period asks
	violations []violation
}

// NewAggregator checks the aggregation and prepares it.
func NewAggregator(a Aggregation) (*Aggregator, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	g := &Aggregator{Aggregation: a, output: make([]Series, len(a.Functions))}
	for _, f := range a.Functions {
		g.keep = g.keep || !f.streams()
		g.exact = g.exact || a.Decimal && (f.Kind == KindSum || f.Kind == KindAvg)
		g.tracks = g.tracks || a.Decimal && f.passesOn()
		g.needs |= f.needs()
	}
	return g, nil
}

// start lays the grid when the first sample is known.
func (g *Aggregator) start(firstValue core.Time) error {
	g.started = true
	if g.Period.Unit == nil {
		g.from, g.to = g.Range.Start, g.Range.End
		return nil
	}
	var err error
	if g.grid, err = g.Period.Grid(g.Range, firstValue); err == nil {
		g.cursor = g.grid.Cursor()
		g.from, g.to = g.cursor.Start(), g.cursor.End()
	}
	return err
}

// Add takes samples; times must not go back, within a call and between calls. Samples outside the range and NaN values are skipped.
func (g *Aggregator) Add(times []core.Time, values []float64) error {
	return g.AddExact(times, values, nil)
}

// AddExact is Add with the digits that some of the values lack, by their index.
func (g *Aggregator) AddExact(times []core.Time, values []float64, decimals []core.DecimalAt) error {
	lo := Before(times, g.Range.Start)
	hi := lo + Before(times[lo:], g.Range.End)
	times, values = times[lo:hi], values[lo:hi]
	g.side, g.passed = decimals, lo
	for len(times) > 0 {
		if !g.started {
			skip := slices.IndexFunc(values, func(v float64) bool { return v == v })
			if skip < 0 {
				return nil
			}
			if err := g.start(times[skip]); err != nil {
				return err
			}
			times, values = times[skip:], values[skip:]
			g.passed += skip
		}
		if t := times[0]; t >= g.to {
			probe := g.cursor
			if !probe.Seek(t) {
				return nil // nor is there a period for what comes later
			}
			g.enter(probe)
		}
		if early := Before(times, g.from); early > 0 { // before the first period
			times, values = times[early:], values[early:]
			g.passed += early
			continue
		}
		n := g.addPeriods(times, values)
		times, values = times[n:], values[n:]
	}
	return nil
}

// enter ends the current period and begins that of a cursor.
func (g *Aggregator) enter(c Cursor) {
	g.flush()
	g.cursor = c
	g.index, g.from, g.to = c.Index(), c.Start(), c.End()
}

// abreast is how many periods are added up at a time: an addition waits for the one before it in its period for as long as four that do not.
const abreast = 4

// stretch is the samples of one period, up to an index.
type stretch struct {
	cursor Cursor
	end    int
	sum    float64 // of the period up to there
}

// addPeriods takes samples that begin in the current period, of that one and perhaps some more, and returns how many.
func (g *Aggregator) addPeriods(times []core.Time, values []float64) int {
	if g.needs&needSum == 0 {
		n := Before(times, g.to)
		g.take(times[:n], values[:n], 0)
		return n
	}
	var ahead [abreast]stretch
	n, at := 1, Before(times, g.to)
	ahead[0].end = at
	for probe := g.cursor; n < abreast && at < len(times) && probe.Seek(times[at]); n++ {
		at += Before(times[at:], probe.End())
		ahead[n] = stretch{cursor: probe, end: at}
	}
	g.sums(ahead[:n], values)
	at = 0
	for i := range ahead[:n] {
		a := &ahead[i]
		if i > 0 {
			g.enter(a.cursor)
		}
		g.take(times[at:a.end], values[at:a.end], a.sum)
		at = a.end
	}
	return at
}

// sums adds up the values of each stretch from left to right, the first one behind what the current period has.
func (g *Aggregator) sums(ahead []stretch, values []float64) {
	var rest [abreast][]float64
	var sum [abreast]float64
	at := 0
	for i, a := range ahead {
		sum[i], rest[i] = values[at], values[at+1:a.end] // the sum of -0 is -0
		if i == 0 && g.summary.Count > 0 {
			sum[0], rest[0] = g.summary.Sum, values[:a.end]
		}
		at = a.end
	}
	least := len(rest[0])
	for i := range ahead {
		least = min(least, len(rest[i]))
	}
	if len(ahead) > 1 {
		for i := len(ahead); i < abreast; i++ {
			rest[i] = rest[0] // for nothing
		}
		addUp(&sum, &rest, least)
	} else {
		least = 0
	}
	for i := range ahead {
		total := sum[i]
		for _, v := range rest[i][least:] {
			total += v
		}
		ahead[i].sum = total
	}
}

// addUp adds the first n values of each.
func addUp(sum *[abreast]float64, values *[abreast][]float64, n int) {
	a, b, c, d := values[0][:n], values[1][:n], values[2][:n], values[3][:n]
	s, t, u, v := sum[0], sum[1], sum[2], sum[3]
	for i := range a {
		s += a[i]
		t += b[i]
		u += c[i]
		v += d[i]
	}
	*sum = [abreast]float64{s, t, u, v}
}

// Before returns how many of the ascending times are earlier than t. It costs the logarithm of the answer, or of how many are not.
func Before(times []core.Time, t core.Time) int {
	n := len(times)
	switch {
	case n == 0 || times[0] >= t:
		return 0
	case times[n-1] < t:
		return n
	}
	lo, step := 0, 1 // times[lo] < t
	for lo+step < n && times[lo+step] < t {
		lo += step
		step *= 2
	}
	hi := min(lo+step, n-1) // times[hi] >= t
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); times[mid] < t {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// take adds samples of the current period, at least one. sum is that of the period with them, when it is in need.
func (g *Aggregator) take(times []core.Time, values []float64, sum float64) {
	before := g.summary
	if !g.summary.run(times, values, sum, g.needs) {
		for i, v := range values {
			if v == v {
				g.summary.Add(times[i], v)
			}
		}
	}
	g.open = g.open || g.summary.Count > 0
	if g.exact {
		g.decimals.AddRun(values)
	}
	if g.tracks {
		g.follow(&before, values)
	}
	g.passed += len(values)
	if !g.keep {
		return
	}
	for i, v := range values {
		if v == v {
			g.times, g.values = append(g.times, times[i]), append(g.values, v)
		}
	}
}

// Kept returns how many samples the aggregator keeps: those of the current period, when a function needs them.
func (g *Aggregator) Kept() int { return len(g.values) }

// AddSummary takes many samples at once, from first to last, when their summary is enough: all functions can be computed from it and the samples lie in
// the range and in one period. It reports whether it did; if not, the samples have to be added themselves. The result is that of Add to the last bit: a sum
// goes on from left to right, so that it takes the summary of what comes first in its period and no other.
func (g *Aggregator) AddSummary(s Summary) (taken bool, err error) {
	if s.Count == 0 {
		return true, nil
	}
	if g.keep || g.exact || g.tracks || !g.Range.Contains(s.FirstTime) || !g.Range.Contains(s.LastTime) {
		return false, nil
	}
	if !g.started {
		if err := g.start(s.FirstTime); err != nil {
			return false, err
		}
	}
	if s.FirstTime >= g.to {
		probe := g.cursor
		if !probe.Seek(s.FirstTime) || s.LastTime >= probe.End() {
			return false, nil
		}
		g.flush()
		g.cursor = probe
		g.index, g.from, g.to = probe.Index(), probe.Start(), probe.End()
	}
	if s.FirstTime < g.from || s.LastTime >= g.to {
		return false, nil
	}
	if g.open && g.needs&needSum != 0 {
		return false, nil
	}
	g.open = true
	g.summary.Merge(s)
	return true, nil
}

// Grid returns the periods of the aggregation; nil when it has none, or has seen no sample.
func (g *Aggregator) Grid() *Grid {
	if g.Period.Unit == nil || !g.started {
		return nil
	}
	return &g.grid
}

// Finish closes the last period, fills gaps and returns one series for each function, in their order. The series of DETAIL is empty: its caller has the
// samples. The Aggregator is spent.
func (g *Aggregator) Finish() ([]Series, error) {
	g.flush()
	if g.Fill == (Fill{}) || g.Period.Unit == nil || !g.started {
		return g.output, nil
	}
	fill := g.Fill
	fill.exact = g.Decimal
	for i := range g.output {
		filled, err := fill.apply(&g.grid, g.Range.Start, g.output[i])
		if err != nil {
			return nil, err
		}
		g.output[i] = filled
	}
	return g.output, nil
}

// flush computes the functions of the current period and forgets its samples.
func (g *Aggregator) flush() {
	if !g.open {
		return
	}
	for i, f := range g.Functions {
		if v, ok := g.compute(f); ok {
			out := &g.output[i]
			if out.Times == nil {
				n := g.expected()
				*out = Series{Times: make([]core.Time, 0, n), Values: make([]float64, 0, n)}
			}
			out.add(g.from, v)
			if g.tracks {
				out.addDigits(g.edges.of(f.Kind))
			}
		}
	}
	g.latest.any, g.latest.index, g.latest.last = true, g.index, g.summary.Last
	g.open, g.summary, g.decimals = false, Summary{}, ExactSum{}
	g.times, g.values, g.sorted = g.times[:0], g.values[:0], g.sorted[:0]
}

// expected guesses how many periods there will be from the current one on: the usual ones of a chart are made room for at once.
func (g *Aggregator) expected() int {
	const most = 32
	return int(max(1, min(most, (g.Range.End-g.from-1)/max(1, g.to-g.from)+1)))
}

// compute returns the value of one function for the current period; ok is false when the period yields nothing.
func (g *Aggregator) compute(f Function) (v float64, ok bool) {
	s := &g.summary
	switch f.Kind {
	case KindSum, KindAvg:
		return g.total(f.Kind), true
	case KindCount:
		return float64(s.Count), true
	case KindMin:
		return s.Min, true
	case KindMax:
		return s.Max, true
	case KindFirst:
		return s.First, true
	case KindLast:
		return s.Last, true
	case KindMinValueTime:
		return float64(s.MinTime), true
	case KindMaxValueTime:
		return float64(s.MaxTime), true
	case KindDelta:
		return g.delta(), true
	case KindCounter:
		return g.counter(), true
	case KindThresholdCount, KindThresholdDuration, KindThresholdPercent:
		return g.threshold(f.Kind)
	case KindDetail:
		return 0, false
	}
	return g.statistic(f), true
}

// total computes the sum or the mean of the current period.
func (g *Aggregator) total(kind Kind) float64 {
	switch {
	case g.Decimal && kind == KindSum:
		return g.decimals.Sum()
	case g.Decimal:
		return g.decimals.Mean()
	case kind == KindSum:
		return g.summary.Sum
	}
	return g.summary.Sum / float64(g.summary.Count)
}

// statistic computes the functions that need all samples.
func (g *Aggregator) statistic(f Function) float64 {
	if f.Kind == KindPercentile && len(g.sorted) == 0 {
		g.sorted = append(g.sorted, g.values...)
		slices.Sort(g.sorted)
	}
	if g.Decimal {
		if v, ok := g.exactStatistic(f); ok {
			return v
		}
	}
	switch f.Kind {
	case KindPercentile:
		return percentileSorted(g.sorted, f.P)
	case KindMedianAbsDev:
		return g.sorter.MedianAbsDev(g.values)
	case KindStdDev:
		if g.summary.Count == 1 {
			return 0
		}
		return StdDev(g.values)
	case KindVariance:
		if g.summary.Count == 1 {
			return 0
		}
		return Variance(g.values)
	case KindPopulationVariance:
		return PopulationVariance(g.values)
	case KindSlope:
		return Fit(g.times, g.values).Slope
	case KindIntercept:
		return Fit(g.times, g.values).Value
	case KindWeightedAvg:
		return WeightedMean(g.values)
	case KindTimeWeightedAvg:
		return SecondWeightedMean(g.times, g.values)
	}
	return math.NaN()
}

// previous returns the value that DELTA and COUNTER continue from: the last one of the immediately preceding period.
func (g *Aggregator) previous() (float64, bool) {
	if !g.latest.any || g.latest.index != g.index-1 {
		return 0, false
	}
	return g.latest.last, true
}

func (g *Aggregator) delta() float64 {
	base, ok := g.previous()
	if !ok {
		if g.summary.Count == 1 {
			return math.NaN()
		}
		base = g.summary.First
	}
	if g.Decimal {
		return Minus(g.summary.Last, base)
	}
	return g.summary.Last - base
}

func (g *Aggregator) counter() float64 {
	base, ok := g.previous()
	if !ok {
		if g.summary.Count == 1 {
			return math.NaN()
		}
		base = g.values[0] // adds zero for the first sample
	}
	if g.Decimal {
		return exactIncrease(base, g.values)
	}
	return CounterIncrease(base, g.values)
}

// Summary is what the simple functions need to know of a run of samples without NaN. The zero Summary is of none.
type Summary struct {
	Count                                 int64
	Sum, Min, Max, First, Last            float64
	FirstTime, LastTime, MinTime, MaxTime core.Time // MinTime and MaxTime of the first occurrence
}

// Add appends a sample that is not NaN.
func (s *Summary) Add(t core.Time, v float64) {
	if s.Count == 0 {
		*s = Summary{Count: 1, Sum: v, Min: v, Max: v, First: v, Last: v, FirstTime: t, LastTime: t, MinTime: t, MaxTime: t}
		return
	}
	s.Count++
	s.Sum += v
	s.Last, s.LastTime = v, t
	if v < s.Min {
		s.Min, s.MinTime = v, t
	}
	if v > s.Max {
		s.Max, s.MaxTime = v, t
	}
}

// need is a set of what costs a look at every value; the other members of a Summary come for nothing.
type need uint8

const (
	needSum need = 1 << iota
	needMin
	needMax
	needTimes // MinTime and MaxTime, as far as Min and Max are in need
)

// run appends samples, at least one, of which only what is in need is computed; sum is that of all with them. It reports false, and changes nothing, if there may
// be a NaN among them: each of the passes over the values hands one on to its result, without a branch for each.
func (s *Summary) run(times []core.Time, values []float64, sum float64, in need) bool {
	low, high := s.Min, s.Max
	if in&needSum == 0 {
		sum = s.Sum
	}
	if in&needMin != 0 {
		low = Least(values)
	}
	if in&needMax != 0 {
		high = Greatest(values)
	}
	if sum != sum || low != low || high != high || in&(needSum|needMin|needMax) == 0 && AnyNaN(values) {
		return false
	}
	s.Sum = sum
	if in&needMin != 0 && (s.Count == 0 || low < s.Min) {
		s.Min, s.MinTime = firstOf(times, values, low, in)
	}
	if in&needMax != 0 && (s.Count == 0 || high > s.Max) {
		s.Max, s.MaxTime = firstOf(times, values, high, in)
	}
	last := len(values) - 1
	if s.Count == 0 {
		s.First, s.FirstTime = values[0], times[0]
	}
	s.Last, s.LastTime = values[last], times[last]
	s.Count += int64(len(values))
	return true
}

// firstOf returns the first of the values that equals v, which is one of them: of zeros of both signs the first one counts.
func firstOf(times []core.Time, values []float64, v float64, in need) (float64, core.Time) {
	if v != 0 && in&needTimes == 0 {
		return v, 0
	}
	at := slices.Index(values, v)
	return values[at], times[at]
}

// AnyNaN reports whether a value is NaN.
func AnyNaN(values []float64) bool {
	for _, v := range values {
		if v != v {
			return true
		}
	}
	return false
}

// Least returns the least value, of at least one, NaN if one is.
func Least(values []float64) float64 {
	if highestBits(values) > bitsOfInf {
		return leastOfAny(values)
	}
	a := math.Float64bits(values[0])
	b, c, d := a, a, a
	i := 0
	for ; i < len(values)-3; i += 4 {
		a, b = min(a, math.Float64bits(values[i])), min(b, math.Float64bits(values[i+1]))
		c, d = min(c, math.Float64bits(values[i+2])), min(d, math.Float64bits(values[i+3]))
	}
	for ; i < len(values); i++ {
		a = min(a, math.Float64bits(values[i]))
	}
	return math.Float64frombits(min(a, b, c, d))
}

// Greatest returns the greatest value, of at least one, NaN if one is.
func Greatest(values []float64) float64 {
	if bits := highestBits(values); bits <= bitsOfInf {
		return math.Float64frombits(bits)
	}
	return greatestOfAny(values)
}

// bitsOfInf are those of +Inf. The bits of numbers from 0 on sort as these do and are not above it, those of all others are: of NaN, and of what has a sign.
const bitsOfInf = 0x7ff << 52

// highestBits returns the highest of the bits of the values. Comparing integers takes half the time of comparing doubles, of which each may be NaN; four at a
// time do not wait for each other.
func highestBits(values []float64) uint64 {
	a := math.Float64bits(values[0])
	b, c, d := a, a, a
	i := 0
	for ; i < len(values)-3; i += 4 {
		a, b = max(a, math.Float64bits(values[i])), max(b, math.Float64bits(values[i+1]))
		c, d = max(c, math.Float64bits(values[i+2])), max(d, math.Float64bits(values[i+3]))
	}
	for ; i < len(values); i++ {
		a = max(a, math.Float64bits(values[i]))
	}
	return max(a, b, c, d)
}

func leastOfAny(values []float64) float64 {
	a := values[0]
	b, c, d := a, a, a
	for ; len(values) >= 4; values = values[4:] {
		a, b, c, d = min(a, values[0]), min(b, values[1]), min(c, values[2]), min(d, values[3])
	}
	for _, v := range values {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

func greatestOfAny(values []float64) float64 {
	a := values[0]
	b, c, d := a, a, a
	for ; len(values) >= 4; values = values[4:] {
		a, b, c, d = max(a, values[0]), max(b, values[1]), max(c, values[2]), max(d, values[3])
	}
	for _, v := range values {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

// Merge appends a later run.
func (s *Summary) Merge(o Summary) {
	if s.Count == 0 {
		*s = o
		return
	}
	if o.Count == 0 {
		return
	}
	s.Count += o.Count
	s.Sum += o.Sum
	s.Last, s.LastTime = o.Last, o.LastTime
	if o.Min < s.Min {
		s.Min, s.MinTime = o.Min, o.MinTime
	}
	if o.Max > s.Max {
		s.Max, s.MaxTime = o.Max, o.MaxTime
	}
}
