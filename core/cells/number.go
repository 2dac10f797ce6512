package cells

import (
	"math/bits"
	"slices"
	"strconv"
)

const (
	scale = 1e4  // what most stored numbers are integers of
	limit = 1e15 // below which an integer has at most 15 digits
)

// AppendNumber appends the shortest decimal that reads back as v, in plain notation, without a fraction for an integral value: what strconv gives with 'f' and
// the precision -1. v is finite: how NaN is written is up to the format.
func AppendNumber(b []byte, v float64) []byte {
	if i := int64(v); float64(i) == v && i > -limit && i < limit && i != 0 { // zero may be negative
		return AppendInteger(b, i)
	}
	if x := float64(v * scale); x > -limit && x < limit {
		half := 0.5
		if x < 0 {
			half = -0.5
		}
		if n := int64(x + half); n != 0 && float64(n)/scale == v { // whatever x was rounded to, the division decides
			return appendScaled(b, n)
		}
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// appendScaled appends n / 10^4, no integer, without trailing zeros. Of the decimals of at most 15 digits at most one reads back as a given double: when
// n / 10^4 does, it is the shortest text, and found some five times faster than by the general search.
func appendScaled(b []byte, n int64) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	whole, fraction := uint64(n)/scale, uint64(n)%scale
	b = appendDigits(b, whole)
	high, low := fraction/100, fraction%100
	b = append(b, '.', pairs[2*high], pairs[2*high+1], pairs[2*low], pairs[2*low+1])
	if low == 0 {
		b = b[:len(b)-2]
	}
	if b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// AppendInteger is strconv.AppendInt to base 10.
func AppendInteger(b []byte, i int64) []byte {
	if i < 0 {
		return appendDigits(append(b, '-'), -uint64(i))
	}
	return appendDigits(b, uint64(i))
}

// appendDigits writes the digits of n in their place: how many there are is known first.
func appendDigits(b []byte, n uint64) []byte {
	if n < 10 {
		return append(b, byte('0'+n))
	}
	if n < 100 {
		return append(b, pairs[2*n], pairs[2*n+1])
	}
	// A number of so many bits has this many digits or one more: log10(2) is 1233/4096, nearly.
	count := bits.Len64(n) * 1233 >> 12
	if n >= powers[count] {
		count++
	}
	b = slices.Grow(b, count)
	d := b[len(b) : len(b)+count]
	for len(d) >= 2 {
		low := n % 100
		n /= 100
		d[len(d)-2], d[len(d)-1] = pairs[2*low], pairs[2*low+1]
		d = d[:len(d)-2]
	}
	if len(d) == 1 {
		d[0] = byte('0' + n)
	}
	return b[:len(b)+count]
}

// powers of ten.
var powers = [20]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// pairs are the numbers below 100 in two digits each.
const pairs = "0001020304050607080910111213141516171819" +
	"2021222324252627282930313233343536373839" +
	"4041424344454647484950515253545556575859" +
	"6061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"
