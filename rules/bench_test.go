package rules

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/fstest"

	"github.com/tidemark-db/tidemark/core"
)

// emptyLog is a database that holds nothing.
type emptyLog struct{}

func (emptyLog) Append(context.Context, *core.Batch) (core.Receipt, error) {
	return core.Receipt{}, nil
}
func (emptyLog) Ingest(context.Context, *core.Batch) (core.Receipt, error) {
	return core.Receipt{}, nil
}
func (emptyLog) Tail(context.Context, core.Position) iter.Seq2[core.Entry, error] {
	return func(func(core.Entry, error) bool) {}
}
func (emptyLog) Wait(ctx context.Context, _ core.Position) error { <-ctx.Done(); return ctx.Err() }
func (emptyLog) End() core.Position                              { return 0 }
func (emptyLog) Metric(string) (core.Metric, bool)               { return core.Metric{}, false }
func (emptyLog) Entity(string) (core.Entity, bool)               { return core.Entity{}, false }
func (emptyLog) TagKnown(string) bool                            { return false }
func (emptyLog) Member(string, string) bool                      { return false }
func (emptyLog) Series(context.Context, core.SeriesQuery) iter.Seq2[core.Block, error] {
	return none[core.Block]
}
func (emptyLog) Keys(context.Context, core.SeriesQuery) iter.Seq2[core.KeyInfo, error] {
	return none[core.KeyInfo]
}
func (emptyLog) Messages(context.Context, core.MessageQuery) iter.Seq2[core.Message, error] {
	return none[core.Message]
}
func (emptyLog) Properties(context.Context, core.PropertyQuery) iter.Seq2[core.PropertyRecord, error] {
	return none[core.PropertyRecord]
}
func (emptyLog) AlertHistory(context.Context, core.AlertHistoryQuery) iter.Seq2[core.AlertRow, error] {
	return none[core.AlertRow]
}
func (emptyLog) Documents(context.Context, core.DocumentQuery) iter.Seq2[core.Document, error] {
	return none[core.Document]
}

func none[T any](func(T, error) bool) {}

func openBare(t testing.TB, rule string) *Engine {
	t.Helper()
	var log emptyLog
	e, err := Open(t.Context(), Config{Log: log, Ingest: log, Reader: log, Catalog: log, Clock: func() core.Time { return 1_000_000_000 }, NoDelivery: true,
		Files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(rule)}}})
	if err != nil {
		t.Fatal(err)
	}
	if f := e.Faults(); len(f) > 0 {
		t.Fatal(f)
	}
	return e
}

// batchOf holds one sample for each of n series, all below 80.
func batchOf(n int) *core.Batch {
	b := &core.Batch{}
	for i := range n {
		ref := b.Ref(core.SeriesKey{Metric: "temp", Entity: fmt.Sprintf("sensor-%d", i), Tags: core.Tags{{Name: "site", Value: "north"}}})
		b.Add(ref, 0, float64(i%70))
	}
	return b
}

// BenchmarkEngine measures one core from batch to status; an operation is one evaluation.
func BenchmarkEngine(b *testing.B) {
	for name, rule := range map[string]string{
		"value":    "name: r\ntype: series\nfilter: {metric: temp}\ncondition: 'value > 80'\n",
		"compound": "name: r\ntype: series\nfilter: {metric: temp}\ncondition: 'value > 80 && tags.site == \"north\"'\n",
		"avg-5m":   "name: r\ntype: series\nfilter: {metric: temp}\nwindow: {duration: 5m}\ncondition: 'avg() > (before_status == \"CANCEL\" ? 80 : 70)'\n",
	} {
		b.Run(name, func(b *testing.B) {
			e := openBare(b, rule)
			const series = 1000
			batch := batchOf(series)
			now := core.Time(1_000_000_000)
			position := core.Position(0)
			b.ReportAllocs()
			b.ResetTimer()
			for range (b.N + series - 1) / series {
				now += 1000
				position++
				batch.Received = now
				for i := range batch.Samples.Times {
					batch.Samples.Times[i] = now
				}
				e.entry(core.Entry{Position: position, Batch: batch})
			}
			b.StopTimer()
			if got := e.Status().Evaluations; got < uint64(b.N) {
				b.Fatalf("%d evaluations, want %d", got, b.N)
			}
		})
	}
}
