package api

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

var nan = math.NaN()

func decodeSeries(t testing.TB, body string) *core.Batch {
	t.Helper()
	if err := scanJSON(body, 64); err != nil {
		t.Fatal(err)
	}
	d := seriesDecoder{batch: &core.Batch{}, records: 1 << 20, catalog: memstore.New()}
	if err := d.decode(body); err != nil {
		t.Fatal(err)
	}
	return d.batch
}

// Members come in any order, series repeat, and the columns of the batch hold exactly what was sent.
func TestSeriesDecoder(t *testing.T) {
	got := decodeSeries(t, `[{"data":[{"x":"a","t":2},{"v":0.1,"t":1,"x":"b","version":{"status":"s","source":"o"}}],"tags":{"B":"2","a":1},"metric":"M","entity":"E"},
		{"entity":"e","metric":"m","tags":{"a":"1","b":"2"},"unknown":{"data":[]},"type":"history","data":[{"t":3,"d":"ignored","v":1234567890.123456789}]}]`)
	want := &core.Batch{
		Keys: []core.SeriesKey{{Metric: "m", Entity: "e", Tags: core.Tags{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}}},
		Samples: core.Samples{
			Series: []uint32{0, 0, 0}, Times: []core.Time{2, 1, 3}, Values: []float64{nan, 0.1, 1234567890.123456789},
			Flags: []core.Flags{core.Default, core.Default | core.HasValue, core.Default | core.HasValue},
			Texts: []core.TextAt{{Index: 0, Text: "a"}, {Index: 1, Text: "b"}},
			// The shortest text of the double is 1234567890.1234567: the digits that were sent are kept beside it.
			Decimals: []core.DecimalAt{{Index: 2, Decimal: core.Decimal{Significand: 1234567890123456789, Exponent: -9}}},
			Versions: []core.VersionAt{{Index: 1, Source: "o", Status: "s"}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(core.Batch{}), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// insertBody is a request of n samples in series of perSeries samples each.
func insertBody(n, perSeries int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < n; i += perSeries {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"entity":"sensor-%04d","metric":"temperature","tags":{"site":"north","rack":"r%d"},"data":[`, i/perSeries, i%7)
		for j := range perSeries {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"t":%d,"v":%.3f}`, 1620036030000+int64(j)*1000, 20+float64(i+j)/37)
		}
		b.WriteString("]}")
	}
	b.WriteByte(']')
	return b.String()
}

// BenchmarkSeriesInsert is the way from the body to the batch: scan and decode, 1,000 samples a request.
func BenchmarkSeriesInsert(b *testing.B) {
	catalog := memstore.New()
	for _, perSeries := range []int{1000, 10, 1} {
		b.Run(fmt.Sprintf("samples=%d", perSeries), func(b *testing.B) {
			body := insertBody(1000, perSeries)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := scanJSON(body, 64); err != nil {
					b.Fatal(err)
				}
				d := seriesDecoder{batch: &core.Batch{}, records: 1 << 20, catalog: catalog}
				if err := d.decode(body); err != nil {
					b.Fatal(err)
				}
				d.keys.release()
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// accepting takes every batch and keeps none: what is measured is this package and authentication.
type accepting struct{}

func (accepting) Ingest(context.Context, *core.Batch) (core.Receipt, error) {
	return core.Receipt{Durability: core.Synced}, nil
}

// BenchmarkInsertRequest is a whole request of 1,000 samples, from the header to the answer.
func BenchmarkInsertRequest(b *testing.B) {
	w := newWorld(b, Limits{})
	w.server.Ingest = accepting{}
	body := insertBody(1000, 100)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if rec := w.do("admin", "POST", "/api/v1/series/insert", body); rec.Code != 200 {
			b.Fatal(rec.Body)
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

// BenchmarkPing is what every request pays: routing and a password that was verified before.
func BenchmarkPing(b *testing.B) {
	w := newWorld(b, Limits{})
	b.ReportAllocs()
	for b.Loop() {
		if rec := w.do("eva", "GET", "/api/v1/ping", ""); rec.Code != 200 {
			b.Fatal(rec.Body)
		}
	}
}
