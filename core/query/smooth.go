package query

import (
	"context"
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Smooth asks for a moving function. Fields that are nil were not sent; 0 counts as not sent where it means nothing, because some clients always send it.
type Smooth struct {
	Type            string
	Count           *float64 // samples in the window
	Interval        *Period  // length of the window
	MinimumCount    *float64
	IncompleteValue string // null, NaN or a number
	Factor, Range   *float64
	Order           *int
}

// defaultFactor is the weight of the latest value in an exponential average.
const defaultFactor = 0.25

func (s *Smooth) stage(setting) (stage, error) {
	if blank(s.Type) {
		return stage{}, invalid("Smooth type is required")
	}
	kind, err := calc.ParseSmoothKind(s.Type)
	if err != nil {
		return stage{}, invalid(err.Error())
	}
	c := calc.Smooth{Kind: kind, Minimum: 1, Factor: defaultFactor}
	for _, read := range []func(*calc.Smooth) error{s.window, s.completeness, s.weights} {
		if err := read(&c); err != nil {
			return stage{}, err
		}
	}
	echo := s.appendJSON(nil)
	return mapped("SMOOTH", func(ctx context.Context, _ *execution, in *Result) ([]*Result, error) {
		c := c
		c.Decimal = in.Decimal
		series, kept, err := c.Apply(ctx, in.Samples.Times, in.Samples.Values)
		if err != nil || len(kept) == 0 {
			return nil, err
		}
		out := *in
		out.compute(series, in.Grid)
		out.Samples.Texts = unchanged(&in.Samples, kept)
		out.Echo = with(in.Echo, "smooth", echo)
		return []*Result{&out}, nil
	}), nil
}

// unchanged returns the texts of the NaN samples, which smoothing passes through whole. kept lists the samples that remain.
func unchanged(in *Samples, kept []int) []core.TextAt {
	var out []core.TextAt
	texts := in.Texts
	for at, i := range kept {
		for len(texts) > 0 && int(texts[0].Index) < i {
			texts = texts[1:]
		}
		if len(texts) > 0 && int(texts[0].Index) == i && math.IsNaN(in.Values[i]) {
			out = append(out, core.TextAt{Index: uint32(at), Text: texts[0].Text})
		}
	}
	return out
}

// window reads the size of the window. An exponential average has none: what a client sends all the same is not judged.
func (s *Smooth) window(c *calc.Smooth) error {
	if c.Kind == calc.SmoothExponential {
		return nil
	}
	if n := s.Count; n != nil && *n != 0 {
		if !(*n >= 1) {
			return invalid("Smooth count must be positive")
		}
		c.Count = int(min(*n, math.MaxInt32))
	}
	if s.Interval == nil {
		return nil
	}
	if c.Count > 0 {
		return invalid("Smooth count and interval can not be used together")
	}
	unit, err := dates.ParseUnit(s.Interval.Unit)
	if err != nil {
		return invalid(err.Error())
	}
	length := dates.NewInterval(s.Interval.Count, unit)
	if _, fixed := unit.FixedMillis(); !fixed {
		return invalid("Smooth interval unit must be MILLISECOND, SECOND, MINUTE or HOUR")
	}
	if length.Count <= 0 {
		return invalid("Smooth interval must be positive")
	}
	c.Millis = length.NominalMillis()
	return nil
}

func (s *Smooth) completeness(c *calc.Smooth) error {
	if n := s.MinimumCount; n != nil {
		if !(*n >= 0) {
			return invalid("Smooth minimumCount must not be negative")
		}
		c.Minimum = int(min(*n, math.MaxInt32))
	}
	text := strings.TrimSpace(s.IncompleteValue)
	if text == "" || strings.EqualFold(text, "null") {
		return nil
	}
	n, err := calc.ParseNumber(text)
	if err != nil || math.IsInf(n.Value, 0) {
		return invalid("Smooth incompleteValue must be null, NaN or a number, not " + text)
	}
	c.Incomplete = &n.Value
	return nil
}

func (s *Smooth) weights(c *calc.Smooth) error {
	if f := s.Factor; f != nil && *f != 0 {
		if !(*f > 0 && *f < 1) {
			return invalid("Smooth factor must be between 0 and 1")
		}
		c.Factor = *f
	}
	if r := s.Range; r != nil && *r != 0 {
		if !(*r > 0) || math.IsInf(*r, 0) {
			return invalid("Smooth range must be positive")
		}
		c.Range = *r
	}
	return nil
}

func (s *Smooth) appendJSON(b []byte) []byte {
	o := openObject(b)
	o.text("type", strings.ToUpper(strings.TrimSpace(s.Type)))
	number := func(name string, v *float64) {
		if v != nil {
			o.number(name, *v)
		}
	}
	number("count", s.Count)
	if s.Interval != nil {
		o.name("interval")
		o.b = s.Interval.appendLength(o.b)
	}
	number("minimumCount", s.MinimumCount)
	o.optional("incompleteValue", s.IncompleteValue)
	number("factor", s.Factor)
	number("range", s.Range)
	o.order(s.Order)
	return o.close()
}
