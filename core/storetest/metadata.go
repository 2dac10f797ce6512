package storetest

import (
	"fmt"

	"github.com/tidemark-db/tidemark/core"
)

func rename(kind core.DocKind, from, to string) *core.Batch {
	return documents(core.DocChange{Kind: kind, Key: from, Op: core.DocRename, Body: fmt.Appendf(nil, `{"name":%q}`, to)})
}

// wantNewest compares `name=time` of the metrics or entities, `name=-` where there is no sample.
func (s *suite) wantNewest(kind core.DocKind, want ...string) {
	s.Helper()
	var got []string
	note := func(name string, last core.Time, inserted bool, err error) {
		line := name + "=-"
		if inserted {
			line = fmt.Sprintf("%s=%d", name, last)
		}
		got = append(got, lineOf(line, err))
	}
	if kind == core.DocMetric {
		for m, err := range s.Metrics(s.Context(), core.MetaQuery{}) {
			note(m.Name, m.Last, m.Inserted, err)
		}
	} else {
		for e, err := range s.Entities(s.Context(), core.MetaQuery{}) {
			note(e.Name, e.Last, e.Inserted, err)
		}
	}
	s.want(got, want)
}

// wantVersions compares the label of each version, and checks that the times ascend from the creation on.
func (s *suite) wantVersions(entity string, want ...string) {
	s.Helper()
	var got []string
	last := core.Time(-1)
	for i, v := range s.EntityVersions(entity) {
		if v.VersionDate() <= last || i == 0 && v.VersionDate() != v.Created || v.Name != entity {
			s.Errorf("version %d of %s: %+v after %d", i, entity, v, last)
		}
		last = v.VersionDate()
		got = append(got, v.Label)
	}
	s.want(got, want)
}

var metadataTests = []test{
	{"Newest", func(s *suite) {
		s.append(patch(core.DocEntity, "none", `{}`))
		s.append(numbers(numbers(&core.Batch{}, keyOf("m", "a"), 30, 1, 10, 1), keyOf("n", "a", "k", "v"), 50, 1))
		s.append(numbers(&core.Batch{}, keyOf("m", "b"), 0, 1))
		s.append(numbers(&core.Batch{}, keyOf("m", "b").In(core.Predicted, ""), 900, 1))
		s.wantNewest(core.DocMetric, "m=30", "n=50")
		s.wantNewest(core.DocEntity, "a=50", "b=0", "none=-")
		// What is deleted no longer counts, what is left does.
		s.append(&core.Batch{Series: []core.SeriesDelete{{Key: keyOf("n", "a", "k", "v"), Range: core.AllTime}}})
		s.append(&core.Batch{Series: []core.SeriesDelete{{Key: keyOf("m", "a"), Range: core.Range{Start: 20, End: 40}}}})
		s.wantNewest(core.DocMetric, "m=10", "n=-")
		s.wantNewest(core.DocEntity, "a=10", "b=0", "none=-")
		// A write between the deletion and the next look counts as well, and so does an older one.
		s.append(&core.Batch{Series: []core.SeriesDelete{{Key: keyOf("m", "a"), Range: core.AllTime}}})
		s.append(numbers(&core.Batch{}, keyOf("m", "a"), 5, 1))
		s.wantNewest(core.DocMetric, "m=5", "n=-")
		s.append(drop(core.DocEntity, "a"))
		s.wantNewest(core.DocMetric, "m=0", "n=-")
		s.append(drop(core.DocMetric, "m"))
		s.wantNewest(core.DocMetric, "n=-")
		s.wantNewest(core.DocEntity, "b=-", "none=-")
	}},
	{"ByName", func(s *suite) {
		s.append(numbers(numbers(&core.Batch{}, keyOf("m", "a"), 1, 1), keyOf("n", "b"), 2, 1))
		for m, err := range s.Metrics(s.Context(), core.MetaQuery{Name: "n"}) {
			if err != nil || m.Name != "n" || m.Last != 2 {
				s.Errorf("%+v, %v", m, err)
			}
		}
		for e, err := range s.Entities(s.Context(), core.MetaQuery{Name: "m"}) {
			s.Errorf("a metric is no entity: %+v, %v", e, err)
		}
	}},
	{"Versions", func(s *suite) {
		s.append(numbers(&core.Batch{}, keyOf("m", "e"), 1, 1))
		s.wantVersions("e", "")
		b := documents()
		for _, label := range []string{"one", "two", "two"} { // in the same millisecond, and the last one changes nothing
			b.Documents = append(b.Documents, patch(core.DocEntity, "e", `{"label":"`+label+`"}`).Documents...)
		}
		s.append(b)
		s.wantVersions("e", "", "one", "two")
		s.append(put(core.DocEntity, "e", `{"enabled":true,"label":"three","created":1,"versionDate":2}`))
		s.append(property(1, record("e", core.EntityTagsType), "site", "x"))
		s.append(numbers(&core.Batch{}, keyOf("m", "e"), 2, 1))
		s.wantVersions("e", "", "one", "two", "three", "three")
		if v := s.EntityVersions("e"); v[3].Tags["site"] != "" || v[4].Tags["site"] != "x" || v[4].VersionDate() != mustEntity(s, "e").Versioned {
			s.Errorf("versions %+v", v)
		}
		s.append(drop(core.DocEntity, "e"))
		s.wantVersions("e")
		s.append(patch(core.DocEntity, "e", `{"label":"again"}`))
		s.wantVersions("e", "again")
	}},
	{"ManyVersions", func(s *suite) {
		s.append(patch(core.DocEntity, "e", `{"label":"0"}`))
		for i := range core.MaxEntityVersions + 4 {
			s.append(patch(core.DocEntity, "e", fmt.Sprintf(`{"label":"%d"}`, i+1)))
		}
		v := s.EntityVersions("e")
		if n := len(v); n != core.MaxEntityVersions || v[0].Label != "0" || v[1].Label != "6" || v[n-1].Label != "1004" {
			s.Errorf("%d versions, labels %s, %s to %s", n, v[0].Label, v[1].Label, v[n-1].Label)
		}
	}},
	{"RenameMetric", func(s *suite) {
		r := s.append(numbers(numbers(&core.Batch{}, keyOf("old", "e", "k", "v"), 10, 1), keyOf("other", "e"), 10, 1))
		s.append(patch(core.DocMetric, "old", `{"label":"Kept","versioned":false,"tags":{"a":"b"}}`))
		s.append(rename(core.DocMetric, "old", "new"))
		s.wantSeries(core.SeriesQuery{}, "new e {k=v} 10=1", "other e {} 10=1")
		s.wantSeries(core.SeriesQuery{Metric: "old"})
		s.wantNewest(core.DocMetric, "new=10", "other=10")
		if m, ok := s.Metric("new"); !ok || m.Name != "new" || m.Label != "Kept" || m.Tags["a"] != "b" || m.Created != r.Received {
			s.Errorf("metric %+v, %v", m, ok)
		}
		if _, ok := s.Metric("old"); ok {
			s.Error("the old name is known")
		}
		// Later samples with the old name make a metric of their own; those with the new name go on.
		s.append(numbers(numbers(&core.Batch{}, keyOf("old", "e", "k", "v"), 20, 2), keyOf("new", "e", "k", "v"), 30, 3))
		s.wantSeries(core.SeriesQuery{}, "new e {k=v} 10=1", "new e {k=v} 30=3", "old e {k=v} 20=2", "other e {} 10=1")
		s.append(drop(core.DocMetric, "new"))
		s.wantSeries(core.SeriesQuery{}, "old e {k=v} 20=2", "other e {} 10=1")
	}},
	{"RenameEntity", renameEntity},
	{"RenameRefused", func(s *suite) {
		s.append(numbers(numbers(&core.Batch{}, keyOf("m", "e"), 10, 1), keyOf("n", "f"), 10, 1))
		s.append(put(core.DocGroup, "g", `{"enabled":true}`))
		s.refused(rename(core.DocMetric, "none", "x"), core.NotFound)
		s.refused(rename(core.DocMetric, "m", "n"), core.Invalid)
		s.refused(rename(core.DocMetric, "m", "m"), core.Invalid)
		s.refused(rename(core.DocEntity, "e", ""), core.Invalid)
		s.refused(rename(core.DocGroup, "g", "h"), core.Invalid)
		// In one batch the changes see each other.
		s.refused(documents(rename(core.DocMetric, "m", "x").Documents[0], rename(core.DocMetric, "m", "y").Documents[0]), core.NotFound)
		s.append(documents(rename(core.DocMetric, "m", "x").Documents[0], rename(core.DocMetric, "n", "m").Documents[0]))
		s.wantSeries(core.SeriesQuery{}, "m f {} 10=1", "x e {} 10=1")
	}},
	{"Collection", func(s *suite) {
		s.append(numbers(numbers(&core.Batch{}, keyOf("m", "a"), 1, 1), keyOf("m", "b"), 1, 1))
		named := core.SeriesQuery{Entities: core.EntityFilter{Expression: "name IN collection('c')"}}
		s.wantSeries(named)
		s.append(put(core.DocCollection, "c", `{"name":"c","values":["b","x"]}`))
		s.wantSeries(named, "m b {} 1=1")
		s.append(drop(core.DocCollection, "c"))
		s.wantSeries(named)
	}},
}

func renameEntity(s *suite) {
	s.append(put(core.DocGroup, "g", `{"enabled":true,"members":["old","zoo"]}`))
	b := numbers(&core.Batch{}, keyOf("m", "old", "k", "v"), 10, 1)
	b.Messages = []core.Message{event(1, "old", "moved"), event(1, "live", "live")}
	b.Properties = append(property(1, record("old", "t", "k", "1"), "v", "1").Properties, property(1, record("live", "t"), "v", "1").Properties...)
	b.Alerts = []core.AlertChange{opened("e1", &core.AlertRow{AlertID: 1, Time: 5, Entity: "old", Rule: "r", Type: core.StatusOpen})}
	s.append(b)
	s.append(patch(core.DocEntity, "old", `{"label":"L"}`))
	s.append(rename(core.DocEntity, "old", "new"))
	s.wantSeries(core.SeriesQuery{}, "m new {k=v} 10=1")
	s.wantMessages(core.MessageQuery{Entities: core.EntityFilter{Names: []string{"new"}}}, "moved")
	s.wantMessages(core.MessageQuery{Entities: core.EntityFilter{Names: []string{"old"}}})
	s.wantProperties(core.PropertyQuery{}, "live t {} 1 v=1@1", "new t {k=1} 1 v=1@1")
	s.wantVersions("new", "", "L")
	s.wantVersions("old")
	if !s.Member("new", "g") || s.Member("old", "g") || !s.Member("zoo", "g") {
		s.Error("membership did not follow")
	}
	rows := 0
	for row, err := range s.AlertHistory(s.Context(), core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		if rows++; err != nil || row.Entity != "old" {
			s.Errorf("history row %+v, %v: it keeps the name of its time", row, err)
		}
	}
	if rows != 1 {
		s.Errorf("%d history rows", rows)
	}
	s.append(numbers(&core.Batch{}, keyOf("m", "old", "k", "v"), 20, 2))
	s.wantSeries(core.SeriesQuery{}, "m new {k=v} 10=1", "m old {k=v} 20=2")
	s.wantNewest(core.DocEntity, "live=-", "new=10", "old=20")
}
