package storage

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// mergedFor writes n MiB as a merge does and returns how long that took.
func mergedFor(ctx context.Context, db *DB, n int) (time.Duration, error) {
	began := time.Now()
	err := db.ask(ctx, func(ctx context.Context) error {
		return db.attentive(ctx, func(w io.Writer) error {
			for range n * 16 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return err
				}
			}
			return nil
		})(io.Discard)
	})
	return time.Since(began), err
}

// TestMergeRate: ten MiB at 2 MiB a second take five seconds, and no time without a bound.
func TestMergeRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for rate, want := range map[int64]time.Duration{2 << 20: 5 * time.Second, DefaultMergeRate: 10 * time.Second / 64, -1: 0} {
			opts := small()
			opts.MergeRate = rate
			db := open(t, vfs.NewMem(), opts)
			took, err := mergedFor(t.Context(), db, 10)
			if err != nil || took.Round(time.Millisecond) != want.Round(time.Millisecond) {
				t.Errorf("10 MiB at %d bytes a second took %v, %v, want %v", rate, took, err, want)
			}
		}
	})
}

// TestFlushBeforeMerge: memory that is full while a merge waits is written at once.
func TestFlushBeforeMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := small()
		opts.MergeRate, opts.FlushBytes = 1<<20, 16<<10
		db := open(t, vfs.NewMem(), opts)
		done := make(chan error, 1)
		go func() {
			_, err := mergedFor(t.Context(), db, 60)
			done <- err
		}()
		time.Sleep(10 * time.Second) // of the bubble: the merge is under way
		began := time.Now()
		for i := range 200 {
			if _, err := db.Append(t.Context(), wide(i)); err != nil {
				t.Fatalf("append %d: %v", i, err)
			}
		}
		synctest.Wait()
		if last := db.flusher.last.Load(); last == nil || time.Since(began) > time.Second {
			t.Errorf("flushed %v while a merge waits, and writes took %v", last, time.Since(began))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestMergeEndsWithItsContext: who gives up does not wait for the pace.
func TestMergeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := small()
		opts.MergeRate = 1 << 10
		db := open(t, vfs.NewMem(), opts)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		took, err := mergedFor(ctx, db, 5)
		if !errors.Is(err, context.DeadlineExceeded) || took > 4*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if err := db.Flush(t.Context()); err != nil { // the worker is free
			t.Error(err)
		}
	})
}
