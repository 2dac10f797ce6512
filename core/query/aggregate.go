package query

import (
	"context"
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Aggregate asks for one series for each function, with a value for each period. Without Period the whole range is one.
type Aggregate struct {
	Types          []string
	Period         *Period
	Interpolate    *Interpolation
	Threshold      *Threshold
	WorkingMinutes *WorkingMinutes
	Calendar       string
	Order          *int // place among the transformations, when the request has no list
}

// Period is a length of time with an alignment.
type Period struct {
	Count    float64
	Unit     string
	Align    string
	Timezone string
}

// Interpolation says how periods without samples get a value. Value and Extend are nil when they were not sent.
type Interpolation struct {
	Type   string
	Value  *float64
	Extend *bool
}

// Threshold is the limits that threshold functions compare with; nil is an open side.
type Threshold struct{ Min, Max *float64 }

// WorkingMinutes is the part of the local day that threshold functions look at.
type WorkingMinutes struct{ Start, End int }

// stage validates the aggregation and prepares it for the range of the query.
func (a *Aggregate) stage(s setting) (stage, error) {
	g := calc.Aggregation{Range: s.Range}
	if len(a.Types) == 0 {
		return stage{}, invalid("Aggregation type is required")
	}
	for _, name := range a.Types {
		f, err := calc.ParseFunction(name)
		if err != nil {
			return stage{}, invalid(err.Error())
		}
		g.Functions = append(g.Functions, f)
	}
	if err := a.limits(&g); err != nil {
		return stage{}, err
	}
	g.Period.Zone = s.Zone
	if a.Period != nil {
		period, err := a.Period.resolve(s.Moment)
		if err != nil {
			return stage{}, err
		}
		g.Period = period
	}
	if a.Interpolate != nil {
		fill, err := a.Interpolate.resolve()
		if err != nil {
			return stage{}, err
		}
		g.Fill = fill
	}
	if err := g.Validate(); err != nil {
		return stage{}, invalid(err.Error())
	}
	names, echoes := a.names(), [][]byte{}
	for _, name := range names {
		echoes = append(echoes, a.appendJSON(nil, name))
	}
	return mapped("AGGREGATE", func(_ context.Context, _ *execution, r *Result) ([]*Result, error) {
		out, err := aggregated(g, r)
		for i, one := range out {
			one.Echo = with(r.Echo, "aggregate", echoes[i])
			one.Lineage = r.Lineage + "/" + names[i]
		}
		return out, err
	}), nil
}

func invalid(text string) error {
	return core.Errorf(core.Invalid, "IllegalArgumentException: %s", text)
}

// limits reads what only threshold functions need.
func (a *Aggregate) limits(g *calc.Aggregation) error {
	needed := false
	for _, f := range g.Functions {
		needed = needed || f.NeedsThreshold()
	}
	if !needed {
		return nil
	}
	if a.Threshold == nil || a.Threshold.Min == nil && a.Threshold.Max == nil {
		return invalid("Threshold with min or max is required")
	}
	if a.Calendar != "" {
		return core.Errorf(core.Unimplemented, "not implemented: series query field 'aggregate.calendar'")
	}
	g.Threshold = &calc.Threshold{Min: math.Inf(-1), Max: math.Inf(1)}
	if a.Threshold.Min != nil {
		g.Threshold.Min = *a.Threshold.Min
	}
	if a.Threshold.Max != nil {
		g.Threshold.Max = *a.Threshold.Max
	}
	if w := a.WorkingMinutes; w != nil {
		if w.Start < 0 || w.Start >= w.End || w.End > 24*60 {
			return invalid("workingMinutes need 0 <= start < end <= 1440")
		}
		g.Working = &calc.MinutesOfDay{Start: w.Start, End: w.End}
	}
	return nil
}

// resolve prefers the zone of the period over that of the query, which m has.
func (p *Period) resolve(m dates.Moment) (calc.Period, error) {
	unit, err := dates.ParseUnit(p.Unit)
	if err != nil {
		return calc.Period{}, invalid(err.Error())
	}
	align, err := calc.ParseAlign(p.Align)
	if err != nil {
		return calc.Period{}, invalid(err.Error())
	}
	m, err = inZone(m, p.Timezone)
	if err != nil {
		return calc.Period{}, err
	}
	return calc.Period{Count: dates.NewInterval(p.Count, unit).Count, Unit: unit, Align: align, Zone: m.Zone}, nil
}

func (i *Interpolation) resolve() (calc.Fill, error) {
	if i.Type == "" {
		return calc.Fill{}, invalid("Interpolation type is required")
	}
	mode, err := calc.ParseFillMode(i.Type)
	if err != nil {
		return calc.Fill{}, invalid(err.Error())
	}
	fill := calc.Fill{Mode: mode, Extend: i.Extend != nil && *i.Extend}
	if mode == calc.FillValue {
		if i.Value == nil {
			return calc.Fill{}, invalid("Interpolation value is required")
		}
		fill.Value = *i.Value
	}
	return fill, nil
}

// aggregated computes one result for each function. A series for which no function gives a value gives no result: placeholders are made elsewhere.
func aggregated(g calc.Aggregation, r *Result) ([]*Result, error) {
	g.Decimal, g.Range = r.Decimal, r.reach(g.Range, g.Period)
	a, err := calc.NewAggregator(g)
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
	outputs, some := make([]*Result, len(series)), false
	for i, s := range series {
		out := *r
		if g.Functions[i].Kind != calc.KindDetail {
			out.compute(s, a.Grid())
		}
		some = some || out.Samples.Len() > 0
		outputs[i] = &out
	}
	if !some {
		return nil, nil
	}
	return outputs, nil
}

// names lists the functions as they are echoed: in capitals, in the spelling sent.
func (a *Aggregate) names() []string {
	names := make([]string, len(a.Types))
	for i, t := range a.Types {
		names[i] = strings.ToUpper(strings.TrimSpace(t))
	}
	return names
}

// appendJSON appends the aggregation as an answer repeats it: what was sent, the function of one series, and the alignment.
func (a *Aggregate) appendJSON(b []byte, function string) []byte {
	o := openObject(b)
	o.text("type", function)
	if p := a.Period; p != nil {
		o.name("period")
		o.b = p.appendJSON(o.b)
	}
	if t := a.Threshold; t != nil {
		o.name("threshold")
		inner := openObject(o.b)
		if t.Min != nil {
			inner.number("min", *t.Min)
		}
		if t.Max != nil {
			inner.number("max", *t.Max)
		}
		o.b = inner.close()
	}
	if a.Calendar != "" {
		o.name("calendar")
		inner := openObject(o.b)
		inner.text("name", a.Calendar)
		o.b = inner.close()
	}
	if w := a.WorkingMinutes; w != nil {
		o.name("workingMinutes")
		inner := openObject(o.b)
		inner.integer("start", int64(w.Start))
		inner.integer("end", int64(w.End))
		o.b = inner.close()
	}
	if i := a.Interpolate; i != nil {
		o.name("interpolate")
		o.b = i.appendJSON(o.b)
	}
	return o.close()
}

func (p *Period) appendJSON(b []byte) []byte {
	o := openObject(b)
	o.integer("count", dates.NewInterval(p.Count, dates.Day).Count) // clamped, as it is computed with
	unit, align := strings.ToUpper(p.Unit), calc.Calendar
	if u, err := dates.ParseUnit(p.Unit); err == nil {
		unit = u.String()
	}
	if given, err := calc.ParseAlign(p.Align); err == nil {
		align = given
	}
	o.text("unit", unit)
	o.text("align", align.String())
	o.optional("timezone", p.Timezone)
	return o.close()
}

func (i *Interpolation) appendJSON(b []byte) []byte {
	o := openObject(b)
	o.text("type", strings.ToUpper(i.Type))
	if i.Value != nil {
		o.number("value", *i.Value)
	}
	if i.Extend != nil {
		o.boolean("extend", *i.Extend)
	}
	return o.close()
}
