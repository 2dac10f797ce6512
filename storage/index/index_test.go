package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
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

func TestLookupAndSelect(t *testing.T) {
	x := open(t)
	b := x.Add(keyOf("cpu", "b", "core", "1"))
	a := x.Add(keyOf("cpu", "a"))
	m := x.Add(keyOf("mem", "a", "kind", "free"))
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
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if got := x.Lookup([]byte(keyOf("cpu", "b", "core", "1"))); got != b {
		t.Errorf("lookup %d, want %d", got, b)
	}
	if got := x.Lookup([]byte(keyOf("cpu", "c"))); got != None {
		t.Errorf("unknown key found as %d", got)
	}
	if !x.HasTag("core") || !x.HasTag("kind") || x.HasTag("1") || x.HasTag("cpu") {
		t.Error("tag names are wrong")
	}
	x.Remove(b)
	if x.HasTag("core") || x.Lookup([]byte(keyOf("cpu", "b", "core", "1"))) != None || x.Len() != 2 {
		t.Error("a removed series is still found")
	}
	if again := x.Add(keyOf("cpu", "b", "core", "1")); again == b {
		t.Error("an id was given twice")
	}
}

// A cache that hands out wrong ids must not be believed.
func TestConfusedCacheIsNotBelieved(t *testing.T) {
	x := open(t)
	one, two := keyOf("m", "one"), keyOf("m", "two")
	id := x.Add(one)
	other := x.Add(two)
	x.remember([]byte(one), other)
	if got := x.Lookup([]byte(one)); got != id {
		t.Errorf("lookup %d, want %d", got, id)
	}
	x.remember([]byte(two), 1<<30)
	x.remember([]byte("gone\x00e\x00"), id)
	if got := x.Lookup([]byte(two)); got != other {
		t.Errorf("lookup %d, want %d", got, other)
	}
	if got := x.Lookup([]byte("gone\x00e\x00")); got != None {
		t.Errorf("lookup of an unknown key %d", got)
	}
}

// Keys above the 64 KiB that the cache takes are found in the run.
func TestLongKey(t *testing.T) {
	x := open(t)
	key := keyOf("m", strings.Repeat("e", 100<<10))
	id := x.Add(key)
	for range 2 {
		if got := x.Lookup([]byte(key)); got != id {
			t.Fatalf("lookup %d, want %d", got, id)
		}
	}
}

func TestRandomHistory(t *testing.T) {
	x := open(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	model := map[string]ID{}
	for step := range 30_000 {
		key := keyOf(fmt.Sprint("m", rnd.IntN(20)), fmt.Sprint("e", rnd.IntN(50)), "t", fmt.Sprint(rnd.IntN(8)))
		id, known := model[key]
		if got := x.Lookup([]byte(key)); got != id {
			t.Fatalf("step %d: lookup %q = %d, want %d", step, key, got, id)
		}
		switch {
		case !known:
			model[key] = x.Add(key)
		case rnd.IntN(3) == 0:
			x.Remove(id)
			delete(model, key)
		}
		if step%997 == 0 {
			compare(t, x, model)
		}
	}
	for key, id := range model {
		x.Remove(id)
		delete(model, key)
	}
	compare(t, x, model)
}

func compare(t *testing.T, x *Index, model map[string]ID) {
	t.Helper()
	for _, q := range []struct {
		metric   string
		entities []string
	}{{"", nil}, {"m3", nil}, {"", []string{"e7", "e8"}}, {"m3", []string{"e7", "e8"}}, {"m3", []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6"}}} {
		var keys []string
		for key := range model {
			if (q.metric == "" || metricOf(key) == q.metric) && (q.entities == nil || slices.Contains(q.entities, entityOf(key))) {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		var got []string
		for _, id := range x.Select(q.metric, q.entities) {
			got = append(got, x.keys[id])
		}
		if !slices.Equal(got, keys) {
			t.Fatalf("select %q %v: %d series, want %d", q.metric, q.entities, len(got), len(keys))
		}
	}
}

func TestReadersBesideTheWriter(t *testing.T) {
	x := open(t)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					x.Select("m1", nil)
					x.Select("", []string{"e1", "e2"})
					x.Lookup([]byte(keyOf("m1", "e1", "n", "7")))
				}
			}
		})
	}
	for i := range 3000 {
		id := x.Add(keyOf("m1", fmt.Sprint("e", i%9), "n", fmt.Sprint(i)))
		if i%3 == 0 {
			x.Remove(id)
		}
	}
	close(stop)
	readers.Wait()
	if got := len(x.Select("m1", nil)); got != 2000 {
		t.Errorf("%d series, want 2000", got)
	}
}

func BenchmarkLookupAll(b *testing.B) {
	x := open(b)
	var arena []byte
	var ends []int
	for i := range 100_000 {
		key := keyOf("disk_used", fmt.Sprintf("server-%05d", i), "mount", "/var")
		x.Add(key)
		if i%100 == 0 {
			arena = append(arena, key...)
			ends = append(ends, len(arena))
		}
	}
	ids := make([]ID, len(ends))
	b.ReportAllocs()
	for b.Loop() {
		x.LookupAll(arena, ends, ids)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ends)), "ns/key")
}
