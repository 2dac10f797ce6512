package query

import (
	"context"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Downsample asks to leave out samples that repeat those around them. Fields that are nil were not sent.
type Downsample struct {
	Algorithm  string // DETAIL or INTERPOLATE
	Difference *float64
	Ratio      *float64
	Gap        *Period // a length alone
	Order      *int
}

func (d *Downsample) stage(s setting) (stage, error) {
	c := calc.Downsample{}
	switch strings.ToUpper(strings.TrimSpace(d.Algorithm)) {
	case "", "DETAIL":
	case "INTERPOLATE":
		c.Linear = true
	default:
		return stage{}, invalid("Unknown downsample algorithm: " + d.Algorithm)
	}
	if d.Difference != nil && d.Ratio != nil {
		return stage{}, invalid("Downsample difference and ratio can not be used together")
	}
	if v := d.Difference; v != nil {
		if !(*v >= 0) {
			return stage{}, invalid("Downsample difference must not be negative")
		}
		c.Difference = *v
	}
	if v := d.Ratio; v != nil {
		if !(*v >= 1) {
			return stage{}, invalid("Downsample ratio must be at least 1")
		}
		c.Ratio = *v
	}
	if err := d.gap(&c, s.Moment); err != nil {
		return stage{}, err
	}
	echo := d.appendJSON(nil)
	return mapped("DOWNSAMPLE", func(_ context.Context, _ *execution, in *Result) ([]*Result, error) {
		out := *in
		out.Samples = in.Samples.downsampled(c)
		out.lieOn(in.Grid)
		out.Echo = with(in.Echo, "downsample", echo)
		return []*Result{&out}, nil
	}), nil
}

func (d *Downsample) gap(c *calc.Downsample, m dates.Moment) error {
	if d.Gap == nil {
		return nil
	}
	unit, err := dates.ParseUnit(d.Gap.Unit)
	if err != nil {
		return invalid(err.Error())
	}
	length := dates.NewInterval(d.Gap.Count, unit)
	if length.Count <= 0 || unit == dates.Nanosecond {
		return invalid("Downsample gap must be positive")
	}
	if m, err = inZone(m, d.Gap.Timezone); err != nil {
		return err
	}
	c.Gap = func(last, t core.Time) bool { return t > length.After(last, m.Zone) }
	return nil
}

func (d *Downsample) appendJSON(b []byte) []byte {
	o := openObject(b)
	o.optional("algorithm", strings.ToUpper(strings.TrimSpace(d.Algorithm)))
	if d.Difference != nil {
		o.number("difference", *d.Difference)
	}
	if d.Ratio != nil {
		o.number("ratio", *d.Ratio)
	}
	if d.Gap != nil {
		o.name("gap")
		o.b = d.Gap.appendLength(o.b)
	}
	o.order(d.Order)
	return o.close()
}

// downsampled returns the samples that stay. Of several versions of a sample the latest decides for all.
func (s *Samples) downsampled(d calc.Downsample) Samples {
	var times []core.Time
	var values []float64
	var ends []int // end of the rows of each time
	for i, t := range s.Times {
		if n := len(times); n > 0 && times[n-1] == t {
			values[n-1], ends[n-1] = s.Values[i], i+1
			continue
		}
		times, values, ends = append(times, t), append(values, s.Values[i]), append(ends, i+1)
	}
	texted := make([]bool, len(times))
	at := 0
	for _, text := range s.Texts {
		for int(text.Index) >= ends[at] {
			at++
		}
		if int(text.Index) == ends[at]-1 {
			texted[at] = text.Text != ""
		}
	}
	d.Needed = func(i int) bool { return texted[i] }
	rows := make([]bool, len(s.Times))
	for _, i := range d.Keep(times, values) {
		start := 0
		if i > 0 {
			start = ends[i-1]
		}
		for row := start; row < ends[i]; row++ {
			rows[row] = true
		}
	}
	return s.pick(rows)
}

// pick returns a copy of the samples whose flag is set.
func (s *Samples) pick(keep []bool) Samples {
	var out Samples
	place := make([]uint32, len(keep)) // of each kept sample in the copy
	for i, kept := range keep {
		if kept {
			place[i] = uint32(len(out.Times))
			out.Times, out.Values = append(out.Times, s.Times[i]), append(out.Values, s.Values[i])
		}
	}
	for _, t := range s.Texts {
		if keep[t.Index] {
			out.Texts = append(out.Texts, core.TextAt{Index: place[t.Index], Text: t.Text})
		}
	}
	for _, d := range s.Decimals {
		if keep[d.Index] {
			out.Decimals = append(out.Decimals, core.DecimalAt{Index: place[d.Index], Decimal: d.Decimal})
		}
	}
	for _, v := range s.Versions {
		if keep[v.Index] {
			v.Index = place[v.Index]
			out.Versions = append(out.Versions, v)
		}
	}
	return out
}
