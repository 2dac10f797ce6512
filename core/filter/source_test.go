package filter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// The functions of a Source, asked over the contracts alone, say what is in the store.
func TestSource(t *testing.T) {
	const hour = core.Time(3_600_000)
	now := func() core.Time { return 100 * hour }
	store := memstore.New()
	b := &core.Batch{Received: now(), Documents: []core.DocChange{
		{Kind: core.DocEntity, Key: "e", Body: []byte(`{"enabled":true,"tags":{"site":"x"}}`)},
		{Kind: core.DocGroup, Key: "g", Body: []byte(`{"enabled":true,"members":["e"]}`)},
		{Kind: core.DocCollection, Key: "c", Body: []byte(`{"values":["e","f"]}`)},
	}}
	b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e"}), 98*hour, 1)
	b.Properties = []core.Property{{PropertyKey: core.PropertyKey{Entity: "e", Type: "disk", Key: core.Tags{{Name: "dev", Value: "sda"}}}, Time: 1,
		Tags: core.Tags{{Name: "size", Value: "10"}}, Flags: core.Default}}
	if err := store.Apply(t.Context(), core.Entry{Position: 1, Batch: b}); err != nil {
		t.Fatal(err)
	}
	source := filter.Source{Reader: store, Catalog: store, Now: now}
	compiler := filter.Compiler{Functions: source.Functions(t.Context()), Now: now}
	for text, want := range map[string]bool{
		"hasMetric('m')": true, "hasMetric('n')": false, "hasMetric('m', 2)": true, "hasMetric('m', 1.9)": false,
		"property('disk:dev=sd*:size') = '10'": true, "property('disk:dev=x:size') = ''": true, "properties('disk').size = '10'": true,
		"hasProperty('disk')": true, "hasProperty('cpu')": false, "memberOf('g')": true, "memberOf('h')": false,
		"entity_tags('e').site = 'x'": true, "entity_tags('f').isEmpty()": true, "name IN collection('c')": true, "collection('d').size() = 0": true,
	} {
		expr, err := compiler.Compile(filter.Entities, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		e, _ := store.Entity("e")
		if got, err := expr.Match(filter.EntityEnv{Entity: &e}); got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}

// A list of many entities gets the same answers as single ones: every third has samples, of which every second is recent.
func TestSourceOfManyEntities(t *testing.T) {
	const hour, entities = core.Time(3_600_000), 1000
	store := memstore.New()
	b := &core.Batch{Received: 1}
	for i := 0; i < entities; i += 3 {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprint("e", i)}), 90*hour+core.Time(i%2)*9*hour, 1)
	}
	if err := store.Apply(t.Context(), core.Entry{Position: 1, Batch: b}); err != nil {
		t.Fatal(err)
	}
	source := filter.Source{Reader: store, Catalog: store, Now: func() core.Time { return 100 * hour }}
	functions := source.Functions(t.Context())
	for i := range entities {
		for within, want := range map[time.Duration]bool{0: i%3 == 0, 2 * time.Hour: i%3 == 0 && i%2 == 1} {
			if got, err := functions.HasMetric(fmt.Sprint("e", i), "m", within); got != want || err != nil {
				t.Fatalf("entity %d within %v: %v, %v, want %v", i, within, got, err, want)
			}
		}
		if got, err := functions.HasMetric(fmt.Sprint("e", i), "n", 0); got || err != nil {
			t.Fatalf("entity %d has a metric that is not there: %v", i, err)
		}
	}
}
