package calc_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// obvious lists the period starts of a range as the contract defines them: origin + k periods for every k, on the calendar of the standard library, which has
// years before 0 and after 9999.
func obvious(p calc.Period, origin core.Time, r core.Range) []core.Time {
	days := map[dates.Unit]int{dates.Day: 1, dates.Week: 7}[p.Unit.(dates.Unit)]
	months := map[dates.Unit]int{dates.Month: 1, dates.Quarter: 3, dates.Year: 12}[p.Unit.(dates.Unit)]
	local := time.UnixMilli(int64(origin)).In(p.Zone)
	year, month, day := local.Date()
	hour, minute, second := local.Clock()
	var found []core.Time
	for _, step := range []int{-1, 1} {
		for k := min(step, 0); ; k += step { // 0 belongs to the upper half
			y, m, d := year, month+time.Month(k*int(p.Count)*months), day
			if months > 0 { // of a shorter month the last day
				d = min(d, time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day())
			}
			t := core.TimeOf(time.Date(y, m, d+k*int(p.Count)*days, hour, minute, second, local.Nanosecond(), p.Zone))
			if r.Contains(t) {
				found = append(found, t)
			}
			if step < 0 && t < r.Start || step > 0 && t >= r.End {
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// base is the base time of the contract for calendar alignment.
func base(u dates.Unit, start core.Time, zone *time.Location) core.Time {
	year, month, _ := time.UnixMilli(int64(start)).In(zone).Date()
	day := 1
	switch u {
	case dates.Week:
		for time.Date(year, month, day, 0, 0, 0, 0, zone).Weekday() != time.Monday {
			day++
		}
	case dates.Month, dates.Quarter:
		month = time.January
	case dates.Year:
		year, month = 1970, time.January
	}
	return core.TimeOf(time.Date(year, month, day, 0, 0, 0, 0, zone))
}

// Periods of calendar units next to the first and the last date, and far from their origin, are those that counting them all gives.
func TestGridAtTheEndsOfTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const day = 24 * 3600_000
	near := func(edge core.Time, days int64) core.Time { // up to days away from an edge, inside the dates there are
		return min(max(edge+core.Time(random.Int64N(2*days*day)-days*day), dates.MinDate), dates.MaxDate)
	}
	edges := []core.Time{dates.MinDate, 0, dates.MaxDate}
	units := []dates.Unit{dates.Day, dates.Week, dates.Month, dates.Quarter, dates.Year}
	zones := []*time.Location{time.UTC, time.FixedZone("east", 5*3600+45*60), time.FixedZone("west", -7*3600)}
	for range 3000 {
		p := calc.Period{Count: 1 + random.Int64N(3), Unit: units[random.IntN(len(units))], Align: calc.Align(random.IntN(4)), Zone: zones[random.IntN(len(zones))]}
		r := core.Range{Start: near(edges[random.IntN(3)], 1500), End: near(edges[random.IntN(3)], 1500)}
		switch random.IntN(4) {
		case 0:
			r.Start = dates.MinDate
		case 1:
			r.End = dates.MaxDate + core.Time(random.IntN(2)) // an inclusive end adds 1 ms
		}
		if r.Start >= min(r.End, dates.MaxDate) {
			continue
		}
		if r.End-r.Start > 40*365*day { // the same on fewer periods
			p.Count = 1 + random.Int64N(4000)
		}
		first := r.Start + core.Time(random.Int64N(int64(r.End-r.Start)))
		origin := [...]core.Time{base(p.Unit.(dates.Unit), r.Start, p.Zone), r.Start, r.End, first}[p.Align]
		name := fmt.Sprintf("%d %v %v %v from %s to %s", p.Count, p.Unit, p.Align, p.Zone, dates.FormatISO(r.Start), dates.FormatISO(r.End))
		g, err := p.Grid(r, first)
		if err != nil {
			t.Fatal(name, err)
		}
		want := obvious(p, origin, r)
		if got := slices.Collect(g.Starts()); !slices.Equal(got, want) {
			t.Fatalf("%s: %d starts from %v, want %d from %v", name, len(got), isoAll(got[:min(3, len(got))]), len(want), isoAll(want[:min(3, len(want))]))
		}
		c, from := g.Cursor(), r.Start
		last := min(r.End, dates.MaxDate)
		for range 20 {
			s := from + core.Time(random.Int64N(int64(last-from)))
			from = s
			i, found := slices.BinarySearch(want, s)
			if !found {
				i--
			}
			if ok := c.Seek(s); ok != (i >= 0) || ok && (c.Start() != want[i] || c.Index() != int64(i)) {
				t.Fatalf("%s: Seek(%s) = %v at %s, period %d of %v", name, dates.FormatISO(s), ok, dates.FormatISO(c.Start()), i, isoAll(want[:min(3, len(want))]))
			}
			if i+1 < len(want) && i >= 0 {
				for next := range g.After(s) {
					if next != want[i+1] {
						t.Fatalf("%s: after %s comes %s", name, dates.FormatISO(s), dates.FormatISO(next))
					}
					break
				}
			}
		}
	}
}

// The last period ends exactly at the end, also where the following one would start after the last date.
func TestGridEndsAtTheLastDate(t *testing.T) {
	r := core.Range{Start: at(t, "2021-05-01"), End: dates.MaxDate}
	for unit, want := range map[dates.Unit]string{dates.Day: "2021-05-01T23:59:59.999Z", dates.Week: "2021-05-07T23:59:59.999Z", dates.Month: "2021-05-31T23:59:59.999Z",
		dates.Quarter: "2021-06-30T23:59:59.999Z", dates.Year: "2021-12-31T23:59:59.999Z"} {
		g, err := calc.Period{Count: 1, Unit: unit, Align: calc.EndTime}.Grid(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c := g.Cursor(); c.Start() != at(t, want) {
			t.Errorf("%v: first period at %s, want %s", unit, dates.FormatISO(c.Start()), want)
		}
		for start := range g.After(dates.MaxDate) {
			t.Errorf("%v: a period starts at %s, after the last date", unit, dates.FormatISO(start))
			break
		}
	}
}
