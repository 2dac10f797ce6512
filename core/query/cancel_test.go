package query_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// deaf is a backend that never looks at the context.
type deaf struct{ core.Reader }

func (d deaf) Properties(_ context.Context, q core.PropertyQuery) iter.Seq2[core.PropertyRecord, error] {
	return d.Reader.Properties(context.Background(), q)
}

func (d deaf) Series(_ context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return d.Reader.Series(context.Background(), q)
}

// TestQueriesEndWithTheirContext stops each kind of query after its first record, whatever the backend does.
func TestQueriesEndWithTheirContext(t *testing.T) {
	s := newStore(t)
	for _, entity := range []string{"a", "b", "c"} {
		s.sample("m "+entity, "2029-05-01T00:00:00Z", 1)
		s.apply(&core.Batch{Properties: []core.Property{{PropertyKey: core.PropertyKey{Type: "p", Entity: entity}, Tags: core.Tags{{Name: "x", Value: "y"}},
			Time: at(t, "2029-05-01T00:00:00Z"), Flags: core.Default}}})
	}
	src := query.Source{Reader: deaf{s}, Catalog: s, Scope: core.AllEntities}
	moment := dates.Moment{Now: at(t, "2030-01-01T00:00:00Z")}
	within := query.DateFilter{StartDate: "2029-01-01T00:00:00Z", EndDate: "2030-01-01T00:00:00Z"}
	whose := query.EntityFilter{Entity: "*"}
	series, err := query.Series{Metric: "m", Entities: whose, Dates: within}.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	properties, err := query.Properties{Type: "p", Entities: whose, Dates: within, KeyTagExpression: "tags.x LIKE 'y*'"}.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(context.Context, func()) (int, error){
		"series": func(ctx context.Context, each func()) (n int, err error) {
			for _, err = range series.Run(ctx, src) {
				n++
				each()
			}
			return n, err
		},
		"properties": func(ctx context.Context, each func()) (n int, err error) {
			for _, err = range properties.Run(ctx, src) {
				n++
				each()
			}
			return n, err
		},
	} {
		if n, err := run(t.Context(), func() {}); n != 3 || err != nil {
			t.Errorf("%s: %d records, %v, want 3", name, n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if n, err := run(ctx, cancel); n != 2 || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %d items with the error %v, want a record and the end of the context", name, n, err)
		}
	}
}
