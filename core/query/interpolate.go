package query

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// Regularize asks for a value at every start of a period, computed from the samples around it. It is the transformation named interpolate.
type Regularize struct {
	Period   *Period
	Function string // LINEAR, PREVIOUS or AUTO: the setting of the metric
	Boundary string // INNER, or OUTER: one sample on each side of the range takes part
	Fill     string // false, true, NaN or a number: what stands where there is nothing to compute from
}

func (g *Regularize) outer() bool { return strings.EqualFold(strings.TrimSpace(g.Boundary), "OUTER") }

func (g *Regularize) stage(s setting) (stage, error) {
	if g.Period == nil {
		return stage{}, invalid("Interpolation period is required")
	}
	period, err := g.Period.resolve(s.Moment)
	if err != nil {
		return stage{}, err
	}
	if err := period.Validate(); err != nil {
		return stage{}, invalid(err.Error())
	}
	r := calc.Regular{Range: s.Range, Period: period}
	auto, err := g.mode(&r)
	if err != nil {
		return stage{}, err
	}
	if b := strings.ToUpper(strings.TrimSpace(g.Boundary)); b != "" && b != "INNER" && b != "OUTER" {
		return stage{}, invalid("Unknown interpolation boundary: " + g.Boundary)
	}
	if err := g.edge(&r); err != nil {
		return stage{}, err
	}
	return mapped("INTERPOLATE", func(_ context.Context, e *execution, in *Result) ([]*Result, error) {
		r := r
		if m, _ := e.Catalog.Metric(in.Metric); auto && strings.EqualFold(m.Interpolate, "PREVIOUS") {
			r.Mode = calc.FillPrevious
		}
		return in.regular(r)
	}), nil
}

// mode reads the function; auto reports that the metric decides.
func (g *Regularize) mode(r *calc.Regular) (auto bool, err error) {
	r.Mode = calc.FillLinear
	switch strings.ToUpper(strings.TrimSpace(g.Function)) {
	case "":
		return false, invalid("Interpolation function is required")
	case "AUTO":
		return true, nil
	case "LINEAR":
	case "PREVIOUS":
		r.Mode = calc.FillPrevious
	default:
		return false, invalid("Unknown interpolation function: " + g.Function)
	}
	return false, nil
}

func (g *Regularize) edge(r *calc.Regular) error {
	switch text := strings.TrimSpace(g.Fill); {
	case text == "" || strings.EqualFold(text, "false"):
	case strings.EqualFold(text, "true"):
		r.Edge = calc.EdgeNearest
	default:
		n, err := calc.ParseNumber(text)
		if err != nil || math.IsInf(n.Value, 0) {
			return invalid("Interpolation fill must be true, false, NaN or a number, not " + text)
		}
		r.Edge, r.Value = calc.EdgeValue, n.Value
	}
	return nil
}

// regular computes the values of r on the samples and on those next to the range. A result without any value is left out.
func (in *Result) regular(r calc.Regular) ([]*Result, error) {
	r.Range = in.reach(r.Range, r.Period)
	times, values := in.Samples.Times, in.Samples.Values
	if r.Decimal = in.Decimal; r.Decimal {
		r.Decimals = in.Samples.Decimals
	}
	if p := in.Before; p != nil {
		times, values = append([]core.Time{p.Time}, times...), append([]float64{p.Value}, values...)
		r.Decimals = slices.Clone(r.Decimals)
		for i := range r.Decimals {
			r.Decimals[i].Index++
		}
	}
	if p := in.After; p != nil {
		n := len(times)
		times, values = append(times[:n:n], p.Time), append(values[:n:n], p.Value)
	}
	s, err := r.Apply(times, values)
	if err != nil {
		return nil, invalid(err.Error())
	}
	if len(s.Times) == 0 {
		return nil, nil
	}
	grid, err := r.Grid(times, values)
	if err != nil {
		return nil, invalid(err.Error())
	}
	out := *in
	out.Before, out.After = nil, nil
	out.compute(s, &grid)
	return []*Result{&out}, nil
}

// surrounded yields the series of q with the sample before and the one after its range. A series may have these alone.
func (e *execution) surrounded(ctx context.Context, q core.SeriesQuery) flow {
	return func(yield func(*Result, error) bool) {
		before, after := q, q
		before.Versions, after.Versions = false, false
		before.Range = core.Range{Start: core.AllTime.Start, End: q.Range.Start}
		before.NewestFirst, before.Limit = true, 1
		after.Range = core.Range{Start: q.Range.End, End: core.AllTime.End}
		after.NewestFirst, after.Limit = false, 1
		sources := [...]*pulled{e.pull(ctx, before), e.pull(ctx, q), e.pull(ctx, after)}
		for _, s := range sources {
			defer s.stop()
		}
		for {
			var first *Result
			for _, s := range sources {
				if s.err != nil {
					yield(nil, s.err)
					return
				}
				if s.head != nil && (first == nil || s.head.compare(first) < 0) {
					first = s.head
				}
			}
			if first == nil {
				return
			}
			out := &Result{Metric: first.Metric, Entity: first.Entity, Tags: first.Tags}
			out.Before = sources[0].take(first).edge()
			if in := sources[1].take(first); in != nil {
				out.Samples = in.Samples
			}
			out.After = sources[2].take(first).edge()
			if !yield(out, nil) {
				return
			}
		}
	}
}

// compare orders results by their keys.
func (r *Result) compare(o *Result) int {
	return core.SeriesKey{Metric: r.Metric, Entity: r.Entity, Tags: r.Tags}.Compare(core.SeriesKey{Metric: o.Metric, Entity: o.Entity, Tags: o.Tags})
}

// edge returns the only sample of a result next to the range; nil when there is none.
func (r *Result) edge() *calc.Point {
	if r == nil || r.Samples.Len() == 0 {
		return nil
	}
	return &calc.Point{Time: r.Samples.Times[0], Value: r.Samples.Values[0]}
}

// pulled is one of several ordered reads that advance together.
type pulled struct {
	next func() (*Result, error, bool)
	stop func()
	head *Result // nil at the end
	err  error
}

func (e *execution) pull(ctx context.Context, q core.SeriesQuery) *pulled {
	p := &pulled{}
	if q.Range.Empty() {
		p.stop = func() {}
		return p
	}
	p.next, p.stop = iter.Pull2(e.merged(ctx, q))
	p.advance()
	return p
}

func (p *pulled) advance() {
	p.head, p.err, _ = p.next()
}

// take returns the head when it is of the same series as r, and moves on.
func (p *pulled) take(r *Result) *Result {
	head := p.head
	if head == nil || head.compare(r) != 0 {
		return nil
	}
	p.advance()
	return head
}
