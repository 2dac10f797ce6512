package dates

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Unit is a unit of time. Units up to Hour have a fixed length; Day and longer follow the local calendar. The zero Unit is none of them.
type Unit uint8

// The units, in ascending length. Nanosecond serves as the period of a rate only: instants have no nanoseconds.
const (
	Nanosecond Unit = iota + 1
	Millisecond
	Second
	Minute
	Hour
	Day
	Week
	Month
	Quarter
	Year
)

// unitFacts is indexed by Unit. millis is exact up to Hour, else the nominal length the contract uses for rates: 30, 90 and 365 days.
var unitFacts = [...]struct {
	name   string
	short  string // compact form in rules: 15m
	millis float64
}{
	Nanosecond: {"NANOSECOND", "", 1e-6}, Millisecond: {"MILLISECOND", "ms", 1}, Second: {"SECOND", "s", secondMillis}, Minute: {"MINUTE", "m", minuteMillis},
	Hour: {"HOUR", "h", hourMillis}, Day: {"DAY", "d", dayMillis}, Week: {"WEEK", "w", 7 * dayMillis}, Month: {"MONTH", "", 30 * dayMillis},
	Quarter: {"QUARTER", "", 90 * dayMillis}, Year: {"YEAR", "", 365 * dayMillis},
}

// ParseUnit reads a unit name in singular or plural, any case.
func ParseUnit(text string) (Unit, error) {
	for u := Nanosecond; u <= Year; u++ {
		name := unitFacts[u].name
		if strings.EqualFold(text, name) || len(text) == len(name)+1 && strings.EqualFold(text[:len(name)], name) && text[len(name)]|0x20 == 's' {
			return u, nil
		}
	}
	return 0, fmt.Errorf("unknown time unit %q: use MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR", text)
}

// String returns the name in capitals, singular: MINUTE.
func (u Unit) String() string {
	if u < Nanosecond || u > Year {
		return fmt.Sprintf("Unit(%d)", uint8(u))
	}
	return unitFacts[u].name
}

// FixedMillis returns the length of the unit in milliseconds; ok is false for Nanosecond and for units that follow the calendar.
func (u Unit) FixedMillis() (millis int64, ok bool) {
	if u < Millisecond || u > Hour {
		return 0, false
	}
	return int64(unitFacts[u].millis), true
}

// NominalMillis returns the length of the unit in milliseconds, taking 24 hours for a day, 30 days for a month, 90 for a quarter and 365 for a year.
func (u Unit) NominalMillis() float64 {
	if u < Nanosecond || u > Year {
		return math.NaN()
	}
	return unitFacts[u].millis
}

// Add moves t by n units. Day and longer keep the time of day in zone; months keep the day of the month or take the last one of a shorter month. The
// result is clamped to MinDate and MaxDate.
func (u Unit) Add(t core.Time, n int64, zone *time.Location) core.Time {
	if n == 0 {
		return t
	}
	if millis, ok := u.FixedMillis(); ok {
		return addMillis(t, n, millis)
	}
	switch u {
	case Day:
		return addDays(t, n, zone)
	case Week:
		return addDays(t, saturatedProduct(n, 7), zone)
	case Month:
		return addMonths(t, n, zone)
	case Quarter:
		return addMonths(t, saturatedProduct(n, 3), zone)
	case Year:
		return addMonths(t, saturatedProduct(n, 12), zone)
	}
	return t
}

// spanDays and spanMonths exceed what lies between times that clampNear lets through: a longer way ends at MinDate or MaxDate.
const (
	spanDays   = 10_003 * 366
	spanMonths = 10_003 * 12
)

// clampNear bounds a time to move from to a year around the dates there are: the base of a calendar period may lie so far before MinDate, and the end of a range
// behind MaxDate.
func clampNear(t core.Time) core.Time {
	return min(max(t, MinDate-367*dayMillis), MaxDate+367*dayMillis)
}

func addMillis(t core.Time, n, millis int64) core.Time {
	span := int64(spanDays * dayMillis)
	d := min(max(saturatedProduct(n, millis), -span), span)
	return clamp(clampNear(t) + core.Time(d))
}

func addDays(t core.Time, n int64, zone *time.Location) core.Time {
	n = min(max(n, -spanDays), spanDays)
	t = clampNear(t)
	o := offset(t, zone)
	return clamp(wall(int64(t)+o+n*dayMillis).near(zone, o))
}

func addMonths(t core.Time, n int64, zone *time.Location) core.Time {
	n = min(max(n, -spanMonths), spanMonths)
	t = clampNear(t)
	o := offset(t, zone)
	w := wall(int64(t) + o)
	year, month, day := w.day().Split()
	months := int64(year)*12 + int64(month) - 1 + n
	year, month = int(floorDiv(months, 12)), time.Month(floorMod(months, 12)+1)
	target := DateAt(year, month, min(day, daysIn(year, month)))
	return clamp((target.wall() + wall(w.sinceMidnight())).near(zone, o))
}

func saturatedProduct(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	if a < -math.MaxInt64/b {
		return -math.MaxInt64
	}
	return a * b
}

// StartOf returns the start of the unit that contains t on a clock in zone: the whole second, minute or hour, midnight, Monday, the first of the month
// or quarter, January 1.
func (u Unit) StartOf(t core.Time, zone *time.Location) core.Time {
	w := wallOf(t, zone)
	if millis, ok := u.FixedMillis(); ok {
		return t - core.Time(floorMod(int64(w), millis))
	}
	day := w.day()
	year, month, _ := day.Split()
	switch u {
	case Day:
		return day.Start(zone)
	case Week:
		return day.monday().Start(zone)
	case Month:
		return DateAt(year, month, 1).Start(zone)
	case Quarter:
		return DateAt(year, (month-1)/3*3+1, 1).Start(zone)
	case Year:
		return DateAt(year, time.January, 1).Start(zone)
	}
	return t
}

// Origin returns the base time that calendar-aligned periods of this unit are counted from: the start of the hour for units up to Minute, of the day for
// Hour, the first of the month for Day, the first Monday of the month (possibly after t) for Week, January 1 for Month and Quarter, 1970 for Year.
func (u Unit) Origin(t core.Time, zone *time.Location) core.Time {
	switch u {
	case Millisecond, Second, Minute:
		return Hour.StartOf(t, zone)
	case Hour:
		return Day.StartOf(t, zone)
	case Day:
		return Month.StartOf(t, zone)
	case Week:
		year, month, _ := DateOf(t, zone).Split()
		return (DateAt(year, month, 7).monday()).Start(zone) // the Monday on or before the 7th
	case Month, Quarter:
		return Year.StartOf(t, zone)
	case Year:
		return Date(0).Start(zone)
	}
	return t
}
