package dates

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// Append appends t as a clock in zone shows it. Optional sections are always printed.
func (p *Pattern) Append(b []byte, t core.Time, zone *time.Location) []byte {
	switch p.named {
	case namedISO:
		o := offset(t, zone)
		b = appendLocalISO(b, wall(int64(t)+o))
		return appendOffset(b, o, offsetStyle{colon: true, minutes: always, zulu: true})
	case namedMillis:
		return strconv.AppendInt(b, int64(t), 10)
	case namedSeconds:
		if t < 0 {
			b, t = append(b, '-'), -t
		}
		b = strconv.AppendInt(b, int64(t/secondMillis), 10)
		b = append(b, '.')
		return appendPadded(b, int(t%secondMillis), 3)
	}
	return newReadout(t, zone).elements(b, p.elements)
}

// readout is an instant taken apart for printing.
type readout struct {
	t          core.Time
	zone       *time.Location
	offset     int64
	date       Date
	year       int
	month      time.Month
	day        int
	millis     int64 // since midnight
	hour       int
	minute     int
	second     int
	fractional int // milliseconds of the second
}

func newReadout(t core.Time, zone *time.Location) *readout {
	if zone == nil {
		zone = time.UTC
	}
	r := &readout{t: t, zone: zone, offset: offset(t, zone)}
	w := wall(int64(t) + r.offset)
	r.date, r.millis = w.day(), w.sinceMidnight()
	r.year, r.month, r.day = r.date.Split()
	r.hour, r.minute = int(r.millis/hourMillis), int(r.millis/minuteMillis%60)
	r.second, r.fractional = int(r.millis/secondMillis%60), int(r.millis%secondMillis)
	return r
}

func (r *readout) elements(b []byte, elements []element) []byte {
	for i := range elements {
		e := &elements[i]
		switch {
		case e.letter == 0:
			b = append(b, e.text...)
		case e.letter == '[':
			b = r.elements(b, e.section)
		case e.pad > 0:
			start := len(b)
			b = r.field(b, e)
			if missing := e.pad - utf8.RuneCount(b[start:]); missing > 0 {
				text := string(b[start:])
				b = append(append(b[:start], strings.Repeat(" ", missing)...), text...)
			}
		default:
			b = r.field(b, e)
		}
	}
	return b
}

func (r *readout) field(b []byte, e *element) []byte {
	switch e.letter {
	case 'G':
		era := 0
		if r.year > 0 {
			era = 1
		}
		return append(b, eraNames[e.count-1][era]...)
	case 'y':
		return appendYear(b, yearOfEra(r.year), e.count)
	case 'Y':
		year, _ := r.date.isoWeek()
		return appendYear(b, yearOfEra(year), e.count)
	case 'D':
		return appendPadded(b, int(r.date-DateAt(r.year, time.January, 1))+1, e.count)
	case 'M':
		if e.count > 2 {
			return appendName(b, r.month.String(), e.count)
		}
		return appendPadded(b, int(r.month), e.count)
	case 'd':
		return appendPadded(b, r.day, e.count)
	case 'Q', 'q':
		return appendQuarter(b, (int(r.month)-1)/3, e.count)
	case 'w':
		_, week := r.date.isoWeek()
		return appendPadded(b, week, e.count)
	case 'W':
		first := r.date - Date(r.day-1)
		return appendPadded(b, (r.day+first.isoWeekday()-2)/7+1, 1)
	case 'F':
		return appendPadded(b, (r.day-1)/7+1, 1)
	case 'u':
		return appendPadded(b, r.date.isoWeekday(), 1)
	case 'e':
		if e.count <= 2 {
			return appendPadded(b, int(r.date.Weekday())+1, e.count)
		}
		return appendName(b, r.date.Weekday().String(), e.count)
	case 'E':
		return appendName(b, r.date.Weekday().String(), max(e.count, 3))
	case 'V', 'z', 'O', 'X', 'x', 'Z':
		return r.zoneField(b, e)
	}
	return r.clockField(b, e)
}

func (r *readout) clockField(b []byte, e *element) []byte {
	switch e.letter {
	case 'a':
		return append(b, [...]string{"AM", "PM"}[r.hour/12]...)
	case 'h':
		return appendPadded(b, (r.hour+11)%12+1, e.count)
	case 'K':
		return appendPadded(b, r.hour%12, e.count)
	case 'H':
		return appendPadded(b, r.hour, e.count)
	case 'k':
		return appendPadded(b, (r.hour+23)%24+1, e.count)
	case 'm':
		return appendPadded(b, r.minute, e.count)
	case 's':
		return appendPadded(b, r.second, e.count)
	case 'S':
		var nine [9]byte
		digits := append(appendPadded(nine[:0], r.fractional, 3), "000000"...)
		return append(b, digits[:e.count]...)
	case 'A':
		return appendPadded(b, r.millis, e.count)
	case 'n':
		return appendPadded(b, int64(r.fractional)*1e6, e.count)
	case 'N':
		return appendPadded(b, r.millis*1e6, e.count)
	}
	return b
}

func (r *readout) zoneField(b []byte, e *element) []byte {
	switch {
	case e.letter == 'V', e.letter == 'Z' && e.count == 3:
		return append(b, r.zone.String()...)
	case e.letter == 'z':
		name, _ := r.t.Std().In(r.zone).Zone()
		if e.count == 4 {
			name = fullZoneName(name)
		}
		return append(b, name...)
	case e.letter == 'O', e.letter == 'Z' && e.count == 4:
		b = append(b, "GMT"...)
		switch {
		case r.offset == 0:
			return b
		case e.count == 1:
			return appendOffset(b, r.offset, offsetStyle{colon: true, short: true})
		}
		return appendOffset(b, r.offset, offsetStyle{colon: true, minutes: always, seconds: true})
	}
	// Z prints as XX, ZZ as XXX.
	count, zulu := e.count, e.letter != 'x'
	if e.letter == 'Z' && count <= 2 {
		count++
	}
	style := offsetStyle{colon: count == 3 || count == 5, seconds: count >= 4, zulu: zulu}
	if count > 1 {
		style.minutes = always
	}
	return appendOffset(b, r.offset, style)
}

// offsetStyle says how an offset is written; the zero style is +hh, with minutes only when they are not zero.
type offsetStyle struct {
	colon   bool
	minutes minuteStyle
	seconds bool // printed when not zero
	zulu    bool // Z for zero
	short   bool // +8 instead of +08
}

type minuteStyle uint8

const (
	whenNotZero minuteStyle = iota
	always
)

func appendOffset(b []byte, millis int64, style offsetStyle) []byte {
	if millis == 0 && style.zulu {
		return append(b, 'Z')
	}
	sign := byte('+')
	if millis < 0 {
		sign, millis = '-', -millis
	}
	hours, minutes, seconds := int(millis/hourMillis), int(millis/minuteMillis%60), int(millis/secondMillis%60)
	width := 2
	if style.short {
		width = 1
	}
	b = appendPadded(append(b, sign), hours, width)
	if minutes != 0 || style.minutes == always {
		if style.colon {
			b = append(b, ':')
		}
		b = appendPadded(b, minutes, 2)
	}
	if seconds != 0 && style.seconds {
		if style.colon {
			b = append(b, ':')
		}
		b = appendPadded(b, seconds, 2)
	}
	return b
}

func appendYear(b []byte, year, count int) []byte {
	if count == 2 {
		return appendPadded(b, year%100, 2)
	}
	return appendPadded(b, year, count)
}

// yearOfEra counts from 1 in both directions: the year 0 is 1 BC.
func yearOfEra(year int) int {
	if year > 0 {
		return year
	}
	return 1 - year
}

// eraNames by letter count, then BC and AD.
var eraNames = [...][2]string{{"BC", "AD"}, {"BC", "AD"}, {"BC", "AD"}, {"Before Christ", "Anno Domini"}, {"B", "A"}}

// appendName shortens an English name: three letters for a count of 3, one for 5.
func appendName(b []byte, name string, count int) []byte {
	switch count {
	case 3:
		name = name[:3]
	case 5:
		name = name[:1]
	}
	return append(b, name...)
}

var quarterNames = [...]string{"1st quarter", "2nd quarter", "3rd quarter", "4th quarter"}

func appendQuarter(b []byte, quarter, count int) []byte {
	switch count {
	case 3:
		return append(b, 'Q', byte('1'+quarter))
	case 4:
		return append(b, quarterNames[quarter]...)
	}
	return appendPadded(b, quarter+1, count)
}

// isoWeek returns the week-based year and week of ISO 8601: weeks start on Monday and belong to the year of their Thursday.
func (d Date) isoWeek() (year, week int) {
	thursday := d.monday() + 3
	year, _, _ = thursday.Split()
	return year, int(thursday-DateAt(year, time.January, 1))/7 + 1
}

// zoneAbbreviations are the short zone names that texts may carry, with their offsets and full names. Abbreviations that several countries use with
// different offsets have the meaning of the United States.
var zoneAbbreviations = [...]struct {
	short, full string
	hours       int64
}{
	{"UTC", "Coordinated Universal Time", 0}, {"GMT", "Greenwich Mean Time", 0}, {"WET", "Western European Time", 0}, {"WEST", "Western European Summer Time", 1},
	{"BST", "British Summer Time", 1}, {"CET", "Central European Time", 1}, {"CEST", "Central European Summer Time", 2},
	{"EET", "Eastern European Time", 2}, {"EEST", "Eastern European Summer Time", 3}, {"MSK", "Moscow Standard Time", 3},
	{"JST", "Japan Standard Time", 9}, {"KST", "Korean Standard Time", 9},
	{"EST", "Eastern Standard Time", -5}, {"EDT", "Eastern Daylight Time", -4}, {"CST", "Central Standard Time", -6}, {"CDT", "Central Daylight Time", -5},
	{"MST", "Mountain Standard Time", -7}, {"MDT", "Mountain Daylight Time", -6}, {"PST", "Pacific Standard Time", -8}, {"PDT", "Pacific Daylight Time", -7},
	{"AKST", "Alaska Standard Time", -9}, {"AKDT", "Alaska Daylight Time", -8}, {"HST", "Hawaii Standard Time", -10},
}

func fullZoneName(short string) string {
	for _, z := range zoneAbbreviations {
		if z.short == short {
			return z.full
		}
	}
	return short
}
