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

// BenchmarkFleet stores one sample of each of 200,000 series after the other, ten times over, in a small budget: nearly every sample meets a series that has
// no place in memory.
func BenchmarkFleet(b *testing.B) {
	const hosts, perHost, rounds = 20_000, 10, 10
	for b.Loop() {
		db, _, err := Open(vfs.OS{}, b.TempDir(), Options{Sync: journal.Never, FlushBytes: 32 << 20})
		if err != nil {
			b.Fatal(err)
		}
		for round := range rounds {
			began := time.Now()
			for host := 0; host < hosts; host += 100 {
				batch := &core.Batch{}
				for h := host; h < host+100; h++ {
					for m := range perHost {
						ref := batch.Ref(core.SeriesKey{Metric: fmt.Sprintf("metric_%d", m), Entity: fmt.Sprintf("host-%06d", h)})
						batch.Add(ref, core.Time(1_700_000_000_000+int64(round)*10_000), float64(h%97)/4)
					}
				}
				if _, err := db.Append(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.Logf("round %d: %v", round, time.Since(began).Round(time.Millisecond))
		}
		if err := db.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(hosts*perHost*rounds*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}
