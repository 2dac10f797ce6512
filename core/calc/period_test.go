package calc_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// at reads yyyy-MM-dd, yyyy-MM-dd HH:mm or yyyy-MM-ddTHH:mm:ss.SSSZ with the standard library.
func at(t testing.TB, text string) core.Time {
	t.Helper()
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", time.RFC3339Nano} {
		if std, err := time.Parse(layout, text); err == nil {
			return core.TimeOf(std)
		}
	}
	t.Fatalf("bad time %q", text)
	return 0
}

func location(t testing.TB, id string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(id)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func starts(t testing.TB, p calc.Period, from, to string) []core.Time {
	t.Helper()
	g, err := p.Grid(core.Range{Start: at(t, from), End: at(t, to)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(g.Starts())
}

// The table of section 8 of the series contract.
func TestGridTable(t *testing.T) {
	tests := []struct {
		count                           int64
		unit                            dates.Unit
		start, end, first, second, last string
	}{
		{10, dates.Minute, "2021-05-03 10:07", "2021-05-03 11:00", "2021-05-03 10:10", "2021-05-03 10:20", "2021-05-03 10:50"},
		{25, dates.Minute, "2021-05-03 10:07", "2021-05-03 13:00", "2021-05-03 10:25", "2021-05-03 10:50", "2021-05-03 12:55"},
		{25, dates.Minute, "2021-05-03 10:55", "2021-05-03 13:00", "2021-05-03 11:15", "2021-05-03 11:40", "2021-05-03 12:55"},
		{90, dates.Minute, "2021-05-03 10:07", "2021-05-04 00:00", "2021-05-03 11:30", "2021-05-03 13:00", "2021-05-03 23:30"},
		{5, dates.Hour, "2021-05-03 11:00", "2021-05-05 00:00", "2021-05-03 15:00", "2021-05-03 20:00", "2021-05-04 21:00"},
		{3, dates.Day, "2021-05-03 10:00", "2021-05-20", "2021-05-04", "2021-05-07", "2021-05-19"},
		{10, dates.Day, "2021-05-03 10:00", "2021-06-20", "2021-05-11", "2021-05-21", "2021-06-10"},
		{1, dates.Week, "2021-05-01", "2021-05-20", "2021-05-03", "2021-05-10", "2021-05-17"},
		{2, dates.Week, "2021-05-05", "2021-06-30", "2021-05-17", "2021-05-31", "2021-06-28"},
		{5, dates.Month, "2021-05-03 10:00", "2022-08-15", "2021-06-01", "2021-11-01", "2022-04-01"},
		{1, dates.Quarter, "2021-05-03 10:00", "2022-01-15", "2021-07-01", "2021-10-01", "2022-01-01"},
		{7, dates.Year, "2021-05-03", "2040-01-01", "2026-01-01", "2033-01-01", "2033-01-01"},
	}
	for _, tt := range tests {
		got := starts(t, calc.Period{Count: tt.count, Unit: tt.unit}, tt.start, tt.end)
		if len(got) < 2 || got[0] != at(t, tt.first) || got[1] != at(t, tt.second) || got[len(got)-1] != at(t, tt.last) {
			t.Errorf("%d %v from %s: %v", tt.count, tt.unit, tt.start, isoAll(got))
		}
	}
}

func isoAll(times []core.Time) []string {
	var texts []string
	for _, t := range times {
		texts = append(texts, dates.FormatISO(t))
	}
	return texts
}

func TestGridAlignments(t *testing.T) {
	tests := []struct {
		name       string
		period     calc.Period
		start, end string
		want       []string
	}{
		{"25 minutes continue past the hour", calc.Period{Count: 25, Unit: dates.Minute}, "2021-05-03 10:50", "2021-05-03 11:41", []string{"2021-05-03 10:50", "2021-05-03 11:15", "2021-05-03 11:40"}},
		{"start time", calc.Period{Count: 10, Unit: dates.Minute, Align: calc.StartTime}, "2021-05-03 10:07", "2021-05-03 10:30", []string{"2021-05-03 10:07", "2021-05-03 10:17", "2021-05-03 10:27"}},
		{"end time", calc.Period{Count: 10, Unit: dates.Minute, Align: calc.EndTime}, "2021-05-03 10:07", "2021-05-03 10:30", []string{"2021-05-03 10:10", "2021-05-03 10:20"}},
		{"months from the 31st", calc.Period{Count: 1, Unit: dates.Month, Align: calc.StartTime}, "2021-01-31", "2021-05-01", []string{"2021-01-31", "2021-02-28", "2021-03-31", "2021-04-30"}},
		{"months back from the 31st", calc.Period{Count: 1, Unit: dates.Month, Align: calc.EndTime}, "2021-01-15", "2021-05-31", []string{"2021-01-31", "2021-02-28", "2021-03-31", "2021-04-30"}},
		{"first value", calc.Period{Count: 1, Unit: dates.Day, Align: calc.FirstValueTime}, "1970-01-01", "1970-01-03", []string{"1970-01-01", "1970-01-02"}},
		{"before 1970", calc.Period{Count: 7, Unit: dates.Year}, "1950-01-01", "1971-01-01", []string{"1956-01-01", "1963-01-01", "1970-01-01"}},
		{"days over a switch", calc.Period{Count: 1, Unit: dates.Day, Zone: location(t, "Europe/Berlin")}, "2021-03-27 00:00", "2021-03-29 23:00", []string{"2021-03-27 23:00", "2021-03-28 22:00", "2021-03-29 22:00"}},
		{"nothing", calc.Period{Count: 1, Unit: dates.Year}, "2021-02-01", "2021-12-31", nil},
		{"huge count", calc.Period{Count: 9223372036854775807, Unit: dates.Hour, Align: calc.StartTime}, "2021-02-01", "2021-12-31", []string{"2021-02-01"}},
		{"huge calendar count", calc.Period{Count: 99999, Unit: dates.Year, Align: calc.StartTime}, "2021-02-01", "2021-12-31", []string{"2021-02-01"}},
	}
	for _, tt := range tests {
		got := starts(t, tt.period, tt.start, tt.end)
		var want []core.Time
		for _, text := range tt.want {
			want = append(want, at(t, text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", tt.name, isoAll(got), tt.want)
		}
	}
}

// The examples of section 3.9 of the SQL contract: the first period contains the start.
func TestCoveringGrid(t *testing.T) {
	tests := []struct {
		count        int64
		unit         dates.Unit
		start, first string
	}{
		{45, dates.Minute, "2021-05-03 15:55", "2021-05-03 15:45"}, {7, dates.Hour, "2021-05-03 16:00", "2021-05-03 14:00"}, {10, dates.Hour, "2021-05-03 16:00", "2021-05-03 10:00"},
		{5, dates.Day, "2021-05-01 16:00", "2021-05-01"}, {1, dates.Week, "2021-04-01 09:00", "2021-03-29"}, {2, dates.Week, "2021-04-01 09:00", "2021-03-29"},
		{1, dates.Year, "1960-05-01", "1960-01-01"}, {10, dates.Minute, "2021-05-03 10:10", "2021-05-03 10:10"},
	}
	for _, tt := range tests {
		g, err := calc.Period{Count: tt.count, Unit: tt.unit}.CoveringGrid(core.Range{Start: at(t, tt.start), End: at(t, "2022-01-01")}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c := g.Cursor(); c.Start() != at(t, tt.first) || !c.Seek(at(t, tt.start)) || c.Index() != 0 {
			t.Errorf("%d %v from %s starts at %s", tt.count, tt.unit, tt.start, dates.FormatISO(c.Start()))
		}
	}
}

func TestCursorWalksWithSamples(t *testing.T) {
	for _, unit := range []dates.Unit{dates.Hour, dates.Day, dates.Week, dates.Month} {
		p := calc.Period{Count: 2, Unit: unit, Zone: location(t, "America/New_York")}
		r := core.Range{Start: at(t, "2021-02-03 10:11"), End: at(t, "2021-12-24 01:02")}
		g, err := p.Grid(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Collect(g.Starts())
		c := g.Cursor()
		for s := r.Start - 1000; s < r.End+1000; s += 7*3600_000 + 13 {
			// The definition: the last start that is not after s.
			i, found := slices.BinarySearch(all, s)
			if !found {
				i--
			}
			ok := c.Seek(s)
			if want := i >= 0 && s < r.End; ok != want {
				t.Fatalf("%v: Seek(%s) = %v, want %v", unit, dates.FormatISO(s), ok, want)
			}
			if ok && (c.Start() != all[i] || c.Index() != int64(i) || s >= c.End()) {
				t.Fatalf("%v: Seek(%s) found %s, want %s", unit, dates.FormatISO(s), dates.FormatISO(c.Start()), dates.FormatISO(all[i]))
			}
		}
	}
}

func TestPeriodValidate(t *testing.T) {
	for _, p := range []calc.Period{{}, {Count: 1}, {Unit: dates.Day}, {Count: -1, Unit: dates.Day}, {Count: 1, Unit: dates.Nanosecond}} {
		if p.Validate() == nil {
			t.Errorf("%v is valid", p)
		}
	}
	for text, want := range map[string]calc.Align{"": calc.Calendar, "calendar": calc.Calendar, "End_Time": calc.EndTime, "START_TIME": calc.StartTime, "FIRST_VALUE_TIME": calc.FirstValueTime} {
		if got, err := calc.ParseAlign(text); err != nil || got != want {
			t.Errorf("ParseAlign(%q) = %v, %v", text, got, err)
		}
	}
	if _, err := calc.ParseAlign("LEFT"); err == nil {
		t.Error("ParseAlign accepts LEFT")
	}
}

func BenchmarkCursor(b *testing.B) {
	g, err := calc.Period{Count: 1, Unit: dates.Day, Zone: location(b, "Europe/Berlin")}.Grid(core.Range{Start: 0, End: core.MaxTime}, 0)
	if err != nil {
		b.Fatal(err)
	}
	c, t := g.Cursor(), core.Time(0)
	for b.Loop() {
		if t += 1000; t > 1e12 {
			c, t = g.Cursor(), 0
		}
		c.Seek(t)
	}
}
