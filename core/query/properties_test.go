package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// properties of section 8.
func properties(t *testing.T) *store {
	s := newStore(t)
	insert := func(key core.Tags, date string, tags ...string) {
		p := core.Property{PropertyKey: core.PropertyKey{Entity: "srv-2", Type: "disk", Key: key}, Time: at(t, "2030-04-01T"+date+"Z"), Flags: core.Default}
		for _, pair := range tags {
			name, value, _ := strings.Cut(pair, "=")
			p.Tags = append(p.Tags, core.Tag{Name: name, Value: value})
		}
		p.Tags = p.Tags.Normal()
		s.apply(&core.Batch{Properties: []core.Property{p}})
	}
	insert(core.Tags{{Name: "dev", Value: "a"}}, "12:00:00.000", "size=10", "fs=ext4")
	insert(core.Tags{{Name: "dev", Value: "a"}}, "12:05:00.000", "size=12")
	insert(core.Tags{{Name: "dev", Value: "b"}}, "12:04:59.900", "size=3")
	insert(nil, "11:00:00.000", "count=2")
	return s
}

func records(t *testing.T, src query.Source, q query.Properties) string {
	t.Helper()
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	var lines []string
	for r, err := range p.Run(t.Context(), src) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(query.AppendProperty(nil, r)))
	}
	return strings.Join(lines, "\n")
}

func TestPropertyExamples(t *testing.T) {
	s := properties(t)
	r1 := `{"type":"disk","entity":"srv-2","key":{"dev":"a"},"tags":{"size":"12"},"date":"2030-04-01T12:05:00.000Z"}`
	r2 := `{"type":"disk","entity":"srv-2","key":{"dev":"b"},"tags":{"size":"3"},"date":"2030-04-01T12:04:59.900Z"}`
	base := query.Properties{Type: "Disk", Entities: query.EntityFilter{Entity: "srv-2"}, Dates: between("2030-04-01T12:00:00Z", "2030-04-01T13:00:00Z")}
	offset := func(n int64) func(*query.Properties) { return func(q *query.Properties) { q.Offset = &n } }
	for _, tt := range []struct {
		name   string
		change func(q *query.Properties)
		want   string
	}{
		{"A", func(*query.Properties) {}, r1 + "\n" + r2},
		{"A merge", func(q *query.Properties) { q.Merge = true }, strings.Replace(r1, `"size"`, `"fs":"ext4","size"`, 1) + "\n" + r2},
		{"B last", func(q *query.Properties) { q.Last = true }, r1},
		{"B offset 0", offset(0), r1},
		{"B offset 99", offset(99), r1},
		{"B offset 100", offset(100), r1 + "\n" + r2},
		{"B offset over last", func(q *query.Properties) { q.Last = true; offset(100)(q) }, r1 + "\n" + r2},
		{"B offset off", offset(-1), r1 + "\n" + r2},
		{"B exactMatch", func(q *query.Properties) { q.ExactMatch = true }, ""},
		{"B key", func(q *query.Properties) { q.Key = map[string]string{"DEV": " b ", "blank": " "} }, r2},
		{"B key value case", func(q *query.Properties) { q.Key = map[string]string{"dev": "B"} }, ""},
		{"B expression", func(q *query.Properties) { q.KeyTagExpression = "keys.dev = 'a' OR tags.size = '3'" }, r1 + "\n" + r2},
		{"B visible tags", func(q *query.Properties) { q.KeyTagExpression = "tags.fs != ''" }, ""},
		{"B merged tags", func(q *query.Properties) { q.KeyTagExpression, q.Merge = "fs != ''", true }, strings.Replace(r1, `"size"`, `"fs":"ext4","size"`, 1)},
		{"limit", func(q *query.Properties) { q.Limit = 1 }, r1},
		{"unknown type", func(q *query.Properties) { q.Type = "a b" }, ""},
		{"unknown entity", func(q *query.Properties) { q.Entities.Entity = "x\ny" }, ""},
	} {
		q := base
		tt.change(&q)
		expect(t, tt.name, records(t, s.source(), q), tt.want)
	}
	q := base
	q.AddMeta, q.Limit = true, 1
	s.document(core.DocEntity, "srv-2", `{"label":"S"}`)
	expect(t, "meta", records(t, s.source(), q), strings.Replace(r1, `"key"`,
		`"meta":{"entity":{"name":"srv-2","enabled":true,"label":"S","tags":{},"createdDate":"2030-01-01T00:00:00.000Z","versionDate":"2030-01-01T00:00:00.001Z"}},"key"`, 1))
}

// Example C: key match of queries and deletions.
func TestKeyMatch(t *testing.T) {
	s := newStore(t)
	k1, k2 := core.Tag{Name: "k1", Value: "x"}, core.Tag{Name: "k2", Value: "y"}
	for entity, key := range map[string]core.Tags{"e-1": {k1, k2}, "e-2": {k1}, "e-3": nil} {
		s.apply(&core.Batch{Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: entity, Type: "t", Key: key}, Time: 1000,
			Tags: core.Tags{{Name: "v", Value: "1"}}, Flags: core.Default}}})
	}
	for _, tt := range []struct {
		exact bool
		key   map[string]string
		want  string
	}{
		{true, nil, "e-3"}, {false, nil, "e-1 e-2 e-3"}, {true, map[string]string{"k1": "x"}, "e-2"}, {false, map[string]string{"k1": "x"}, "e-1 e-2"},
		{true, map[string]string{"k1": "x", "k2": "y"}, "e-1"}, {false, map[string]string{"k1": "x", "k2": "y"}, "e-1"}, {false, map[string]string{"k2": "Y"}, ""},
	} {
		p, err := query.Properties{Type: "t", Entities: query.EntityFilter{Entity: "*"}, Key: tt.key, ExactMatch: tt.exact,
			Dates: between("1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z")}.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for r, err := range p.Run(t.Context(), s.source()) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, r.Entity)
		}
		expect(t, fmt.Sprint("query ", tt.exact, tt.key), strings.Join(found, " "), tt.want)
		d := query.PropertyDelete{Type: "T", Entity: "E-*", Key: tt.key, ExactMatch: &tt.exact}
		expect(t, fmt.Sprint("delete ", tt.exact, tt.key), deleted(t, s, d), tt.want)
	}
}

func deleted(t *testing.T, s *store, d query.PropertyDelete) string {
	t.Helper()
	p, err := d.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := p.Keys(t.Context(), s.source())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.Entity)
	}
	return strings.Join(names, " ")
}

// Example D, and the date limits of a deletion.
func TestPropertyDelete(t *testing.T) {
	s := properties(t)
	contains := false
	d := query.PropertyDelete{Type: "disk", Entity: "srv-2"}
	expect(t, "exact by default", deleted(t, s, d), "srv-2")
	d.ExactMatch = &contains
	expect(t, "all", deleted(t, s, d), "srv-2 srv-2 srv-2")
	d.Dates.StartDate = "2030-04-01T12:05:00Z"
	expect(t, "from", deleted(t, s, d), "srv-2")
	d.Dates = query.DateFilter{EndDate: "2030-04-01T12:05:00Z"}
	expect(t, "until", deleted(t, s, d), "srv-2 srv-2")
	d = query.PropertyDelete{Type: "$Entity_Tags", Entity: "*", ExactMatch: &contains}
	expect(t, "entity tags", deleted(t, s, d), "")
	for _, bad := range []query.PropertyDelete{{Entity: "e"}, {Type: "t", Entity: " "}, {Type: "t", Entity: "e", Dates: query.DateFilter{StartDate: "2030-04-01"}}} {
		if _, err := bad.Validate(moment); core.CodeOf(err) != core.Invalid {
			t.Errorf("%+v: %v, want code invalid", bad, err)
		}
	}
}

func TestEntityTags(t *testing.T) {
	s := newStore(t)
	s.document(core.DocEntity, "a", `{"tags":{"site":"n","app":"x"}}`)
	s.document(core.DocEntity, "b", `{"tags":{"site":"s"}}`)
	s.document(core.DocEntity, "c", `{}`)
	a := `{"type":"$entity_tags","entity":"a","key":{},"tags":{"app":"x","site":"n"},"date":"2021-03-10T14:37:52.481Z"}`
	b := `{"type":"$entity_tags","entity":"b","key":{},"tags":{"site":"s"},"date":"2021-03-10T14:37:52.481Z"}`
	q := query.Properties{Type: "$entity_tags", Entities: query.EntityFilter{Entity: "*"}}
	expect(t, "without dates", records(t, s.source(), q), a+"\n"+b)
	q.Dates = between("1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z")
	expect(t, "dates do not exclude", records(t, s.source(), q), a+"\n"+b)
	q.KeyTagExpression = "tags.site = 's' and keys.site = ''"
	expect(t, "expression", records(t, s.source(), q), b)
	q.KeyTagExpression, q.Key = "", map[string]string{"site": "s"}
	expect(t, "a key never matches", records(t, s.source(), q), "")
}

func TestPropertyErrors(t *testing.T) {
	ill := "IllegalArgumentException: "
	e := query.EntityFilter{Entity: "e"}
	for _, tt := range []struct {
		q    query.Properties
		want string
	}{
		{query.Properties{}, ill + "Insufficient parameters."},
		{query.Properties{Type: "t", Dates: query.DateFilter{StartDate: "now"}, Entities: e}, ill + "Insufficient parameters."},
		{query.Properties{Type: "t", Dates: tenMinutes}, ill + "entity or entities or entityGroup or entityExpression must not be empty"},
		{query.Properties{Dates: tenMinutes, Entities: e}, ill + "Empty type"},
		{query.Properties{Type: "t", Dates: between("2030-07-21 00:00:00", "now"), Entities: e}, ill + "Wrong startDate syntax: 2030-07-21 00:00:00"},
		{query.Properties{Type: "t", Dates: tenMinutes, Entities: e, KeyTagExpression: "keys. = 1"}, "Syntax error at line 1 position 6"},
	} {
		if _, err := tt.q.Validate(moment); core.CodeOf(err) != core.Invalid || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.want)
		}
	}
}

func TestPropertyTypes(t *testing.T) {
	s := properties(t)
	s.document(core.DocEntity, "srv-2", `{"tags":{"a":"b"}}`)
	s.apply(&core.Batch{Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "srv-2", Type: "cpu"}, Time: 0, Tags: core.Tags{{Name: "n", Value: "1"}},
		Flags: core.Default}}})
	types, err := query.PropertyTypes(t.Context(), s.source(), "SRV-2")
	if err != nil || !slices.Equal(types, []string{"cpu", "disk"}) {
		t.Errorf("got %v, %v", types, err)
	}
	if types, err := query.PropertyTypes(t.Context(), s.source(), "ghost"); err != nil || len(types) != 0 {
		t.Errorf("unknown entity: got %v, %v", types, err)
	}
}

// Names in a path are no patterns, whatever they hold.
func TestQuote(t *testing.T) {
	for _, name := range []string{"plain", `a\b`, "w*d", `q?\*`, `\\`} {
		for _, e := range []query.Escaping{query.EscapesInPatterns, query.EscapesAlways} {
			f, err := query.EntityFilter{Entity: query.Quote(name, e)}.Resolve(e)
			if err != nil || len(f.Patterns) > 0 || !slices.Equal(f.Names, []string{name}) {
				t.Errorf("Quote(%q, %d) resolves to %+v, %v", name, e, f, err)
			}
		}
	}
}
