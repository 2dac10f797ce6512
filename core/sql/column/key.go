package column

import (
	"encoding/binary"
	"math"
	"strings"
)

// Tags of keys, in the order of SQL.
const (
	keyNull    = 0
	keyBoolean = 1
	keyNumber  = 2
	keyText    = 3
)

// AppendKey appends row i as bytes that are equal for equal values only: 1 and 1.0 are equal, as are all NaN; instants and numbers are told apart by the column
// they stand in, not by their keys. Keys of one column sort like Compare, and no key is the beginning of another, so that they may follow each other; the exception
// is a column that mixes numbers and strings, whose keys sort numbers first.
func AppendKey(b []byte, v *Vector, i int) []byte {
	if v.IsNull(i) {
		return append(b, keyNull)
	}
	i = v.Index(i)
	switch {
	case v.Strings != nil:
		return appendTextKey(b, v.Strings[i])
	case v.Values != nil:
		return AppendValueKey(b, v.Values[i])
	case v.Type == Boolean:
		return append(b, keyBoolean, byte(v.Ints[i]))
	case v.Ints != nil:
		return appendIntKey(b, v.Ints[i])
	}
	return appendFloatKey(b, v.Floats[i])
}

// AppendValueKey appends a value as AppendKey does.
func AppendValueKey(b []byte, v Value) []byte {
	switch {
	case v.Type == Null:
		return append(b, keyNull)
	case v.Type == Boolean:
		return append(b, keyBoolean, byte(v.Int))
	case v.Type == String:
		return appendTextKey(b, v.Text)
	case v.isInt():
		return appendIntKey(b, v.Int)
	}
	return appendFloatKey(b, v.Float)
}

// appendTextKey ends a text with two zeros; a zero inside is followed by 0xff.
func appendTextKey(b []byte, s string) []byte {
	b = append(b, keyText)
	for {
		zero := strings.IndexByte(s, 0)
		if zero < 0 {
			b = append(b, s...)
			return append(b, 0, 0)
		}
		b = append(b, s[:zero]...)
		b = append(b, 0, 0xff)
		s = s[zero+1:]
	}
}

// A number is its nearest double, then what is missing to the whole number that it is, biased: doubles near 2^63 lie 1024 apart.
const keyBias = 1 << 15

func appendIntKey(b []byte, i int64) []byte {
	f := float64(i)
	var rest int64
	switch {
	case f >= 1<<63:
		rest = i - math.MaxInt64 - 1
	default:
		rest = i - int64(f)
	}
	return binary.BigEndian.AppendUint16(appendDouble(b, f), uint16(rest+keyBias))
}

func appendFloatKey(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint16(appendDouble(b, f), keyBias)
}

// appendDouble makes the bits of a double sort like its value: NaN last, both zeros equal.
func appendDouble(b []byte, f float64) []byte {
	switch {
	case f != f:
		f = math.NaN()
	case f == 0:
		f = 0
	}
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(b, keyNumber), bits)
}
