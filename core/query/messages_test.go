package query_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

func messages(t *testing.T) *store {
	s := newStore(t)
	add := func(entity, typ string, minute int, severity core.Severity, text string, tags core.Tags) {
		s.apply(&core.Batch{Messages: []core.Message{{Time: 1620036000000 + core.Time(minute)*60_000, Entity: entity, Type: typ, Source: "plc",
			Severity: severity, Text: text, Tags: tags, Flags: core.Default}}})
	}
	add("gate-1", "auth", 0, core.Warning, "m0", core.Tags{{Name: "line", Value: "A1"}})
	add("gate-1", "auth", 2, core.Normal, "m2", nil)
	add("gate-2", "auth", 7, core.Fatal, "m7", core.Tags{{Name: "line", Value: "A*1"}, {Name: "x", Value: `b\c`}})
	add("gate-1", "sys", 12, core.Undefined, "m12", nil)
	add(`g\1`, "sys", 12, core.Major, "mb", nil)
	return s
}

// texts returns the texts of the messages that a query finds, in order.
func texts(t *testing.T, src query.Source, q query.Messages) string {
	t.Helper()
	if q.Dates.Empty() {
		q.Dates = query.DateFilter{StartDate: "2021-05-03T10:00:00Z", Interval: "1-HOUR"}
	}
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	var found []string
	for m, err := range p.Run(t.Context(), src) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, m.Text)
	}
	return strings.Join(found, " ")
}

func TestMessages(t *testing.T) {
	s := messages(t)
	all := query.EntityFilter{Entity: "*"}
	number := func(n int) *int { return &n }
	for _, tt := range []struct {
		q    query.Messages
		want string
	}{
		{query.Messages{Entities: all}, "mb m12 m7 m2 m0"},
		{query.Messages{Entities: query.EntityFilter{Entity: "GATE-1"}}, "m12 m2 m0"},
		{query.Messages{Entities: query.EntityFilter{Entities: []string{"gate-?"}}}, "m12 m7 m2 m0"},
		{query.Messages{Entities: query.EntityFilter{Entity: `g\1`}}, "mb"}, // a plain name
		{query.Messages{Entities: query.EntityFilter{Entity: `g\\1`}}, ""},
		{query.Messages{Entities: query.EntityFilter{Entity: `g\\*`}}, "mb"}, // a pattern
		{query.Messages{Entities: query.EntityFilter{Entity: "ghost"}}, ""},
		{query.Messages{Entities: all, Type: "AUTH"}, "m7 m2 m0"},
		{query.Messages{Entities: all, Type: "auth", Source: "none"}, ""},
		{query.Messages{Entities: all, Severity: "warn"}, "m0"},
		{query.Messages{Entities: all, Severities: []string{"0", "FATAL"}}, "m12 m7"},
		{query.Messages{Entities: all, Severity: "fatal", Severities: []string{"0", "FATAL"}}, "m7"},
		{query.Messages{Entities: all, Severity: "fatal", Severities: []string{"0"}}, ""},
		{query.Messages{Entities: all, MinSeverity: "3"}, "mb m7 m0"},
		{query.Messages{Entities: all, Tags: map[string][]string{"LINE": {"*"}}}, "m7 m0"},
		{query.Messages{Entities: all, Tags: map[string][]string{"line": {"A1", "B"}}}, "m0"},
		{query.Messages{Entities: all, Tags: map[string][]string{"line": {`A\*1`}}}, "m7"},
		{query.Messages{Entities: all, Tags: map[string][]string{"x": {`b\c`}}}, "m7"},
		{query.Messages{Entities: all, Expression: "severity != 'FATAL' and message LIKE 'm?'"}, "mb m2 m0"},
		{query.Messages{Entities: all, Limit: number(2)}, "mb m12"},
		{query.Messages{Entities: all, Limit: number(0)}, "mb m12 m7 m2 m0"},
		{query.Messages{Entities: all, Dates: query.DateFilter{StartDate: "2021-05-03T10:02:00Z", Interval: "1-MILLISECOND"}}, "m2"},
		{query.Messages{Entities: all, Dates: between("1000-01-01T00:00:00Z", "1001-01-01T00:00:00Z")}, ""},
		{query.Messages{Entities: all, Dates: between("1000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"), Limit: number(-1)}, "mb m12 m7 m2 m0"},
	} {
		expect(t, fmt.Sprintf("%+v", tt.q), texts(t, s.source(), tt.q), tt.want)
	}
}

func TestMessageLimitDefault(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	for i := range 1001 {
		b.Messages = append(b.Messages, core.Message{Time: 1620036000000 + core.Time(i), Entity: "e", Type: "t", Source: "s", Text: "x", Flags: core.Default})
	}
	s.apply(&b)
	if n := len(strings.Fields(texts(t, s.source(), query.Messages{Entities: query.EntityFilter{Entity: "e"}}))); n != 1000 {
		t.Errorf("%d messages, want the default limit of 1000", n)
	}
}

func TestMessageErrors(t *testing.T) {
	all := query.EntityFilter{Entity: "*"}
	ill := "IllegalArgumentException: "
	for _, tt := range []struct {
		q    query.Messages
		want string
	}{
		{query.Messages{}, ill + "Insufficient parameters."},
		{query.Messages{Dates: tenMinutes}, ill + "entity or entities or entityGroup or entityExpression must not be empty"},
		{query.Messages{Dates: tenMinutes, Entities: query.EntityFilter{Entities: []string{" "}}}, ill + "entity or entities"},
		{query.Messages{Dates: tenMinutes, Entities: all, Severity: "LOUD"}, ill + "Unknown severity: LOUD"},
		{query.Messages{Dates: tenMinutes, Entities: all, Severities: []string{"1", "8"}}, ill + "Unknown severity: 8"},
		{query.Messages{Dates: tenMinutes, Entities: all, MinSeverity: "-1"}, ill + "Unknown severity: -1"},
		{query.Messages{Dates: tenMinutes, Entities: all, Expression: "source lkie 'a'"}, "Syntax error at line 1 position 7"},
		{query.Messages{Dates: between("1893456000000", "now"), Entities: all}, ill + "Wrong startDate syntax: 1893456000000"},
	} {
		if _, err := tt.q.Validate(moment); core.CodeOf(err) != core.Invalid || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.want)
		}
	}
}

func TestMessageScope(t *testing.T) {
	s := messages(t)
	s.document(core.DocGroup, "mine", `{"members":["gate-2"]}`)
	src := query.Source{Reader: s.Store, Catalog: s.Store, Scope: core.Scope{Groups: []string{"mine"}}}
	expect(t, "wildcard", texts(t, src, query.Messages{Entities: query.EntityFilter{Entity: "gate*"}}), "m7")
	p, err := query.Messages{Entities: query.EntityFilter{Entity: "gate-1"}, Dates: tenMinutes}.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range p.Run(t.Context(), src) {
	}
	if core.CodeOf(err) != core.Forbidden {
		t.Errorf("named entity: %v, want code forbidden", err)
	}
}

func FuzzAppendMessage(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\n\x00", "\xff\xc3\x28", "\u2028é😀"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got struct{ Message string }
		if err := json.Unmarshal(query.AppendMessage(nil, &core.Message{Text: text}), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); strings.ReplaceAll(got.Message, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Errorf("%q reads back as %q", text, got.Message)
		}
	})
}

func TestAppendMessage(t *testing.T) {
	m := core.Message{Time: at(t, "2030-01-01T00:00:00Z"), Entity: "pump-7", Type: "ops", Source: "plc", Severity: core.Warning,
		Text: "valve \n stuck", Tags: core.Tags{{Name: "line", Value: "A1"}}}
	expect(t, "full", string(query.AppendMessage(nil, &m)), `{"entity":"pump-7","type":"ops","source":"plc","severity":"WARNING","tags":{"line":"A1"},`+
		`"message":"valve \n stuck","date":"2030-01-01T00:00:00.000Z"}`)
	m.Text, m.Tags, m.Type = "", nil, "\"\\\t\x01é<\xff"
	expect(t, "bare and escaped", string(query.AppendMessage(nil, &m)), `{"entity":"pump-7","type":"\"\\\t\u0001é<\ufffd","source":"plc","severity":"WARNING",`+
		`"date":"2030-01-01T00:00:00.000Z"}`)
}
