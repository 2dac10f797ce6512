package storage

import (
	"context"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/samples"
)

// expiry knows which samples are past the retention of their metric.
type expiry struct {
	db  *DB
	now core.Time
	// retention of metrics by the prefix of their series keys is looked up once for each series; most databases have none at all, which is asked first.
	any bool
	buf []byte
}

const dayMillis = 24 * 60 * 60 * 1000

func (db *DB) expiry() *expiry {
	e := &expiry{db: db, now: db.opts.Now()}
	db.catalog.mu.RLock()
	defer db.catalog.mu.RUnlock()
	for m := range db.catalog.metrics.objects() {
		if doc := m.doc.Load(); doc != nil && doc.retained {
			e.any = true
		}
	}
	return e
}

// metric returns the settings of the metric of a series, nil when there are none or they say nothing about retention.
func (e *expiry) metric(id index.ID) *core.Metric {
	if !e.any {
		return nil
	}
	canonical, ok := e.db.index.Key(id, e.buf[:0])
	if !ok {
		return nil
	}
	e.buf = canonical
	for i, c := range canonical {
		if c == 0 {
			if m := e.db.catalog.lookupMetric(string(canonical[:i])); m != nil {
				if doc := m.doc.Load(); doc != nil && doc.retained {
					return e.db.catalog.hotMetrics.get(m.name, doc, (*packedMetric).unpack)
				}
			}
			break
		}
	}
	return nil
}

// kept is the range of time in which samples of a series are kept.
func (e *expiry) kept(id index.ID) core.Range {
	r := core.Range{Start: math.MinInt64, End: math.MaxInt64}
	if m := e.metric(id); m != nil && m.RetentionDays > 0 {
		r.Start = e.now - core.Time(m.RetentionDays)*dayMillis
	}
	return r
}

// worthRewriting is the share of a file that has to be past its retention for the file to be written again without it: a fourth, so that each byte is
// written again at most some four times for it.
const worthRewriting = 4

// expiryEvery is how long the worker does not look for what is past its retention, in milliseconds: retention is told in days.
const expiryEvery = 60 * 60 * 1000

// expired picks a file of samples of which enough is past its retention. Only the directories are read.
func (s sampleShelf) expired() (merge, bool) {
	e := s.db.expiry()
	if !e.any {
		return merge{}, false
	}
	for _, f := range s.db.views.current.Load().files {
		var gone int64
		last, kept := samples.ID(0), core.Range{}
		for entry, err := range f.file.Entries() {
			if err != nil {
				continue // what cannot be read stays for tidemark check
			}
			if entry.ID != last {
				last, kept = entry.ID, e.kept(index.ID(entry.ID))
			}
			switch {
			case entry.Last < kept.Start:
				gone += entry.Bytes()
			case entry.First < kept.Start: // about so much of it
				gone += int64(float64(entry.Bytes()) * float64(kept.Start-entry.First) / float64(entry.Last-entry.First+1))
			}
		}
		if !f.spoiled && gone > 0 && gone >= f.file.Size()/worthRewriting {
			return s.merging([]*sampleFile{f}), true
		}
	}
	return merge{}, false
}

// ExpiredSeries returns the deletes that the retention of series asks for: of series whose newest sample is older than their metric keeps series. The caller
// sends them the way of all writes, so that whoever follows the log sees them.
func (db *DB) ExpiredSeries(ctx context.Context) (deletes []core.SeriesDelete, err error) {
	now := db.opts.Now()
	for m, err := range db.Metrics(ctx, core.MetaQuery{}) {
		if err != nil {
			return nil, err
		}
		if m.SeriesRetentionDays <= 0 {
			continue
		}
		before := now - core.Time(m.SeriesRetentionDays)*dayMillis
		for info, err := range db.Keys(ctx, core.SeriesQuery{Scope: core.AllEntities, Metric: m.Name, Range: core.AllTime}) {
			if err != nil {
				return nil, err
			}
			if info.Last < before {
				deletes = append(deletes, core.SeriesDelete{Key: info.Key, Range: core.AllTime})
			}
		}
	}
	return deletes, nil
}
