package filter

import (
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// The members of a DateTime as the contract lists them for 2018-01-13T16:45:22.303Z, a Saturday.
func TestDateTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const at core.Time = 1515861922303
	for _, c := range []struct {
		expr string
		zone *time.Location
		want bool
	}{
		{"date.year = 2018 AND date.monthOfYear = 1 AND date.dayOfMonth = 13", nil, true},
		{"date.hourOfDay = 16 AND date.minuteOfHour = 45 AND date.secondOfMinute = 22 AND date.millisOfSecond = 303", nil, true},
		{"date.day_of_week = 'Saturday' AND date.dayOfWeek = 6", nil, true},
		{"date.dayOfYear = 13 AND date.weekOfWeekyear = 2 AND date.weekyear = 2018", nil, true},
		{"date.minuteOfDay = 1005 AND date.secondOfDay = 60322 AND date.millisOfDay = 60322303 AND date.nanoOfDay = 60322303000000", nil, true},
		{"date.timeOfDay = '16:45:22.303'", nil, true},
		{"date.timeOfDay > '16:45' AND date.timeOfDay < '16:45:23'", nil, true},
		{"date.timeOfDay = '16:45'", nil, false},
		{"date.yearOfCentury = 18 AND date.yearOfEra = 2018 AND date.centuryOfEra = 20", nil, true},
		{"date.millis = 1515861922303 AND date.epochNano = 1515861922303000000 AND date.iso = '2018-01-13T16:45:22.303Z'", nil, true},
		{"date.next_workday = '2018-01-15T00:00:00Z' AND date.previous_workday = '2018-01-12T00:00:00Z'", nil, true},
		{"date.next_non_working_day = '2018-01-14T00:00:00Z' AND date.previous_non_working_day = '2018-01-07T00:00:00Z'", nil, true},
		{"date.hourOfDay = 17 AND date.timeOfDay = '17:45:22.303' AND date.iso = '2018-01-13T16:45:22.303Z'", berlin, true},
		{"date.to_timezone('US/Eastern').hourOfDay = 11", berlin, true},
		{"date.to_timezone('US/Eastern') = date", nil, true},
		{"date.add(1, 'day') > date AND date.add(-0.5, 'DAYS') < date", nil, true},
		{"date.is_weekend() AND NOT date.is_weekday() AND NOT date.is_workday()", nil, true},
		{"date.is_weekday('IRN') AND date.is_weekend('ISR')", nil, true},
		{"filter_by_time_of_day('16:00', '16:45')", nil, false},
		{"filter_by_time_of_day('16:45', '17:00')", nil, true},
		{"filter_by_time_of_day('22:00', '16:46')", nil, true},
		{"date = '2018-01-13T17:45:22.303+01:00'", berlin, true},
		{"value > 1 OR value < 1 OR value = 1 OR value != 1", nil, false}, // NaN
		{"Double.isNaN(value)", nil, true},
		{"value IN (5) OR value NOT IN (5) OR value NOT IN (5, 6) OR value NOT IN ['5'] OR value BETWEEN 4 AND 6 OR value NOT BETWEEN 4 AND 6", nil, false},
		{"5 NOT IN (value) OR 5 NOT IN (6, value) OR 5 NOT BETWEEN value AND 6 OR 5 NOT BETWEEN 4 AND value OR 5 BETWEEN value AND value", nil, false},
		{"5 IN (value, 5)", nil, true},
		{"7 NOT BETWEEN value AND 6 OR 3 NOT BETWEEN 4 AND value", nil, false},
		{"5 NOT IN (6, 7) AND 5 NOT BETWEEN 6 AND 7 AND 8 NOT BETWEEN 6 AND 7 AND NOT 6 NOT BETWEEN 6 AND 7 AND NOT 5 NOT IN (5)", nil, true},
		{"NOT value = 5 AND NOT (value IN (5)) AND NOT (value BETWEEN 4 AND 6)", nil, true}, // NOT before a comparison turns false into true
		{"'a' NOT IN ('b') AND NOT 'a' NOT IN ('a')", nil, true},
	} {
		x, err := Compiler{Zone: c.zone}.Compile(RawSamples, c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		got, err := x.Match(&RawSampleEnv{Time: at, Zone: c.zone, Value: nan()})
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.expr, got, err, c.want)
		}
	}
}

func nan() float64 { f, _ := parseNumber("NaN"); return f }
