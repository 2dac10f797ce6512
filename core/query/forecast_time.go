package query

import (
	"fmt"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Horizon says how far a forecast goes: exactly one of Length, Interval and EndDate.
type Horizon struct {
	Length   *int64 // samples; 0 is absent
	Interval string // count and unit
	EndDate  string // ISO date or calendar expression, inclusive
	// StartDate inside the input makes the forecast begin there; the input from there on is not used.
	StartDate string
}

// horizon is a validated Horizon.
type horizon struct {
	length     int64
	interval   dates.Interval
	end, start core.Time
	hasEnd     bool
	hasStart   bool
	moment     dates.Moment
}

func (p *forecaster) readHorizon() (err error) {
	h := p.Horizon
	if h == nil {
		return invalid("forecast.horizon is required")
	}
	to := horizon{moment: p.set.Moment}
	given := 0
	if h.Length != nil && *h.Length != 0 {
		if *h.Length < 0 {
			return invalid(fmt.Sprintf("forecast.horizon.length: %d is negative", *h.Length))
		}
		to.length = *h.Length
		given++
	}
	if to.interval, err = positiveInterval("forecast.horizon.interval", h.Interval); err != nil {
		return err
	}
	if h.Interval != "" {
		given++
	}
	if to.end, to.hasEnd, err = readDate(p.set.Moment, "forecast.horizon.endDate", h.EndDate, nil); err != nil {
		return err
	}
	if to.hasEnd {
		given++
	}
	if to.start, to.hasStart, err = readDate(p.set.Moment, "forecast.horizon.startDate", h.StartDate, nil); err != nil {
		return err
	}
	if given != 1 {
		return invalid("forecast.horizon: exactly one of length, interval, endDate is required")
	}
	p.horizon = to
	return nil
}

// ends reports whether the grid time t lies beyond the horizon. last is the last sample used, count the times found so far. The end of an interval
// is part of it, unless a filter thins the grid.
func (h *horizon) ends(t, last core.Time, count int, filtered bool) bool {
	switch {
	case h.length > 0:
		return int64(count) == h.length
	case h.hasEnd:
		return t > h.end
	}
	end := h.interval.After(last, h.moment.Zone)
	return t > end || filtered && t == end
}

// TimeFilter keeps times of the day and working days. Empty members are no condition.
type TimeFilter struct {
	From, To string // HH:mm, inclusive and exclusive, in the zone of the query; To before From goes over midnight
	Calendar string // key of a workday calendar
}

// timeFilter is a validated TimeFilter.
type timeFilter struct {
	active   bool
	from, to int             // minutes of the day
	calendar *dates.Calendar // nil = every day; a year of which it lists no day has the plain week of its country
	moment   dates.Moment
}

const dayMinutes = 24 * 60

func (p *forecaster) readFilter() error {
	f := p.TimeFilter
	if f == nil || *f == (TimeFilter{}) {
		return nil
	}
	to := timeFilter{active: true, to: dayMinutes, moment: p.set.Moment}
	for _, side := range []struct {
		name, text string
		minute     *int
	}{{"from", f.From, &to.from}, {"to", f.To, &to.to}} {
		if side.text == "" {
			continue
		}
		minute, ok := clock(side.text)
		if !ok {
			return invalid(fmt.Sprintf("forecast.timeFilter.%s: %s is not a time HH:mm", side.name, side.text))
		}
		*side.minute = minute
	}
	if to.from%dayMinutes == to.to%dayMinutes && (f.From != "" && f.To != "") && to.to-to.from != dayMinutes {
		return invalid("forecast.timeFilter: from and to are the same time")
	}
	if !blank(f.Calendar) {
		calendar, err := p.set.Calendars.Find(f.Calendar)
		if err != nil {
			return err
		}
		to.calendar = calendar
	}
	p.filter = to
	return nil
}

// clock reads HH:mm as the minute of the day; 24:00 is its end.
func clock(text string) (minute int, ok bool) {
	if len(text) != 5 || text[2] != ':' {
		return 0, false
	}
	for _, i := range [...]int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	hour, minute := int(text[0]-'0')*10+int(text[1]-'0'), int(text[3]-'0')*10+int(text[4]-'0')
	total := hour*60 + minute
	return total, minute < 60 && total <= dayMinutes
}

func (f *timeFilter) passes(t core.Time) bool {
	if !f.active {
		return true
	}
	if f.calendar != nil && !f.calendar.Workday(dates.DateOf(t, f.moment.Zone)) {
		return false
	}
	local := t.Std()
	if f.moment.Zone != nil {
		local = local.In(f.moment.Zone)
	}
	minute := local.Hour()*60 + local.Minute()
	if f.from < f.to {
		return minute >= f.from && minute < f.to
	}
	return minute >= f.from || minute < f.to
}
