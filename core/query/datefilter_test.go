package query_test

import (
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

func TestDateFilter(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	millis := core.Time(1620036030000)
	for _, tt := range []struct {
		f          query.DateFilter
		zone       *time.Location
		start, end string
	}{
		{between("2021-05-03T10:00:00Z", "2021-05-03T12:00:00+0100"), nil, "2021-05-03T10:00:00Z", "2021-05-03T11:00:00Z"},
		{query.DateFilter{StartDate: "2021-01-31T00:00:00Z", Interval: "1-MONTH"}, nil, "2021-01-31T00:00:00Z", "2021-02-28T00:00:00Z"},
		{query.DateFilter{EndDate: "2021-03-10T00:00:00Z", Interval: "1.5-DAY"}, nil, "2021-03-09T00:00:00Z", "2021-03-10T00:00:00Z"},
		{query.DateFilter{Interval: "2-hours"}, nil, "2021-03-10T12:37:52.481Z", "2021-03-10T14:37:52.481Z"},
		{query.DateFilter{Interval: "99999-QUARTER"}, nil, "1970-01-01T00:00:00Z", "2021-03-10T14:37:52.481Z"},
		{query.DateFilter{StartDate: "current_day", EndDate: "now", Interval: "7-DAY"}, nil, "2021-03-10T00:00:00Z", "2021-03-10T14:37:52.481Z"},
		{query.DateFilter{StartDate: "current_day", Interval: "1-DAY"}, newYork, "2021-03-10T05:00:00Z", "2021-03-11T05:00:00Z"},
		{query.DateFilter{StartDate: "2021-03-14T05:00:00Z", Interval: "1-DAY"}, newYork, "2021-03-14T05:00:00Z", "2021-03-15T04:00:00Z"},
		{query.DateFilter{StartTime: &millis, Interval: "1-MILLISECOND"}, nil, "2021-05-03T10:00:30Z", "2021-05-03T10:00:30.001Z"},
		{between("1000-01-01T00:00:00Z", "9999-12-31T23.59.59.999Z"), nil, "1000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"},
	} {
		got, err := tt.f.Range(dates.Moment{Now: moment.Now, Zone: tt.zone})
		if want := (core.Range{Start: at(t, tt.start), End: at(t, tt.end)}); got != want || err != nil {
			t.Errorf("%+v: %v to %v, %v, want %s to %s", tt.f, got.Start.Std(), got.End.Std(), err, tt.start, tt.end)
		}
	}
}

func TestDateFilterErrors(t *testing.T) {
	insufficient := "IllegalArgumentException: Insufficient parameters. One of the following combinations is required: interval, interval + startDate, " +
		"interval + endDate, startDate + endDate"
	order := "IllegalArgumentException: End Date must be greater than Start Date"
	for _, tt := range []struct {
		f    query.DateFilter
		want string
	}{
		{query.DateFilter{}, insufficient},
		{query.DateFilter{StartDate: "now"}, insufficient},
		{query.DateFilter{EndDate: "now"}, insufficient},
		{between("2030-07-21 00:00:00", "now"), "IllegalArgumentException: Wrong startDate syntax: 2030-07-21 00:00:00"},
		{between("now - 1 * day", "2030-07-21"), "IllegalArgumentException: Wrong endDate syntax: 2030-07-21"},
		{between("now", "now"), order},
		{between("now", "now - 1 * day"), order},
		{query.DateFilter{Interval: "0-DAY"}, order},
		{query.DateFilter{Interval: "day"}, "IllegalArgumentException: Wrong interval syntax: day"},
	} {
		_, err := tt.f.Range(moment)
		if core.CodeOf(err) != core.Invalid || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.f, err, tt.want)
		}
	}
}

func TestOpenRange(t *testing.T) {
	for _, tt := range []struct {
		f    query.DateFilter
		want core.Range
	}{
		{query.DateFilter{}, core.Range{Start: dates.MinDate, End: dates.MaxDate}},
		{query.DateFilter{StartDate: "1970-01-01T00:00:01Z"}, core.Range{Start: 1000, End: dates.MaxDate}},
		{query.DateFilter{EndDate: "1970-01-01T00:00:01Z"}, core.Range{Start: dates.MinDate, End: 1000}},
		{query.DateFilter{Interval: "1-SECOND"}, core.Range{Start: moment.Now - 1000, End: moment.Now}},
	} {
		if got, err := tt.f.OpenRange(moment); got != tt.want || err != nil {
			t.Errorf("%+v: %v, %v, want %v", tt.f, got, err, tt.want)
		}
	}
}
