package rules

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// dateFunctions is section 2.5.6 of the rule contract.
func dateFunctions() []function {
	parsed := func(f func(*evaluation, core.Time) any) func(*evaluation, []any) (any, error) {
		return func(ev *evaluation, a []any) (any, error) {
			if a[0] == nil || a[0] == "" {
				return f(ev, 0), nil
			}
			t, err := ev.timeOf(a[0], arg(a, 1), arg(a, 2))
			return f(ev, t), err
		}
	}
	toInt := []any{sig[func(any) int64](), sig[func(any, string) int64](), sig[func(any, string, string) int64]()}
	toTime := []any{sig[func(any) time.Time](), sig[func(any, string) time.Time](), sig[func(any, string, string) time.Time]()}
	toText := []any{sig[func(any) string](), sig[func(any, string) string](), sig[func(any, string, string) string]()}
	return []function{
		{name: "milliseconds", types: toInt, call: parsed(func(_ *evaluation, t core.Time) any { return int64(t) })},
		{name: "seconds", types: toInt, call: parsed(func(_ *evaluation, t core.Time) any { return int64(t / 1000) })},
		{name: "date_parse", types: toTime, call: parsed(func(ev *evaluation, t core.Time) any { return t.Std().In(ev.zone()) })},
		{name: "date_format", types: toText, call: dateFormat},
		{name: "to_datetime", types: []any{sig[func(any) time.Time](), sig[func(any, string) time.Time]()}, call: func(ev *evaluation, a []any) (any, error) {
			ms, err := numberOf(a[0])
			if err != nil {
				return nil, err
			}
			zone, err := ev.zoneOf(arg(a, 1))
			return core.Time(ms).Std().In(zone), err
		}},
		{name: "elapsedTime", types: []any{sig[func(any) int64](), sig[func(any, any) int64]()}, call: elapsed},
		{name: "elapsed_minutes", types: []any{sig[func(any) int64]()}, call: func(ev *evaluation, a []any) (any, error) {
			ms, err := elapsed(ev, a[:1])
			if err != nil {
				return nil, err
			}
			return ms.(int64) / 60000, nil
		}},
		{name: "formatInterval", types: []any{sig[func(any) string]()}, call: func(_ *evaluation, a []any) (any, error) {
			ms, err := numberOf(a[0])
			return intervalUnits(ms, math.MaxInt), err
		}},
		{name: "formatIntervalShort", types: []any{sig[func(any) string]()}, call: func(_ *evaluation, a []any) (any, error) {
			ms, err := numberOf(a[0])
			return intervalUnits(ms, 2), err
		}},
		{name: "date_add", types: []any{sig[func(any, float64, string) time.Time]()}, call: dateAdd},
		{name: "weekday", types: []any{sig[func(any) int]()}, call: func(ev *evaluation, a []any) (any, error) {
			t, err := ev.moment(a[0])
			return (int(t.Weekday())+6)%7 + 1, err
		}},
		{name: "week", types: []any{sig[func(any) int]()}, call: func(ev *evaluation, a []any) (any, error) {
			t, err := ev.moment(a[0])
			_, week := t.ISOWeek()
			return week, err
		}},
		{name: "iso", types: []any{sig[func(any) string]()}, call: func(ev *evaluation, a []any) (any, error) {
			if a[0] == nil {
				return "", nil
			}
			t, err := ev.moment(a[0])
			return dates.FormatISO(core.TimeOf(t)), err
		}},
		{name: "is_weekday", types: []any{sig[func(any) bool]()}, call: weekend(false)},
		{name: "is_weekend", types: []any{sig[func(any) bool]()}, call: weekend(true)},
	}
}

// moment reads a time, Unix milliseconds or a text.
func (ev *evaluation) moment(v any) (time.Time, error) {
	t, err := ev.timeOf(v, nil, nil)
	return t.Std().In(ev.zone()), err
}

// timeOf reads a date: a time, Unix milliseconds, ISO or local text, or text by a pattern.
func (ev *evaluation) timeOf(v, pattern, zone any) (core.Time, error) {
	switch v := v.(type) {
	case time.Time:
		return core.TimeOf(v), nil
	case string:
		loc, err := ev.zoneOf(zone)
		if err != nil {
			return 0, err
		}
		if p := textOf(pattern); p != "" && p != "iso" {
			compiled, err := dates.CompilePattern(p)
			if err != nil {
				return 0, err
			}
			return compiled.Parse(v, loc)
		}
		return dates.Moment{Now: ev.now, Zone: loc}.ParseLocal(strings.Replace(v, " ", "T", 1))
	}
	ms, err := numberOf(v)
	return core.Time(ms), err
}

func (ev *evaluation) zoneOf(v any) (*time.Location, error) {
	name := textOf(v)
	if name == "" {
		return ev.zone(), nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return ev.zone(), fmt.Errorf("unknown time zone %q", name)
	}
	return loc, nil
}

func dateFormat(ev *evaluation, a []any) (any, error) {
	t, err := ev.timeOf(a[0], nil, nil)
	if err != nil {
		return nil, err
	}
	pattern := textOf(arg(a, 1))
	if pattern == "" {
		return dates.FormatISO(t), nil
	}
	zone, err := ev.zoneOf(arg(a, 2))
	if err != nil {
		return nil, err
	}
	compiled, err := dates.CompilePattern(pattern)
	if err != nil {
		return nil, err
	}
	return compiled.Format(t, zone), nil
}

func elapsed(ev *evaluation, a []any) (any, error) {
	if len(a) == 2 {
		if a[0] == nil || a[1] == nil {
			return int64(math.MaxInt64), nil
		}
		from, err := ev.timeOf(a[0], nil, nil)
		if err != nil {
			return nil, err
		}
		to, err := ev.timeOf(a[1], nil, nil)
		return int64(to - from), err
	}
	if a[0] == nil || a[0] == "" {
		return int64(0), nil
	}
	t, err := ev.timeOf(a[0], nil, nil)
	return int64(ev.now - t), err
}

// intervalUnits prints up to most consecutive units from the first that is not zero: 1d 2h 3m 4s. A year is 365 days.
func intervalUnits(ms float64, most int) string {
	if !(math.Abs(ms) < 1<<62) { // each processor makes another whole number of it
		return numberText(ms)
	}
	s := int64(ms) / 1000
	var parts []string
	seen := 0
	for _, u := range []struct {
		seconds int64
		name    string
	}{{365 * 86400, "y"}, {86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		n := s / u.seconds
		s %= u.seconds
		if n > 0 || seen > 0 {
			seen++
		}
		if n > 0 && seen <= most {
			parts = append(parts, strconv.FormatInt(n, 10)+u.name)
		}
	}
	if len(parts) == 0 {
		return "0s"
	}
	return strings.Join(parts, " ")
}

func dateAdd(ev *evaluation, a []any) (any, error) {
	t, err := ev.moment(a[0])
	if err != nil {
		return nil, err
	}
	n, err := numberOf(a[1])
	if err != nil || math.IsNaN(n) {
		return nil, errors.New("date_add: the count is not a number")
	}
	unit, err := dates.ParseUnit(textOf(a[2]))
	if err != nil {
		return nil, err
	}
	out := dates.NewInterval(math.Floor(n), unit).After(core.TimeOf(t), t.Location())
	return out.Std().In(t.Location()), nil
}

func weekend(want bool) func(*evaluation, []any) (any, error) {
	return func(ev *evaluation, a []any) (any, error) {
		t, err := ev.moment(a[0])
		day := t.Weekday()
		return (day == time.Saturday || day == time.Sunday) == want, err
	}
}
