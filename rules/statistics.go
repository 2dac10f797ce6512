package rules

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// span is a run of samples that a statistical function looks at.
type span struct {
	times  []core.Time
	values []float64
}

// statistics are the functions of section 2.5.1 that take nothing but a range. Except for counts, booleans and sum they give NaN for an empty set.
func statistics() map[string]func(ev *evaluation, s span) any {
	sorter := &calc.Sorter{}
	fs := map[string]func(*evaluation, span) any{
		"avg":              func(_ *evaluation, s span) any { return calc.Mean(s.values) },
		"sum":              func(_ *evaluation, s span) any { return calc.Sum(s.values) },
		"min":              func(_ *evaluation, s span) any { return extreme(s.values, -1) },
		"max":              func(_ *evaluation, s span) any { return extreme(s.values, 1) },
		"count":            func(_ *evaluation, s span) any { return calc.Count(s.values) },
		"countNaN":         func(_ *evaluation, s span) any { return len(s.values) - calc.Count(s.values) },
		"median":           func(_ *evaluation, s span) any { return sorter.Median(s.values) },
		"median_abs_dev":   func(_ *evaluation, s span) any { return sorter.MedianAbsDev(s.values) },
		"variance":         func(_ *evaluation, s span) any { return calc.Variance(s.values) },
		"stdev":            func(_ *evaluation, s span) any { return calc.StdDev(s.values) },
		"wavg":             func(_ *evaluation, s span) any { return calc.WeightedMean(s.values) },
		"wtavg":            func(_ *evaluation, s span) any { return calc.TimeWeightedMean(s.times, s.values) },
		"rate_per_second":  func(_ *evaluation, s span) any { return calc.RatePerSecond(s.times, s.values) },
		"rate_per_minute":  func(_ *evaluation, s span) any { return 60 * calc.RatePerSecond(s.times, s.values) },
		"rate_per_hour":    func(_ *evaluation, s span) any { return 3600 * calc.RatePerSecond(s.times, s.values) },
		"slope":            func(_ *evaluation, s span) any { return calc.Fit(s.times, s.values).Slope },
		"slope_per_second": func(_ *evaluation, s span) any { return 1000 * calc.Fit(s.times, s.values).Slope },
		"slope_per_minute": func(_ *evaluation, s span) any { return 60_000 * calc.Fit(s.times, s.values).Slope },
		"slope_per_hour":   func(_ *evaluation, s span) any { return 3_600_000 * calc.Fit(s.times, s.values).Slope },
		"intercept":        func(_ *evaluation, s span) any { return calc.Fit(s.times, s.values).Intercept() },
		"new_maximum":      func(_ *evaluation, s span) any { return record(s.values, 1) },
		"new_minimum":      func(_ *evaluation, s span) any { return record(s.values, -1) },
	}
	fs["mean"], fs["std_dev"] = fs["avg"], fs["stdev"]
	return fs
}

// extreme is the smallest (side < 0) or largest value.
func extreme(values []float64, side float64) float64 {
	out := math.NaN()
	for _, v := range values {
		if !math.IsNaN(v) && (math.IsNaN(out) || side*v > side*out) {
			out = v
		}
	}
	return out
}

// record reports whether the last value is beyond every earlier one; a single value is not.
func record(values []float64, side float64) bool {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) < 2 {
		return false
	}
	last := values[len(values)-1]
	return side*last > side*extreme(values[:len(values)-1], side)
}

// arrayFunctions also take a list as their only argument, as the built-ins they replace do.
var arrayFunctions = []string{"avg", "mean", "sum", "min", "max", "median", "count"}

func windowFunctions() []function {
	var out []function
	for name, f := range statistics() {
		zero := f(nil, span{})
		types := rangeTypes(reflect.TypeOf(zero))
		if slices.Contains(arrayFunctions, name) {
			types = append(types, reflect.New(reflect.FuncOf([]reflect.Type{reflect.TypeFor[any]()}, []reflect.Type{reflect.TypeOf(zero)}, false)).Interface())
		}
		if name == "min" || name == "max" {
			types = append(types, sig[func(float64, float64) float64]())
		}
		out = append(out, function{name: name, window: true, types: types, call: statistic(f)})
	}
	number := []any{sig[func(float64) float64](), sig[func(float64, int) float64](), sig[func(float64, string) float64]()}
	return append(out,
		function{name: "first", window: true, types: []any{sig[func() float64](), sig[func(any) any]()}, call: nth(false)},
		function{name: "last", window: true, types: []any{sig[func() float64](), sig[func(any) any]()}, call: nth(true)},
		function{name: "diff", window: true, types: rangeTypes(reflect.TypeFor[float64]()), call: diff},
		function{name: "delta", window: true, types: rangeTypes(reflect.TypeFor[float64]()), call: diff},
		function{name: "percentile", window: true, types: number, call: withArgument(func(s span, p float64) (any, error) {
			if p < 0 || p > 100 {
				return nil, fmt.Errorf("percentile: %v is not between 0 and 100", p)
			}
			return (&calc.Sorter{}).Percentile(s.values, p), nil
		})},
		function{name: "ema", window: true, types: []any{sig[func() float64](), sig[func(float64) float64]()}, call: func(ev *evaluation, a []any) (any, error) {
			factor := 0.25
			if len(a) > 0 {
				factor, _ = floatOf(a[0])
			}
			if !(factor > 0 && factor < 1) {
				return nil, fmt.Errorf("ema: factor %v is not between 0 and 1", factor)
			}
			return calc.EMA(ev.win.samples(), factor), nil
		}},
		function{name: "threshold_time", window: true, types: number[:1], call: withArgument(func(s span, limit float64) (any, error) {
			return minutesTo(limit, lastOf(s.values), 60*calc.RatePerSecond(s.times, s.values)), nil
		})},
		function{name: "threshold_linear_time", window: true, types: number[:1], call: withArgument(thresholdLinear)},
		function{name: "time_first", window: true, types: []any{sig[func() int64]()},
			call: func(ev *evaluation, _ []any) (any, error) { return int64(ev.win.firstTime() / 1000), nil }},
		function{name: "time_last", window: true, types: []any{sig[func() int64]()},
			call: func(ev *evaluation, _ []any) (any, error) { return int64(ev.win.lastTime() / 1000), nil }},
		function{name: "timestamps", window: true, types: []any{sig[func() []int64](), sig[func(int) []int64]()}, call: func(ev *evaluation, a []any) (any, error) {
			times := ev.win.sampleTimes()
			out := make([]int64, len(times))
			for i, t := range times {
				out[i] = int64(t)
			}
			return ends(out, a)
		}},
		function{name: "samples", window: true, types: []any{sig[func() []map[string]any](), sig[func(int) []map[string]any]()}, call: windowSamples},
		function{name: "window_length_time", window: true, types: []any{sig[func() int]()},
			call: func(ev *evaluation, _ []any) (any, error) { return int(ev.rule.Window.Span() / 1000), nil }},
		function{name: "window_length_count", window: true, types: []any{sig[func() int]()},
			call: func(ev *evaluation, _ []any) (any, error) { return ev.rule.Window.Count, nil }},
		function{name: "windowStartTime", window: true, types: []any{sig[func() int64]()},
			call: func(ev *evaluation, _ []any) (any, error) { return int64(ev.win.received), nil }},
		function{name: "__value", types: []any{sig[func(string) float64](), sig[func(string, float64) float64]()}, call: sibling},
	)
}

// rangeTypes are f(), f(n) and f("interval").
func rangeTypes(out reflect.Type) []any {
	shape := func(in ...reflect.Type) any {
		return reflect.New(reflect.FuncOf(in, []reflect.Type{out}, false)).Interface()
	}
	return []any{shape(), shape(reflect.TypeFor[int]()), shape(reflect.TypeFor[string]())}
}

func statistic(f func(*evaluation, span) any) func(*evaluation, []any) (any, error) {
	return func(ev *evaluation, a []any) (any, error) {
		if len(a) == 2 { // min and max of two numbers
			x, err := numberOf(a[0])
			if err != nil {
				return nil, err
			}
			y, err := numberOf(a[1])
			return f(ev, span{values: []float64{x, y}}), err
		}
		if len(a) == 1 {
			if list, err := listOf(a[0]); err == nil && a[0] != nil {
				values := make([]float64, len(list))
				for i, e := range list {
					if values[i], err = numberOf(e); err != nil {
						return nil, err
					}
				}
				return f(ev, span{values: values}), nil
			}
		}
		s, err := ev.span(arg(a, 0))
		if err != nil {
			return nil, err
		}
		return f(ev, s), nil
	}
}

// span resolves a range: nil is the whole window, n its last n samples, an interval those from now - interval on.
func (ev *evaluation) span(limit any) (span, error) {
	s := span{ev.win.sampleTimes(), ev.win.samples()}
	switch v := limit.(type) {
	case nil:
		return s, nil
	case string:
		interval, err := dates.ParseInterval(v)
		if err != nil {
			return span{}, err
		}
		from := interval.Before(ev.now, ev.zone())
		i := searchAfter(s.times, from-1)
		return span{s.times[i:], s.values[i:]}, nil
	}
	n, err := intOf(limit)
	if err != nil {
		return span{}, err
	}
	i := max(0, len(s.values)-max(0, n))
	return span{s.times[i:], s.values[i:]}, nil
}

func withArgument(f func(s span, x float64) (any, error)) func(*evaluation, []any) (any, error) {
	return func(ev *evaluation, a []any) (any, error) {
		x, err := numberOf(a[0])
		if err != nil {
			return nil, err
		}
		s, err := ev.span(arg(a, 1))
		if err != nil {
			return nil, err
		}
		return f(s, x)
	}
}

// nth is first(i) or last(i): 0-based from that end. Given a list, it is the built-in of that name.
func nth(fromEnd bool) func(*evaluation, []any) (any, error) {
	return func(ev *evaluation, a []any) (any, error) {
		if len(a) == 1 {
			if list, err := listOf(a[0]); err == nil {
				switch {
				case len(list) == 0:
					return nil, nil
				case fromEnd:
					return list[len(list)-1], nil
				}
				return list[0], nil
			}
		}
		i := 0
		if len(a) == 1 {
			var err error
			if i, err = intOf(a[0]); err != nil {
				return nil, err
			}
		}
		return at(ev.win.samples(), i, fromEnd), nil
	}
}

func at(values []float64, i int, fromEnd bool) float64 {
	if i < 0 || i >= len(values) {
		return math.NaN()
	}
	if fromEnd {
		i = len(values) - 1 - i
	}
	return values[i]
}

func lastOf(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// diff is last() - first(), last(i) - first(i), or last() minus the value at now - interval.
func diff(ev *evaluation, a []any) (any, error) {
	values := ev.win.samples()
	switch limit := arg(a, 0).(type) {
	case nil:
		return at(values, 0, true) - at(values, 0, false), nil
	case string:
		interval, err := dates.ParseInterval(limit)
		if err != nil {
			return nil, err
		}
		i := searchAfter(ev.win.sampleTimes(), interval.Before(ev.now, ev.zone())) - 1
		return at(values, 0, true) - at(values, max(i, 0), false), nil
	default:
		i, err := intOf(limit)
		return at(values, i, true) - at(values, i, false), err
	}
}

// minutesTo extrapolates: +Inf where the line is flat or moves away, 0 when it is there already.
func minutesTo(limit, from, perMinute float64) float64 {
	switch minutes := (limit - from) / perMinute; {
	case math.IsNaN(perMinute), math.IsNaN(from):
		return math.NaN()
	case from == limit:
		return 0
	case minutes <= 0 || math.IsInf(minutes, 0):
		return math.Inf(1)
	default:
		return minutes
	}
}

// thresholdLinear is the minutes after the last sample at which the regression line reaches limit.
func thresholdLinear(s span, limit float64) (any, error) {
	line := calc.Fit(s.times, s.values)
	if math.IsNaN(line.Slope) {
		return math.NaN(), nil
	}
	if lastOf(s.values) == limit {
		return 0.0, nil
	}
	end := s.times[len(s.times)-1]
	return minutesTo(limit, line.At(end), line.Slope*60_000), nil
}

// ends returns all, the first n, or for n < 0 the last -n elements.
func ends[E any](list []E, a []any) ([]E, error) {
	if len(a) == 0 {
		return list, nil
	}
	n, err := intOf(a[0])
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return list[max(0, len(list)+n):], nil
	}
	return list[:min(n, len(list))], nil
}

func windowValues(ev *evaluation, a []any) (any, error) {
	out, err := ends(ev.win.samples(), a)
	return slices.Clone(out), err
}

func windowSamples(ev *evaluation, a []any) (any, error) {
	values := ev.win.samples()
	out := make([]map[string]any, len(values))
	for i, t := range ev.win.sampleTimes() {
		out[i] = map[string]any{"key": t.Std().In(ev.zone()), "value": values[i]}
	}
	return ends(out, a)
}

// sibling is value(metric [, default]): another metric of the same series command, which are the samples of the same entity, tags and time that stand
// next to each other in the batch.
func sibling(ev *evaluation, a []any) (any, error) {
	metric := textOf(a[0])
	if metric == ev.cmd.metric {
		return ev.cmd.value, nil
	}
	if b := ev.cmd.batch; b != nil && ev.rule.Kind == KindSeries {
		for _, step := range []int{1, -1} {
			for i := ev.cmd.index + step; i >= 0 && i < b.Samples.Len(); i += step {
				key := &b.Keys[b.Samples.Series[i]]
				if b.Samples.Times[i] != ev.cmd.time || key.Entity != ev.cmd.entity || !key.Tags.Equal(ev.cmd.tags) {
					break
				}
				if key.Metric == metric {
					return b.Samples.Values[i], nil
				}
			}
		}
	}
	if len(a) > 1 {
		return numberOf(a[1])
	}
	return nil, fmt.Errorf("value(%q): the command has no such metric", metric)
}
