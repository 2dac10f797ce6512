package calc

import "math"

// Powers and logarithms to any base are computed with pairs of doubles, some 100 bits, and rounded once: with the logarithm of a double the error of a power grows
// with its exponent.

// twoSum returns a + b and what rounding took from it.
func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	c := sum - a
	return sum, (a - (sum - c)) + (b - c)
}

// pair is the sum of two doubles, of which low is below half a unit in the last place of high. Products stand in conversions: a processor that fuses them with the
// addition behind would not round them.
type pair struct{ high, low float64 }

// ln2 is the natural logarithm of 2.
var ln2 = pair{6.931471805599452862e-01, 2.319046813846299558e-17}

func (a pair) times(b pair) pair {
	p := float64(a.high * b.high)
	rest := math.FMA(a.high, b.high, -p) + (float64(a.high*b.low) + float64(a.low*b.high))
	high := p + rest
	return pair{high, rest - (high - p)}
}

func (a pair) plus(b pair) pair {
	sum, rest := twoSum(a.high, b.high)
	high, low := twoSum(sum, rest+(a.low+b.low))
	return pair{high, low}
}

func (a pair) over(b pair) pair {
	q := a.high / b.high
	rest := math.FMA(-q, b.high, a.high) + (a.low - float64(q*b.low))
	high, low := twoSum(q, rest/b.high)
	return pair{high, low}
}

// logOf returns the natural logarithm of a positive finite number: that of its fraction m is 2*artanh((m-1)/(m+1)).
func logOf(x float64) pair {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = float64(2*m), k-1
	}
	bottom, rest := twoSum(m, 1)
	s := pair{high: m - 1}.over(pair{bottom, rest})
	square := s.times(s)
	const terms = 21 // the square is below 0.03
	sum := pair{}
	for n := terms; n >= 0; n-- {
		sum = sum.times(square).plus(pair{high: 1}.over(pair{high: float64(2*n + 1)}))
	}
	sum = sum.times(s)
	return pair{float64(2 * sum.high), float64(2 * sum.low)}.plus(ln2.times(pair{high: float64(k)}))
}

// expOf returns e^p, |p| below 746: 0 and infinity at the ends.
func expOf(p pair) float64 {
	turns := math.RoundToEven(p.high / ln2.high)
	r := p.plus(ln2.times(pair{high: -turns}))
	const halvings = 8
	r.high, r.low = math.Ldexp(r.high, -halvings), math.Ldexp(r.low, -halvings)
	// The series less its first term, which keeps the digits of a small sum: (1+t)^2 - 1 = t*(t+2).
	sum := pair{}
	for n := 9; n >= 1; n-- {
		sum = pair{high: 1}.plus(sum).times(r).over(pair{high: float64(n)})
	}
	for range halvings {
		sum = sum.times(sum.plus(pair{high: 2}))
	}
	sum = sum.plus(pair{high: 1})
	return math.Ldexp(sum.high+sum.low, int(turns))
}

// Power returns x^y, with the special cases of math.Pow.
func Power(x, y float64) float64 {
	if x == 0 || x-x != 0 || y-y != 0 || y == 0 || x < 0 && y != math.Trunc(y) {
		return math.Pow(x, y)
	}
	switch y { // the commonest, of one rounding
	case 2:
		return float64(x * x)
	case 1:
		return x
	case 0.5:
		return math.Sqrt(x)
	case -1:
		return 1 / x
	}
	p := logOf(math.Abs(x)).times(pair{high: y})
	if !(math.Abs(p.high) < 746) { // infinite, or nothing
		return math.Pow(x, y)
	}
	result := expOf(p)
	if x < 0 && math.Mod(y, 2) != 0 {
		return -result
	}
	return result
}

// Logarithm returns the logarithm of x to a base.
func Logarithm(base, x float64) float64 {
	if !(x > 0) || !(base > 0) || base == 1 || math.IsInf(x, 1) || math.IsInf(base, 1) {
		return math.Log(x) / math.Log(base)
	}
	return logOf(x).over(logOf(base)).high
}
