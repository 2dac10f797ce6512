package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// timeConditions finds out which times a WHERE selects.
type timeConditions struct {
	resolve func(*ast.Name) (ref, bool)
	// instant returns what an expression beside a time column is as an instant. ok is false when it is none, is not constant or cannot be compared
	// exactly in milliseconds: then the condition is tested row by row.
	instant func(ast.Expr) (t core.Time, ok bool, err error)
	// instants returns the times that the query of BETWEEN (SELECT ...) yields, in its order. nil: such conditions are tested row by row.
	instants func(*ast.Select) ([]core.Time, error)
}

// bound is one end of a span. The zero bound is open.
type bound struct {
	given   bool
	literal core.Time // as written
	at      ast.Start
	table   int // whose column was compared; joined = of all
}

// span is the times from its first to before its end. It may be empty without being a mistake: time > 1 AND time < 2.
type span struct {
	from, to core.Time
	low      bound
	high     bound
}

// everything is the span without bounds. Bounds that a query gives may lie beyond what can be stored.
var everything = span{from: math.MinInt64, to: math.MaxInt64}

// spans ascend and are disjoint.
type spans []span

// intervals returns the ranges of time that satisfy all terms that speak of nothing else, and the other terms. Terms that connect such conditions by AND and
// OR count as well; NOT, <> and ORs with other conditions are left for the rows. Without conditions there is one range of all time.
func (c timeConditions) intervals(terms []ast.Expr) (list []Interval, rest []ast.Expr, err error) {
	tables := map[int]spans{}
	var order []int
	for _, term := range terms {
		found, table, err := c.spans(term)
		if err != nil {
			return nil, nil, err
		}
		if found == nil {
			rest = append(rest, term)
			continue
		}
		all, again := tables[table]
		if !again {
			order = append(order, table)
			all = spans{everything}
		}
		if tables[table], err = all.intersect(found); err != nil {
			return nil, nil, err
		}
	}
	// First each table for itself, then all together: the errors differ.
	result := spans{everything}
	for _, table := range order {
		if result, err = result.intersect(tables[table]); err != nil {
			return nil, nil, err
		}
	}
	return result.intervals(), rest, nil
}

// intervals cuts the spans to what can be stored.
func (s spans) intervals() []Interval {
	list := []Interval{}
	for _, one := range s {
		i := Interval{Range: core.AllTime, HasFrom: one.low.given, HasTo: one.high.given}
		if i.HasFrom {
			i.Start = max(one.from, core.MinTime)
		}
		if i.HasTo {
			i.End = one.to
		}
		if !i.Empty() && i.Start <= core.MaxTime {
			list = append(list, i)
		}
	}
	return list
}

// spans returns the times for which a condition is true and the table that it speaks of; nil when it is not only about time.
func (c timeConditions) spans(e ast.Expr) (spans, int, error) {
	switch e := e.(type) {
	case *ast.Binary:
		if e.Op == "and" || e.Op == "or" {
			return c.connected(e)
		}
		return c.comparison(e)
	case *ast.Between:
		return c.between(e)
	case *ast.In:
		return c.in(e)
	}
	return nil, 0, nil
}

// connected joins the two sides of AND or OR.
func (c timeConditions) connected(e *ast.Binary) (spans, int, error) {
	left, leftTable, err := c.spans(e.L)
	if left == nil || err != nil {
		return nil, 0, err
	}
	right, rightTable, err := c.spans(e.R)
	if right == nil || err != nil {
		return nil, 0, err
	}
	table := leftTable
	if table != rightTable {
		table = joined
	}
	if e.Op == "or" {
		return unite(left, right), table, nil
	}
	both, err := left.intersect(right)
	return both, table, err
}

// column returns the table of a time column.
func (c timeConditions) column(e ast.Expr) (table int, ok bool) {
	n, ok := e.(*ast.Name)
	if !ok {
		return 0, false
	}
	r, ok := c.resolve(n)
	return r.table, ok && r.source.Kind == SourceTime
}

// flipped gives the operator that says the same with the sides exchanged.
var flipped = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (c timeConditions) comparison(e *ast.Binary) (spans, int, error) {
	op, limit := e.Op, e.R
	table, ok := c.column(e.L)
	if !ok {
		if table, ok = c.column(e.R); !ok {
			return nil, 0, nil
		}
		op, limit = flipped[e.Op], e.L
	}
	if _, known := flipped[op]; !known {
		return nil, 0, nil
	}
	t, ok, err := c.instant(limit)
	if !ok || err != nil {
		return nil, 0, err
	}
	return spans{compared(op, bound{true, t, limit.At(), table})}, table, nil
}

// compared returns the times that stand in a relation to a bound.
func compared(op string, b bound) span {
	s := everything
	if op == ">" || op == ">=" || op == "=" {
		s.low, s.from = b, b.literal
		if op == ">" {
			s.from = after(b.literal)
		}
	}
	if op == "<" || op == "<=" || op == "=" {
		s.high, s.to = b, b.literal
		if op != "<" {
			s.to = after(b.literal)
		}
	}
	return s
}

// after returns the next millisecond.
func after(t core.Time) core.Time {
	if t == math.MaxInt64 {
		return t
	}
	return t + 1
}

func (c timeConditions) between(e *ast.Between) (spans, int, error) {
	table, ok := c.column(e.X)
	if !ok || e.Not {
		return nil, 0, nil
	}
	if e.View != nil {
		all, err := c.pairs(e, table)
		return all, table, err
	}
	low, lowOK, err := c.instant(e.Low)
	if err != nil {
		return nil, 0, err
	}
	high, highOK, err := c.instant(e.High)
	if err != nil || !lowOK || !highOK {
		return nil, 0, err
	}
	lowOp, highOp := ">=", "<="
	if e.LowExcl {
		lowOp = ">"
	}
	if e.HighExcl {
		highOp = "<"
	}
	from := spans{compared(lowOp, bound{true, low, e.Low.At(), table})}
	both, err := from.intersect(spans{compared(highOp, bound{true, high, e.High.At(), table})})
	return both, table, err
}

// pairs makes intervals of the times of a subquery: two and two are the ends of one, inclusive; the last of an odd number has no end.
func (c timeConditions) pairs(e *ast.Between, table int) (spans, error) {
	if c.instants == nil {
		return nil, nil
	}
	times, err := c.instants(e.View)
	if err != nil {
		return nil, err
	}
	all := spans{}
	for pair := range slices.Chunk(times, 2) {
		low := bound{true, pair[0], e.View.Start, table}
		s := compared(">=", low)
		if len(pair) == 2 {
			s.high, s.to = bound{true, pair[1], e.View.Start, table}, after(pair[1])
			if pair[1] < pair[0] {
				return nil, contradiction(low, s.high)
			}
		}
		all = append(all, s)
	}
	return unite(all, nil), nil
}

func (c timeConditions) in(e *ast.In) (spans, int, error) {
	table, ok := c.column(e.X)
	if !ok || e.Not || e.Set != nil {
		return nil, 0, nil
	}
	all := spans{}
	for _, element := range e.List {
		t, ok, err := c.instant(element)
		if !ok || err != nil {
			return nil, 0, err
		}
		all = append(all, compared("=", bound{true, t, element.At(), table}))
	}
	return unite(all, nil), table, nil
}

// unite returns the times that lie in a or b, which need not be in order. Spans that overlap become one; those that only touch stay apart.
func unite(a, b spans) spans {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	united := spans{}
	for _, s := range all {
		if s.from >= s.to {
			continue
		}
		last := len(united) - 1
		if last < 0 || s.from >= united[last].to {
			united = append(united, s)
			continue
		}
		if s.to > united[last].to {
			united[last].to, united[last].high = s.to, s.high
		}
	}
	return united
}

// intersect returns the times that lie in both. That none does is an error when the bounds as written contradict each other.
func (s spans) intersect(o spans) (spans, error) {
	both := spans{}
	var contradicted *span
	for i, j := 0, 0; i < len(s) && j < len(o); {
		one := s[i].cut(o[j])
		switch {
		case one.from < one.to:
			both = append(both, one)
		case one.low.given && one.high.given && one.low.literal >= one.high.literal:
			contradicted = &one
		}
		if s[i].to <= o[j].to {
			i++
		} else {
			j++
		}
	}
	if len(both) == 0 && contradicted != nil {
		return nil, contradiction(contradicted.low, contradicted.high)
	}
	return both, nil
}

// cut returns the common part, with the later of the starts and the earlier of the ends.
func (s span) cut(o span) span {
	if o.from > s.from || !s.low.given {
		s.from, s.low = max(s.from, o.from), o.low
	}
	if o.to < s.to || !s.high.given {
		s.to, s.high = min(s.to, o.to), o.high
	}
	return s
}

// contradiction is the error of a start that is not before the end. It points at the start.
func contradiction(low, high bound) error {
	if low.table != high.table && low.table != joined && high.table != joined {
		return low.at.Errorf(" Invalid date conditions")
	}
	return low.at.Errorf("Start date must be less than end date")
}
