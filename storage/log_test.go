package storage

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

func TestLog(t *testing.T) {
	storetest.RunLog(t, func(t *testing.T) storetest.LogBackend { return open(t, vfs.NewMem(), small()) })
}

func sample(i int, flags core.Flags) *core.Batch {
	b := &core.Batch{Origin: core.Origin{User: "me", Address: "::1", Door: core.DoorHTTP,
		Grants: core.Grants{Roles: core.DataWrite, WriteGroups: []string{"g"}}}}
	b.Samples.Flags[b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e"}), core.Time(i), float64(i))] = flags
	return b
}

// A reader that is behind the ring reads from disk, and goes over to memory without a gap or a repetition.
func TestTailBehindTheRing(t *testing.T) {
	opts := small()
	opts.RingBytes = 4 << 10
	db := open(t, vfs.NewMem(), opts)
	const n = 500
	for i := range n {
		if _, err := db.Append(t.Context(), sample(i, core.Default|core.HasValue)); err != nil {
			t.Fatal(err)
		}
	}
	if floor := db.ring.floor; floor < n/2 {
		t.Fatalf("ring begins at %d: the test needs a reader behind it", floor)
	}
	for _, from := range []int{0, 1, n / 2, int(db.ring.floor) - 1, int(db.ring.floor), n - 1} {
		next := from
		for e, err := range db.Tail(t.Context(), core.Position(from)) {
			if err != nil {
				t.Fatal(err)
			}
			if got := int(e.Batch.Samples.Times[0]); got != next || e.Position != core.Position(next+1) {
				t.Fatalf("from %d: sample %d at position %d, want %d", from, got, e.Position, next)
			}
			if o := e.Batch.Origin; o.User != "me" || o.Door != core.DoorHTTP ||
				o.Address != "::1" || o.Grants.Roles != core.DataWrite || len(o.Grants.WriteGroups) != 1 {
				t.Fatalf("origin %+v", o)
			}
			next++
		}
		if next != n {
			t.Fatalf("from %d: tail ended before %d", from, next)
		}
	}
}

// What Tail shows of stored batches is the same from memory and, after a restart, from disk.
func TestTailAfterRestart(t *testing.T) {
	fs := vfs.NewMem()
	var before []string
	var end core.Position
	func() {
		db, _, err := Open(fs, "/data", small())
		if err != nil {
			t.Fatal(err)
		}
		g := storetest.NewGenerator(5)
		for range 60 {
			b := g.Next()
			for i := range b.Samples.Flags {
				b.Samples.Flags[i] |= core.Stored
			}
			b.Messages, b.Properties = nil, nil
			if _, err := db.Append(t.Context(), b); err != nil && core.CodeOf(err) != core.Invalid {
				t.Fatal(err)
			}
		}
		before = normal(storetest.TailLines(t.Context(), db, 0))
		end = db.End()
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	db := open(t, fs, small())
	after := normal(storetest.TailLines(t.Context(), db, 0))
	if !slices.Equal(before, after) {
		for i := range min(len(before), len(after)) {
			if before[i] != after[i] {
				t.Fatalf("batch %d\n before %s\n after  %s", i, before[i], after[i])
			}
		}
		t.Fatalf("%d batches before, %d after", len(before), len(after))
	}
	if db.End() != end {
		t.Errorf("end %d after the restart, %d before", db.End(), end)
	}
}

// normal drops batches without a record, which are not stored.
func normal(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, ": deletes [] []") })
}

// Positions of batches that only lived in memory must not be given again after a restart: a rule engine may have passed them.
func TestPositionsAreNotGivenTwice(t *testing.T) {
	fs := vfs.NewMem()
	seen := map[core.Position]bool{}
	last := core.Position(0)
	for life := range 4 {
		db, _, err := Open(fs, "/data", small())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			flags := core.Flags(core.ForRules)
			if life%2 == 1 && i == 0 {
				flags |= core.Stored
			}
			r, err := db.Append(t.Context(), sample(i, flags))
			if err != nil {
				t.Fatal(err)
			}
			if seen[r.Position] || r.Position <= last {
				t.Fatalf("life %d: position %d after %d", life, r.Position, last)
			}
			seen[r.Position], last = true, r.Position
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The receive time never decreases, also over a restart with a clock that was set back.
func TestReceiveTimeNeverDecreases(t *testing.T) {
	fs := vfs.NewMem()
	last := core.Time(0)
	for life, hands := range [][]core.Time{{1000, 2000, 1500, 1500, 3000}, {10, 2500, 4000}} {
		opts := small()
		opts.Now = func() core.Time { now := hands[0]; hands = hands[1:]; return now }
		db, _, err := Open(fs, "/data", opts)
		if err != nil {
			t.Fatal(err)
		}
		for len(hands) > 0 {
			r, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue))
			if err != nil || r.Received < last {
				t.Fatalf("life %d: received %d after %d, %v", life, r.Received, last, err)
			}
			last = r.Received
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if last != 4000 {
		t.Errorf("last receive time %d, want 4000", last)
	}
}

func TestClosed(t *testing.T) {
	db := open(t, vfs.NewMem(), small())
	if _, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range []core.Flags{core.Default, core.ForRules} {
		if _, err := db.Append(t.Context(), sample(1, flags)); core.CodeOf(err) != core.Unavailable {
			t.Errorf("append to a closed database: %v", err)
		}
	}
}

func TestLocked(t *testing.T) {
	fs := vfs.NewMem()
	open(t, fs, small())
	if _, _, err := Open(fs, "/data", small()); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("second open: %v", err)
	}
}

func TestValidateListsEveryFault(t *testing.T) {
	err := Options{Sync: 9, SegmentBytes: 3, CacheBytes: 1, RingBytes: -1}.Validate()
	for _, want := range []string{"sync mode 9", "segment size 3", "cache of 1 bytes", "ring of -1 bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("default options: %v", err)
	}
}

func TestDurability(t *testing.T) {
	for mode, want := range map[journal.Mode]core.Durability{journal.Always: core.Synced, journal.Interval: core.Journaled, journal.Never: core.Journaled} {
		opts := small()
		opts.Sync = mode
		db := open(t, vfs.NewMem(), opts)
		if r, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue)); err != nil || r.Durability != want {
			t.Errorf("mode %d: %v, %v, want %v", mode, r.Durability, err, want)
		}
		if s := db.Status(); s.Series != 1 || s.End != 1 || s.Ring == 0 || s.Journal.Unavailable != nil {
			t.Errorf("status %+v", s)
		}
	}
}

// An idle database writes nothing.
func TestIdleWritesNothing(t *testing.T) {
	mem := vfs.NewMem()
	mem.Record()
	db := open(t, mem, small())
	if _, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(t.Context(), sample(1, core.ForRules)); err != nil {
		t.Fatal(err)
	}
	ops := mem.Ops()
	for i := range 1000 {
		if _, err := db.Append(t.Context(), sample(i, core.ForRules)); err != nil {
			t.Fatal(err)
		}
	}
	if got := mem.Ops(); got != ops {
		t.Errorf("%d operations for batches that are not to be stored", got-ops)
	}
}
