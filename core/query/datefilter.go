package query

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// DateFilter is the range of a query as the client wrote it. Empty texts are absent.
type DateFilter struct {
	StartDate string // ISO date or calendar expression, inclusive
	EndDate   string // exclusive
	Interval  string // count and unit, such as 1-DAY

	// StartTime and EndTime stand in for absent dates; older clients send them.
	StartTime, EndTime *core.Time
}

// Empty reports whether nothing was given.
func (f DateFilter) Empty() bool {
	return f.StartDate == "" && f.EndDate == "" && f.Interval == "" && f.StartTime == nil && f.EndTime == nil
}

// Range evaluates the filter. m.Now is the one instant that all queries of a request share, m.Zone the zone of the query.
func (f DateFilter) Range(m dates.Moment) (core.Range, error) {
	start, hasStart, err := readDate(m, "startDate", f.StartDate, f.StartTime)
	if err != nil {
		return core.Range{}, err
	}
	end, hasEnd, err := readDate(m, "endDate", f.EndDate, f.EndTime)
	if err != nil {
		return core.Range{}, err
	}
	if !hasStart || !hasEnd {
		if f.Interval == "" {
			return core.Range{}, core.Errorf(core.Invalid, "IllegalArgumentException: Insufficient parameters. One of the following combinations "+
				"is required: interval, interval + startDate, interval + endDate, startDate + endDate")
		}
		length, err := dates.ParseInterval(f.Interval)
		if err != nil {
			return core.Range{}, core.Errorf(core.Invalid, "IllegalArgumentException: Wrong interval syntax: %s", f.Interval)
		}
		switch {
		case hasStart:
			end = length.After(start, m.Zone)
		case hasEnd:
			start = length.Before(end, m.Zone)
		default:
			start, end = max(length.Before(m.Now, m.Zone), core.MinTime), m.Now
		}
	}
	if start >= end {
		return core.Range{}, core.Errorf(core.Invalid, "IllegalArgumentException: End Date must be greater than Start Date")
	}
	return core.Range{Start: start, End: end}, nil
}

// OpenRange is Range for routes where either side may be missing: that side is unbounded then.
func (f DateFilter) OpenRange(m dates.Moment) (core.Range, error) {
	if f.Interval == "" {
		if f.StartDate == "" && f.StartTime == nil {
			earliest := dates.MinDate
			f.StartTime = &earliest
		}
		if f.EndDate == "" && f.EndTime == nil {
			latest := dates.MaxDate
			f.EndTime = &latest
		}
	}
	return f.Range(m)
}

// readDate reads one side; ok is false when it was not given.
func readDate(m dates.Moment, field, text string, millis *core.Time) (t core.Time, ok bool, err error) {
	if text == "" {
		if millis == nil {
			return 0, false, nil
		}
		return *millis, true, nil
	}
	if t, err = m.Parse(text); err != nil {
		return 0, false, core.Errorf(core.Invalid, "IllegalArgumentException: Wrong %s syntax: %s", field, text)
	}
	return t, true, nil
}

// inZone returns m with the zone of the query, where it names one.
func inZone(m dates.Moment, id string) (dates.Moment, error) {
	if id == "" {
		return m, nil
	}
	zone, err := dates.LoadZoneOrOffset(id)
	if err != nil {
		return m, core.Errorf(core.Invalid, "IllegalArgumentException: %v", err)
	}
	m.Zone = zone
	return m, nil
}
