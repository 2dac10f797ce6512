package query

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/calc/forecast"
	"github.com/tidemark-db/tidemark/core/dates"
)

// regular is one input on its grid: what the time filter left of it, what of that is for training, and the times ahead.
type regular struct {
	result *Result
	grid   *calc.Grid
	times  []core.Time // passed by the filter
	values []float64
	slots  []int // places on the grid, counted from the first sample of the input
	known  int   // how many of them are before the start of the forecast
	ahead  []core.Time
	score  int // samples in the score interval; 0 = default

	aheadSlots []int
}

// regular prepares an input. An irregular one without AutoAggregate is an error of the whole request.
func (p *forecaster) regular(e *execution, r *Result) (*regular, error) {
	if r.Grid == nil && !p.AutoAggregate {
		return nil, invalid("forecast needs a regular series: set autoAggregate, or put before it an aggregate whose inner gaps are filled, " +
			"an interpolate, or a group with a period")
	}
	limit := e.ForecastSamples
	if limit <= 0 {
		limit = DefaultForecastSamples
	}
	if r.Grid == nil {
		regularised, err := p.aggregate(r)
		if err != nil {
			return nil, err
		}
		r = regularised
	}
	in := &regular{result: r, grid: r.Grid}
	if r.Grid == nil { // not one period has a sample
		return in, nil
	}
	if r.Samples.Len() > limit {
		return nil, tooManySamples("of input", limit)
	}
	for i, t := range r.Samples.Times {
		if p.filter.passes(t) {
			in.times, in.values = append(in.times, t), append(in.values, r.Samples.Values[i])
			in.slots = append(in.slots, i)
		}
	}
	in.known = len(in.times)
	if p.horizon.hasStart {
		in.known, _ = slices.BinarySearch(in.times, p.horizon.start)
	}
	if p.score.Count > 0 {
		in.score = max(in.places(p.score), 1)
	}
	return in, p.look(in, limit)
}

// sparsest is how many times of the grid are looked at for each that may be ahead.
const sparsest = 200

// look finds the times ahead.
func (p *forecaster) look(in *regular, limit int) error {
	if in.known == 0 {
		return nil
	}
	last := in.times[in.known-1]
	slot, scanned := in.slots[in.known-1], 0
	for t := range in.grid.After(last) {
		slot++
		// A filter that almost nothing passes must not make the search endless.
		if scanned++; scanned > sparsest*limit {
			return core.Errorf(core.TooLarge, "timeFilter passes too few times: %d times limits.forecast (%d) were looked at", sparsest, limit)
		}
		if p.horizon.ends(t, last, len(in.ahead), p.filter.active) {
			return nil
		}
		if !p.filter.passes(t) {
			continue
		}
		if len(in.ahead) == limit {
			return tooManySamples("ahead", limit)
		}
		in.ahead, in.aheadSlots = append(in.ahead, t), append(in.aheadSlots, slot)
	}
	return nil
}

// places is how many steps of the grid fit into an interval, both by their nominal lengths where the calendar decides.
func (in *regular) places(v dates.Interval) int {
	step := in.spacing()
	return int(min(v.NominalMillis()/step.NominalMillis(), 1<<31-1))
}

// spacing is the step of the grid.
func (in *regular) spacing() dates.Interval {
	p := in.grid.Period()
	unit, _ := p.Unit.(dates.Unit)
	return dates.Interval{Count: p.Count, Unit: unit}
}

// input is what the algorithms of core/calc/forecast work on.
func (in *regular) input() forecast.Input {
	return forecast.Input{Values: in.values[:in.known], Slots: in.slots[:in.known], Ahead: in.aheadSlots, Score: in.score}
}

// outcome puts times to the numbers of an algorithm.
func (in *regular) outcome(out forecast.Output, echo []byte) outcome {
	return outcome{
		echo:     echo,
		forecast: calc.Series{Times: slices.Clone(in.ahead), Values: out.Forecast},
		fitted:   calc.Series{Times: slices.Clone(in.times[out.From : out.From+len(out.Fitted)]), Values: out.Fitted},
	}
}

// aggregate makes a series regular: the function over periods of about the median distance of its samples, inner gaps on the line between their
// neighbours.
func (p *forecaster) aggregate(r *Result) (*Result, error) {
	step := automaticPeriod(r.Samples.Times)
	period := calc.Period{Count: step.Count, Unit: step.Unit, Zone: p.set.Zone}
	a, err := calc.NewAggregator(calc.Aggregation{Range: r.reach(p.set.Range, period), Period: period, Functions: []calc.Function{p.function},
		Fill: calc.Fill{Mode: calc.FillLinear}, Decimal: r.Decimal})
	if err == nil {
		err = a.Add(r.Samples.Times, r.Samples.Values)
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	series, err := a.Finish()
	if err != nil {
		return nil, invalid(err.Error())
	}
	out := *r
	out.compute(series[0], a.Grid())
	spec := Aggregate{Period: &Period{Count: float64(step.Count), Unit: step.Unit.String()}}
	out.Echo = with(out.Echo, "aggregate", spec.appendJSON(nil, p.function.String()))
	return &out, nil
}

// automaticPeriod is the median distance between samples as a count of the longest unit up to DAY that it is a multiple of; where it is none of more
// than a sixtieth, the next shorter unit, rounded up. Fewer than two samples have a minute.
func automaticPeriod(times []core.Time) dates.Interval {
	if len(times) < 2 {
		return dates.Interval{Count: 1, Unit: dates.Minute}
	}
	gaps := make([]int64, len(times)-1)
	for i := range gaps {
		gaps[i] = int64(times[i+1] - times[i])
	}
	slices.Sort(gaps)
	return roundInterval(max(gaps[len(gaps)/2], 1))
}

// roundInterval writes milliseconds as a count of a unit up to DAY.
func roundInterval(millis int64) dates.Interval {
	units := [...]dates.Unit{dates.Day, dates.Hour, dates.Minute, dates.Second, dates.Millisecond}
	for i, u := range units {
		length := int64(u.NominalMillis())
		switch {
		case millis < length:
		case millis%length == 0 || u == dates.Millisecond:
			return dates.Interval{Count: millis / length, Unit: u}
		default:
			shorter := units[i+1]
			step := int64(shorter.NominalMillis())
			return dates.Interval{Count: (millis + step - 1) / step, Unit: shorter}
		}
	}
	return dates.Interval{Count: 1, Unit: dates.Millisecond}
}
