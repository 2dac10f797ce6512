package storage

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// benchCatalog has 100,000 entities with tags and a property record each, in files, and open again.
func benchCatalog(b *testing.B) *DB {
	fs, opts := vfs.NewMem(), Options{Sync: journal.Never}
	db, _, err := Open(fs, "/data", opts)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < 100_000; i += 1000 {
		batch := &core.Batch{}
		for at := i; at < i+1000; at++ {
			name := fmt.Sprintf("server-%06d", at)
			batch.Documents = append(batch.Documents, put(core.DocEntity, name, fmt.Sprintf(`{"label":"Server %d","tags":{"site":"s%d"}}`, at, at%10)))
			batch.Properties = append(batch.Properties, core.Property{PropertyKey: core.PropertyKey{Entity: name, Type: "cpu"}, Time: 1000,
				Tags: core.Tags{{Name: "cores", Value: fmt.Sprint(at % 64)}, {Name: "model", Value: "EPYC"}}, Flags: core.Default})
		}
		appendTo(b, db, batch)
	}
	if err := db.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	db, report, err := Open(fs, "/data", opts)
	if err != nil || report.Damaged() {
		b.Fatal(err, report)
	}
	b.Logf("open: %v", report.Duration)
	b.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return db
}

func BenchmarkCatalog(b *testing.B) {
	db := benchCatalog(b)
	b.Run("list 100,000 entities", func(b *testing.B) {
		for b.Loop() {
			for _, err := range db.Entities(b.Context(), core.MetaQuery{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	property := func(b *testing.B, entities int) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			q := core.PropertyQuery{Scope: core.AllEntities, Type: "cpu", Range: core.AllTime}
			q.Entities.Names = []string{fmt.Sprintf("server-%06d", i*7919%entities)}
			n := 0
			for _, err := range db.Properties(b.Context(), q) {
				if n++; err != nil {
					b.Fatal(err)
				}
			}
			if n != 1 {
				b.Fatal(n)
			}
		}
	}
	b.Run("properties of an entity, of 100", func(b *testing.B) { property(b, 100) })
	b.Run("properties of an entity, of all", func(b *testing.B) { property(b, 100_000) })
	b.Run("properties of all", func(b *testing.B) {
		for b.Loop() {
			for _, err := range db.Properties(b.Context(), core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
