package chunk

import (
	"math"
)

// A column of decimals is integers i and a scale k such that every value is the double nearest to i/10^k: the quotient of the two doubles, which
// are exact, as |i| <= 2^53 unless k is 0. The idea is that of ALP; division instead of a product makes every decimal of up to 15 digits come back.
const (
	maxScale   = 18      // 10^22 is the largest exact power, and 10^18 the largest an int64 holds
	maxInteger = 1 << 53 // up to which an integer is a double
)

var powers = [maxScale + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// Division takes as long as four products. For |i| < 2^31 and k <= 5, i/10^k is i*high + i*low instead, where high is 10^-k cut to 21 bits and low the
// rest: i*high is exact, i*low errs by at most 2^-53 of itself twice, which is below 2^-19 units of the last place of the sum; and i/10^k, unless it
// is a double, is no nearer to the middle between two doubles than 1/(2*10^k) units, which is more. So the sum is rounded to the same double as
// the quotient, also where a compiler fuses product and sum. For k = 0 high is 1, low is 0, and any i will do.
const (
	maxProductScale = 5
	productLimit    = 1 << 31
	highBits        = 21
)

// reciprocal is both parts of 10^-k.
type reciprocal struct{ high, low float64 }

func reciprocalOf(k int) reciprocal {
	const cut = 1<<(53-highBits) - 1
	p := powers[k]
	high := math.Float64frombits(math.Float64bits(1/p) &^ cut)
	// 1 - p*high is exact: p has at most 17 bits and high 21, so p*high has 38 and is near 1.
	return reciprocal{high, (1 - float64(p*high)) / p}
}

// times is i / 10^k. The conversions forbid the fused multiplication that some processors have: the two parts are rounded alike everywhere.
func (r reciprocal) times(i int64) float64 {
	f := float64(i)
	return float64(f*r.high) + float64(f*r.low)
}

// divideAll computes x / 10^scale.
func divideAll(dst []float64, x []int64, scale int) {
	dst = dst[:len(x)]
	p := powers[scale]
	for i, v := range x {
		dst[i] = float64(v) / p
	}
}

// productsDo reports whether all of x can be scaled by products.
func productsDo(x []int64, scale int) bool {
	all := int64(0)
	for _, v := range x {
		all |= v ^ v>>63
	}
	return scale == 0 || scale <= maxProductScale && all < productLimit
}

// toInteger returns the integer whose quotient is v, bit for bit, if there is one.
func toInteger(v float64, scale int) (int64, bool) {
	p := powers[scale]
	scaled := v * p
	limit := float64(maxInteger)
	if scale == 0 {
		limit = 1 << 62
	}
	if !(scaled >= -limit && scaled <= limit) {
		return 0, false
	}
	i := int64(math.RoundToEven(scaled))
	return i, math.Float64bits(float64(i)/p) == math.Float64bits(v)
}

// toIntegers fills dst with the integers of the values. Values that have none are specials; the integer before stands in their place.
func toIntegers(dst []int64, values []float64, scale int, s *specials) {
	// Adding and subtracting this rounds to an integer what is below 2^51.
	const magic, limit = 0x1.8p52, 1 << 51
	p, last := powers[scale], int64(0)
	for i, v := range values {
		scaled := float64(v * p)
		x := int64(float64(scaled+magic) - magic)
		if math.Float64bits(float64(x)/p) != math.Float64bits(v) || !(scaled > -limit && scaled < limit) {
			var ok bool
			if x, ok = toInteger(v, scale); !ok {
				s.add(i, v)
				x = last
			}
		}
		last = x
		dst[i] = x
	}
}

// scaleOf returns the smallest scale at which v is an integer of at most 15 digits: of more digits, doubles that are no decimals would often do.
func scaleOf(v float64) (scale int, ok bool) {
	const digits = 1e15
	for k := 0; k <= maxScale && math.Abs(v)*powers[k] < digits; k++ {
		if _, ok := toInteger(v, k); ok {
			return k, true
		}
	}
	_, ok = toInteger(v, 0)
	return 0, ok
}

// findScale returns the scale that suits most of the values, from a few of them. It reports whether there is one.
func (e *Encoder) findScale(values []float64) (scale int, ok bool) {
	const probes = 64
	var count [maxScale + 1]int
	step := max(1, len(values)/probes)
	total, none := 0, 0
	for i := 0; i < len(values); i += step {
		if math.Float64bits(values[i])&infinite == infinite {
			continue
		}
		total++
		if k, ok := scaleOf(values[i]); ok {
			count[k]++
		} else {
			none++
		}
	}
	if total == 0 || 4*none > total {
		return 0, total == 0
	}
	// The largest scale that more than one in 32 has: a few may have long digits.
	above := 0
	for scale = maxScale; scale > 0; scale-- {
		if above += count[scale]; 32*above > total {
			break
		}
	}
	return scale, true
}
