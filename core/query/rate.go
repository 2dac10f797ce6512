package query

import (
	"context"

	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Rate asks for the differences between consecutive samples, divided by the time they took when there is a period.
type Rate struct {
	Period  *Period // a length alone, NANOSECOND included; alignment and zone mean nothing
	Counter *bool   // a decrease is a restart and gives nothing; true when absent
	Order   *int
}

func (r *Rate) counter() bool { return r.Counter == nil || *r.Counter }

func (r *Rate) stage(setting) (stage, error) {
	c := calc.Rate{Signed: !r.counter()}
	if p := r.Period; p != nil {
		unit, err := dates.ParseUnit(p.Unit)
		if err != nil {
			return stage{}, invalid(err.Error())
		}
		length := dates.NewInterval(p.Count, unit)
		if length.Count <= 0 {
			return stage{}, invalid("Rate period must be positive")
		}
		c.PerMillis = length.NominalMillis()
	}
	echo := r.appendJSON(nil)
	return mapped("RATE", func(_ context.Context, _ *execution, in *Result) ([]*Result, error) {
		c := c
		c.Decimal = in.Decimal
		out := *in
		out.compute(c.Apply(in.Samples.Times, in.Samples.Values), in.Grid)
		if out.Samples.Len() == 0 {
			return nil, nil
		}
		out.Echo = with(in.Echo, "rate", echo)
		return []*Result{&out}, nil
	}), nil
}

func (r *Rate) appendJSON(b []byte) []byte {
	o := openObject(b)
	if r.Period != nil {
		o.name("period")
		o.b = r.Period.appendLength(o.b)
	}
	o.boolean("counter", r.counter())
	o.order(r.Order)
	return o.close()
}

// appendLength appends a period without alignment.
func (p *Period) appendLength(b []byte) []byte {
	o := openObject(b)
	o.integer("count", dates.NewInterval(p.Count, dates.Day).Count)
	unit := p.Unit
	if u, err := dates.ParseUnit(p.Unit); err == nil {
		unit = u.String()
	}
	o.text("unit", unit)
	return o.close()
}

// order appends the place among the transformations where the request gave one.
func (o *object) order(order *int) {
	if order != nil {
		o.integer("order", int64(*order))
	}
}
