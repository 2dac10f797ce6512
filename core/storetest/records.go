package storetest

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

func event(at core.Time, entity, text string) core.Message {
	return core.Message{Time: at, Entity: entity, Type: "ops", Source: "plc", Severity: core.Normal, Text: text, Flags: core.Default}
}

var messageTests = []test{
	{"Order", func(s *suite) {
		other := event(20, "b", "other source")
		other.Source = "aaa"
		typed := event(20, "b", "other type")
		typed.Type = "abc"
		s.append(&core.Batch{Messages: []core.Message{event(10, "a", "old"), event(20, "b", "first"), event(20, "b", "second"), other, typed, event(20, "a", "a")}})
		s.append(&core.Batch{Messages: []core.Message{event(30, "a", "new"), event(20, "b", "third")}})
		s.wantMessages(core.MessageQuery{}, "new", "a", "other type", "other source", "first", "second", "third", "old")
		s.wantMessages(core.MessageQuery{Limit: 3}, "new", "a", "other type")
		s.wantMessages(core.MessageQuery{Range: core.Range{Start: 10, End: 20}}, "old")
		s.wantMessages(core.MessageQuery{Range: core.Range{Start: 20, End: 31}, Limit: 1}, "new")
	}},
	{"OnlyEqualOnesAreOne", func(s *suite) {
		m := event(10, "a", "x")
		m.Tags = tagsOf("k", "v")
		differs := []core.Message{m, m, m, m, m}
		differs[1].Severity = core.Fatal
		differs[2].Text = "y"
		differs[3].Tags = tagsOf("k", "w")
		differs[4].Tags = nil
		s.append(&core.Batch{Messages: differs})
		s.append(&core.Batch{Messages: slices.Clone(differs)})
		s.wantMessages(core.MessageQuery{}, "x", "x", "y", "x", "x")
	}},
	{"Filters", messageFilters},
	{"NotStored", func(s *suite) {
		unseen := event(10, "ghost", "unseen")
		unseen.Flags = core.ForRules
		s.append(&core.Batch{Messages: []core.Message{unseen, event(10, "a", "seen")}})
		s.wantMessages(core.MessageQuery{}, "seen")
		if _, ok := s.Entity("ghost"); ok {
			s.Error("a message that is not stored has made an entity")
		}
		if e, ok := s.Entity("a"); !ok || !e.Enabled {
			s.Errorf("entity of a message: %+v, %v", e, ok)
		}
	}},
	{"Many", func(s *suite) {
		var want []string
		for i := range 3000 {
			s.append(&core.Batch{Messages: []core.Message{event(core.Time((i*7)%3000), "a", fmt.Sprint((i*7)%3000))}})
			want = append(want, fmt.Sprint(2999-i))
		}
		s.wantMessages(core.MessageQuery{}, want...)
	}},
}

func messageFilters(s *suite) {
	texts := map[string]core.Message{}
	for i, severity := range []core.Severity{core.Undefined, core.Warning, core.Critical} {
		m := event(core.Time(i), "a", severity.String())
		m.Severity, m.Tags = severity, tagsOf("n", fmt.Sprint(i), "all", "yes")
		texts[m.Text] = m
	}
	other := event(9, "b", "other")
	other.Type, other.Source = "sys", "disk"
	s.append(&core.Batch{Messages: []core.Message{texts["UNDEFINED"], texts["WARNING"], texts["CRITICAL"], other}})
	s.wantMessages(core.MessageQuery{Type: "sys"}, "other")
	s.wantMessages(core.MessageQuery{Source: "plc"}, "CRITICAL", "WARNING", "UNDEFINED")
	s.wantMessages(core.MessageQuery{Severities: []core.Severity{core.Undefined, core.Warning}}, "WARNING", "UNDEFINED")
	s.wantMessages(core.MessageQuery{MinSeverity: core.Warning}, "CRITICAL", "WARNING")
	tagged := []core.TagFilter{{Name: "all", Patterns: []string{"*"}}, {Name: "n", Patterns: []string{"0", "2"}}}
	s.wantMessages(core.MessageQuery{Tags: tagged}, "CRITICAL", "UNDEFINED")
	s.wantMessages(core.MessageQuery{Entities: core.EntityFilter{Names: []string{"b"}}}, "other")
	s.wantMessages(core.MessageQuery{Expression: "message LIKE '*ING' OR type = 'sys'"}, "other", "WARNING")
	s.wantMessages(core.MessageQuery{Expression: "message LIKE"}, "error invalid")
}

func property(at core.Time, key core.PropertyKey, tags ...string) *core.Batch {
	var t core.Tags
	for i := 0; i < len(tags); i += 2 {
		t = append(t, core.Tag{Name: tags[i], Value: tags[i+1]})
	}
	return &core.Batch{Properties: []core.Property{{PropertyKey: key, Time: at, Tags: t.Normal(), Flags: core.Default}}}
}

func record(entity, kind string, key ...string) core.PropertyKey {
	return core.PropertyKey{Entity: entity, Type: kind, Key: tagsOf(key...)}
}

var propertyTests = []test{
	{"Merge", func(s *suite) {
		k := record("srv-2", "disk", "dev", "a")
		s.append(property(1200, k, "size", "10", "fs", "ext4"))
		s.append(property(1205, k, "size", "12"))
		s.wantProperties(core.PropertyQuery{}, "srv-2 disk {dev=a} 1205 fs=ext4@1200 size=12@1205")
		// The same time combines; an older one does not overwrite, and adds what is not there.
		s.append(property(1205, k, "rpm", "7200"))
		s.append(property(1100, k, "size", "1", "old", "x"))
		s.wantProperties(core.PropertyQuery{}, "srv-2 disk {dev=a} 1205 fs=ext4@1200 old=x@1100 rpm=7200@1205 size=12@1205")
		// An empty value removes, unless it is older; the record goes with its last tag.
		s.append(property(1300, k, "rpm", "", "nothing", ""))
		s.append(property(1000, k, "fs", ""))
		s.wantProperties(core.PropertyQuery{}, "srv-2 disk {dev=a} 1205 fs=ext4@1200 old=x@1100 size=12@1205")
		s.append(property(1300, k, "fs", "", "old", "", "size", ""))
		s.wantProperties(core.PropertyQuery{})
		if e, ok := s.Entity("srv-2"); !ok || !e.Enabled || e.Created == 0 {
			s.Errorf("entity of a property: %+v, %v", e, ok)
		}
	}},
	{"OrderAndRange", func(s *suite) {
		for i, k := range []core.PropertyKey{record("b", "t"), record("a", "u"), record("a", "t", "k", "2"), record("a", "t", "k", "1", "z", "0"),
			record("a", "t"), record("a", "t", "k", "1")} {
			s.append(property(core.Time(i), k, "v", "1"))
		}
		s.wantProperties(core.PropertyQuery{},
			"a t {} 4 v=1@4", "a t {k=1} 5 v=1@5", "a t {k=1 z=0} 3 v=1@3", "a t {k=2} 2 v=1@2", "a u {} 1 v=1@1", "b t {} 0 v=1@0")
		s.wantProperties(core.PropertyQuery{Range: core.Range{Start: 1, End: 4}}, "a t {k=1 z=0} 3 v=1@3", "a t {k=2} 2 v=1@2", "a u {} 1 v=1@1")
		s.wantProperties(core.PropertyQuery{Type: "t", Entities: core.EntityFilter{Names: []string{"b", "a", "x"}}, Range: core.Range{Start: 0, End: 3}},
			"a t {k=2} 2 v=1@2", "b t {} 0 v=1@0")
		s.wantProperties(core.PropertyQuery{Type: "u", Entities: core.EntityFilter{Patterns: []string{"?"}}}, "a u {} 1 v=1@1")
	}},
	{"KeyMatch", keyMatch},
	{"Delete", func(s *suite) {
		s.append(property(10, record("a", "t"), "v", "1"))
		s.append(property(10, record("a", "t", "k", "1"), "v", "1"))
		s.append(&core.Batch{Removed: []core.PropertyKey{record("a", "t"), record("x", "y")}})
		s.wantProperties(core.PropertyQuery{}, "a t {k=1} 10 v=1@10")
		// A deletion leaves no mark: an older record is visible.
		s.append(property(5, record("a", "t"), "v", "0"))
		s.wantProperties(core.PropertyQuery{}, "a t {} 5 v=0@5", "a t {k=1} 10 v=1@10")
	}},
	{"NotStored", func(s *suite) {
		b := property(10, record("ghost", "t"), "v", "1")
		b.Properties[0].Flags = core.ForRules
		s.append(b)
		s.wantProperties(core.PropertyQuery{})
		if _, ok := s.Entity("ghost"); ok {
			s.Error("a property that is not stored has made an entity")
		}
	}},
	{"EntityTags", entityTags},
}

// keyMatch is table C of the property contract: P (k1=x, k2=y on e-1), Q (k1=x on e-2), S (no key on e-3).
func keyMatch(s *suite) {
	s.append(property(1, record("e-1", "t", "k1", "x", "k2", "y"), "v", "P"))
	s.append(property(1, record("e-2", "t", "k1", "x"), "v", "Q"))
	s.append(property(1, record("e-3", "t"), "v", "S"))
	for _, c := range []struct {
		exact bool
		key   core.Tags
		want  string
	}{
		{true, nil, "S"}, {false, nil, "PQS"}, {true, tagsOf("k1", "x"), "Q"}, {false, tagsOf("k1", "x"), "PQ"},
		{true, tagsOf("k1", "x", "k2", "y"), "P"}, {false, tagsOf("k1", "x", "k2", "y"), "P"}, {false, tagsOf("k2", "Y"), ""},
	} {
		got := ""
		q := core.PropertyQuery{Scope: core.AllEntities, Type: "t", Key: c.key, ExactKey: c.exact, Range: core.AllTime}
		for r, err := range s.Properties(s.Context(), q) {
			if err != nil {
				s.Fatal(err)
			}
			got += r.Tags[0].Value
		}
		if got != c.want {
			s.Errorf("exact %v key %v selects %q, want %q", c.exact, c.key, got, c.want)
		}
	}
}

// entityTags covers the reserved type: an update patches the entity, a query shows its tags.
func entityTags(s *suite) {
	k := record("pump", core.EntityTagsType, "site", "north")
	r := s.append(property(10, k, "floor", "2", "gone", ""))
	e, _ := s.Entity("pump")
	if got := tagLine(core.TagsOf(e.Tags)); got != "{floor=2 site=north}" || e.VersionDate() != r.Received {
		s.Errorf("entity has tags %s and version %d, want {floor=2 site=north} and %d", got, e.VersionDate(), r.Received)
	}
	s.append(property(20, record("pump", core.EntityTagsType), "floor", "", "room", "7"))
	s.append(numbers(&core.Batch{}, keyOf("m", "bare"), 1, 1))
	at := fmt.Sprint(mustEntity(s, "pump").Versioned)
	line := "pump $entity_tags {} AT room=7@AT site=north@AT"
	s.wantProperties(core.PropertyQuery{Type: core.EntityTagsType, Range: core.Range{Start: 1, End: 2}}, strings.ReplaceAll(line, "AT", at))
	s.wantProperties(core.PropertyQuery{Type: core.EntityTagsType, Key: tagsOf("site", "north")})
	s.wantProperties(core.PropertyQuery{})
	s.append(&core.Batch{Removed: []core.PropertyKey{record("pump", core.EntityTagsType)}})
	if got := mustEntity(s, "pump").Tags["room"]; got != "7" {
		s.Errorf("a delete of the reserved type changed a tag to %q", got)
	}
	// What changes nothing is no new version of the entity.
	s.append(property(30, record("pump", core.EntityTagsType), "room", "7"))
	if got := fmt.Sprint(mustEntity(s, "pump").Versioned); got != at {
		s.Errorf("version date %s after an update that changed nothing, want %s", got, at)
	}
}

func mustEntity(s *suite, name string) core.Entity {
	s.Helper()
	e, ok := s.Entity(name)
	if !ok {
		s.Fatalf("no entity %s", name)
	}
	return e
}

func (s *suite) wantDocuments(q core.DocumentQuery, want ...string) {
	s.Helper()
	var got []string
	for d, err := range s.Documents(s.Context(), q) {
		got = append(got, lineOf(d.Key+" "+string(d.Body), err))
	}
	s.want(got, want)
}

var documentTests = []test{
	{"PutPatchDelete", func(s *suite) {
		s.append(put(core.DocRule, "b", `{"x":1,"y":{"z":2}}`))
		s.append(put(core.DocRule, "a", `{}`))
		s.append(put(core.DocTable, "b", `{"other":"kind"}`))
		s.append(patch(core.DocRule, "b", `{"x":null,"y":{"q":3}}`))
		s.append(patch(core.DocRule, "c", `{"n":1}`))
		s.wantDocuments(core.DocumentQuery{Kind: core.DocRule}, `a {}`, `b {"y":{"q":3,"z":2}}`, `c {"n":1}`)
		s.wantDocuments(core.DocumentQuery{Kind: core.DocRule, Key: "b"}, `b {"y":{"q":3,"z":2}}`)
		s.append(drop(core.DocRule, "b"))
		s.append(drop(core.DocRule, "never"))
		s.wantDocuments(core.DocumentQuery{Kind: core.DocRule}, `a {}`, `c {"n":1}`)
		s.wantDocuments(core.DocumentQuery{Kind: core.DocTable}, `b {"other":"kind"}`)
		s.wantDocuments(core.DocumentQuery{Kind: core.DocToken})
	}},
	{"InOrderWithinABatch", func(s *suite) {
		s.append(documents(core.DocChange{Kind: core.DocRule, Key: "r", Op: core.DocPut, Body: []byte(`{"n":1}`)},
			core.DocChange{Kind: core.DocRule, Key: "r", Op: core.DocPatch, Body: []byte(`{"m":2}`)}))
		s.wantDocuments(core.DocumentQuery{Kind: core.DocRule}, `r {"m":2,"n":1}`)
	}},
	{"FirstRecordMakesMetricAndEntity", func(s *suite) {
		r := s.append(numbers(&core.Batch{}, keyOf("m", "e"), 10, 1))
		m, ok := s.Metric("m")
		if !ok || m.Name != "m" || !m.Enabled || !m.Persistent || m.DataType != core.TypeFloat || m.Versioned || m.Created != r.Received {
			s.Errorf("metric %+v, %v", m, ok)
		}
		e, ok := s.Entity("e")
		if !ok || e.Name != "e" || !e.Enabled || e.Created != r.Received {
			s.Errorf("entity %+v, %v", e, ok)
		}
		s.wantDocuments(core.DocumentQuery{Kind: core.DocEntity}, fmt.Sprintf(`e {"name":"e","enabled":true,"created":%d}`, r.Received))
		s.append(numbers(&core.Batch{}, keyOf("m", "e"), 20, 1))
		if again, _ := s.Entity("e"); again.Created != r.Received {
			s.Errorf("the second record changed the entity: %+v", again)
		}
		if _, ok := s.Metric("unknown"); ok {
			s.Error("unknown metric is known")
		}
	}},
	{"CatalogFollowsDocuments", func(s *suite) {
		s.append(numbers(&core.Batch{}, keyOf("m", "e"), 10, 1))
		s.append(patch(core.DocMetric, "m", `{"units":"bar","tags":{"a":"b"}}`))
		if m, _ := s.Metric("m"); m.Units != "bar" || m.Tags["a"] != "b" || !m.Enabled {
			s.Errorf("metric after patch: %+v", m)
		}
		s.append(patch(core.DocEntity, "e", `{"enabled":false}`))
		if e, _ := s.Entity("e"); e.Enabled {
			s.Error("entity is enabled after the patch")
		}
		s.append(patch(core.DocMetric, "fresh", `{"label":"New"}`))
		if m, ok := s.Metric("fresh"); !ok || m.Label != "New" || m.DataType != core.TypeFloat || m.Created == 0 {
			s.Errorf("patched metric that was absent: %+v, %v", m, ok)
		}
	}},
	{"DeleteMetric", func(s *suite) {
		s.append(numbers(numbers(&core.Batch{}, keyOf("m", "e"), 10, 1), keyOf("n", "e"), 10, 1))
		s.append(drop(core.DocMetric, "m"))
		s.wantSeries(core.SeriesQuery{}, "n e {} 10=1")
		if _, ok := s.Metric("m"); ok {
			s.Error("deleted metric is known")
		}
		r := s.append(numbers(&core.Batch{}, keyOf("m", "e"), 20, 2))
		s.wantSeries(core.SeriesQuery{Metric: "m"}, "m e {} 20=2")
		if m, _ := s.Metric("m"); m.Created != r.Received {
			s.Error("a deleted metric came back as it was")
		}
	}},
	{"DeleteEntity", deleteEntity},
	{"RefusedAsAWhole", func(s *suite) {
		s.append(put(core.DocRule, "text", `not json`))
		for _, bad := range []core.DocChange{
			{Kind: core.DocMetric, Key: "m", Op: core.DocPut, Body: []byte(`{"enabled":"maybe"}`)},
			{Kind: core.DocEntity, Key: "e", Op: core.DocPatch, Body: []byte(`{"tags":[1]}`)},
			{Kind: core.DocGroup, Key: "g", Op: core.DocPut, Body: []byte(`[`)},
			{Kind: core.DocRule, Key: "r", Op: core.DocPatch, Body: []byte(`{`)},
		} {
			b := numbers(&core.Batch{}, keyOf("m", "e"), 10, 1)
			b.Documents = []core.DocChange{{Kind: core.DocRule, Key: "good", Op: core.DocPut, Body: []byte(`{}`)}, bad}
			s.refused(b, core.Invalid)
		}
	}},
}

func deleteEntity(s *suite) {
	s.append(put(core.DocGroup, "g", `{"name":"g","enabled":true,"members":["dead","live"]}`))
	b := numbers(numbers(&core.Batch{}, keyOf("m", "dead"), 10, 1), keyOf("m", "live"), 10, 1)
	b.Messages = []core.Message{event(1, "dead", "dead"), event(1, "live", "live")}
	b.Properties = append(property(1, record("dead", "t"), "v", "1").Properties, property(1, record("live", "t"), "v", "1").Properties...)
	s.append(b)
	s.append(drop(core.DocEntity, "dead"))
	s.wantSeries(core.SeriesQuery{}, "m live {} 10=1")
	s.wantMessages(core.MessageQuery{}, "live")
	s.wantProperties(core.PropertyQuery{}, "live t {} 1 v=1@1")
	if _, ok := s.Entity("dead"); ok || s.Member("dead", "g") || !s.Member("live", "g") {
		s.Error("a deleted entity is known, or still in a group")
	}
	s.append(numbers(&core.Batch{}, keyOf("m", "dead"), 20, 1))
	s.wantSeries(core.SeriesQuery{Entities: core.EntityFilter{Names: []string{"dead"}}}, "m dead {} 20=1")
	if s.Member("dead", "g") {
		s.Error("an entity that came back is in its old group")
	}
}

var groupTests = []test{
	{"Member", func(s *suite) {
		s.append(numbers(numbers(&core.Batch{}, keyOf("m", "a"), 1, 1), keyOf("m", "b"), 1, 1))
		s.append(put(core.DocGroup, "list", `{"enabled":true,"members":["a","x"]}`))
		s.append(put(core.DocGroup, "off", `{"enabled":false,"members":["a"]}`))
		s.append(put(core.DocGroup, "expr", `{"enabled":true,"expression":"name = 'b' OR memberOf('list')","members":["x"]}`))
		s.append(put(core.DocGroup, "bad", `{"enabled":true,"expression":"name ="}`))
		s.append(put(core.DocGroup, "circle", `{"enabled":true,"expression":"memberOf('circle')"}`))
		got := ""
		for _, group := range []string{"list", "off", "expr", "bad", "circle", "none"} {
			for _, entity := range []string{"a", "b", "x"} {
				if s.Member(entity, group) {
					got += " " + entity + "@" + group
				}
			}
		}
		if want := " a@list x@list a@expr b@expr"; got != want {
			s.Errorf("members%s, want%s", got, want)
		}
		s.append(patch(core.DocGroup, "list", `{"members":["b"]}`))
		if s.Member("a", "list") || !s.Member("b", "list") || s.Member("a", "expr") {
			s.Error("membership did not follow the document")
		}
		s.append(drop(core.DocGroup, "list"))
		if s.Member("b", "list") {
			s.Error("a deleted group has members")
		}
	}},
	{"ExpressionFollowsEntity", func(s *suite) {
		s.append(put(core.DocGroup, "north", `{"enabled":true,"expression":"tags.site = 'north'"}`))
		s.append(patch(core.DocEntity, "a", `{"tags":{"site":"south"}}`))
		if s.Member("a", "north") {
			s.Error("member before the tag changed")
		}
		s.append(property(1, record("a", core.EntityTagsType), "site", "north"))
		if !s.Member("a", "north") {
			s.Error("not a member after the tag changed")
		}
	}},
	{"ScopeBoundsEveryQuery", scopes},
	{"ExpressionsTellNothingOutOfScope", expressionsInScope},
}

func scopes(s *suite) {
	s.append(put(core.DocGroup, "mine", `{"enabled":true,"members":["a","c"]}`))
	s.append(put(core.DocGroup, "off", `{"enabled":false,"members":["b"]}`))
	b := &core.Batch{}
	for _, e := range []string{"a", "b", "c"} {
		numbers(b, keyOf("m", e), 1, 1)
		b.Messages = append(b.Messages, event(1, e, e))
		b.Properties = append(b.Properties, property(1, record(e, "t"), "v", "1").Properties...)
		b.Properties = append(b.Properties, property(1, record(e, core.EntityTagsType), "k", "v").Properties...)
		b.Alerts = append(b.Alerts, core.AlertChange{Event: e, Row: &core.AlertRow{Time: 1, Entity: e}})
	}
	s.append(b)
	ctx := s.Context()
	for _, c := range []struct {
		scope core.Scope
		want  string
	}{{core.AllEntities, "abc"}, {core.Scope{}, ""}, {core.Scope{Groups: []string{"mine", "off", "none"}}, "ac"}} {
		series := core.SeriesQuery{Scope: c.scope, Range: core.AllTime}
		named := core.SeriesQuery{Scope: c.scope, Metric: "m", Entities: core.EntityFilter{Names: []string{"a", "b", "c"}}, Range: core.AllTime}
		messages := core.MessageQuery{Scope: c.scope, Range: core.AllTime}
		properties := core.PropertyQuery{Scope: c.scope, Range: core.AllTime}
		tags := core.PropertyQuery{Scope: c.scope, Type: core.EntityTagsType}
		history := core.AlertHistoryQuery{Scope: c.scope, Range: core.AllTime}
		ofKey := func(k core.KeyInfo) string { return k.Key.Entity }
		ofRecord := func(r core.PropertyRecord) string { return r.Entity }
		for name, got := range map[string]string{
			"series":     namesOf(s, s.Series(ctx, series), func(b core.Block) string { return b.Key.Entity }),
			"keys":       namesOf(s, s.Keys(ctx, series), ofKey),
			"named":      namesOf(s, s.Keys(ctx, named), ofKey),
			"messages":   namesOf(s, s.Messages(ctx, messages), func(m core.Message) string { return m.Entity }),
			"properties": namesOf(s, s.Properties(ctx, properties), ofRecord),
			"tags":       namesOf(s, s.Properties(ctx, tags), ofRecord),
			"history":    namesOf(s, s.AlertHistory(ctx, history), func(r core.AlertRow) string { return r.Entity }),
		} {
			if got != c.want {
				s.Errorf("%s in scope %+v: entities %q, want %q", name, c.scope, got, c.want)
			}
		}
	}
}

// namesOf returns the names of the results in order of the alphabet.
func namesOf[T any](s *suite, results iter.Seq2[T, error], name func(T) string) string {
	s.Helper()
	var all []string
	for one, err := range results {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, name(one))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func opened(id string, row *core.AlertRow) core.AlertChange {
	return core.AlertChange{Event: id, Kind: core.AlertOpened, Alert: core.Alert{ID: 7, Rule: "r", Entity: "e", OpenTime: 5}, Row: row}
}

func (s *suite) wantHistory(q core.AlertHistoryQuery, want ...string) {
	s.Helper()
	q.Scope, q.Range = scopeOf(q.Scope), rangeOf(q.Range)
	var got []string
	for r, err := range s.AlertHistory(s.Context(), q) {
		got = append(got, lineOf(r.Text, err))
	}
	s.want(got, want)
}

var alertTests = []test{
	{"HistoryOrderAndFilters", func(s *suite) {
		row := func(at core.Time, rule, metric, text string) core.AlertChange {
			return opened(text, &core.AlertRow{Time: at, Rule: rule, Metric: metric, Entity: "e", Text: text})
		}
		s.append(&core.Batch{Alerts: []core.AlertChange{row(10, "hot pump", "temp", "a"),
			row(30, "cold", "temp", "b"), row(20, "hot fan", "speed", "c"), opened("without row", nil)}})
		s.append(&core.Batch{Alerts: []core.AlertChange{row(20, "hot fan", "speed", "d")}})
		s.wantHistory(core.AlertHistoryQuery{}, "b", "d", "c", "a")
		s.wantHistory(core.AlertHistoryQuery{Limit: 2}, "b", "d")
		s.wantHistory(core.AlertHistoryQuery{Rules: []string{"hot*"}}, "d", "c", "a")
		s.wantHistory(core.AlertHistoryQuery{Metrics: []string{"nope", "tem?"}}, "b", "a")
		s.wantHistory(core.AlertHistoryQuery{Range: core.Range{Start: 10, End: 20}}, "a")
		s.wantHistory(core.AlertHistoryQuery{Entities: core.EntityFilter{Names: []string{"f"}}})
	}},
	{"RowIsKeptWhole", func(s *suite) {
		want := core.AlertRow{AlertID: 1 << 60, Time: 1, Received: 2, OpenTime: 3, Entity: "e", Metric: "m", Rule: "r", Tags: tagsOf("a", "b"),
			Type: core.StatusRepeat, Value: 1.5, Text: "t", Severity: core.Major, Condition: "value > 1", Filter: "f", Window: "length(3)", Schedule: "* * * * *", RepeatCount: 4}
		s.append(&core.Batch{Alerts: []core.AlertChange{opened("x", &want)}})
		for got, err := range s.AlertHistory(s.Context(), core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.AllTime}) {
			if err != nil || rowLine(got) != rowLine(want) {
				s.Errorf("row %+v, %v", got, err)
			}
		}
	}},
	{"ReplayIsDroppedAsAWhole", func(s *suite) {
		batch := func(outbox string) *core.Batch {
			b := put(core.DocOutbox, outbox, `{}`)
			b.Alerts = []core.AlertChange{opened("ev-1", &core.AlertRow{Time: 10, Entity: "e", Text: "one"}), opened("ev-2", nil)}
			return numbers(b, keyOf("derived", "e"), 10, 1)
		}
		s.append(batch("first"))
		before := Lines(s.Context(), s)
		s.append(batch("second"))
		s.want(Lines(s.Context(), s), before)
		// One new event makes it a new batch; what is stored already is dropped from it.
		b := batch("third")
		b.Alerts = append(b.Alerts, opened("ev-3", &core.AlertRow{Time: 11, Entity: "e", Text: "three"}))
		s.append(b)
		s.wantHistory(core.AlertHistoryQuery{}, "three", "one")
		s.wantDocuments(core.DocumentQuery{Kind: core.DocOutbox}, "first {}", "third {}")
	}},
	{"ChangesWithoutEventAlwaysCount", func(s *suite) {
		for range 2 {
			s.append(&core.Batch{Alerts: []core.AlertChange{opened("", &core.AlertRow{Time: 10, Entity: "e", Text: "x"})}})
		}
		s.wantHistory(core.AlertHistoryQuery{}, "x", "x")
	}},
}

var batchTests = []test{
	{"Malformed", func(s *suite) {
		b := numbers(&core.Batch{}, keyOf("m", "e"), 1, 1, 2, 2)
		b.Samples.Flags = b.Samples.Flags[:1]
		s.refused(b, core.Invalid)
		b = numbers(&core.Batch{}, keyOf("m", "e"), 1, 1)
		b.Samples.Series[0] = 1
		s.refused(b, core.Invalid)
	}},
	{"Empty", func(s *suite) {
		s.append(&core.Batch{})
		s.want(Lines(s.Context(), s), nil)
	}},
	{"NumbersOfEveryKind", func(s *suite) {
		k := keyOf("m", "e")
		values := []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64,
			math.Inf(1), math.Inf(-1), math.NaN(), math.Pi, 1e-7, 1 << 53}
		b := &core.Batch{}
		for i, v := range values {
			numbers(b, k, float64(i), v)
		}
		s.append(b)
		i := 0
		for block, err := range s.Series(s.Context(), s.full(core.SeriesQuery{})) {
			if err != nil {
				s.Fatal(err)
			}
			for _, v := range block.Values {
				if math.Float64bits(v) != math.Float64bits(values[i]) {
					s.Errorf("value %d: %v, want %v", i, v, values[i])
				}
				i++
			}
		}
		if i != len(values) {
			s.Errorf("%d values, want %d", i, len(values))
		}
	}},
	{"WritingInsideALoop", func(s *suite) {
		b := numbers(put(core.DocRule, "r", `{}`), keyOf("m", "a"), 1, 1)
		b.Messages, b.Properties = []core.Message{event(1, "a", "x")}, property(1, record("a", "t"), "v", "1").Properties
		b.Alerts = []core.AlertChange{opened("ev", &core.AlertRow{Time: 1, Entity: "a"})}
		s.append(b)
		n := 0
		write := func() { // hangs when the reader holds a lock
			n++
			s.append(numbers(property(core.Time(n), record("a", "t"), "v", "2"), keyOf("m", "a"), float64(n), 1))
		}
		ctx := s.Context()
		for range s.Series(ctx, s.full(core.SeriesQuery{})) {
			write()
		}
		for range s.Keys(ctx, s.full(core.SeriesQuery{})) {
			write()
		}
		for range s.Messages(ctx, core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
			write()
		}
		for range s.Properties(ctx, core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
			write()
		}
		for range s.AlertHistory(ctx, core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.AllTime}) {
			write()
		}
		for range s.Documents(ctx, core.DocumentQuery{Kind: core.DocRule}) {
			write()
		}
		if n < 6 {
			s.Errorf("%d results, want one of each kind at least", n)
		}
	}},
	{"EndedContext", func(s *suite) {
		s.append(numbers(numbers(&core.Batch{Messages: []core.Message{event(1, "a", "x")}}, keyOf("m", "a"), 1, 1), keyOf("m", "b"), 1, 1))
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		s.want(SeriesLines(s.Series(ctx, s.full(core.SeriesQuery{}))), []string{"error canceled"})
		for _, err := range s.Messages(ctx, core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
			if core.CodeOf(err) != core.Canceled {
				s.Errorf("messages of an ended context: %v", err)
			}
		}
	}},
	{"StringsAreCopied", func(s *suite) {
		buf := []byte("metric entity tag value text")
		b := &core.Batch{}
		view := func(from, to int) string { return unsafeString(buf[from:to]) }
		tags := func() core.Tags { return core.Tags{{Name: view(14, 17), Value: view(18, 23)}} }
		ref := b.Ref(core.SeriesKey{Metric: view(0, 6), Entity: view(7, 13), Tags: tags()})
		b.AddText(ref, 10, view(24, 28))
		b.Messages = []core.Message{{Time: 1, Entity: view(7, 13), Type: view(0, 6), Source: view(14, 17), Text: view(24, 28), Tags: tags(),
			Flags: core.Default}}
		b.Properties = []core.Property{{PropertyKey: core.PropertyKey{Entity: view(7, 13), Type: view(0, 6)}, Time: 1, Tags: tags(), Flags: core.Default}}
		b.Documents = []core.DocChange{{Kind: core.DocRule, Key: view(0, 6), Body: buf[0:0]}}
		s.append(b)
		before := Lines(s.Context(), s)
		for i := range buf {
			buf[i] = '?'
		}
		s.want(Lines(s.Context(), s), before)
	}},
}
