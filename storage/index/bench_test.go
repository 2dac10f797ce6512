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
	for _, c := range []struct {
		name   string
		keys   int
		absent bool
	}{{"hot", 1000, false}, {"warm", 200_000, false}, {"absent", 1000, true}} {
		b.Run("lookup/"+c.name, func(b *testing.B) {
			var arena []byte
			var ends []int
			for range c.keys {
				arena = benchKey(arena, rand.IntN(benchSeries))
				if c.absent {
					arena = append(arena, "t\x01v\x00"...)
				}
				ends = append(ends, len(arena))
			}
			ids := make([]ID, len(ends))
			x.LookupAll(arena, ends, ids)
			b.ReportAllocs()
			for b.Loop() {
				x.LookupAll(arena, ends, ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ends)), "ns/key")
			if (ids[0] == None) != c.absent {
				b.Error(ids[0])
			}
		})
	}
	b.Run("lookup/cacheAlone", func(b *testing.B) { // what of lookup/hot is fastcache
		var arena []byte
		var ends []int
		for range 1000 {
			arena = benchKey(arena, rand.IntN(benchSeries))
			ends = append(ends, len(arena))
		}
		x.LookupAll(arena, ends, make([]ID, len(ends)))
		var buf [cachedBytes]byte
		for b.Loop() {
			start := 0
			for _, end := range ends {
				x.cache.Get(buf[:0], arena[start:end])
				start = end
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ends)), "ns/key")
	})
	b.Run("lookup/cold", func(b *testing.B) {
		stack := x.stack
		rd := newReader(nil)
		defer rd.done()
		var key []byte
		b.ReportAllocs()
		for b.Loop() {
			key = benchKey(key[:0], rand.IntN(benchSeries))
			hash := filterHash(key)
			rd.use(r)
			if !r.filter.may(rd, hash) {
				b.Fatal("filtered")
			}
			if p, err := rd.find(key); err != nil || stack.list[0].marks.has(p.ordinal) || p.id == None {
				b.Fatal(p, err)
			}
		}
	})
	b.Run("key", func(b *testing.B) {
		var key []byte
		b.ReportAllocs()
		for b.Loop() {
			key, _ = x.Key(ID(rand.IntN(benchSeries)+1), key[:0])
		}
	})
	selects := []struct {
		name     string
		metric   string
		entities []string
	}{{"metric", "metric_500", nil}, {"entity", "", []string{"host-0500"}}, {"both", "metric_500", []string{"host-0500"}}, {"all", "", nil}}
	for _, c := range selects {
		b.Run("select/"+c.name, func(b *testing.B) {
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n = len(x.Select(c.metric, c.entities))
			}
			b.ReportMetric(float64(n), "series")
		})
	}
	b.Run("keys", func(b *testing.B) {
		ids := x.Select("metric_500", nil)
		for b.Loop() {
			for range x.Keys(ids) {
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/key")
	})
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
