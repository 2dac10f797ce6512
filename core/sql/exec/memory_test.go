package exec

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// What operators hold for as long as the data wants counts as memory of the query: too much of it is an error, and all of it is given back.
func TestHeldIsCounted(t *testing.T) {
	const n = 3000
	whole := func(metric string) *plan.Scan { return within(scanOf(metric), 0, n) }
	second := func(s *plan.Scan) *plan.Scan { s.Fill = readInterpolate(t, "1 second"); return s }
	views := func(l *loader) plan.Operator {
		inner := pick(whole("m"), plan.ScanTime, plan.ScanEntity, valueColumn)
		q := &plan.Query{Root: inner, Env: environment(l.store(t)), Columns: []plan.Column{{Type: column.Bigint, Property: "atsd:time"}, {Type: column.String}, {Type: column.Double}}}
		return &plan.View{Query: q, Time: 0, Entity: 1, Value: 2, Metric: -1, Tags: -1, Fill: readInterpolate(t, "1 second")}
	}
	text := strings.Repeat("x", 100)
	for _, c := range []struct {
		name string
		load func(l *loader, i int)
		plan func(l *loader) plan.Operator
		most int64 // bytes that are too few
	}{
		{"samples without number", func(l *loader, i int) { l.sample(key("m", "a"), core.Time(i), math.NaN()) }, func(*loader) plan.Operator { return second(whole("m")) }, n * 60},
		{"their texts", func(l *loader, i int) { l.sample(key("m", "a"), core.Time(i), math.NaN(), text+strconv.Itoa(i)) },
			func(*loader) plan.Operator { s := second(whole("m")); s.Needs.Text = true; return s }, n * 160},
		{"rows of a view without number", func(l *loader, i int) {
			l.sample(key("m", "a"), core.Time(i), math.NaN())
			l.sample(key("m", "b"), 0, 1) // ends the series before, while its sorted rows are held
		}, views, n * 150},
		{"first times of groups", func(l *loader, i int) { l.sample(key("m", strconv.Itoa(i)), core.Time(i), 1) }, func(*loader) plan.Operator {
			return by(groupBy(whole("m"), []int{plan.ScanEntity, plan.ScanTime}, "count(*)"), 70, dates.Day, aligned(ast.AlignFirst))
		}, n * 330},
		{"the least of a frame without end", func(l *loader, i int) { l.sample(key("m", "a"), core.Time(i), float64(i)) }, func(*loader) plan.Operator {
			f := plan.Analytic{Aggregate: plan.Aggregate{Func: "min", Args: []expr.Node{place{valueColumn, column.Double}}, Type: column.Double}}
			return &plan.Window{In: whole("m"), Functions: []plan.Analytic{f}}
		}, n * 80},
		{"texts that LAG looks back at", func(l *loader, i int) { l.sample(key("m", "a"), core.Time(i), 1, text+strconv.Itoa(i)) }, func(*loader) plan.Operator {
			s := whole("m")
			s.Needs.Text = true
			f := plan.Analytic{Aggregate: plan.Aggregate{Func: "lag", Args: []expr.Node{place{textColumn, column.String}}, Type: column.String}, Offset: n}
			return &plan.Window{In: s, Functions: []plan.Analytic{f}}
		}, n * 150},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l loader
			for i := range n {
				c.load(&l, i)
			}
			s, op := l.store(t), c.plan(&l)
			if rows, err := tryRun(t.Context(), s, op); err != nil || len(rows) == 0 {
				t.Fatalf("with enough memory: %d rows, %v", len(rows), err)
			}
			_, err := tryRun(t.Context(), s, op, func(c2 *Config) { c2.Memory = NewMemory(c.most) })
			if core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), "sql.memory") {
				t.Errorf("with %d bytes: %v, want an error that names sql.memory", c.most, err)
			}
		})
	}
}
