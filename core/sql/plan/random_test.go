package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/parse"
)

// writer writes random statements that are mostly right.
type writer struct {
	*rand.Rand
	prefixes []string // of the tables of the SELECT that is written
	columns  []string
	depth    int
}

func (w *writer) one(list ...string) string { return list[w.IntN(len(list))] }

// often returns text in one of n cases.
func (w *writer) often(n int, text func() string) string {
	if w.IntN(n) > 0 {
		return ""
	}
	return text()
}

func (w *writer) column() string {
	prefix := ""
	if len(w.prefixes) > 1 || w.IntN(4) == 0 {
		prefix = w.one(w.prefixes...) + "."
	}
	return prefix + w.one(w.columns...)
}

func (w *writer) value(depth int) string {
	if depth == 0 || w.IntN(3) == 0 {
		return w.one("1", "2.5", "'x'", "NULL", "NaN", w.column(), w.column(), w.column(), "now - 2*day", "a0", "time", "datetime")
	}
	arg := func() string { return w.value(depth - 1) }
	switch w.IntN(9) {
	case 0:
		return arg() + " " + w.one("+", "-", "*", "/", "%") + " " + arg()
	case 1:
		return "case when " + w.condition(depth-1) + " then " + arg() + " else " + arg() + " end"
	case 2:
		return w.one("abs", "upper", "length", "date_format") + "(" + arg() + ")"
	case 3, 4:
		return w.one("count", "sum", "avg", "max", "first", "delta", "count(distinct ") + "(" + arg() + ")"
	case 5:
		return w.one("lag", "lead", "first_value") + "(" + arg() + ")"
	case 6:
		return w.one("row_number()", "rank()", "interval_number()", "period(1 hour)")
	case 7:
		return "date_format(" + arg() + ", 'yyyy', auto)"
	}
	return "isnull(" + arg() + ", " + arg() + ")"
}

func (w *writer) condition(depth int) string {
	x := func() string { return w.value(depth) }
	if depth > 0 && w.IntN(2) == 0 {
		return w.one("", "not ") + "(" + w.condition(depth-1) + ") " + w.one("and", "or", "and") + " " + w.condition(depth-1)
	}
	switch w.IntN(8) {
	case 0:
		return w.column() + " in ('pump-1', " + x() + ")"
	case 1:
		return w.column() + w.one(" like ", " regex ") + "'p%'"
	case 2:
		return w.column() + " is " + w.one("", "not ") + "null"
	case 3:
		return w.one("time", "datetime") + " >= '2024-03-04T10:00:00Z'"
	case 4:
		return w.one("time", "datetime") + " between '2024-03-04' and now"
	case 5:
		return "datetime between (select datetime from temp)"
	}
	return x() + w.one(" = ", " > ", " <> ") + x()
}

func (w *writer) list(most int, one func() string) string {
	texts := make([]string, 1+w.IntN(most))
	for i := range texts {
		texts[i] = one()
	}
	return strings.Join(texts, ", ")
}

func (w *writer) source(i int) string {
	alias := fmt.Sprintf("t%d", i)
	w.prefixes = append(w.prefixes, alias)
	series := []string{"value", "text", "entity", "metric", "tags", "tags.tank", "entity.label", "entity.tags.site", "metric.units", "datetime", "time", "entity.groups"}
	w.columns = series
	if w.depth < 2 && w.IntN(4) == 0 {
		inner := writer{Rand: w.Rand, depth: w.depth + 1}
		return "(" + inner.query() + ") " + alias
	}
	return w.one("flow", "temp", "level", "atsd_series") + " " + alias
}

func (w *writer) query() string {
	from := w.source(0)
	if w.depth == 0 && w.IntN(8) == 0 {
		w.columns = []string{"name", "entity", "tags", "tags.x", "label", "type", "time"}
		from = w.one("atsd_entity", "atsd_metric", "atsd_message", "atsd_property", "atsd_alert_history") + " t0"
	}
	for i := 1; w.IntN(3) == 0 && i < 4; i++ {
		from += w.one(" join ", " outer join ", " join using entity ") + w.source(i)
		from += w.often(4, func() string { return fmt.Sprintf(" on t0.%s = t%d.time", w.one("time", "entity"), i) })
	}
	items := w.list(3, func() string {
		if w.IntN(6) == 0 {
			return w.one("*", "tags.*", "entity.*", "metric.tags.*", "t0.*", "t0.tags.*")
		}
		return w.value(2) + w.often(2, func() string { return " as " + w.one("a0", "a1", `"value"`, `"tags"`, `"entity"`, `"datetime"`) })
	})
	order := func() string {
		return w.list(2, func() string { return w.one("1", "a0", w.column(), w.value(1)) + w.one("", " desc") })
	}
	number := func() string {
		return " with row_number(" + w.list(2, w.column) + " order by " + order() + ")" + w.one(" <= 3", " between 3 preceding and current row", " between 1 hour preceding and current row")
	}
	with := func() string {
		return " with " + w.one("interpolate(1 hour)", "interpolate(detail, linear, outer)", "timezone = 'Asia/Tokyo'", "time > last_time - hour", "version = now")
	}
	key := func() string {
		return w.one("entity", w.column(), "tags", "metric", "period(1 hour)", "period(1 day, value 0, extend)", "a0", w.value(1))
	}
	return "select " + w.one("", "", "distinct ") + items + " from " + from +
		w.often(2, func() string {
			return " where " + w.one("", "metric = 'flow' and ", "t0.metric in ('flow', 'level') and ") + w.condition(2)
		}) +
		w.often(5, number) + w.often(5, with) +
		w.often(3, func() string { return " group by " + w.list(3, key) }) +
		w.often(5, func() string { return " having " + w.condition(1) }) +
		w.often(6, number) +
		w.often(3, func() string { return " order by " + order() }) +
		w.often(3, func() string { return " limit 3" })
}

// TestRandomStatements plans what a writer writes: plans are sound, and what is refused is the fault of the statement.
func TestRandomStatements(t *testing.T) {
	store := plant(t)
	const statements = 6000
	bound := 0
	for seed := range uint64(statements) {
		w := writer{Rand: rand.New(rand.NewPCG(seed, 1))}
		text := w.query()
		statement, err := parse.Parse(text)
		if err != nil {
			continue
		}
		o := optionsOf(store)
		o.Meta = seed%4 == 0
		o.EncodeTags = seed%3 == 0
		q, err := Bind(t.Context(), statement.(*ast.Select), o)
		var known *ast.Error
		switch {
		case err == nil:
			bound++
			checkWidths(t, q)
			Explain(q)
		case !errors.As(err, &known):
			t.Fatalf("%s: %v is not an error of the statement", text, err)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, text)
		}
	}
	if bound < statements/20 {
		t.Errorf("only %d of %d statements are planned: the writer writes nonsense", bound, statements)
	}
	t.Logf("%d of %d are planned", bound, statements)
}
