package guest

import (
	"bytes"
	"strconv"
	"unsafe"
)

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
	if b[4] != '-' || b[7] != '-' || b[10] != 'T' && b[10] != ' ' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	year, month, day := two(b[0:])*100+two(b[2:]), two(b[5:]), two(b[8:])
	hour, minute, second := two(b[11:]), two(b[14:]), two(b[17:])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		uint(hour) > 23 || uint(minute) > 59 || uint(second) > 59 {
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
