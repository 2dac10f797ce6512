package index

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A thousand metrics of a thousand hosts, host by host, as they come.
const benchSeries = 1_000_000

func benchKey(dst []byte, i int) []byte {
	return fmt.Appendf(dst, "metric_%03d\x00host-%04d\x00", i%1000, i/1000)
}

// benchRun writes the run of all series but those that drop names.
func benchRun(b *testing.B, name string, take func(i int) bool) (*Index, *Run) {
	b.Helper()
	x := New(0)
	for i := range benchSeries {
		if take(i) {
			x.Add(string(benchKey(nil, i)))
		} else {
			x.next++
		}
	}
	x.Freeze()
	r := writeRun(b, vfs.OS{}, filepath.Join(b.TempDir(), name), x.WriteFrozen)
	x.Adopt(r)
	runtime.GC()
	b.Cleanup(x.Close)
	return x, r
}

func all(int) bool { return true }

func BenchmarkAdd(b *testing.B) {
	keys := make([]string, benchSeries)
	for i := range keys {
		keys[i] = string(benchKey(nil, i))
	}
	var before, after runtime.MemStats
	for b.Loop() {
		x := New(0)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for _, key := range keys {
			x.Add(key)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/benchSeries, "heapB/series")
		b.ReportMetric(float64(x.Bytes())/benchSeries, "estB/series")
		x.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchSeries), "ns/series")
}

func BenchmarkWriteFrozen(b *testing.B) {
	x := New(0)
	defer x.Close()
	for i := range benchSeries {
		x.Add(string(benchKey(nil, i)))
	}
	x.Freeze()
	for b.Loop() {
		clear(x.frozen.part.metrics.sorted)
		if err := x.WriteFrozen(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchSeries), "ns/series")
}

func BenchmarkRun(b *testing.B) {
	x, r := benchRun(b, "1.index", all)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			again, err := OpenRun(vfs.OS{}, r.Path())
			if err != nil {
				b.Fatal(err)
			}
			if err := again.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(r.Bytes())/benchSeries, "B/series")
	})
	b.Run("hot", func(b *testing.B) { benchLookup(b, x, 1000, "") })
	b.Run("warm", func(b *testing.B) { benchLookup(b, x, 200_000, "") })
	b.Run("absent", func(b *testing.B) { benchLookup(b, x, 1000, "t\x01v\x00") })
	b.Run("cacheAlone", func(b *testing.B) { benchCache(b, x) })
	b.Run("cold", func(b *testing.B) { benchCold(b, r) })
	b.Run("key", func(b *testing.B) {
		var key []byte
		b.ReportAllocs()
		for b.Loop() {
			key, _ = x.Key(ID(rand.IntN(benchSeries)+1), key[:0])
		}
	})
	b.Run("keys", func(b *testing.B) {
		ids := x.Select("metric_500", nil)
		for b.Loop() {
			for range x.Keys(ids) {
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/key")
	})
	for _, c := range []struct {
		name     string
		metric   string
		entities []string
	}{{"metric", "metric_500", nil}, {"entity", "", []string{"host-0500"}}, {"both", "metric_500", []string{"host-0500"}}, {"all", "", nil}} {
		b.Run("select/"+c.name, func(b *testing.B) {
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n = len(x.Select(c.metric, c.entities))
			}
			b.ReportMetric(float64(n), "series")
		})
	}
}

// benchKeys lays out random keys with something behind each.
func benchKeys(n int, behind string) (arena []byte, ends []int) {
	for range n {
		arena = append(benchKey(arena, rand.IntN(benchSeries)), behind...)
		ends = append(ends, len(arena))
	}
	return arena, ends
}

// benchLookup looks up the same keys again and again; those with something behind are not in the index.
func benchLookup(b *testing.B, x *Index, n int, behind string) {
	arena, ends := benchKeys(n, behind)
	ids := make([]ID, len(ends))
	x.LookupAll(arena, ends, ids, nil)
	b.ReportAllocs()
	for b.Loop() {
		x.LookupAll(arena, ends, ids, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ends)), "ns/key")
	if (ids[0] == None) != (behind != "") {
		b.Error(ids[0])
	}
}

// benchCache is what of a hot lookup is fastcache.
func benchCache(b *testing.B, x *Index) {
	arena, ends := benchKeys(1000, "")
	x.LookupAll(arena, ends, make([]ID, len(ends)), nil)
	var buf [cachedBytes]byte
	for b.Loop() {
		start := 0
		for _, end := range ends {
			x.cache.Get(buf[:0], arena[start:end])
			start = end
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ends)), "ns/key")
}

// benchCold looks keys up that the cache does not have.
func benchCold(b *testing.B, r *Run) {
	arena, ends := benchKeys(200_000, "")
	rd := newReader(r)
	defer rd.done()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := 1 + i%(len(ends)-1)
		key := arena[ends[n-1]:ends[n]]
		if !r.filter.may(rd, filterHash(key)) {
			b.Fatal("filtered")
		}
		if p, err := rd.find(key); err != nil || p.id == None {
			b.Fatal(p, err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	_, one := benchRun(b, "1.index", func(i int) bool { return i%3 > 0 })
	_, two := benchRun(b, "2.index", func(i int) bool { return i%3 == 0 })
	for b.Loop() {
		if err := MergeRuns(io.Discard, []*Run{one, two}, NoRuns); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*benchSeries)/b.Elapsed().Seconds()/1e6, "Mkeys/s")
}
