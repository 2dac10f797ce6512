package query

import (
	"iter"
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
func (a *Aggregate) stage(r core.Range, m dates.Moment) (stage, error) {
	g := calc.Aggregation{Range: r}
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
	g.Period.Zone = m.Zone
	if a.Period != nil {
		period, err := a.Period.resolve(m)
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
	run := func(in iter.Seq2[*Result, error]) iter.Seq2[*Result, error] { return a.run(g, in) }
	return stage{name: "AGGREGATE", run: run}, nil
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

// run computes series by series. A series for which no function gives a value is left out: placeholders are made elsewhere.
func (a *Aggregate) run(g calc.Aggregation, in iter.Seq2[*Result, error]) iter.Seq2[*Result, error] {
	names := a.names()
	return func(yield func(*Result, error) bool) {
		for r, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			g.Decimal = r.Decimal
			series, err := calc.Aggregate(g, r.Samples.Times, r.Samples.Values)
			if err != nil {
				yield(nil, invalid(err.Error()))
				return
			}
			outputs, some := make([]*Result, len(series)), false
			for i, s := range series {
				out := *r
				out.Aggregate = a.echo(names[i])
				if g.Functions[i].Kind != calc.KindDetail {
					out.Samples, out.Computed = Samples{Times: s.Times, Values: s.Values}, true
				}
				some = some || out.Samples.Len() > 0
				outputs[i] = &out
			}
			for _, out := range outputs {
				if some && !yield(out, nil) {
					return
				}
			}
		}
	}
}

// names lists the functions as they are echoed: in capitals, in the spelling sent.
func (a *Aggregate) names() []string {
	names := make([]string, len(a.Types))
	for i, t := range a.Types {
		names[i] = strings.ToUpper(strings.TrimSpace(t))
	}
	return names
}

// AggregateEcho is the aggregation as an answer repeats it: what was sent, the function of this series, and the alignment.
type AggregateEcho struct {
	Type string
	*Aggregate
}

func (a *Aggregate) echo(name string) *AggregateEcho { return &AggregateEcho{name, a} }

func (a *AggregateEcho) appendJSON(b []byte) []byte {
	o := openObject(b)
	o.text("type", a.Type)
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
