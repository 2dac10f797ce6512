package calc

import "math"

// Exp, Log and decay are exp, log and expm1 of the mathematical library of FreeBSD (msun, Copyright 1993 Sun Microsystems: "Permission to use, copy, modify, and
// distribute this software is freely granted, provided that this notice is preserved.") with errors below one unit in the last place. Those of package math are
// written in assembly for some processors, and others fuse products with the additions behind them, so that their last digits are not the same everywhere. Here
// products stand in conversions, which forbids it.

const (
	expHighest = 7.09782712893383973096e+02
	expLowest  = -7.45133219101941108420e+02
	expTiny    = 1.0 / (1 << 28) // e^x is 1 + x for what is smaller

	decayFull = 56 * math.Ln2 // from here on e^-x is lost beside 1
	decayNear = math.Ln2 / 2  // up to here the series converges without taking off powers of two

	// ln 2 in two pieces, the first of 32 bits, so that its product with a small whole number is exact.
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// The polynomials, the constant term first.
var (
	expTerms = [...]float64{1.66666666666666657415e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06, 4.13813679705723846039e-08}
	logOdd   = [...]float64{6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01}
	logEven  = [...]float64{3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01}

	// decaySeries is that of the exponential function less 1.
	decaySeries = [...]float64{1, -3.33333333333331316428e-02, 1.58730158725481460165e-03, -7.93650757867487942473e-05, 4.00821782732936239552e-06, -2.01099218183624371326e-07}
)

// Horner evaluates a polynomial, the constant term first.
func Horner(x float64, terms []float64) (sum float64) {
	for i := len(terms) - 1; i >= 0; i-- {
		sum = terms[i] + float64(x*sum)
	}
	return sum
}

// Exp returns e^x.
func Exp(x float64) float64 {
	switch {
	case x > expHighest:
		return math.Inf(1)
	case x < expLowest:
		return 0
	case math.Abs(x) < expTiny:
		return 1 + x
	case x != x:
		return x
	}
	k := int(float64(math.Log2E*x) + math.Copysign(0.5, x))
	high, low := x-float64(float64(k)*ln2High), float64(float64(k)*ln2Low)
	r := high - low
	square := float64(r * r)
	c := r - float64(square*Horner(square, expTerms[:]))
	return math.Ldexp(1-((low-float64(r*c)/(2-c))-high), k)
}

// Log returns the natural logarithm of x: NaN below 0.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, exponent := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f = float64(2 * f)
		exponent--
	}
	f--
	k := float64(exponent)
	s := f / (2 + f)
	square := float64(s * s)
	fourth := float64(square * square)
	r := float64(square*Horner(fourth, logOdd[:])) + float64(fourth*Horner(fourth, logEven[:]))
	half := float64(0.5 * f * f)
	return float64(k*ln2High) - ((half - (float64(s*(half+r)) + float64(k*ln2Low))) - f)
}

// decay returns 1 - e^-x, which is how much of an average has been replaced after x of its ranges; 0 for x below 0.
func decay(x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= decayFull:
		return 1
	}
	r, lost, halvings := -x, 0.0, 0 // e^-x is e^(r+lost) / 2^halvings
	if x > decayNear {
		halvings = int(x/math.Ln2 + 0.5)
		if x < 3*decayNear {
			halvings = 1
		}
		high, low := float64(float64(halvings)*ln2High)-x, float64(-float64(halvings)*ln2Low)
		r = high - low
		lost = (high - r) - low
	}
	half := float64(0.5 * r)
	square := float64(r * half)
	sum := Horner(square, decaySeries[:])
	t := 3 - float64(sum*half)
	e := float64(square * ((sum - t) / (6 - float64(r*t))))
	if halvings == 0 {
		return -(r - (float64(r*e) - square))
	}
	e = float64(r*(e-lost)) - lost - square
	if halvings == 1 {
		return 0.5 - float64(0.5*(r-e))
	}
	return 1 - math.Ldexp(1-(e-r), -halvings)
}
