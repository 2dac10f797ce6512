package command

import (
	"math"
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
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
	// safeSignificand has one digit more than every double gives back unchanged: 15.
	safeSignificand = 1e15
	// safeExponent keeps numbers of 15 digits far from the ends of the range, where doubles have fewer digits.
	safeExponent = 256
	// minExponent is the least exponent that is kept exactly: printing a number below it in plain notation would take pages, and a double has it as zero.
	minExponent = -400
)

// ParseNumber reads what calc.ParseNumber reads, except that numbers beyond the range of a double are refused; those too small for it are zero.
func ParseNumber(text string) (Number, bool) {
	n, err := calc.ParseNumber(text)
	switch {
	case err != nil, math.IsInf(n.Value, 0):
		return Number{}, false
	case n.Value == 0:
		n.Value = 0 // a zero has no sign
	}
	sent := Number{Value: n.Value}
	switch s := n.Significand; {
	case math.IsNaN(n.Value):
	case !n.Exact:
		sent.Inexact, sent.Decimal = true, Overflow
	case s > -safeSignificand && s < safeSignificand && n.Exponent > -safeExponent && n.Exponent < safeExponent, n.Exponent < minExponent:
	case !shortest(n):
		sent.Inexact, sent.Decimal = true, core.Decimal{Significand: s, Exponent: n.Exponent}
	}
	return sent, true
}

// shortest reports whether the shortest text of the double nearest to n is n itself.
func shortest(n calc.Number) bool {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], n.Value, 'e', -1, 64)
	short, err := calc.ParseNumber(string(text))
	return err == nil && short.Exact && short.Significand == n.Significand && short.Exponent == n.Exponent
}

// appendNumber prints a number so that ParseNumber gives it back. The notation has an exponent, so that no number is longer than a few words.
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
