package guest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unsafe"
)

// In a guest a branch, a call and an iteration cost several times what they cost natively, arithmetic on words hardly more. So the
// functions below look at eight bytes at a time; eachByte times a byte is that byte eight times.
const (
	eachByte  = 0x0101010101010101
	highBits  = 0x80 * eachByte
	zeroChars = '0' * eachByte
)

// Row says which bytes cut a row of cells. Both are ASCII.
type Row struct {
	Delimiter byte
	Qualifier byte // 0 = none
}

// Cut finds the cells of the row that begins data: ends[i] is where cell i ends, and cell i+1 begins one byte behind it. Cells is
// their number, text the length of the row and size that with LF or CR LF. Size is 0 for whatever is no plain row: a qualifier or a
// lone CR in it, more cells than ends has room for, no LF before the last 8 bytes of data. Such a row is for slower code.
func (r Row) Cut(data []byte, ends []uint32) (cells, text, size int) {
	delimiters, qualifiers := uint64(r.Delimiter)*eachByte, uint64(r.Qualifier)*eachByte
	if r.Qualifier == 0 {
		qualifiers = delimiters
	}
	for i := 0; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		d, q := x^delimiters, x^qualifiers
		// Flagged are the delimiters, the qualifiers, and what is below 14, so LF and CR. A byte above a flagged one may be flagged
		// without a reason.
		for m := ((d-eachByte)&^d | (q-eachByte)&^q | (x-14*eachByte)&^x) & highBits; m != 0; m &= m - 1 {
			at := i + bits.TrailingZeros64(m)>>3
			switch c := data[at]; c {
			case r.Delimiter:
				if cells >= len(ends) {
					return cells, 0, 0
				}
				ends[cells] = uint32(at)
				cells++
			case '\n':
				if cells >= len(ends) {
					return cells, 0, 0
				}
				text = at
				if at > 0 && data[at-1] == '\r' {
					text--
				}
				ends[cells] = uint32(text)
				return cells + 1, text, at + 1
			case '\r':
				if at+1 >= len(data) || data[at+1] != '\n' {
					return cells, 0, 0
				}
			default:
				if c == r.Qualifier && c != 0 {
					return cells, 0, 0
				}
			}
		}
	}
	return cells, 0, 0
}

// Split finds the cells that sep cuts b into: ends[i] is where cell i ends. It returns their number, which may be larger than ends.
func Split(b []byte, sep byte, ends []uint32) (cells int) {
	seps := uint64(sep) * eachByte
	for i := 0; i < len(b); i += 8 {
		var x uint64
		if i+8 <= cap(b) {
			x = binary.LittleEndian.Uint64(b[i : i+8])
		} else {
			for j := len(b) - 1; j >= i; j-- {
				x = x<<8 | uint64(b[j])
			}
		}
		x ^= seps
		// The high bit of a byte is set when the byte is 0: no carry leaves a byte.
		for m := ^(x&^highBits + (highBits - eachByte) | x) & highBits; m != 0; m &= m - 1 {
			at := i + bits.TrailingZeros64(m)>>3
			if at >= len(b) {
				break
			}
			if cells < len(ends) {
				ends[cells] = uint32(at)
			}
			cells++
		}
	}
	if cells < len(ends) {
		ends[cells] = uint32(len(b))
	}
	return cells + 1
}

// Hash mixes the last bytes of b, where names differ, with its length. It is for tables whose collisions only cost time.
func Hash(b []byte) uint32 {
	n := len(b)
	h := uint64(n)
	if n >= 8 {
		h ^= binary.LittleEndian.Uint64(b[n-8:])
	} else {
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
	}
	return uint32(h * 0x9e3779b97f4a7c15 >> 32)
}

// Lines cuts a stream of chunks into lines. The zero value is ready.
type Lines struct {
	rest   []byte // a line whose end has not come yet
	joined []byte // the last line that was put together from rest
	number int
}

// Number is that of the line last yielded, from 1.
func (l *Lines) Number() int { return l.number }

// Each yields the lines that end in chunk, without "\n" or "\r\n"; with last also the text after the last newline. The line
// is valid until the next one. Leaving the loop early drops the rest of the chunk.
func (l *Lines) Each(chunk []byte, last bool) func(yield func(line []byte) bool) {
	return func(yield func([]byte) bool) {
		for {
			end := bytes.IndexByte(chunk, '\n')
			if end < 0 {
				break
			}
			line := chunk[:end]
			chunk = chunk[end+1:]
			if len(l.rest) > 0 {
				l.joined = append(append(l.joined[:0], l.rest...), line...)
				line, l.rest = l.joined, l.rest[:0]
			}
			l.number++
			if !yield(trimReturn(line)) {
				return
			}
		}
		l.rest = append(l.rest, chunk...)
		if last && len(l.rest) > 0 {
			l.number++
			line := l.rest
			l.rest = nil
			yield(trimReturn(line))
		}
	}
}

func trimReturn(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// Cut returns the text up to the first sep and the text after it; without sep all of line and nil.
func Cut(line []byte, sep byte) (field, rest []byte) {
	if i := bytes.IndexByte(line, sep); i >= 0 {
		return line[:i], line[i+1:]
	}
	return line, nil
}

// pow10 are the powers of ten that a float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// ParseFloat reads a decimal number, with the result of strconv.ParseFloat.
func ParseFloat(b []byte) (v float64, ok bool) {
	if v, ok = ParseDecimal(b); ok {
		return v, true
	}
	return parseFloatSlow(b)
}

// ParseDecimal reads what most numbers are: an optional sign and up to 15 digits with at most one point. It is not ok for anything else,
// a number with an exponent included. One division is enough and exact, by Clinger's argument: both operands are exact, so the quotient is
// rounded once.
func ParseDecimal(b []byte) (v float64, ok bool) {
	n := len(b)
	if uint(n-1) >= 8 || cap(b) < 8 {
		return parseDecimalLong(b)
	}
	x := binary.LittleEndian.Uint64(b[:8])
	first := byte(x)
	if first == '-' || first == '+' {
		x >>= 8
		n--
	}
	if n == 0 {
		return 0, false
	}
	// The characters as digits, the last of them in the highest byte: those before the first are 0.
	x = (x ^ zeroChars) << ((64 - 8*uint(n)) & 63)
	fraction := 0
	dots := x ^ ('.'^'0')*eachByte
	if dots = (dots - eachByte) &^ dots & highBits; dots != 0 {
		dot := dots & -dots // the high bit of the first point; a second one is no digit
		fraction = bits.LeadingZeros64(dot) >> 3
		if n == 1 {
			return 0, false
		}
		below := dot>>7 - 1
		x = x&^(dot<<1-1) | x&below<<8
	}
	if (x+(0x80-10)*eachByte|x)&highBits != 0 {
		return 0, false
	}
	// Pairs of digits, then of pairs, then of fours.
	x = x * (1 + 10<<8) >> 8 & 0x00ff00ff00ff00ff
	x = x * (1 + 100<<16) >> 16 & 0x0000ffff0000ffff
	x = x * (1 + 10000<<32) >> 32
	v = float64(int64(x))
	if fraction > 0 {
		v /= pow10[fraction]
	}
	if first == '-' {
		v = -v
	}
	return v, true
}

// parseDecimalLong is ParseDecimal digit by digit.
func parseDecimalLong(b []byte) (v float64, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		i = 1
	}
	start, point := i, -1
	var digits uint64
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			if b[i] != '.' || point >= 0 {
				return 0, false
			}
			point = i
			continue
		}
		digits = digits*10 + uint64(c)
	}
	n := i - start
	fraction := 0
	if point >= 0 {
		n--
		fraction = i - point - 1
	}
	if n == 0 || n > 15 {
		return 0, false
	}
	v = float64(digits)
	if fraction > 0 {
		v /= pow10[fraction]
	}
	if negative {
		v = -v
	}
	return v, true
}

func parseFloatSlow(b []byte) (float64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	// ParseFloat keeps its argument only in an error, which is dropped here.
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), len(b)), 64)
	return v, err == nil
}

// ParseTime reads Unix milliseconds (digits only) or an ISO time: 2006-01-02T15:04:05, a blank also for T, then up to nine
// digits of a second, then Z, +hh:mm, -hh:mm, +hhmm or -hhmm. Digits past the millisecond are dropped. A time without a
// zone is not ok: only the parser knows which zone it means.
func ParseTime(b []byte) (ms int64, ok bool) {
	if len(b) < 20 {
		return parseMillis(b)
	}
	d, ok1 := pairs(binary.LittleEndian.Uint64(b), isoDate, 0x00ffff00ffffffff)
	t, ok2 := pairs(binary.LittleEndian.Uint64(b[11:]), isoClock, 0xffff00ffff00ffff)
	year, month, day := int(d&0xff*100+d>>16&0xff), int(d>>40&0xff), two(b[8:])
	hour, minute, second := int(t&0xff), int(t>>24&0xff), int(t>>48&0xff)
	if !ok1 || !ok2 || b[10] != 'T' && b[10] != ' ' || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	fraction, rest, ok := fractionMs(b[19:])
	if !ok {
		return 0, false
	}
	offset, ok := zoneMinutes(rest)
	if !ok {
		return 0, false
	}
	minutes := (int64(daysFromCivil(year, month, day))*24+int64(hour))*60 + int64(minute-offset)
	return (minutes*60+int64(second))*1000 + int64(fraction), true
}

// The forms yyyy-mm- and hh:mm:ss, first character in the lowest byte, with 0 for each digit.
const (
	isoDate  = '0' | '0'<<8 | '0'<<16 | '0'<<24 | '-'<<32 | '0'<<40 | '0'<<48 | '-'<<56
	isoClock = '0' | '0'<<8 | ':'<<16 | '0'<<24 | '0'<<32 | ':'<<40 | '0'<<48 | '0'<<56
)

// pairs gives for each byte of x the number that it and the next byte are as digits. ok says that x has the form; digits are the places
// of its digits.
func pairs(x, form, digits uint64) (values uint64, ok bool) {
	x ^= form
	return x*10 + x>>8, (x+(0x80-10)*eachByte|x)&highBits|x&^digits == 0
}

// parseMillis reads up to 16 digits; a sign belongs to times before 1970, which nothing stores.
func parseMillis(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	var v int64
	for _, c := range b {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	return v, true
}

// fractionMs reads an optional point and digits.
func fractionMs(b []byte) (ms int, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' {
		return 0, b, true
	}
	b = b[1:]
	n, unit := 0, 100
	for n < len(b) && n < 9 && b[n]-'0' <= 9 {
		ms += int(b[n]-'0') * unit
		unit /= 10
		n++
	}
	return ms, b[n:], n > 0
}

// zoneMinutes reads Z or an offset east of UTC.
func zoneMinutes(b []byte) (int, bool) {
	if len(b) == 1 && b[0] == 'Z' {
		return 0, true
	}
	if len(b) < 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	minutes := b[3:]
	if b[3] == ':' {
		minutes = b[4:]
	}
	if len(minutes) != 2 {
		return 0, false
	}
	h, m := two(b[1:]), two(minutes)
	if uint(h) > 18 || uint(m) > 59 {
		return 0, false
	}
	if b[0] == '-' {
		return -(h*60 + m), true
	}
	return h*60 + m, true
}

// two reads two digits; the result is far below zero when they are none.
func two(b []byte) int {
	tens, ones := b[0]-'0', b[1]-'0'
	if tens > 9 || ones > 9 {
		return -1 << 16
	}
	return int(tens)*10 + int(ones)
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysFromCivil counts days since 1970-01-01 in the Gregorian calendar, by years that begin in March, so that the leap day
// is the last of its year; see H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
func daysFromCivil(year, month, day int) int {
	if month <= 2 {
		year--
		month += 12
	}
	return year*365 + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}
