package chart

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"

	"github.com/tidemark-db/tidemark/core"
)

// valueTicks are the round numbers between the ends of an axis: 1, 2 or 5 times a power of ten apart, about want of them.
func valueTicks(low, high float64, want int) []plot.Tick {
	step := roundStep((high - low) / float64(max(want, 2)))
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	largest := max(math.Abs(low), math.Abs(high))
	var ticks []plot.Tick
	// Counting steps, not adding them up, keeps the numbers round. The bound only guards against ends that cannot be told apart.
	first := math.Ceil(low/step - 1e-9)
	for i := range 3 * max(want, 2) {
		v := (first + float64(i)) * step
		if v > high+step*1e-9 {
			break
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: valueLabel(v, largest, digits)})
	}
	return ticks
}

// roundStep rounds up to 1, 2 or 5 times a power of ten.
func roundStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range [...]float64{1, 2, 5} {
		if raw <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// valueLabel prints a tick: plain with as many digits as the step needs, with a suffix for thousands and more, or with an exponent.
func valueLabel(v, largest float64, digits int) string {
	switch {
	case v == 0:
		return "0"
	case largest >= 1e15 || largest < 1e-4:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case largest < 10_000:
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	for _, unit := range [...]struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if largest >= unit.size {
			text := strconv.FormatFloat(v/unit.size, 'f', 6, 64)
			if exact, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(exact*unit.size-v) < math.Abs(v)*1e-9 {
				return strings.TrimRight(strings.TrimRight(text, "0"), ".") + unit.name
			}
		}
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// valueRange widens the range of the values so that lines do not touch the frame, and makes sure that it is one.
func valueRange(low, high float64) (float64, float64) {
	span := high - low
	if floor := 1e-9 * max(math.Abs(low), math.Abs(high)); span <= floor || span < 1e-100 {
		span = max(math.Abs(low), 1) * 0.1
		return low - span, high + span
	}
	below := low - span*0.06
	if low >= 0 && below < 0 { // what cannot be negative does not look as if it could
		below = 0
	}
	return below, high + span*0.06
}

// timeStep is a distance of ticks: so many of a calendar field, or a fixed time.
type timeStep struct {
	fixed        time.Duration // below a day
	days, months int
	layout       string // of a tick
	wide         string // of a tick that begins the next larger unit
}

const day = 24 * time.Hour

var timeSteps = [...]timeStep{
	{fixed: time.Millisecond, layout: "05.000", wide: "15:04:05"}, {fixed: 10 * time.Millisecond, layout: "05.000", wide: "15:04:05"},
	{fixed: 100 * time.Millisecond, layout: "05.000", wide: "15:04:05"},
	{fixed: time.Second, layout: "15:04:05", wide: "15:04:05"}, {fixed: 5 * time.Second, layout: "15:04:05", wide: "15:04:05"},
	{fixed: 15 * time.Second, layout: "15:04:05", wide: "15:04:05"}, {fixed: 30 * time.Second, layout: "15:04:05", wide: "15:04:05"},
	{fixed: time.Minute, layout: "15:04", wide: "Jan 2"}, {fixed: 5 * time.Minute, layout: "15:04", wide: "Jan 2"},
	{fixed: 10 * time.Minute, layout: "15:04", wide: "Jan 2"}, {fixed: 30 * time.Minute, layout: "15:04", wide: "Jan 2"},
	{fixed: time.Hour, layout: "15:04", wide: "Jan 2"}, {fixed: 3 * time.Hour, layout: "15:04", wide: "Jan 2"},
	{fixed: 6 * time.Hour, layout: "15:04", wide: "Jan 2"}, {fixed: 12 * time.Hour, layout: "15:04", wide: "Jan 2"},
	{days: 1, layout: "Jan 2", wide: "Jan 2"}, {days: 2, layout: "Jan 2", wide: "Jan 2"}, {days: 7, layout: "Jan 2", wide: "Jan 2"},
	{days: 14, layout: "Jan 2", wide: "Jan 2"},
	{months: 1, layout: "Jan", wide: "2006"}, {months: 3, layout: "Jan", wide: "2006"}, {months: 6, layout: "Jan", wide: "2006"},
	{months: 12, layout: "2006", wide: "2006"}, {months: 60, layout: "2006", wide: "2006"}, {months: 240, layout: "2006", wide: "2006"},
}

// length is the nominal length of a step.
func (s timeStep) length() time.Duration {
	return s.fixed + time.Duration(s.days)*day + time.Duration(s.months)*30*day
}

// timeTicks are round local times in r, at most want of them. Their values are milliseconds since the start of r.
func timeTicks(r core.Range, zone *time.Location, want int) []plot.Tick {
	span := time.Duration(r.End-r.Start) * time.Millisecond
	step := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if int64(span/s.length()) <= int64(max(want, 1)) {
			step = s
			break
		}
	}
	var ticks []plot.Tick
	t := step.start(r.Start.Std().In(zone))
	for range 4 * max(want, 1) {
		at := core.TimeOf(t)
		if at >= r.End {
			break
		}
		if at >= r.Start {
			ticks = append(ticks, plot.Tick{Value: float64(at - r.Start), Label: step.label(t)})
		}
		t = step.next(t)
	}
	return ticks
}

// start is a tick at or before t.
func (s timeStep) start(t time.Time) time.Time {
	switch {
	case s.months > 0:
		months := (t.Year()*12 + int(t.Month()) - 1) / s.months * s.months
		return time.Date(months/12, time.Month(months%12+1), 1, 0, 0, 0, 0, t.Location())
	case s.days > 0:
		days := int(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix()/86400) + 3 // weeks begin on Monday
		return time.Date(t.Year(), t.Month(), t.Day()-days%s.days, 0, 0, 0, 0, t.Location())
	}
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
	return midnight.Add(t.Sub(midnight) / s.fixed * s.fixed)
}

// next is the tick after one. Steps of hours start anew at midnight, so that a change of the clocks moves one tick and not all after it.
func (s timeStep) next(t time.Time) time.Time {
	if s.fixed == 0 {
		return t.AddDate(0, s.months, s.days)
	}
	next := t.Add(s.fixed)
	if midnight := time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location()); next.After(midnight) && midnight.After(t) {
		return midnight
	}
	return next
}

// label prints a tick; one that begins a day or a year says so.
func (s timeStep) label(t time.Time) string {
	switch {
	case s.months > 0 && t.Month() == time.January, s.fixed > 0 && t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 && t.Nanosecond() == 0:
		return t.Format(s.wide)
	}
	return t.Format(s.layout)
}
