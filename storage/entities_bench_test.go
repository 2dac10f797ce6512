package storage

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// BenchmarkOpenEntities opens a database with 20,000 entities (or TIDEMARK_BENCH_ENTITIES), all of it in files: as their first records made them, and each with a label and three tags. B/entity is
// what stays on the heap.
func BenchmarkOpenEntities(b *testing.B) {
	for _, one := range []struct {
		name string
		add  func(batch *core.Batch, name string, i int)
	}{
		{"plain", func(batch *core.Batch, name string, i int) { // without samples: what series cost is in the index
			batch.Properties = append(batch.Properties, core.Property{PropertyKey: core.PropertyKey{Entity: name, Type: core.EntityTagsType}, Flags: core.Default})
		}},
		{"tagged", func(batch *core.Batch, name string, i int) {
			batch.Documents = append(batch.Documents, core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPatch,
				Body: fmt.Appendf(nil, `{"label":"Sensor %d","tags":{"site":"plant-%02d","line":"line-%03d","serial":"SN%08x"}}`, i, i%40, i%900, uint32(i)*2654435761)})
		}},
	} {
		b.Run(one.name, func(b *testing.B) { openEntities(b, one.add) })
	}
}

func openEntities(b *testing.B, add func(batch *core.Batch, name string, i int)) {
	entities, each := seeds(b, "TIDEMARK_BENCH_ENTITIES", 20_000), 1000
	dir := b.TempDir()
	opts := Options{Sync: journal.Never}
	db, _, err := Open(vfs.OS{}, dir, opts)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for from := 0; from < entities; from += each {
		batch := &core.Batch{Origin: core.SystemOrigin(0)}
		for i := from; i < from+each; i++ {
			add(batch, fmt.Sprintf("sensor-%07d", i), i)
		}
		if _, err := db.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("stored in %v", time.Since(began))
	if err := db.Compact(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	db = nil
	before := heap()
	for b.Loop() {
		db, report, err := Open(vfs.OS{}, dir, opts)
		if err != nil || report.Damaged() {
			b.Fatal(err, report)
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/float64(entities), "B/entity")
		if err := db.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e9/float64(entities), "ns/entity")
}
