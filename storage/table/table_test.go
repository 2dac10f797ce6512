package table

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// sink writes a new file from its beginning.
type sink struct {
	file   vfs.File
	offset int64
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.file.WriteAt(b, s.offset)
	s.offset += int64(n)
	return n, err
}

// store is a table with the files it is written to.
type store struct {
	t     testing.TB
	fs    vfs.FS
	opts  Options
	table *Table
	made  int
}

func newStore(t testing.TB) *store {
	opts := Options{CacheBytes: 64 << 10}
	return &store{t: t, fs: vfs.NewMem(), opts: opts, table: New(opts)}
}

// make writes a file and opens it.
func (s *store) make(write func(*sink) error) *File {
	s.t.Helper()
	s.made++
	path := fmt.Sprintf("%d.table", s.made)
	h, err := s.fs.Open(path, vfs.Create)
	if err == nil {
		err = errors.Join(write(&sink{file: h}), h.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := OpenFile(s.fs, path)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// flush takes what is in memory to a file.
func (s *store) flush() {
	s.t.Helper()
	s.table.Freeze()
	if s.table.Frozen() {
		s.table.Adopt(s.make(func(w *sink) error { return s.table.WriteFrozen(w) }))
	}
}

func (s *store) merge(files []*File) {
	s.t.Helper()
	if len(files) == 0 {
		return
	}
	merged := s.make(func(w *sink) error { return s.table.Merge(w, files) })
	s.table.Replace(files, merged)
	s.close(files)
}

func (s *store) close(files []*File) {
	s.t.Helper()
	for _, f := range files {
		if err := f.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// reopen closes the table, whose memory part must be flushed, and opens its files.
func (s *store) reopen() {
	s.t.Helper()
	var files []*File
	for _, old := range s.table.Files() {
		f, err := OpenFile(s.fs, old.Path())
		if err != nil {
			s.t.Fatal(err)
		}
		files = append(files, f)
	}
	s.close(s.table.Files())
	s.table = Open(s.opts, files)
}

func (s *store) get(key string) (string, bool) {
	s.t.Helper()
	value, ok, err := s.table.Get([]byte(key))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(value), ok
}

// list returns the entries of a range as `key=value` words.
func (s *store) list(from, to []byte) []string {
	s.t.Helper()
	var all []string
	for e, err := range s.table.Ascend(from, to) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, string(e.Key)+"="+string(e.Value))
	}
	return all
}

func TestLayers(t *testing.T) {
	s := newStore(t)
	put := func(key, value string) { s.table.Put([]byte(key), []byte(value)) }
	put("a", "1")
	put("b", "1")
	put("c", "1")
	put("", "empty key")
	put("e", "") // an empty value is a value
	s.flush()
	put("b", "2")
	s.table.Delete([]byte("c"))
	s.table.Freeze()
	put("a", "3")
	put("d", "3")
	want := []string{"=empty key", "a=3", "b=2", "d=3", "e="}
	if got := s.list(nil, nil); !slices.Equal(got, want) {
		t.Fatalf("three layers: %q, want %q", got, want)
	}
	if got := s.list([]byte("a\x00"), []byte("d")); !slices.Equal(got, []string{"b=2"}) {
		t.Fatalf("range: %q", got)
	}
	if s.table.Freeze() {
		t.Fatal("frozen while there is a frozen part")
	}
	s.flush()
	s.flush()
	if got := s.list(nil, nil); !slices.Equal(got, want) {
		t.Fatalf("three files: %q, want %q", got, want)
	}
	s.reopen()
	s.merge(s.table.Files())
	if got := s.list(nil, nil); !slices.Equal(got, want) {
		t.Fatalf("merged: %q, want %q", got, want)
	}
	if f := s.table.Files()[0]; f.Entries() != 5 || f.tombstones != 0 || len(s.table.Files()) != 1 {
		t.Fatalf("%d entries and %d tombstones in the oldest file", f.Entries(), f.tombstones)
	}
	if got := s.table.Len(); got != 5 {
		t.Fatalf("length %d", got)
	}
	if _, ok := s.get("c"); ok {
		t.Fatal("a deleted key is there")
	}
	if value, ok := s.get("e"); !ok || value != "" {
		t.Fatalf("empty value: %q, %v", value, ok)
	}
}

// TestPartialMerge merges the newer files: a mark must go on hiding what the oldest file has.
func TestPartialMerge(t *testing.T) {
	s := newStore(t)
	s.table.Put([]byte("a"), []byte("1"))
	s.flush()
	s.table.Delete([]byte("a"))
	s.flush()
	s.table.Put([]byte("b"), []byte("1"))
	s.flush()
	s.merge(s.table.Files()[1:])
	if got := s.list(nil, nil); !slices.Equal(got, []string{"b=1"}) || len(s.table.Files()) != 2 {
		t.Fatalf("%q in %d files", got, len(s.table.Files()))
	}
	s.merge(s.table.Files())
	if got := s.list(nil, nil); !slices.Equal(got, []string{"b=1"}) || s.table.Files()[0].Entries() != 1 {
		t.Fatalf("%q", got)
	}
	s.table.Delete([]byte("b"))
	s.flush()
	s.merge(s.table.Files()) // of which nothing is left
	s.reopen()
	if got := s.list(nil, nil); got != nil || s.table.Files()[0].Entries() != 0 || s.table.Len() != 0 {
		t.Fatalf("%q", got)
	}
	if _, ok := s.get("b"); ok {
		t.Fatal("found in an empty file")
	}
}

// model is a store beside a map that does the same.
type model struct {
	*store
	rand *rand.Rand
	want map[string]string
}

func (m *model) key() string {
	switch m.rand.IntN(10) {
	case 0:
		return strings.Repeat("long", m.rand.IntN(200)) + fmt.Sprint(m.rand.IntN(50))
	case 1:
		return string([]byte{byte(m.rand.IntN(3)), byte(m.rand.IntN(256))}[:m.rand.IntN(3)])
	}
	return fmt.Sprintf("key %d", m.rand.IntN(3000))
}

func (m *model) value() string {
	n := m.rand.IntN(60)
	if m.rand.IntN(100) == 0 {
		n = m.rand.IntN(40 << 10)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + m.rand.IntN(1+m.rand.IntN(26)))
	}
	return string(b)
}

func (m *model) step() {
	switch m.rand.IntN(400) {
	case 0:
		m.flush()
	case 1:
		m.table.Freeze()
	case 2:
		m.merge(m.table.PlanMerge())
	case 3:
		if files := m.table.Files(); len(files) > 1 {
			from := m.rand.IntN(len(files) - 1)
			m.merge(files[from : from+1+m.rand.IntN(len(files)-from)])
		}
	case 4:
		m.flush()
		m.flush() // what came while a part was frozen
		m.reopen()
	}
	key := m.key()
	switch m.rand.IntN(4) {
	case 0:
		m.table.Delete([]byte(key))
		delete(m.want, key)
	case 1:
		value, ok := m.get(key)
		if want, there := m.want[key]; ok != there || value != want {
			m.t.Fatalf("key %q: %.20q, %v instead of %.20q, %v", key, value, ok, want, there)
		}
	default:
		value := m.value()
		m.table.Put([]byte(key), []byte(value))
		m.want[key] = value
	}
}

// compare reads a range.
func (m *model) compare(from, to []byte) {
	m.t.Helper()
	var want []string
	for _, key := range slices.Sorted(maps.Keys(m.want)) {
		if key >= string(from) && (to == nil || key < string(to)) {
			want = append(want, key+"="+m.want[key])
		}
	}
	if got := m.list(from, to); !slices.Equal(got, want) {
		m.t.Fatalf("from %q to %q: %d entries instead of %d", from, to, len(got), len(want))
	}
}

func TestRandomHistory(t *testing.T) {
	for seed := range uint64(6) {
		m := &model{newStore(t), rand.New(rand.NewPCG(seed, 1)), map[string]string{}}
		for range 12 {
			for range 800 {
				m.step()
			}
			m.compare(nil, nil)
			for range 10 {
				m.compare([]byte(m.key()), []byte(m.key()))
			}
		}
		for _, f := range m.table.Files() {
			if err := Check(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPlanMerge(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		from  int // -1: nothing to merge
	}{
		{nil, -1},
		{[]int64{5}, -1},
		{[]int64{5, 5, 5}, -1},
		{[]int64{5, 5, 5, 5}, 0},
		{[]int64{100, 5, 5, 5}, -1},
		{[]int64{100, 5, 5, 5, 5}, 1},
		{[]int64{40, 5, 5, 5, 5}, 0},                   // 40 is twice the 20 of the others
		{[]int64{100000, 10000, 1000, 100, 10, 1}, -1}, // six are bearable
		{[]int64{1000000, 100000, 10000, 1000, 100, 10, 1}, 4},
	} {
		want := c.from
		if want < 0 {
			want = len(c.sizes)
		}
		if got := planMerge(c.sizes); got != want {
			t.Errorf("%v: from %d, want %d", c.sizes, got, want)
		}
	}
}

// TestFileCount writes many small files: their number stays bounded and nothing is rewritten more often than its size allows.
func TestFileCount(t *testing.T) {
	s := newStore(t)
	var written int64
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		for range 10 {
			s.table.Put(fmt.Appendf(nil, "%016x", r.Uint64()), fmt.Appendf(nil, "%x%x%x", r.Uint64(), r.Uint64(), r.Uint64()))
		}
		s.flush()
		if plan := s.table.PlanMerge(); plan != nil {
			s.merge(plan)
			for _, f := range plan {
				written += f.Entries()
			}
		}
		if n := len(s.table.Files()); n > maxFiles {
			t.Fatalf("%d files after %d", n, i)
		}
	}
	// Three hundred files are a little more than four times four times four times four.
	if written > 8*3000 {
		t.Errorf("merges wrote %d entries, of 3000", written)
	}
}

// TestDeadShare deletes most of a table: the marks do not stay.
func TestDeadShare(t *testing.T) {
	s := newStore(t)
	for i := range 1000 {
		s.table.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100))
	}
	s.flush()
	for i := range 500 {
		s.table.Delete(fmt.Appendf(nil, "%06d", i))
	}
	s.flush()
	plan := s.table.PlanMerge()
	if len(plan) != 2 {
		t.Fatalf("%d files to merge", len(plan))
	}
	s.merge(plan)
	if f := s.table.Files()[0]; f.Entries() != 500 || s.table.PlanMerge() != nil {
		t.Fatalf("%d entries", f.Entries())
	}
}

func TestLargeValues(t *testing.T) {
	s := newStore(t)
	r := rand.New(rand.NewPCG(1, 1))
	var large []byte
	for len(large) < 3<<20 {
		large = fmt.Appendf(large, `{"field":"a text that is in every line","number":%d}`, r.Uint32())
	}
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	s.table.Put([]byte("a"), []byte("small"))
	s.table.Put([]byte("b"), large)
	s.table.Put([]byte("c"), noise)
	s.table.Put([]byte("d"), []byte("small"))
	s.flush()
	f := s.table.Files()[0]
	if len(f.blocks) != 4 {
		t.Errorf("%d blocks, want each large value to have its own", len(f.blocks))
	}
	if f.Size() > 2<<20 {
		t.Errorf("%d bytes: the value that repeats itself is not packed", f.Size())
	}
	for key, want := range map[string][]byte{"a": []byte("small"), "b": large, "c": noise, "d": []byte("small")} {
		if got, ok := s.get(key); !ok || got != string(want) {
			t.Errorf("%s: %d bytes instead of %d", key, len(got), len(want))
		}
	}
	if n := s.table.cache.size(); n > 64<<10 {
		t.Errorf("%d bytes in a cache of 64 KiB", n)
	}
}

func TestCacheStaysBounded(t *testing.T) {
	s := newStore(t)
	for i := range 20000 {
		s.table.Put(fmt.Appendf(nil, "%06d", i), fmt.Appendf(nil, "value %d %d", i, i*i))
	}
	s.flush()
	for range 2 {
		for i := 0; i < 20000; i += 7 {
			if value, _ := s.get(fmt.Sprintf("%06d", i)); value != fmt.Sprintf("value %d %d", i, i*i) {
				t.Fatalf("%d: %q", i, value)
			}
			if n := s.table.cache.size(); n > 64<<10 {
				t.Fatalf("%d bytes in a cache of 64 KiB", n)
			}
		}
	}
	if n := s.table.cache.size(); n < 32<<10 {
		t.Errorf("the cache holds %d bytes of 64 KiB", n)
	}
}

// TestFilterRate measures what 10 bits a key buy: 1.2 % of absent keys pass.
func TestFilterRate(t *testing.T) {
	const n = 100_000
	filter := make([]byte, filterSize(n))
	for i := range n {
		filterAdd(filter, hashOf(fmt.Appendf(nil, "entity-%d", i)))
	}
	passed := 0
	for i := range n {
		if !filterHas(filter, hashOf(fmt.Appendf(nil, "entity-%d", i))) {
			t.Fatalf("%d was added and is absent", i)
		}
		if filterHas(filter, hashOf(fmt.Appendf(nil, "other-%d", i))) {
			passed++
		}
	}
	if passed > n*2/100 {
		t.Errorf("%d of %d absent keys pass", passed, n)
	}
}

// TestReadersBesideChanges scans and gets while keys are rewritten, flushed and merged: every key is seen exactly once, in each scan.
func TestReadersBesideChanges(t *testing.T) {
	const keys = 2000
	s := newStore(t)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	for i := range keys {
		s.table.Put(key(i), []byte("0"))
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				n := 0
				for e, err := range s.table.Ascend(nil, nil) {
					if err != nil || string(e.Key) != string(key(n)) {
						t.Errorf("entry %d: %q, %v", n, e.Key, err)
						return
					}
					if n%100 == 0 {
						if ok, err := s.table.Has(e.Key); !ok || err != nil {
							t.Errorf("key %q: %v, %v", e.Key, ok, err)
						}
					}
					n++
				}
				if n != keys {
					t.Errorf("%d keys of %d", n, keys)
					return
				}
			}
		})
	}
	for round := range 40 {
		for i := round % 7; i < keys; i += 7 {
			s.table.Put(key(i), fmt.Append(nil, round))
		}
		s.flush()
		s.merge(s.table.PlanMerge())
	}
	close(done)
	readers.Wait()
}

// TestScanBesideItsOwnChanges deletes each key as it comes, and adds keys before and behind.
func TestScanBesideItsOwnChanges(t *testing.T) {
	s := newStore(t)
	for i := range 1000 {
		s.table.Put(fmt.Appendf(nil, "%06d", i), nil)
	}
	s.flush()
	n := 0
	for e, err := range s.table.Ascend(nil, []byte("001000")) {
		if err != nil {
			t.Fatal(err)
		}
		s.table.Delete(e.Key)
		s.table.Put(append([]byte("!"), e.Key...), nil)
		if n++; n == 300 {
			s.flush()
			s.merge(s.table.Files())
		}
	}
	if got := s.list([]byte("0"), nil); n != 1000 || got != nil {
		t.Errorf("%d keys seen, %d left", n, len(got))
	}
}

func TestClosed(t *testing.T) {
	s := newStore(t)
	s.table.Put([]byte("a"), []byte("1"))
	s.flush()
	s.close(s.table.Files())
	if _, _, err := s.table.Get([]byte("a")); !errors.Is(err, vfs.ErrClosed) {
		t.Errorf("get of a closed table: %v", err)
	}
	for _, err := range s.table.Ascend(nil, nil) {
		if !errors.Is(err, vfs.ErrClosed) {
			t.Errorf("scan of a closed table: %v", err)
		}
	}
}
