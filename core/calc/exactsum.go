package calc

import (
	"math"
	"math/big"
	"math/bits"
)

// ExactSum adds numbers, each taken for the decimal of its shortest text, without rounding; only the result is rounded, once. NaN is skipped. The zero value is an
// empty sum. It takes 64 bytes.
type ExactSum struct {
	short        int64       // ten-thousandths
	deep         wholeNumber // two's complement, in units of 10^-30
	rest         *big.Int    // what deep has no place for, in units of 10^restExponent; nil = nothing
	count        int64       // of numbers, infinities among them
	above, below int32       // of infinities
}

const (
	deepExponent = -30
	restExponent = -400 // a double has no digit below 10^-341
	restHighest  = 400
	shortFull    = int64(1) << 61 // beyond it short is moved to deep: what a run adds still fits
	shortRun     = 2048           // numbers below 10^15 that are added before that is looked at
)

// Add adds a number.
func (s *ExactSum) Add(v float64) {
	if n := scaled(v); n/exactScale == v && isShort(n) {
		s.count++
		s.addShort(int64(n))
		return
	}
	s.addAny(v, 1)
}

// Remove takes back a number that was added.
func (s *ExactSum) Remove(v float64) {
	if n := scaled(v); n/exactScale == v && isShort(n) {
		s.count--
		s.addShort(-int64(n))
		return
	}
	s.addAny(v, -1)
}

// AddRun adds numbers.
func (s *ExactSum) AddRun(values []float64) {
	for len(values) > shortRun {
		s.addRun(values[:shortRun])
		values = values[shortRun:]
	}
	s.addRun(values)
}

func (s *ExactSum) addRun(values []float64) {
	var sum, others int64
	for _, v := range values {
		n := scaled(v)
		if n/exactScale != v || !isShort(n) {
			s.addAny(v, 1)
			others++
			continue
		}
		sum += int64(n)
	}
	s.count += int64(len(values)) - others
	s.addShort(sum)
}

// AddMultiples adds at most 65,536 numbers, each the double nearest to i/10^places with a whole number i below 2^31. places is at most 15.
//
// A sum of n doubles, rounded after each, is off by less than n·n·most·2^-53. Of 512 of these numbers that is below 1/64 of 10^-places, and so is what
// the product with 10^places adds: the nearest whole number is the exact sum.
func (s *ExactSum) AddMultiples(values []float64, places int) {
	const run = 512
	s.count += int64(len(values))
	ten := powersOfTen[places]
	total := int64(0)
	for ; len(values) > run; values = values[run:] {
		total += int64(math.RoundToEven(sumOfFour(values[:run]) * ten))
	}
	total += int64(math.RoundToEven(sumOfFour(values) * ten))
	if places <= 4 {
		s.addShort(total * int64(powersOfTen[4-places]))
		return
	}
	s.addDeep(decimal{total, -places}, 1)
}

// sumOfFour adds doubles in four sums, which a processor adds up side by side.
func sumOfFour(values []float64) float64 {
	var a, b, c, d float64
	i := 0
	for ; i < len(values)-3; i += 4 {
		a, b, c, d = a+values[i], b+values[i+1], c+values[i+2], d+values[i+3]
	}
	for ; i < len(values); i++ {
		a += values[i]
	}
	return (a + b) + (c + d)
}

// AddInts adds whole numbers.
func (s *ExactSum) AddInts(values []int64) {
	var sum int64
	for _, v := range values {
		if next := sum + v; (next > sum) == (v > 0) {
			sum = next
			continue
		}
		s.addDeep(decimal{sum, 0}, 1)
		sum = v
	}
	s.addDeep(decimal{sum, 0}, 1)
	s.count += int64(len(values))
}

// AddDecimal adds significand * 10^exponent.
func (s *ExactSum) AddDecimal(significand int64, exponent int32) {
	s.count++
	switch {
	case significand == 0 || exponent < restExponent:
	case exponent <= restHighest:
		s.addDeep(decimal{significand, int(exponent)}, 1)
	case significand > 0:
		s.above++
	default:
		s.below++
	}
}

// Merge adds all that was added to o.
func (s *ExactSum) Merge(o *ExactSum) {
	s.count += o.count
	s.above += o.above
	s.below += o.below
	s.addShort(o.short)
	s.deep.add(o.deep)
	if o.rest != nil {
		s.addRest(o.rest)
	}
}

// Count returns how many numbers were added.
func (s *ExactSum) Count() int64 { return s.count }

// Sum returns the double nearest to the sum; of no numbers it is 0.
func (s *ExactSum) Sum() float64 { return s.Over(1) }

// Mean returns the double nearest to the sum divided by the count; of no numbers it is NaN.
func (s *ExactSum) Mean() float64 { return s.Over(s.count) }

// Over returns the double nearest to the sum divided by n.
func (s *ExactSum) Over(n int64) float64 {
	switch {
	case n <= 0 || s.above > 0 && s.below > 0:
		return math.NaN()
	case s.above > 0:
		return math.Inf(1)
	case s.below > 0:
		return math.Inf(-1)
	case s.rest != nil:
		return s.overBig(n)
	}
	if s.deep.isZero() && s.short < wholeLimit && s.short > -wholeLimit && float64(n) < wholeLimit/exactScale {
		return float64(s.short) / (float64(n) * exactScale)
	}
	total := s.deep
	total.add(deepOf(decimal{s.short, -4}, 1))
	negative := total[3]>>63 != 0
	if negative {
		total.negate()
	}
	exponent := deepExponent
	if n == 1 {
		return total.double(negative, exponent)
	}
	// The quotient needs more digits than a double has; a rest is made a last digit, so that what looks like a tie is none.
	for total[2]|total[3] == 0 && !total.isZero() {
		total.timesTen19()
		exponent -= 19
	}
	if rest := total.over(uint64(n)); rest != 0 {
		total[0] |= 1
	}
	return total.double(negative, exponent)
}

// overBig divides with numbers of any size.
func (s *ExactSum) overBig(n int64) float64 {
	total := new(big.Int).Set(s.rest)
	total.Add(total, s.deep.big(deepExponent))
	short := big.NewInt(s.short)
	total.Add(total, short.Mul(short, powerOfTen(-4-restExponent)))
	v, _ := new(big.Rat).SetFrac(total, new(big.Int).Mul(powerOfTen(-restExponent), big.NewInt(n))).Float64()
	return v
}

// addShort adds ten-thousandths.
func (s *ExactSum) addShort(n int64) {
	if s.short > shortFull || s.short < -shortFull {
		s.deep.add(deepOf(decimal{s.short, -4}, 1))
		s.short = 0
	}
	s.short += n
}

// addAny adds sign times any number but those that addShort takes.
func (s *ExactSum) addAny(v float64, sign int64) {
	switch {
	case v != v:
		return
	case math.IsInf(v, 1):
		s.above += int32(sign)
	case math.IsInf(v, -1):
		s.below += int32(sign)
	default:
		s.addDeep(shortest(v), sign)
	}
	s.count += sign
}

// addDeep adds sign times d.
func (s *ExactSum) addDeep(d decimal, sign int64) {
	if d.exponent >= deepExponent && d.exponent-deepExponent < len(deepTens) {
		s.deep.add(deepOf(d, sign))
		return
	}
	n := big.NewInt(d.mantissa)
	n.Mul(n, big.NewInt(sign))
	s.addRest(n.Mul(n, powerOfTen(d.exponent-restExponent)))
}

func (s *ExactSum) addRest(n *big.Int) {
	if s.rest == nil {
		s.rest = new(big.Int)
	}
	s.rest.Add(s.rest, n)
}

// deepTens are the powers of ten in 128 bits. 64 bits times the largest of them leave 2^64 numbers room in 256 bits.
var deepTens = func() (list [39][2]uint64) {
	n := int128{lo: 1}
	for i := range list {
		list[i] = [2]uint64{n.lo, n.hi}
		n, _ = n.timesTen(1)
	}
	return list
}()

// deepOf returns sign times d in units of 10^deepExponent. Its exponent is in the range of deepTens.
func deepOf(d decimal, sign int64) wholeNumber {
	m, ten := magnitude(d.mantissa), deepTens[d.exponent-deepExponent]
	var n wholeNumber
	var low, carry uint64
	n[1], n[0] = bits.Mul64(m, ten[0])
	n[2], low = bits.Mul64(m, ten[1])
	n[1], carry = bits.Add64(n[1], low, 0)
	n[2] += carry
	if (d.mantissa < 0) != (sign < 0) {
		n.negate()
	}
	return n
}

func (n *wholeNumber) add(o wholeNumber) {
	var c uint64
	for i := range n {
		n[i], c = bits.Add64(n[i], o[i], c)
	}
}

func (n *wholeNumber) negate() {
	c := uint64(1)
	for i := range n {
		n[i], c = bits.Add64(^n[i], 0, c)
	}
}

// timesTen19 multiplies by 10^19; the highest word must be free.
func (n *wholeNumber) timesTen19() {
	var carry uint64
	for i := range n {
		hi, lo := bits.Mul64(n[i], tenTo19)
		var c uint64
		n[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
}

// big returns n, a two's complement in units of 10^exponent, in units of 10^restExponent.
func (n wholeNumber) big(exponent int) *big.Int {
	negative := n[3]>>63 != 0
	if negative {
		n.negate()
	}
	total := new(big.Int)
	for i := len(n) - 1; i >= 0; i-- {
		total.Add(total.Lsh(total, 64), new(big.Int).SetUint64(n[i]))
	}
	if negative {
		total.Neg(total)
	}
	return total.Mul(total, powerOfTen(exponent-restExponent))
}
