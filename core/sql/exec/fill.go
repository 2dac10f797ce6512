package exec

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// fills reports whether periods without rows get some.
func (g *grouping) fills() bool {
	return g.periods != nil && (g.plan.Period.Fill != ast.FillNone || g.plan.Period.Extend)
}

// fillRows makes the rows of groups and of empty periods between them. Rows lie in order of the other keys, interval and time.
type fillRows struct {
	*grouping
	groups   *column.Batch // rows of the groups, in that order
	columns  []*column.Builder
	constant column.Value // of VALUE, in columns that are not whole
	size     int64        // of a row
	n        int
}

// filled returns the rows of the groups, which order lists by their other keys and time, with empty periods filled.
func (g *grouping) filled(ctx context.Context, order, before []int32) (*column.Batch, error) {
	f := &fillRows{grouping: g, groups: g.collect(order, before)}
	for j, v := range f.groups.Columns {
		of := v.Type
		if g.plan.Period.Fill == ast.FillValue && f.isAggregate(j) && !isWhole(of) {
			of = column.Object // the constant has a spelling of its own
		}
		f.columns = append(f.columns, column.NewBuilder(of))
	}
	f.constant = column.FloatValue(column.Double, g.plan.Period.Number)
	if n := g.plan.Period.Number; n == math.Trunc(n) && !math.IsInf(n, 0) {
		f.constant.Text = strconv.FormatFloat(n, 'f', 1, 64)
	}
	f.size = int64(len(f.columns))*56 + 64 // with what sorting needs
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && f.together(order[from], order[to]) {
			to++
		}
		if err := f.run(ctx, order, span{from, to}); err != nil {
			return nil, err
		}
		from = to
	}
	return f.sorted(ctx)
}

// together reports whether two groups differ in the period alone.
func (g *grouping) together(a, b int32) bool {
	p, q := &g.places[a], &g.places[b]
	return p.base == q.base && p.interval == q.interval && !p.null && !q.null
}

func isWhole(t column.Type) bool {
	switch t {
	case column.Bigint, column.Integer, column.Smallint, column.Timestamp, column.Boolean, column.String:
		return true
	}
	return false
}

func (f *fillRows) isAggregate(j int) bool {
	k := len(f.plan.Keys)
	return j >= k && j < k+len(f.plan.Aggregates)
}

// run yields the rows of groups that differ in the period alone, and of the empty periods among them.
func (f *fillRows) run(ctx context.Context, order []int32, s span) error {
	first := &f.places[order[s.from]]
	if first.null {
		return f.copy(s.from)
	}
	lines, period := f.periods.grids[first.grid], f.plan.Period
	if period.Extend && lines.HasFrom {
		var starts []core.Time
		for t, ok := lines.prior(first.start); ok; t, ok = lines.prior(t) {
			if err := f.room(ctx); err != nil {
				return err
			}
			starts = append(starts, t)
		}
		for _, t := range slices.Backward(starts) {
			f.put(gap{left: -1, right: s.from, at: t})
		}
	}
	for i := s.from; i < s.to; i++ {
		if err := f.copy(i); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		start, g := f.places[order[i]].start, gap{left: i, right: -1}
		end := lines.End
		switch {
		case i+1 < s.to:
			if period.Fill == ast.FillNone {
				continue
			}
			g.right = i + 1
			g.from, g.to = start, f.places[order[i+1]].start
			end = g.to
		case !period.Extend || !lines.HasTo:
			continue
		}
		for g.at = lines.after(start); g.at < end; g.at = lines.after(g.at) {
			if err := f.room(ctx); err != nil {
				return err
			}
			f.put(g)
		}
	}
	return nil
}

func (f *fillRows) room(ctx context.Context) error {
	if f.taken/f.size%column.Size == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	return f.grow(f.size)
}

// copy adds the row of a group.
func (f *fillRows) copy(i int) error {
	for j, v := range f.groups.Columns {
		f.columns[j].AppendRow(v, i)
	}
	f.n++
	return f.grow(f.size)
}

// gap is an empty period at at, between the rows left and right, one of which may be -1 for none, whose periods start at from and to.
type gap struct {
	left, right  int
	at, from, to core.Time
}

// put adds the row of an empty period.
func (f *fillRows) put(p gap) {
	near := p.left
	if near < 0 {
		near = p.right
	}
	for j, v := range f.groups.Columns {
		switch b := f.columns[j]; {
		case j == f.plan.PeriodKey:
			b.Append(column.IntValue(v.Type, int64(p.at)))
		case f.isAggregate(j):
			b.Append(f.value(v, p))
		default:
			b.AppendRow(v, near)
		}
	}
	f.n++
}

// value returns the value of an aggregate in an empty period.
func (f *fillRows) value(v *column.Vector, p gap) column.Value {
	fill := f.plan.Period.Fill
	switch {
	case fill == ast.FillValue:
		if isWhole(v.Type) {
			if n := f.constant.Float; n == math.Trunc(n) && math.Abs(n) < beyondInt {
				return column.IntValue(v.Type, int64(n))
			}
			return column.FloatValue(v.Type, f.constant.Float)
		}
		return f.constant
	case p.left < 0:
		return v.Value(p.right)
	case p.right < 0, fill == ast.FillPrevious:
		return v.Value(p.left)
	case fill == ast.FillNext:
		return v.Value(p.right)
	}
	return between(v, p)
}

// between returns the value on the line between two rows.
func between(v *column.Vector, p gap) column.Value {
	a, b := v.Value(p.left), v.Value(p.right)
	if a.IsNull() || b.IsNull() || v.Type == column.String {
		return column.NullValue
	}
	n := mix(a.Number(), b.Number(), int64(p.at-p.from), int64(p.to-p.from))
	if a.Whole && n == math.Trunc(n) || v.Type == column.Timestamp {
		return column.IntValue(v.Type, int64(n))
	}
	return column.FloatValue(v.Type, n)
}

// sorted returns the rows in the order of their keys.
func (f *fillRows) sorted(ctx context.Context) (*column.Batch, error) {
	out := &column.Batch{Len: f.n}
	for j, b := range f.columns {
		v := b.Vector()
		v.Type = f.groups.Columns[j].Type
		out.Columns = append(out.Columns, v)
	}
	names := make([]string, f.n)
	pick := make([]int32, f.n)
	var key []byte
	for i := range names {
		if i%column.Size == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		key = key[:0]
		for _, k := range f.order {
			key = appendKey(key, out.Columns[k], i)
		}
		names[i], pick[i] = string(key), int32(i)
	}
	if err := sortAll(f.x, pick, func(a, b int32) int { return cmp.Or(strings.Compare(names[a], names[b]), cmp.Compare(a, b)) }); err != nil {
		return nil, err
	}
	for j, v := range out.Columns {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out.Columns[j] = v.Gather(pick, nil)
	}
	return out, nil
}
