package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// sample is a row that conditions of these tests are about.
type sample struct {
	time           core.Time
	entity, metric string
	tags           map[string]string
}

// conditionMaker writes random conditions.
type conditionMaker struct {
	*rand.Rand
	leaf func(m *conditionMaker) string
}

func (m *conditionMaker) pick(list ...string) string { return list[m.IntN(len(list))] }

func (m *conditionMaker) condition(depth int) string {
	if depth == 0 || m.IntN(3) == 0 {
		return m.leaf(m)
	}
	a, b := m.condition(depth-1), m.condition(depth-1)
	switch m.IntN(6) {
	case 0:
		return "NOT (" + a + ")"
	case 1, 2:
		return "(" + a + " OR " + b + ")"
	}
	return "(" + a + " AND " + b + ")"
}

func timeLeaf(m *conditionMaker) string {
	column := m.pick("time", "datetime")
	n := func() int { return m.IntN(12) }
	switch m.IntN(7) {
	case 0:
		return fmt.Sprintf("%s %sBETWEEN %d%s AND %d%s", column, m.pick("", "", "NOT "), n(), m.pick("", " EXCL"), 6+n(), m.pick("", " EXCL"))
	case 1:
		return fmt.Sprintf("%s %sIN (%d, %d)", column, m.pick("", "", "NOT "), n(), n())
	case 2:
		return fmt.Sprintf("%d %s %s", n(), m.pick("=", "<", "<=", ">", ">=", "<>"), column)
	case 3:
		return seriesLeaf(m)
	}
	return fmt.Sprintf("%s %s %d", column, m.pick("<", "<=", ">", ">=", "="), n())
}

func seriesLeaf(m *conditionMaker) string {
	column := m.pick("entity", "tags.x", "tags.x", "tags.y")
	value := func() string { return m.pick("'a'", "'B'", "'a*'", "'ab'", "'A'") }
	switch m.IntN(6) {
	case 0:
		return column + " IS " + m.pick("", "NOT ") + "NULL"
	case 1:
		return fmt.Sprintf("%s %sIN (%s, %s)", column, m.pick("", "", "NOT "), value(), value())
	case 2:
		return fmt.Sprintf("%s %sLIKE %s", column, m.pick("", "", "NOT "), m.pick("'a%'", "'_'", `'a\*'`, "'%b'", "'A%'", "'%'", "'a?'"))
	case 3:
		return value() + " = " + column
	}
	return fmt.Sprintf("%s %s %s", column, m.pick("=", "=", "<>", "<"), value())
}

func metricLeaf(m *conditionMaker) string {
	value := func() string { return m.pick("'mem'", "'MEM'", "'cpu_busy'", "'net.in'", "'net.out'", "'nosuch'") }
	switch m.IntN(8) {
	case 0:
		return fmt.Sprintf("metric %sLIKE %s", m.pick("", "", "NOT "), m.pick("'cpu%'", "'net._n'", "'%'", "'CPU%'", `'disk\_%'`))
	case 1:
		return fmt.Sprintf("metric %sIN (%s, %s)", m.pick("", "", "NOT "), value(), value())
	case 2:
		return "metric " + m.pick("<", "<=", ">", ">=", "<>") + " " + value()
	case 3:
		return "metric REGEX 'net.*|mem'"
	case 4:
		return seriesLeaf(m)
	}
	return "metric = " + value()
}

// judge evaluates a condition for one row, by the rules of comparison and of NULL.
func judge(t *testing.T, e ast.Expr, row sample) truth {
	switch e := e.(type) {
	case *ast.Not:
		return judge(t, e.X, row).not()
	case *ast.Binary:
		switch e.Op {
		case "and":
			l, r := judge(t, e.L, row), judge(t, e.R, row)
			if l == isFalse || r == isFalse {
				return isFalse
			}
			return min(l, r) // NULL is the lowest
		case "or":
			l, r := judge(t, e.L, row), judge(t, e.R, row)
			if l == isTrue || r == isTrue {
				return isTrue
			}
			return min(l, r)
		}
		return judgeComparison(t, e.Op, operandOf(t, e.L, row), operandOf(t, e.R, row))
	case *ast.Between:
		low, high := ">=", "<="
		if e.LowExcl {
			low = ">"
		}
		if e.HighExcl {
			high = "<"
		}
		x := operandOf(t, e.X, row)
		both := min(judgeComparison(t, low, x, operandOf(t, e.Low, row)), judgeComparison(t, high, x, operandOf(t, e.High, row)))
		return negatedIf(e.Not, both)
	case *ast.In:
		x := operandOf(t, e.X, row)
		found := isFalse
		for _, element := range e.List {
			found = max(found, judgeComparison(t, "=", x, operandOf(t, element, row)))
		}
		if x.null {
			return isNull
		}
		return negatedIf(e.Not, found)
	case *ast.IsNull:
		return negatedIf(e.Not, truthOf(operandOf(t, e.X, row).null))
	case *ast.Like:
		x := operandOf(t, e.X, row)
		if x.null {
			return isNull
		}
		pattern := strings.NewReplacer(`\_`, `_`, `\*`, `\*`, `*`, `\*`, `?`, `\?`, `%`, `*`, `_`, `?`).Replace(e.Pattern.(*ast.Literal).Text)
		return negatedIf(e.Not, truthOf(glob.Compile(pattern).Match(x.text)))
	case *ast.Regex:
		x := operandOf(t, e.X, row)
		return truthOf(strings.HasPrefix(x.text, "net") || x.text == "mem")
	}
	t.Fatalf("no rule for %s", ast.Text(e))
	return isNull
}

func negatedIf(not bool, v truth) truth {
	if not {
		return v.not()
	}
	return v
}

// term is the value of one side of a comparison.
type term struct {
	text   string
	number core.Time
	null   bool
	fold   bool // it is a name whose case does not matter
}

func operandOf(t *testing.T, e ast.Expr, row sample) term {
	switch e := e.(type) {
	case *ast.Literal:
		return term{text: e.Text, number: core.Time(e.Int)}
	case *ast.Name:
		r, _ := resolveTest(e)
		switch r.source.Kind {
		case SourceTime:
			return term{number: row.time}
		case SourceEntity:
			return term{text: row.entity, fold: true}
		case SourceMetric:
			return term{text: row.metric, fold: true}
		}
		value, ok := row.tags[r.source.Name]
		return term{text: value, null: !ok}
	}
	t.Fatalf("no value for %s", ast.Text(e))
	return term{}
}

func judgeComparison(t *testing.T, op string, a, b term) truth {
	if a.null || b.null {
		return isNull
	}
	order := int(a.number - b.number)
	if order == 0 {
		order = strings.Compare(a.text, b.text)
		if (op == "=" || op == "<>") && (a.fold || b.fold) {
			order = strings.Compare(strings.ToLower(a.text), strings.ToLower(b.text))
		}
	}
	switch op {
	case "=":
		return truthOf(order == 0)
	case "<>":
		return truthOf(order != 0)
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	case ">=":
		return truthOf(order >= 0)
	}
	t.Fatalf("no operator %s", op)
	return isNull
}

func allTrue(t *testing.T, terms []ast.Expr, row sample) bool {
	return !slices.ContainsFunc(terms, func(e ast.Expr) bool { return judge(t, e, row) != isTrue })
}

// rows are all combinations of some values.
func rows(times int, metrics []string) (all []sample) {
	for _, entity := range []string{"a", "ab", "b", "a*"} {
		for _, x := range []string{"", "a", "B", "A", "ab", "a*", "a?"} {
			for _, y := range []string{"", "a"} {
				for _, metric := range metrics {
					for time := range times {
						tags := map[string]string{}
						if x != "" {
							tags["x"] = x
						}
						if y != "" {
							tags["y"] = y
						}
						all = append(all, sample{core.Time(time), entity, metric, tags})
					}
				}
			}
		}
	}
	return all
}

func (p pushed) selects(row sample) bool {
	match := func(patterns []string, text string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return glob.Compile(p).Match(text) })
	}
	f := p.entities
	if !f.All() && !slices.Contains(f.Names, row.entity) && !match(f.Patterns, row.entity) {
		return false
	}
	return !slices.ContainsFunc(p.tags, func(f core.TagFilter) bool {
		value, ok := row.tags[f.Name]
		return !ok || !match(f.Patterns, value)
	})
}

// TestSplitConditions: whatever is taken out of a condition and what remains of it select the rows that the condition selects.
func TestSplitConditions(t *testing.T) {
	m := &conditionMaker{Rand: rand.New(rand.NewPCG(1, 2))}
	timed, static, named := rows(20, []string{"m"})[:400], rows(1, []string{"m"}), rows(1, storedMetrics)
	split := 0
	for range 500 {
		m.leaf = timeLeaf
		where := m.condition(3)
		terms := whereOf(t, where)
		list, rest, err := testConditions().intervals(terms)
		for _, row := range timed {
			inside := slices.ContainsFunc(list, func(i Interval) bool { return i.Contains(row.time) }) && allTrue(t, rest, row)
			// An error says that there are no rows, or none of one side of an OR.
			if want := allTrue(t, terms, row); err != nil && want && !strings.Contains(where, " OR ") || err == nil && inside != want {
				t.Fatalf("%s: intervals %s, rest %s, error %v: at %d of %s is %v, want %v", where, showIntervals(list), showTerms(rest), err, row.time, row.entity, inside, want)
			}
		}

		m.leaf = seriesLeaf
		where = m.condition(3)
		terms = whereOf(t, where)
		push, rest := pushDown(terms, resolveTest, 0)
		if len(rest) < len(terms) {
			split++
		}
		for _, row := range static {
			if got, want := push.selects(row) && allTrue(t, rest, row), allTrue(t, terms, row); got != want {
				t.Fatalf("%s: filters %+v, rest %s: %+v is %v, want %v", where, push, showTerms(rest), row, got, want)
			}
		}

		m.leaf = metricLeaf
		where = m.condition(3)
		terms = whereOf(t, where)
		selection := selectionTest()
		selection.limit = 100
		names, rest, err := selection.metrics(terms)
		if err != nil && err.Error() != "No matching metrics found" {
			continue
		}
		for _, row := range named {
			if got, want := slices.Contains(names, row.metric) && allTrue(t, rest, row), allTrue(t, terms, row); got != want {
				t.Fatalf("%s: metrics %v, rest %s, error %v: %+v is %v, want %v", where, names, showTerms(rest), err, row, got, want)
			}
		}
	}
	if split < 125 {
		t.Errorf("only %d of 500 conditions were split: the test tests nothing", split)
	}
}
