package plan

import (
	"errors"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// prepareWhere tells the terms of WHERE apart: what selects metrics, what bounds the time, what bears on one table, and what needs joined rows.
func (b *binder) prepareWhere() error {
	if b.stmt.Where != nil {
		b.unprefixed = true
		whole, err := b.canonical(b.stmt.Where, columnFirst)
		b.unprefixed = false
		if err != nil {
			return err
		}
		b.condition = whole
		b.terms = conjuncts(whole, nil)
	}
	if len(b.tables) == 0 {
		b.after = b.terms
		return nil
	}
	rest, err := b.selectMetrics(b.terms)
	if err != nil {
		return err
	}
	if rest, err = b.selectTime(rest); err != nil {
		return err
	}
	looking := len(b.tables) == 1 && slices.ContainsFunc(rest, func(term ast.Expr) bool { return b.mentions(term).late })
	for _, term := range rest {
		// LAG and LEAD see the rows of the series that the statement selects, before a filter on single rows drops any of them.
		if looking && !b.mentions(term).all(func(r ref) bool { return r.source.ofEntity() || r.source.ofTags() || r.source.ofMetric() }) {
			b.late = append(b.late, term)
			continue
		}
		b.assign(term)
	}
	return nil
}

// selectMetrics chooses the metrics of tables that hold several.
func (b *binder) selectMetrics(terms []ast.Expr) ([]ast.Expr, error) {
	for i, t := range b.tables {
		if !t.several {
			continue
		}
		s := metricSelection{resolve: b.resolve, table: i, prefixed: b.metricsLike, of: b.Env.Facts.Metrics, limit: b.LikeLimit, at: t.from.Start}
		if b.stmt.Where != nil {
			s.at = b.stmt.Where.At()
		}
		if !b.Meta {
			s.exists = b.metricExists
		}
		for j, other := range b.tables {
			if j != i && !other.several {
				s.without = append(s.without, other.metrics...)
			}
		}
		names, rest, err := s.metrics(terms)
		var statement *ast.Error
		if err != nil {
			if !b.Meta || !errors.As(err, &statement) {
				return nil, err
			}
			continue
		}
		t.metrics, terms = names, rest
		var types []core.DataType
		for _, name := range names {
			m, ok := b.Catalog.Metric(name)
			if !ok {
				m.DataType = core.TypeFloat
			}
			types = append(types, m.DataType)
		}
		t.value = valueType(types)
	}
	return terms, nil
}

func (b *binder) metricExists(name string) bool {
	_, ok := b.Catalog.Metric(name)
	return ok
}

// metricsLike lists the metrics whose names begin with a text.
func (b *binder) metricsLike(prefix string) (names []string, err error) {
	for m, err := range b.Metadata.Metrics(b.ctx, core.MetaQuery{}) {
		if err != nil {
			return nil, err
		}
		if len(m.Name) >= len(prefix) && m.Name[:len(prefix)] == prefix {
			names = append(names, m.Name)
		}
	}
	return names, nil
}

// selectTime finds the intervals that the terms select, for all tables alike.
func (b *binder) selectTime(terms []ast.Expr) ([]ast.Expr, error) {
	c := timeConditions{resolve: b.resolve, instant: b.constantTime, instants: b.times}
	list, rest, err := c.intervals(terms)
	if err != nil {
		return nil, err
	}
	b.intervals = list
	for _, t := range b.tables {
		t.intervals = list
	}
	if t := b.tables[0]; t.kind != seriesTable && t.kind != viewTable {
		return terms, nil // records are filtered one by one
	}
	return rest, nil
}

// times runs a query that selects instants.
func (b *binder) times(s *ast.Select) ([]core.Time, error) {
	if b.Meta {
		return nil, nil
	}
	if b.Instants == nil {
		return nil, s.Errorf("BETWEEN (SELECT ...) is not available here")
	}
	if times, ok := b.instants[s]; ok {
		return times, nil
	}
	inherits := *s
	if inherits.TimeZone == nil {
		inherits.TimeZone = b.with.TimeZone
	}
	if inherits.Calendar == nil {
		inherits.Calendar = b.with.Calendar
	}
	times, err := b.Instants(b.ctx, &inherits)
	if err == nil {
		b.instants[s] = times
	}
	return times, err
}

// constantTime evaluates what a time column is compared with. ok is false for what is no instant or not the same for all rows.
func (b *binder) constantTime(e ast.Expr) (t core.Time, ok bool, err error) {
	if contains(e, dependsOnRows) {
		return 0, false, nil
	}
	sc := b.constants()
	n, err := sc.bind(e)
	if err != nil {
		return 0, false, err
	}
	if n, err = sc.instant(e, n); err != nil {
		return 0, false, err
	}
	v, ok, err := expr.Constant(n, b.env)
	switch {
	case err != nil || !ok || v.IsNull():
		return 0, false, err
	case v.Type == column.Timestamp || v.Type.Numeric() && v.Whole:
		return core.Time(v.Int), true, nil
	case v.Type.Numeric() && v.Float == math.Trunc(v.Float) && math.Abs(v.Float) < 1<<53:
		return core.Time(v.Float), true, nil
	}
	return 0, false, nil
}

// dependsOnRows reports whether a part of an expression is different from row to row, or unknown.
func dependsOnRows(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Name, *ast.Placeholder, *ast.Period:
		return true
	case *ast.Word:
		return e.Text == "auto" // the zone of the entity
	case *ast.Call:
		return isAggregate(e.Name) || isAnalytic(e.Name) || isNumbering(e.Name) || e.Name == "interval_number"
	}
	return false
}

// mention is what a term speaks of.
type mention struct {
	tables []int // ascending, joined first
	refs   []ref
	late   bool // it looks at other rows
}

func (b *binder) mentions(e ast.Expr) (m mention) {
	walk(e, func(part ast.Expr) bool {
		switch part := part.(type) {
		case *ast.Name:
			if r, ok := b.resolve(part); ok {
				m.refs = append(m.refs, r)
				if !slices.Contains(m.tables, r.table) {
					m.tables = append(m.tables, r.table)
				}
			}
		case *ast.Call:
			m.late = m.late || isAnalytic(part.Name)
		}
		return true
	})
	slices.Sort(m.tables)
	return m
}

// all reports whether every column of a term has a property.
func (m mention) all(is func(ref) bool) bool {
	return !slices.ContainsFunc(m.refs, func(r ref) bool { return !is(r) })
}

// assign decides where a term of WHERE is checked: in the tables that it can be checked in, otherwise on joined rows.
func (b *binder) assign(term ast.Expr) {
	m := b.mentions(term)
	switch {
	case m.late:
		b.late = append(b.late, term)
	case len(b.tables) == 1:
		b.tables[0].filter = append(b.tables[0].filter, term)
	case len(m.tables) != 1:
		b.after = append(b.after, term)
	case m.all(func(r ref) bool { return r.source.Kind == SourceTime || r.source.ofEntity() }):
		b.spread(term, m, func(t *table) bool {
			return t.useEntity || m.all(func(r ref) bool { return r.source.Kind == SourceTime })
		})
	case m.tables[0] == joined:
		b.after = append(b.after, term)
	case m.all(func(r ref) bool { return r.source.Kind == SourceTime || r.source.ofEntity() || r.source.ofTags() }):
		b.spread(term, m, func(t *table) bool { return t.useTags && t.useEntity })
	default:
		t := b.tables[m.tables[0]]
		t.filter = append(t.filter, term)
	}
}

// spread gives a term to its table and to all that share the columns of it by being joined. A name without prefix means all tables.
func (b *binder) spread(term ast.Expr, m mention, shares func(*table) bool) {
	own, everywhere := m.tables[0], true
	for i, t := range b.tables {
		equal := own == joined || i == own || (i == 0 || shares(t)) && (own == 0 || shares(b.tables[own]))
		switch {
		case !equal:
		case m.all(func(r ref) bool { return t.has(r.source) }):
			t.filter = append(t.filter, term)
		default:
			everywhere = false // a view without the column
		}
	}
	if !everywhere {
		b.after = append(b.after, term)
	}
}

// has reports whether the table has a column that another table has.
func (t *table) has(s Source) bool {
	if t.kind != viewTable {
		return true
	}
	_, err := t.view.place(s)
	return err == nil
}

// probe is a scope to try expressions in: what they need of the tables does not become a column of these.
func (b *binder) probe() *scope {
	probe := *b
	probe.layout = &layout{}
	probe.tables = make([]*table, len(b.tables))
	for i, t := range b.tables {
		clone := *t
		clone.columns, clone.numbers = slices.Clone(t.columns), nil
		if t.kind == seriesTable {
			clone.columns = scanColumns()
		}
		probe.tables[i] = &clone
	}
	return &scope{assembly: &assembly{binder: &probe, offsets: make([]int, len(b.tables))}, table: joined, number: -1}
}

// checkWhere reports what is no condition, with the text of the statement: later its terms are bound one by one.
func (b *binder) checkWhere() error {
	if b.condition == nil {
		return nil
	}
	sc := b.probe()
	sc.window = &windows{under: sc.copy(), texts: &sc.layout.lags}
	n, err := sc.bind(b.condition)
	if err != nil {
		return err
	}
	if !sc.isBoolean(n) {
		return b.stmt.Where.At().Errorf("Invalid WHERE clause expression: %s", ast.Text(b.stmt.Where))
	}
	return nil
}

// conditions binds terms and joins them by AND; nil for none.
func (sc *scope) conditions(terms []ast.Expr) (expr.Node, error) {
	nodes, err := sc.all(terms)
	if err != nil {
		return nil, err
	}
	n, _ := sc.allOf(nodes, terms)
	return n, nil
}

// allOf joins conditions by AND, as a balanced tree.
func (sc *scope) allOf(nodes []expr.Node, terms []ast.Expr) (expr.Node, ast.Expr) {
	switch len(nodes) {
	case 0:
		return nil, nil
	case 1:
		return nodes[0], sc.asWritten(terms[0])
	}
	half := len(nodes) / 2
	l, left := sc.allOf(nodes[:half], terms[:half])
	r, right := sc.allOf(nodes[half:], terms[half:])
	n, e := expr.And(l, r), &ast.Binary{Start: left.At(), Op: "and", L: left, R: right}
	sc.notes.note(n, e)
	return n, e
}

// ofTable resolves names in terms that are checked in one table: they may name the column of another that is equal by being joined.
func (b *binder) ofTable(i int) func(*ast.Name) (ref, bool) {
	return func(n *ast.Name) (ref, bool) {
		r, ok := b.resolve(n)
		r.table = i
		return r, ok
	}
}

// scan makes the operator that reads the samples of a table.
func (a *assembly) scan(i int) (*Scan, error) {
	t := a.tables[i]
	op := &Scan{Metrics: t.metrics, Scope: a.Scope, Intervals: t.intervals}
	push, rest := pushDown(t.filter, a.ofTable(i), i)
	op.Entities, op.Tags = push.entities, push.tags
	sc := &scope{assembly: a, table: i, number: -1}
	var series, rows []ast.Expr
	for _, term := range rest {
		m := a.mentions(term)
		if len(m.refs) > 0 && m.all(func(r ref) bool { return r.source.perSeries() }) && !contains(term, mayFail) {
			series = append(series, term)
		} else {
			rows = append(rows, term)
		}
	}
	var err error
	if op.Series, err = sc.conditions(series); err != nil {
		return nil, err
	}
	if op.Filter, err = sc.conditions(rows); err != nil {
		return nil, err
	}
	if last, err := sc.lastTime(a.stmt.LastTime); err != nil {
		return nil, err
	} else if last != nil {
		op.Filter = sc.both(op.Filter, last)
	}
	if w := a.stmt.Interpolate; w != nil && !w.Detail {
		if op.Fill, err = a.fillOf(sc, w, t); err != nil {
			return nil, err
		}
	}
	return op, nil
}

func (sc *scope) both(l, r expr.Node) expr.Node {
	if l == nil {
		return r
	}
	n := expr.And(l, r)
	if le, re := sc.notes[l], sc.notes[r]; le != nil && re != nil {
		sc.notes.note(n, &ast.Binary{Start: le.At(), Op: "and", L: le, R: re})
	}
	return n
}

// mayFail reports whether an expression can fail on a row, so that it must not be evaluated where the row is not reached.
func mayFail(e ast.Expr) bool {
	call, ok := e.(*ast.Call)
	return ok && (call.Name == "lookup" || call.Name == "is_workday" || call.Name == "workday" || call.Name == "workday_count")
}

// finish sets what is known only when all expressions are bound.
func (t *table) finish(op *Scan) {
	op.Columns = t.columns
	op.Needs.Value = op.Fill != nil || slices.ContainsFunc(t.columns, func(s Source) bool { return s.Kind == SourceValue })
	op.Needs.Text = slices.ContainsFunc(t.columns, func(s Source) bool { return s.Kind == SourceText })
}

// fillOf makes the grid of a table and checks that the bounds it needs are there.
func (a *assembly) fillOf(sc *scope, w *ast.Interpolate, t *table) (*Interpolate, error) {
	fill, err := sc.fill(w)
	if err != nil || a.Meta {
		return fill, err
	}
	for _, in := range t.intervals {
		switch {
		case fill.Fill == ast.FillExtend && !(in.HasFrom && in.HasTo):
			return nil, w.Errorf("INTERPOLATE with fill TRUE requires the start and the end of the interval in the WHERE clause")
		case fill.Align == ast.AlignStart && fill.Fill != ast.FillNone && !in.HasFrom:
			return nil, w.Errorf("INTERPOLATE with START_TIME alignment requires the start of the interval in the WHERE clause")
		}
	}
	return fill, nil
}

// lastTime makes the conditions of WITH time >= last_time ...
func (sc *scope) lastTime(list []ast.LastTime) (expr.Node, error) {
	var all expr.Node
	for _, l := range list {
		at, err := sc.column(ref{table: sc.table, source: Source{Kind: SourceTime, Type: column.Bigint}})
		if err != nil {
			return nil, err
		}
		last, err := sc.column(ref{table: sc.table, source: Source{Kind: SourceLastTime, Type: column.Bigint}})
		if err != nil {
			return nil, err
		}
		if l.Offset != nil {
			step, err := interval(*l.Offset)
			if err != nil {
				return nil, err
			}
			last = expr.Shift(last, step)
		}
		n := expr.Compare(l.Op, at, last)
		sc.notes.note(n, lastTimeText(l))
		all = sc.both(all, n)
	}
	return all, nil
}

// lastTimeText is a condition on last_time as Explain shows it.
func lastTimeText(l ast.LastTime) ast.Expr {
	newest := &ast.Name{Start: l.Start, Parts: identsOf("last_time")}
	e := &ast.Binary{Start: l.Start, Op: l.Op, L: &ast.Name{Start: l.Start, Parts: identsOf("time")}, R: newest}
	if l.Offset != nil {
		op, by := "+", *l.Offset
		if by.Count < 0 {
			op, by.Count = "-", -by.Count
		}
		e.R = &ast.Binary{Start: l.Start, Op: op, L: newest, R: &ast.Span{Interval: by}}
	}
	return e
}
