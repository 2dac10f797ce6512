package storage

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

const benchSeries = 1000

// benchKeys are the series of a thousand machines.
func benchKeys() []core.SeriesKey {
	keys := make([]core.SeriesKey, benchSeries)
	for i := range keys {
		keys[i] = core.SeriesKey{Metric: "disk.used_percent", Entity: fmt.Sprintf("server-%04d", (i*7)%benchSeries),
			Tags: core.Tags{{Name: "mount", Value: "/var"}}}
	}
	return keys
}

// benchBatch has one sample of every series, as a request would: with keys of its own.
func benchBatch(keys []core.SeriesKey, step int) *core.Batch {
	n := len(keys)
	b := &core.Batch{Keys: keys, Samples: core.Samples{
		Series: make([]uint32, n), Times: make([]core.Time, n), Values: make([]float64, n), Flags: make([]core.Flags, n),
	}}
	for i := range n {
		b.Samples.Series[i] = uint32(i)
		b.Samples.Times[i] = storetest.Epoch + core.Time(step)*15_000
		b.Samples.Values[i] = float64((i*31+step*17)%10_000) / 100
		b.Samples.Flags[i] = core.Default | core.HasValue
	}
	return b
}

func perSample(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchSeries/b.Elapsed().Seconds(), "samples/s")
	b.ReportAllocs()
}

// restartEvery bounds the memory of a benchmark, whatever b.N is.
const restartEvery = 2000

func BenchmarkApply(b *testing.B) {
	keys := benchKeys()
	batch := benchBatch(keys, 0)
	var e encoder
	var st *state
	for i := 0; b.Loop(); i++ {
		if i%restartEvery == 0 {
			b.StopTimer()
			if st != nil {
				st.index.Close()
			}
			st = newState(Options{}.withDefaults(), manifest{Generation: 1})
			st.index = index.Open(0, nil, 1)
			b.StartTimer()
		}
		for j := range batch.Samples.Times {
			batch.Samples.Times[j] = core.Time(i)
		}
		e.prepareKeys(batch)
		if err := st.apply(batch, &e); err != nil {
			b.Fatal(err)
		}
	}
	perSample(b)
}

func BenchmarkAppend(b *testing.B) {
	for _, mode := range []struct {
		name string
		sync journal.Mode
	}{{"always", journal.Always}, {"interval", journal.Interval}} {
		b.Run(mode.name, func(b *testing.B) {
			keys := benchKeys()
			var db *DB
			open := func() {
				var err error
				if db != nil {
					if err = db.Close(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				if db, _, err = Open(vfs.OS{}, b.TempDir(), Options{Sync: mode.sync}); err != nil {
					b.Fatal(err)
				}
			}
			for i := 0; b.Loop(); i++ {
				if i%restartEvery == 0 {
					b.StopTimer()
					open()
					b.StartTimer()
				}
				if _, err := db.Append(b.Context(), benchBatch(keys, i)); err != nil {
					b.Fatal(err)
				}
			}
			perSample(b)
			b.ReportMetric(float64(db.journal.Status().Bytes)/float64(min(b.N, restartEvery))/benchSeries, "disk-bytes/sample")
			if err := db.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	p, err := newPacker()
	if err != nil {
		b.Fatal(err)
	}
	batch := benchBatch(benchKeys(), 1)
	var e encoder
	for b.Loop() {
		if err := e.encode(p, batch); err != nil {
			b.Fatal(err)
		}
	}
	perSample(b)
	b.ReportMetric(float64(len(e.payload))/benchSeries, "bytes/sample")
}

func BenchmarkDecode(b *testing.B) {
	p, err := newPacker()
	if err != nil {
		b.Fatal(err)
	}
	var e encoder
	if err := e.encode(p, benchBatch(benchKeys(), 1)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.decodeRecord(e.payload); err != nil {
			b.Fatal(err)
		}
	}
	perSample(b)
}

// BenchmarkScan reads a million samples of a thousand series.
func BenchmarkScan(b *testing.B) {
	db := open(b, vfs.NewMem(), Options{Sync: journal.Never})
	keys := benchKeys()
	const steps = 1000
	for i := range steps {
		if _, err := db.Append(b.Context(), benchBatch(keys, i)); err != nil {
			b.Fatal(err)
		}
	}
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: keys[0].Metric, Range: core.AllTime}
	for b.Loop() {
		n := 0
		for block, err := range db.Series(b.Context(), q) {
			if err != nil {
				b.Fatal(err)
			}
			n += len(block.Times)
		}
		if n != steps*benchSeries {
			b.Fatalf("%d samples", n)
		}
	}
	b.ReportMetric(float64(b.N)*steps*benchSeries/b.Elapsed().Seconds(), "samples/s")
}

// BenchmarkReplay opens a database with five million samples in its journal.
func BenchmarkReplay(b *testing.B) {
	const steps = 5000
	dir := b.TempDir()
	opts := Options{Sync: journal.Never}
	db, _, err := Open(vfs.OS{}, dir, opts)
	if err != nil {
		b.Fatal(err)
	}
	keys := benchKeys()
	for i := range steps {
		if _, err := db.Append(b.Context(), benchBatch(keys, i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	db = nil
	before, grown := liveHeap(), int64(0)
	for b.Loop() {
		db, report, err := Open(vfs.OS{}, dir, opts)
		if err != nil || report.Samples != steps*benchSeries {
			b.Fatal(report, err)
		}
		b.StopTimer()
		grown = max(grown, liveHeap()-before)
		if err := db.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*steps*benchSeries/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(grown)/(steps*benchSeries), "heap-bytes/sample")
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // pools let go of what they hold in the second round
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
