package exec

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// A key is the form of a value whose bytes sort as SQL does and are equal for equal values:
//
//	NULL      00
//	boolean   10 | 0 or 1
//	number    20 | float64, sign bit flipped, negative ones complemented (8) | what the number exceeds the text of the float by (column.Excess) + 2^15 (2)
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
		if v.Exact != nil {
			if d, ok := v.ExactAt(i); ok {
				return appendNumber(dst, v.Floats[i], column.Excess(d, v.Floats[i]))
			}
		}
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
	if _, ok := v.Decimal(); ok {
		return appendTextKey(dst, v.Text)
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
	return appendNumber(dst, float64(n), column.ExcessOfInt(n))
}

// appendNumber appends f and how much the number exceeds its shortest text.
func appendNumber(dst []byte, f float64, excess int16) []byte {
	bits := math.Float64bits(f + 0) // -0 is 0
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	dst = append(dst, keyNumber)
	dst = binary.BigEndian.AppendUint64(dst, bits)
	return binary.BigEndian.AppendUint16(dst, uint16(excess)^1<<15)
}

func appendTextKey(dst []byte, s string) []byte {
	dst = append(dst, keyText)
	for {
		zero := strings.IndexByte(s, 0)
		if zero < 0 {
			dst = append(dst, s...)
			return append(dst, 0, 0)
		}
		dst = append(dst, s[:zero]...)
		dst = append(dst, 0, 0xff)
		s = s[zero+1:]
	}
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

// keying evaluates keys and compares them from row to row.
type keying struct {
	x       *execution
	keys    []plan.Key
	vectors []*column.Vector
	last    []byte // key of the last row of the batch before
	some    bool   // there is one
	key     []byte
}

func (x *execution) newKeying(keys []plan.Key) *keying {
	return &keying{x: x, keys: keys, vectors: make([]*column.Vector, len(keys))}
}

// load evaluates the expressions for the rows of b.
func (k *keying) load(b *column.Batch) (err error) {
	for i := range k.keys {
		if k.vectors[i], err = k.keys[i].Expr.Eval(k.x.env, b); err != nil {
			return err
		}
	}
	return nil
}

// of returns the key of row i, whose bytes sort as the expressions do; it is valid until the next call.
func (k *keying) of(i int) []byte {
	k.key = k.key[:0]
	for j, v := range k.vectors {
		if k.keys[j].Desc {
			k.key = appendDescKey(k.key, v, i)
		} else {
			k.key = appendKey(k.key, v, i)
		}
	}
	return k.key
}

// compare compares two rows of the batch as their keys do.
func (k *keying) compare(i, j int32) int {
	for n, v := range k.vectors {
		if c := column.Compare(v, int(i), v, int(j)); c != 0 {
			if k.keys[n].Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// constant reports whether all rows have the key of row 0.
func (k *keying) constant() bool {
	return !slices.ContainsFunc(k.vectors, func(v *column.Vector) bool { return !v.Const && v.Type != column.Null })
}

// changes reports for each of n rows whether it differs from the one before, in the batch before for row 0; without keys none does. dst is overwritten.
func (k *keying) changes(dst []bool, n int) []bool {
	dst = append(dst[:0], make([]bool, n)...)
	if n == 0 || len(k.keys) == 0 {
		return dst
	}
	dst[0] = !k.some || !bytes.Equal(k.of(0), k.last)
	for _, v := range k.vectors {
		if v.Const || v.Type == column.Null {
			continue
		}
		for i := 1; i < n; i++ {
			dst[i] = dst[i] || column.Compare(v, i, v, i-1) != 0
		}
	}
	k.last, k.some = append(k.last[:0], k.of(n-1)...), true
	return dst
}

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
