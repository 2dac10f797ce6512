package storage

import (
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Ten days in: a metric that keeps samples for two days loses the others with the next merge, one that keeps series for five days names those without a newer
// sample, and one without settings loses nothing.
func TestRetentionOfMetrics(t *testing.T) {
	const day = core.Time(dayMillis)
	opts := small()
	opts.Now = func() core.Time { return 10 * day }
	db := open(t, vfs.NewMem(), opts)
	b := &core.Batch{}
	for _, metric := range []string{"kept", "samples", "series"} {
		for _, at := range []core.Time{1, 7, 9} {
			b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: "e"}), at*day, float64(at))
		}
	}
	b.Add(b.Ref(core.SeriesKey{Metric: "series", Entity: "quiet"}), 4*day, 4)
	b.Documents = []core.DocChange{
		{Kind: core.DocMetric, Key: "samples", Op: core.DocPatch, Body: []byte(`{"retentionDays":2}`)},
		{Kind: core.DocMetric, Key: "series", Op: core.DocPatch, Body: []byte(`{"seriesRetentionDays":5}`)},
	}
	if _, err := db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]int{"kept": 3, "samples": 1, "series": 4} {
		n := 0
		for b, err := range db.Series(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Metric: metric, Range: core.AllTime}) {
			if err != nil {
				t.Fatal(err)
			}
			n += len(b.Times)
		}
		if n != want {
			t.Errorf("%d samples of %s, want %d", n, metric, want)
		}
	}
	deletes, err := db.ExpiredSeries(t.Context())
	if err != nil || len(deletes) != 1 || deletes[0].Key.Entity != "quiet" || deletes[0].Range != core.AllTime {
		t.Errorf("series past their retention: %+v, %v", deletes, err)
	}
}
