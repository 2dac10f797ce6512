package exec

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A day of samples, one in ten seconds, of some series.
const (
	benchSamples = 8640
	benchStep    = 10_000
)

// stored is a database in memory with the samples of n series of the metric m, all of them in files.
func stored(b *testing.B, n int) *storage.DB {
	db, _, err := storage.Open(vfs.NewMem(), "/data", storage.Options{FlushBytes: storage.DefaultFlushBytes})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close(context.Background()) })
	r := rand.New(rand.NewPCG(1, 1))
	start := iso("2024-03-04T00:00:00Z")
	for s := range n {
		batch := &core.Batch{Origin: core.SystemOrigin(0)}
		ref := batch.Ref(key("m", fmt.Sprintf("host-%04d", s)))
		v := 50.0
		for i := range benchSamples {
			v = math.Round((v+r.NormFloat64())*100) / 100
			x := &batch.Samples
			x.Series, x.Times, x.Values, x.Flags = append(x.Series, ref), append(x.Times, start+core.Time(i*benchStep)), append(x.Values, v), append(x.Flags, core.Stored|core.HasValue)
		}
		if _, err := db.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return db
}

type storedFacts struct {
	facts
	db *storage.DB
}

func (f storedFacts) Entity(name string, _ *core.Time) (core.Entity, bool, error) {
	e, ok := f.db.Entity(name)
	return e, ok, nil
}

func benchmark(b *testing.B, db *storage.DB, root func() plan.Operator) {
	env := &expr.Env{Zone: time.UTC, ServerZone: time.UTC, Facts: storedFacts{db: db}}
	var rows int
	b.ReportAllocs()
	used := selfmetrics.ProcessorTime()
	for b.Loop() {
		rows = 0
		c := Config{Reader: db, Catalog: db, Metadata: db, Memory: NewMemory(64 << 20), Workers: 2}
		for batch, err := range Run(b.Context(), &plan.Query{Root: root(), Env: env}, c) {
			if err != nil {
				b.Fatal(err)
			}
			rows += batch.Len
		}
	}
	b.ReportMetric(float64(rows), "rows")
	b.ReportMetric(float64(selfmetrics.ProcessorTime()-used)/float64(b.N)/1e6, "cpu-ms/op")
}

func hourly(functions ...string) plan.Operator {
	return by(groupBy(scanOf("m"), []int{plan.ScanEntity, plan.ScanTime}, functions...), 1, dates.Hour)
}

func BenchmarkQueries(b *testing.B) {
	db := stored(b, 100)
	b.Run("avg-hour", func(b *testing.B) { benchmark(b, db, func() plan.Operator { return hourly("avg") }) })
	b.Run("max-hour", func(b *testing.B) { benchmark(b, db, func() plan.Operator { return hourly("max") }) })
	b.Run("five-hour", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator { return hourly("min", "max", "avg", "count", "last") })
	})
	b.Run("p95-hour", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			g := hourly("percentile").(*plan.Group)
			g.Aggregates[0].Percent = 95
			return g
		})
	})
	b.Run("max-entity", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator { return groupBy(scanOf("m"), []int{plan.ScanEntity}, "max") })
	})
	b.Run("avg-period-only", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator { return by(groupBy(scanOf("m"), periodOnly, "avg"), 1, dates.Hour) })
	})
	b.Run("avg-hour-linear", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			g := hourly("avg").(*plan.Group)
			g.Period.Fill = ast.FillLinear
			return g
		})
	})
	b.Run("avg-of-product", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			g := hourly("avg").(*plan.Group)
			g.Aggregates[0].Args[0] = expr.Arithmetic("*", value, expr.Const(column.IntValue(column.Bigint, 2)))
			return g
		})
	})
	above := expr.Compare(">", expr.Input(valueColumn, column.Double), expr.Const(column.FloatValue(column.Double, 130)))
	b.Run("filter", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			s := scanOf("m")
			s.Filter = above
			return s
		})
	})
	b.Run("filter-unordered", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			s := scanOf("m")
			s.Filter, s.Unordered, s.Needs.Text = above, true, false
			return s
		})
	})
	b.Run("all", func(b *testing.B) { benchmark(b, db, func() plan.Operator { return scanOf("m") }) })
	b.Run("sort", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			s := sortBy(pick(scanOf("m"), plan.ScanTime, valueColumn), plan.Key{Expr: place{1, column.Double}, Desc: true})
			return s
		})
	})
	b.Run("top", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator {
			s := sortBy(scanOf("m"), plan.Key{Expr: place{valueColumn, column.Double}, Desc: true})
			s.Keep = 10
			return s
		})
	})
	b.Run("group-by-value", func(b *testing.B) {
		benchmark(b, db, func() plan.Operator { return groupBy(scanOf("m"), []int{valueColumn}, "count(*)") })
	})
}
