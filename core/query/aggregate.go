package query

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

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
	Calendar       string // key of a workday calendar: threshold functions look at its working days alone
	Order          *int   // place among the transformations, when the request has no list
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
	if err := a.limits(s.Moment, &g); err != nil {
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
	o := aggregation{Aggregation: g, names: a.names()}
	for _, name := range o.names {
		o.echoes = append(o.echoes, with(nil, "aggregate", a.appendJSON(nil, name)))
	}
	one := mapped("AGGREGATE", func(_ context.Context, _ *execution, r *Result) ([]*Result, error) { return o.results(r) })
	if !slices.ContainsFunc(g.Functions, func(f calc.Function) bool { return f.Kind == calc.KindDetail }) {
		one.pieces = o.pieces
	}
	return one, nil
}

// aggregation is the stage: what it computes, and for each function its name and what the answer repeats of it.
type aggregation struct {
	calc.Aggregation
	names  []string
	echoes [][]Part
}

func invalid(text string) error {
	return core.Errorf(core.Invalid, "IllegalArgumentException: %s", text)
}

// limits reads what only threshold functions need.
func (a *Aggregate) limits(m dates.Moment, g *calc.Aggregation) error {
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
	if !blank(a.Calendar) {
		calendar, err := m.Calendars.Find(a.Calendar)
		if err != nil {
			return err
		}
		g.Workday = func(year int, month time.Month, day int) bool {
			return calendar.Workday(dates.DateAt(year, month, day))
		}
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

// results computes one result for each function. A series for which no function gives a value gives no result: placeholders are made elsewhere.
func (o *aggregation) results(r *Result) ([]*Result, error) {
	a, err := o.start(r)
	if err != nil {
		return nil, err
	}
	if err := a.AddExact(r.Samples.Times, r.Samples.Values, r.Samples.Decimals); err != nil {
		return nil, invalid(err.Error())
	}
	return o.finish(a, r)
}

func (o *aggregation) start(r *Result) (*calc.Aggregator, error) {
	g := o.Aggregation
	g.Decimal, g.Range = r.Decimal, r.reach(g.Range, g.Period)
	a, err := calc.NewAggregator(g)
	if err != nil {
		return nil, invalid(err.Error())
	}
	return a, nil
}

func (o *aggregation) finish(a *calc.Aggregator, r *Result) ([]*Result, error) {
	series, err := a.Finish()
	if err != nil {
		return nil, invalid(err.Error())
	}
	outputs, some := make([]*Result, len(series)), false
	for i, s := range series {
		out := *r
		if o.Functions[i].Kind != calc.KindDetail {
			out.compute(s, a.Grid())
		}
		if out.Echo = o.echoes[i]; len(r.Echo) > 0 {
			out.Echo = with(r.Echo, "aggregate", o.echoes[i][0].JSON)
		}
		out.Lineage = r.Lineage + "/" + o.names[i]
		some = some || out.Samples.Len() > 0
		outputs[i] = &out
	}
	if !some {
		return nil, nil
	}
	return outputs, nil
}

// pieces computes what results would make of the samples of in, without putting them together. some reports whether there are any. hold is told how many
// samples are kept for the current period.
func (o *aggregation) pieces(r *Result, in iter.Seq2[core.Piece, error], hold holder) (out []*Result, some bool, err error) {
	a, err := o.start(r)
	if err != nil {
		return nil, false, err
	}
	for p, err := range in {
		if err != nil {
			return nil, false, err
		}
		if p.Stats != nil {
			some = true
			if taken, err := a.AddSummary(summary(p.Stats)); taken || err != nil {
				if err != nil {
					return nil, true, invalid(err.Error())
				}
				continue
			}
		}
		b, err := p.Rows()
		if err != nil {
			return nil, false, err
		}
		some = some || len(b.Times) > 0
		if err := a.AddExact(b.Times, b.Values, b.Decimals); err != nil {
			return nil, true, invalid(err.Error())
		}
		if err := hold(a.Kept()); err != nil {
			return nil, true, err
		}
	}
	if !some {
		return nil, false, nil
	}
	out, err = o.finish(a, r)
	return out, true, err
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

// summary is what an aggregation takes of the statistics of a piece.
func summary(s *core.Stats) calc.Summary {
	return calc.Summary{Count: s.Count, Sum: s.Sum, Min: s.Min, Max: s.Max, First: s.First, Last: s.Last,
		FirstTime: s.FirstTime, LastTime: s.LastTime, MinTime: s.MinTime, MaxTime: s.MaxTime}
}
