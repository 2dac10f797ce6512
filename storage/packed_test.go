package storage

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

// entityBodies are bodies of entities as they may be stored; package json says what they mean.
var entityBodies = []string{
	`{"name":"e","enabled":true,"created":1700000000000}`,
	`{"name":"e","enabled":false,"created":1700000000000,"versionDate":1700000000001}`,
	`{"name":"e","enabled":true,"label":"Pump 1","interpolate":"LINEAR","timeZone":"Europe/Vienna","tags":{"a":"1","b":"2"},"created":5,"versionDate":9}`,
	`{"name":"e","enabled":true,"label":"Müller","tags":{"größe":"5 µm"},"created":0}`,
	`{"name":"e","enabled":true,"label":"a\u003cb\"\\","tags":{"x":"\n"},"created":-5}`,
	`{"name":"e","enabled":true,"tags":{"b":"1","a":"2","b":"3"},"created":5}`,
	`{"name":"e","enabled":true,"tags":{"a":"1","a":"2"},"created":5}`,
	` { "created" : 5e3, "NAME": "x", "enabled": true, "other": [1] } `,
	`{"name":"e","enabled":null,"tags":{},"label":null,"created":007}`,
	`{"name":"e","enabled":true,"created":123456789012345678}`,
	`{"name":"e","enabled":true,"created":1234567890123456789}`,
	`{"name":"e","enabled":true,"created":9223372036854775808}`,
	`{"name":"e","enabled":true,"created":5}x`,
	`{"name":"e","enabled":true,"label":"` + "\xff" + `","created":5}`,
	`{"name":"e","enabled":true,"label":"` + "\x01" + `","created":5}`,
	`{"name":"e,"enabled":true,"created":5}`,
	`{"enabled":true,}`, `{,"enabled":true}`, `{}`, `{`, `[]`, `null`, ``,
}

var metricBodies = []string{
	`{"name":"m","enabled":true,"dataType":"FLOAT","persistent":true,"interpolate":"LINEAR","versioned":false,"invalidAction":"NONE","created":1700000000000}`,
	`{"name":"m","enabled":true,"dataType":"FLOAT","persistent":true,"interpolate":"LINEAR","versioned":true,"invalidAction":"NONE","created":17}`,
	`{"name":"m","enabled":false,"dataType":"DECIMAL","label":"L","description":"D","units":"U","persistent":false,"interpolate":"PREVIOUS","timeZone":"UTC","filter":"value > 1",` +
		`"versioned":true,"invalidAction":"DISCARD","minValue":-1.5,"maxValue":1e300,"retentionDays":3,"seriesRetentionDays":-4,"tags":{"a":"1"},"created":17}`,
	`{"name":"m","enabled":true,"dataType":"LONG","persistent":true,"versioned":false,"retentionDays":30,"created":17}`,
	`{"name":"m","enabled":true,"dataType":"LONG","persistent":true,"versioned":false,"seriesRetentionDays":99999999999,"created":17}`,
	`{"name":"m","enabled":true,"dataType":"LONG","persistent":true,"versioned":false,"minValue":0,"created":17}`,
	`{"name":"m","dataType":"","interpolate":""}`, `{}`, `{"name":5}`,
}

// FuzzPackedEntity compares with package json what a start reads of a body, and what comes back of it.
func FuzzPackedEntity(f *testing.F) {
	for _, body := range entityBodies {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var want core.Entity
		err := json.Unmarshal([]byte(body), &want)
		want.Name = "e"
		if len(want.Tags) == 0 {
			want.Tags = nil
		}
		c := newCatalog()
		c.entity("other")
		if got := c.loadEntity("e", []byte(body)); (got == nil) != (err == nil) {
			t.Fatalf("%q: error %v, and of package json %v", body, got, err)
		}
		got, known := c.findEntity("e")
		if known != (err == nil) {
			t.Fatalf("%q: known %v, error %v", body, known, err)
		}
		if err != nil {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: loaded\n%s", body, d)
		}
		e := c.lookupEntity("e")
		if d := cmp.Diff(core.TagsOf(want.Tags), e.doc.Load().tags()); d != "" {
			t.Fatalf("%q: tags\n%s", body, d)
		}
		if e.doc.Load().versionDate() != want.VersionDate() && (want.Created >= 0 || want.Versioned != 0) {
			t.Fatalf("%q: version of %d", body, e.doc.Load().versionDate())
		}
		for _, l := range []lasting{alone, sideBySide} {
			if d := cmp.Diff(want, c.packing.entity(&want, core.TagsOf(want.Tags), l).unpack("e")); d != "" {
				t.Fatalf("%q: packed\n%s", body, d)
			}
		}
	})
}

func FuzzPackedMetric(f *testing.F) {
	for _, body := range metricBodies {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var want core.Metric
		err := json.Unmarshal([]byte(body), &want)
		want.Name = "m"
		if len(want.Tags) == 0 {
			want.Tags = nil
		}
		c := newCatalog()
		if got := c.loadMetric("m", []byte(body)); (got == nil) != (err == nil) {
			t.Fatalf("%q: error %v, and of package json %v", body, got, err)
		}
		if got, known := c.findMetric("m"); err == nil && (!known || !cmp.Equal(want, got)) {
			t.Fatalf("%q: loaded\n%s", body, cmp.Diff(want, got))
		}
		if got := c.packing.metric(&want, alone).unpack("m"); err == nil && !cmp.Equal(want, got) {
			t.Fatalf("%q: packed\n%s", body, cmp.Diff(want, got))
		}
	})
}

// TestScannedForms has bodies as the store writes them: each is read without package json, as a million of them at a start must be.
func TestScannedForms(t *testing.T) {
	for _, body := range entityBodies[:4] {
		if _, _, ok := scanEntity(body, nil); !ok {
			t.Errorf("%s is left to package json", body)
		}
	}
	for _, body := range []string{metricBodies[0], metricBodies[1], metricBodies[3]} {
		if _, ok := scanMetric(body); !ok {
			t.Errorf("%s is left to package json", body)
		}
	}
	stored, err := json.Marshal(core.Entity{Name: "e", Enabled: true, Label: "L", Interpolate: "LINEAR", TimeZone: "UTC", Tags: map[string]string{"b": "1", "a": "2"}, Created: 1, Versioned: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := scanEntity(string(stored), nil); !ok {
		t.Errorf("%s is left to package json", stored)
	}
}

// TestHotDocuments changes documents that were asked for before: the next question is answered from what is there then, whatever shares a place with it.
func TestHotDocuments(t *testing.T) {
	c := newCatalog()
	byPlace := map[int]string{}
	a, b := "", ""
	for n := 0; a == ""; n++ {
		name := "e" + string(rune('0'+n%10)) + string(rune('a'+n/10%26)) + string(rune('a'+n/260%26)) + string(rune('a'+n/6760%26))
		if other, met := byPlace[c.hotEntities.place(name)]; met {
			a, b = other, name
		}
		byPlace[c.hotEntities.place(name)] = name
	}
	for _, step := range []struct{ name, label string }{{a, "1"}, {b, "2"}, {a, "3"}, {a, "4"}, {b, "5"}, {b, ""}, {a, ""}} {
		if _, err := c.apply(core.DocChange{Kind: core.DocEntity, Key: step.name, Op: core.DocPatch, Body: []byte(`{"label":"` + step.label + `"}`)}, 5); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e, _ := c.findEntity(step.name); e.Label != step.label || e.Name != step.name {
				t.Errorf("%s is %+v, and its label %q", step.name, e, step.label)
			}
		}
	}
	if _, err := c.apply(core.DocChange{Kind: core.DocEntity, Key: a, Op: core.DocDelete}, 6); err != nil {
		t.Fatal(err)
	}
	if e, known := c.findEntity(a); known || e.Label != "" {
		t.Errorf("deleted, and still %+v", e)
	}
}
