package plan

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// prepareItems makes the names of the SELECT list canonical.
func (b *binder) prepareItems() error {
	for _, it := range b.items {
		if err := b.resolveItem(it); err != nil {
			return err
		}
	}
	return nil
}

func (b *binder) prepareGroup() error {
	for _, e := range b.stmt.GroupBy {
		p, ok := e.(*ast.Period)
		if !ok {
			out, err := b.canonical(e, aliasFirst)
			if err != nil {
				return err
			}
			b.group = append(b.group, out)
			continue
		}
		if err := b.checkPeriod(p); err != nil {
			return err
		}
		b.group = append(b.group, p)
	}
	if b.stmt.Having == nil {
		return nil
	}
	var err error
	b.having, err = b.canonical(b.stmt.Having, aliasFirst)
	return err
}

// checkPeriod takes the only PERIOD of GROUP BY.
func (b *binder) checkPeriod(p *ast.Period) error {
	if b.period != nil {
		return p.Errorf("Unexpected expression: '%s'. Only one PERIOD is allowed", ast.Text(p))
	}
	b.period = p
	if p.Table != nil {
		if _, ok := b.tableNamed(p.Table.Text); !ok {
			return ast.Errorf("Invalid identifier '%s'", p.Table.Text)
		}
	}
	return nil
}

func (b *binder) prepareOrder() error {
	for _, o := range b.stmt.OrderBy {
		e, err := b.canonical(o.Expr, aliasFirst)
		if err != nil {
			return err
		}
		if l, ok := e.(*ast.Literal); ok && l.Kind == ast.Integer && (l.Int < 1 || l.Int > int64(len(b.items))) {
			return l.Errorf("Invalid column number in ORDER BY clause: %s", ast.Text(o.Expr))
		}
		b.order = append(b.order, ast.OrderItem{Expr: e, Desc: o.Desc})
	}
	return nil
}

// prepareRowNumbers tells the ROW_NUMBER of rows from that of groups.
func (b *binder) prepareRowNumbers() error {
	for i := range b.stmt.RowNumbers {
		n := b.stmt.RowNumbers[i] // a copy
		to, look := &b.before, columnFirst
		if len(b.stmt.GroupBy) > 0 && n.Grouped {
			to, look = &b.afterGroup, aliasFirst
		}
		if *to != nil {
			return n.Errorf("WITH ROW_NUMBER is given twice")
		}
		var err error
		n.Partition = nil
		for _, e := range b.stmt.RowNumbers[i].Partition {
			if e, err = b.canonical(e, look); err != nil {
				return err
			}
			n.Partition = append(n.Partition, e)
		}
		n.Order = nil
		for _, o := range b.stmt.RowNumbers[i].Order {
			if o.Expr, err = b.canonical(o.Expr, look); err != nil {
				return err
			}
			n.Order = append(n.Order, o)
		}
		*to = &n
	}
	return nil
}

// checkGroup decides whether rows are grouped. Without GROUP BY aggregates make one group, except where ROW_NUMBER gives them windows.
func (b *binder) checkGroup() error {
	if len(b.group) > 0 {
		b.grouped = true
		return nil
	}
	if b.grouped = b.having != nil; b.grouped || b.before != nil {
		return nil
	}
	aggregate := func(e ast.Expr) bool {
		call, ok := e.(*ast.Call)
		return ok && isAggregate(call.Name) && !aggregates[call.Name].windowed
	}
	for _, it := range b.items {
		b.grouped = b.grouped || contains(it.expr, aggregate)
	}
	for _, o := range b.order {
		b.grouped = b.grouped || contains(o.Expr, aggregate)
	}
	return nil
}

// selected makes what follows the rows or groups: windows, the SELECT list, DISTINCT, ORDER BY and LIMIT.
func (a *assembly) selected(op Operator, under *scope) (*Query, error) {
	w := &windows{under: under.copy(), texts: &a.layout.analytics}
	sc := under.copy()
	sc.window, sc.base = w, a.widthOf(under)
	if under.number >= 0 {
		sc.base += 3
	}
	p := &Project{}
	q := &Query{Env: a.env, notes: a.notes}
	own := 0
	for _, it := range a.items {
		n, err := sc.item(it)
		if err != nil {
			return nil, err
		}
		p.Exprs = append(p.Exprs, n)
		q.Columns = append(q.Columns, a.describe(it, n))
		if !it.hidden {
			own++
		}
	}
	var keys []Key
	if !a.natural() {
		var err error
		if keys, err = sc.order(p); err != nil {
			return nil, err
		}
	}
	if a.finishGroup != nil {
		if err := a.finishGroup(); err != nil {
			return nil, err
		}
	}
	for t, scan := range a.scans {
		t.finish(scan)
	}
	if len(a.layout.analytics) > 0 {
		var err error
		if op, err = a.windowed(op, under, w); err != nil {
			return nil, err
		}
	}
	p.In, q.Root = op, p
	if a.stmt.Distinct {
		q.Root = &Distinct{In: q.Root, Width: own}
	}
	a.sorted(q, keys)
	return q, nil
}

// item binds one item of the SELECT list.
func (sc *scope) item(it *item) (expr.Node, error) {
	if sc.encodes(it) {
		return sc.bind(sc.encodedSet(it.expr))
	}
	return sc.bind(it.expr)
}

// jsonKinds are the columns of whole tag sets as JSON.
var jsonKinds = map[SourceKind]SourceKind{SourceTags: SourceTagsJSON, SourceEntityTags: SourceEntityTagsJSON, SourceMetricTags: SourceMetricTagsJSON}

// encodes reports whether an item is a whole tag set that is wanted as JSON.
func (b *binder) encodes(it *item) bool {
	_, ok := it.expr.(*ast.Name)
	return ok && b.EncodeTags && !b.inner && b.encodedSet(it.expr) != nil
}

// order binds ORDER BY. Keys refer to the columns of the projection, which gets those that are not selected.
func (sc *scope) order(p *Project) ([]Key, error) {
	var keys []Key
	places := map[string]int{} // of items by their text
	for i, it := range slices.Backward(sc.items) {
		if len(sc.binder.order) > 0 && !sc.encodes(it) {
			places[ast.Key(it.expr)] = i
		}
	}
	for _, o := range sc.binder.order {
		place := -1
		if l, ok := o.Expr.(*ast.Literal); ok && l.Kind == ast.Integer {
			place = int(l.Int) - 1
		} else if i, ok := places[ast.Key(o.Expr)]; ok {
			place = i
		}
		var by expr.Node
		if place >= 0 {
			by = expr.OrderKey(p.Exprs[place])
		} else {
			n, err := sc.bind(o.Expr)
			if err != nil {
				return nil, err
			}
			by = expr.OrderKey(n)
		}
		if place < 0 || by != p.Exprs[place] {
			sc.notes.note(by, sc.asWritten(o.Expr))
			place = len(p.Exprs)
			p.Exprs = append(p.Exprs, by)
		}
		n := expr.Input(place, p.Exprs[place].Type())
		sc.notes.note(n, sc.asWritten(o.Expr))
		keys = append(keys, Key{n, o.Desc})
	}
	return keys, nil
}

// windowed adds the Window of the functions that were bound.
func (a *assembly) windowed(op Operator, under *scope, w *windows) (Operator, error) {
	out := &Window{In: op, Functions: w.list()}
	n := a.before
	if a.grouped {
		n = a.afterGroup
	}
	if n == nil {
		return out, nil
	}
	if g := under.groups; g != nil {
		g.wide = true
		defer func() { g.wide = false }()
	}
	var err error
	if out.Partition, err = under.all(n.Partition); err != nil {
		return nil, err
	}
	if n.Preceding == nil || a.grouped {
		return out, nil
	}
	if n.Preceding.Unit == "" {
		out.Frame.Rows = n.Preceding.Count
		return out, nil
	}
	step, err := interval(*n.Preceding)
	if err != nil {
		return nil, err
	}
	out.Frame.Span = &step
	out.Time, err = under.bind(n.Order[0].Expr)
	return out, err
}

// sorted adds ORDER BY, unless rows come in that order anyway, and LIMIT.
func (a *assembly) sorted(q *Query, keys []Key) {
	var limit *Limit
	if l := a.stmt.Limit; l != nil {
		limit = &Limit{Skip: l.Skip, Count: l.Count}
	}
	if len(keys) > 0 {
		a.relaxSorted()
		s := &Sort{In: q.Root, Keys: keys}
		if limit != nil {
			s.Keep = keep(limit)
		}
		q.Root = s
	}
	if limit != nil {
		limit.In = q.Root
		q.Root = limit
	}
}

// ascending reports whether ORDER BY asks for the order that groups have: that of their keys, as far as it asks.
func (a *assembly) ascending() bool {
	if a.afterGroup != nil || len(a.order) > len(a.group) {
		return false
	}
	for i, o := range a.order {
		e := o.Expr
		if l, number := e.(*ast.Literal); number && l.Kind == ast.Integer {
			e = a.items[l.Int-1].expr
		}
		if o.Desc {
			return false
		}
		same := ast.Key(e) == ast.Key(a.group[i])
		if _, ok := a.group[i].(*ast.Period); ok {
			n, ok := e.(*ast.Name)
			same = ok && a.ofTime(n)
		}
		if !same {
			return false
		}
	}
	return !slices.ContainsFunc(a.group, a.ofTagSet)
}

func (b *binder) ofTime(n *ast.Name) bool {
	r, ok := b.resolve(n)
	return ok && r.source.Kind == SourceTime
}

// ofTagSet reports whether a key is a whole tag set, by which groups are ordered first.
func (b *binder) ofTagSet(e ast.Expr) bool {
	n, ok := e.(*ast.Name)
	if !ok {
		return false
	}
	r, ok := b.resolve(n)
	return ok && (r.source.Kind == SourceTags || r.source.Kind == SourceTagsJSON)
}

// natural reports whether ORDER BY asks for an order that rows have anyway: samples that of metric, entity, time and tags.
func (a *assembly) natural() bool {
	if a.grouped && len(a.group) > 0 {
		return a.ascending()
	}
	if a.grouped || a.before != nil || len(a.tables) != 1 || a.tables[0].kind != seriesTable {
		return false
	}
	scan := a.scans[a.tables[0]]
	order := []SourceKind{SourceMetric, SourceEntity, SourceTime, SourceTags}
	known := func(k SourceKind) bool { // it is the same in all rows
		return k == SourceMetric && len(scan.Metrics) <= 1 || k == SourceEntity && len(scan.Entities.Names) == 1 && len(scan.Entities.Patterns) == 0
	}
	for _, o := range a.order {
		n, ok := o.Expr.(*ast.Name)
		if l, number := o.Expr.(*ast.Literal); number && l.Kind == ast.Integer {
			n, ok = a.items[l.Int-1].expr.(*ast.Name)
		}
		if !ok {
			return false
		}
		r, _ := a.resolve(n)
		if known(r.source.Kind) {
			continue
		}
		for len(order) > 0 && known(order[0]) {
			order = order[1:]
		}
		if len(order) == 0 || order[0] != r.source.Kind || o.Desc || r.source.Kind == SourceMetric || r.source.Kind == SourceTags {
			return false // several metrics come as selected, and tags in their own order
		}
		order = order[1:]
	}
	return true
}

// relaxSorted tells the scan that the order of its rows does not matter when ORDER BY leaves no choice.
func (a *assembly) relaxSorted() {
	if a.grouped || a.before != nil || a.stmt.Distinct || len(a.late) > 0 || len(a.layout.analytics) > 0 || len(a.tables) != 1 || a.tables[0].kind != seriesTable {
		return
	}
	scan := a.scans[a.tables[0]]
	var by [SourceTags + 1]bool
	by[SourceMetric] = len(scan.Metrics) <= 1
	for _, o := range a.order {
		if n, ok := o.Expr.(*ast.Name); ok {
			if r, _ := a.resolve(n); r.source.Kind <= SourceTags {
				by[r.source.Kind] = true
			}
		}
	}
	scan.Unordered = by[SourceMetric] && by[SourceEntity] && by[SourceTime] && by[SourceTags]
}

// describe makes the metadata of a column of the result.
func (a *assembly) describe(it *item, n expr.Node) Column {
	c := Column{Label: it.label, Name: it.name, Type: n.Type(), Table: it.table}
	if c.Name == "" && it.ast != nil {
		c.Name = ast.Text(it.ast)
	}
	if it.alias != nil {
		c.Label = it.alias.Text
	} else if c.Label == "" {
		c.Label = c.Name
	}
	if c.Table == "" {
		c.Table = a.metricOf(it.expr)
	}
	if c.Property = it.property; c.Property == "" {
		c.Property = a.property(it.expr)
	}
	switch c.Property {
	case "atsd:time":
		c.About = "Sample time in epoch milliseconds"
	case "atsd:datetime":
		c.About = "Sample time in ISO8601 format"
	}
	c.Unknown = n.Type() == column.Null && c.Property == "atsd:value"
	c.Fraction = a.sumOfComputed(it.expr)
	return c
}

// sumOfComputed reports whether an expression is SUM of numbers that were computed as doubles.
func (a *assembly) sumOfComputed(e ast.Expr) bool {
	call, ok := e.(*ast.Call)
	if !ok || call.Name != "sum" || len(call.Args) != 1 {
		return false
	}
	n, err := (&scope{assembly: a, table: joined, number: -1}).bind(call.Args[0])
	return err == nil && n.Type() == column.Double && expr.Computed(n)
}

// metricOf is the metric that an expression is computed from, "" for none or several.
func (a *assembly) metricOf(e ast.Expr) string {
	m := a.mentions(e)
	if len(m.tables) != 1 || m.tables[0] == joined {
		return ""
	}
	return a.tables[m.tables[0]].metric()
}

// properties are the propertyUrls of columns.
var properties = map[SourceKind]string{SourceTime: "atsd:time", SourceValue: "atsd:value", SourceText: "atsd:text", SourceMetric: "atsd:metric", SourceEntity: "atsd:entity",
	SourceTags: "atsd:seriesTag", SourceTag: "atsd:seriesTag", SourceEntityTags: "atsd:entityTag", SourceEntityTag: "atsd:entityTag", SourceMetricTags: "atsd:metricTag",
	SourceMetricTag: "atsd:metricTag"}

// aggregateProperties are the propertyUrls of aggregates that are not called as the function.
var aggregateProperties = map[string]string{"avg": "avg", "sum": "sum", "min": "min", "max": "max", "count": "count", "delta": "delta", "counter": "counter", "first": "first",
	"last": "last", "wavg": "wavg", "wtavg": "wtavg", "min_value_time": "minValueTime", "max_value_time": "maxValueTime", "median": "median", "stddev": "standardDeviation"}

// property is the propertyUrl of an expression, "" for none.
func (a *assembly) property(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Name:
		r, _ := a.resolve(e)
		if r.datetime {
			return "atsd:datetime"
		}
		return properties[r.source.Kind]
	case *ast.Period:
		return "atsd:time"
	case *ast.Unary:
		if a.property(e.X) == "atsd:value" {
			return "atsd:value"
		}
	case *ast.Binary:
		if strings.Contains("+-*/%", e.Op) && (a.property(e.L) == "atsd:value" || a.property(e.R) == "atsd:value") {
			return "atsd:value"
		}
	case *ast.Call:
		if e.Name == "percentile" && len(e.Args) > 0 {
			return "atsd:percentile_" + strings.ReplaceAll(ast.Text(e.Args[0]), ".", "")
		}
		if name, ok := aggregateProperties[e.Name]; ok {
			return "atsd:" + name
		}
	}
	return ""
}
