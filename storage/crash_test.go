package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// seeds is a number that the environment can raise.
func seeds(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// step is one append of a history: what was answered, and how many operations the disk had seen by then.
type step struct {
	position core.Position
	received core.Time
	ops      int
	synced   core.Position // all up to here was durable by then
	err      error
}

// life is a history on a disk that remembers every operation.
type life struct {
	seed  uint64
	mode  journal.Mode
	mem   *vfs.Mem
	steps []step
	moves moves
}

// moves says whether the state is moved to files in a history.
type moves int

const (
	staying    moves = iota // in the journal alone
	movingOn                // flushed, merged and opened anew at random
	movingMuch              // likewise, after most of the appends
)

// crashesPerHistory spreads the cost of a history over several crashes.
const crashesPerHistory = 10

// TestCrash stops the world after some operation on the disk, keeps of the unsynced rest what a power cut or the end of the process keeps, and opens
// again. What was acknowledged must be there, as far as the mode promises, in the order it was in, and nothing else than a beginning of what was
// tried.
func TestCrash(t *testing.T) {
	t.Parallel()
	total := seeds(t, "TIDEMARK_CRASH_SEEDS", 60)
	for seed := 0; seed*crashesPerHistory < total && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 77))
		l := record(t, uint64(seed), 40, moves(seed%2))
		for range min(crashesPerHistory, total-seed*crashesPerHistory) {
			l.crash(t, r.IntN(l.mem.Ops()+1), ending(r.IntN(2)), r)
		}
	}
}

// TestCrashEveryPrefix ends the world in both ways after every single operation of a history.
func TestCrashEveryPrefix(t *testing.T) {
	t.Parallel()
	for seed := 0; seed < seeds(t, "TIDEMARK_CRASH_PREFIX_SEEDS", 1) && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 78))
		l := record(t, uint64(seed), 40, staying)
		for n := range l.mem.Ops() + 1 {
			l.crash(t, n, killed, r)
			l.crash(t, n, powerCut, r)
		}
	}
}

// TestCrashWhileMoving cuts the power after every single operation of short histories in which the state moves to files: each write, sync, rename and
// removal of flushes, of merges, of the manifest, and of what the next start cleans up.
func TestCrashWhileMoving(t *testing.T) {
	t.Parallel()
	for seed := 0; seed < seeds(t, "TIDEMARK_CRASH_PREFIX_SEEDS", 1) && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 79))
		l := record(t, uint64(seed)*3, 5, movingMuch) // mode always
		for n := range l.mem.Ops() + 1 {
			l.crash(t, n, powerCut, r)
		}
	}
}

// record runs a random history of appends, in a mode that depends on the seed. In the mode with an interval it has a clock of its own; the state does not
// move then, since what unpacks files outlives such a clock.
func record(t *testing.T, seed uint64, appends int, how moves) life {
	l := life{seed: seed, mode: journal.Mode(seed % 3), mem: vfs.NewMem(), moves: how}
	l.mem.Record()
	switch {
	case l.mode != journal.Interval:
		l.live(t, appends, func() {})
	case how == staying:
		synctest.Test(t, func(t *testing.T) {
			l.live(t, appends, func() { time.Sleep(time.Second); synctest.Wait() })
		})
	default:
		l.mode = journal.Always
		l.live(t, appends, func() {})
	}
	return l
}

// live is the history. Time passes now and then.
func (l *life) live(t *testing.T, appends int, pass func()) {
	opts := crashOptions()
	opts.Sync, opts.SyncInterval = l.mode, time.Second
	db, _, err := Open(l.mem, "/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	m := &moving{DB: db, t: t, fs: l.mem, opts: opts}
	g, r := storetest.NewGenerator(l.seed), rand.New(rand.NewPCG(l.seed, 80))
	for i := range appends {
		b := g.Next()
		receipt, err := m.DB.Append(t.Context(), b)
		if i%7 == 6 {
			pass()
		}
		l.steps = append(l.steps, step{receipt.Position, b.Received, l.mem.Ops(), core.Position(m.journal.Synced()), err})
		l.move(m, r)
	}
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// move moves the state, or does not.
func (l *life) move(m *moving, r *rand.Rand) {
	if l.moves == staying || l.moves == movingOn && r.IntN(4) > 0 {
		return
	}
	switch r.IntN(7) {
	case 0, 1, 2:
		m.flush()
	case 3, 4:
		m.compact()
	case 5:
		m.flush()
		m.reopen()
	case 6:
		m.reopen()
	}
}

// crashOptions are those of a history that is cut short, and of those that open what is left of it.
func crashOptions() Options {
	opts := small()
	opts.SegmentBytes, opts.Reserve = 16<<10, -1
	return opts
}

// ending is how the world ends.
type ending int

const (
	killed   ending = iota // the process ends: nothing that was written is lost
	powerCut               // what was not synced is lost, kept or torn
)

// crash ends the world after n operations and verifies what is left.
func (l life) crash(t *testing.T, n int, how ending, r *rand.Rand) {
	t.Helper()
	if t.Failed() {
		return
	}
	left, safe := l.mem.Prefix(n), core.Position(0)
	if how == powerCut {
		left = left.Crash(r)
	}
	for _, s := range l.steps {
		if s.ops > n {
			break
		}
		if safe = max(safe, s.synced); s.err == nil && (how == killed || l.mode == journal.Always) {
			safe = max(safe, s.position)
		}
	}
	defer func() { // verify may end the test
		if t.Failed() {
			t.Logf("seed %d, mode %d, ending %d, after %d of %d operations", l.seed, l.mode, how, n, l.mem.Ops())
		}
	}()
	l.verify(t, left, safe)
}

// verify opens what a crash left and compares it with the oracle, fed as far as the log reaches, which must be to safe at least. Then the database
// must be as good as new.
func (l life) verify(t *testing.T, left *vfs.Mem, safe core.Position) {
	t.Helper()
	opts := crashOptions()
	db, report, err := Open(left, "/data", opts)
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	m := &moving{DB: db, t: t, fs: left, opts: opts}
	defer func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	if report.Damaged() || len(report.Warnings) > 0 {
		t.Errorf("damage after a crash: %v", report)
	}
	oracle := memstore.New()
	g := storetest.NewGenerator(l.seed)
	last := core.Position(0)
	for i, s := range l.steps {
		b := g.Next()
		// Refused batches, those of which nothing is stored, and replays, which are acknowledged at the end of the log, left nothing.
		replay := s.position <= last
		last = max(last, s.position)
		if s.err != nil || storedPart(b) == nil || replay {
			continue
		}
		if s.position > db.End() {
			if s.position <= safe {
				t.Errorf("batch %d at position %d was safe and is gone; the log ends at %d", i, s.position, db.End())
			}
			break
		}
		b.Received = s.received
		if err := oracle.Apply(t.Context(), core.Entry{Position: s.position, Batch: b}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Compare(t, m, oracle)
	l.onward(t, m, oracle)
}

// onward appends, flushes and opens again what came through a crash.
func (l life) onward(t *testing.T, m *moving, oracle *memstore.Store) {
	t.Helper()
	b, again := sample(7, core.Default|core.HasValue), sample(7, core.Default|core.HasValue)
	r, err := m.DB.Append(t.Context(), b)
	if err != nil {
		t.Errorf("append after the crash: %v", err)
		return
	}
	again.Received = r.Received
	if err := oracle.Apply(t.Context(), core.Entry{Position: r.Position, Batch: again}); err != nil {
		t.Fatal(err)
	}
	storetest.Compare(t, m, oracle)
	if l.moves != staying {
		m.flush()
		storetest.Compare(t, m, oracle)
		m.reopen()
		storetest.Compare(t, m, oracle)
	}
}

// TestFaults makes each operation on the disk fail once, in turn and in several ways. Append must answer with the right code, recover by itself,
// and nothing that was acknowledged may be missing after a restart.
func TestFaults(t *testing.T) {
	for _, fault := range []struct {
		err  error
		code core.Code
	}{
		{vfs.ErrIO, core.Unavailable},
		{vfs.ErrNoSpace, core.NoSpace},
		{vfs.ShortWrite{N: 13, Err: vfs.ErrNoSpace}, core.NoSpace},
	} {
		for n := int64(0); ; n++ {
			injector := &vfs.FailAt{N: n, Err: fault.err, Match: func(op vfs.Op) bool { return op.Kind.Changes() }}
			mem := vfs.NewMem()
			acked := faultyLife(t, vfs.Fault(mem, injector.Inject), fault.code)
			if t.Failed() {
				t.Fatalf("%v at change %d", fault.err, n)
			}
			db, report, err := Open(mem, "/data", small())
			if err != nil {
				t.Fatalf("%v at change %d: open: %v", fault.err, n, err)
			}
			if report.Damaged() {
				t.Errorf("%v at change %d: %v", fault.err, n, report)
			}
			for at := range acked {
				if !has(t, db, at) {
					t.Errorf("%v at change %d: sample %d was acknowledged and is gone", fault.err, n, at)
				}
			}
			if err := db.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !injector.Fired() {
				break
			}
		}
	}
}

// faultyLife appends samples 0, 1, 2... until the disk has recovered, and returns which were acknowledged.
func faultyLife(t *testing.T, fs vfs.FS, code core.Code) map[int]bool {
	acked := map[int]bool{}
	opts := small()
	opts.SegmentBytes = 16 << 10
	db, _, err := Open(fs, "/data", opts)
	if err != nil {
		return acked // refused as a whole: nothing was acknowledged
	}
	good := 0
	for i := 0; good < 20; i++ {
		b := sample(i, core.Default|core.HasValue)
		b.Origin.Address = fmt.Sprintf("%0900d", i*i) // some segments
		_, err := db.Append(t.Context(), b)
		if err == nil {
			acked[i] = true
			good++
			continue
		}
		if got := core.CodeOf(err); got != code && got != core.Unavailable {
			t.Errorf("append %d: %v has code %v, want %v", i, err, got, code)
		}
		if i > 40 {
			t.Errorf("append %d still fails: %v", i, err)
			break
		}
	}
	if err := db.Close(context.Background()); err != nil && len(acked) == 0 {
		t.Errorf("close: %v", err)
	}
	return acked
}

func has(t *testing.T, db *DB, at int) bool {
	t.Helper()
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: "m", Range: core.Range{Start: core.Time(at), End: core.Time(at + 1)}}
	for block, err := range db.Series(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		return block.Values[0] == float64(at)
	}
	return false
}

// TestFullDisk fills the disk: writes are refused, reads and batches that are not stored go on, and writes come back with the space.
func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	db := open(t, mem, small())
	if _, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue)); err != nil {
		t.Fatal(err)
	}
	mem.SetLimit(mem.Used())
	refused := 0
	for i := 2; refused < 3; i++ {
		if i > 10_000 {
			t.Fatal("a full disk takes everything")
		}
		_, err := db.Append(t.Context(), sample(i, core.Default|core.HasValue))
		if err != nil {
			refused++
			if core.CodeOf(err) != core.NoSpace {
				t.Fatalf("append to a full disk: %v", err)
			}
			if has(t, db, i) {
				t.Errorf("sample %d was refused and is visible", i)
			}
		}
	}
	if !has(t, db, 1) {
		t.Error("reading stopped on a full disk")
	}
	mem.SetLimit(0)
	if _, err := db.Append(t.Context(), sample(20_000, core.Default|core.HasValue)); err != nil {
		t.Errorf("append when there is space again: %v", err)
	}
}
