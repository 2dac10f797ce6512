package storetest

import "github.com/tidemark-db/tidemark/core"

// expressionsInScope asks about an entity out of scope by way of the functions that take the name of an entity: which records of readable entities are
// found must not depend on what an unreadable one holds.
func expressionsInScope(s *suite) {
	s.append(put(core.DocGroup, "mine", `{"enabled":true,"members":["a"]}`))
	b := &core.Batch{}
	for _, e := range []string{"a", "b"} {
		numbers(b, keyOf("m", e), 1, 1)
		b.Messages = append(b.Messages, event(1, e, e))
		b.Properties = append(b.Properties, property(1, record(e, "t"), "v", "of-"+e).Properties...)
		b.Properties = append(b.Properties, property(1, record(e, core.EntityTagsType), "k", "of-"+e).Properties...)
	}
	s.append(b)
	ctx := s.Context()
	for _, c := range []struct {
		scope      core.Scope
		expression string
		want       string
	}{
		{core.AllEntities, `property('b', 't::v') = 'of-b'`, "ab"},
		{core.Scope{Groups: []string{"mine"}}, `property('b', 't::v') = 'of-b'`, ""},
		{core.Scope{Groups: []string{"mine"}}, `property_values('b', 't::v').size() = 0`, "a"},
		{core.Scope{Groups: []string{"mine"}}, `property('a', 't::v') = 'of-a'`, "a"},
		{core.AllEntities, `entity_tags('b').k = 'of-b'`, "ab"},
		{core.Scope{Groups: []string{"mine"}}, `entity_tags('b').k = 'of-b'`, ""},
		{core.Scope{Groups: []string{"mine"}}, `entity_tags('a').k = 'of-a'`, "a"},
	} {
		entities := core.EntityFilter{Expression: c.expression}
		for name, got := range map[string]string{
			"keys": namesOf(s, s.Keys(ctx, core.SeriesQuery{Scope: c.scope, Entities: entities, Range: core.AllTime}),
				func(k core.KeyInfo) string { return k.Key.Entity }),
			"messages": namesOf(s, s.Messages(ctx, core.MessageQuery{Scope: c.scope, Entities: entities, Range: core.AllTime}),
				func(m core.Message) string { return m.Entity }),
			"texts": namesOf(s, s.Messages(ctx, core.MessageQuery{Scope: c.scope, Expression: c.expression, Range: core.AllTime}),
				func(m core.Message) string { return m.Entity }),
			"properties": namesOf(s, s.Properties(ctx, core.PropertyQuery{Scope: c.scope, Entities: entities, Range: core.AllTime}),
				func(r core.PropertyRecord) string { return r.Entity }),
		} {
			if got != c.want {
				s.Errorf("%s in scope %+v with %s: entities %q, want %q", name, c.scope, c.expression, got, c.want)
			}
		}
	}
}
