package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/calc/forecast"
	"github.com/tidemark-db/tidemark/core/dates"
)

// ForecastSpec asks for values after the end of the input, by one or more algorithms. The input must be regular by construction; see Result.Grid.
type ForecastSpec struct {
	Horizon             *Horizon
	AutoAggregate       bool   // makes an irregular input regular, with a period chosen from its median spacing
	AggregationFunction string // for AutoAggregate; empty = AVG
	Include             []string
	ScoreInterval       string     // count and unit; empty = the default of the algorithm
	Range               *Threshold // clamps the forecast
	TimeFilter          *TimeFilter
	HW                  *HoltWinters
	ARIMA               *ARIMA
	SSA                 *SSA
	Baseline            *Baseline
	Order               *int // of the transformations, when the request has no list
}

// HoltWinters are the parameters of `hw`; nil and empty ones are chosen.
type HoltWinters struct {
	Auto               *bool
	Period             string // count and unit
	Alpha, Beta, Gamma *float64
}

// ARIMA are the parameters of `arima`; nil and empty ones are chosen.
type ARIMA struct {
	Auto     *bool
	P        *int64
	Interval string // autoRegressionInterval, count and unit
	D        *int64
}

// Baseline are the parameters of `baseline`. Exactly one of Period and Count is given.
type Baseline struct {
	Period   string // count and unit
	Count    *int64 // of samples
	Function string // empty = AVG
}

// DefaultForecastSamples bounds the input and the values ahead of one forecast unless the source says otherwise. Singular spectrum analysis of that many
// takes some ten seconds and 150 MB.
const DefaultForecastSamples = 50_000

// forecaster is a validated ForecastSpec.
type forecaster struct {
	*ForecastSpec
	set        setting
	horizon    horizon
	filter     timeFilter
	kinds      []SeriesType // of the output, in the order of the answer
	score      dates.Interval
	function   calc.Function // for AutoAggregate
	algorithms []algorithm
	common     []byte // members of the echo that all outputs share, without the first brace
}

// algorithm is one of those that a request names, with its parameters.
type algorithm struct {
	name string
	run  func(context.Context, *regular) ([]outcome, error)
}

// outcome is one forecast of one input.
type outcome struct {
	echo             []byte // the effective parameters as JSON
	group            string // of eigentriples, for ssa
	forecast, fitted calc.Series
}

// stage validates the forecast and prepares it.
func (f *ForecastSpec) stage(s setting) (stage, error) {
	p := &forecaster{ForecastSpec: f, set: s}
	for _, step := range []func() error{p.readHorizon, p.readFilter, p.readInclude, p.readScore, p.readRange, p.readFunction, p.readAlgorithms} {
		if err := step(); err != nil {
			return stage{}, err
		}
	}
	p.common = p.echoCommon()
	return mapped("FORECAST", p.run), nil
}

func (p *forecaster) readInclude() error {
	p.kinds = nil
	for _, name := range p.Include {
		kind := SeriesType(strings.ToUpper(strings.TrimSpace(name)))
		if kind != History && kind != Forecast && kind != Reconstructed {
			return invalid(fmt.Sprintf("forecast.include: unknown value %s, use FORECAST, HISTORY or RECONSTRUCTED", name))
		}
		if !slices.Contains(p.kinds, kind) {
			p.kinds = append(p.kinds, kind)
		}
	}
	if len(p.kinds) == 0 {
		p.kinds = []SeriesType{Forecast}
	}
	return nil
}

func (p *forecaster) readScore() (err error) {
	p.score, err = positiveInterval("forecast.scoreInterval", p.ScoreInterval)
	return err
}

// positiveInterval reads an interval; the empty text is none.
func positiveInterval(name, text string) (dates.Interval, error) {
	if text == "" {
		return dates.Interval{}, nil
	}
	v, err := dates.ParseInterval(text)
	if err != nil {
		return v, invalid(fmt.Sprintf("%s: %v", name, err))
	}
	if v.Count <= 0 || v.Unit == dates.Nanosecond {
		return v, invalid(fmt.Sprintf("%s: %s is not a positive interval of MILLISECOND or longer", name, text))
	}
	return v, nil
}

func (p *forecaster) readRange() error {
	if r := p.Range; r != nil && (r.Min != nil && math.IsNaN(*r.Min) || r.Max != nil && math.IsNaN(*r.Max) || r.Min != nil && r.Max != nil && *r.Min > *r.Max) {
		return invalid("forecast.range: min must not exceed max")
	}
	return nil
}

func (p *forecaster) readFunction() error {
	f, err := plainFunction("forecast.aggregationFunction", p.AggregationFunction)
	p.function = f
	return err
}

// plainFunction reads a function that gives a number for each period without further parameters; the empty text is AVG.
func plainFunction(name, text string) (calc.Function, error) {
	if blank(text) {
		text = "AVG"
	}
	f, err := calc.ParseFunction(text)
	switch {
	case err != nil:
		return f, invalid(fmt.Sprintf("%s: %v", name, err))
	case f.NeedsThreshold() || f.Kind == calc.KindDetail:
		return f, invalid(fmt.Sprintf("%s: %s gives no number for a period", name, f))
	}
	return f, nil
}

func (p *forecaster) readAlgorithms() error {
	var err error
	add := func(name string, asked bool, read func() (func(context.Context, *regular) ([]outcome, error), error)) {
		if err == nil && asked {
			a := algorithm{name: name}
			a.run, err = read()
			p.algorithms = append(p.algorithms, a)
		}
	}
	add("hw", p.HW != nil, p.holtWinters)
	add("arima", p.ARIMA != nil, p.arima)
	add("ssa", p.SSA != nil, p.ssa)
	add("baseline", p.Baseline != nil, p.baseline)
	if err == nil && len(p.algorithms) == 0 {
		return invalid("forecast: one of hw, arima, ssa, baseline is required")
	}
	return err
}

// run forecasts one series. The outputs of one that cannot be forecast, because it is too short, have a warning and no samples.
func (p *forecaster) run(ctx context.Context, e *execution, r *Result) ([]*Result, error) {
	in, err := p.regular(e, r)
	if err != nil {
		return nil, err
	}
	var out []*Result
	if slices.Contains(p.kinds, History) {
		out = append(out, p.history(in))
	}
	for _, a := range p.algorithms {
		var outcomes []outcome
		err = &forecast.ShortError{Need: 1, For: a.name}
		if in.known > 0 {
			outcomes, err = a.run(ctx, in)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var short *forecast.ShortError
		warning := ""
		if errors.As(err, &short) {
			warning, outcomes = "IllegalArgumentException: "+short.Error(), []outcome{{}}
		} else if err != nil {
			return nil, err
		}
		for _, o := range outcomes {
			out = append(out, p.results(in, a, o, warning)...)
		}
	}
	return out, nil
}

// history is the input as the algorithms see it.
func (p *forecaster) history(in *regular) *Result {
	out := *in.result
	out.Type, out.Lineage = History, out.Lineage+"/HISTORY"
	out.Samples, out.Computed = Samples{Times: in.times, Values: in.values}, true
	out.lieOn(in.grid)
	out.Echo = with(out.Echo, "forecast", append([]byte{'{'}, p.common...))
	return &out
}

// results are the outputs of one algorithm for one input, or one group of it.
func (p *forecaster) results(in *regular, a algorithm, o outcome, warning string) []*Result {
	echo := []byte{'{'}
	if o.echo != nil {
		echo = append(append(append(append(echo, '"'), a.name...), `":`...), o.echo...)
		echo = append(echo, ',')
	}
	echo = append(echo, p.common...)
	var out []*Result
	for _, kind := range [...]SeriesType{Forecast, Reconstructed} {
		if !slices.Contains(p.kinds, kind) {
			continue
		}
		one := *in.result
		one.Type, one.Decimal, one.Warning = kind, false, warning
		one.Lineage += "/" + string(kind) + "/" + a.name + o.group
		one.Echo = with(one.Echo, "forecast", echo)
		if kind == Forecast {
			p.clamp(o.forecast.Values)
			one.compute(o.forecast, in.grid)
		} else {
			one.compute(o.fitted, in.grid)
		}
		out = append(out, &one)
	}
	return out
}

func (p *forecaster) clamp(values []float64) {
	if p.Range == nil {
		return
	}
	for i := range values {
		if p.Range.Min != nil {
			values[i] = max(values[i], *p.Range.Min)
		}
		if p.Range.Max != nil {
			values[i] = min(values[i], *p.Range.Max)
		}
	}
}

// tooManySamples is the refusal of an input or horizon beyond the limit.
func tooManySamples(what string, limit int) error {
	return core.Errorf(core.TooLarge, "the forecast has more than limits.forecast (%d) samples %s: shorten the range or lengthen the period", limit, what)
}
