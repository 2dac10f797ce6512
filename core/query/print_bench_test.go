package query_test

import (
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// BenchmarkAppendJSON prints 10,000 samples, a second apart, of numbers with two decimals.
func BenchmarkAppendJSON(b *testing.B) {
	const n = 10_000
	for _, c := range []struct {
		name   string
		format query.TimeFormat
	}{{"iso", query.ISO}, {"milliseconds", query.Millis}} {
		b.Run(c.name, func(b *testing.B) {
			r := query.Result{Entity: "host-1", Metric: "cpu_busy", Type: query.History, Format: c.format}
			for i := range n {
				r.Samples.Times = append(r.Samples.Times, 1_767_225_600_000+core.Time(i)*1000)
				r.Samples.Values = append(r.Samples.Values, float64(i*7919%10_000)/100)
			}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = r.AppendJSON(dst[:0])
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
