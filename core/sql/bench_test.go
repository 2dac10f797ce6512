package sql_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql"
)

// BenchmarkManyKeys groups 10 million rows that all have keys of their own in the memory that a small server gives to a query: nearly all goes through files.
// Beside the time it reports the 99th percentile of a small query that is asked meanwhile, and of the same before, and how much the heap grew.
func BenchmarkManyKeys(b *testing.B) {
	const series, samples = 100, 100_000
	w := newWorld(b, openStorage)
	for s := range series {
		batch := &core.Batch{Origin: core.SystemOrigin(0)}
		ref := batch.Ref(core.SeriesKey{Metric: "m", Entity: string(rune('a'+s/26)) + string(rune('a'+s%26))})
		for i := range samples {
			batch.Add(ref, origin+core.Time(i*1000+s), float64(i%1000))
		}
		if _, err := w.pipe.Ingest(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	w.engine.Memory, w.engine.Spill = 64<<20, 2<<30
	ask := func(ctx context.Context, text string) {
		if _, err := w.rows(ctx, text); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
	}
	small := func(ctx context.Context) (times []float64) {
		for ctx.Err() == nil {
			began := time.Now()
			ask(ctx, fmt.Sprintf("SELECT datetime, avg(value) FROM m WHERE entity = 'aa' AND time < %d GROUP BY PERIOD(1 MINUTE)", origin+3_600_000))
			times = append(times, time.Since(began).Seconds()*1e3)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		slices.Sort(times)
		return times
	}
	for name, text := range map[string]string{
		"group":    "SELECT time, count(*) FROM m GROUP BY time",
		"distinct": "SELECT DISTINCT time FROM m",
	} {
		b.Run(name, func(b *testing.B) {
			alone, stop := context.WithTimeout(b.Context(), 2*time.Second)
			before := small(alone)
			stop()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			base, peak := m.HeapInuse, m.HeapInuse
			var during []float64
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				var others sync.WaitGroup
				others.Go(func() { during = small(ctx) })
				others.Go(func() {
					for ctx.Err() == nil {
						runtime.ReadMemStats(&m)
						peak = max(peak, m.HeapInuse)
						select {
						case <-ctx.Done():
						case <-time.After(100 * time.Millisecond):
						}
					}
				})
				n, err := w.rows(ctx, text)
				cancel()
				others.Wait()
				if err != nil || n != series*samples {
					b.Fatalf("%d rows, %v; want %d", n, err, series*samples)
				}
			}
			b.ReportMetric(before[len(before)*99/100], "ms-p99-alone")
			b.ReportMetric(during[len(during)*99/100], "ms-p99-beside")
			b.ReportMetric(float64(peak-base)/1e6, "MB-heap")
		})
	}
}

// BenchmarkStore stores the rows of a query, 864,000 of 100 series, as series of another metric.
func BenchmarkStore(b *testing.B) {
	const series, samples = 100, 8640
	w := newWorld(b, openStorage)
	for s := range series {
		batch := &core.Batch{Origin: core.SystemOrigin(0)}
		ref := batch.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprintf("host-%02d", s), Tags: core.Tags{{Name: "t", Value: "a"}}})
		for i := range samples {
			batch.Add(ref, origin+core.Time(i*10_000), float64(i%100))
		}
		if _, err := w.pipe.Ingest(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for _, o := range []sql.StoreOptions{{}, {Newer: true}} {
		b.Run(map[bool]string{false: "all", true: "newer"}[o.Newer], func(b *testing.B) {
			for b.Loop() {
				r := sql.Request{Text: "SELECT time, entity, tags, value * 2 AS doubled FROM m", Origin: core.SystemOrigin(0)}
				if done, err := w.engine.Store(b.Context(), r, o); err != nil || done.Rows != series*samples {
					b.Fatalf("%+v, %v", done, err)
				}
			}
			b.ReportMetric(float64(b.N)*series*samples/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
