package index

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// settle merges until nothing is worth it, and returns how many bytes were written.
func settle(t *testing.T, fs vfs.FS, x *Index, name string) (written int64) {
	t.Helper()
	for i := 0; ; i++ {
		runs := x.PlanMerge()
		if runs == nil {
			return written
		}
		merged := writeRun(t, fs, fmt.Sprintf("%s-%d.index", name, i), func(w io.Writer) error { return MergeRuns(w, runs, x.BelowOf(runs)) })
		written += merged.Bytes()
		x.Replace(runs, merged)
	}
}

// However many flushes there are, the runs stay few and a key is written a few times.
func TestPlanMerge(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t)
	var written int64
	for i := range 200 {
		for j := range 50 {
			x.Add(keyOf(fmt.Sprint("m", j), fmt.Sprint("e", i)))
		}
		x.Freeze()
		r := writeRun(t, fs, fmt.Sprint(i, ".index"), x.WriteFrozen)
		written += r.Bytes()
		x.Adopt(r)
		written += settle(t, fs, x, fmt.Sprint(i))
		if n := len(x.Runs()); n > maxRuns {
			t.Fatalf("%d runs after %d flushes", n, i+1)
		}
	}
	var size int64
	for _, r := range x.Runs() {
		size += r.Bytes()
	}
	// A merge takes in a run when the newer ones have reached half its size, which with 200 equal flushes is at most log2(200) = 8 times, and the
	// fixed part of a small run counts too.
	if written > 12*size {
		t.Errorf("%d bytes written for %d", written, size)
	}
	if x.Len() != 10_000 || len(x.Select("", nil)) != 10_000 {
		t.Errorf("%d series, want 10000", x.Len())
	}
}

// Runs of which more than half is void are merged, and then hold only what lives.
func TestVoidRunsAreMerged(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t)
	flush := func(name string) {
		x.Freeze()
		x.Adopt(writeRun(t, fs, name, x.WriteFrozen))
	}
	for i := range 10_000 {
		x.Add(keyOf("m", fmt.Sprint("e", i)))
	}
	flush("1.index")
	for id := ID(1); id <= 6000; id++ {
		x.Remove(id)
	}
	flush("2.index")
	settle(t, fs, x, "merged")
	if runs := x.Runs(); len(runs) != 1 || runs[0].Len() != 4000 || runs[0].gone.count != 0 || x.Len() != 4000 {
		t.Errorf("%d runs, the first of %d keys; want one of 4000", len(runs), runs[0].Len())
	}
}

// full is a disk that takes so many bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.left)
	f.left -= n
	if n < len(b) {
		return n, vfs.ErrNoSpace
	}
	return n, nil
}

// A write that fails wherever it may leaves the frozen part as it is, and the next one succeeds.
func TestFailedWrite(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t)
	for i := range 30_000 {
		x.Add(keyOf(fmt.Sprint("m", i%10), fmt.Sprint("e", i)))
	}
	x.Freeze()
	for left := 0; left < 500_000; left += 100_000 {
		if err := x.WriteFrozen(&full{left}); !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("with room for %d bytes: %v", left, err)
		}
	}
	x.Add(keyOf("later", "e"))
	if !x.Freeze() || x.frozen.part.live != 30_000 {
		t.Error("the frozen part was not kept")
	}
	x.Adopt(writeRun(t, fs, "1.index", x.WriteFrozen))
	if err := CheckRun(fs, "1.index"); err != nil {
		t.Error(err)
	}
	x.Freeze()
	x.Adopt(writeRun(t, fs, "2.index", x.WriteFrozen))
	if err := MergeRuns(&full{200_000}, x.Runs(), NoRuns); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("merge: %v", err)
	}
	if len(x.Select("", nil)) != 30_001 || x.Err() != nil {
		t.Error("series are missing", x.Err())
	}
}

// A damaged run cannot be merged; the error names it, and nothing else changes.
func TestMergeOfDamage(t *testing.T) {
	run, model := sampleRun(t, 300)
	fs := vfs.NewMem()
	run[200] ^= 1
	file(t, fs, "1.index", run)
	r, err := OpenRun(fs, "1.index")
	if err != nil {
		t.Fatal(err)
	}
	x := Open(0, []*Run{r}, 1000)
	defer x.Close()
	x.Add(keyOf("m", "e"))
	x.Freeze()
	x.Adopt(writeRun(t, fs, "2.index", x.WriteFrozen))
	if err := MergeRuns(io.Discard, x.Runs(), NoRuns); !errors.Is(err, ErrDamaged) || r.Err() == nil || x.Runs()[1].Err() != nil {
		t.Errorf("merge: %v; %v", err, r.Err())
	}
	if got := len(x.Select("", nil)); got >= len(model)+1 || got < len(model)+1-leafSize {
		t.Errorf("%d series, want all but a leaf of %d", got, len(model)+1)
	}
}

// Ids far from each other take the table with a list of ids.
func TestSparseIDs(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t)
	want := map[ID]string{}
	for i := range 500 {
		x.next += ID(i * i)
		key := keyOf("m", fmt.Sprint("e", i))
		want[x.Add(key)] = key
	}
	x.next = ^ID(0) - 1
	key := keyOf("m", "last")
	want[x.Add(key)] = key
	if x.Add(keyOf("m", "none left")) != None {
		t.Error("an id beyond the last one was given")
	}
	x.Freeze()
	r := writeRun(t, fs, "1.index", x.WriteFrozen)
	if r.ids.count != 501 {
		t.Errorf("%d ids listed, want 501", r.ids.count)
	}
	x.Adopt(r)
	if err := CheckRun(fs, "1.index"); err != nil {
		t.Error(err)
	}
	for id, key := range want {
		if got, ok := x.Key(id, nil); !ok || string(got) != key {
			t.Errorf("key of %d: %q, want %q", id, got, key)
		}
		if _, ok := x.Key(id-1, nil); ok && want[id-1] == "" {
			t.Errorf("id %d, which was never given, has a key", id-1)
		}
	}
	merged := writeRun(t, fs, "2.index", func(w io.Writer) error { return MergeRuns(w, x.Runs(), NoRuns) })
	defer merged.Close()
	if err := CheckRun(fs, "2.index"); err != nil || merged.ids.count != 501 {
		t.Error(err, merged.ids.count)
	}
}

// A run that is replaced while it is read stays readable until the reader is done.
func TestReplaceUnderReader(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t)
	for i := range 100 {
		x.Add(keyOf("m", fmt.Sprint("e", i)))
		if i%50 == 49 {
			x.Freeze()
			x.Adopt(writeRun(t, fs, fmt.Sprint(i, ".index"), x.WriteFrozen))
		}
	}
	old := x.Runs()
	n := 0
	for range x.Entities("") {
		if n++; n == 1 {
			x.Replace(old, writeRun(t, fs, "m.index", func(w io.Writer) error { return MergeRuns(w, old, NoRuns) }))
		}
	}
	if n != 100 || old[0].Err() != nil {
		t.Errorf("%d entities, want 100: %v", n, old[0].Err())
	}
	var one [1]byte
	if _, err := old[0].m.ReadAt(one[:], 0); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("the mapping is still there: %v", err)
	}
}
