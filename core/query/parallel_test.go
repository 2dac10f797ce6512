package query_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/query"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// splitter reads a backend in parallel, in pieces of any length, some with their stats.
type splitter struct {
	core.Reader
	seed uint64
}

// chosen is what a splitter selected.
type chosen struct {
	splitter
	list []splitSeries
}

type splitSeries struct {
	key    core.SeriesKey
	blocks []core.Block
}

func (s splitter) Select(ctx context.Context, q core.SeriesQuery) (core.Selection, error) {
	var list []splitSeries
	all := q
	all.Range = core.AllTime
	for k, err := range s.Keys(ctx, all) {
		if err != nil {
			return nil, err
		}
		list = append(list, splitSeries{key: k.Key})
	}
	for b, err := range s.Series(ctx, q) {
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(one splitSeries) bool { return one.key.Compare(b.Key) == 0 })
		list[i].blocks = append(list[i].blocks, core.Block{Times: slices.Clone(b.Times), Values: slices.Clone(b.Values), Decimals: slices.Clone(b.Decimals)})
	}
	return &chosen{s, list}, nil
}

func (s *chosen) Close() {}

func (s *chosen) Keys() iter.Seq[core.SeriesKey] {
	return func(yield func(core.SeriesKey) bool) {
		for _, one := range s.list {
			if !yield(one.key) {
				return
			}
		}
	}
}

func (s *chosen) Scan(ctx context.Context, visit core.Visit) error {
	list := s.list
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make([]error, 3)
	for w := range failed {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(list) && failed[w] == nil && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				failed[w] = visit(n, list[n].key, pieces(list[n].blocks, rand.New(rand.NewPCG(s.seed, uint64(n)))))
			}
		})
	}
	workers.Wait()
	return errors.Join(append(failed, ctx.Err())...)
}

// pieces cuts blocks where r says so.
func pieces(blocks []core.Block, r *rand.Rand) iter.Seq2[core.Piece, error] {
	return func(yield func(core.Piece, error) bool) {
		for _, b := range blocks {
			for from := 0; from < len(b.Times); {
				to := min(from+1+r.IntN(8), len(b.Times))
				part := &core.Block{Times: b.Times[from:to], Values: b.Values[from:to]}
				for _, d := range b.Decimals {
					if int(d.Index) >= from && int(d.Index) < to {
						part.Decimals = append(part.Decimals, core.DecimalAt{Index: d.Index - uint32(from), Decimal: d.Decimal})
					}
				}
				p := core.Piece{Rows: func() (*core.Block, error) { return part, nil }}
				if r.IntN(2) == 0 {
					p.Stats = statsOf(part)
				}
				if !yield(p, nil) {
					return
				}
				from = to
			}
		}
	}
}

func statsOf(b *core.Block) *core.Stats {
	var s core.Stats
	for i, v := range b.Values {
		if t := b.Times[i]; v == v {
			if s.Count == 0 {
				s = core.Stats{Sum: v, Min: v, Max: v, First: v, FirstTime: t, MinTime: t, MaxTime: t}
			} else {
				s.Sum += v
			}
			s.Count, s.Last, s.LastTime = s.Count+1, v, t
			if v < s.Min {
				s.Min, s.MinTime = v, t
			}
			if v > s.Max {
				s.Max, s.MaxTime = v, t
			}
		}
	}
	return &s
}

// one hides what a reader can do besides.
type one struct{ core.Reader }

// some picks, now and then, what the zero value is the alternative of.
func some[T any](r *rand.Rand, list ...T) (picked T) {
	if r.IntN(3) == 0 {
		picked = list[r.IntN(len(list))]
	}
	return picked
}

// randomQuery aggregates the world of storetest, and does all else that may go with it.
func randomQuery(r *rand.Rand) query.Series {
	functions := []string{"SUM", "AVG", "COUNT", "MIN", "MAX", "FIRST", "LAST", "DELTA", "COUNTER", "MIN_VALUE_TIME", "MAX_VALUE_TIME", "PERCENTILE(75)",
		"STANDARD_DEVIATION", "SLOPE", "WTAVG", "MEDIAN_ABS_DEV", "THRESHOLD_COUNT", "DETAIL"}
	second := func() string { return fmt.Sprintf("1970-01-01T00:00:%02dZ", r.IntN(20)) }
	q := query.Series{RequestID: "r", Metric: []string{"m", "n", "versioned", "none"}[min(r.IntN(20)/6, 3)],
		Dates:    query.DateFilter{StartDate: second(), EndDate: fmt.Sprintf("1970-01-01T00:00:%02dZ", 20+r.IntN(30))},
		Entities: []query.EntityFilter{{Entity: "*"}, {Entities: []string{"a", "nobody", "c"}}, {Entity: "b"}, {Group: "g"}}[r.IntN(4)],
		Tags:     some(r, map[string][]string{"k": {"1", "2"}}, map[string][]string{"none": {"1"}}), ExactMatch: some(r, true),
		Type: some(r, "FORECAST", "FORECAST_DEVIATION", "RECONSTRUCTED"), ForecastName: some(r, "plan"), AddMeta: some(r, true),
		Limit: some(r, 1, 2), SeriesLimit: some(r, 1, 2), Direction: some(r, "ASC", "DESC")}
	if r.IntN(8) == 0 {
		q.MinInsertDate = second()
	}
	if r.IntN(8) == 0 {
		q.SampleFilter = "value > 40"
	}
	q.Cache, q.Versioned = r.IntN(10) == 0, r.IntN(10) == 0
	limit := ptr(50.0)
	q.Aggregate = &query.Aggregate{Threshold: &query.Threshold{Max: limit}}
	for range 1 + r.IntN(3) {
		q.Aggregate.Types = append(q.Aggregate.Types, functions[r.IntN(len(functions))])
	}
	if r.IntN(4) > 0 {
		q.Aggregate.Period = &query.Period{Count: float64(1 + r.IntN(12)), Unit: "SECOND", Align: some(r, "START_TIME", "END_TIME", "FIRST_VALUE_TIME")}
		extend := some(r, true)
		q.Aggregate.Interpolate = some(r, &query.Interpolation{Type: "LINEAR", Extend: &extend}, &query.Interpolation{Type: "PREVIOUS", Extend: &extend})
	}
	q.Rate, q.Smooth = some(r, &query.Rate{}), some(r, &query.Smooth{Type: "AVG", Count: ptr(2.0)})
	q.Group = some(r, &query.Group{Types: []string{"SUM", "MAX"}}, &query.Group{Types: []string{"COUNT"}, By: &[]string{"entity"}})
	if r.IntN(2) == 0 {
		q.TransformationOrder = []string{"aggregate"}
	}
	return q
}

// printed is the whole answer to a query, with the error that ends it.
func printed(t *testing.T, src query.Source, q query.Series) string {
	p, err := q.Validate(dates.Moment{Now: 60_000, Zone: time.UTC})
	if err != nil {
		return "invalid: " + err.Error()
	}
	var out strings.Builder
	for r, err := range p.Run(t.Context(), src) {
		if err != nil {
			return out.String() + "error: " + err.Error()
		}
		out.Write(append(r.AppendJSON(nil), '\n'))
		fmt.Fprintln(&out, r.Lineage, r.Grid != nil, r.Decimal, r.Computed)
	}
	return out.String()
}

// TestParallelEqualsSequential asks readers that can and cannot read in parallel the same random queries, about random histories: the pieces of the first
// are those of a fake, and those of the store at whatever stage of its life.
func TestParallelEqualsSequential(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 11))
		oracle := memstore.New()
		db, _, err := storage.Open(vfs.NewMem(), "/data", storage.Options{FlushBytes: storage.DefaultFlushBytes})
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := storetest.NewGenerator(seed), storetest.NewGenerator(seed)
		both := func(stored, fed *core.Batch) {
			receipt, err := db.Append(t.Context(), stored)
			fed.Received = receipt.Received
			if fault := oracle.Apply(t.Context(), core.Entry{Position: receipt.Position, Batch: fed}); (err == nil) != (fault == nil) {
				t.Fatalf("seed %d: %v, the oracle says %v", seed, err, fault)
			}
			switch r.IntN(10) {
			case 0, 1:
				err = db.Flush(t.Context())
			case 2:
				err = db.Compact(t.Context())
			default:
				err = nil
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		group := func() *core.Batch {
			return &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{
				{Kind: core.DocGroup, Key: "g", Op: core.DocPut, Body: []byte(`{"name":"g","enabled":true,"members":["a","b-1"]}`)},
				{Kind: core.DocMetric, Key: "n", Op: core.DocPatch, Body: []byte(`{"dataType":"DECIMAL"}`)}}}
		}
		both(group(), group())
		for range 60 {
			both(theirs.Next(), ours.Next())
		}
		found, aggregated := 0, 0
		for range 150 {
			q := randomQuery(r)
			scope := core.AllEntities
			if r.IntN(4) == 0 {
				scope = core.Scope{Groups: []string{"g"}}
			}
			for name, pair := range map[string][2]query.Source{
				"fake":  {{Reader: splitter{oracle, r.Uint64()}, Catalog: oracle}, {Reader: oracle, Catalog: oracle}},
				"store": {{Reader: db, Catalog: db}, {Reader: one{db}, Catalog: db}},
			} {
				for i := range pair {
					pair[i].Scope = scope
				}
				got, want := printed(t, pair[0], q), printed(t, pair[1], q)
				if got != want {
					t.Fatalf("seed %d, %s, %+v:\n got %s\nwant %s", seed, name, q, got, want)
				}
				if strings.Contains(got, `"v":`) {
					found++
				}
				if strings.Contains(got, `["AGGREGATE"`) && strings.Contains(got, `"v":`) {
					aggregated++
				}
			}
		}
		if found < 50 || aggregated < 30 {
			t.Errorf("seed %d: %d answers with values, %d of them aggregated first", seed, found, aggregated)
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// scanner gives n series of one sample, with hooks.
type scanner struct {
	core.Reader
	n     int
	visit func(n int) error // before a series is visited
	rows  func(n int) error // instead of its samples, unless nil
}

func (s scanner) Select(context.Context, core.SeriesQuery) (core.Selection, error) {
	return scanning{s}, nil
}

// scanning is the series of a scanner.
type scanning struct{ scanner }

func (scanning) Close() {}

// Keys is not asked for.
func (scanning) Keys() iter.Seq[core.SeriesKey] { return func(func(core.SeriesKey) bool) {} }

func (s scanning) Scan(ctx context.Context, visit core.Visit) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make([]error, 4)
	for w := range failed {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < s.n && failed[w] == nil && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if failed[w] = s.visit(n); failed[w] != nil {
					return
				}
				failed[w] = visit(n, core.SeriesKey{Metric: "flow", Entity: fmt.Sprintf("e%04d", n)}, func(yield func(core.Piece, error) bool) {
					yield(core.Piece{Rows: func() (*core.Block, error) {
						return &core.Block{Times: []core.Time{1620036000000}, Values: []float64{float64(n)}}, s.rows(n)
					}}, nil)
				})
			}
		})
	}
	workers.Wait()
	return errors.Join(append(failed, ctx.Err())...)
}

func fine(int) error { return nil }

// TestParallelOrderAndEnd: results come in order however the work is done, an error comes behind all results before it, and who stops early or gives up
// leaves nobody at work. No series is visited long before its turn.
func TestParallelOrderAndEnd(t *testing.T) {
	s := pump(t)
	src := s.source()
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes, Aggregate: &query.Aggregate{Types: []string{"MAX"}}}
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, r scanner, each func(i int) bool) (n int, err error) {
		r.Reader, src.Reader = s, r
		for result, err := range p.Run(ctx, withReader(src, r)) {
			if err != nil {
				return n, err
			}
			if want := fmt.Sprintf("e%04d", n); result.Entity != want || result.Samples.Values[0] != float64(n) {
				t.Fatalf("result %d is of %s with %v", n, result.Entity, result.Samples.Values)
			}
			n++
			if !each(n) {
				break
			}
		}
		return n, nil
	}
	all := func(int) bool { return true }
	if n, err := run(t.Context(), scanner{n: 500, visit: fine, rows: fine}, all); n != 500 || err != nil {
		t.Errorf("%d results, %v", n, err)
	}
	bad := errors.New("bad block")
	if n, err := run(t.Context(), scanner{n: 500, visit: fine, rows: func(n int) error {
		if n >= 300 {
			return bad
		}
		return nil
	}}, all); n != 300 || !errors.Is(err, bad) {
		t.Errorf("%d results and %v, want 300 and the error of the next", n, err)
	}
	var visited, taken atomic.Int64
	ahead := func(int) error {
		if v := visited.Add(1) - taken.Load(); v > 64+4+1 {
			return fmt.Errorf("%d visits ahead of the answer", v)
		}
		return nil
	}
	n, err := run(t.Context(), scanner{n: 500, visit: ahead, rows: fine}, func(i int) bool { taken.Store(int64(i)); return i < 200 })
	if n != 200 || err != nil || visited.Load() == 500 {
		t.Errorf("%d results of 200, %v, %d series visited", n, err, visited.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	n, err = run(ctx, scanner{n: 500, visit: fine, rows: fine}, func(i int) bool {
		if i == 100 {
			cancel()
		}
		return true
	})
	if n != 100 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d results, %v: want 100 and the end of the context", n, err)
	}
}

func withReader(src query.Source, r core.Reader) query.Source {
	src.Reader = r
	return src
}

// TestParallelLimits: what an aggregation keeps counts, not what it reads.
func TestParallelLimits(t *testing.T) {
	s := pump(t)
	for _, tt := range []struct {
		function string
		limit    int
		fits     bool
	}{{"MAX", 1, true}, {"MEDIAN", 6, true}, {"MEDIAN", 5, false}} {
		src := s.source()
		src.Reader, src.Samples = splitter{s, 1}, tt.limit
		err := runError(t, t.Context(), src, query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes,
			Aggregate: &query.Aggregate{Types: []string{tt.function}}})
		if tt.fits && err != nil || !tt.fits && core.CodeOf(err) != core.TooLarge {
			t.Errorf("%s with limits.samples %d: %v", tt.function, tt.limit, err)
		}
	}
}
