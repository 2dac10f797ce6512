package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/plan"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// tagged is a database of entities with some series each, of n samples each, all of them in files.
func tagged(b *testing.B, entities, series, n int) *storage.DB {
	db, _, err := storage.Open(vfs.NewMem(), "/data", storage.Options{FlushBytes: storage.DefaultFlushBytes})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close(context.Background()) })
	start := iso("2024-03-04T00:00:00Z")
	batch := &core.Batch{Origin: core.SystemOrigin(0)}
	for e := range entities {
		for s := range series {
			k := key("m", fmt.Sprintf("host-%06d", e))
			if series > 1 {
				k = key("m", k.Entity, "n", fmt.Sprint(s))
			}
			ref := batch.Ref(k)
			for i := range n {
				batch.Add(ref, start+core.Time(i*benchStep), float64(i%997)/10)
			}
			if batch.Samples.Len() > 500_000 || e == entities-1 && s == series-1 {
				if _, err := db.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				batch = &core.Batch{Origin: core.SystemOrigin(0)}
			}
		}
	}
	if err := db.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return db
}

// The natural order where entities have one series or several, few samples or many; all rows, and the first ones.
func BenchmarkNaturalOrder(b *testing.B) {
	for _, c := range []struct{ entities, series, samples int }{{1, 100, 8640}, {1, 10_000, 200}, {100_000, 1, 3}, {30_000, 3, 3}, {50, 4, 5000}} {
		b.Run(fmt.Sprintf("%dx%dx%d", c.entities, c.series, c.samples), func(b *testing.B) {
			db := tagged(b, c.entities, c.series, c.samples)
			narrow := func() *plan.Scan {
				s := scanOf("m")
				s.Needs.Text = false
				return s
			}
			b.Run("all", func(b *testing.B) { benchmark(b, db, func() plan.Operator { return narrow() }) })
			b.Run("limit", func(b *testing.B) {
				benchmark(b, db, func() plan.Operator { return &plan.Limit{In: narrow(), Count: 10} })
			})
			b.Run("count", func(b *testing.B) {
				benchmark(b, db, func() plan.Operator {
					s := narrow()
					s.Unordered = true
					return groupBy(s, nil, "count(*)")
				})
			})
		})
	}
}
