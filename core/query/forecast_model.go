package query

import (
	"context"
	"fmt"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc/forecast"
	"github.com/tidemark-db/tidemark/core/dates"
)

// holtWinters validates `hw`. Without auto the three factors are required; with it those that are given stay.
func (p *forecaster) holtWinters() (func(context.Context, *regular) ([]outcome, error), error) {
	h := p.HW
	period, err := positiveInterval("forecast.hw.period", h.Period)
	if err != nil {
		return nil, err
	}
	for _, factor := range []struct {
		name  string
		value *float64
	}{{"alpha", h.Alpha}, {"beta", h.Beta}, {"gamma", h.Gamma}} {
		switch {
		case factor.value == nil && !automatic(h.Auto):
			return nil, invalid("forecast.hw: alpha, beta and gamma are required unless auto is true")
		case factor.value != nil && !(*factor.value >= 0 && *factor.value <= 1):
			return nil, invalid(fmt.Sprintf("forecast.hw.%s: %v is not in 0 to 1", factor.name, *factor.value))
		}
	}
	return func(ctx context.Context, in *regular) ([]outcome, error) {
		model := forecast.HoltWinters{Alpha: h.Alpha, Beta: h.Beta, Gamma: h.Gamma}
		if period.Count > 0 {
			if model.Period = in.places(period); model.Period == 0 {
				return nil, invalid("forecast.hw.period is shorter than the distance of the samples")
			}
		}
		fit, err := model.Run(ctx, in.input())
		if err != nil {
			return nil, err
		}
		o := openObject(nil)
		o.boolean("auto", automatic(h.Auto))
		o.name("period")
		season := in.season(fit.Period)
		if period.Count > 0 {
			season = period
		}
		o.b = appendInterval(o.b, season)
		o.number("alpha", fit.Alpha)
		o.number("beta", fit.Beta)
		o.number("gamma", fit.Gamma)
		return []outcome{in.outcome(fit.Output, o.close())}, nil
	}, nil
}

// automatic reads a flag that is true unless it was sent as false.
func automatic(flag *bool) bool { return flag == nil || *flag }

// season is a number of grid steps as an interval.
func (in *regular) season(places int) dates.Interval {
	step := in.spacing()
	step.Count *= int64(places)
	if millis, ok := step.Unit.FixedMillis(); ok {
		return roundInterval(step.Count * millis)
	}
	return step
}

// arima validates `arima`. Without auto, p or autoRegressionInterval is required and d is 0 unless given.
func (p *forecaster) arima() (func(context.Context, *regular) ([]outcome, error), error) {
	a := p.ARIMA
	interval, err := positiveInterval("forecast.arima.autoRegressionInterval", a.Interval)
	if err != nil {
		return nil, err
	}
	model := forecast.ARIMA{D: forecast.ChooseD}
	switch {
	case a.P != nil && (*a.P < 1 || *a.P > forecast.MaxOrder):
		return nil, invalid(fmt.Sprintf("forecast.arima.p: %d is not in 1 to %d", *a.P, forecast.MaxOrder))
	case a.P != nil && a.Interval != "":
		return nil, invalid("forecast.arima: p and autoRegressionInterval exclude each other")
	case a.P == nil && a.Interval == "" && !automatic(a.Auto):
		return nil, invalid("forecast.arima: p or autoRegressionInterval is required unless auto is true")
	case a.D != nil && *a.D != 0 && *a.D != 1:
		return nil, invalid(fmt.Sprintf("forecast.arima.d: %d is neither 0 nor 1", *a.D))
	case a.D != nil:
		model.D = int(*a.D)
	case !automatic(a.Auto):
		model.D = 0
	}
	if a.P != nil {
		model.P = int(*a.P)
	}
	return func(ctx context.Context, in *regular) ([]outcome, error) {
		model := model
		if interval.Count > 0 {
			if model.P = in.places(interval); model.P < 1 || model.P > forecast.MaxOrder {
				return nil, invalid(fmt.Sprintf("forecast.arima.autoRegressionInterval has %d samples, not 1 to %d", model.P, forecast.MaxOrder))
			}
		}
		fit, err := model.Run(ctx, in.input())
		if err != nil {
			return nil, err
		}
		o := openObject(nil)
		o.boolean("auto", automatic(a.Auto))
		o.integer("p", int64(fit.P))
		if a.Interval != "" {
			o.name("autoRegressionInterval")
			o.b = appendInterval(o.b, interval)
		}
		o.integer("d", int64(fit.D))
		return []outcome{in.outcome(fit.Output, o.close())}, nil
	}, nil
}

// baseline validates `baseline`.
func (p *forecaster) baseline() (func(context.Context, *regular) ([]outcome, error), error) {
	b := p.Baseline
	period, err := positiveInterval("forecast.baseline.period", b.Period)
	if err != nil {
		return nil, err
	}
	switch {
	case (b.Count != nil) == (b.Period != ""):
		return nil, invalid("forecast.baseline: exactly one of period, count is required")
	case b.Count != nil && *b.Count < 1:
		return nil, invalid(fmt.Sprintf("forecast.baseline.count: %d is not positive", *b.Count))
	}
	function, err := plainFunction("forecast.baseline.function", b.Function)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in *regular) ([]outcome, error) {
		back := period
		if b.Count != nil {
			back = in.spacing()
			back.Count = saturatedProduct(back.Count, *b.Count)
		}
		model := forecast.Baseline{Function: function, Back: func(t core.Time, n int64) core.Time {
			return dates.Interval{Count: saturatedProduct(back.Count, n), Unit: back.Unit}.Before(t, p.set.Zone)
		}}
		input := forecast.BaselineInput{Times: in.times[:in.known], Values: in.values[:in.known], Ahead: in.ahead}
		var o outcome
		if o.forecast, o.fitted, err = model.Run(ctx, input); err != nil {
			return nil, err
		}
		echo := openObject(nil)
		if b.Count != nil {
			echo.integer("count", *b.Count)
		} else {
			echo.name("period")
			echo.b = appendInterval(echo.b, period)
		}
		echo.text("function", function.String())
		o.echo = echo.close()
		return []outcome{o}, nil
	}, nil
}

func saturatedProduct(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func appendInterval(b []byte, v dates.Interval) []byte {
	o := openObject(b)
	o.integer("count", v.Count)
	o.text("unit", v.Unit.String())
	return o.close()
}

// echoCommon repeats what was sent and does not belong to an algorithm, to the closing brace.
func (p *forecaster) echoCommon() []byte {
	o := openObject(nil)
	o.order(p.Order)
	o.name("horizon")
	h := openObject(o.b)
	if p.horizon.length > 0 {
		h.integer("length", p.horizon.length)
	}
	if p.horizon.interval.Count > 0 {
		h.name("interval")
		h.b = appendInterval(h.b, p.horizon.interval)
	}
	h.optional("endDate", p.Horizon.EndDate)
	h.optional("startDate", p.Horizon.StartDate)
	o.b = h.close()
	if p.AutoAggregate {
		o.boolean("autoAggregate", true)
		o.text("aggregationFunction", p.function.String())
	}
	o.name("include")
	o.b = append(o.b, '[')
	for i, kind := range p.kinds {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendText(o.b, string(kind))
	}
	o.b = append(o.b, ']')
	if p.score.Count > 0 {
		o.name("scoreInterval")
		o.b = appendInterval(o.b, p.score)
	}
	if r := p.Range; r != nil {
		o.name("range")
		inner := openObject(o.b)
		if r.Min != nil {
			inner.number("min", *r.Min)
		}
		if r.Max != nil {
			inner.number("max", *r.Max)
		}
		o.b = inner.close()
	}
	if f := p.TimeFilter; f != nil && p.filter.active {
		o.name("timeFilter")
		inner := openObject(o.b)
		inner.optional("from", f.From)
		inner.optional("to", f.To)
		inner.optional("calendar", f.Calendar)
		o.b = inner.close()
	}
	return o.close()[1:]
}
