package plan

import (
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// groups is what is known of the columns of a Group: keys, aggregates, carried columns.
type groups struct {
	under *scope // of the rows
	keys  []key
	texts map[string]int // their numbers by their text
	sizes map[int]bool   // how many parts the expressions have: only such a one can be a key
	wide  bool           // any column may be carried: it is that of the first row of the group

	aggregates map[int]Aggregate
	carried    map[int]expr.Node
}

// key is one thing that rows are grouped by.
type key struct {
	expr ast.Expr // in canonical names
	node expr.Node
	ref  ref // of a column
	is   keyKind
}

type keyKind uint8

const (
	isExpression keyKind = iota
	isColumn
	isTime // or datetime, or a period
)

// newKey binds an item of GROUP BY in the scope of rows.
func (g *groups) newKey(e ast.Expr) (k key, err error) {
	k = key{expr: e}
	switch e := e.(type) {
	case *ast.Period:
		k.is = isTime
		k.node, err = g.under.rowTime()
		if err == nil && k.node == nil {
			err = e.Errorf("PERIOD requires a time column")
		}
		g.under.notes.note(k.node, e)
		return k, err
	case *ast.Name:
		k.ref, _ = g.under.resolve(e)
		k.is = isColumn
		if k.ref.source.Kind == SourceTime {
			k.is, k.ref.datetime = isTime, false
			k.node, err = g.under.column(k.ref)
			g.under.notes.note(k.node, g.under.asWritten(e))
			return k, err
		}
	}
	k.node, err = g.under.bind(e)
	return k, err
}

// key returns the column of the key that e is, nil when e is none.
func (g *groups) key(e ast.Expr) expr.Node {
	datetime, timed := false, false
	switch e := e.(type) {
	case *ast.Literal:
		return nil
	case *ast.Period:
		timed = true
	case *ast.Name:
		r, _ := g.under.resolve(e)
		datetime, timed = r.datetime, r.source.Kind == SourceTime
	}
	for i, k := range g.keys {
		if !timed {
			break
		}
		if k.is == isTime && samePeriod(k.expr, e) {
			n := expr.Input(i, column.Bigint)
			if datetime {
				n = expr.Retype(n, column.Timestamp)
			}
			return n
		}
	}
	if !g.sizes[g.under.size(e)] {
		return nil
	}
	if i, ok := g.texts[ast.Key(e)]; ok {
		return expr.Input(i, g.keys[i].node.Type())
	}
	return nil
}

// add makes e a key.
func (g *groups) add(e ast.Expr) error {
	k, err := g.newKey(e)
	if err != nil {
		return err
	}
	if text := ast.Key(e); k.is != isTime {
		if _, again := g.texts[text]; !again {
			g.texts[text] = len(g.keys)
		}
		g.sizes[g.under.size(e)] = true
	}
	g.keys = append(g.keys, k)
	return nil
}

// size counts the parts of an expression, once for each.
func (b *binder) size(e ast.Expr) int {
	if n, ok := b.sizes[e]; ok {
		return n
	}
	n := 1
	for _, part := range parts(e) {
		if part != nil {
			n += b.size(part)
		}
	}
	b.sizes[e] = n
	return n
}

// samePeriod reports whether a period of a SELECT list is the one of a key: it repeats the step, and options if it likes. Any time is the same.
func samePeriod(key, e ast.Expr) bool {
	asked, ok := e.(*ast.Period)
	if !ok {
		return true
	}
	p, ok := key.(*ast.Period)
	return ok && p.Step.Count == asked.Step.Count && p.Step.Unit == asked.Step.Unit
}

// aggregate returns the column of an aggregate. Equal texts are one aggregate.
func (g *groups) aggregate(e *ast.Call) (expr.Node, error) {
	i := g.under.layout.aggregates.place(ast.Key(e))
	a, ok := g.aggregates[i]
	if !ok {
		var err error
		if a, err = g.under.aggregate(e); err != nil {
			return nil, err
		}
		g.aggregates[i] = a
	}
	return expr.Input(len(g.keys)+i, a.Type), nil
}

// column returns a column that is the same in all rows of a group, or of its first row.
func (g *groups) column(n *ast.Name, r ref) (expr.Node, error) {
	if !g.wide && !g.under.Meta && !g.depends(r) {
		name := g.under.text(n)
		if len(g.keys) == 0 {
			return nil, n.Errorf("SELECT expression cannot include both an aggregation function and a column not referenced in GROUP BY clause.")
		}
		return nil, n.Errorf(`Invalid grouping for column "%s". Remove the column from the SELECT clause, apply an aggregation function to the column, or add the column to the GROUP BY clause. Error`, name)
	}
	node, err := g.under.column(r)
	if err != nil {
		return nil, err
	}
	l := g.under.layout
	i := l.carried.place(r.canonical())
	g.carried[i] = node
	g.under.notes.note(node, g.under.asWritten(n))
	return expr.Input(len(g.keys)+len(l.aggregates)+i, node.Type()), nil
}

// depends reports whether a column follows from the keys.
func (g *groups) depends(r ref) bool {
	s := r.source
	if s.ofMetric() && r.table >= 0 && g.under.tables[r.table].single() {
		return true
	}
	for _, k := range g.keys {
		if k.is != isColumn {
			continue
		}
		switch of := k.ref.source; {
		case s.ofEntity() && of.Kind == SourceEntity && g.sameEntity(k.ref.table, r.table),
			s.ofMetric() && of.Kind == SourceMetric && k.ref.table == r.table,
			s.ofTags() && (s.Kind != SourceTagsJSON || s.Name == "") && (of.Kind == SourceTags || of.Kind == SourceTagsJSON) && g.sameTags(k.ref.table, r.table),
			s.Kind == SourceTagsJSON && of.Kind == sourceViewed && s.Name == of.Name && k.ref.table == r.table,
			(s.Kind == SourceEntityTag || s.Kind == SourceEntityTagsJSON) && of.Kind == SourceEntityTags && k.ref.table == r.table,
			(s.Kind == SourceMetricTag || s.Kind == SourceMetricTagsJSON) && of.Kind == SourceMetricTags && k.ref.table == r.table:
			return true
		}
	}
	return false
}

// sameEntity reports whether joined rows of two tables have the same entity.
func (g *groups) sameEntity(a, b int) bool {
	return a == b || a == joined || b == joined || g.under.tables[max(a, b)].useEntity && (min(a, b) == 0 || g.under.tables[min(a, b)].useEntity)
}

// sameTags reports whether joined rows of two tables have the same tags.
func (g *groups) sameTags(a, b int) bool {
	return a == b || a >= 0 && b >= 0 && g.under.tables[max(a, b)].useTags && (min(a, b) == 0 || g.under.tables[min(a, b)].useTags)
}

// operator makes the Group.
func (g *groups) operator(in Operator) (*Group, error) {
	l := g.under.layout
	op := &Group{In: in, PeriodKey: -1, TagsKey: -1, Whole: len(g.keys) == 0}
	for i, k := range g.keys {
		op.Keys = append(op.Keys, k.node)
		if k.is == isColumn && (k.ref.source.Kind == SourceTags || k.ref.source.Kind == SourceTagsJSON) && op.TagsKey < 0 {
			op.TagsKey = i
		}
		if p, ok := k.expr.(*ast.Period); ok {
			period, err := g.period(p)
			if err != nil {
				return nil, err
			}
			op.Period, op.PeriodKey = period, i
		}
	}
	for i := range len(l.aggregates) {
		op.Aggregates = append(op.Aggregates, g.aggregates[i])
	}
	for i := range len(l.carried) {
		op.Carried = append(op.Carried, g.carried[i])
	}
	return op, nil
}

// period makes the options of PERIOD.
func (g *groups) period(p *ast.Period) (*Period, error) {
	step, err := interval(p.Step)
	if err != nil {
		return nil, err
	}
	if step.Count <= 0 {
		return nil, p.Errorf("Invalid period: '%s'. The count must be positive", ast.Text(p))
	}
	out := &Period{Step: step, Fill: p.Fill, Number: p.Number, Extend: p.Extend, Align: p.Align, ZoneKey: -1, Interval: -1}
	sc := g.under
	if out.Zone, err = sc.zone(p.Zone); err != nil {
		return nil, err
	}
	if out.Zone.Field != "" {
		if out.ZoneKey, err = g.zoneColumn(p, out.Zone.Field); err != nil {
			return nil, err
		}
	}
	out.Intervals = sc.periodIntervals()
	if p.Align == ast.AlignEnd && !sc.Meta && (len(out.Intervals) == 0 || !out.Intervals[len(out.Intervals)-1].HasTo) {
		return nil, p.Errorf("END_TIME alignment requires the end of the interval in the WHERE clause")
	}
	if len(out.Intervals) > 1 && len(sc.tables) == 1 && sc.tables[0].kind == seriesTable {
		if out.Interval, err = sc.placeOf(ref{table: 0, source: Source{Kind: SourceInterval, Type: column.Bigint}}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// zoneColumn returns the column that holds the zone of a row.
func (g *groups) zoneColumn(p *ast.Period, of string) (int, error) {
	source := Source{Kind: SourceMetricField, Name: "timeZone", Type: column.String}
	if of == "entity" {
		source.Kind = SourceEntityField
		grouped := false
		for _, k := range g.keys {
			grouped = grouped || k.is == isColumn && k.ref.source.Kind == SourceEntity
		}
		if !grouped && !g.under.Meta {
			return 0, p.Zone.At().Errorf(`entity.timezone in period function requires grouping by entity. Include "entity" column in the GROUP BY clause. Error`)
		}
	}
	table := 0
	if name, ok := p.Zone.(*ast.Name); ok && len(name.Parts) > 2 {
		if i, ok := g.under.tableNamed(pathOf(name.Parts[:len(name.Parts)-2])); ok {
			table = i
		}
	}
	return g.under.placeOf(ref{table: table, source: source})
}
