package core

import (
	"strings"
	"testing"
)

// The store decides the times of entities and metrics, whatever a body says.
func TestApplySettlesTimes(t *testing.T) {
	const made, changed = `{"name":"x","enabled":true,"created":100}`, `{"name":"x","enabled":true,"label":"L","created":100,"versionDate":150}`
	for _, tt := range []struct {
		name, before string
		change       DocChange
		now          Time
		want         string
	}{
		{"creation", "", DocChange{Kind: DocEntity, Op: DocPut, Body: []byte(`{"enabled":true}`)}, 100, made},
		{"change", made, DocChange{Kind: DocEntity, Op: DocPatch, Body: []byte(`{"label":"L"}`)}, 150, changed},
		{"replacement keeps the creation", made, DocChange{Kind: DocEntity, Op: DocPut, Body: []byte(`{"enabled":true,"label":"L","created":1,"versionDate":7}`)}, 150, changed},
		{"nothing changes", changed, DocChange{Kind: DocEntity, Op: DocPatch, Body: []byte(`{"label":"L","versionDate":900,"name":"y"}`)}, 900, changed},
		{"the same millisecond", made, DocChange{Kind: DocEntity, Op: DocPatch, Body: []byte(`{"label":"L"}`)}, 100, strings.Replace(changed, "150", "101", 1)},
		{"a clock that went back", changed, DocChange{Kind: DocEntity, Op: DocPatch, Body: []byte(`{"label":null}`)}, 90,
			`{"name":"x","enabled":true,"created":100,"versionDate":151}`},
		{"rename", changed, DocChange{Kind: DocEntity, Op: DocRename, Body: []byte(`{"name":"y"}`)}, 900,
			`{"created":100,"enabled":true,"label":"L","name":"y","versionDate":150}`},
	} {
		var before []byte
		if tt.before != "" {
			before = []byte(tt.before)
		}
		tt.change.Key = "x"
		got, err := tt.change.Apply(before, tt.now)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	metric := DocChange{Kind: DocMetric, Key: "m", Op: DocPut, Body: []byte(`{"enabled":true,"created":7}`)}
	got, err := metric.Apply([]byte(`{"name":"m","created":3}`), 9)
	if err != nil || !strings.Contains(string(got), `"created":3`) {
		t.Errorf("replaced metric: %s, %v", got, err)
	}
}

func TestRenameNames(t *testing.T) {
	free := func(string) bool { return false }
	for _, tt := range []struct {
		change DocChange
		taken  func(string) bool
		want   string
		code   Code
	}{
		{DocChange{Kind: DocMetric, Body: []byte(`{"name":"n"}`)}, free, "n", 0},
		{DocChange{Kind: DocEntity, Body: []byte(`{"name":"n"}`)}, func(name string) bool { return name == "n" }, "", Invalid},
		{DocChange{Kind: DocEntity, Body: []byte(`{}`)}, free, "", Invalid},
		{DocChange{Kind: DocEntity, Body: []byte(`{"name":`)}, free, "", Invalid},
		{DocChange{Kind: DocGroup, Body: []byte(`{"name":"n"}`)}, free, "", Invalid},
	} {
		got, err := tt.change.NewName(tt.taken)
		if got != tt.want || (err != nil) != (tt.code != 0) || err != nil && CodeOf(err) != tt.code {
			t.Errorf("%s %s: %q, %v", tt.change.Kind, tt.change.Body, got, err)
		}
	}
	if _, err := (DocChange{Kind: DocMetric, Key: "m", Op: DocRename, Body: []byte(`{"name":"n"}`)}).Apply(nil, 1); CodeOf(err) != NotFound {
		t.Errorf("rename of an unknown metric: %v", err)
	}
}

func TestTableKey(t *testing.T) {
	for name, want := range map[string]string{"Levels": "levels", "My Table": "my_table", "a  b": "a__b", "": ""} {
		if got := TableKey(name); got != want {
			t.Errorf("key of %q is %q, want %q", name, got, want)
		}
	}
}
