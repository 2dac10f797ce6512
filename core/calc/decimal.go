package calc

import (
	"math/big"
	"strconv"
)

// decimalSum adds decimal numbers without rounding. A double stands for the shortest decimal that reads back as it: 0.1 is one tenth.
type decimalSum struct {
	sum      big.Int // × 10^exponent
	exponent int
	some     bool
	term     big.Int
	text     []byte
}

// add takes the number v times sign, which is 1 or -1. v is finite.
func (s *decimalSum) add(v float64, sign int64) {
	s.text = strconv.AppendFloat(s.text[:0], v, 'e', -1, 64)
	n, err := ParseNumber(string(s.text))
	if err != nil || !n.Exact {
		return // infinities, which no sample has
	}
	s.term.SetInt64(sign * n.Significand)
	exponent := int(n.Exponent)
	switch {
	case !s.some:
		s.exponent, s.some = exponent, true
	case exponent < s.exponent:
		s.sum.Mul(&s.sum, powerOfTen(s.exponent-exponent))
		s.exponent = exponent
	case exponent > s.exponent:
		s.term.Mul(&s.term, powerOfTen(exponent-s.exponent))
	}
	s.sum.Add(&s.sum, &s.term)
}

// over returns the double nearest to the sum divided by n.
func (s *decimalSum) over(n int64) float64 {
	value := new(big.Rat).SetInt(&s.sum)
	power := new(big.Rat).SetInt(powerOfTen(max(s.exponent, -s.exponent)))
	if s.exponent < 0 {
		power.Inv(power)
	}
	value.Mul(value, power)
	value.Quo(value, new(big.Rat).SetInt64(n))
	nearest, _ := value.Float64()
	return nearest
}

func powerOfTen(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// decimalMean returns the double nearest to the exact mean of decimal numbers.
func decimalMean(values []float64) float64 { return decimalAll(values).over(int64(len(values))) }

// decimalExactSum returns the double nearest to the exact sum of decimal numbers.
func decimalExactSum(values []float64) float64 { return decimalAll(values).over(1) }

func decimalAll(values []float64) *decimalSum {
	s := &decimalSum{}
	for _, v := range values {
		s.add(v, 1)
	}
	return s
}

// decimalDifference returns the double nearest to the exact difference a - b of decimal numbers.
func decimalDifference(a, b float64) float64 {
	s := &decimalSum{}
	s.add(a, 1)
	s.add(b, -1)
	return s.over(1)
}
