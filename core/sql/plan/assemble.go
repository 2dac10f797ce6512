package plan

import (
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// assembly is one attempt to make the operators of a SELECT.
type assembly struct {
	*binder
	offsets []int // of the columns of each table among those of joined rows
	width   int   // of the rows of FROM
	scans   map[*table]*Scan
	notes   notes

	finishGroup func() error // completes the Group; nil = there is none
}

// placeOf returns the number of a column in the scope.
func (sc *scope) placeOf(r ref) (int, error) {
	if len(sc.tables) == 0 {
		return 0, ast.Errorf("Unexpected expression: '%s'", r.source.Name)
	}
	switch {
	case sc.table >= 0:
		return sc.tables[sc.table].place(r.source)
	case r.table == joined:
		first := sc.offsets[len(sc.tables)-1] + sc.tables[len(sc.tables)-1].width()
		switch r.source.Kind {
		case SourceEntity:
			return first + 1, nil
		case SourceTags:
			return first + 2, nil
		}
		return first, nil
	}
	i, err := sc.tables[r.table].place(r.source)
	return sc.offsets[r.table] + i, err
}

// width is how many columns the table's operator has.
func (t *table) width() int {
	if t.kind == viewTable {
		return len(t.view.query.Columns)
	}
	return len(t.columns)
}

// anyEntity is the entity of joined rows where not all tables have one.
func (sc *scope) anyEntity(r ref) (expr.Node, error) {
	var nodes []expr.Node
	for i, t := range sc.tables {
		if !t.has(r.source) {
			continue
		}
		n, err := sc.column(ref{table: i, source: r.source})
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	return expr.Call("coalesce", nodes, ast.Start{})
}

// column makes the expression that a column is.
func (sc *scope) column(r ref) (expr.Node, error) {
	if sc.table == joined && r.table == joined && r.source.Kind == SourceEntity && slices.ContainsFunc(sc.tables, func(t *table) bool { return !t.has(r.source) }) {
		return sc.anyEntity(r)
	}
	i, err := sc.placeOf(r)
	if err != nil {
		return nil, err
	}
	kind := r.source.Type
	of := r.table
	if sc.table >= 0 {
		of = sc.table
	}
	if of >= 0 {
		t := sc.tables[of]
		switch {
		case t.kind == viewTable:
			kind = t.view.query.Columns[i-sc.offset(of)].Type
		case r.source.Kind == SourceValue:
			kind = t.value
		}
	}
	n := expr.Input(i, kind)
	if r.source.Kind == SourceTime {
		wanted := column.Bigint
		if r.datetime {
			wanted = column.Timestamp
		}
		if kind != wanted {
			n = expr.Retype(n, wanted)
		}
	}
	return n, nil
}

func (sc *scope) offset(table int) int {
	if sc.table >= 0 {
		return 0
	}
	return sc.offsets[table]
}

// name binds a column.
func (sc *scope) name(n *ast.Name) (expr.Node, error) {
	r, ok := sc.resolve(n)
	if !ok {
		return nil, sc.unknown(n)
	}
	if sc.groups != nil {
		return sc.groups.column(n, r)
	}
	return sc.column(r)
}

// rowTime is the time of rows; nil when they have none.
func (sc *scope) rowTime() (expr.Node, error) {
	time := ref{source: Source{Kind: SourceTime, Type: column.Bigint}}
	switch {
	case len(sc.tables) == 0:
		return nil, nil
	case len(sc.tables) > 1:
		time.table = joined
	default:
		if t := sc.tables[0]; t.kind == entityTable || t.kind == metricTable || t.kind == viewTable && t.view.timeColumn() < 0 {
			return nil, nil
		}
	}
	return sc.column(time)
}

// periodIntervals are those of the query.
func (sc *scope) periodIntervals() []Interval { return sc.intervals }

// assemble makes the operators from the tables up.
func (b *binder) assemble() (*Query, error) {
	a := &assembly{binder: b, scans: map[*table]*Scan{}, notes: notes{}}
	for _, t := range b.tables {
		a.offsets = append(a.offsets, a.width)
		a.width += t.width()
	}
	if len(b.tables) > 1 {
		a.width += 3
	}
	rows := &scope{assembly: a, table: joined, number: -1}
	op, err := a.from()
	if err != nil {
		return nil, err
	}
	if op, err = a.filtered(op, rows); err != nil {
		return nil, err
	}
	out := rows
	if b.before != nil {
		n, err := a.numbered(op, rows, b.before)
		if err != nil {
			return nil, err
		}
		op = n
	}
	if b.grouped {
		if op, out, err = a.groupedRows(op, rows); err != nil {
			return nil, err
		}
	}
	return a.selected(op, out)
}

// from makes the operator of FROM.
func (a *assembly) from() (Operator, error) {
	switch len(a.tables) {
	case 0:
		return &Row{}, nil
	case 1:
		return a.source(0)
	}
	op := &Join{}
	for i, t := range a.tables {
		in, err := a.source(i)
		if err != nil {
			return nil, err
		}
		input := JoinInput{In: in, Width: t.width(), Time: ScanTime, Entity: ScanEntity, Tags: ScanTags, Value: -1, Text: -1, UseEntity: t.useEntity, UseTags: t.useTags}
		if t.kind == viewTable {
			input.Time, input.Entity, input.Tags = t.view.timeColumn(), t.view.labelled("entity"), t.view.labelled("tags")
			input.Value, input.Text = t.view.labelled("value"), t.view.labelled("text")
			if input.Time < 0 && !a.Meta {
				return nil, t.from.Errorf("Invalid subquery: rows are joined by time, select time or datetime in it")
			}
		} else {
			for j, s := range t.columns {
				switch s.Kind {
				case SourceValue:
					input.Value = j
				case SourceText:
					input.Text = j
				}
			}
		}
		if t.join != nil {
			input.Outer = t.join.Outer
		}
		op.Inputs = append(op.Inputs, input)
	}
	op.Inputs[0].Outer, op.Inputs[0].UseEntity, op.Inputs[0].UseTags = op.Inputs[1].Outer, op.Inputs[1].UseEntity, op.Inputs[1].UseTags
	op.ByMetric = a.tables[0].several && len(a.tables[0].metrics) > 1
	if w := a.stmt.Interpolate; w != nil && w.Detail {
		var err error
		if op.Detail, err = (&scope{assembly: a, table: joined, number: -1}).fill(w); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// source makes the operator of one table, with all conditions that bear on it alone.
func (a *assembly) source(i int) (Operator, error) {
	t := a.tables[i]
	switch t.kind {
	case seriesTable:
		op, err := a.scan(i)
		a.scans[t] = op
		return op, err
	case viewTable:
		return a.viewed(i)
	}
	return a.records(i)
}

// viewed makes the operator of an inline view.
func (a *assembly) viewed(i int) (Operator, error) {
	t := a.tables[i]
	if a.stmt.Interpolate != nil || len(a.tables) > 1 { // rows of different series must be told apart
		t.view.tagsColumn()
	}
	sc := &scope{assembly: a, table: i, number: -1}
	filter, err := sc.conditions(t.filter)
	if err != nil {
		return nil, err
	}
	if len(a.stmt.LastTime) > 0 {
		return nil, a.stmt.LastTime[0].Errorf("LAST_TIME does not apply to subqueries")
	}
	op := t.view.operator(t)
	op.Filter = filter
	switch {
	case len(t.intervals) == 0:
		op.Filter = expr.Const(column.BoolValue(false))
	case len(t.intervals) == 1 && !t.intervals[0].HasFrom && !t.intervals[0].HasTo:
		op.Intervals = nil
	}
	if w := a.stmt.Interpolate; w != nil && !w.Detail {
		if op.Fill, err = a.fillOf(sc, w, t); err != nil {
			return nil, err
		}
		if op.Time < 0 {
			return nil, w.Errorf("INTERPOLATE requires a time column")
		}
	}
	return op, nil
}

// records makes the operator of a table without samples.
func (a *assembly) records(i int) (Operator, error) {
	t := a.tables[i]
	if w := a.stmt.Interpolate; w != nil {
		return nil, w.Errorf("INTERPOLATE does not apply to table '%s'", t.name)
	}
	if len(a.stmt.LastTime) > 0 {
		return nil, a.stmt.LastTime[0].Errorf("LAST_TIME does not apply to table '%s'", t.name)
	}
	op := &Table{Kind: string(t.kind), Scope: a.Scope}
	a.selects(op, t)
	sc := &scope{assembly: a, table: i, number: -1}
	var err error
	op.Filter, err = sc.conditions(t.filter)
	op.Columns = t.columns
	return op, err
}

// exact returns the texts that some column must be equal to one of; nil = any.
func (b *binder) exact(terms []ast.Expr, is func(ref) bool, form func(string) string) []string {
	for _, term := range terms {
		var x ast.Expr
		var list []ast.Expr
		switch term := term.(type) {
		case *ast.Binary:
			if x, list = term.L, []ast.Expr{term.R}; term.Op != "=" {
				continue
			}
		case *ast.In:
			if x, list = term.X, term.List; term.Not || term.Set != nil {
				continue
			}
		default:
			continue
		}
		name, ok := x.(*ast.Name)
		if !ok {
			continue
		}
		if r, ok := b.resolve(name); !ok || !is(r) {
			continue
		}
		if texts, ok := textsOf(list); ok {
			for i := range texts {
				texts[i] = form(texts[i])
			}
			return texts
		}
	}
	return nil
}

// filtered adds the conditions that need joined rows, or other rows.
func (a *assembly) filtered(op Operator, rows *scope) (Operator, error) {
	if len(a.after) > 0 {
		condition, err := rows.conditions(a.after)
		if err != nil {
			return nil, err
		}
		op = &Filter{In: op, Condition: condition}
	}
	if len(a.late) > 0 {
		w := &windows{under: rows.copy(), texts: &a.layout.lags}
		looking := rows.copy()
		looking.window, looking.base = w, a.width
		condition, err := looking.conditions(a.late)
		if err != nil {
			return nil, err
		}
		op = &Filter{In: &Window{In: op, Functions: w.list()}, Condition: condition}
		a.width += len(a.layout.lags)
	}
	return op, nil
}

func (sc *scope) copy() *scope {
	out := *sc
	return &out
}

// numbered adds ROW_NUMBER over the rows of a scope, which sees its columns then.
func (a *assembly) numbered(op Operator, sc *scope, n *ast.RowNumber) (Operator, error) {
	inside := sc.copy()
	inside.insideNumber = true
	if sc.groups != nil {
		sc.groups.wide = true
		defer func() { sc.groups.wide = false }()
	}
	out := &RowNumber{In: op, Op: n.Op, Number: n.Number}
	var err error
	if out.Partition, err = inside.all(n.Partition); err != nil {
		return nil, err
	}
	if out.Order, err = inside.sortKeys(n.Order); err != nil {
		return nil, err
	}
	if n.Preceding != nil && n.Preceding.Unit != "" {
		first := n.Order[0]
		if node, err := inside.bind(first.Expr); err != nil || first.Desc || !inside.isTime(first.Expr, node) {
			return nil, n.Errorf("row_number with time window requires ordering by time or datetime ascending")
		}
	}
	sc.number = a.widthOf(sc)
	return out, nil
}

// widthOf is how many columns the rows of a scope have before those of ROW_NUMBER.
func (a *assembly) widthOf(sc *scope) int {
	if g := sc.groups; g != nil {
		return len(g.keys) + len(a.layout.aggregates) + len(a.layout.carried)
	}
	return a.width
}

// sortKeys binds what rows are sorted by.
func (sc *scope) sortKeys(list []ast.OrderItem) ([]Key, error) {
	var keys []Key
	for _, o := range list {
		n, err := sc.bind(o.Expr)
		if err != nil {
			return nil, err
		}
		keys = append(keys, Key{expr.OrderKey(n), o.Desc})
	}
	return keys, nil
}

// groupedRows adds the Group, HAVING and what numbers groups. The scope that it returns is that of groups.
func (a *assembly) groupedRows(in Operator, rows *scope) (Operator, *scope, error) {
	g := &groups{under: rows, texts: map[string]int{}, sizes: map[int]bool{}, aggregates: map[int]Aggregate{}, carried: map[int]expr.Node{}}
	for _, e := range a.group {
		if err := g.add(e); err != nil {
			return nil, nil, err
		}
	}
	out := &scope{assembly: a, table: joined, groups: g, number: -1}
	var having expr.Node
	if a.having != nil {
		var err error
		if having, err = out.bind(a.having); err != nil {
			return nil, nil, err
		}
		if !a.isBoolean(having) {
			return nil, nil, a.stmt.Having.At().Errorf("Invalid HAVING clause expression: %s", ast.Text(a.stmt.Having))
		}
	}
	var number *RowNumber
	if a.afterGroup != nil {
		n, err := a.numbered(nil, out, a.afterGroup)
		if err != nil {
			return nil, nil, err
		}
		number = n.(*RowNumber)
	}
	// The Group is complete only when the SELECT list is bound, which fills it through the scope.
	op := &Group{}
	a.finishGroup = func() error {
		done, err := g.operator(in)
		if err == nil {
			*op = *done
			a.relax(op)
		}
		return err
	}
	var top Operator = op
	if having != nil {
		top = &Filter{In: top, Condition: having}
	}
	if number != nil {
		number.In = top
		top = number
	}
	return top, out, nil
}

// relax tells the scan that the order of its rows does not matter when no aggregate looks at it.
func (a *assembly) relax(op *Group) {
	if p := op.Period; p != nil && (p.Align == ast.AlignFirst || len(p.Intervals) == 0 || !p.Intervals[0].HasFrom) {
		return // the first period begins at the first sample
	}
	for _, agg := range op.Aggregates {
		if aggregates[agg.Func].ordered {
			return
		}
	}
	if a.afterGroup != nil && len(op.Carried) > 0 {
		return
	}
	in := op.In
	for {
		switch below := in.(type) {
		case *Filter:
			in = below.In
			continue
		case *Scan:
			below.Unordered = true
		}
		return
	}
}
