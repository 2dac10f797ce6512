package calc

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// digits are those of a number that the double beside it does not give back; exact is false when it does.
type digits struct {
	decimal core.Decimal
	exact   bool
}

// digitsAt returns the digits of value i.
func digitsAt(side []core.DecimalAt, i int) digits {
	if len(side) == 0 {
		return digits{}
	}
	at, ok := slices.BinarySearchFunc(side, uint32(i), func(d core.DecimalAt, i uint32) int { return cmp.Compare(d.Index, i) })
	if !ok {
		return digits{}
	}
	return digits{side[at].Decimal, true}
}

// addDigits gives the value that was added last its digits.
func (s *Series) addDigits(d digits) {
	if d.exact {
		s.Decimals = append(s.Decimals, core.DecimalAt{Index: uint32(len(s.Values) - 1), Decimal: d.decimal})
	}
}

// edges are the digits of what the functions of a period pass on.
type edges struct{ min, max, first, last digits }

func (e *edges) of(kind Kind) digits {
	switch kind {
	case KindMin:
		return e.min
	case KindMax:
		return e.max
	case KindFirst:
		return e.first
	case KindLast:
		return e.last
	}
	return digits{}
}

// follow brings the edges up to date with values of the current period, whose summary was before without them.
func (g *Aggregator) follow(before *Summary, values []float64) {
	own, rest := g.side, 0
	for rest < len(own) && int(own[rest].Index) < g.passed+len(values) {
		rest++
	}
	own, g.side = own[:rest], own[rest:]
	if g.summary.Count == before.Count {
		return // NaN alone
	}
	e := &g.edges
	if before.Count == 0 {
		*e = edges{first: digitsAt(own, g.passed+slices.IndexFunc(values, func(v float64) bool { return v == v }))}
	}
	last := len(values) - 1
	for values[last] != values[last] {
		last--
	}
	e.last = digitsAt(own, g.passed+last)
	if g.needs&needMin != 0 {
		e.min = g.extreme(e.min, before.Count > 0 && before.Min == g.summary.Min, own, values, -1)
	}
	if g.needs&needMax != 0 {
		e.max = g.extreme(e.max, before.Count > 0 && before.Max == g.summary.Max, own, values, 1)
	}
}

// extreme returns the digits of the least (sign -1) or greatest (1) number of the period. Those of the values before are old, which count if known: then the
// same double was the extreme. Of numbers that are the same as doubles the digits decide.
func (g *Aggregator) extreme(old digits, known bool, own []core.DecimalAt, values []float64, sign int) digits {
	best := digits{}
	if known {
		best = old
	}
	if len(own) == 0 && !best.exact {
		return best
	}
	v := g.summary.Min
	if sign > 0 {
		v = g.summary.Max
	}
	for i, x := range values {
		if x != v {
			continue
		}
		if d := digitsAt(own, g.passed+i); !known || sign*compareDigits(d, best, v) > 0 {
			best, known = d, true
		}
	}
	return best
}

// compareDigits compares two numbers that are the same as doubles.
func compareDigits(a, b digits, v float64) int {
	if !a.exact && !b.exact {
		return 0
	}
	x, y := a.of(v), b.of(v)
	low := min(x.exponent, y.exponent)
	return x.big(low).Cmp(y.big(low))
}

// of returns the number whose nearest double is v.
func (d digits) of(v float64) decimal {
	if d.exact {
		return decimal{d.decimal.Significand, int(d.decimal.Exponent)}
	}
	return shortest(v)
}

// big returns d in units of 10^exponent, which is not above its own.
func (d decimal) big(exponent int) *big.Int {
	n := big.NewInt(d.mantissa)
	if d.mantissa == 0 {
		return n
	}
	return n.Mul(n, powerOfTen(d.exponent-exponent))
}

// The functions below are those of stats.go for values that stand for decimal numbers, none of them NaN: only the result is rounded.

// exactStatistic computes the functions that have an exact form.
func (g *Aggregator) exactStatistic(f Function) (v float64, ok bool) {
	n := g.summary.Count
	switch f.Kind {
	case KindPercentile:
		return exactPercentile(g.sorted, f.P), true
	case KindMedianAbsDev:
		return exactMedianAbsDev(g.values), true
	case KindVariance:
		return exactSquares(g.values).Over(max(n-1, 1)), true
	case KindPopulationVariance:
		return exactSquares(g.values).Over(n), true
	case KindStdDev:
		return math.Sqrt(exactSquares(g.values).Over(max(n-1, 1))), true
	case KindWeightedAvg:
		return ExactWeightedMean(g.values), true
	case KindTimeWeightedAvg:
		return ExactSecondWeightedMean(g.times, g.values), true
	}
	return 0, false
}

// interpolateExact is Interpolate.
func interpolateExact(t core.Time, a, b Point) float64 {
	var s WeightedSum
	s.Add(a.Value, int64(b.Time-t))
	s.Add(b.Value, int64(t-a.Time))
	return s.Mean()
}

func exactPercentile(sorted []float64, p float64) float64 {
	n := len(sorted)
	rank := Times(Times(p, float64(n+1)), 0.01)
	switch {
	case n == 0:
		return math.NaN()
	case rank < 1:
		return sorted[0]
	case rank >= float64(n):
		return sorted[n-1]
	}
	k := int(rank)
	return Plus(sorted[k-1], Times(Minus(rank, float64(k)), Minus(sorted[k], sorted[k-1])))
}

func exactMedianAbsDev(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	median := exactPercentile(sorted, 50)
	for i, v := range sorted {
		sorted[i] = math.Abs(Minus(v, median))
	}
	slices.Sort(sorted)
	return exactPercentile(sorted, 50)
}

// exactSquares returns the sum of squared distances from the mean.
func exactSquares(values []float64) *ExactSum {
	var sum, squares ExactSum
	sum.AddRun(values)
	mean := sum.Mean()
	for _, v := range values {
		d := Minus(v, mean)
		squares.Add(Times(d, d))
	}
	return &squares
}

func exactIncrease(base float64, values []float64) float64 {
	var sum ExactSum
	for _, v := range values {
		if d := Minus(v, base); d >= 0 {
			sum.Add(d)
		} else {
			sum.Add(v)
		}
		base = v
	}
	return sum.Sum()
}
