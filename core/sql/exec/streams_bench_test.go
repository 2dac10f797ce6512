package exec

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// seriesRows yields rows as a scan does: one series after the other, what does not change within it Const.
func seriesRows(series, n int) stream {
	times, values := make([]int64, n), make([]float64, n)
	for i := range n {
		times[i], values[i] = int64(i)*10_000, float64(i%1000)/10
	}
	constant := func(n int, text string) *column.Vector {
		return &column.Vector{Type: column.String, Const: true, Len: n, Strings: []string{text}, Nulls: []bool{text == ""}}
	}
	return func(yield func(*column.Batch, error) bool) {
		for s := range series {
			for from := 0; from < n; from += column.Size {
				to := min(n, from+column.Size)
				l := to - from
				b := &column.Batch{Len: l, Columns: []*column.Vector{{Type: column.Timestamp, Len: l, Ints: times[from:to]}, constant(l, "m"), constant(l, fmt.Sprintf("e%03d", s)),
					constant(l, ""), {Type: column.Double, Len: l, Floats: values[from:to]}, constant(l, "")}}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

func drain(b *testing.B, s stream) {
	for _, err := range s {
		if err != nil {
			b.Fatal(err)
		}
	}
}

func bare() *execution {
	return &execution{Config: Config{Memory: NewMemory(0), Workers: 1}, env: &expr.Env{Zone: time.UTC}}
}

func BenchmarkLatestOfSeries(b *testing.B) {
	op := partitioned(nil, "<=", 1, []expr.Node{entityPlace, tagsPlace}, plan.Key{Expr: timePlace, Desc: true})
	for b.Loop() {
		drain(b, bare().firstRows(b.Context(), op, seriesRows(100, 8640)))
	}
}

func BenchmarkWindow(b *testing.B) {
	for _, rows := range []int64{0, 1000} {
		for _, name := range []string{"sum", "min", "lag", "lead", "stddev"} {
			if rows > 0 && name == "stddev" {
				continue // computed anew for each row
			}
			b.Run(fmt.Sprintf("%s of %d rows", name, rows), func(b *testing.B) {
				f := over(name, column.Double)
				f.Offset = 1
				w := &plan.Window{Partition: []expr.Node{entityPlace}, Functions: []plan.Analytic{f}, Frame: plan.Frame{Rows: rows}}
				for b.Loop() {
					drain(b, bare().windowOver(b.Context(), w, seriesRows(100, 8640)))
				}
			})
		}
	}
}

func BenchmarkJoin(b *testing.B) {
	j := joinOf(true, scanOf("a"), scanOf("b"))
	for b.Loop() {
		x := bare()
		m := merger{out: newJoined(j, func(*column.Batch, error) bool { return true }), byEntity: true, match: x.newMatcher(b.Context(), j.Inputs, true)}
		for i := range j.Inputs {
			m.sides = append(m.sides, x.newSide(&j.Inputs[i], true, seriesRows(100, 8640)))
			if err := m.sides[i].fetch(); err != nil {
				b.Fatal(err)
			}
		}
		if err := m.run(b.Context()); err != nil {
			b.Fatal(err)
		}
		m.stop()
	}
}
