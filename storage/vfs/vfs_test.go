package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestContract runs one suite over every file system.
func TestContract(t *testing.T) {
	systems := map[string]func(t *testing.T) (FS, string){
		"os":      func(t *testing.T) (FS, string) { return OS{}, t.TempDir() },
		"windows": func(t *testing.T) (FS, string) { return OS{Windows: true}, t.TempDir() },
		"mem":     func(*testing.T) (FS, string) { return NewMem(), "." },
		"hooks": func(*testing.T) (FS, string) {
			return Trace(Fault(NewMem(), func(Op) error { return nil }), func(Op) {}), "."
		},
	}
	for name, open := range systems {
		t.Run(name, func(t *testing.T) {
			fs, dir := open(t)
			t.Run("files", func(t *testing.T) { testFiles(t, fs, dir) })
			t.Run("names", func(t *testing.T) { testNames(t, fs, dir) })
			t.Run("mapping", func(t *testing.T) { testMapping(t, fs, dir) })
			t.Run("lock", func(t *testing.T) { testLock(t, fs, dir) })
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, fs FS, path, content string) File {
	t.Helper()
	f, err := fs.Open(path, Create)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	return f
}

// content returns what is in the file at path, or "-" when there is none.
func content(t *testing.T, fs FS, path string) string {
	t.Helper()
	f, err := fs.Open(path, ReadOnly)
	if errors.Is(err, ErrNotExist) {
		return "-"
	}
	must(t, err)
	n, err := f.Size()
	must(t, err)
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	must(t, f.Close())
	return string(b)
}

func testFiles(t *testing.T, fs FS, dir string) {
	path := filepath.Join(dir, "file")
	if _, err := fs.Open(path, ReadWrite); !errors.Is(err, ErrNotExist) {
		t.Errorf("open of nothing: %v", err)
	}
	f := create(t, fs, path, "hello")
	_, err := f.WriteAt([]byte("!"), 7)
	must(t, err)
	if got := content(t, fs, path); got != "hello\x00\x00!" {
		t.Errorf("a write behind the end: %q", got)
	}
	must(t, f.Truncate(2))
	must(t, f.Truncate(4))
	if got := content(t, fs, path); got != "he\x00\x00" {
		t.Errorf("truncated and grown: %q", got)
	}
	b := make([]byte, 8)
	if n, err := f.ReadAt(b, 1); n != 3 || err != io.EOF {
		t.Errorf("read over the end: %d, %v", n, err)
	}
	must(t, Preallocate(f, 600<<10))
	if n, err := f.Size(); n != 600<<10 || err != nil {
		t.Errorf("preallocated %d, %v", n, err)
	}
	must(t, f.Sync())
	must(t, f.Close())
	if _, err := f.WriteAt(b, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("write to a closed file: %v", err)
	}
	must(t, create(t, fs, path, "x").Close())
	if got := content(t, fs, path); got != "x" {
		t.Errorf("Create does not empty: %q", got)
	}
	r, err := fs.Open(path, ReadOnly)
	must(t, err)
	if _, err := r.WriteAt(b, 0); err == nil {
		t.Error("a file opened for reading is written")
	}
	must(t, r.Close())
	must(t, fs.Remove(path))
}

func testNames(t *testing.T, fs FS, dir string) {
	sub := filepath.Join(dir, "a", "b")
	must(t, fs.MkdirAll(sub))
	must(t, fs.MkdirAll(sub))
	for _, n := range []string{"two", "one"} {
		must(t, create(t, fs, filepath.Join(sub, n), n).Close())
	}
	must(t, fs.Rename(filepath.Join(sub, "two"), filepath.Join(sub, "three")))
	must(t, fs.SyncDir(sub))
	infos, err := fs.List(sub)
	must(t, err)
	if diff := cmp.Diff([]Info{{Name: "one", Size: 3}, {Name: "three", Size: 3}}, infos); diff != "" {
		t.Error(diff)
	}
	must(t, fs.Rename(filepath.Join(sub, "one"), filepath.Join(sub, "three")))
	if got := content(t, fs, filepath.Join(sub, "three")); got != "one" {
		t.Errorf("rename over a file: %q", got)
	}
	if err := fs.Remove(sub); err == nil {
		t.Error("a full directory is removed")
	}
	if i, err := fs.Stat(sub); err != nil || !i.Dir || i.Name != "b" {
		t.Errorf("stat: %+v, %v", i, err)
	}
	must(t, fs.Remove(filepath.Join(sub, "three")))
	must(t, fs.Remove(sub))
	for what, err := range map[string]error{
		"remove": fs.Remove(sub), "rename": fs.Rename(sub, filepath.Join(dir, "c")), "syncdir": fs.SyncDir(sub),
	} {
		if !errors.Is(err, ErrNotExist) {
			t.Errorf("%s of nothing: %v", what, err)
		}
	}
	if _, err := fs.Stat(sub); !errors.Is(err, ErrNotExist) {
		t.Errorf("stat of nothing: %v", err)
	}
	if s, err := fs.Free(dir); err != nil || s.Free <= 0 || s.Total < s.Free {
		t.Errorf("free: %+v, %v", s, err)
	}
}

func testMapping(t *testing.T, fs FS, dir string) {
	path := filepath.Join(dir, "mapped")
	f := create(t, fs, path, strings.Repeat("a", 20000))
	m, err := f.Map(20000)
	must(t, err)
	_, err = f.WriteAt([]byte("bcd"), 10000)
	must(t, err)
	view := func(off, n int64) (s string, err error) {
		err = m.View(off, n, func(b []byte) error { s = string(b); return nil })
		return s, err
	}
	if got, err := view(9999, 5); got != "abcda" || err != nil {
		t.Errorf("view after a write: %q, %v", got, err)
	}
	if _, err := view(19999, 2); err == nil {
		t.Error("view over the end")
	}
	if _, err := view(-1, 2); err == nil {
		t.Error("view before the start")
	}
	b := make([]byte, 4)
	if n, err := m.ReadAt(b, 19998); n != 2 || err != io.EOF {
		t.Errorf("ReadAt over the end: %d, %v", n, err)
	}
	mine := errors.New("mine")
	if err := m.View(0, 1, func([]byte) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the error of the function: %v", err)
	}
	// A file that is cut short is an error to its readers, not the end of the process; what is left can be read.
	must(t, f.Truncate(5000))
	if _, err := view(16384, 100); !errors.Is(err, ErrFault) {
		t.Errorf("view of bytes that are gone: %v", err)
	}
	if got, err := view(0, 2); got != "aa" || err != nil {
		t.Errorf("view of bytes that are left: %q, %v", got, err)
	}
	must(t, f.Close())
	must(t, fs.Remove(path))
	if got, err := view(0, 2); got != "aa" || err != nil {
		t.Errorf("view after the file is closed and removed: %q, %v", got, err)
	}
	must(t, m.Close())
	if _, err := view(0, 2); !errors.Is(err, ErrClosed) {
		t.Errorf("view after close: %v", err)
	}
	if err := m.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

func testLock(t *testing.T, fs FS, dir string) {
	path := filepath.Join(dir, "LOCK")
	l, err := fs.Lock(path)
	must(t, err)
	if _, err := fs.Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	must(t, l.Close())
	l, err = fs.Lock(path)
	must(t, err)
	must(t, l.Close())
}

// TestViewDuringClose: memory stays mapped until the last view ends.
func TestViewDuringClose(t *testing.T) {
	f := create(t, OS{}, filepath.Join(t.TempDir(), "f"), strings.Repeat("z", 8192))
	m, err := f.Map(8192)
	must(t, err)
	must(t, f.Close())
	inside, closed := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := m.View(0, 8192, func(b []byte) error {
			close(inside)
			<-closed
			if bytes.Count(b, []byte("z")) != 8192 {
				return errors.New("other bytes")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	must(t, m.Close())
	close(closed)
	wg.Wait()
}

// TestForeignPanic: only faults inside the mapping become errors.
func TestForeignPanic(t *testing.T) {
	f := create(t, OS{}, filepath.Join(t.TempDir(), "f"), "x")
	m, err := f.Map(1)
	must(t, err)
	defer func() {
		if recover() == nil {
			t.Error("a panic of the caller was swallowed")
		}
		must(t, m.Close())
		must(t, f.Close())
	}()
	_ = m.View(0, 1, func(b []byte) error { var p *int; *p = 1; return nil })
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(400) {
		m := NewMem()
		f := create(t, m, "f", strings.Repeat("a", 3*SectorSize))
		must(t, f.Sync())
		must(t, m.SyncDir("."))
		_, err := f.WriteAt([]byte(strings.Repeat("b", 2*SectorSize)), SectorSize/2)
		must(t, err)
		must(t, create(t, m, "g", "g").Sync())
		must(t, m.Rename("f", "h"))
		c := m.Crash(rand.New(rand.NewPCG(seed, 1)))
		one, other := content(t, c, "f"), content(t, c, "h")
		if (one == "-") == (other == "-") {
			t.Fatalf("a rename is not atomic: f %q h %q", one, other)
		}
		got := max(one, other)
		if len(got) != 3*SectorSize || got[:256] != strings.Repeat("a", 256) || got[5*256:] != strings.Repeat("a", 256) {
			t.Fatalf("synced bytes changed: %q", got)
		}
		if strings.Count(got[512:1024], got[512:513]) != 512 {
			t.Fatal("a sector is torn")
		}
		// One byte of each of the three sectors that the write touched.
		outcomes[string([]byte{got[256], got[512], got[1024]})]++
		outcomes["g is "+content(t, c, "g")]++
	}
	for _, want := range []string{"aaa", "bbb", "bab", "abb", "g is g", "g is -"} {
		if outcomes[want] == 0 {
			t.Errorf("outcome %q never happens: %v", want, outcomes)
		}
	}
}

func TestFailedSyncForgets(t *testing.T) {
	m := NewMem()
	fail := &FailAt{Err: ErrIO, Match: func(op Op) bool { return op.Kind == OpSync }}
	fs := Fault(m, fail.Inject)
	f := create(t, fs, "f", "lost")
	if err := f.Sync(); !errors.Is(err, ErrIO) {
		t.Fatal(err)
	}
	must(t, f.Sync()) // succeeds, and proves nothing
	must(t, fs.SyncDir("."))
	if got := content(t, m, "f"); got != "lost" {
		t.Errorf("the page cache has %q", got)
	}
	if got := content(t, m.Crash(rand.New(rand.NewPCG(1, 1))), "f"); got != "" {
		t.Errorf("after a power cut %q is there", got)
	}
}

func TestPrefixAndClone(t *testing.T) {
	m := NewMem()
	m.Record()
	f := create(t, m, "f", "one")
	must(t, f.Sync())
	must(t, m.SyncDir("."))
	_, err := f.WriteAt([]byte("TWO"), 0)
	must(t, err)
	must(t, m.Rename("f", "g"))
	must(t, f.Truncate(1))
	clone := m.Clone()
	must(t, m.Remove("g"))
	want := []string{"- -", " -", "one -", "one -", "one -", "TWO -", "- TWO", "- T", "- -"}
	for n := range m.Ops() + 1 {
		p := m.Prefix(n)
		if got := content(t, p, "f") + " " + content(t, p, "g"); got != want[n] {
			t.Errorf("after %d operations %q, want %q", n, got, want[n])
		}
	}
	if got := content(t, clone, "g"); got != "T" {
		t.Errorf("the clone has %q", got)
	}
	for seed := range uint64(50) {
		c := clone.Crash(rand.New(rand.NewPCG(seed, 1)))
		got := []string{content(t, c, "f"), content(t, c, "g")}
		slices.Sort(got)
		if got[0] != "-" || !slices.Contains([]string{"one", "TWO", "T", "o"}, got[1]) {
			t.Errorf("after a power cut %q", got)
		}
	}
}

func TestLimit(t *testing.T) {
	m := NewMem()
	m.SetLimit(10)
	f := create(t, m, "f", "12345678")
	n, err := f.WriteAt([]byte("abcd"), 8)
	if n != 2 || !errors.Is(err, ErrNoSpace) {
		t.Errorf("wrote %d: %v", n, err)
	}
	if _, err := f.WriteAt([]byte("xx"), 0); err != nil {
		t.Errorf("overwriting takes no space: %v", err)
	}
	if s, err := m.Free("."); err != nil || s.Free != 0 || m.Used() != 10 {
		t.Errorf("%+v, %v, used %d", s, err, m.Used())
	}
	must(t, m.Remove("f"))
	must(t, create(t, m, "g", "1234567890").Close())
}

func TestFaultAndTrace(t *testing.T) {
	var lines []string
	m := NewMem()
	fail := &FailAt{N: 1, Err: ShortWrite{N: 2, Err: ErrNoSpace}, Match: func(op Op) bool { return op.Kind == OpWrite }}
	fs := Trace(Fault(m, fail.Inject), func(op Op) { lines = append(lines, op.String()) })
	f := create(t, fs, "dir/../7.seg", "1234")
	n, err := f.WriteAt([]byte("abcd"), 4)
	if n != 2 || !errors.Is(err, ErrNoSpace) || !fail.Fired() {
		t.Errorf("short write: %d, %v", n, err)
	}
	must(t, f.Sync())
	must(t, f.Close())
	must(t, fs.Rename("7.seg", "8.seg"))
	must(t, fs.SyncDir("."))
	if got := content(t, m, "8.seg"); got != "1234ab" {
		t.Errorf("%q", got)
	}
	want := []string{"create 7.seg", "write 7.seg 0+4", "sync 7.seg", "close 7.seg", "rename 7.seg 8.seg", "syncdir ."}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
