package query_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// Memory that is used again must not show in any answer: queries of all kinds, one after the other and side by side, print what they print with memory
// of their own.
func TestTransientResults(t *testing.T) {
	s := newStore(t)
	for i, e := range []string{"a", "b", "c"} {
		for n := range 5 - i {
			var b core.Batch
			date := at(t, fmt.Sprintf("2021-05-03T10:0%d:00Z", n))
			b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: e}), date, float64(10*i+n))
			if n%2 == i%2 {
				b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: uint32(b.Samples.Len() - 1), Text: "text " + e})
			}
			s.apply(&b)
		}
	}
	base := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes}
	with := func(change func(q *query.Series)) query.Series {
		q := base
		change(&q)
		return q
	}
	queries := []query.Series{
		base,
		with(func(q *query.Series) { q.Limit = 2 }),
		with(func(q *query.Series) { q.Limit, q.Direction = 1, "ASC" }),
		with(func(q *query.Series) { q.SampleFilter = "value > 1" }),
		with(func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"DETAIL", "MAX", "DETAIL"}} }),
		with(func(q *query.Series) {
			q.Aggregate = &query.Aggregate{Types: []string{"DETAIL", "DETAIL"}}
			q.Limit = 3
		}),
		with(func(q *query.Series) { q.Group = &query.Group{Types: []string{"SUM", "DETAIL"}} }),
		with(func(q *query.Series) { q.Rate = &query.Rate{} }),
		with(func(q *query.Series) { q.Downsample = &query.Downsample{} }),
	}
	own, again := s.source(), s.source()
	again.Transient = true
	print := func(q query.Series, src query.Source) string {
		p, err := q.Validate(moment)
		if err != nil {
			t.Error(err)
			return ""
		}
		var out strings.Builder
		for r, err := range p.Run(t.Context(), src) {
			if err != nil {
				t.Error(err)
				return ""
			}
			out.Write(r.AppendJSON(nil))
		}
		return out.String()
	}
	want := make([]string, len(queries))
	for i, q := range queries {
		want[i] = print(q, own)
		if !strings.Contains(want[i], `"v":`) {
			t.Errorf("query %d finds nothing: %s", i, want[i])
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				for i, q := range queries {
					if got := print(q, again); got != want[i] {
						t.Errorf("query %d: %s, want %s", i, got, want[i])
					}
				}
			}
		})
	}
	wg.Wait()
}

// Outputs that share their samples are each cut on their own.
func TestLimitOfSharedSamples(t *testing.T) {
	s := newStore(t)
	for n := range 3 {
		var b core.Batch
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "a"}), at(t, fmt.Sprintf("2021-05-03T10:0%d:00Z", n)), float64(n))
		b.Samples.Texts = []core.TextAt{{Text: fmt.Sprint("t", n)}}
		s.apply(&b)
	}
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "a"}, Dates: tenMinutes, Limit: 2, Aggregate: &query.Aggregate{Types: []string{"DETAIL", "DETAIL"}}}
	const data = `"data":[{"d":"2021-05-03T10:01:00.000Z","v":1,"x":"t1"},{"d":"2021-05-03T10:02:00.000Z","v":2,"x":"t2"}]}`
	if got := answer(t, s.source(), q); strings.Count(got, data) != 2 {
		t.Errorf("got %s, want twice %s", got, data)
	}
}
