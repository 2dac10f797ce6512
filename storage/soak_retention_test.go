package storage

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
)

// Retention in a soak, whose clock moves an hour with every soakHour batches: days pass in seconds.
const (
	soakHour      = 4
	soakSamples   = 24 * core.Time(60*60*1000) // what the metric "brief" keeps: a day
	soakMessages  = 36 * time.Hour
	soakRetention = 1 << 20 // bytes of files: some days of samples
)

// TestSoakRetention has a writer and readers while time passes and everything goes again: samples by the retention of their metric, series by theirs, messages by the time of
// their receipt, and whole files by retention.bytes. What there is stays within bounds, on the disk as well, and in the end what has not expired is there, and nothing else of
// what has a retention.
func TestSoakRetention(t *testing.T) {
	dir := t.TempDir()
	var now atomic.Int64
	now.Store(int64(1_900_000_000_000))
	opts := small()
	opts.Now = func() core.Time { return core.Time(now.Load()) }
	opts.FlushBytes, opts.Sync, opts.Reserve = 64<<10, journal.Never, -1
	opts.MessageRetention, opts.RetentionBytes = soakMessages, soakRetention
	db := openAt(t, dir, opts)
	settings := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{
		{Kind: core.DocMetric, Key: "brief", Op: core.DocPatch, Body: []byte(`{"retentionDays":1}`)},
		{Kind: core.DocMetric, Key: "passing", Op: core.DocPatch, Body: []byte(`{"seriesRetentionDays":1}`)},
	}}
	if _, err := db.Append(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soakTime(t))
	defer cancel()
	var readers sync.WaitGroup
	for n := range 2 {
		readers.Go(func() { readEverything(ctx, t, db, uint64(n)) })
	}
	var first, last footprint
	peak := int64(0)
	n := 0
	for start := time.Now(); ctx.Err() == nil && !t.Failed(); n++ {
		if n%soakHour == 0 {
			now.Add(int64(time.Hour / time.Millisecond))
		}
		if _, err := db.Append(t.Context(), passingBatch(n, opts.Now())); err != nil {
			t.Fatal(err)
		}
		if n%64 == 63 {
			expireSeries(t, db)
		}
		if n%32 == 31 {
			last = measure(t, db, dir)
			if first == (footprint{}) && time.Since(start) > soakTime(t)/4 {
				first = last
			}
			if err := last.within(); err != nil {
				t.Error(err)
			}
			size := db.disk.files.Load()
			if peak = max(peak, size); peak > soakRetention && size < soakRetention/2 {
				t.Errorf("files take %d bytes, and %d are to be kept: too much went at once", size, soakRetention)
			}
		}
	}
	cancel()
	readers.Wait()
	if usage, err := db.Usage(); err == nil {
		t.Logf("kinds: %+v", usage.Kinds)
	}
	t.Logf("%d batches, %d days; at first %+v, at last %+v; files took at most %d bytes", n, n/soakHour/24, first, last, peak)
	if first != (footprint{}) && last.goroutines > first.goroutines+10 {
		t.Errorf("goroutines grew from %d to %d", first.goroutines, last.goroutines)
	}
	// A merge writes the new file before the old ones go, and the tables do not count as data that can go.
	if peak > 4*soakRetention {
		t.Errorf("files took %d bytes, and %d are to be kept", peak, soakRetention)
	}
	expireSeries(t, db)
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkExpired(t, db, n)
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkExpired(t, openAt(t, dir, opts), n)
}

// passingBatch is batch n: samples of the moment, of a metric that keeps all, one that keeps a day, and of a series that gets no more of them; and a message.
func passingBatch(n int, at core.Time) *core.Batch {
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	at += core.Time(n % soakHour)
	r := rand.New(rand.NewPCG(uint64(n), 5))
	for s := range 20 {
		entity := fmt.Sprint("h", s)
		b.Add(b.Ref(core.SeriesKey{Metric: "brief", Entity: entity}), at, float64(n))
		lasting := b.Ref(core.SeriesKey{Metric: "lasting", Entity: entity})
		for i := range 10 {
			b.Add(lasting, at+core.Time(i*10), r.Float64())
		}
	}
	b.Add(b.Ref(core.SeriesKey{Metric: "passing", Entity: fmt.Sprint("p", n/soakHour)}), at, 1)
	b.Messages = append(b.Messages, core.Message{Time: at, Entity: "e", Type: "t", Text: fmt.Sprint(n), Flags: core.Default})
	return b
}

// expireSeries does what the server does every hour.
func expireSeries(t *testing.T, db *DB) {
	t.Helper()
	deletes, err := db.ExpiredSeries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(deletes) == 0 {
		return
	}
	if _, err := db.Append(t.Context(), &core.Batch{Origin: core.SystemOrigin(0), Series: deletes}); err != nil {
		t.Fatal(err)
	}
}

// checkExpired compares what is there after n batches with what has not expired. Messages, and the samples of a metric that keeps all, go with the oldest files
// at the earliest, and two days are never among them.
func checkExpired(t *testing.T, db *DB, n int) {
	t.Helper()
	now := db.opts.Now()
	batchAt := func(i int) core.Time { // when batch i was written
		return now - core.Time((n-1)/soakHour-i/soakHour)*core.Time(time.Hour/time.Millisecond) + core.Time(i%soakHour)
	}
	times := map[string]map[core.Time]bool{}
	series := map[string]bool{}
	for b, err := range db.Series(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		if err != nil {
			t.Fatal(err)
		}
		if series[b.Key.Entity] = true; b.Key.Entity == "h3" {
			if times[b.Key.Metric] == nil {
				times[b.Key.Metric] = map[core.Time]bool{}
			}
			for _, at := range b.Times {
				times[b.Key.Metric][at] = true
			}
		}
	}
	messages := map[core.Time]bool{}
	for m, err := range db.Messages(t.Context(), core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		if err != nil {
			t.Fatal(err)
		}
		messages[m.Time] = true
	}
	for i := max(n-soakHour*47, 0); i < n; i++ {
		at := batchAt(i)
		if young := at >= now-soakSamples; times["brief"][at] != young {
			t.Fatalf("batch %d, %v old, of a metric that keeps a day: there %v", i, time.Duration(now-at)*time.Millisecond, !young)
		}
		if !times["lasting"][at] {
			t.Fatalf("batch %d, %v old, of a metric that keeps all, is gone", i, time.Duration(now-at)*time.Millisecond)
		}
		if received := batchAt(i / soakHour * soakHour); received >= now-core.Time(soakMessages.Milliseconds()) != messages[at] {
			t.Fatalf("message %d, received %v ago: there %v", i, time.Duration(now-received)*time.Millisecond, messages[at])
		}
		if entity := fmt.Sprint("p", i/soakHour); i%soakHour == soakHour-1 && series[entity] != (at >= now-soakSamples) {
			t.Fatalf("series %s, whose last sample is %v old: there %v", entity, time.Duration(now-at)*time.Millisecond, series[entity])
		}
	}
	oldest := batchAt(max(n-soakHour*47, 0))
	for _, at := range slices.Sorted(maps.Keys(times["brief"])) {
		if at < oldest {
			t.Fatalf("a sample of %d is there, %v old", at, time.Duration(now-at)*time.Millisecond)
		}
		break
	}
}
