package query_test

import (
	"encoding/json"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// Bins that are found by a wildcard or an expression are those that the caller may read; an expression tells nothing about the others.
func TestBinsWithinScope(t *testing.T) {
	s := newStore(t)
	s.sample("m a", "2021-05-03T10:00:00Z", 1)
	s.document(core.DocGroup, "mine", `{"members":["a","bin-2"]}`)
	s.document(core.DocEntity, "bin-1", `{"tags":{"room":"x"}}`)
	s.document(core.DocEntity, "bin-2", `{"tags":{"room":"x"}}`)
	some := s.source()
	some.Scope = core.Scope{Groups: []string{"mine"}}
	for name, bins := range map[string]query.EntityFilter{
		"wildcard": {Entities: []string{"bin-*"}}, "names": {Entities: []string{"bin-1", "bin-2"}}, "expression": {Expression: "tags.room = 'x'"},
		"an expression about another": {Expression: "entity_tags('bin-1').room = '' AND tags.room = 'x'"},
	} {
		q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "a"}, Dates: tenMinutes, Group: &query.Group{Types: []string{"SUM"}, Place: &query.Place{Bins: bins}}}
		p, err := q.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range p.Run(t.Context(), some) {
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Meta struct {
					Bin string `json:"group-entity"`
				} `json:"meta"`
			}
			if err := json.Unmarshal(r.AppendJSON(nil), &got); err != nil || got.Meta.Bin != "bin-2" {
				t.Errorf("%s: the bin is %q, %v", name, got.Meta.Bin, err)
			}
		}
	}
}
