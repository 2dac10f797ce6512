package index

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyOf writes a canonical key; tags come as name, value, name, value.
func keyOf(metric, entity string, tags ...string) string {
	k := metric + "\x00" + entity + "\x00"
	for i := 0; i < len(tags); i += 2 {
		k += tags[i] + "\x01" + tags[i+1] + "\x00"
	}
	return k
}

func open(t testing.TB) *Index {
	x := New(0)
	t.Cleanup(x.Close)
	return x
}

// writeRun writes a run to a file and opens it.
func writeRun(t testing.TB, fs vfs.FS, path string, write func(io.Writer) error) *Run {
	t.Helper()
	f, err := fs.Open(path, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(io.NewOffsetWriter(f, 0))
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRun(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every part of a small index, in memory and then in a run.
func TestLookupAndSelect(t *testing.T) {
	x := open(t)
	b := x.Add(keyOf("cpu", "b", "core", "1"))
	a := x.Add(keyOf("cpu", "a"))
	m := x.Add(keyOf("mem", "a", "kind", "free"))
	look := func(t *testing.T) { lookAtSample(t, x, [3]ID{a, b, m}) }
	t.Run("memory", look)
	if !x.Freeze() {
		t.Fatal("nothing to freeze")
	}
	t.Run("frozen", look)
	x.Adopt(writeRun(t, vfs.NewMem(), "1.index", x.WriteFrozen))
	t.Run("run", look)
	if x.Freeze() {
		t.Error("an empty memory part was frozen")
	}
	x.Remove(b)
	if x.HasTag("core") || x.Lookup([]byte(keyOf("cpu", "b", "core", "1"))) != None || x.Len() != 2 {
		t.Error("a removed series is still found")
	}
	if again := x.Add(keyOf("cpu", "b", "core", "1")); again == b {
		t.Error("an id was given twice")
	}
	if !x.Rename(m, keyOf("disk", "a")) || x.Rename(b, "z\x00z\x00") {
		t.Error("rename of a living series failed, or one of a dead one did not")
	}
	if got := x.Select("disk", []string{"a"}); !slices.Equal(got, []ID{m}) || x.Select("mem", nil) != nil || x.HasTag("kind") {
		t.Errorf("after a rename: %v", got)
	}
	if x.Err() != nil {
		t.Error(x.Err())
	}
}

// lookAtSample asks an index of cpu a, cpu b with core=1 and mem a with kind=free, which have these ids.
func lookAtSample(t *testing.T, x *Index, ids [3]ID) {
	a, b, m := ids[0], ids[1], ids[2]
	for _, c := range []struct {
		name string
		got  []ID
		want []ID
	}{
		{"all in key order", x.Select("", nil), []ID{a, b, m}},
		{"metric", x.Select("cpu", nil), []ID{a, b}},
		{"entity", x.Select("", []string{"a"}), []ID{a, m}},
		{"entity twice", x.Select("", []string{"a", "b", "a", "zz"}), []ID{a, b, m}},
		{"both", x.Select("mem", []string{"a", "b"}), []ID{m}},
		{"no entities", x.Select("cpu", []string{}), nil},
		{"unknown metric", x.Select("disk", []string{"a"}), nil},
		{"prefix of a metric", x.Select("cp", nil), nil},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	for range 2 { // the second time from the cache, when there is a run
		if got := x.Lookup([]byte(keyOf("cpu", "b", "core", "1"))); got != b {
			t.Errorf("lookup %d, want %d", got, b)
		}
	}
	if got := x.Lookup([]byte(keyOf("cpu", "c"))); got != None {
		t.Errorf("unknown key found as %d", got)
	}
	if key, ok := x.Key(m, []byte("x")); !ok || string(key) != "x"+keyOf("mem", "a", "kind", "free") {
		t.Errorf("key of %d: %q", m, key)
	}
	if _, ok := x.Key(99, nil); ok {
		t.Error("an unknown id has a key")
	}
	if !x.HasTag("core") || !x.HasTag("kind") || x.HasTag("1") || x.HasTag("cpu") {
		t.Error("tag names are wrong")
	}
	if got := slices.Collect(x.Metrics("")); !slices.Equal(got, []string{"cpu", "mem"}) {
		t.Errorf("metrics %v", got)
	}
	if got := slices.Collect(x.Entities("b")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("entities with b: %v", got)
	}
}

// A cache that hands out wrong entries must not be believed, nor make a run look damaged.
func TestConfusedCacheIsNotBelieved(t *testing.T) {
	x := open(t)
	var ids []ID
	for i := range 100 {
		ids = append(ids, x.Add(keyOf("m", fmt.Sprint("e", i))))
	}
	x.Freeze()
	x.Adopt(writeRun(t, vfs.NewMem(), "1.index", x.WriteFrozen))
	key := func(i int) []byte { return []byte(keyOf("m", fmt.Sprint("e", i))) }
	l := x.stack.list[0]
	rd := newReader(l.run)
	defer rd.done()
	right, err := rd.find(key(7))
	if err != nil || right.id != ids[7] {
		t.Fatal(right, err)
	}
	shifted, far, renumbered := right, right, right
	shifted.leaf.off++
	far.leaf.off = 1 << 60
	renumbered.ordinal += leafSize
	for _, wrong := range []place{shifted, far, renumbered, {ordinal: 1 << 30}, {}} {
		x.remember(key(7), l, wrong)
		if got := x.Lookup(key(7)); got != ids[7] {
			t.Errorf("%+v: lookup %d, want %d", wrong, got, ids[7])
		}
	}
	x.remember(key(60), l, right) // the leaf of another key
	x.remember([]byte("gone\x00e\x00"), l, right)
	x.remember(key(61), &layer{number: 77}, right)
	if got := []ID{x.Lookup(key(60)), x.Lookup([]byte("gone\x00e\x00")), x.Lookup(key(61))}; !slices.Equal(got, []ID{ids[60], None, ids[61]}) {
		t.Errorf("lookups %v", got)
	}
	if err := x.Err(); err != nil {
		t.Error(err)
	}
}

// Keys above the 64 KiB that the cache takes are found, and those above the limit are refused.
func TestLongKey(t *testing.T) {
	x := open(t)
	key := keyOf("m", strings.Repeat("e", 100<<10))
	longer := keyOf("m", strings.Repeat("e", 3<<20))
	id, id2 := x.Add(key), x.Add(longer)
	look := func() {
		t.Helper()
		for range 2 {
			if got, got2 := x.Lookup([]byte(key)), x.Lookup([]byte(longer)); got != id || got2 != id2 {
				t.Fatalf("lookup %d, %d, want %d, %d", got, got2, id, id2)
			}
		}
	}
	look()
	x.Freeze()
	x.Adopt(writeRun(t, vfs.NewMem(), "1.index", x.WriteFrozen))
	look()
	if x.Add(string(make([]byte, MaxKeyBytes+1))) != None || x.Rename(id, string(make([]byte, MaxKeyBytes+1))) {
		t.Error("a key beyond the limit was taken")
	}
}

// world runs one history against an index and a map.
type world struct {
	t     *testing.T
	fs    *vfs.Mem
	x     *Index
	rnd   *rand.Rand
	model map[string]ID
	ids   map[ID]string
	next  ID
	files int
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, fs: vfs.NewMem(), x: New(0), rnd: rand.New(rand.NewPCG(seed, 2)), model: map[string]ID{}, ids: map[ID]string{}, next: 1}
}

func (w *world) key() string {
	var tags []string
	if w.rnd.IntN(3) > 0 {
		tags = []string{fmt.Sprint("t", w.rnd.IntN(3)), fmt.Sprint(w.rnd.IntN(8))}
	}
	return keyOf(fmt.Sprint("m", w.rnd.IntN(20)), fmt.Sprint("e", w.rnd.IntN(50)), tags...)
}

// step makes one change, or none.
func (w *world) step() {
	key := w.key()
	id, known := w.model[key]
	if got := w.x.Lookup([]byte(key)); got != id {
		w.t.Fatalf("lookup %q = %d, want %d", key, got, id)
	}
	switch {
	case !known:
		if got := w.x.Add(key); got != w.next {
			w.t.Fatalf("add gave %d, want %d", got, w.next)
		}
		w.model[key], w.ids[w.next] = w.next, key
		w.next++
	case w.rnd.IntN(3) == 0:
		w.x.Remove(id)
		delete(w.model, key)
		delete(w.ids, id)
	case w.rnd.IntN(3) == 0:
		to := w.key()
		if w.model[to] == None {
			w.x.Rename(id, to)
			delete(w.model, key)
			w.model[to], w.ids[id] = id, to
		}
	}
}

func (w *world) file() string {
	w.files++
	return fmt.Sprintf("%d.index", w.files)
}

func (w *world) checked(r *Run) *Run {
	if err := CheckRun(w.fs, r.Path()); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// flush freezes, changes something, writes, changes something, and adopts.
func (w *world) flush(between int) {
	if !w.x.Freeze() {
		return
	}
	for range between {
		w.step()
	}
	r := w.checked(writeRun(w.t, w.fs, w.file(), w.x.WriteFrozen))
	for range between {
		w.step()
	}
	w.x.Adopt(r)
}

// merge does what PlanMerge says, or merges some runs that lie side by side.
func (w *world) merge(planned []*Run) {
	runs := planned
	if runs == nil {
		all := w.x.Runs()
		if len(all) < 2 {
			return
		}
		at := w.rnd.IntN(len(all) - 1)
		runs = all[at : at+2+w.rnd.IntN(len(all)-at-1)]
	}
	merged := w.checked(writeRun(w.t, w.fs, w.file(), func(to io.Writer) error { return MergeRuns(to, runs, w.x.BelowOf(runs)) }))
	for range w.rnd.IntN(20) {
		w.step()
	}
	w.x.Replace(runs, merged)
	for _, r := range runs {
		if err := w.fs.Remove(r.Path()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// reopen flushes, and opens the files anew.
func (w *world) reopen() {
	w.flush(0)
	next := w.x.Next()
	var runs []*Run
	for _, r := range w.x.Runs() {
		again, err := OpenRun(w.fs, r.Path())
		if err != nil {
			w.t.Fatal(err)
		}
		runs = append(runs, again)
	}
	w.x.Close()
	w.x = Open(0, runs, next)
}

func TestRandomHistory(t *testing.T) {
	for seed := range uint64(3) {
		w := newWorld(t, seed)
		for step := range 12_000 {
			w.step()
			switch w.rnd.IntN(2000) {
			case 0, 1, 2, 3, 4, 5, 6, 7:
				w.flush(w.rnd.IntN(30))
			case 8, 9:
				if planned := w.x.PlanMerge(); planned != nil {
					w.merge(planned)
				}
			case 10:
				w.merge(nil)
			case 11:
				w.reopen()
			}
			if step%997 == 0 {
				w.compare()
			}
		}
		for _, id := range w.model {
			w.x.Remove(id)
		}
		clear(w.model)
		clear(w.ids)
		w.compare()
		for w.flush(0); len(w.x.Runs()) > 1; {
			w.merge(w.x.Runs())
		}
		if runs := w.x.Runs(); runs[0].Len() != 0 || runs[0].gone.count != 0 {
			t.Errorf("a run of nothing has %d keys and %d gone ids", runs[0].Len(), runs[0].gone.count)
		}
		w.x.Close()
	}
}

// compare asks the index all that it can answer.
func (w *world) compare() {
	w.t.Helper()
	keys := slices.Sorted(maps.Keys(w.model))
	for _, q := range []struct {
		metric   string
		entities []string
	}{
		{"", nil}, {"m3", nil}, {"", []string{"e7"}}, {"", []string{"e7", "e8"}}, {"m3", []string{"e7", "e8"}},
		{"m3", []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6"}}, {"m9", []string{"e1"}},
	} {
		var want []string
		for _, key := range keys {
			if (q.metric == "" || string(metricOf([]byte(key))) == q.metric) && (q.entities == nil || slices.Contains(q.entities, string(entityOf([]byte(key))))) {
				want = append(want, key)
			}
		}
		got := make([]string, 0, len(want))
		ids := w.x.Select(q.metric, q.entities)
		for i, key := range w.x.Keys(ids) {
			got = append(got, string(key))
			if w.ids[ids[i]] != string(key) {
				w.t.Fatalf("key of %d is %q, want %q", ids[i], key, w.ids[ids[i]])
			}
		}
		if !slices.Equal(got, want) {
			w.t.Fatalf("select %q %v:\n%q, want\n%q", q.metric, q.entities, got, want)
		}
	}
	w.compareNames(keys)
	if w.x.Len() != len(w.model) || w.x.Next() != w.next || w.x.Err() != nil {
		w.t.Fatalf("%d series, next %d, err %v; want %d, %d", w.x.Len(), w.x.Next(), w.x.Err(), len(w.model), w.next)
	}
	for id := range w.next {
		key, ok := w.x.Key(id, nil)
		if want := w.ids[id]; ok != (want != "") || string(key) != want || w.x.Alive(id) != ok {
			w.t.Fatalf("key of %d: %q, %v, want %q", id, key, ok, want)
		}
	}
}

func (w *world) compareNames(keys []string) {
	w.t.Helper()
	metrics, entities, tags := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, key := range keys {
		metrics[string(metricOf([]byte(key)))] = true
		entities[string(entityOf([]byte(key)))] = true
		for tag := range tagNames([]byte(key)) {
			tags[string(tag)] = true
		}
	}
	for _, prefix := range []string{"", "e1", "m1", "e49", "e9", "zz"} {
		for _, c := range []struct {
			got  []string
			want map[string]bool
		}{{slices.Collect(w.x.Metrics(prefix)), metrics}, {slices.Collect(w.x.Entities(prefix)), entities}} {
			want := slices.DeleteFunc(slices.Sorted(maps.Keys(c.want)), func(name string) bool { return !strings.HasPrefix(name, prefix) })
			if !slices.Equal(c.got, want) {
				w.t.Fatalf("names with %q: %v, want %v", prefix, c.got, want)
			}
		}
	}
	for _, tag := range []string{"t0", "t1", "t2", "t3", "e1", ""} {
		if w.x.HasTag(tag) != tags[tag] {
			w.t.Fatalf("tag %q is there: %v", tag, !tags[tag])
		}
	}
}

// Churn in memory alone does not grow without bound.
func TestChurnInMemory(t *testing.T) {
	x := open(t)
	for i := range 200_000 {
		x.Remove(x.Add(keyOf("m", fmt.Sprint("e", i%100))))
	}
	if got := x.Bytes(); got > 1<<20 {
		t.Errorf("%d bytes for nothing", got)
	}
}

func TestReadersBesideTheWriter(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t)
	still := x.Add(keyOf("still", "e"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				x.Select("m1", nil)
				x.Select("", []string{"e1", "e2"})
				x.Lookup([]byte(keyOf("m1", "e1", "n", "7")))
				_ = slices.Collect(x.Entities("e"))
				x.HasTag("n")
				if ids := x.Select("", []string{"e"}); !slices.Equal(ids, []ID{still}) {
					t.Errorf("the series that is renamed all the time: %v", ids)
				}
				if _, ok := x.Key(still, nil); !ok {
					t.Error("the series that is renamed all the time has no key")
				}
			}
		})
	}
	var worker sync.WaitGroup
	for i := range 3000 {
		id := x.Add(keyOf("m1", fmt.Sprint("e", i%9), "n", fmt.Sprint(i)))
		if i%3 == 0 {
			x.Remove(id)
		}
		if i%5 == 0 {
			x.Rename(still, keyOf(fmt.Sprint("still", i), "e"))
		}
		if i%300 == 299 {
			worker.Wait()
			x.Freeze()
			worker.Go(func() {
				x.Adopt(writeRun(t, fs, fmt.Sprint(i, ".index"), x.WriteFrozen))
				if runs := x.PlanMerge(); runs != nil {
					x.Replace(runs, writeRun(t, fs, fmt.Sprint(i, "m.index"), func(w io.Writer) error { return MergeRuns(w, runs, x.BelowOf(runs)) }))
				}
			})
		}
	}
	worker.Wait()
	close(stop)
	readers.Wait()
	if got := len(x.Select("m1", nil)); got != 2000 || x.Err() != nil {
		t.Errorf("%d series, want 2000; %v", got, x.Err())
	}
}
