package calc

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-db/tidemark/core/cells"
)

// Number is a decimal number read from text.
type Number struct {
	// Value is the nearest double; ±Inf beyond the range of doubles, NaN for the literal NaN.
	Value float64
	// Exact reports that Significand × 10^Exponent is the number without any rounding, which DECIMAL metrics need. The significand has no trailing zeros.
	Exact       bool
	Significand int64
	Exponent    int32
}

var (
	errNumberSyntax   = errors.New("not a number: write digits with an optional sign, fraction and exponent")
	errNumberExponent = errors.New("the exponent is out of range -2147483647 to 2147483647")
)

// ParseNumber reads [+-]digits[.digits][e[+-]digits] with at least one digit before the exponent, or the literal NaN. Unlike strconv it knows no
// hexadecimal, underscores or infinities. It does not allocate on success.
func ParseNumber(text string) (Number, error) {
	if text == "NaN" {
		return Number{Value: math.NaN()}, nil
	}
	s := decimalScanner{text: text}
	if err := s.scan(); err != nil {
		return Number{}, fmt.Errorf("number %q: %w", text, err)
	}
	n := Number{}
	n.Significand, n.Exponent, n.Exact = s.exact()
	if v, ok := s.double(); ok {
		n.Value = v
		return n, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return Number{}, fmt.Errorf("number %q: %w", text, errNumberSyntax)
	}
	n.Value = v
	return n, nil
}

// decimalScanner collects a decimal number: ±mantissa × 10^exponent, where the mantissa has lost its trailing zeros.
type decimalScanner struct {
	text     string
	pos      int
	negative bool
	mantissa uint64
	digits   int   // of the mantissa, leading zeros not counted
	zeros    int   // seen since the last other digit, not part of the mantissa yet
	exponent int64 // of the mantissa's last digit
	overflow bool  // the mantissa does not fit 64 bits
}

func (s *decimalScanner) scan() error {
	if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
		s.negative = s.text[s.pos] == '-'
		s.pos++
	}
	start := s.pos
	s.run()
	count := s.pos - start
	s.exponent = int64(s.zeros)
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		s.pos++
		point := s.pos
		s.run()
		fraction := s.pos - point
		count += fraction
		s.exponent = int64(s.zeros) - int64(fraction)
	}
	if count == 0 {
		return errNumberSyntax
	}
	if s.pos < len(s.text) && s.text[s.pos]|0x20 == 'e' {
		return s.scanExponent()
	}
	if s.pos < len(s.text) {
		return errNumberSyntax
	}
	return nil
}

// run takes digits. Zeros wait until another digit proves them inner ones.
func (s *decimalScanner) run() {
	for ; s.pos < len(s.text); s.pos++ {
		d := s.text[s.pos] - '0'
		switch {
		case d > 9:
			return
		case d == 0:
			s.zeros++
		default:
			if s.digits > 0 {
				for ; s.zeros > 0 && !s.overflow; s.zeros-- {
					s.push(0)
				}
			}
			s.zeros = 0
			s.push(uint64(d))
		}
	}
}

func (s *decimalScanner) push(d uint64) {
	s.digits++
	if s.digits > 19 || s.overflow { // 19 digits always fit 64 bits
		s.overflow = true
		return
	}
	s.mantissa = s.mantissa*10 + d
}

func (s *decimalScanner) scanExponent() error {
	s.pos++
	negative := false
	if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
		negative = s.text[s.pos] == '-'
		s.pos++
	}
	start := s.pos
	var e int64
	for ; s.pos < len(s.text); s.pos++ {
		d := s.text[s.pos] - '0'
		if d > 9 {
			return errNumberSyntax
		}
		if e = e*10 + int64(d); e > math.MaxInt32 {
			return errNumberExponent
		}
	}
	if s.pos == start {
		return errNumberSyntax
	}
	if negative {
		e = -e
	}
	s.exponent += e
	return nil
}

// exact returns the number as significand and exponent when they fit.
func (s *decimalScanner) exact() (significand int64, exponent int32, ok bool) {
	if s.digits == 0 {
		return 0, 0, true
	}
	limit := uint64(math.MaxInt64)
	if s.negative {
		limit++
	}
	if s.overflow || s.mantissa > limit || s.exponent > math.MaxInt32 || s.exponent < -math.MaxInt32 {
		return 0, 0, false
	}
	if s.negative {
		return -int64(s.mantissa), int32(s.exponent), true
	}
	return int64(s.mantissa), int32(s.exponent), true
}

// double converts directly where both factors are exact doubles, so that their product or quotient is rounded once.
func (s *decimalScanner) double() (float64, bool) {
	if s.overflow || s.mantissa > 1<<53 || s.exponent > 22 || s.exponent < -22 {
		return 0, false
	}
	v := float64(s.mantissa)
	if s.exponent >= 0 {
		v *= powersOfTen[s.exponent]
	} else {
		v /= powersOfTen[-s.exponent]
	}
	if s.negative {
		v = -v
	}
	return v, true
}

var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// AppendStored appends the number of a stored sample: the shortest decimal that reads back as v, in plain notation, without a fraction for an integral
// value. v is finite: NaN is null or NaN by the caller's format.
func AppendStored(b []byte, v float64) []byte { return cells.AppendNumber(b, v) }

// AppendComputed appends a number that a calculation gave: as AppendStored with at least one digit of fraction, 6.0.
func AppendComputed(b []byte, v float64) []byte {
	b = AppendStored(b, v)
	if v == math.Trunc(v) {
		b = append(b, ".0"...)
	}
	return b
}

// AppendDecimal appends significand × 10^exponent in plain notation, exactly.
func AppendDecimal(b []byte, significand int64, exponent int32) []byte {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], significand, 10)
	if digits[0] == '-' {
		b, digits = append(b, '-'), digits[1:]
	}
	switch point := len(digits) + int(exponent); {
	case significand == 0:
		b = append(b, '0')
	case exponent >= 0:
		b = appendZeros(append(b, digits...), int(exponent))
	case point > 0:
		b = append(append(append(b, digits[:point]...), '.'), digits[point:]...)
	default:
		b = append(appendZeros(append(b, "0."...), -point), digits...)
	}
	return b
}

func appendZeros(b []byte, n int) []byte {
	for range n {
		b = append(b, '0')
	}
	return b
}
