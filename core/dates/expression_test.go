package dates_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

func zone(t testing.TB, id string) *time.Location {
	t.Helper()
	z, err := dates.LoadZoneOrOffset(id)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func eval(t *testing.T, m dates.Moment, text string) core.Time {
	t.Helper()
	e, err := dates.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return e.Eval(m)
}

// The table of section 9.3 of the contract; an empty third column is "same".
func TestExprWorkedEvaluations(t *testing.T) {
	tests := []struct{ expr, utc, newYork string }{
		{"now - 90 * second", "2021-03-10T14:36:22.481Z", ""},
		{"current_minute", "2021-03-10T14:37:00Z", ""},
		{"current_hour - 1 * day", "2021-03-09T14:00:00Z", ""},
		{"previous_hour", "2021-03-10T13:00:00Z", ""},
		{"current_day", "2021-03-10T00:00:00Z", "2021-03-10T05:00:00Z"},
		{"current_day + 7 * day", "2021-03-17T00:00:00Z", "2021-03-17T04:00:00Z"},
		{"current_day + 168 * hour", "2021-03-17T00:00:00Z", "2021-03-17T05:00:00Z"},
		{"current_week", "2021-03-08T00:00:00Z", "2021-03-08T05:00:00Z"},
		{"next_week", "2021-03-15T00:00:00Z", "2021-03-15T04:00:00Z"},
		{"wednesday", "2021-03-10T00:00:00Z", "2021-03-10T05:00:00Z"},
		{"thursday", "2021-03-04T00:00:00Z", "2021-03-04T05:00:00Z"},
		{"previous_month", "2021-02-01T00:00:00Z", "2021-02-01T05:00:00Z"},
		{"next_month + 3 * day", "2021-04-04T00:00:00Z", "2021-04-04T04:00:00Z"},
		{"previous_quarter", "2020-10-01T00:00:00Z", "2020-10-01T04:00:00Z"},
		{"previous_year", "2020-01-01T00:00:00Z", "2020-01-01T05:00:00Z"},
		{"previous_vacation_day", "2021-03-07T00:00:00Z", "2021-03-07T05:00:00Z"},
		{"next_vacation_day", "2021-03-13T00:00:00Z", "2021-03-13T05:00:00Z"},
		{"last_working_day", "2021-03-31T00:00:00Z", "2021-03-31T04:00:00Z"},
		{"first_vacation_day", "2021-03-06T00:00:00Z", "2021-03-06T05:00:00Z"},
	}
	now := ms(t, "2021-03-10T14:37:52.481Z")
	for _, tt := range tests {
		if got := eval(t, dates.Moment{Now: now}, tt.expr); got != ms(t, tt.utc) {
			t.Errorf("%s in UTC = %s, want %s", tt.expr, dates.FormatISO(got), tt.utc)
		}
		want := tt.newYork
		if want == "" {
			want = tt.utc
		}
		if got := eval(t, dates.Moment{Now: now, Zone: zone(t, "America/New_York")}, tt.expr); got != ms(t, want) {
			t.Errorf("%s in New York = %s, want %s", tt.expr, dates.FormatISO(got), want)
		}
	}
}

func TestExprForms(t *testing.T) {
	// Wednesday, 31 March 2021.
	m := dates.Moment{Now: ms(t, "2021-03-31T12:00:00Z")}
	tests := []struct{ expr, want string }{
		{"now - 1 * month", "2021-02-28T12:00:00Z"}, {"now - 1 * quarter", "2020-12-31T12:00:00Z"},
		{"now", "2021-03-31T12:00:00Z"}, {"TIME", "2021-03-31T12:00:00Z"}, {" Now ", "2021-03-31T12:00:00Z"},
		{"now-5*minutes", "2021-03-31T11:55:00Z"}, {"now - 5 minute", "2021-03-31T11:55:00Z"}, {"now – 5 * MINUTE", "2021-03-31T11:55:00Z"},
		{"now - minute", "2021-03-31T11:59:00Z"}, {"now - 2*day + 3*hour", "2021-03-29T15:00:00Z"},
		{"now + 1.5 * second", "2021-03-31T12:00:01.5Z"}, {"now - 0.001 * second", "2021-03-31T11:59:59.999Z"}, {"now - 1.9 * day", "2021-03-30T12:00:00Z"},
		{"now - 10 * millisecond", "2021-03-31T11:59:59.99Z"}, {"next_month+3*day", "2021-04-04T00:00:00Z"},
		{"today", "2021-03-31T00:00:00Z"}, {"yesterday", "2021-03-30T00:00:00Z"}, {"tomorrow", "2021-04-01T00:00:00Z"}, {"previous_day", "2021-03-30T00:00:00Z"},
		{"first_day", "2021-03-01T00:00:00Z"}, {"last_day", "2021-03-31T00:00:00Z"}, {"mon", "2021-03-29T00:00:00Z"}, {"sun", "2021-03-28T00:00:00Z"},
		{"current_working_day", "2021-03-31T00:00:00Z"}, {"previous_working_day", "2021-03-30T00:00:00Z"}, {"next_working_day", "2021-04-01T00:00:00Z"},
		{"first_working_day", "2021-03-01T00:00:00Z"}, {"last_vacation_day", "2021-03-28T00:00:00Z"}, {"next_minute", "2021-03-31T12:01:00Z"},
		{"next_year", "2022-01-01T00:00:00Z"}, {"current_quarter", "2021-01-01T00:00:00Z"}, {"next_quarter", "2021-04-01T00:00:00Z"},
		{"now + 99999 * quarter", "9999-12-31T23:59:59.999Z"}, {"now - 99999999999999999999999 * year", "0000-01-01T00:00:00Z"},
		{"now - 999999999999999999 * millisecond", "0000-01-01T00:00:00Z"},
	}
	for _, tt := range tests {
		if got := eval(t, m, tt.expr); got != ms(t, tt.want) {
			t.Errorf("%q = %s, want %s", tt.expr, dates.FormatISO(got), tt.want)
		}
	}
	for _, text := range []string{"", "nowadays", "now -", "now 5 minute", "now - 5", "now - 5 * ", "now - 5 * fortnight", "now - * day", "now - 1. day", "now - 1 * nanosecond",
		"current_second", "current_hours", "previous_days", "current_", "now - 1 day x", "5 minute", "now()"} {
		if _, err := dates.ParseExpr(text); err == nil {
			t.Errorf("ParseExpr(%q) succeeded", text)
		}
	}
}

func TestExprInOddZones(t *testing.T) {
	tests := []struct{ now, zone, expr, want string }{
		{"2024-06-01T09:30:00Z", "Asia/Kathmandu", "current_hour", "2024-06-01T09:15:00Z"}, // +05:45
		{"2024-06-01T09:20:00Z", "+05:30", "previous_hour", "2024-06-01T07:30:00Z"},
		// Clocks in São Paulo went from 00:00 to 01:00 on 2018-11-04: that day began at 01:00 local time, 03:00 UTC.
		{"2018-11-04T12:00:00Z", "America/Sao_Paulo", "current_day", "2018-11-04T03:00:00Z"},
		{"2018-11-05T12:00:00Z", "America/Sao_Paulo", "current_day - 1 * day", "2018-11-04T03:00:00Z"},
		// 01:30 local occurs twice on 2021-11-07 in New York: a day later keeps the clock, a day before the switch takes the first.
		{"2021-11-06T05:30:00Z", "America/New_York", "now + 1 * day", "2021-11-07T05:30:00Z"},
		{"2021-11-08T06:30:00Z", "America/New_York", "now - 1 * day", "2021-11-07T06:30:00Z"},
		// 02:30 does not exist on 2021-03-14 in New York.
		{"2021-03-13T07:30:00Z", "America/New_York", "now + 1 * day", "2021-03-14T07:30:00Z"},
		// Samoa skipped 2011-12-30.
		{"2011-12-30T12:00:00Z", "Pacific/Apia", "yesterday", "2011-12-30T10:00:00Z"},
	}
	for _, tt := range tests {
		m := dates.Moment{Now: ms(t, tt.now), Zone: zone(t, tt.zone)}
		if got := eval(t, m, tt.expr); got != ms(t, tt.want) {
			t.Errorf("%s at %s in %s = %s, want %s", tt.expr, tt.now, tt.zone, dates.FormatISO(got), tt.want)
		}
	}
}

func TestMomentParse(t *testing.T) {
	m := dates.Moment{Now: ms(t, "2021-03-10T14:37:52.481Z"), Zone: zone(t, "America/New_York")}
	for text, want := range map[string]string{
		"2021-05-03T10:00:00Z": "2021-05-03T10:00:00Z", "9999-12-31T23.59.59.999Z": "9999-12-31T23:59:59.999Z", "current_day": "2021-03-10T05:00:00Z",
		"1000-01-01T00:00:00Z": "1000-01-01T00:00:00Z",
	} {
		if got, err := m.Parse(text); err != nil || got != ms(t, want) {
			t.Errorf("Parse(%q) = %s, %v, want %s", text, dates.FormatISO(got), err, want)
		}
	}
	locals := map[string]string{
		"2021-05-03": "2021-05-03T04:00:00Z", "2021-05-03 10:00": "2021-05-03T14:00:00Z", "2021-05-03 10:00:07": "2021-05-03T14:00:07Z",
		"2021-05-03 10:00:07.1239": "2021-05-03T14:00:07.123Z", "2021-05-03T10:00:07": "2021-05-03T14:00:07Z",
	}
	for text, want := range locals {
		if got, err := m.ParseLocal(text); err != nil || got != ms(t, want) {
			t.Errorf("ParseLocal(%q) = %s, %v, want %s", text, dates.FormatISO(got), err, want)
		}
		if got, err := m.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %s, want an error", text, dates.FormatISO(got))
		}
	}
	for _, text := range []string{"1620036000000", "", "2021", "2021-05", "2021-05-03 10", "2021-05-03 10:00:07.1", "2021-02-30", "2021-05-03x10:00"} {
		if got, err := m.ParseLocal(text); err == nil {
			t.Errorf("ParseLocal(%q) = %s, want an error", text, dates.FormatISO(got))
		}
	}
}

func TestMomentParseLiteral(t *testing.T) {
	m := dates.Moment{Now: ms(t, "2021-03-10T14:37:52Z"), Zone: zone(t, "America/New_York")}
	for text, want := range map[string]string{"2021": "2021-01-01T05:00:00Z", "2021-05": "2021-05-01T04:00:00Z", "2021-05-03": "2021-05-03T04:00:00Z", "time": "2021-03-10T14:37:52Z"} {
		if got, err := m.ParseLiteral(text); err != nil || got != ms(t, want) {
			t.Errorf("ParseLiteral(%q) = %s, %v, want %s", text, dates.FormatISO(got), err, want)
		}
	}
	for _, text := range []string{"20x1", "2021-13", "2021/05"} {
		if got, err := m.ParseLiteral(text); err == nil {
			t.Errorf("ParseLiteral(%q) = %s, want an error", text, dates.FormatISO(got))
		}
	}
}

func TestCalendar(t *testing.T) {
	cal, err := dates.ParseCalendar("Demo", []byte(`{"country":"USA","data":[
		{"date":"2021-03-10","type":"Holiday","description":"a Wednesday off"},{"date":"2021-03-13","type":"workday"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m := dates.Moment{Now: ms(t, "2021-03-10T14:37:52Z"), Calendar: cal}
	for expr, want := range map[string]string{
		"current_working_day": "2021-03-09T00:00:00Z", "previous_vacation_day": "2021-03-07T00:00:00Z", "next_vacation_day": "2021-03-14T00:00:00Z",
		"first_vacation_day": "2021-03-06T00:00:00Z", "last_vacation_day": "2021-03-28T00:00:00Z", "next_working_day": "2021-03-11T00:00:00Z",
	} {
		if got := eval(t, m, expr); got != ms(t, want) {
			t.Errorf("%s = %s, want %s", expr, dates.FormatISO(got), want)
		}
	}
	saturday := dates.DateAt(2021, time.March, 13)
	if !cal.Workday(saturday) || !cal.ExceptionDay(saturday) || cal.ExceptionDay(saturday+1) || !cal.Covers(2021) || cal.Covers(2022) || cal.Name() != "demo" {
		t.Error("wrong facts about the calendar")
	}
	if (*dates.Calendar)(nil).Workday(saturday) || !dates.Weekday("isr", saturday+1) || dates.Weekday("ISR", saturday-1) {
		t.Error("wrong regular weeks")
	}
	if dates.Weekday("IRN", saturday-1) || !dates.Weekday("IRN", saturday) || dates.Weekday("NPL", saturday) || !dates.Weekday("NPL", saturday+1) {
		t.Error("wrong weeks with one day off")
	}
	if got := (*dates.Calendar)(nil).Name(); got != "" {
		t.Errorf("the plain week is called %q", got)
	}
	// Every day of two years is worked: there is no vacation day to find, and the day itself comes back.
	var worked strings.Builder
	for day := dates.DateAt(2020, time.January, 1); day < dates.DateAt(2023, time.January, 1); day++ {
		worked.WriteString(`,{"type":"Workday","date":"` + dates.FormatISO(day.Start(nil))[:10] + `"}`)
	}
	busy, err := dates.ParseCalendar("busy", []byte(`{"data":[`+worked.String()[1:]+`]}`))
	if err != nil || busy.NextDayOff(saturday) != saturday || busy.PreviousDayOff(saturday) != saturday {
		t.Errorf("a calendar without days off: %v", err)
	}
	for _, data := range []string{``, `{"data":[{"date":"2021-3-1","type":"Holiday"}]}`, `{"data":[{"date":"2021-03-01","type":"Feast"}]}`} {
		if _, err := dates.ParseCalendar("x", []byte(data)); err == nil {
			t.Errorf("ParseCalendar(%q) succeeded", data)
		}
	}
}

func TestCalendars(t *testing.T) {
	var none *dates.Calendars
	if got := strings.Join(none.Names(), " "); got != "aus aut bra can chn deu fra gbr isr jpn kor rus sgp usa" || none.Default() != nil {
		t.Errorf("built in: %s", got)
	}
	day := func(text string) dates.Date { return dates.DateOf(ms(t, text+"T00:00:00Z"), nil) }
	for _, tt := range []struct {
		calendar, day     string
		worked, exception bool
	}{
		{"USA", "2018-11-12", false, true}, {"usa", "2018-11-11", false, false}, {"usa", "2020-07-03", false, true}, {"gbr", "2020-05-08", false, true},
		{"gbr", "2020-05-04", true, false}, {"chn", "2020-01-19", true, true}, {"chn", "2020-01-18", false, false}, {"rus", "2018-12-29", true, true},
		{"rus", "2018-12-31", false, true}, {"isr", "2019-05-09", false, true}, {"isr", "2019-05-12", true, false}, {"isr", "2019-05-10", false, false},
		{"can", "2018-07-02", false, true}, {"aus", "2019-01-28", false, true}, {"jpn", "2019-05-02", false, true}, {"fra", "2021-05-13", true, false},
	} {
		c, err := none.Find(tt.calendar)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Workday(day(tt.day)); got != tt.worked || c.ExceptionDay(day(tt.day)) != tt.exception {
			t.Errorf("%s %s: worked %v, exception %v", tt.calendar, tt.day, got, c.ExceptionDay(day(tt.day)))
		}
	}
	for _, name := range none.Names() {
		c, _ := none.Find(name)
		for year := 2017; year <= 2021; year++ {
			newYear := dates.DateAt(year, time.January, 1)
			_, err := c.ListedWorkday(newYear)
			if listed := year >= 2018 && year <= 2020; c.Covers(year) != listed || (err == nil) != listed {
				t.Errorf("%s covers %d: %v, %v", name, year, c.Covers(year), err)
			}
		}
	}
	table, err := os.ReadFile("holidays.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if c, err := none.Find(words[0]); err == nil { // a day that is no exception from the week would be a slip
			for _, d := range words[3:] {
				if date := day(words[1] + "-" + d); !c.ExceptionDay(date) || c.Workday(date) != (words[2] == "on") {
					t.Errorf("%s %s-%s: worked %v, exception %v", words[0], words[1], d, c.Workday(date), c.ExceptionDay(date))
				}
			}
		}
	}
	if worked, err := (*dates.Calendar)(nil).ListedWorkday(day("2021-05-03")); !worked || err != nil {
		t.Errorf("the plain week: %v, %v", worked, err)
	}
}

func TestOwnCalendars(t *testing.T) {
	own, err := dates.CalendarFile{Data: []dates.CalendarDay{{Date: "2024-03-05", Type: "Holiday"}}}.Calendar("USA")
	if err != nil {
		t.Fatal(err)
	}
	set, err := dates.NewCalendars(own).WithDefault("Usa")
	if err != nil || set.Default() != own {
		t.Errorf("default: %v, %v", set.Default(), err)
	}
	if c, err := set.Find(" uSa "); c != own || err != nil {
		t.Errorf("the file must win: %v, %v", c, err)
	}
	if plain, err := set.WithDefault(""); plain.Default() != nil || err != nil {
		t.Errorf("no default: %v, %v", plain.Default(), err)
	}
	_, err = set.WithDefault("mars")
	if want := "workday calendar 'mars' not found: there are aus, "; err == nil || !strings.HasPrefix(err.Error(), want) || core.CodeOf(err) != core.Invalid {
		t.Errorf("unknown default: %v", err)
	}
	if _, err = set.Find(strings.Repeat("é", 1000)); err == nil || len(err.Error()) > 400 {
		t.Errorf("a long name: %v", err)
	}
	_, err = dates.CalendarFile{Data: []dates.CalendarDay{{Date: "2024-03-05", Type: "Holiday"}, {Date: "2024-03-05", Type: "Workday"}}}.Calendar("x")
	if err == nil || err.Error() != `calendar "x", entry 2: 2024-03-05 is a Holiday and a Workday` {
		t.Errorf("a day of two kinds: %v", err)
	}
}

func FuzzParseCalendar(f *testing.F) {
	f.Add(`{"country":"USA","data":[{"date":"2019-01-01","type":"Holiday","description":"x"},{"date":"2019-01-05","type":"Workday"}]}`)
	f.Add(`{"data":[{"date":"9999-12-31","type":"Workday"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := dates.ParseCalendar("x", []byte(text))
		if err != nil {
			return
		}
		for d := dates.DateAt(2019, time.January, 1); d < dates.DateAt(2019, time.February, 1); d++ {
			if next := c.NextWorkday(d); next != d && !c.Workday(next) {
				t.Fatalf("%s: the working day after %v is none: %v", text, d, next)
			}
		}
	})
}

func TestParseInterval(t *testing.T) {
	tests := []struct {
		text string
		want dates.Interval
	}{
		{"1-DAY", dates.Interval{Count: 1, Unit: dates.Day}}, {"5 minute", dates.Interval{Count: 5, Unit: dates.Minute}}, {"15-minutes", dates.Interval{Count: 15, Unit: dates.Minute}},
		{"500ms", dates.Interval{Count: 500, Unit: dates.Millisecond}}, {"30s", dates.Interval{Count: 30, Unit: dates.Second}}, {"15m", dates.Interval{Count: 15, Unit: dates.Minute}},
		{"6h", dates.Interval{Count: 6, Unit: dates.Hour}}, {"2d", dates.Interval{Count: 2, Unit: dates.Day}}, {"1w", dates.Interval{Count: 1, Unit: dates.Week}},
		{"1.9 HOURS", dates.Interval{Count: 1, Unit: dates.Hour}}, {"3 Quarter", dates.Interval{Count: 3, Unit: dates.Quarter}}, {"2 years", dates.Interval{Count: 2, Unit: dates.Year}},
		{"1 nanosecond", dates.Interval{Count: 1, Unit: dates.Nanosecond}}, {"0-DAY", dates.Interval{Count: 0, Unit: dates.Day}},
	}
	for _, tt := range tests {
		if got, err := dates.ParseInterval(tt.text); err != nil || got != tt.want {
			t.Errorf("ParseInterval(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"", "DAY", "-1-DAY", "1", "1-", "1--DAY", "1 fortnight", "15M", "1.2.3 day", "1 dayss", "1 day x"} {
		if got, err := dates.ParseInterval(text); err == nil {
			t.Errorf("ParseInterval(%q) = %v, want an error", text, got)
		}
	}
	if got := (dates.Interval{Count: 5, Unit: dates.Minute}).String(); got != "5-MINUTE" {
		t.Errorf("String() = %s", got)
	}
}

// Origins of section 8 of the series contract, for Wednesday 2021-05-05 10:07 in UTC and in New York.
func TestUnitOriginAndStart(t *testing.T) {
	now, newYork := ms(t, "2021-05-05T10:07:12.345Z"), zone(t, "America/New_York")
	tests := []struct {
		unit                  dates.Unit
		origin, local, starts string
	}{
		{dates.Millisecond, "2021-05-05T10:00:00Z", "2021-05-05T10:00:00Z", "2021-05-05T10:07:12.345Z"}, {dates.Second, "2021-05-05T10:00:00Z", "2021-05-05T10:00:00Z", "2021-05-05T10:07:12Z"},
		{dates.Minute, "2021-05-05T10:00:00Z", "2021-05-05T10:00:00Z", "2021-05-05T10:07:00Z"}, {dates.Hour, "2021-05-05T00:00:00Z", "2021-05-05T04:00:00Z", "2021-05-05T10:00:00Z"},
		{dates.Day, "2021-05-01T00:00:00Z", "2021-05-01T04:00:00Z", "2021-05-05T00:00:00Z"}, {dates.Week, "2021-05-03T00:00:00Z", "2021-05-03T04:00:00Z", "2021-05-03T00:00:00Z"},
		{dates.Month, "2021-01-01T00:00:00Z", "2021-01-01T05:00:00Z", "2021-05-01T00:00:00Z"}, {dates.Quarter, "2021-01-01T00:00:00Z", "2021-01-01T05:00:00Z", "2021-04-01T00:00:00Z"},
		{dates.Year, "1970-01-01T00:00:00Z", "1970-01-01T05:00:00Z", "2021-01-01T00:00:00Z"},
	}
	for _, tt := range tests {
		if got := tt.unit.Origin(now, nil); got != ms(t, tt.origin) {
			t.Errorf("origin of %v = %s, want %s", tt.unit, dates.FormatISO(got), tt.origin)
		}
		if got := tt.unit.Origin(now, newYork); got != ms(t, tt.local) {
			t.Errorf("origin of %v in New York = %s, want %s", tt.unit, dates.FormatISO(got), tt.local)
		}
		if got := tt.unit.StartOf(now, nil); got != ms(t, tt.starts) {
			t.Errorf("start of the %v = %s, want %s", tt.unit, dates.FormatISO(got), tt.starts)
		}
	}
	if name := dates.Unit(0).String(); name != "Unit(0)" || !math.IsNaN(dates.Unit(0).NominalMillis()) {
		t.Errorf("the zero unit is called %s", name)
	}
}

func TestIntervalArithmetic(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	tests := []struct {
		from     string
		interval dates.Interval
		zone     *time.Location
		want     string
	}{
		{"2021-01-31T00:00:00Z", dates.Interval{Count: 1, Unit: dates.Month}, nil, "2021-02-28T00:00:00Z"},
		{"2024-02-29T00:00:00Z", dates.Interval{Count: 1, Unit: dates.Year}, nil, "2025-02-28T00:00:00Z"},
		{"2021-03-27T12:00:00Z", dates.Interval{Count: 1, Unit: dates.Day}, berlin, "2021-03-28T11:00:00Z"}, // 23 hours
		{"2021-03-27T12:00:00Z", dates.Interval{Count: 24, Unit: dates.Hour}, berlin, "2021-03-28T12:00:00Z"},
		{"2021-10-30T11:00:00Z", dates.Interval{Count: 1, Unit: dates.Day}, berlin, "2021-10-31T12:00:00Z"}, // 25 hours
		{"2021-05-03T00:00:00Z", dates.Interval{Count: 2, Unit: dates.Week}, nil, "2021-05-17T00:00:00Z"},
		{"2021-05-03T00:00:00Z", dates.Interval{Count: 99999, Unit: dates.Quarter}, nil, "9999-12-31T23:59:59.999Z"},
		{"2021-05-03T00:00:00Z", dates.Interval{Count: 9223372036854775807, Unit: dates.Week}, nil, "9999-12-31T23:59:59.999Z"},
		{"2021-05-03T00:00:00Z", dates.Interval{Count: 9223372036854775807, Unit: dates.Hour}, nil, "9999-12-31T23:59:59.999Z"},
	}
	for _, tt := range tests {
		if got := tt.interval.After(ms(t, tt.from), tt.zone); got != ms(t, tt.want) {
			t.Errorf("%s + %v = %s, want %s", tt.from, tt.interval, dates.FormatISO(got), tt.want)
		}
	}
	if got := (dates.Interval{Count: 1, Unit: dates.Month}).Before(ms(t, "2021-03-31T12:00:00Z"), nil); got != ms(t, "2021-02-28T12:00:00Z") {
		t.Errorf("31 March - 1 month = %s", dates.FormatISO(got))
	}
	for count, want := range map[float64]int64{-1.9: -1, 1.5: 1, 1e30: math.MaxInt64, -1e30: -math.MaxInt64, math.Inf(1): math.MaxInt64} {
		if got := dates.NewInterval(count, dates.Day); got != (dates.Interval{Count: want, Unit: dates.Day}) {
			t.Errorf("NewInterval(%v) = %v, want %d", count, got, want)
		}
	}
	if got := dates.NewInterval(math.NaN(), dates.Day); got.Count != 0 {
		t.Errorf("NewInterval(NaN) = %v", got)
	}
	if got := (dates.Interval{Count: math.MinInt64, Unit: dates.Day}).Before(0, nil); got != dates.MaxDate {
		t.Errorf("0 - the least interval = %d", got)
	}
	if got := (dates.Interval{Count: 2, Unit: dates.Month}).NominalMillis(); got != 60*86400000 {
		t.Errorf("two months are nominally %v ms", got)
	}
}

func TestLoadZone(t *testing.T) {
	for _, id := range []string{"Europe/Berlin", "US/Pacific", "Etc/UTC", "GMT", "UTC", "UCT", "WET", "CET", "MET", "EET", "PRC", "ROK", "GMT0", "NZ", "GB", "Japan", "Israel",
		"Cuba", "PST8PDT", "EST5EDT", "CST6CDT", "MST7MDT"} {
		if _, err := dates.LoadZone(id); err != nil {
			t.Errorf("LoadZone(%q): %v", id, err)
		}
	}
	for _, id := range []string{"", "PST", "EST", "MST", "HST", "IST", "JST", "Local", "localtime", "+02:00", "Europe/Atlantis", "../etc/passwd", "posix/Europe/Berlin"} {
		if _, err := dates.LoadZone(id); err == nil {
			t.Errorf("LoadZone(%q) succeeded", id)
		}
	}
	at := ms(t, "2021-07-01T12:00:00Z").Std()
	for id, want := range map[string]int{"US/Pacific-New": -7 * 3600, "Canada/East-Saskatchewan": -6 * 3600, "+02:00": 7200, "-0330": -12600, "GMT-08:00": -28800, "UTC": 0} {
		var cache dates.ZoneCache
		for range 2 {
			z, err := cache.Load(id)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := at.In(z).Zone(); got != want {
				t.Errorf("offset of %q = %d, want %d", id, got, want)
			}
		}
	}
	for _, id := range []string{"+19:00", "+2", "GMT+", "-"} {
		if _, err := dates.LoadZoneOrOffset(id); err == nil {
			t.Errorf("LoadZoneOrOffset(%q) succeeded", id)
		}
	}
}

// Calendar arithmetic is compared with the standard library's over all days that can be stored.
func TestDateAgreesWithStandardLibrary(t *testing.T) {
	for d := dates.Date(-800_000); d < 800_000; d += 13 {
		std := time.Unix(int64(d)*86400, 0).UTC()
		year, month, day := d.Split()
		if y, m, dd := std.Date(); y != year || m != month || dd != day || std.Weekday() != d.Weekday() || dates.DateAt(year, month, day) != d {
			t.Fatalf("day %d = %d-%d-%d %v, want %v", d, year, month, day, d.Weekday(), std)
		}
	}
}

func FuzzParseExpr(f *testing.F) {
	for _, seed := range []string{"now - 5 * MINUTE", "current_day+1.5hour", "monday – 2 weeks + 1 year", "next_vacation_day", "now - 99999999999999999999 * quarter"} {
		f.Add(seed, int64(1615387072481))
	}
	z := zone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, text string, now int64) {
		e, err := dates.ParseExpr(text)
		if err != nil {
			return
		}
		at := min(max(core.Time(now), core.MinTime), core.MaxTime)
		if got := e.Eval(dates.Moment{Now: at, Zone: z}); got < dates.MinDate || got > dates.MaxDate {
			t.Errorf("%q at %d = %d, out of range", text, at, got)
		}
	})
}
