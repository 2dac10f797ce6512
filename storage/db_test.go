package storage

import (
	"context"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock ticks a millisecond each time it is read, from a fixed start: tests give the same result every day. The worker reads it as well.
func clock() func() core.Time {
	var ticks atomic.Int64
	return func() core.Time { return storetest.Epoch + core.Time(ticks.Add(1)) }
}

// small are options for tests: small segments, so that a short history has several.
func small() Options {
	return Options{Now: clock(), SegmentBytes: 64 << 10, inline: true}
}

// open opens a database that the end of the test closes.
func open(t testing.TB, fs vfs.FS, opts Options) *DB {
	t.Helper()
	db, _, err := Open(fs, "/data", opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Backend { return open(t, vfs.NewMem(), small()) })
}

func TestHistories(t *testing.T) {
	for seed := range uint64(15) {
		storetest.Histories(t, seed, 120, func() storetest.Backend { return open(t, vfs.NewMem(), small()) })
	}
}

func TestLongHistory(t *testing.T) {
	opts := small()
	opts.Sync = journal.Never
	storetest.Histories(t, 4711, 800, func() storetest.Backend { return open(t, vfs.NewMem(), opts) })
}
