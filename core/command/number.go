package command

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Overflow stands in the Decimals column of a batch for a number whose significand does not fit 64 bits. The pipeline refuses it for a metric of type
// DECIMAL and removes it otherwise: it never reaches the log.
var Overflow = core.Decimal{Significand: 0, Exponent: math.MaxInt32}

// Number is a number as it was sent.
type Number struct {
	Value   float64      // the nearest double
	Decimal core.Decimal // the exact value, or Overflow; only with Inexact
	Inexact bool         // the shortest text of Value is another number than the one sent
}

const (
	// safeDigits is how many decimal digits every double gives back unchanged.
	safeDigits = 15
	// exactPower is the largest power of ten that a double holds exactly.
	exactPower = 22
	// maxExponent bounds the exponents that are kept exactly: beyond it a double is zero or infinite, and printing such a number in plain notation
	// would take pages.
	maxExponent = 400
	// maxSentExponent is what the language allows.
	maxSentExponent = 2147483647
)

var powersOfTen = [exactPower + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
	1e20, 1e21, 1e22}

// decimal is the text of a number taken apart: (-1)^negative x significand x 10^exponent, without trailing zeros in the significand.
type decimal struct {
	negative    bool
	overflow    bool // the significand does not fit 64 bits
	significand uint64
	exponent    int64
	digits      int // of the significand
}

// ParseNumber reads [sign] digits [. digits] [e [sign] digits], with digits before or after the point, or NaN. Numbers beyond the range of a double are
// refused; those too small for it are zero.
func ParseNumber(text string) (Number, bool) {
	if text == "NaN" {
		return Number{Value: math.NaN()}, true
	}
	d, ok := scanDecimal(text)
	if !ok {
		return Number{}, false
	}
	if !d.overflow && d.digits <= safeDigits && d.exponent >= -exactPower && d.exponent <= exactPower {
		// Both operands are exact, so the one rounding gives the nearest double (Clinger 1990).
		v := float64(d.significand)
		if d.exponent < 0 {
			v /= powersOfTen[-d.exponent]
		} else {
			v *= powersOfTen[d.exponent]
		}
		if d.negative {
			v = -v
		}
		return Number{Value: v}, true
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Number{}, false
	}
	n := Number{Value: v}
	n.Inexact = d.exponent >= -maxExponent && !d.shortestOf(v)
	if n.Inexact {
		n.Decimal = d.exact()
	}
	return n, true
}

// shortestOf reports whether the shortest text of v is the number d.
func (d decimal) shortestOf(v float64) bool {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], v, 'e', -1, 64)
	short, ok := scanDecimal(string(text))
	return ok && short == d
}

// exact returns d, or Overflow.
func (d decimal) exact() core.Decimal {
	const minMagnitude = 1 << 63 // of the least int64
	switch {
	case d.overflow, d.significand > minMagnitude, d.significand == minMagnitude && !d.negative:
		return Overflow
	case d.negative:
		return core.Decimal{Significand: -int64(d.significand), Exponent: int32(d.exponent)}
	}
	return core.Decimal{Significand: int64(d.significand), Exponent: int32(d.exponent)}
}

// scanDecimal takes the text of a number apart. ok is false when it is no number.
func scanDecimal(text string) (decimal, bool) {
	var d decimal
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		d.negative = text[i] == '-'
		i++
	}
	zeros := int64(0) // read but not yet in the significand, so that trailing ones never get there
	seen, fraction := false, int64(0)
	point := false
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		seen = true
		if point {
			fraction++
		}
		if c == '0' {
			zeros++
			continue
		}
		d.push(zeros, c-'0')
		zeros = 0
	}
	if !seen {
		return d, false
	}
	exponent, ok := scanExponent(text[i:])
	if !ok {
		return d, false
	}
	if d.digits == 0 {
		return decimal{}, true // a zero is a zero, whatever its sign and exponent
	}
	d.exponent = exponent - fraction + zeros
	return d, true
}

// push appends zeros and a digit to the significand.
func (d *decimal) push(zeros int64, digit byte) {
	if d.digits == 0 {
		zeros = 0 // leading zeros
	}
	for ; zeros > 0 && !d.overflow; zeros-- {
		d.shift(0)
	}
	d.shift(digit)
}

// shift appends one digit, or notes that there is no room for it.
func (d *decimal) shift(digit byte) {
	if d.significand > (math.MaxUint64-9)/10 {
		d.overflow = true
		return
	}
	d.significand = d.significand*10 + uint64(digit)
	d.digits++
}

// scanExponent reads what follows the digits: nothing, or an exponent in the range of the language.
func scanExponent(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	digits := strings.TrimLeft(text[1:], "+-")
	if len(text)-len(digits) > 2 || digits == "" {
		return 0, false
	}
	n := int64(0)
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		if n = n*10 + int64(digits[i]-'0'); n > maxSentExponent {
			return 0, false
		}
	}
	if text[1] == '-' {
		n = -n
	}
	return n, true
}

// appendNumber prints a number so that ParseNumber gives it back.
func appendNumber(dst []byte, n Number) []byte {
	switch {
	case math.IsNaN(n.Value):
		return append(dst, "NaN"...)
	case n.Inexact && n.Decimal != Overflow:
		dst = strconv.AppendInt(dst, n.Decimal.Significand, 10)
		if n.Decimal.Exponent != 0 {
			dst = append(dst, 'e')
			dst = strconv.AppendInt(dst, int64(n.Decimal.Exponent), 10)
		}
		return dst
	}
	return strconv.AppendFloat(dst, n.Value, 'g', -1, 64)
}
