package exec

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// Numbers stand for the shortest decimal that reads back as them: 0.1 is one tenth. Sums, means and what lies between two numbers are computed in
// these decimals, and the result is the double nearest to the exact one.
//
// Most numbers have few digits, so that the decimal is a 64-bit integer over a small power of ten; then all that follows is integer arithmetic.

// exactDigits is how many digits a decimal may have so that no other with as many reads as the same double: then it is the shortest.
const exactDigits = 15

// tens are powers of ten that doubles hold exactly.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// wholeTens are powers of ten that an int64 holds.
var wholeTens = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

const (
	mostScaled = 1e15     // 10^exactDigits
	rounder    = 3 << 51  // what is added to it and taken away again is rounded to a whole number, up to 2^51
	exactWhole = 1 << 53  // whole numbers up to it are doubles
	most128    = 1 << 126 // a 128-bit sum of at most so much takes any int64 product of two 15-digit numbers
)

// scaled returns v times 10^places if that is a whole number of at most 15 digits, so that it over 10^places is the shortest decimal of v.
func scaled(v float64, places int8) (int64, bool) {
	f := float64(v * tens[places]) // rounded before rounder is added, on all processors
	if !(f > -mostScaled && f < mostScaled) {
		return 0, false
	}
	f = f + rounder - rounder
	return int64(f), f/tens[places] == v
}

// placesOf returns the fewest places from the given ones on that hold v; ok is false if 15 digits do not.
func placesOf(v float64, from int8) (places int8, m int64, ok bool) {
	for p := from; p <= exactDigits; p++ {
		if m, ok := scaled(v, p); ok {
			return p, m, true
		}
	}
	return 0, 0, false
}

// int128 is a signed whole number.
type int128 struct {
	hi int64
	lo uint64
}

func (a *int128) add(b int128) {
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, b.lo, 0)
	a.hi += b.hi + int64(carry)
}

func (a *int128) addInt(n int64) {
	a.add(int128{n >> 63, uint64(n)})
}

// near reports whether a is so close to the edge that the next product of two int64 might not fit.
func (a *int128) near() bool { return a.hi > most128>>64 || a.hi < -(most128>>64) }

// timesTen multiplies by 10^n, and reports whether the result fits.
func (a *int128) timesTen(n int8) bool {
	for range n {
		if a.hi >= 1<<58 || a.hi < -(1<<58) {
			return false
		}
		hi, lo := bits.Mul64(a.lo, 10)
		a.hi, a.lo = a.hi*10+int64(hi), lo
	}
	return true
}

func (a *int128) big(into *big.Int) *big.Int {
	into.SetInt64(a.hi)
	into.Lsh(into, 64)
	var low big.Int
	return into.Add(into, low.SetUint64(a.lo))
}

// square returns m times m.
func square(m int64) int128 {
	if m < 0 {
		m = -m
	}
	hi, lo := bits.Mul64(uint64(m), uint64(m))
	return int128{int64(hi), lo}
}

// wholeSum returns the exact sum, in units of 10^-places, of count doubles, all of them multiples of 10^-places and none greater than most, whose sum was rounded
// after each of them. It reports whether the rounded sum is near enough to the exact one to know it.
//
// The sum of n doubles differs from the exact one by less than n·n·most·2^-53; when that is below a quarter of 10^-places, so is what the product with 10^places
// adds to it, and the nearest whole number is the exact sum.
func wholeSum(sum float64, count int64, most float64, places int8) (int64, bool) {
	if places < 0 || places > exactDigits {
		return 0, false
	}
	n, f := float64(count), float64(sum*tens[places])
	if !(n*n*math.Abs(most)*tens[places] < 1<<51) || !(f > -mostScaled && f < mostScaled) {
		return 0, false
	}
	return int64(f + rounder - rounder), true
}

// mix returns the double nearest to a + (b-a)·num/den, where 0 <= num <= den.
func mix(a, b float64, num, den int64) float64 {
	if a-a != 0 || b-b != 0 || a == b {
		return a + (b-a)*float64(num)/float64(den)
	}
	pa, _, okA := placesOf(a, 0)
	pb, _, okB := placesOf(b, 0)
	if p := max(pa, pb); okA && okB {
		ma, okA := scaled(a, p)
		mb, okB := scaled(b, p)
		scale := tens[p] * float64(den)
		// Products of doubles that stay below 2^53 are exact.
		x, y := float64(float64(ma)*float64(den-num)), float64(float64(mb)*float64(num))
		if okA && okB && scale <= exactWhole && math.Abs(x) < exactWhole/2 && math.Abs(y) < exactWhole/2 {
			return (x + y) / scale
		}
	}
	r, d := ratOfFloat(a), ratOfFloat(b)
	d.Sub(d, r)
	d.Mul(d, big.NewRat(num, den))
	f, _ := r.Add(r, d).Float64()
	return f
}

// ratOfFloat returns the decimal of a finite number.
func ratOfFloat(v float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'e', -1, 64))
	return r
}

func ratOf(n *big.Int, exponent int32) *big.Rat {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent < 0 {
		return new(big.Rat).SetFrac(n, power)
	}
	return new(big.Rat).SetInt(power.Mul(power, n))
}

// linearAt returns the value at t, which lies between two points, of the line through them.
func linearAt(a, b calc.Point, t core.Time) float64 {
	return mix(a.Value, b.Value, int64(t-a.Time), int64(b.Time-a.Time))
}

// percentileOf returns the percentile p, 0 to 100, of values, at least one and none NaN, by method R6: the rank is p/100·(n+1), and between two ranks lies the
// line. The values are left in another order.
func percentileOf(values []float64, p float64) float64 {
	n := int64(len(values))
	places, m, ok := placesOf(p, 0)
	if !ok || m > math.MaxInt64/(n+1) || places > 12 {
		places, m = 9, int64(math.Round(p*1e9))
	}
	num, den := m*(n+1), 100*wholeTens[places] // the rank
	k := num / den
	switch {
	case k < 1:
		return slices.Min(values)
	case k >= n:
		return slices.Max(values)
	}
	low := pickRank(values, int(k-1))
	if num%den == 0 {
		return low
	}
	return mix(low, slices.Min(values[k:]), num%den, den)
}

// pickRank moves the value with k smaller or equal ones before it to its place, k, and those that are greater behind it (quickselect).
func pickRank(values []float64, k int) float64 {
	lo, hi := 0, len(values)-1
	for rounds := 0; hi-lo > 16; rounds++ {
		if rounds > 64 {
			break // an order that the choice of pivots does not suit
		}
		i, j := lo, hi
		pivot := medianOfThree(values[lo], values[lo+(hi-lo)/2], values[hi])
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return values[k]
		}
	}
	slices.Sort(values[lo : hi+1])
	return values[k]
}

func medianOfThree(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }

// moments are what the standard deviation is made of: whole numbers while these fit, else mean and sum of squared distances from it.
type moments struct {
	n            int64
	sum, squares int128 // × 10^-places and 10^-2·places
	places       int8
	loose        bool
	mean, m2     float64
}

func (m *moments) add(v float64) {
	if !m.loose {
		if w, ok := scaled(v, m.places); ok && !m.squares.near() {
			m.n++
			m.sum.addInt(w)
			m.squares.add(square(w))
			return
		}
		if places, _, ok := placesOf(v, m.places+1); ok && m.widen(places) {
			m.add(v)
			return
		}
		m.loosen()
	}
	m.n++
	d := v - m.mean
	m.mean += d / float64(m.n)
	m.m2 += float64(d * (v - m.mean))
}

func (m *moments) widen(places int8) bool {
	sum, squares := m.sum, m.squares
	if by := places - m.places; squares.near() || !sum.timesTen(by) || !squares.timesTen(2*by) || squares.near() {
		return false
	}
	m.sum, m.squares, m.places = sum, squares, places
	return true
}

func (m *moments) loosen() {
	if m.loose {
		return
	}
	if m.n > 0 {
		var sum big.Int
		mean := ratOf(m.sum.big(&sum), -int32(m.places))
		m.mean, _ = mean.Quo(mean, new(big.Rat).SetInt64(m.n)).Float64()
		m.m2, _ = m.spread().Float64()
	}
	m.loose = true
}

// spread returns the sum of squared distances from the mean.
func (m *moments) spread() *big.Rat {
	var sum, squares big.Int
	m.sum.big(&sum)
	m.squares.big(&squares)
	n := big.NewInt(m.n)
	squares.Mul(&squares, n)
	squares.Sub(&squares, sum.Mul(&sum, &sum))
	r := ratOf(&squares, -2*int32(m.places))
	return r.Quo(r, new(big.Rat).SetInt(n))
}

func (m *moments) merge(o *moments) {
	switch {
	case o.n == 0:
		return
	case m.n == 0:
		*m = *o
		return
	}
	if !m.loose && !o.loose {
		other := *o
		if places := max(m.places, o.places); m.widen(places) && other.widen(places) {
			m.n += other.n
			m.sum.add(other.sum)
			m.squares.add(other.squares)
			return
		}
	}
	other := *o
	m.loosen()
	other.loosen()
	n := float64(m.n + other.n)
	d := other.mean - m.mean
	m.m2 += other.m2 + d*d*float64(m.n)*float64(other.n)/n
	m.mean += d * float64(other.n) / n
	m.n += other.n
}

// deviation returns the standard deviation with n, or n-1, in the denominator; of one number it is 0.
func (m *moments) deviation(population bool) float64 {
	n := m.n
	if !population {
		n--
	}
	if n == 0 {
		return 0
	}
	if m.loose {
		return math.Sqrt(m.m2 / float64(n))
	}
	r := m.spread()
	f, _ := r.Quo(r, new(big.Rat).SetInt64(n)).Float64()
	return math.Sqrt(f)
}
