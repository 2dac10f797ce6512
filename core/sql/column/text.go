package column

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// AsText returns the value as CONCAT, CAST AS STRING, LIKE and the string functions see it: numbers with at most two decimals, instants as ISO text in UTC.
// NULL and NaN have no text.
func (v Value) AsText() (text string, ok bool) {
	switch {
	case v.Type == String:
		return v.Text, true
	case v.Type == Null, v.IsNaN():
		return "", false
	}
	return string(v.AppendText(nil)), true
}

// AsText returns row i as Value.AsText does.
func (v *Vector) AsText(i int) (text string, ok bool) {
	if v.Strings != nil && v.Nulls == nil {
		return v.Strings[v.Index(i)], true
	}
	return v.Value(i).AsText()
}

// AppendText appends the text that AsText returns; of NULL and NaN it is empty.
func (v Value) AppendText(b []byte) []byte {
	switch v.Type {
	case Null:
		return b
	case String:
		return append(b, v.Text...)
	case Boolean:
		return strconv.AppendBool(b, v.Int != 0)
	case Timestamp:
		return dates.AppendISO(b, core.Time(v.Int))
	}
	if v.Whole {
		return strconv.AppendInt(b, v.Int, 10)
	}
	if d, ok := v.Decimal(); ok {
		return appendShortDecimal(b, d)
	}
	return AppendShort(b, v.Float)
}

// appendShortDecimal is AppendShort of the digits of a number.
func appendShortDecimal(b []byte, d core.Decimal) []byte {
	if d.Exponent >= -2 {
		return calc.AppendDecimal(b, d.Significand, d.Exponent)
	}
	if d.Exponent < -21 {
		return append(b, '0')
	}
	ten := inUnits(1, -2-int(d.Exponent))
	whole, rest := new(big.Int).QuoRem(big.NewInt(d.Significand), ten, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).Cmp(ten) > 0 { // a tie goes toward zero
		whole.Add(whole, big.NewInt(int64(big.NewInt(d.Significand).Sign())))
	}
	return appendHundredths(b, whole.Int64())
}

// AppendShort appends a number by the #.## rule: at most two decimals, no trailing zeros, no grouping and no exponent. It is rounded to the nearest hundredth of
// its decimal text, an exact tie toward zero. NaN is empty.
func AppendShort(b []byte, f float64) []byte {
	const exact = 1e15 // below it a double has at most one decimal of 15 digits that reads back as it
	switch {
	case f != f:
		return b
	case math.IsInf(f, 0):
		return append(b, Value{Type: Double, Float: f}.Format()...)
	case f == math.Trunc(f) && math.Abs(f) < exact:
		return strconv.AppendInt(b, int64(f), 10)
	}
	if n := math.Round(f * 1e4); math.Abs(n) < exact && n/1e4 == f {
		return appendHundredths(b, nearestHundredth(int64(n)))
	}
	return appendCut(b, f)
}

// nearestHundredth divides ten-thousandths by 100; a tie goes toward zero.
func nearestHundredth(n int64) int64 {
	q, rest := n/100, n%100
	switch {
	case rest > 50:
		q++
	case rest < -50:
		q--
	}
	return q
}

func appendHundredths(b []byte, n int64) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, n/100, 10)
	switch f := n % 100; {
	case f == 0:
		return b
	case f%10 == 0:
		return append(b, '.', byte('0'+f/10))
	default:
		return append(b, '.', byte('0'+f/10), byte('0'+f%10))
	}
}

// appendCut works on the digits of the shortest text of a number with many of them.
func appendCut(b []byte, f float64) []byte {
	text := strconv.FormatFloat(math.Abs(f), 'f', -1, 64)
	point := strings.IndexByte(text, '.')
	if point < 0 || len(text) <= point+3 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	// What is left has few digits before the point: a double of 1e15 and more has less than three behind it.
	whole, err := strconv.ParseInt(text[:point]+text[point+1:point+3], 10, 64)
	if err != nil {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	if rest := text[point+3:]; rest[0] > '5' || rest[0] == '5' && len(rest) > 1 {
		whole++
	}
	if f < 0 {
		whole = -whole
	}
	return appendHundredths(b, whole)
}

// FormatValue returns row i as results show it, without quotes: numbers in their shortest plain text, instants as ISO text in UTC. NULL is empty.
func FormatValue(v *Vector, i int) string {
	if d, ok := v.ExactAt(i); ok && !v.IsNull(i) {
		return string(calc.AppendDecimal(nil, d.Significand, d.Exponent))
	}
	return v.Value(i).Format()
}

// Format returns the value as FormatValue does.
func (v Value) Format() string {
	switch {
	case !v.Type.Numeric():
		return string(v.AppendText(nil))
	case v.Text != "": // a number may bring its spelling
		return v.Text
	case v.Whole:
		return strconv.FormatInt(v.Int, 10)
	case v.Float != v.Float:
		return "NaN"
	case math.IsInf(v.Float, 1):
		return "Infinity"
	case math.IsInf(v.Float, -1):
		return "-Infinity"
	}
	return string(calc.AppendStored(nil, v.Float))
}
