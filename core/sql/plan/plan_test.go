package plan

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/parse"
)

// morning is 2024-03-04T10:00:00Z, a Monday.
const morning core.Time = 1709546400000

// facts knows what the tests ask for.
type facts struct{ store *memstore.Store }

func (f facts) Lookup(table, key string) (value string, found, exists bool, err error) {
	return "low", key == "3", table == "codes", nil
}

func (f facts) Collection(name string) ([]string, bool, error) {
	return []string{"B"}, name == "skip", nil
}

func (f facts) Entity(name string, _ *core.Time) (core.Entity, bool, error) {
	e, ok := f.store.Entity(name)
	return e, ok, nil
}

func (f facts) Groups(string) ([]string, error) { return []string{"pumps"}, nil }

func (f facts) Metrics(entity string) (names []string, err error) {
	for k, err := range f.store.Keys(context.Background(), core.SeriesQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{entity}}, Range: core.AllTime}) {
		if err != nil {
			return nil, err
		}
		names = append(names, k.Key.Metric)
	}
	return slices.Compact(names), nil
}

func (f facts) Property(string, string, core.Time, bool) (string, error) { return "", nil }

// plant is a store with the series of the acceptance tests, each with one sample.
func plant(t testing.TB) *memstore.Store {
	t.Helper()
	s := memstore.New()
	b := &core.Batch{Origin: core.SystemOrigin(0), Received: morning}
	for _, m := range []core.Metric{{Name: "flow", DataType: core.TypeDouble, Tags: map[string]string{"group": "hydraulics"}}, {Name: "level", DataType: core.TypeLong},
		{Name: "temp", DataType: core.TypeDouble}, {Name: "state", DataType: core.TypeFloat}, {Name: "short", DataType: core.TypeShort}, {Name: "disk.used", DataType: core.TypeDecimal}} {
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocMetric, Key: m.Name, Op: core.DocPut, Body: body})
	}
	for _, name := range []string{"pump-1", "pump-2"} {
		body, err := json.Marshal(core.Entity{Name: name, Enabled: true, Tags: map[string]string{"site": "North", "type-" + name: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPut, Body: body})
	}
	for _, k := range []core.SeriesKey{{Metric: "flow", Entity: "pump-1"}, {Metric: "flow", Entity: "pump-2"}, {Metric: "level", Entity: "pump-1", Tags: core.Tags{{Name: "tank", Value: "A"}}},
		{Metric: "level", Entity: "pump-1", Tags: core.Tags{{Name: "side", Value: "left"}, {Name: "tank", Value: "B"}}}, {Metric: "level", Entity: "valve-9"}, {Metric: "temp", Entity: "pump-1"},
		{Metric: "temp", Entity: "pump-2"}, {Metric: "state", Entity: "pump-1"}, {Metric: "short", Entity: "pump-1"}} {
		b.Add(b.Ref(k), morning, 1)
	}
	if err := s.Apply(t.Context(), core.Entry{Position: 1, Batch: b}); err != nil {
		t.Fatal(err)
	}
	return s
}

// optionsOf binds against a store as a caller who may read everything.
func optionsOf(s *memstore.Store) Options {
	return Options{Catalog: s, Reader: s, Metadata: s, Scope: core.AllEntities,
		Env: &expr.Env{Now: morning, Zone: time.UTC, ServerZone: time.UTC, Facts: facts{s}},
		Instants: func(context.Context, *ast.Select) ([]core.Time, error) {
			return []core.Time{morning, morning + 60_000, morning + 120_000}, nil
		},
		Names: func(ctx context.Context, q *Query, each func(string)) error { // whatever the filter says
			for e, err := range s.Entities(ctx, core.MetaQuery{}) {
				if err != nil {
					return err
				}
				each(e.Name)
			}
			return nil
		}}
}

func planned(t testing.TB, text string, o Options) (*Query, error) {
	t.Helper()
	statement, err := parse.Parse(text)
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	switch s := statement.(type) {
	case *ast.Select:
		return Bind(context.Background(), s, o)
	case *ast.Delete:
		return BindDelete(context.Background(), s, o)
	}
	t.Fatalf("%s is neither SELECT nor DELETE", text)
	return nil, nil
}
