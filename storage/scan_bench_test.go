package storage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// BenchmarkScanFile reads a day of 1,000 series, 8,640 samples each, from one file.
func BenchmarkScanFile(b *testing.B) {
	db, _, err := Open(vfs.OS{}, b.TempDir(), Options{Sync: journal.Never, FlushBytes: DefaultFlushBytes})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close(context.Background())
	const series, steps = 1000, 8640
	level := make([]int64, series)
	rnd := uint64(1)
	began := time.Now()
	for step := 0; step < steps; step += 10 {
		batch := &core.Batch{}
		for s := range series {
			key := core.SeriesKey{Metric: fmt.Sprintf("metric_%d", s%10), Entity: fmt.Sprintf("host_%d", s/10)}
			batch.Keys = append(batch.Keys, key)
			for i := range 10 {
				rnd = rnd*6364136223846793005 + 1442695040888963407
				level[s] += int64(rnd>>60) - 7
				batch.Samples.Series = append(batch.Samples.Series, uint32(s))
				batch.Samples.Times = append(batch.Samples.Times, 1_700_000_000_000+core.Time(step+i)*10_000)
				batch.Samples.Values = append(batch.Samples.Values, float64(level[s])/100)
				batch.Samples.Flags = append(batch.Samples.Flags, core.Stored|core.HasValue)
			}
		}
		if _, err := db.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%.2f M samples/s in", series*steps/1e6/time.Since(began).Seconds())
	began = time.Now()
	if err := db.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	size := int64(0)
	for _, e := range db.flusher.manifest.Files {
		size += e.Size
	}
	b.Logf("compacted in %v, %.3f bytes a sample", time.Since(began), float64(size)/(series*steps))
	for _, q := range []core.SeriesQuery{{Metric: "metric_3"}, {}} {
		q.Scope, q.Range = core.AllEntities, core.AllTime
		b.Run("metric="+q.Metric, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = 0
				for block, err := range db.Series(b.Context(), q) {
					if err != nil {
						b.Fatal(err)
					}
					n += len(block.Times)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/1e6/b.Elapsed().Seconds(), "Msamples/s")
		})
	}
}
