package main

import (
	"context"
	"iter"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// What is read in either way counts, from memory and from files, and the counter hides none of the abilities of the store.
func TestReadsAreCounted(t *testing.T) {
	db, _, err := storage.Open(vfs.NewMem(), "/data", storage.Options{Sync: journal.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	b := &core.Batch{}
	for i := range 100 {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e"}), core.Time(i*1000), float64(i))
	}
	if _, err := db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var r core.Reader = &countedReader{DB: db}
	scanner, able := r.(core.Parallel)
	if !able {
		t.Fatal("the counter hides Select")
	}
	q := core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}
	scan := func() {
		err := core.Scan(t.Context(), scanner, q, func(_ int, _ core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
			for _, err := range pieces {
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range r.Series(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
	}
	scan()
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	scan() // by the statistics of the block
	counts := r.(*countedReader)
	if series, samples := counts.series.Load(), counts.samples.Load(); series != 3 || samples != 300 {
		t.Errorf("%d reads of %d samples, want 3 of 300", series, samples)
	}
}
