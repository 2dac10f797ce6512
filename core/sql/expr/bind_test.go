package expr_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/parse"
)

// binder makes nodes of what the parser read, as the planner does but without tables: names are columns of a batch.
type binder struct {
	columns map[string]int
	types   []column.Type
	// spread: literals become columns, so that what is folded otherwise runs over rows.
	spread bool
	batch  column.Batch
}

// rows is how many rows a spread literal has: enough to be no constant.
const rows = 3

func (b *binder) node(e ast.Expr) (expr.Node, error) {
	switch e := e.(type) {
	case *ast.Literal:
		return b.literal(e), nil
	case *ast.Name:
		return b.name(e)
	case *ast.Placeholder:
		return expr.Placeholder(), nil
	case *ast.Word:
		return expr.Word(e.Text), nil
	case *ast.Span:
		return expr.Span(interval(e.Interval)), nil
	case *ast.Calendar:
		return expr.Calendar(e.Name, e.Start)
	case *ast.Unary:
		x, err := b.node(e.X)
		if err != nil || e.Op == "+" {
			return x, err
		}
		return expr.Negate(x), nil
	case *ast.Binary:
		return b.binary(e)
	case *ast.Call:
		args, err := b.list(e.Args)
		if err != nil {
			return nil, err
		}
		return expr.Call(e.Name, args, e.Start)
	case *ast.Extract:
		args := []ast.Expr{&ast.Word{Text: e.Part}, e.X}
		if e.Zone != nil {
			args = append(args, e.Zone)
		}
		return b.node(&ast.Call{Start: e.Start, Name: "extract", Args: args})
	case *ast.Cast:
		x, err := b.node(e.X)
		if err != nil {
			return nil, err
		}
		return expr.Cast(x, e.Type), nil
	case *ast.Case:
		return b.choice(e)
	}
	return b.predicate(e)
}

func (b *binder) literal(e *ast.Literal) expr.Node {
	n := expr.Literal(e)
	if !b.spread {
		return n
	}
	v, _, _ := expr.Constant(n, nil)
	c := column.NewBuilder(n.Type())
	for range rows {
		c.Append(v)
	}
	b.batch.Columns = append(b.batch.Columns, c.Vector())
	return expr.Input(len(b.batch.Columns)-1, n.Type())
}

func (b *binder) name(e *ast.Name) (expr.Node, error) {
	var parts []string
	for _, p := range e.Parts {
		parts = append(parts, p.Text)
	}
	name := strings.Join(parts, ".")
	i, ok := b.columns[name]
	if !ok {
		return nil, fmt.Errorf("the test has no column %s", name)
	}
	return expr.Input(i, b.types[i]), nil
}

func (b *binder) list(list []ast.Expr) ([]expr.Node, error) {
	var nodes []expr.Node
	for _, e := range list {
		n, err := b.node(e)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (b *binder) binary(e *ast.Binary) (expr.Node, error) {
	if by, ok := units(e.R); ok {
		x, err := b.node(e.L)
		if err != nil {
			return nil, err
		}
		if e.Op == "-" {
			by.Count = -by.Count
		}
		return expr.Shift(x, by), nil
	}
	sides, err := b.list([]ast.Expr{e.L, e.R})
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case "and":
		return expr.And(sides[0], sides[1]), nil
	case "or":
		return expr.Or(sides[0], sides[1]), nil
	case "+", "-", "*", "/", "%":
		return expr.Arithmetic(e.Op, sides[0], sides[1]), nil
	}
	return expr.Compare(e.Op, sides[0], sides[1]), nil
}

// units reads 2*day and day.
func units(e ast.Expr) (dates.Interval, bool) {
	switch e := e.(type) {
	case *ast.Unit:
		u, _ := dates.ParseUnit(e.Name)
		return dates.Interval{Count: 1, Unit: u}, true
	case *ast.Binary:
		n, ok := e.L.(*ast.Literal)
		if by, isUnit := units(e.R); ok && isUnit && e.Op == "*" {
			by.Count = n.Int
			return by, true
		}
	}
	return dates.Interval{}, false
}

func interval(v ast.Interval) dates.Interval {
	u, _ := dates.ParseUnit(v.Unit)
	return dates.Interval{Count: v.Count, Unit: u}
}

func (b *binder) choice(e *ast.Case) (expr.Node, error) {
	var x, otherwise expr.Node
	var err error
	if e.X != nil {
		if x, err = b.node(e.X); err != nil {
			return nil, err
		}
	}
	var whens []expr.When
	for _, w := range e.Whens {
		conditions, err := b.list(w.Conditions)
		if err != nil {
			return nil, err
		}
		then, err := b.node(w.Then)
		if err != nil {
			return nil, err
		}
		whens = append(whens, expr.When{Conditions: conditions, Then: then})
	}
	if e.Else != nil {
		if otherwise, err = b.node(e.Else); err != nil {
			return nil, err
		}
	}
	return expr.Case(x, whens, otherwise), nil
}

// predicate makes what may stand after NOT.
func (b *binder) predicate(e ast.Expr) (n expr.Node, err error) {
	negated := false
	switch e := e.(type) {
	case *ast.Not:
		negated = true
		n, err = b.node(e.X)
	case *ast.IsNull:
		negated = e.Not
		if n, err = b.node(e.X); err == nil {
			n = expr.IsNull(n)
		}
	case *ast.Like:
		negated = e.Not
		var sides []expr.Node
		if sides, err = b.list([]ast.Expr{e.X, e.Pattern}); err == nil {
			n, err = expr.Like(sides[0], sides[1], e.Escape)
		}
	case *ast.Regex:
		negated = e.Not
		var sides []expr.Node
		if sides, err = b.list([]ast.Expr{e.X, e.Pattern}); err == nil {
			n, err = expr.Regex(sides[0], sides[1], e.Start)
		}
	case *ast.Between:
		negated = e.Not
		var three []expr.Node
		if three, err = b.list([]ast.Expr{e.X, e.Low, e.High}); err == nil {
			n = expr.Between(three[0], expr.Bounds{Low: three[1], High: three[2], LowExcl: e.LowExcl, HighExcl: e.HighExcl})
		}
	case *ast.In:
		negated = e.Not
		n, err = b.in(e)
	default:
		err = fmt.Errorf("the test cannot bind %T", e)
	}
	if err == nil && negated {
		n = expr.Not(n)
	}
	return n, err
}

func (b *binder) in(e *ast.In) (expr.Node, error) {
	x, err := b.node(e.X)
	if err != nil {
		return nil, err
	}
	switch set := e.Set.(type) {
	case *ast.Call:
		args, err := b.list(set.Args)
		if err != nil {
			return nil, err
		}
		if set.Name == "metrics" {
			return expr.InMetrics(x, args), nil
		}
		return expr.InCollection(x, args[0], set.Start), nil
	case *ast.Name:
		groups, err := b.name(set)
		return expr.InGroups(groups, []expr.Node{x}), err
	}
	list, err := b.list(e.List)
	return expr.In(x, list), err
}

// world answers what the database would.
type world struct{ asked []string }

func (w *world) Lookup(table, key string) (string, bool, bool, error) {
	w.asked = append(w.asked, table+"/"+key)
	value, found := map[string]string{"3": "low", "7.5": "mid", "14": "peak", "100": "full"}[key]
	return value, found, table == "codes", nil
}

func (w *world) Collection(name string) ([]string, bool, error) {
	return []string{"B", `say "<"`}, name == "skip", nil
}

func (w *world) Entity(name string, version *core.Time) (core.Entity, bool, error) {
	e := core.Entity{Name: name, Tags: map[string]string{"site": "North", "type": "centrifugal"}}
	if version != nil {
		e.Tags = map[string]string{"site": "as of " + dates.FormatISO(*version)}
	}
	return e, name == "pump-1", nil
}

func (w *world) Groups(entity string) ([]string, error) {
	if entity != "pump-1" {
		return nil, nil
	}
	return []string{"north", "pumps"}, nil
}

func (w *world) Metrics(entity string) ([]string, error) {
	return map[string][]string{"pump-1": {"flow", "level"}, "pump-2": {"temp"}}[entity], nil
}

func (w *world) Property(entity, search string, since core.Time, merge bool) (string, error) {
	return fmt.Sprintf("%s %s %d %v", entity, search, since, merge), nil
}

// monday is 2024-03-04T10:00:00Z.
const monday = core.Time(1709546400000)

func environment(t testing.TB) *expr.Env {
	t.Helper()
	demo, err := dates.CalendarFile{Country: "USA", Data: []dates.CalendarDay{{Date: "2024-03-05", Type: "Holiday"}, {Date: "2024-03-09", Type: "Workday"}}}.Calendar("demo")
	if err != nil {
		t.Fatal(err)
	}
	return &expr.Env{Now: monday + 2*3_600_000, Zone: time.UTC, ServerZone: time.UTC, Calendars: dates.NewCalendars(demo), Facts: &world{}}
}

// expression parses one expression.
func expression(t testing.TB, text string) ast.Expr {
	t.Helper()
	s, err := parse.Parse("SELECT " + text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s.(*ast.Select).Items[0].Expr
}

// show prints all rows: values as results show them, NULL as NULL.
func show(v *column.Vector) string {
	var list []string
	for i := range v.Len {
		if v.IsNull(i) || v.Value(i).IsNull() {
			list = append(list, "NULL")
			continue
		}
		list = append(list, column.FormatValue(v, i))
	}
	return strings.Join(list, " ")
}

// evaluate computes an expression over a batch with named columns.
func (b *binder) evaluate(t testing.TB, env *expr.Env, text string) (string, column.Type, error) {
	t.Helper()
	n, err := b.node(expression(t, text))
	if err != nil {
		return "", 0, err
	}
	v, err := n.Eval(env, &b.batch)
	if err != nil {
		return "", 0, err
	}
	first := show(v)
	// A clone, and the same node a second time, say the same.
	for _, again := range []expr.Node{n.Clone(), n} {
		v, err := again.Eval(env, &b.batch)
		if err != nil {
			return "", 0, err
		}
		if s := show(v); s != first && !strings.Contains(text, "random") {
			t.Errorf("%s is %s, then %s", text, first, s)
		}
	}
	return first, n.Type(), nil
}

// constant evaluates an expression of literals as a constant, and again with its literals as columns of several rows: both must agree.
func constant(t testing.TB, env *expr.Env, text string) (string, column.Type, error) {
	t.Helper()
	folded := &binder{batch: column.Batch{Len: 1}}
	got, kind, err := folded.evaluate(t, env, text)
	over := &binder{spread: true, batch: column.Batch{Len: rows}}
	spread, spreadKind, spreadErr := over.evaluate(t, env, text)
	if err == nil && spreadErr == nil {
		if want := strings.TrimSuffix(strings.Repeat(got+" ", rows), " "); spread != want {
			t.Errorf("%s is %s, but over rows %s", text, got, spread)
		}
		if kind != spreadKind && !slices.Contains([]string{"-", "?"}, text[:1]) {
			t.Errorf("%s is %v, but over rows %v", text, kind, spreadKind)
		}
	}
	if (err == nil) != (spreadErr == nil) && !strings.Contains(fmt.Sprint(err), "Invalid date value") {
		t.Errorf("%s: error %v, but over rows %v", text, err, spreadErr)
	}
	return got, kind, err
}

// check runs lines of the form: expression => result.
func check(t *testing.T, lines string) {
	t.Helper()
	env := environment(t)
	for line := range strings.Lines(lines) {
		text, want, ok := strings.Cut(strings.TrimSpace(line), "  =>")
		if !ok {
			continue
		}
		want = strings.TrimSpace(want)
		got, _, err := constant(t, env, text)
		if err != nil {
			got = "error " + err.Error()
			if e := (*ast.Error)(nil); !errors.As(err, &e) {
				t.Errorf("%s: %v is no fault of the statement", text, err)
			}
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
