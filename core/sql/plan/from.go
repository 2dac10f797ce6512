package plan

import (
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// loadEnv makes what expressions know of the query: that of the outer one, changed by WITH.
func (b *binder) loadEnv() error {
	env := *b.Options.Env
	b.env = &env
	if env.Zone == nil {
		env.Zone = env.ServerZone
	}
	w := b.stmt.With
	if w.TimeZone != nil {
		zone, err := expr.LoadZone(w.TimeZone.Text)
		if err != nil {
			return w.TimeZone.Errorf("Invalid time zone: '%s'", w.TimeZone.Text)
		}
		env.Zone, b.with.TimeZone = zone, w.TimeZone
	}
	if w.Calendar != nil {
		calendars, err := env.Calendars.WithDefault(w.Calendar.Text)
		if err != nil {
			return w.Calendar.Errorf("Workday calendar not found for name '%s'", w.Calendar.Text)
		}
		env.Calendars, b.with.Calendar = calendars, w.Calendar
	}
	if w.Version != nil && !(b.Meta && isPlaceholder(w.Version)) {
		at, err := b.version(w.Version)
		if err != nil {
			return err
		}
		env.Version = &at
	}
	b.Options.Env = b.env // of views as well
	return nil
}

func isPlaceholder(e ast.Expr) bool {
	_, ok := e.(*ast.Placeholder)
	return ok
}

// version evaluates the time of WITH VERSION.
func (b *binder) version(e ast.Expr) (core.Time, error) {
	sc := b.constants()
	n, err := sc.bind(e)
	if err != nil {
		return 0, err
	}
	if n, err = sc.instant(e, n); err != nil {
		return 0, err
	}
	v, ok, err := expr.Constant(n, b.env)
	if err != nil {
		return 0, err
	}
	if !ok || v.IsNull() || v.IsNaN() {
		return 0, e.At().Errorf("Invalid date value: '%s'", ast.Text(e))
	}
	if v.Type.Numeric() && !v.Whole {
		return core.Time(v.Float), nil
	}
	return core.Time(v.Int), nil
}

// constants is a scope without columns.
func (b *binder) constants() *scope {
	bare := *b
	bare.tables = nil
	return &scope{assembly: &assembly{binder: &bare}, table: joined, number: -1}
}

// maxTables is how many tables may be joined. Each is read beside the others, and every name without a prefix is looked for in all of them.
const maxTables = 64

// loadTables finds the tables of FROM and JOIN.
func (b *binder) loadTables() error {
	if err := b.loadEnv(); err != nil {
		return err
	}
	if b.stmt.From == nil {
		return nil
	}
	if err := b.addTable(b.stmt.From, nil); err != nil {
		return err
	}
	if n := len(b.stmt.Joins); n >= maxTables {
		return b.stmt.Joins[n-1].Source.Errorf("more than %d tables in FROM", maxTables)
	}
	for i := range b.stmt.Joins {
		j := &b.stmt.Joins[i]
		if err := b.addTable(j.Source, j); err != nil {
			return err
		}
	}
	return b.checkJoins()
}

func (b *binder) addTable(s *ast.Source, j *ast.Join) error {
	t := &table{from: s, join: j, name: s.Table, alias: s.Table, useEntity: true, useTags: j == nil || !j.UsingEntity}
	if s.Alias != nil {
		t.alias = s.Alias.Text
	}
	b.tables = append(b.tables, t)
	if s.View != nil {
		t.kind = viewTable
		var err error
		t.view, err = newView(b, s.View)
		return err
	}
	metric := lower(s.Table)
	m, found := b.Catalog.Metric(metric)
	if kind, ok := tableKinds[metric]; ok && (!found || always[metric]) {
		t.kind = kind
		if kind == seriesTable {
			t.several, t.columns = true, scanColumns()
		}
		return nil
	}
	if !found {
		if !b.Meta {
			return hint(ast.Errorf("Metric '%s' not found", s.Table), b.similarMetric(metric))
		}
		m = core.NewMetric(metric, 0)
	}
	t.kind, t.metrics, t.columns, t.value = seriesTable, []string{metric}, scanColumns(), typeOf(m.DataType)
	return nil
}

// checkJoins judges which tables are joined, and by what.
func (b *binder) checkJoins() error {
	for i, t := range b.tables {
		if len(b.tables) > 1 && t.kind != seriesTable && t.kind != viewTable {
			return t.from.Errorf("Table '%s' cannot be joined", t.name)
		}
		for _, earlier := range b.tables[:i] {
			if t.alias != "" && strings.EqualFold(t.alias, earlier.alias) && !b.Meta {
				if t.from.Alias == nil && earlier.from.Alias == nil {
					return ast.Errorf("Self join is not supported (metric: %s)", t.name)
				}
				return t.from.Errorf("Duplicate table alias: '%s'", t.alias)
			}
		}
		if t.join == nil || t.join.On == nil {
			continue
		}
		t.useEntity, t.useTags = t.kind == seriesTable && b.tables[0].kind == seriesTable, false // samples pair by entity in any case; views as ON says
		for _, term := range t.join.On {
			if err := b.onTerm(i, term); err != nil {
				return err
			}
		}
	}
	return nil
}

// onTerm takes a term of ON: the same key column of the first table and of the table that is joined, in either order.
func (b *binder) onTerm(joins int, term ast.Expr) error {
	wrong := term.At().Errorf("Unexpected ON clause expression: '%s'", ast.Text(term))
	eq, ok := term.(*ast.Binary)
	if !ok || eq.Op != "=" {
		return wrong
	}
	l, lok := eq.L.(*ast.Name)
	r, rok := eq.R.(*ast.Name)
	if !lok || !rok {
		return wrong
	}
	a, err := b.onColumn(l)
	if err != nil {
		return err
	}
	c, err := b.onColumn(r)
	switch {
	case err != nil:
		return err
	case a == nil || c == nil || a.source != c.source:
		return wrong
	case !(a.table == 0 && c.table == joins || c.table == 0 && a.table == joins):
		return wrong
	}
	switch a.source.Kind {
	case SourceTime:
	case SourceEntity:
		b.tables[joins].useEntity = true
	case SourceTags:
		b.tables[joins].useTags = true
	default:
		return wrong
	}
	return nil
}

// onColumn resolves one side of a term of ON, nil when it is no column.
func (b *binder) onColumn(n *ast.Name) (*ref, error) {
	if len(n.Parts) < 2 {
		return nil, nil
	}
	prefix := n.Parts[:len(n.Parts)-1]
	i, ok := b.tableNamed(pathOf(prefix))
	if !ok {
		for n := range prefix {
			if _, known := b.tableNamed(pathOf(prefix[:n])); known {
				return nil, nil // t.tags.x, t.entity.label
			}
		}
		return nil, ast.Errorf("Invalid identifier '%s'", pathOf(prefix))
	}
	s, _, ok := b.tables[i].find(n.Parts[len(n.Parts)-1:])
	if !ok {
		return nil, nil
	}
	return &ref{table: i, source: s}, nil
}

// zone resolves the zone of PERIOD and INTERPOLATE.
func (sc *scope) zone(e ast.Expr) (Zone, error) {
	switch e := e.(type) {
	case nil:
		return Zone{Location: sc.env.Zone}, nil
	case *ast.Literal:
		location, err := expr.LoadZone(e.Text)
		if err != nil || e.Kind != ast.String {
			return Zone{}, e.Errorf("Invalid time zone: '%s'", e.Text)
		}
		return Zone{Location: location}, nil
	case *ast.Name:
		n := len(e.Parts)
		if n > 1 && strings.EqualFold(e.Parts[n-1].Text, "timezone") {
			switch of := lower(e.Parts[n-2].Text); of {
			case "entity", "metric":
				return Zone{Field: of}, nil
			}
		}
		return Zone{}, sc.unknown(e)
	case *ast.Placeholder:
		return Zone{Location: sc.env.Zone}, nil
	}
	return Zone{}, e.At().Errorf("Unexpected expression: '%s'", ast.Text(e))
}

// fill makes the grid of WITH INTERPOLATE.
func (sc *scope) fill(i *ast.Interpolate) (*Interpolate, error) {
	out := &Interpolate{Detail: i.Detail, Function: i.Function, Boundary: i.Boundary, Fill: i.Fill, Number: i.Number, Align: i.Align}
	if out.Function == "" {
		out.Function = "auto"
	}
	if out.Boundary == "" {
		out.Boundary = "inner"
	}
	if i.Detail {
		if out.Boundary == "full" {
			return nil, i.Errorf("FULL boundary mode is not suitable for DETAILS interpolation")
		}
		out.Step = dates.Interval{}
		out.Zone = Zone{Location: sc.env.Zone}
		return out, nil
	}
	step, err := interval(i.Step)
	if err != nil {
		return nil, err
	}
	if step.Count <= 0 {
		return nil, i.Step.Errorf("Invalid period: '%d %s'. The count must be positive", i.Step.Count, i.Step.Unit)
	}
	out.Step = step
	out.Zone, err = sc.zone(i.Zone)
	return out, err
}
