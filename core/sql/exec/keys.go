package exec

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// A key is the form of a value whose bytes sort as SQL does and are equal for equal values:
//
//	NULL      00
//	boolean   10 | 0 or 1
//	number    20 | float64, sign bit flipped, negative ones complemented (8) | what the float lacks of a whole number + 2^15 (2)
//	NaN       21
//	text      30 | its bytes, 00 as 00 FF | 00 00
//
// Timestamps are numbers. In a column of several types numbers are text, since there they compare with text. A key that sorts downwards is complemented.
const (
	keyNull    = 0x00
	keyBoolean = 0x10
	keyNumber  = 0x20
	keyNaN     = 0x21
	keyText    = 0x30
)

// appendKey appends the key of row i of v.
func appendKey(dst []byte, v *column.Vector, i int) []byte {
	if v.IsNull(i) {
		return append(dst, keyNull)
	}
	i = v.Index(i)
	switch {
	case v.Ints != nil && v.Type == column.Boolean:
		return append(dst, keyBoolean, byte(v.Ints[i]))
	case v.Ints != nil:
		return appendWholeKey(dst, v.Ints[i])
	case v.Floats != nil:
		return appendFloatKey(dst, v.Floats[i])
	case v.Strings != nil:
		return appendTextKey(dst, v.Strings[i])
	}
	return appendValueKey(dst, v.Values[i])
}

func appendValueKey(dst []byte, v column.Value) []byte {
	switch {
	case v.Type == column.Null:
		return append(dst, keyNull)
	case v.Type == column.Boolean:
		return append(dst, keyBoolean, byte(v.Int))
	case v.Type == column.String:
		return appendTextKey(dst, v.Text)
	case v.Whole || v.Type == column.Timestamp:
		return appendTextKey(dst, strconv.FormatInt(v.Int, 10))
	case v.Float != v.Float:
		return append(dst, keyNaN)
	}
	return appendTextKey(dst, strconv.FormatFloat(v.Float, 'f', -1, 64))
}

// appendDescKey appends the key that sorts downwards.
func appendDescKey(dst []byte, v *column.Vector, i int) []byte {
	from := len(dst)
	dst = appendKey(dst, v, i)
	for j := from; j < len(dst); j++ {
		dst[j] = ^dst[j]
	}
	return dst
}

func appendFloatKey(dst []byte, f float64) []byte {
	if f != f {
		return append(dst, keyNaN)
	}
	return appendNumber(dst, f, 0)
}

// beyondInt is 2^63, the least float that no int64 equals.
const beyondInt = 1 << 63

func appendWholeKey(dst []byte, n int64) []byte {
	f := float64(n)
	if f >= beyondInt {
		return appendNumber(dst, f, n-math.MaxInt64-1)
	}
	return appendNumber(dst, f, n-int64(f))
}

// appendNumber appends f and what it lacks of the number, at most 512.
func appendNumber(dst []byte, f float64, lack int64) []byte {
	bits := math.Float64bits(f + 0) // -0 is 0
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	dst = append(dst, keyNumber)
	dst = binary.BigEndian.AppendUint64(dst, bits)
	return binary.BigEndian.AppendUint16(dst, uint16(lack+1<<15))
}

func appendTextKey(dst []byte, s string) []byte {
	dst = append(dst, keyText)
	for i := range len(s) {
		if c := s[i]; c == 0 {
			dst = append(dst, 0, 0xff)
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, 0, 0)
}

// place is an expression that is a column of the input.
type place struct {
	column int
	of     column.Type
}

func (p place) Type() column.Type { return p.of }

func (p place) Eval(_ *expr.Env, in *column.Batch) (*column.Vector, error) {
	return in.Columns[p.column], nil
}

func (p place) Clone() expr.Node { return p }

// constant returns a vector of one value for every row.
func constant(of column.Type, value column.Value) *column.Vector {
	v := &column.Vector{Type: of, Const: true}
	if value.Type == column.Null {
		v.Nulls = []bool{true}
	}
	switch {
	case of == column.String:
		v.Strings = []string{value.Text}
	case of == column.Object:
		v.Values = []column.Value{value}
	case value.Whole || of == column.Boolean || of == column.Timestamp || value.Type == column.Null && of <= column.Bigint:
		v.Ints = []int64{value.Int}
	default:
		v.Floats = []float64{value.Float}
	}
	return v
}

// textOrNull is NULL for the empty text: fields that are not set.
func textOrNull(s string) column.Value {
	if s == "" {
		return column.NullValue
	}
	return column.TextValue(s)
}
