package dates

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// ISOError says why a text is not an ISO date.
type ISOError struct {
	Value string
	Pos   int // byte of the fault in Value; len(Value) when the text ends too early
	// Expected is the separator due at Pos and Found the character there; both are 0 for any other fault, which Reason then describes.
	Expected byte
	Found    rune
	Reason   string
}

// Error prints the sentence that clients of the insert API match on when a separator is wrong.
func (e *ISOError) Error() string {
	if e.Expected != 0 {
		return fmt.Sprintf("Expected '%c' character but found '%c'", e.Expected, e.Found)
	}
	return fmt.Sprintf("invalid ISO date %q at character %d: %s", e.Value, e.Pos+1, e.Reason)
}

// isoSeparators are due at fixed places of yyyy-MM-ddTHH:mm:ss.
var isoSeparators = [...]struct {
	pos int
	c   byte
}{{4, '-'}, {7, '-'}, {10, 'T'}, {13, ':'}, {16, ':'}}

const (
	isoSecondsEnd  = len("2006-01-02T15:04:05")
	maxOffsetHours = 18
)

// ParseISO reads yyyy-MM-ddTHH:mm:ss[.fraction](Z|±hh:mm|±hhmm). The fraction has at most nine digits, of which three are kept; an hour of the offset may
// be a single digit before a colon; offsets reach ±18:00. The error is an *ISOError. It does not allocate on success.
func ParseISO(s string) (core.Time, error) {
	if len(s) < isoSecondsEnd {
		return 0, shortISO(s)
	}
	for _, sep := range isoSeparators {
		if s[sep.pos] != sep.c {
			return 0, wrongSeparator(s, sep.pos, sep.c)
		}
	}
	t, fault := parseISOFields(s)
	if fault.reason != "" {
		return 0, &ISOError{Value: s, Pos: fault.pos, Reason: fault.reason}
	}
	return t, nil
}

func wrongSeparator(s string, pos int, want byte) *ISOError {
	found, _ := utf8.DecodeRuneInString(s[pos:])
	return &ISOError{Value: s, Pos: pos, Expected: want, Found: found}
}

// shortISO reports the first wrong separator of a text that ends before its seconds do, so that `now` and `20210503` differ.
func shortISO(s string) *ISOError {
	for _, sep := range isoSeparators {
		if sep.pos < len(s) && s[sep.pos] != sep.c {
			return wrongSeparator(s, sep.pos, sep.c)
		}
	}
	return &ISOError{Value: s, Pos: len(s), Reason: "too short: write yyyy-MM-ddTHH:mm:ss.SSSZ"}
}

type isoFault struct {
	pos    int
	reason string
}

// parseISOFields reads the fields of a text whose separators are right.
func parseISOFields(s string) (core.Time, isoFault) {
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:10])
	hour, ok4 := digits(s[11:13])
	minute, ok5 := digits(s[14:16])
	second, ok6 := digits(s[17:19])
	switch {
	case !ok1:
		return 0, isoFault{0, "the year is not four digits"}
	case !ok2 || month < 1 || month > 12:
		return 0, isoFault{5, "the month is not 01 to 12"}
	case !ok3 || day < 1 || day > daysIn(year, time.Month(month)):
		return 0, isoFault{8, "no such day in this month"}
	case !ok4 || hour > 23:
		return 0, isoFault{11, "the hour is not 00 to 23"}
	case !ok5 || minute > 59:
		return 0, isoFault{14, "the minute is not 00 to 59"}
	case !ok6 || second > 59:
		return 0, isoFault{17, "the second is not 00 to 59"}
	}
	millis, pos, fault := isoFraction(s)
	if fault.reason != "" {
		return 0, fault
	}
	off, ok := parseISOOffset(s[pos:])
	if !ok {
		return 0, isoFault{pos, "a zone is required: Z, +hh:mm or +hhmm up to 18:00"}
	}
	of := int64(hour)*hourMillis + int64(minute)*minuteMillis + int64(second)*secondMillis + int64(millis)
	return core.Time(int64(DateAt(year, time.Month(month), day))*dayMillis + of - off), isoFault{}
}

// isoFraction reads the optional fraction after the seconds and returns its milliseconds and the byte after it.
func isoFraction(s string) (millis, pos int, fault isoFault) {
	pos = isoSecondsEnd
	if pos >= len(s) || s[pos] != '.' {
		return 0, pos, isoFault{}
	}
	start := pos + 1
	pos = start
	for pos < len(s) && isDigit(s[pos]) {
		pos++
	}
	if pos-start > 9 {
		return 0, pos, isoFault{start + 9, "the fraction has more than nine digits"}
	}
	return fractionMillis(s[start:pos]), pos, isoFault{}
}

// fractionMillis returns the milliseconds of the digits after a decimal point, cut.
func fractionMillis(digits string) int {
	millis := 0
	for i := range 3 {
		millis *= 10
		if i < len(digits) {
			millis += int(digits[i] - '0')
		}
	}
	return millis
}

// ParseOffset reads ±hh:mm, ±h:mm or ±hhmm, up to 18 hours: local time minus UTC in milliseconds.
func ParseOffset(s string) (millis int64, ok bool) { return parseISOOffset(s) }

// parseISOOffset reads Z, ±hh:mm, ±h:mm or ±hhmm as the whole of s and returns milliseconds to subtract from local time.
func parseISOOffset(s string) (millis int64, ok bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) < len("+h:mm") || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hours, minutes := s[1:len(s)-2], s[len(s)-2:]
	if n := len(hours) - 1; hours[n] == ':' {
		hours = hours[:n]
	} else if len(hours) != 2 {
		return 0, false
	}
	h, ok1 := digits(hours)
	m, ok2 := digits(minutes)
	if !ok1 || !ok2 || len(hours) > 2 || m > 59 || h*60+m > maxOffsetHours*60 {
		return 0, false
	}
	millis = int64(h)*hourMillis + int64(m)*minuteMillis
	if s[0] == '-' {
		millis = -millis
	}
	return millis, true
}

// digits reads a short run of digits; ok is false for anything else and for no digits at all.
func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}

// ParseISOOrUnix reads an ISO date or Unix time as a decimal number: below 100000000000 it counts seconds, else milliseconds. Fractions are cut to
// milliseconds.
func ParseISOOrUnix(s string) (core.Time, error) {
	whole, fraction := 0, ""
	for whole < len(s) && isDigit(s[whole]) {
		whole++
	}
	if whole == 0 || whole > 15 {
		return ParseISO(s)
	}
	if whole < len(s) {
		fraction = s[whole+1:]
		if _, ok := digits(fraction); s[whole] != '.' || !ok {
			return ParseISO(s)
		}
	}
	n, err := strconv.ParseInt(s[:whole], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unix time %q: %w", s, err)
	}
	if n >= 100_000_000_000 {
		return core.Time(n), nil
	}
	return core.Time(n*secondMillis + int64(fractionMillis(fraction))), nil
}

// AppendISO appends t in UTC with exactly three digits of fraction: 2021-05-03T10:00:00.000Z. A year above 9999 is printed in full, without a sign.
func AppendISO(b []byte, t core.Time) []byte {
	b = appendLocalISO(b, wall(t))
	return append(b, 'Z')
}

// FormatISO returns the text of AppendISO.
func FormatISO(t core.Time) string {
	return string(AppendISO(make([]byte, 0, len("2021-05-03T10:00:00.000Z")), t))
}

func appendLocalISO(b []byte, w wall) []byte {
	year, month, day := w.day().Split()
	b = append(appendPadded(b, year, 4), '-')
	b = append(appendTwo(b, int(month)), '-')
	b = append(appendTwo(b, day), 'T')
	ms := int(w.sinceMidnight())
	b = append(appendTwo(b, ms/hourMillis), ':')
	b = append(appendTwo(b, ms/minuteMillis%60), ':')
	b = append(appendTwo(b, ms/secondMillis%60), '.')
	return append(b, byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
}

// appendTwo appends a number from 0 to 99 in two digits.
func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// appendPadded appends n with zeros up to width digits; width is at most 20.
func appendPadded[T int | int64](b []byte, n T, width int) []byte {
	v := int64(n)
	if v < 0 {
		b, v = append(b, '-'), -v
	}
	for bound := int64(10); width > 1; width-- {
		if v < bound {
			b = append(b, zeros[:width-1]...)
			break
		}
		bound *= 10
	}
	return strconv.AppendInt(b, v, 10)
}

const zeros = "0000000000000000000"
