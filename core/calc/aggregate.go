package calc

import (
	"errors"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// Series is a run of values, times ascending.
type Series struct {
	Times  []core.Time
	Values []float64
}

func (s *Series) add(t core.Time, v float64) {
	s.Times = append(s.Times, t)
	s.Values = append(s.Values, v)
}

// Rules chooses between two readers of the same arithmetic where their contracts differ.
type Rules uint8

const (
	// QueryRules are those of the series query: periods that begin before the range are dropped, and DELTA and COUNTER look at the immediately preceding
	// period only.
	QueryRules Rules = iota
	// SQLRules start with the calendar period that contains the start of the range, and look back to the latest period that has samples.
	SQLRules
)

// Aggregation says what to compute. A Period without unit is one period over the whole range.
type Aggregation struct {
	Range     core.Range
	Period    Period
	Functions []Function
	Fill      Fill
	Threshold *Threshold    // required by threshold functions
	Working   *MinutesOfDay // limits threshold functions to a part of the day
	Rules     Rules
	// Decimal makes SUM, AVG and DELTA exact: the values stand for decimal numbers, and only the result is rounded to the nearest double.
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
	output  []Series

	open     bool  // the current period has samples
	index    int64 // of the current period
	from, to core.Time
	summary  Summary
	times    []core.Time // kept samples of the current period
	values   []float64

	before struct { // the latest period with samples
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
		g.keep = g.keep || !f.streams() || a.Decimal && (f.Kind == KindSum || f.Kind == KindAvg)
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
	if g.Rules == SQLRules {
		g.grid, err = g.Period.CoveringGrid(g.Range, firstValue)
	} else {
		g.grid, err = g.Period.Grid(g.Range, firstValue)
	}
	if err == nil {
		g.cursor = g.grid.Cursor()
		g.from, g.to = g.cursor.Start(), g.cursor.End()
	}
	return err
}

// Add takes samples; times must not go back, within a call and between calls. Samples outside the range and NaN values are skipped.
func (g *Aggregator) Add(times []core.Time, values []float64) error {
	for i, t := range times {
		v := values[i]
		if math.IsNaN(v) || !g.Range.Contains(t) {
			continue
		}
		if !g.started {
			if err := g.start(t); err != nil {
				return err
			}
		}
		if t >= g.to {
			g.flush()
			if !g.cursor.Seek(t) {
				continue
			}
			g.index, g.from, g.to = g.cursor.Index(), g.cursor.Start(), g.cursor.End()
		}
		if t < g.from {
			continue // before the first period
		}
		g.open = true
		g.summary.Add(t, v)
		if g.keep {
			g.times = append(g.times, t)
			g.values = append(g.values, v)
		}
	}
	return nil
}

// AddSummary takes many samples at once, from first to last, when their summary is enough: all functions can be computed from it and the samples lie in
// the range and in one period. It reports whether it did; if not, the samples have to be added themselves.
func (g *Aggregator) AddSummary(s Summary) (taken bool, err error) {
	if s.Count == 0 {
		return true, nil
	}
	if g.keep || !g.Range.Contains(s.FirstTime) || !g.Range.Contains(s.LastTime) {
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
	for i := range g.output {
		filled, err := g.Fill.apply(&g.grid, g.Range.Start, g.output[i])
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
			g.output[i].add(g.from, v)
		}
	}
	g.before.any, g.before.index, g.before.last = true, g.index, g.summary.Last
	g.open, g.summary = false, Summary{}
	g.times, g.values, g.sorted = g.times[:0], g.values[:0], g.sorted[:0]
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
		return decimalExactSum(g.values)
	case g.Decimal:
		return decimalMean(g.values)
	case kind == KindSum:
		return g.summary.Sum
	}
	return g.summary.Sum / float64(g.summary.Count)
}

// statistic computes the functions that need all samples.
func (g *Aggregator) statistic(f Function) float64 {
	switch f.Kind {
	case KindPercentile:
		if len(g.sorted) == 0 {
			g.sorted = append(g.sorted, g.values...)
			slices.Sort(g.sorted)
		}
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
		return timeWeightedMean(g.times, g.values)
	}
	return math.NaN()
}

// previous returns the value that DELTA and COUNTER continue from.
func (g *Aggregator) previous() (float64, bool) {
	if !g.before.any || g.Rules == QueryRules && g.before.index != g.index-1 {
		return 0, false
	}
	return g.before.last, true
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
		return decimalDifference(g.summary.Last, base)
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
	return CounterIncrease(base, g.values)
}

// timeWeightedMean weighs each value with 1 + seconds since the first sample.
func timeWeightedMean(times []core.Time, values []float64) float64 {
	var sum, weights float64
	for i, v := range values {
		w := 1 + float64(times[i]-times[0])/1000
		sum += w * v
		weights += w
	}
	return sum / weights
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
