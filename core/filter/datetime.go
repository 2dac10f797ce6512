package filter

import (
	"math"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// DateTime returns an instant with a zone, whose members such as hourOfDay expressions read; nil = UTC.
func DateTime(t core.Time, zone *time.Location) Value {
	if zone == nil {
		zone = time.UTC
	}
	return Value{kind: kindDate, num: float64(t), zone: zone}
}

// clockOf returns a time of day, in milliseconds since midnight by the local clock.
func clockOf(t time.Time) Value {
	seconds := (t.Hour()*60+t.Minute())*60 + t.Second()
	return Value{kind: kindClock, num: float64(seconds*1000 + t.Nanosecond()/1e6)}
}

// parseClock reads HH:mm[:ss[.SSS]] as milliseconds since midnight.
func parseClock(text string) (millis float64, ok bool) {
	for _, layout := range [...]string{"15:04", "15:04:05", "15:04:05.000"} {
		if t, err := time.Parse(layout, text); err == nil && len(text) == len(layout) {
			return clockOf(t).num, true
		}
	}
	return 0, false
}

// clockText is the inverse of parseClock, in full.
func clockText(millis float64) string {
	return time.UnixMilli(int64(millis)).UTC().Format("15:04:05.000")
}

// local is the instant by the clock of its zone.
func (v Value) local() time.Time {
	zone := v.zone
	if zone == nil {
		zone = time.UTC
	}
	return time.UnixMilli(int64(v.num)).In(zone)
}

// member reads a member of a DateTime; names are in lower case. Members about working days go by the calendar. ok is false for an unknown one.
func (v Value) member(name string, calendar *dates.Calendar) (m Value, ok bool) {
	t := v.local()
	number := func(n int) (Value, bool) { return Number(float64(n)), true }
	millis := int(clockOf(t).num)
	year, week := t.ISOWeek()
	switch name {
	case "year", "yearofera":
		return number(t.Year())
	case "yearofcentury":
		return number(t.Year() % 100)
	case "centuryofera":
		return number(t.Year() / 100)
	case "monthofyear":
		return number(int(t.Month()))
	case "dayofmonth":
		return number(t.Day())
	case "dayofyear":
		return number(t.YearDay())
	case "day_of_week":
		return Text(t.Weekday().String()), true
	case "dayofweek":
		return number((int(t.Weekday())+6)%7 + 1)
	case "weekyear":
		return number(year)
	case "weekofweekyear":
		return number(week)
	case "hourofday":
		return number(t.Hour())
	case "minuteofhour":
		return number(t.Minute())
	case "secondofminute":
		return number(t.Second())
	case "millisofsecond":
		return number(millis % 1000)
	case "minuteofday":
		return number(millis / 60_000)
	case "secondofday":
		return number(millis / 1000)
	case "millisofday":
		return number(millis)
	case "nanoofday":
		return Number(float64(millis) * 1e6), true
	case "timeofday":
		return clockOf(t), true
	case "millis":
		return Number(v.num), true
	case "epochnano":
		return Number(v.num * 1e6), true
	case "iso":
		return Text(dates.FormatISO(core.Time(v.num))), true
	}
	return v.day(name, calendar)
}

// workdayKeywords are the members that name another day, with the calendar expression that finds it.
var workdayKeywords = map[string]string{
	"next_workday": "next_working_day", "previous_workday": "previous_working_day",
	"next_non_working_day": "next_vacation_day", "previous_non_working_day": "previous_vacation_day",
}

// day reads a member that is another day, at its midnight.
func (v Value) day(name string, calendar *dates.Calendar) (Value, bool) {
	keyword, ok := workdayKeywords[name]
	if !ok {
		return Null, false
	}
	t, err := dates.Moment{Now: core.Time(v.num), Zone: v.local().Location(), Calendar: calendar}.Parse(keyword)
	return DateTime(t, v.zone), err == nil
}

// dateMethods are the methods of a DateTime.
var dateMethods = map[string]struct {
	min, max int
	call     func(r *run, v Value, args []Value) Value
}{
	"add":         {2, 2, addUnits},
	"to_timezone": {1, 1, inZone},
	"is_weekday":  {0, 1, func(_ *run, v Value, a []Value) Value { return Bool(weekday(v, a)) }},
	"is_weekend":  {0, 1, func(_ *run, v Value, a []Value) Value { return Bool(!weekday(v, a)) }},
	"is_workday": {0, 1, func(r *run, v Value, a []Value) Value {
		worked, _ := r.workday(v, a)
		return Bool(worked)
	}},
	"is_exceptionday": {0, 1, func(r *run, v Value, a []Value) Value {
		_, exception := r.workday(v, a)
		return Bool(exception)
	}},
}

// dateMethod compiles a method of a DateTime; ok is false when there is none of this name.
func (c *compiler) dateMethod(n *node) (f eval, ok bool, err error) {
	m, ok := dateMethods[n.text]
	if !ok || c.context != RawSamples {
		return nil, false, nil
	}
	if given := len(n.args) - 1; given < m.min || given > m.max {
		return nil, true, c.fail(n, "wrong number of arguments for method '"+n.at.text+"'")
	}
	args, err := c.nodes(n.args)
	return func(r *run) Value {
		var values [3]Value // the date and two arguments: no method takes more
		for i, a := range args {
			values[i] = a(r)
		}
		if r.err != nil || values[0].kind != kindDate {
			return Null
		}
		return m.call(r, values[0], values[1:len(args)])
	}, true, err
}

// addUnits shifts a date; a fraction of the count is cut.
func addUnits(r *run, v Value, args []Value) Value {
	count, ok := args[0].number()
	unit, err := dates.ParseUnit(args[1].String())
	if !ok || math.IsNaN(count) || err != nil {
		r.note(core.Errorf(core.Invalid, "add: '%s' '%s' is not a count and a unit", args[0].String(), args[1].String()))
		return Null
	}
	n := int64(max(math.MinInt32, min(math.MaxInt32, math.Floor(count))))
	return DateTime(unit.Add(core.Time(v.num), n, v.local().Location()), v.zone)
}

func inZone(r *run, v Value, args []Value) Value {
	zone, err := dates.LoadZoneOrOffset(args[0].String())
	if err != nil {
		r.note(core.Wrap(core.Invalid, err, "to_timezone"))
		return Null
	}
	return DateTime(core.Time(v.num), zone)
}

// weekday reports whether the local day belongs to the working week of a country.
func weekday(v Value, args []Value) bool {
	country := ""
	if len(args) > 0 {
		country = args[0].String()
	}
	return dates.Weekday(country, dates.DateAt(v.local().Date()))
}

// workday reports whether the local day is worked by the calendar that is named, or else by the default one, and whether that is an exception from the
// regular week. A calendar that is unknown, or lists no day of that year, is an error.
func (r *run) workday(v Value, args []Value) (worked, exception bool) {
	calendar, err := r.calendar, error(nil)
	if len(args) > 0 {
		calendar, err = r.calendars.Find(args[0].String())
	}
	day := dates.DateAt(v.local().Date())
	if err == nil {
		worked, err = calendar.ListedWorkday(day)
	}
	if err != nil {
		r.note(err)
		return false, false
	}
	return worked, calendar.ExceptionDay(day)
}

// timeOfDay is filter_by_time_of_day: from the first time of day on, up to but not including the second; across midnight when the second is earlier.
func timeOfDay(r *run, args []Value) Value {
	from, ok1 := parseClock(args[0].String())
	to, ok2 := parseClock(args[1].String())
	if !ok1 || !ok2 {
		r.note(core.Errorf(core.Invalid, "filter_by_time_of_day: '%s' or '%s' is not HH:mm", args[0].String(), args[1].String()))
		return Null
	}
	at := clockOf(r.env.Lookup("date").local()).num
	if from <= to {
		return Bool(at >= from && at < to)
	}
	return Bool(at >= from || at < to)
}

// orderClocks compares times of day: one beside a text that reads as one, or two of them. ok is false when neither side is one.
func orderClocks(a, b Value) (o ordering, ok bool) {
	x, ok1 := clockValue(a, b)
	y, ok2 := clockValue(b, a)
	if !ok1 || !ok2 {
		return unordered, false
	}
	return compare(Number(x), Number(y)), true
}

// clockValue reads a as a time of day, if a or what it is compared with makes it one.
func clockValue(a, other Value) (millis float64, ok bool) {
	switch {
	case a.kind == kindClock:
		return a.num, true
	case a.kind == kindText && (other.kind == kindClock || other.kind == kindDate):
		return parseClock(a.text)
	case a.kind == kindDate && other.kind == kindClock, a.kind == kindDate && other.kind == kindText && isClock(other.text):
		return clockOf(a.local()).num, true
	}
	return 0, false
}

func isClock(text string) bool {
	_, ok := parseClock(text)
	return ok
}

// RawSampleEnv is the Env of a stored sample. A pointer to one can be reused for many samples.
type RawSampleEnv struct {
	Time  core.Time
	Zone  *time.Location
	Value float64
}

// Lookup implements Env.
func (e *RawSampleEnv) Lookup(name string) Value {
	switch name {
	case "value":
		return Number(e.Value)
	case "date":
		return DateTime(e.Time, e.Zone)
	}
	return Null
}

// Tag implements Env: a sample has no tags.
func (e *RawSampleEnv) Tag(string) string { return "" }

// VersionEnv is the Env of one version of a sample.
type VersionEnv struct {
	Value   float64
	Version core.VersionAt
}

// Lookup implements Env.
func (e *VersionEnv) Lookup(name string) Value {
	switch name {
	case "value":
		return Number(e.Value)
	case "version_status":
		return Text(e.Version.Status)
	case "version_source":
		return Text(e.Version.Source)
	case "version_time":
		return Number(float64(e.Version.Written))
	}
	return Null
}

// Tag implements Env: a version has no tags.
func (e *VersionEnv) Tag(string) string { return "" }
