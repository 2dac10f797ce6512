package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// soakTime is how long a soak takes: TIDEMARK_SOAK, a duration.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TIDEMARK_SOAK")
	if text == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TIDEMARK_SOAK: %v", err)
	}
	return d
}

// TestSoak has a writer, which goes back in time, overwrites, deletes and renames, beside readers of everything, with files so small that the worker always
// has something to do. What there is stays within bounds, in memory, on the disk and in goroutines, and in the end it is what the oracle says.
func TestSoak(t *testing.T) {
	dir := t.TempDir()
	opts := small()
	opts.FlushBytes, opts.Sync, opts.Reserve = 128<<10, journal.Never, -1
	db := openAt(t, dir, opts)
	ctx, cancel := context.WithTimeout(t.Context(), soakTime(t))
	defer cancel()
	var readers sync.WaitGroup
	for n := range 2 {
		readers.Go(func() { readEverything(ctx, t, db, uint64(n)) })
	}
	oracle := memstore.New()
	ours, theirs := storetest.NewGenerator(99), storetest.NewGenerator(99)
	r := rand.New(rand.NewPCG(99, 1))
	var first, last footprint
	applied := 0
	for start := time.Now(); ctx.Err() == nil && !t.Failed(); applied++ {
		b, mine := theirs.Next(), ours.Next()
		if applied%4 == 0 { // much in order, so that there is something to flush
			seq := r.Uint64()
			b, mine = bulk(applied, seq), bulk(applied, seq)
		}
		receipt, err := db.Append(t.Context(), b)
		mine.Received = receipt.Received
		if want := oracle.Apply(t.Context(), core.Entry{Position: receipt.Position, Batch: mine}); (err == nil) != (want == nil) {
			t.Fatalf("append: %v, the oracle says %v", err, want)
		}
		if applied%256 == 255 {
			last = measure(t, db, dir)
			if first == (footprint{}) && time.Since(start) > soakTime(t)/4 {
				first = last
			}
			if err := last.within(); err != nil {
				t.Error(err)
			}
		}
	}
	cancel()
	readers.Wait()
	t.Logf("%d batches; at first %+v, at last %+v", applied, first, last)
	if first != (footprint{}) && last.goroutines > first.goroutines+10 {
		t.Errorf("goroutines grew from %d to %d", first.goroutines, last.goroutines)
	}
	storetest.Compare(t, db, oracle)
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.Compare(t, db, oracle)
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	storetest.Compare(t, openAt(t, dir, opts), oracle)
}

// openAt opens a database in a directory of the machine; the end of the test closes it, unless that was done.
func openAt(t *testing.T, dir string, opts Options) *DB {
	t.Helper()
	db, report, err := Open(vfs.OS{}, dir, opts)
	if err != nil || report.Damaged() {
		t.Fatalf("open: %v %v", err, report)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// bulk is a batch of samples of a few series in the order of time, the same ones again after a while.
func bulk(n int, seed uint64) *core.Batch {
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	r := rand.New(rand.NewPCG(seed, 7))
	for s := range 20 {
		ref := b.Ref(core.SeriesKey{Metric: "bulk", Entity: fmt.Sprint("h", s)})
		for i := range 20 {
			b.Add(ref, core.Time((n*20+i)%20_000)*1000, float64(r.IntN(1000))/10)
		}
	}
	return b
}

// readEverything asks for all there is until ctx ends.
func readEverything(ctx context.Context, t *testing.T, db *DB, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	for ctx.Err() == nil {
		var err error
		q := core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime, NewestFirst: r.IntN(2) == 0}
		switch r.IntN(4) {
		case 0:
			for _, e := range db.Series(ctx, q) {
				err = errors.Join(err, e)
			}
		case 1:
			for _, e := range db.Keys(ctx, q) {
				err = errors.Join(err, e)
			}
		case 2:
			for _, e := range db.Messages(ctx, core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
				err = errors.Join(err, e)
			}
		case 3:
			for _, e := range db.Properties(ctx, core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
				err = errors.Join(err, e)
			}
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("read: %v", err)
			return
		}
	}
}

// footprint is what a database takes.
type footprint struct {
	files, goroutines int
	heap              uint64
	views             int64
}

func measure(t *testing.T, db *DB, dir string) footprint {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, dataDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{len(files), runtime.NumGoroutine(), m.HeapAlloc, db.views.live.Load() + db.msgs.views.live.Load()}
}

// Bounds of a soak: eight kinds of files with some tiers each, and what a merge makes before it is shown; the oracle and the garbage are in the heap too.
const (
	soakFiles = 160
	soakHeap  = 512 << 20
	soakViews = 64
)

func (f footprint) within() error {
	if f.files > soakFiles || f.heap > soakHeap || f.views > soakViews {
		return fmt.Errorf("%+v is more than %d files, %d bytes of heap, %d views", f, soakFiles, soakHeap, soakViews)
	}
	return nil
}
