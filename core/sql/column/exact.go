package column

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// Most numbers are the shortest decimal text of a double. Those that are not, such as 2^53 + 1, are in Vector.Exact beside the nearest double, and as a Value have
// their digits in Text. What compares numbers looks at the doubles first: only when these are equal do the digits decide, by Excess.

// mostDigits is how many digits a decimal may have that a double surely gives back.
const mostDigits = 15

// isDouble reports whether a whole number is one of those up to which all are doubles.
func isDouble(n int64) bool {
	const wholes = 1 << 53
	return n <= wholes && n >= -wholes
}

// ExactAt returns the decimal of row i that Floats do not give exactly.
func (v *Vector) ExactAt(i int) (core.Decimal, bool) {
	if v.Exact == nil {
		return core.Decimal{}, false
	}
	at, ok := slices.BinarySearchFunc(v.Exact, uint32(v.Index(i)), func(d core.DecimalAt, i uint32) int { return int(d.Index) - int(i) })
	if !ok {
		return core.Decimal{}, false
	}
	return v.Exact[at].Decimal, true
}

// Digits returns the numbers among the first n rows that have more digits than a double, whatever the vector holds them as.
func (v *Vector) Digits(n int) (list []core.DecimalAt) {
	switch {
	case v.Floats != nil && (v.Exact == nil || !v.Const):
		return v.Exact
	case v.Type == Boolean || v.Type == Timestamp || v.Floats == nil && v.Ints == nil && v.Strings == nil && v.Values == nil:
		return nil
	}
	for i := range n {
		at := v.Index(i)
		if v.IsNull(i) || v.Strings != nil && len(v.Strings[at]) <= mostDigits || v.Ints != nil && isDouble(v.Ints[at]) {
			continue // the usual case, cheaply
		}
		x := v.Value(i)
		if x.Type == String {
			x = ParseValue(x.Text)
		}
		d, ok := x.Decimal()
		if ok {
			list = append(list, core.DecimalAt{Index: uint32(i), Decimal: d})
		} else if v.Const {
			break
		}
	}
	return list
}

// SetNumber overwrites row i of a vector that holds Floats and is not Const.
func (v *Vector) SetNumber(i int, x Value) {
	v.Floats[i] = x.anyFloat()
	at, found := slices.BinarySearchFunc(v.Exact, uint32(i), func(d core.DecimalAt, i uint32) int { return int(d.Index) - int(i) })
	d, ok := x.Decimal()
	switch {
	case ok && found:
		v.Exact[at].Decimal = d
	case ok:
		v.Exact = slices.Insert(v.Exact, at, core.DecimalAt{Index: uint32(i), Decimal: d})
	case found:
		v.Exact = slices.Delete(v.Exact, at, at+1)
	}
}

// pickExact returns the decimals of the given rows, numbered by their places there.
func pickExact(exact []core.DecimalAt, rows []int32) []core.DecimalAt {
	v := Vector{Exact: exact}
	var out []core.DecimalAt
	for i, row := range rows {
		if d, ok := v.ExactAt(int(row)); ok {
			out = append(out, core.DecimalAt{Index: uint32(i), Decimal: d})
		}
	}
	return out
}

func sliceExact(exact []core.DecimalAt, from, to int) []core.DecimalAt {
	var out []core.DecimalAt
	for _, d := range exact {
		if i := int(d.Index); i >= from && i < to {
			out = append(out, core.DecimalAt{Index: uint32(i - from), Decimal: d.Decimal})
		}
	}
	return out
}

// DecimalValue is a number that f, the double nearest to it, may not give exactly.
func DecimalValue(t Type, f float64, d core.Decimal) Value {
	v := Value{Type: t, Float: f}
	if Excess(d, f) != 0 {
		v.Text = string(calc.AppendDecimal(nil, d.Significand, d.Exponent))
	}
	return v
}

// ParseValue reads a number from a text, with all its digits; what is no number is NaN.
func ParseValue(text string) Value {
	f := ParseFloat(text)
	if len(text) > mostDigits && f-f == 0 {
		if n, err := calc.ParseNumber(text); err == nil && n.Exact {
			return DecimalValue(Double, f, core.Decimal{Significand: n.Significand, Exponent: n.Exponent})
		}
	}
	return FloatValue(Double, f)
}

// Decimal returns the digits of a number when the nearest double does not give them back; ok is false for all others.
func (v Value) Decimal() (d core.Decimal, ok bool) {
	switch {
	case v.isInt():
		return core.Decimal{Significand: v.Int}, ExcessOfInt(v.Int) != 0
	case v.Text == "" || !v.Type.Numeric():
		return d, false
	}
	n, err := calc.ParseNumber(v.Text)
	if err != nil || !n.Exact {
		return d, false
	}
	d = core.Decimal{Significand: n.Significand, Exponent: n.Exponent}
	return d, Excess(d, v.Float) != 0
}

// Excess is how much a number is greater than the shortest text of f, the double nearest to it, in units that depend on f alone. Numbers that have the same nearest
// double are ordered by it; that of the text itself is 0.
func Excess(d core.Decimal, f float64) int16 {
	if f == 0 || f-f != 0 {
		return 0
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], math.Abs(f), 'e', -1, 64)
	point := slices.Index(text, 'e')
	exponent, err := strconv.Atoi(string(text[point+1:]))
	if err != nil {
		return 0
	}
	shortest := int64(0)
	digits := 0
	for _, c := range text[:point] {
		if c != '.' {
			shortest = shortest*10 + int64(c-'0')
			digits++
		}
	}
	if f < 0 {
		shortest = -shortest
	}
	// Half a unit in the last place of f is less than 12,000 of these, and so is what its text differs from f; d has no more digits than that.
	unit := exponent - 19
	a, b := inUnits(d.Significand, int(d.Exponent)-unit), inUnits(shortest, exponent-digits+1-unit)
	switch difference := a.Sub(a, b); {
	case difference.IsInt64() && difference.Int64() == int64(int16(difference.Int64())):
		return int16(difference.Int64())
	case difference.Sign() < 0:
		return math.MinInt16
	}
	return math.MaxInt16
}

// ExcessOfInt is Excess of a whole number.
func ExcessOfInt(n int64) int16 {
	if isDouble(n) {
		return 0
	}
	return Excess(core.Decimal{Significand: n}, float64(n))
}

// inUnits is n·10^power. Powers that only a number far from its double could have are cut.
func inUnits(n int64, power int) *big.Int {
	x := big.NewInt(n)
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(min(max(power, -power), 40))), nil)
	if power < 0 {
		return x.Quo(x, ten)
	}
	return x.Mul(x, ten)
}

// excess is Excess of a number; 0 for all that a double gives exactly.
func (v Value) excess() int16 {
	if v.isInt() {
		return ExcessOfInt(v.Int)
	}
	d, ok := v.Decimal()
	if !ok {
		return 0
	}
	return Excess(d, v.Float)
}
