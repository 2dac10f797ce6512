package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// faultyDisk fails one operation, of those that match while it is armed.
type faultyDisk struct {
	armed atomic.Bool
	seen  atomic.Int64
	fired atomic.Bool
	kind  atomic.Value // vfs.Kind of what failed
	n     int64        // that fails, among those seen while it is armed
	err   error
	match func(vfs.Op) bool
}

func (d *faultyDisk) inject(op vfs.Op) error {
	if !d.armed.Load() || !d.match(op) || d.seen.Add(1)-1 != d.n {
		return nil
	}
	d.kind.Store(op.Kind)
	d.fired.Store(true)
	return d.err
}

// fed is a database and the oracle, which get the same batches.
type fed struct {
	*moving
	oracle      *memstore.Store
	ours, their *storetest.Generator
}

func feed(t *testing.T, fs vfs.FS, seed uint64) *fed {
	opts := crashOptions()
	db, _, err := Open(fs, "/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	return &fed{&moving{DB: db, t: t, fs: fs, opts: opts}, memstore.New(), storetest.NewGenerator(seed), storetest.NewGenerator(seed)}
}

// append appends some random batches, each of which must be answered as the oracle does.
func (f *fed) append(n int) {
	f.t.Helper()
	for range n {
		r, err := f.DB.Append(f.t.Context(), f.their.Next())
		b := f.ours.Next()
		b.Received = r.Received
		if want := f.oracle.Apply(f.t.Context(), core.Entry{Position: r.Position, Batch: b}); (err == nil) != (want == nil) {
			f.t.Fatalf("append: %v, the oracle says %v", err, want)
		}
	}
}

// TestFaultsWhileMoving makes one in seven changes of the disk (or one in TIDEMARK_FAULT_STEP) during a flush and during a merge fail once, in turn. The failure is reported, what is in the database
// is read and added to as before, the next try succeeds, and nothing is missing after a restart, nor is a file left that nobody needs.
func TestFaultsWhileMoving(t *testing.T) {
	t.Parallel()
	tasks := map[string]func(*fed) error{
		"Flush":   func(f *fed) error { return f.Flush(t.Context()) },
		"Compact": func(f *fed) error { return f.Compact(t.Context()) },
	}
	for name, task := range tasks {
		for _, fault := range []error{vfs.ErrIO, vfs.ShortWrite{N: 13, Err: vfs.ErrNoSpace}} {
			t.Run(name+"/"+fault.Error(), func(t *testing.T) {
				step := int64(seeds(t, "TIDEMARK_FAULT_STEP", 7))
				for n := int64(0); faultyTask(t, n, fault, task); n += step {
				}
			})
		}
	}
}

// faultyTask reports whether there was an n-th change that could fail.
func faultyTask(t *testing.T, n int64, fault error, task func(*fed) error) bool {
	mem := vfs.NewMem()
	disk := &faultyDisk{n: n, err: fault, match: func(op vfs.Op) bool { return op.Kind.Changes() }}
	f := feed(t, vfs.Fault(mem, disk.inject), 3)
	f.append(12)
	f.flush()
	f.append(6)
	disk.armed.Store(true)
	err := task(f)
	disk.armed.Store(false)
	if !disk.fired.Load() {
		if err != nil {
			t.Errorf("without a fault: %v", err)
		}
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
		return false
	}
	// The journal recovers from a failed sync by itself, and what cannot be removed is of no use to anyone.
	if err != nil && !errors.Is(err, fault) && !strings.Contains(err.Error(), fault.Error()) {
		t.Errorf("change %d: %v does not say what failed", n, err)
	}
	storetest.Compare(t, f.DB, f.oracle)
	f.append(3)
	storetest.Compare(t, f.DB, f.oracle)
	if err := task(f); err != nil {
		t.Errorf("change %d: the next try: %v", n, err)
	}
	storetest.Compare(t, f.DB, f.oracle)
	if disk.kind.Load() != vfs.OpRemove { // what could not be removed goes with the next start
		onlyLive(t, f.DB, mem)
	}
	f.reopen()
	onlyLive(t, f.DB, mem)
	storetest.Compare(t, f.DB, f.oracle)
	if err := f.Close(context.Background()); err != nil {
		t.Errorf("change %d: close: %v", n, err)
	}
	if t.Failed() {
		t.Fatalf("%v at change %d", fault, n)
	}
	return true
}

// onlyLive fails the test when the data directory has files that the manifest does not name.
func onlyLive(t *testing.T, db *DB, fs vfs.FS) {
	t.Helper()
	live := map[string]bool{}
	for _, s := range db.flusher.shelves {
		for _, e := range s.entries() {
			live[e.base()] = true
		}
	}
	list, err := fs.List("/data/" + dataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if !live[info.Name] {
			t.Errorf("%s is left over", info.Name)
		}
	}
}

// TestFaultsOfOpen makes one in three operations of Open fail once: it opens without what could not be read and says so, or says why it does not open; when the fault
// is gone everything is there.
func TestFaultsOfOpen(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	f := feed(t, mem, 5)
	f.append(20)
	f.flush()
	f.append(10)
	f.flush()
	f.append(5)
	if err := f.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for n := int64(0); ; n += 3 {
		left := mem.Clone()
		disk := &faultyDisk{n: n, err: vfs.ErrIO, match: func(vfs.Op) bool { return true }}
		disk.armed.Store(true)
		db, report, err := Open(vfs.Fault(left, disk.inject), "/data", crashOptions())
		disk.armed.Store(false)
		if !disk.fired.Load() {
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err == nil {
			if err := db.Close(context.Background()); err != nil {
				t.Errorf("operation %d: close: %v", n, err)
			}
			if report.Damaged() {
				continue // a file that could not be read was set aside, and the report says so
			}
		} else if !errors.Is(err, vfs.ErrIO) {
			t.Errorf("operation %d: %v does not say what failed", n, err)
		}
		db, report, err = Open(left, "/data", crashOptions())
		if err != nil || report.Damaged() {
			t.Fatalf("operation %d: opened again: %v %v", n, err, report)
		}
		storetest.Compare(t, db, f.oracle)
		if err := db.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkerRecovers has the disk fail for a while as the worker wants to write what came in: writers go on until memory is full, then they are told, and
// when the fault is gone the worker goes on by itself.
func TestWorkerRecovers(t *testing.T) {
	for _, one := range []struct {
		fault error
		code  core.Code
	}{{vfs.ErrIO, core.Unavailable}, {vfs.ErrNoSpace, core.NoSpace}} {
		synctest.Test(t, func(t *testing.T) { workerRecovers(t, one.fault, one.code) })
	}
}

func workerRecovers(t *testing.T, fault error, code core.Code) {
	mem := vfs.NewMem()
	var broken atomic.Bool
	fs := vfs.Fault(mem, func(op vfs.Op) error {
		if broken.Load() && op.Kind == vfs.OpCreate && strings.Contains(op.Path, "/"+dataDir+"/") {
			return fault
		}
		return nil
	})
	opts := small()
	opts.FlushBytes, opts.Reserve = 16<<10, -1
	db := open(t, fs, opts)
	acked, refused := map[int]bool{}, 0
	write := func(i int) error {
		_, err := db.Append(t.Context(), wide(i))
		if err == nil {
			acked[i] = true
		}
		return err
	}
	broken.Store(true)
	i := 0
	for ; refused < 3 && i < 5000; i++ {
		if err := write(i); err != nil {
			if refused++; core.CodeOf(err) != code {
				t.Fatalf("append %d: %v has code %v, want %v", i, err, core.CodeOf(err), code)
			}
		}
	}
	if refused == 0 {
		t.Fatal("memory takes everything while nothing can be written")
	}
	if n := db.unwritten(); n > 2*maxFull*opts.FlushBytes {
		t.Errorf("%d bytes wait in memory", n)
	}
	broken.Store(false)
	time.Sleep(retryFlush + time.Millisecond)
	synctest.Wait()
	if failure := db.flusher.failure.Load(); failure != nil {
		t.Errorf("the worker did not try again: %v", *failure)
	}
	if err := write(i); err != nil {
		t.Errorf("append when the fault is gone: %v", err)
	}
	for i := range acked {
		if !has(t, db, i) {
			t.Errorf("sample %d was acknowledged and is gone", i)
		}
	}
}

// wide is sample i in a batch that takes some room in memory.
func wide(i int) *core.Batch {
	b := sample(i, core.Default|core.HasValue)
	b.Samples.Texts = nil
	b.Messages = append(b.Messages, core.Message{Time: core.Time(i), Entity: "e", Type: "t", Text: fmt.Sprintf("%0500d", i), Flags: core.Default})
	return b
}

// noise is sample i in a batch that does not pack.
func noise(i int) *core.Batch {
	b := sample(i, core.Default|core.HasValue)
	r := rand.New(rand.NewPCG(uint64(i), 2))
	text := make([]byte, 2000)
	for at := range text {
		text[at] = byte('!' + r.IntN(90))
	}
	b.Messages = append(b.Messages, core.Message{Time: core.Time(i), Entity: "e", Type: "t", Text: string(text), Flags: core.Default})
	return b
}
