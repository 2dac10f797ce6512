package calc

import (
	"bytes"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// Exact arithmetic takes a double for the decimal number of its shortest text, 0.1 for one tenth, and rounds once: the result is the double nearest to the exact
// decimal result. So 3 * 0.1 is 0.3. Most numbers are whole multiples of 1/10000 with at most 15 digits; of the decimals that short only one reads back as a given
// double, so that a division tells whether a number is one, and sums of them are exact in whole numbers. Others are taken apart digit by digit.

const (
	exactScale = 1e4
	exactLimit = 1e15    // 15 digits; twice as much is still below 2^53, so that sums of two are exact
	wholeLimit = 1 << 53 // below it all whole numbers are doubles
	roundMagic = 3 << 51 // added to a double below 2^51 it leaves no place for a fraction
	fineScale  = 1e8     // for numbers with more decimals
	maxTen     = 22      // the largest power of ten that is a double

	tenTo19 = uint64(1e19) // the largest in 64 bits
)

// scaled returns v*10^4 rounded; v is that many ten-thousandths if dividing gives it back and isShort holds.
func scaled(v float64) float64 { return (float64(v*exactScale) + roundMagic) - roundMagic }

func isShort(n float64) bool { return n < exactLimit && n > -exactLimit }

// Plus returns a + b.
func Plus(a, b float64) float64 {
	x, y := scaled(a), scaled(b)
	if x/exactScale == a && y/exactScale == b && isShort(x) && isShort(y) {
		return (x + y) / exactScale
	}
	return plusAny(a, b)
}

// Minus returns a - b.
func Minus(a, b float64) float64 { return Plus(a, -b) }

// Times returns a * b.
func Times(a, b float64) float64 {
	x, y := scaled(a), scaled(b)
	if x/exactScale == a && y/exactScale == b && isShort(x) && isShort(y) {
		if p := x * y; p < wholeLimit && p > -wholeLimit {
			return p/(exactScale*exactScale) + 0 // decimals have no negative zero
		}
	}
	return timesAny(a, b)
}

// PlusRun sets dst[i] to a[i] + b[i]. MinusRun and TimesRun likewise. One of a and b may have a single element, which stands for all; dst may be either of them.
func PlusRun(dst, a, b []float64) {
	switch {
	case len(b) == 1:
		plusConstant(dst, a, b[0], 1)
	case len(a) == 1:
		plusConstant(dst, b, a[0], 1)
	default:
		plusVectors(dst, a, b, 1)
	}
}

// MinusRun sets dst[i] to a[i] - b[i].
func MinusRun(dst, a, b []float64) {
	switch {
	case len(b) == 1:
		plusConstant(dst, a, -b[0], 1)
	case len(a) == 1:
		plusConstant(dst, b, a[0], -1)
	default:
		plusVectors(dst, a, b, -1)
	}
}

// plusVectors sets dst to a + sign*b.
func plusVectors(dst, a, b []float64, sign float64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, v := range a {
		w := sign * b[i]
		x, y := scaled(v), scaled(w)
		if x/exactScale == v && y/exactScale == w && isShort(x) && isShort(y) {
			dst[i] = (x + y) / exactScale
		} else {
			dst[i] = plusAny(v, w)
		}
	}
}

// plusConstant sets dst to sign*a + c.
func plusConstant(dst, a []float64, c, sign float64) {
	y := scaled(c)
	short := y/exactScale == c && isShort(y)
	a = a[:len(dst)]
	for i, v := range a {
		v *= sign
		if x := scaled(v); short && x/exactScale == v && isShort(x) {
			dst[i] = (x + y) / exactScale
		} else {
			dst[i] = plusAny(v, c)
		}
	}
}

// TimesRun sets dst[i] to a[i] * b[i].
func TimesRun(dst, a, b []float64) {
	switch {
	case len(b) == 1:
		timesConstant(dst, a, b[0])
	case len(a) == 1:
		timesConstant(dst, b, a[0])
	default:
		a, b = a[:len(dst)], b[:len(dst)]
		for i, v := range a {
			dst[i] = Times(v, b[i])
		}
	}
}

func timesConstant(dst, a []float64, c float64) {
	factor, divisor := math.NaN(), 1.0 // NaN: no product is short
	if c-c == 0 {
		if d := shortest(c); d.exponent <= 0 && d.exponent >= 4-maxTen && magnitude(d.mantissa) < wholeLimit {
			factor, divisor = float64(d.mantissa), exactScale*powersOfTen[-d.exponent]
		}
	}
	a = a[:len(dst)]
	for i, v := range a {
		x := scaled(v)
		if p := x * factor; x/exactScale == v && isShort(x) && p < wholeLimit && p > -wholeLimit {
			dst[i] = p/divisor + 0
		} else {
			dst[i] = timesAny(v, c)
		}
	}
}

// decimal is mantissa * 10^exponent.
type decimal struct {
	mantissa int64
	exponent int
}

// shortest takes a finite number apart: its shortest text has at most 17 digits.
func shortest(v float64) decimal {
	if v == math.Trunc(v) && v < wholeLimit && v > -wholeLimit {
		return decimal{int64(v), 0}
	}
	if x := scaled(v); x/exactScale == v && isShort(x) {
		return decimal{int64(x), -4}.trimmed()
	}
	if x := math.Round(v * fineScale); x/fineScale == v && isShort(x) {
		return decimal{int64(x), -8}.trimmed()
	}
	var buf [32]byte
	return readShortest(strconv.AppendFloat(buf[:0], v, 'e', -1, 64))
}

// readShortest reads [-]d[.ddd]e±dd as strconv writes it.
func readShortest(text []byte) (d decimal) {
	mark, first := bytes.IndexByte(text, 'e'), 0
	if text[0] == '-' {
		first = 1
	}
	for _, c := range text[first:mark] {
		if c != '.' {
			d.mantissa = d.mantissa*10 + int64(c-'0')
		}
	}
	for _, c := range text[mark+2:] {
		d.exponent = d.exponent*10 + int(c-'0')
	}
	if text[mark+1] == '-' {
		d.exponent = -d.exponent
	}
	if fraction := mark - first - 2; fraction > 0 {
		d.exponent -= fraction
	}
	if first == 1 {
		d.mantissa = -d.mantissa
	}
	return d
}

// trimmed takes zeros off the end of a mantissa of ten-thousandths or less.
func (d decimal) trimmed() decimal {
	for d.exponent < 0 && d.mantissa%10 == 0 {
		d.mantissa /= 10
		d.exponent++
	}
	return d
}

// plusAny adds any two numbers. What needs more than 128 bits is added as doubles.
func plusAny(a, b float64) float64 {
	if !(a-a == 0 && b-b == 0) { // not finite
		return a + b
	}
	if sum := a + b; a == math.Trunc(a) && b == math.Trunc(b) && sum < wholeLimit && sum > -wholeLimit {
		return sum
	}
	x, y := shortest(a), shortest(b)
	if x.mantissa == 0 || y.mantissa == 0 {
		return a + b
	}
	if x.exponent < y.exponent {
		x, y = y, x
	}
	n, ok := wide(x.mantissa).timesTen(x.exponent - y.exponent)
	if !ok {
		return a + b
	}
	n, ok = n.plus(wide(y.mantissa))
	if !ok {
		return a + b
	}
	return n.double(y.exponent)
}

// timesAny multiplies any two numbers: two mantissas of 17 digits always fit 128 bits.
func timesAny(a, b float64) float64 {
	if !(a-a == 0 && b-b == 0) {
		return a * b
	}
	x, y := shortest(a), shortest(b)
	if x.mantissa == 0 || y.mantissa == 0 {
		return 0
	}
	hi, lo := bits.Mul64(magnitude(x.mantissa), magnitude(y.mantissa))
	return int128{(x.mantissa < 0) != (y.mantissa < 0), hi, lo}.double(x.exponent + y.exponent)
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

// int128 is a sign and 128 bits.
type int128 struct {
	negative bool
	hi, lo   uint64
}

func wide(i int64) int128 { return int128{negative: i < 0, lo: magnitude(i)} }

// timesTen returns n*10^power; ok is false when that has too many digits.
func (n int128) timesTen(power int) (product int128, ok bool) {
	for power > 0 {
		step := min(power, 19)
		power -= step
		ten := tens[step]
		over, hi := bits.Mul64(n.hi, ten)
		carry, lo := bits.Mul64(n.lo, ten)
		hi, c := bits.Add64(hi, carry, 0)
		if over != 0 || c != 0 {
			return n, false
		}
		n.hi, n.lo = hi, lo
	}
	return n, true
}

func (n int128) plus(o int128) (sum int128, ok bool) {
	if n.negative == o.negative {
		lo, c := bits.Add64(n.lo, o.lo, 0)
		hi, c := bits.Add64(n.hi, o.hi, c)
		return int128{n.negative, hi, lo}, c == 0
	}
	if n.hi < o.hi || n.hi == o.hi && n.lo < o.lo {
		n, o = o, n
	}
	lo, c := bits.Sub64(n.lo, o.lo, 0)
	hi, _ := bits.Sub64(n.hi, o.hi, c)
	return int128{n.negative, hi, lo}, true
}

// double returns the double nearest to n*10^exponent.
func (n int128) double(exponent int) float64 {
	if n.hi == 0 && n.lo < wholeLimit && exponent <= maxTen && exponent >= -maxTen {
		v := float64(n.lo)
		if exponent < 0 {
			v /= powersOfTen[-exponent]
		} else {
			v *= powersOfTen[exponent]
		}
		return signed(v, n.negative)
	}
	return wholeNumber{n.lo, n.hi}.double(n.negative, exponent)
}

func signed(v float64, negative bool) float64 {
	if negative && v != 0 {
		return -v
	}
	return v
}

// tens are the powers of ten in 64 bits.
var tens = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, tenTo19}

// wholeNumber is a magnitude of 256 bits, the lowest word first.
type wholeNumber [4]uint64

func (n wholeNumber) isZero() bool { return n[0]|n[1]|n[2]|n[3] == 0 }

// over divides by a word and returns the rest.
func (n *wholeNumber) over(d uint64) (rest uint64) {
	for i := len(n) - 1; i >= 0; i-- {
		n[i], rest = bits.Div64(rest, n[i], d)
	}
	return rest
}

// double returns the double nearest to n*10^exponent: strconv rounds the decimal text.
func (n wholeNumber) double(negative bool, exponent int) float64 {
	var buf [128]byte // 256 bits are 78 digits
	at := 100
	text := strconv.AppendInt(append(buf[:at], 'e'), int64(exponent), 10)
	for {
		rest := n.over(tenTo19)
		last := n.isZero()
		for range 19 {
			at--
			buf[at] = byte('0' + rest%10)
			if rest /= 10; rest == 0 && last {
				break
			}
		}
		if last {
			break
		}
	}
	v, _ := strconv.ParseFloat(string(text[at:]), 64) // beyond the range of doubles it is infinite
	return signed(v, negative)
}

// Saturated cuts a number to a whole one: what is beyond an int64 is the nearest there is, and NaN is 0. What int64(v) makes of these depends on the processor.
func Saturated(v float64) int64 {
	const edge = 1 << 63
	switch {
	case v >= edge:
		return math.MaxInt64
	case v < -edge:
		return math.MinInt64
	case v != v:
		return 0
	}
	return int64(v)
}

// Round rounds the decimal of a number to so many places after the point, before it when places is negative: half away from zero.
func Round(v float64, places int) float64 {
	if v-v != 0 {
		return v
	}
	d := shortest(v)
	drop := -places - d.exponent // digits to drop
	if drop <= 0 || d.mantissa == 0 {
		return v
	}
	if drop > 19 {
		return 0
	}
	n, ten := magnitude(d.mantissa), tens[drop]
	q := n / ten
	if rest := n % ten; rest >= ten-rest {
		q++
	}
	return int128{negative: d.mantissa < 0, lo: q}.double(-places)
}

func powerOfTen(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
