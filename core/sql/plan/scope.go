package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// scope makes expressions over the columns of one operator. What names and functions of rows, groups and windows mean depends on the operator; the rest
// is the same everywhere.
type scope struct {
	*assembly
	table  int      // rows of this table alone; joined = those of all
	groups *groups  // rows are groups; nil = they are not
	window *windows // functions of windows are columns; nil = they may not stand here
	base   int      // columns of the operator before those that the window adds

	number       int  // column of row_number, before those of rank and dense_rank; -1 = there is none
	insideNumber bool // ROW_NUMBER is being bound
}

// all binds a list.
func (sc *scope) all(list []ast.Expr) ([]expr.Node, error) {
	out := make([]expr.Node, len(list))
	for i, e := range list {
		var err error
		if out[i], err = sc.bind(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// boundAtOnce is how many expressions are bound between two questions whether the query is to end: some milliseconds.
const boundAtOnce = 1024

// bind makes the expression that e, in canonical names, is over the columns of the scope, and notes how the statement spells it.
func (sc *scope) bind(e ast.Expr) (expr.Node, error) {
	if sc.bound++; sc.bound%boundAtOnce == 0 && sc.ctx.Err() != nil {
		return nil, sc.ctx.Err()
	}
	var n expr.Node
	if sc.groups != nil {
		n = sc.groups.key(e)
	}
	if n == nil {
		var err error
		if n, err = sc.node(e); err != nil {
			return nil, err
		}
		if denies(e) {
			n = expr.Not(n)
		}
	}
	sc.notes.note(n, sc.asWritten(e))
	return n, nil
}

// denies reports whether a predicate contains NOT.
func denies(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Like:
		return e.Not
	case *ast.Regex:
		return e.Not
	case *ast.In:
		return e.Not
	case *ast.IsNull:
		return e.Not
	case *ast.Between:
		return e.Not
	}
	return false
}

// node makes an expression, of predicates what is true without their NOT.
func (sc *scope) node(e ast.Expr) (expr.Node, error) {
	switch e := e.(type) {
	case *ast.Literal:
		return expr.Literal(e), nil
	case *ast.Name:
		return sc.name(e)
	case *ast.Unary:
		return sc.unary(e)
	case *ast.Binary:
		return sc.binary(e)
	case *ast.Not:
		x, err := sc.bind(e.X)
		if err == nil && !sc.isBoolean(x) {
			err = e.Errorf("Invalid expression: '%s'", sc.text(e))
		}
		if err != nil {
			return nil, err
		}
		return expr.Not(x), nil
	case *ast.Like:
		return sc.like(e)
	case *ast.Regex:
		return sc.regex(e)
	case *ast.In:
		return sc.in(e)
	case *ast.IsNull:
		x, err := sc.bind(e.X)
		if err != nil {
			return nil, err
		}
		return expr.IsNull(x), nil
	case *ast.Between:
		return sc.between(e)
	case *ast.Case:
		return sc.branches(e)
	case *ast.Cast:
		x, err := sc.bind(e.X)
		if err != nil {
			return nil, err
		}
		return expr.Cast(x, e.Type), nil
	case *ast.Extract:
		return sc.extract(e)
	case *ast.Call:
		return sc.call(e)
	case *ast.Word:
		return expr.Word(e.Text), nil
	case *ast.Span:
		step, err := interval(e.Interval)
		return expr.Span(step), err
	case *ast.Calendar:
		return expr.Calendar(e.Name, e.Start)
	case *ast.Placeholder:
		if !sc.Meta {
			return nil, e.Errorf("Unexpected expression: '?'")
		}
		return expr.Placeholder(), nil
	}
	return nil, e.At().Errorf("Unexpected expression: '%s'", sc.text(e))
}

// interval returns a length of time as written in a statement.
func interval(i ast.Interval) (dates.Interval, error) {
	unit, err := dates.ParseUnit(i.Unit)
	if err != nil {
		return dates.Interval{}, i.Errorf("Invalid interval unit: '%s'", i.Unit)
	}
	return dates.Interval{Count: i.Count, Unit: unit}, nil
}

func (sc *scope) unary(e *ast.Unary) (expr.Node, error) {
	x, err := sc.bind(e.X)
	if err != nil || e.Op == "+" {
		return x, err
	}
	return expr.Negate(x), nil
}

func (sc *scope) binary(e *ast.Binary) (expr.Node, error) {
	switch e.Op {
	case "and", "or":
		return sc.logical(e, e)
	case "+", "-":
		if step, ok := duration(e.R); ok {
			return sc.shift(e, step)
		}
	}
	l, err := sc.bind(e.L)
	if err != nil {
		return nil, err
	}
	r, err := sc.bind(e.R)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(e.Op, "+-*/%") {
		return expr.Arithmetic(e.Op, l, r), nil
	}
	switch {
	case sc.isTime(e.L, l):
		r, err = sc.instant(e.R, r)
	case sc.isTime(e.R, r):
		l, err = sc.instant(e.L, l)
	case e.Op != "=" && e.Op != "<>":
	case sc.isName(e.L):
		r, err = sc.stored(e.R, r)
	case sc.isName(e.R):
		l, err = sc.stored(e.L, l)
	}
	if err != nil {
		return nil, err
	}
	return expr.Compare(e.Op, l, r), nil
}

// isName reports whether an expression is the name of an entity or metric. These are equal whatever the case of letters.
func (sc *scope) isName(e ast.Expr) bool {
	n, ok := e.(*ast.Name)
	if !ok {
		return false
	}
	r, ok := sc.resolve(n)
	return ok && (r.source.Kind == SourceEntity || r.source.Kind == SourceMetric)
}

// stored makes of a text what names are compared with: they are kept in lower case.
func (sc *scope) stored(e ast.Expr, n expr.Node) (expr.Node, error) {
	if l, ok := e.(*ast.Literal); ok && l.Kind == ast.String {
		return expr.Const(column.TextValue(lower(l.Text))), nil
	}
	if n.Type() != column.String || sc.isName(e) {
		return n, nil
	}
	return expr.Call("lower", []expr.Node{n}, e.At())
}

// logical binds AND and OR. whole is the chain of equal operators that e belongs to: the inner nodes of a chain are no expressions of the statement.
func (sc *scope) logical(e *ast.Binary, whole ast.Expr) (expr.Node, error) {
	var sides [2]expr.Node
	for i, side := range []ast.Expr{e.L, e.R} {
		var err error
		if inner, ok := side.(*ast.Binary); ok && (inner.Op == "and" || inner.Op == "or") {
			of := whole
			if inner.Op != e.Op || inner.Parens > 0 {
				of = inner
			}
			sides[i], err = sc.logical(inner, of)
		} else if sides[i], err = sc.bind(side); err == nil && !sc.isBoolean(sides[i]) {
			written := sc.asWritten(whole)
			if b, ok := written.(*ast.Binary); ok && b.Parens > 0 {
				bare := *b
				bare.Parens, written = 0, &bare
			}
			err = whole.At().Errorf("Invalid expression: '%s'", ast.Text(written))
		}
		if err != nil {
			return nil, err
		}
	}
	if e.Op == "and" {
		return expr.And(sides[0], sides[1]), nil
	}
	return expr.Or(sides[0], sides[1]), nil
}

// isBoolean reports whether a value may be true: NULL may as well, and a placeholder, which only a query without rows has.
func (a *assembly) isBoolean(n expr.Node) bool {
	switch n.Type() {
	case column.Boolean, column.Null:
		return true
	case column.Object:
		return a.Meta
	}
	return false
}

// duration reads n*unit and a unit alone.
func duration(e ast.Expr) (ast.Interval, bool) {
	switch e := e.(type) {
	case *ast.Unit:
		return ast.Interval{Start: e.Start, Count: 1, Unit: e.Name}, true
	case *ast.Span:
		return e.Interval, true
	case *ast.Binary:
		count, unit := e.L, e.R
		if _, ok := count.(*ast.Unit); ok {
			count, unit = unit, count
		}
		u, ok := unit.(*ast.Unit)
		n, isLiteral := count.(*ast.Literal)
		if ok && isLiteral && e.Op == "*" && n.Kind == ast.Integer {
			return ast.Interval{Start: e.Start, Count: n.Int, Unit: u.Name}, true
		}
	}
	return ast.Interval{}, false
}

// shift moves an instant by a length of time.
func (sc *scope) shift(e *ast.Binary, by ast.Interval) (expr.Node, error) {
	x, err := sc.bind(e.L)
	if err != nil {
		return nil, err
	}
	step, err := interval(by)
	if err != nil {
		return nil, err
	}
	if e.Op == "-" {
		step.Count = -step.Count
	}
	if x, err = sc.instant(e.L, x); err != nil {
		return nil, err
	}
	return expr.Shift(x, step), nil
}

// isTime reports whether an expression is an instant, so that a text beside it is read as a date.
func (sc *scope) isTime(e ast.Expr, n expr.Node) bool {
	if n.Type() == column.Timestamp {
		return true
	}
	switch e := e.(type) {
	case *ast.Name:
		r, ok := sc.resolve(e)
		return ok && r.source.Kind == SourceTime
	case *ast.Period:
		return true
	}
	return false
}

// instant reads a text as a date. What is no date is found out at once in a literal, and row by row otherwise.
func (sc *scope) instant(e ast.Expr, n expr.Node) (expr.Node, error) {
	if n.Type() != column.String {
		return n, nil
	}
	n = expr.Instant(n, e.At())
	if _, ok := e.(*ast.Literal); ok {
		v, constant, err := expr.Constant(n, sc.env)
		if err != nil {
			return nil, err
		}
		if constant {
			return expr.Const(v), nil
		}
	}
	return n, nil
}

// instants reads the texts of a list as dates, in place.
func (sc *scope) instants(list []ast.Expr, nodes []expr.Node) (err error) {
	for i, e := range list {
		if nodes[i], err = sc.instant(e, nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (sc *scope) extract(e *ast.Extract) (expr.Node, error) {
	x, err := sc.bind(e.X)
	if err != nil {
		return nil, err
	}
	args := []expr.Node{expr.Word(e.Part), x}
	if e.Zone != nil {
		zone, err := sc.bind(e.Zone)
		if err != nil {
			return nil, err
		}
		args = append(args, zone)
	}
	return expr.Call("extract", args, e.Start)
}

// call binds a function: of groups or windows, of the row's place, or of its arguments alone.
func (sc *scope) call(e *ast.Call) (expr.Node, error) {
	switch {
	case isNumbering(e.Name):
		return sc.numbering(e)
	case e.Name == "interval_number":
		return sc.intervalNumber(e)
	case isAnalytic(e.Name) || isAggregate(e.Name):
		return sc.function(e)
	case e.Distinct || e.Star:
		return nil, e.Errorf("Unexpected expression: '%s'", sc.text(e))
	}
	list := e.Args
	if e.Name == "date_format" && len(list) == 3 {
		list = append([]ast.Expr{}, list...)
		list[2] = sc.autoZone(list[2])
	}
	args, err := sc.all(list)
	if err != nil {
		return nil, err
	}
	n, err := expr.Call(e.Name, args, e.Start)
	if err != nil && !slices.Contains(expr.Functions(), e.Name) {
		err = hint(err, similar(e.Name, slices.Concat(expr.Functions(), slices.Sorted(maps.Keys(aggregates)), []string{"lag", "lead", "first_value", "row_number"})))
	}
	return n, err
}

// intervalNumber binds INTERVAL_NUMBER(): of joined rows it is that of any table which has the row.
func (sc *scope) intervalNumber(e *ast.Call) (expr.Node, error) {
	if len(e.Args) > 0 || e.Star {
		return nil, e.Errorf("Invalid number of arguments: '%s'", sc.text(e))
	}
	var nodes []expr.Node
	for i, t := range sc.tables {
		source := Source{Kind: SourceInterval, Type: column.Bigint}
		switch {
		case sc.table >= 0 && sc.table != i:
			continue
		case t.kind == viewTable && t.view.timeColumn() >= 0:
			source = Source{Kind: SourceTime, Type: column.Bigint}
		case t.kind != seriesTable:
			continue
		}
		n, err := sc.bind(sc.nameOf(ref{table: i, source: source}, e.Start))
		if err != nil {
			return nil, err
		}
		if t.kind == viewTable {
			n = numbered(n, t.intervals)
		}
		nodes = append(nodes, n)
	}
	switch len(nodes) {
	case 0:
		return nil, e.Errorf("Unexpected expression: '%s'", sc.text(e))
	case 1:
		return nodes[0], nil
	}
	return expr.Call("coalesce", nodes, e.Start)
}

// numbered tells in which interval a time lies, counting from 1.
func numbered(time expr.Node, intervals []Interval) expr.Node {
	number := func(n int64) expr.Node { return expr.Const(column.IntValue(column.Bigint, n)) }
	var whens []expr.When
	for i, in := range intervals {
		bounds := expr.Bounds{Low: number(int64(in.Start)), High: number(int64(in.End)), HighExcl: true}
		whens = append(whens, expr.When{Conditions: []expr.Node{expr.Between(time, bounds)}, Then: number(int64(i + 1))})
	}
	if len(whens) == 0 { // no row has such a time
		return number(1)
	}
	return expr.Case(nil, whens, nil)
}

// autoZone replaces the keyword AUTO by the zone of the entity, of the metric or of the query, whichever is set.
func (sc *scope) autoZone(e ast.Expr) ast.Expr {
	word, ok := e.(*ast.Word)
	if !ok || word.Text != "auto" {
		return e
	}
	zone := &ast.Literal{Start: word.Start, Kind: ast.String, Text: sc.env.Zone.String()}
	table := max(sc.table, 0)
	if len(sc.tables) == 0 || sc.tables[table].kind != seriesTable {
		return zone
	}
	args := []ast.Expr{zone}
	for _, kind := range []SourceKind{SourceMetricField, SourceEntityField} {
		source := Source{Kind: kind, Name: "timeZone", Type: column.String}
		args = append([]ast.Expr{sc.nameOf(ref{table: table, source: source}, word.Start)}, args...)
	}
	return &ast.Call{Start: word.Start, Name: "coalesce", Args: args}
}

// asWritten returns an expression as the statement has it.
func (b *binder) asWritten(e ast.Expr) ast.Expr {
	if origin, ok := b.origin[e]; ok {
		return origin
	}
	if n, ok := e.(*ast.Name); ok {
		if r, ok := b.resolve(n); ok {
			return &ast.Name{Start: n.Start, Parts: identsOf(sourceText(r.source))}
		}
	}
	return e
}

// text is an expression as labels show it.
func (b *binder) text(e ast.Expr) string { return ast.Text(b.asWritten(e)) }
