package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Writers, a follower of the log and readers at once: the follower sees every batch once and in order, and each writer reads what it wrote.
func TestConcurrent(t *testing.T) {
	const writers, batches = 4, 60
	db := open(t, vfs.NewMem(), Options{SegmentBytes: 64 << 10, RingBytes: 8 << 10})
	stop, cancel := context.WithCancel(t.Context())
	var background sync.WaitGroup
	var followed []core.Position
	followedAll := make(chan struct{})
	background.Go(func() {
		at := core.Position(0)
		for len(followed) < writers*batches {
			if db.Wait(stop, at) != nil {
				return
			}
			for e, err := range db.Tail(stop, at) {
				if err != nil {
					t.Errorf("tail: %v", err)
					return
				}
				followed = append(followed, e.Position)
				at = e.Position
			}
		}
		close(followedAll)
	})
	background.Go(func() {
		for stop.Err() == nil {
			last := ""
			for block, err := range db.Series(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}) {
				if err != nil || !slices.IsSorted(block.Times) || len(block.Times) != len(block.Values) || block.Key.Entity < last {
					t.Errorf("block of %v after %q: %v", block.Key, last, err)
				}
				last = block.Key.Entity
			}
		}
	})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			entity := fmt.Sprint("w", w)
			for i := range batches {
				b := &core.Batch{Messages: []core.Message{{Time: core.Time(i), Entity: entity, Text: fmt.Sprint(i), Flags: core.Default}}}
				b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: entity}), core.Time((i*37)%batches), float64(i))
				r, err := db.Append(t.Context(), b)
				if err != nil || r.Durability != core.Synced {
					t.Errorf("append: %+v, %v", r, err)
					return
				}
				if n := count(t, db, entity); n != i+1 {
					t.Errorf("%s reads %d samples after writing %d", entity, n, i+1)
				}
			}
		})
	}
	all.Wait()
	if !t.Failed() {
		<-followedAll
	}
	cancel()
	background.Wait()
	if !slices.IsSorted(followed) || len(slices.Compact(followed)) != writers*batches {
		t.Errorf("the follower saw %d batches, want %d in order", len(followed), writers*batches)
	}
}

func count(t *testing.T, db *DB, entity string) (n int) {
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: "m", Entities: core.EntityFilter{Names: []string{entity}}, Range: core.AllTime}
	for block, err := range db.Series(t.Context(), q) {
		if err != nil {
			t.Error(err)
		}
		n += len(block.Times)
	}
	return n
}

// A damaged place in the middle of the journal costs what was there and nothing else: the server starts, says so, and check says so.
func TestDamage(t *testing.T) {
	mem := vfs.NewMem()
	const n = 100
	func() {
		db, _, err := Open(mem, "/data", small())
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if _, err := db.Append(t.Context(), sample(i, core.Default|core.HasValue)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	var dumped strings.Builder
	path := filepath.Join("/data", journalDir, segmentName(t, mem))
	if err := Dump(mem, path, &dumped, Outline); err != nil {
		t.Fatal(err)
	}
	var off int64
	_, line, _ := strings.Cut(dumped.String(), "sample 49 ")
	_, line, _ = strings.Cut(line, "\n")
	if _, err := fmt.Sscanf(line, "%d:", &off); err != nil {
		t.Fatalf("no frame of sample 50 in the dump: %v", err)
	}
	f, err := mem.Open(path, vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xff}, off+40); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	if err := Check(t.Context(), mem, "/data", Checking{Out: &found}); err == nil || strings.Count(found.String(), "damaged:") != 1 {
		t.Errorf("check: %v, %q", err, found.String())
	}
	db, report, err := Open(mem, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if len(report.Damage) != 1 || !strings.Contains(report.String(), "checksum") || report.Samples != n-1 {
		t.Errorf("report %v", report)
	}
	if has(t, db, 50) || !has(t, db, 49) || !has(t, db, 51) || !has(t, db, n-1) {
		t.Error("more or less than the damaged batch is gone")
	}
	tailed := 0
	for _, err := range db.Tail(t.Context(), 0) {
		if err != nil {
			t.Fatalf("tail over known damage: %v", err)
		}
		tailed++
	}
	if tailed != n-1 {
		t.Errorf("tail yields %d batches, want %d", tailed, n-1)
	}
}
