package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// view is an inline view as a table. It can be asked for more than it selects: where it has the column tags, outer queries may name tags.x, and the view gets that
// column behind its own.
type view struct {
	stmt    *ast.Select
	inner   *binder
	query   *Query
	visible int             // columns that the view selects
	refused map[string]bool // columns that it cannot have
}

func newView(outer *binder, s *ast.Select) (*view, error) {
	if s.From == nil {
		return nil, s.Errorf("Invalid subquery")
	}
	o := outer.Options
	o.EncodeTags = false
	v := &view{stmt: s, inner: newBinder(outer.ctx, s, o), refused: map[string]bool{}}
	v.inner.inner = true
	err := v.inner.prepare()
	if err != nil {
		return nil, err
	}
	if v.query, err = v.inner.settle(); err != nil {
		return nil, err
	}
	v.visible = len(v.query.Columns)
	return v, v.check()
}

// check judges the names of columns.
func (v *view) check() error {
	seen := map[string]bool{}
	for i, c := range v.query.Columns[:v.visible] {
		label, it := lower(c.Label), v.inner.items[i]
		if seen[label] && it.ast != nil {
			return it.ast.At().Errorf("Duplicate column name: %s", c.Label)
		}
		seen[label] = true
		if it.alias == nil || label != "tags" && label != "entity" {
			continue
		}
		if !contains(it.expr, isName) || c.Type != column.String && c.Type != column.Object {
			return it.ast.At().Errorf("Invalid expression for %s column", label)
		}
	}
	return nil
}

func isName(e ast.Expr) bool {
	_, ok := e.(*ast.Name)
	return ok
}

// labelled returns the number of a column by its label, -1 for none.
func (v *view) labelled(label string) int {
	return slices.IndexFunc(v.query.Columns, func(c Column) bool { return strings.EqualFold(c.Label, label) })
}

// find returns the column that a name means in the outer query.
func (v *view) find(parts []ast.Ident) (s Source, datetime, ok bool) {
	written := pathOf(parts)
	path := lower(written)
	if path == "time" || path == "datetime" {
		if v.timeColumn() >= 0 {
			return Source{Kind: SourceTime, Type: column.Bigint}, path == "datetime", true
		}
	}
	if i := v.labelled(path); i >= 0 {
		return v.source(i, path), false, true
	}
	if v.isName(path) {
		of, _, _ := strings.Cut(path, ".")
		return v.source(v.labelled(of), of), false, true
	}
	if !v.request(written) {
		return Source{}, false, false
	}
	i := v.labelled(path)
	return v.source(i, path), false, i >= 0
}

// isName reports whether a path is entity.name or metric.name where the view selects the entity or the metric: the same column, also as a key of groups.
func (v *view) isName(path string) bool {
	of, rest, _ := strings.Cut(path, ".")
	if rest != "name" || of != "entity" && of != "metric" {
		return false
	}
	_, ok := v.whole(of)
	return ok
}

// timeColumn returns the column that is the time of rows, -1 for none. The time implies the datetime and the other way round.
func (v *view) timeColumn() int {
	if i := v.instants(); i >= 0 || !v.request("time") {
		return i
	}
	return v.instants()
}

// tagsColumn returns the column that tells the series of an entity apart, -1 for none. Single tags imply all of them.
func (v *view) tagsColumn() int {
	if i := v.labelled("tags"); i >= 0 || !v.request("tags") {
		return i
	}
	return v.labelled("tags")
}

// instants returns the column that has the name and the type of a time, -1 for none.
func (v *view) instants() int {
	for _, label := range []string{"time", "datetime"} {
		i := slices.IndexFunc(v.query.Columns, func(c Column) bool {
			return strings.EqualFold(c.Label, label) && (c.Type == column.Bigint || c.Type == column.Timestamp)
		})
		if i >= 0 {
			return i
		}
	}
	return -1
}

// source describes a column. Those that stand for columns of a table keep their meaning.
func (v *view) source(i int, path string) Source {
	t := v.query.Columns[i].Type
	if path == "value" {
		return Source{Kind: SourceValue, Type: t}
	}
	s, datetime, ok := seriesColumn(identsOf(path), t)
	if ok && !datetime && s.Kind != SourceTime && s.Type == t && v.labelled(sourceText(s)) == i {
		return s
	}
	return viewed(i, t)
}

// place returns the number of a column that find returned.
func (v *view) place(s Source) (int, error) {
	switch s.Kind {
	case sourceViewed:
		return strconv.Atoi(s.Name)
	case SourceTime:
		if i := v.timeColumn(); i >= 0 {
			return i, nil
		}
	case SourceTagsJSON, SourceEntityTagsJSON, SourceMetricTagsJSON:
		i, err := strconv.Atoi(s.Name)
		if s.Name == "" {
			i, err = v.place(Source{Kind: setOf(s.Kind)})
		}
		if err == nil {
			if i = v.encoded(i); i >= 0 {
				return i, nil
			}
		}
	default:
		label := lower(sourceText(s))
		if v.labelled(label) >= 0 || v.request(label) {
			return v.labelled(label), nil
		}
	}
	return 0, ast.Errorf("Unexpected expression: '%s'", sourceText(s))
}

// request asks the view for columns that follow from those that it selects, and reports whether it has all of them then.
func (v *view) request(paths ...string) bool {
	own := v.inner.items
	more := own[:len(own):len(own)]
	for _, path := range paths {
		e := v.derive(path)
		if v.refused[path] || e == nil {
			return false
		}
		it := &item{ast: e, alias: &ast.Ident{Text: path, Quoted: true}, hidden: true}
		if v.inner.resolveItem(it) != nil {
			v.refused[path] = true
			return false
		}
		more = append(more, it)
	}
	if v.widen(more) {
		return true
	}
	for _, path := range paths {
		v.refused[path] = true
	}
	return false
}

// widen gives the view other columns, which begin with those that it has, and reports whether it can have them.
func (v *view) widen(items []*item) bool {
	own := v.inner.items
	v.inner.items = items
	q, err := v.inner.settle()
	if err != nil {
		v.inner.items = own
		return false
	}
	v.query = q
	return true
}

// derive returns the expression, in the words of the view, of a column that it does not select: tags.x of tags, entity.label of entity, the tags of all tags.x.
// nil: there is none.
func (v *view) derive(path string) ast.Expr {
	if strings.EqualFold(path, "time") {
		if len(v.inner.tables) > 1 && v.stars() {
			return &ast.Name{Start: v.stmt.Start, Parts: []ast.Ident{{Text: "time"}}}
		}
		return v.computedTime()
	}
	for _, of := range []string{"tags", "entity.tags", "entity", "metric.tags", "metric"} {
		if n := v.plain(of); n != nil && len(path) > len(of)+1 && strings.EqualFold(path[:len(of)+1], of+".") {
			parts := slices.Clone(n.Parts)
			for _, p := range strings.SplitN(path[len(of)+1:], ".", 2) {
				parts = append(parts, ast.Ident{Start: n.Start, Text: p})
			}
			return &ast.Name{Start: n.Start, Parts: parts}
		}
	}
	if strings.EqualFold(path, "tags") {
		return v.allTags()
	}
	return nil
}

// plain returns the column that the view selects under its own name, in the words of the view; nil: it selects none, or something else of that name.
func (v *view) plain(name string) *ast.Name {
	i := v.labelled(name)
	if i < 0 || i >= v.visible && v.visible > 0 {
		return nil
	}
	it := v.inner.items[i]
	e := it.ast
	if e == nil {
		e = v.inner.origin[it.expr] // of an expansion
	}
	n, ok := e.(*ast.Name)
	if !ok || !strings.EqualFold(n.Parts[len(n.Parts)-1].Text, name[strings.LastIndexByte(name, '.')+1:]) {
		return nil
	}
	return n
}

// computedTime makes a time of a number that the view calls so, such as time + 3600000 AS "time". nil: there is none.
func (v *view) computedTime() ast.Expr {
	for i, c := range v.query.Columns[:v.visible] {
		if e := v.inner.items[i].ast; e != nil && c.Type.Numeric() && (strings.EqualFold(c.Label, "time") || strings.EqualFold(c.Label, "datetime")) {
			return &ast.Cast{Start: e.At(), X: e, Type: "timestamp"}
		}
	}
	return nil
}

// stars reports whether the view selects *.
func (v *view) stars() bool {
	return slices.ContainsFunc(v.stmt.Items, func(i ast.Item) bool {
		star, ok := i.Expr.(*ast.Star)
		return ok && len(star.Parts) == 0
	})
}

// allTags makes the text of a tag set of the single tags that the view selects.
func (v *view) allTags() ast.Expr {
	for _, it := range v.stmt.Items {
		if star, ok := it.Expr.(*ast.Star); ok && len(star.Parts) > 0 && strings.EqualFold(star.Parts[len(star.Parts)-1].Text, "tags") {
			return &ast.Name{Start: star.Start, Parts: star.Parts}
		}
	}
	at := v.stmt.Start
	names, values := v.singleTags()
	if len(names) == 0 {
		return nil
	}
	var parts []ast.Expr
	for _, name := range names {
		pair := &ast.Call{Start: at, Name: "concat", Args: []ast.Expr{textLiteral(at, ";"+name+"="), values[name]}}
		parts = append(parts, &ast.Case{Start: at, Whens: []ast.When{{Conditions: []ast.Expr{&ast.IsNull{Start: at, Not: true, X: values[name]}}, Then: pair}}})
	}
	joined := &ast.Call{Start: at, Name: "concat", Args: append(parts, textLiteral(at, ""))}
	some := &ast.Binary{Start: at, Op: "<>", L: joined, R: textLiteral(at, "")}
	rest := &ast.Call{Start: at, Name: "substr", Args: []ast.Expr{joined, &ast.Literal{Start: at, Kind: ast.Integer, Int: 2, Float: 2, Written: "2"}}}
	return &ast.Case{Start: at, Whens: []ast.When{{Conditions: []ast.Expr{some}, Then: rest}}}
}

// singleTags are the columns tags.x that the view selects one by one, by their names.
func (v *view) singleTags() (names []string, values map[string]ast.Expr) {
	values = map[string]ast.Expr{}
	for i, c := range v.query.Columns[:v.visible] {
		if name, ok := strings.CutPrefix(lower(c.Label), "tags."); ok && v.inner.items[i].ast != nil {
			values[name] = v.inner.items[i].ast
		}
	}
	return slices.Sorted(maps.Keys(values)), values
}

// encoded returns the number of the column that shows the tag sets of column i as JSON, -1 when column i holds none.
func (v *view) encoded(i int) int {
	label := "\x00json " + strconv.Itoa(i) // no name of a statement
	if n := v.labelled(label); n >= 0 || v.refused[label] {
		return n
	}
	v.refused[label] = true // until it is there; of a view that asks itself
	of := v.inner.items[i]
	out := &item{label: label, expr: v.inner.encodedSet(of.expr), done: true, hidden: true}
	if out.expr == nil && of.hidden && strings.EqualFold(v.query.Columns[i].Label, "tags") {
		out = &item{label: label, ast: v.encodedTags(), hidden: true}
		if out.ast == nil || v.inner.resolveItem(out) != nil {
			return -1
		}
	}
	if out.expr == nil || !v.widen(append(slices.Clip(v.inner.items), out)) {
		return -1
	}
	delete(v.refused, label)
	return v.labelled(label)
}

// encodedTags makes a JSON object of the single tags that the view selects; nil: it selects none.
func (v *view) encodedTags() ast.Expr {
	names, values := v.singleTags()
	if len(names) == 0 {
		return nil
	}
	call := &ast.Call{Start: v.stmt.Start, Name: expr.TagsObject}
	for _, name := range names {
		call.Args = append(call.Args, textLiteral(call.Start, name), values[name])
	}
	return call
}

// encodedSet returns what shows a tag set as JSON, in canonical names, given what shows it as text; nil: that is no tag set. A choice between tag sets, such as
// ISNULL(a.tags, b.tags), is one.
func (b *binder) encodedSet(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.Literal:
		if e.Kind == ast.Null {
			return e
		}
	case *ast.Name:
		if r, ok := b.resolve(e); ok && r.table >= 0 {
			return b.encodedColumn(e, r)
		}
	case *ast.Call:
		if e.Name != "isnull" && e.Name != "coalesce" {
			return nil
		}
		out := *e
		out.Args = make([]ast.Expr, len(e.Args))
		for i, arg := range e.Args {
			if out.Args[i] = b.encodedSet(arg); out.Args[i] == nil {
				return nil
			}
		}
		return &out
	case *ast.Case:
		out := *e
		if e.Else != nil {
			if out.Else = b.encodedSet(e.Else); out.Else == nil {
				return nil
			}
		}
		out.Whens = slices.Clone(e.Whens)
		for i, w := range e.Whens {
			if out.Whens[i].Then = b.encodedSet(w.Then); out.Whens[i].Then == nil {
				return nil
			}
		}
		return &out
	}
	return nil
}

// encodedColumn is encodedSet of a column.
func (b *binder) encodedColumn(n *ast.Name, r ref) ast.Expr {
	kind, whole := jsonKinds[r.source.Kind]
	t := b.tables[r.table]
	if t.kind != viewTable {
		if !whole {
			return nil
		}
		r.source.Kind = kind
		return b.nameOf(r, n.Start)
	}
	i, err := t.view.place(r.source)
	if err != nil || t.view.encoded(i) < 0 {
		return nil
	}
	if whole {
		r.source.Kind = kind
	} else {
		r.source = Source{Kind: SourceTagsJSON, Name: strconv.Itoa(i), Type: column.String}
	}
	return b.nameOf(r, n.Start)
}

// setOf is the column of a tag set as text, given that as JSON.
func setOf(encoded SourceKind) SourceKind {
	for plain, kind := range jsonKinds {
		if kind == encoded {
			return plain
		}
	}
	return encoded
}

func textLiteral(at ast.Start, text string) *ast.Literal {
	return &ast.Literal{Start: at, Kind: ast.String, Text: text}
}

// operator makes the View.
func (v *view) operator(t *table) *View {
	op := &View{Intervals: t.intervals, Time: v.timeColumn(), Tags: v.labelled("tags")}
	op.Value, op.Text, op.Metric, op.Entity = v.labelled("value"), v.labelled("text"), v.labelled("metric"), v.labelled("entity")
	op.Query = v.query // with the columns that were asked for just now
	return op
}
