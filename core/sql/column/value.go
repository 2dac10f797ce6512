package column

import (
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// NullValue is NULL. It is the zero Value.
var NullValue = Value{}

// IntValue is a whole number, or an instant when t is Timestamp.
func IntValue(t Type, i int64) Value { return Value{Type: t, Int: i, Whole: t.Numeric()} }

// FloatValue is a number of a numeric type; NaN is a value.
func FloatValue(t Type, f float64) Value { return Value{Type: t, Float: f} }

// TextValue is a string.
func TextValue(s string) Value { return Value{Type: String, Text: s} }

// TimeValue is an instant of type Timestamp.
func TimeValue(t core.Time) Value { return Value{Type: Timestamp, Int: int64(t)} }

// BoolValue is true or false.
func BoolValue(b bool) Value {
	if b {
		return Value{Type: Boolean, Int: 1}
	}
	return Value{Type: Boolean}
}

// IsNull reports whether the value is NULL.
func (v Value) IsNull() bool { return v.Type == Null }

// IsNaN reports whether the value is the number NaN.
func (v Value) IsNaN() bool { return v.Type.Numeric() && !v.Whole && v.Float != v.Float }

// IsTrue reports whether the value is the boolean true.
func (v Value) IsTrue() bool { return v.Type == Boolean && v.Int != 0 }

// Number returns the value as a number: instants in Unix milliseconds, texts as they are parsed. What is no number is NaN.
func (v Value) Number() float64 {
	switch v.Type {
	case Null, Boolean:
		return math.NaN()
	case Timestamp:
		return float64(v.Int)
	case String:
		return ParseFloat(v.Text)
	}
	if v.Whole {
		return float64(v.Int)
	}
	return v.Float
}

// ParseFloat reads a number from a text; what is no number is NaN.
func ParseFloat(text string) float64 {
	if text == "" || text[0] > '9' || text[0] < '+' { // the most frequent ways not to be a number, without an error that must be made
		return math.NaN()
	}
	n, err := calc.ParseNumber(text)
	if err != nil {
		return math.NaN()
	}
	return n.Value
}

// Clone returns a value that shares no memory with the vector it came from.
func (v Value) Clone() Value {
	v.Text = strings.Clone(v.Text)
	return v
}

// Value returns row i.
func (v *Vector) Value(i int) Value {
	if v.Type == Null {
		return NullValue
	}
	i = v.Index(i)
	if v.Nulls != nil && v.Nulls[i] {
		return NullValue
	}
	switch {
	case v.Values != nil:
		return v.Values[i]
	case v.Strings != nil:
		return Value{Type: String, Text: v.Strings[i]}
	case v.Floats != nil:
		if v.Exact != nil {
			if d, ok := v.ExactAt(i); ok {
				return DecimalValue(v.Type, v.Floats[i], d)
			}
		}
		return Value{Type: v.Type, Float: v.Floats[i]}
	}
	return Value{Type: v.Type, Int: v.Ints[i], Whole: v.Type.Numeric()}
}

// Float returns row i as Value.Number does; NULL is NaN.
func (v *Vector) Float(i int) float64 {
	if v.IsNull(i) {
		return math.NaN()
	}
	i = v.Index(i)
	switch {
	case v.Floats != nil:
		return v.Floats[i]
	case v.Strings != nil:
		return ParseFloat(v.Strings[i])
	case v.Values != nil:
		return v.Values[i].Number()
	case v.Type == Boolean:
		return math.NaN()
	}
	return float64(v.Ints[i])
}

// IsMissing reports whether row i is NULL or NaN: what IS NULL, COUNT and ISNULL look at.
func (v *Vector) IsMissing(i int) bool {
	if v.IsNull(i) {
		return true
	}
	i = v.Index(i)
	switch {
	case v.Floats != nil:
		return v.Floats[i] != v.Floats[i]
	case v.Values != nil:
		return v.Values[i].IsNull() || v.Values[i].IsNaN()
	}
	return false
}

// Constant makes a Const vector of n rows of a value.
func Constant(v Value, n int) *Vector {
	out := &Vector{Type: v.Type, Const: true, Len: n}
	switch {
	case v.Type == Null:
	case v.Type == String:
		out.Strings = []string{v.Text}
	case v.Type.Numeric() && !v.Whole:
		out.Floats = []float64{v.Float}
		if d, ok := v.Decimal(); ok {
			out.Exact = []core.DecimalAt{{Decimal: d}}
		}
	default:
		out.Ints = []int64{v.Int}
	}
	return out
}

// True appends to rows the numbers of the rows of a boolean vector that are true, neither false nor NULL.
func (v *Vector) True(rows []int32) []int32 {
	if v.Type != Boolean || v.Len == 0 {
		return rows
	}
	if v.Const {
		if v.Ints[0] == 0 || v.IsNull(0) {
			return rows
		}
		for i := range v.Len {
			rows = append(rows, int32(i))
		}
		return rows
	}
	from := len(rows)
	rows = grow(rows, v.Len)
	kept, at := rows[from:from+v.Len], 0
	if v.Nulls == nil {
		for i, x := range v.Ints[:v.Len] { // without a branch: a selective condition is hard to predict
			kept[at] = int32(i)
			at += int(x)
		}
		return rows[:from+at]
	}
	for i, x := range v.Ints[:v.Len] {
		if x != 0 && !v.Nulls[i] {
			kept[at] = int32(i)
			at++
		}
	}
	return rows[:from+at]
}

// grow returns s with room for n more elements, which are part of it with any content.
func grow[T any](s []T, n int) []T {
	need := len(s) + n
	if cap(s) < need {
		bigger := make([]T, len(s), max(need, 2*cap(s)))
		copy(bigger, s)
		s = bigger
	}
	return s[:need]
}
