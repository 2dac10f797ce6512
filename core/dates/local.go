package dates

import (
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Lengths of the fixed units in milliseconds.
const (
	secondMillis = 1000
	minuteMillis = 60 * secondMillis
	hourMillis   = 60 * minuteMillis
	dayMillis    = 24 * hourMillis
)

// MinDate and MaxDate are the first and the last instant an ISO date with a four-digit year can name; arithmetic is clamped to them.
const (
	MinDate core.Time = -62167219200000 // 0000-01-01T00:00:00.000Z
	MaxDate core.Time = 253402300799999 // 9999-12-31T23:59:59.999Z
)

func clamp(t core.Time) core.Time { return min(max(t, MinDate), MaxDate) }

// wall is the reading of a local clock: milliseconds since that clock showed 1970-01-01 00:00. Without a zone it is no instant.
type wall int64

// offset returns what a local clock in zone shows minus UTC, at t, in milliseconds.
func offset(t core.Time, zone *time.Location) int64 {
	if zone == nil || zone == time.UTC {
		return 0
	}
	_, seconds := time.UnixMilli(int64(t)).In(zone).Zone()
	return int64(seconds) * secondMillis
}

func wallOf(t core.Time, zone *time.Location) wall { return wall(int64(t) + offset(t, zone)) }

// in returns the instant at which a clock in zone shows w. A reading that occurs twice is the first of both; one that is skipped is moved forward by the
// length of the gap, so a midnight without a local clock reading becomes the start of that day.
func (w wall) in(zone *time.Location) core.Time {
	// A day before is on the near side of any transition around w, whatever the offset (at most 18 hours).
	before := offset(core.Time(w)-dayMillis, zone)
	return w.near(zone, before)
}

// near is in with a choice: of two instants it returns the one with the given offset.
func (w wall) near(zone *time.Location, prefer int64) core.Time {
	if t := core.Time(int64(w) - prefer); offset(t, zone) == prefer {
		return t
	}
	before, after := offset(core.Time(w)-dayMillis, zone), offset(core.Time(w)+dayMillis, zone)
	for _, o := range [...]int64{before, after} {
		if t := core.Time(int64(w) - o); offset(t, zone) == o {
			return t
		}
	}
	return core.Time(int64(w) - before)
}

func (w wall) day() Date { return Date(floorDiv(int64(w), dayMillis)) }

// sinceMidnight returns the milliseconds of the day, 0 to 86399999.
func (w wall) sinceMidnight() int64 { return int64(w) - floorDiv(int64(w), dayMillis)*dayMillis }

// Date is a calendar day, counted from 1970-01-01. Like a date on paper it belongs to no zone.
type Date int64

// DateOf returns the day a calendar in zone shows at t.
func DateOf(t core.Time, zone *time.Location) Date { return wallOf(t, zone).day() }

// Start returns the first instant of the day in zone.
func (d Date) Start(zone *time.Location) core.Time { return d.wall().in(zone) }

func (d Date) wall() wall { return wall(int64(d) * dayMillis) }

// Weekday returns the day of the week.
func (d Date) Weekday() time.Weekday {
	return time.Weekday(floorMod(int64(d)+int64(time.Thursday), 7)) // day 0 was a Thursday
}

// isoWeekday counts from Monday = 1 to Sunday = 7.
func (d Date) isoWeekday() int { return int(d.Weekday()+6)%7 + 1 }

// monday returns the Monday of the day's week.
func (d Date) monday() Date { return d - Date(d.isoWeekday()-1) }

// Split splits the day into its Gregorian parts. The arithmetic counts eras of 400 years from 1 March of year 0, so that leap days end their year.
func (d Date) Split() (year int, month time.Month, day int) {
	z := int64(d) + 719468 // days from 0000-03-01 to 1970-01-01
	era := floorDiv(z, 146097)
	dayOfEra := z - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153 // months from March
	day = int(dayOfYear - (153*m+2)/5 + 1)
	year = int(yearOfEra + era*400)
	if m < 10 {
		return year, time.Month(m + 3), day
	}
	return year + 1, time.Month(m - 9), day
}

// DateAt is the inverse of Date.Split. A month outside 1 to 12 moves the year, a day past the end of the month runs into the next one.
func DateAt(year int, month time.Month, day int) Date {
	months := int64(year)*12 + int64(month) - 1
	y, m := floorDiv(months, 12), floorMod(months, 12) // m from January = 0
	if m < 2 {
		y--
	}
	m = (m + 10) % 12 // from March = 0
	era := floorDiv(y, 400)
	yearOfEra := y - era*400
	dayOfYear := (153*m+2)/5 + int64(day) - 1
	return Date(era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468)
}

func daysIn(year int, month time.Month) int {
	switch month {
	case time.April, time.June, time.September, time.November:
		return 30
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
