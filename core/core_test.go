package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeriesKeyRoundTrip(t *testing.T) {
	keys := []SeriesKey{
		{Metric: "m", Entity: "e"},
		{Metric: "cpu_busy", Entity: "web-1", Tags: Tags{{"disk", "/dev/sda"}, {"mount", "/"}}},
		{Metric: "m", Entity: "ё=\"\\", Tags: Tags{{"k", "a\x02b"}}},
		{Metric: "m", Entity: "e", Tags: Tags{{"k", ""}}},
	}
	for _, k := range keys {
		got, err := ParseSeriesKey(k.Append(nil))
		if err != nil {
			t.Fatalf("%+v: %v", k, err)
		}
		if diff := cmp.Diff(k, got); diff != "" {
			t.Errorf("round trip (-want +got):\n%s", diff)
		}
	}
}

func TestSeriesKeyCanonicalForm(t *testing.T) {
	k := SeriesKey{Metric: "m", Entity: "e", Tags: Tags{{"a", "1"}, {"b", "2"}}}
	if got, want := string(k.Append(nil)), "m\x00e\x00a\x011\x00b\x012\x00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMalformedSeriesKeys(t *testing.T) {
	for _, s := range []string{"", "m", "m\x00e", "m\x00e\x00tag", "m\x00e\x00tag\x00", "m\x00e\x00a\x01b\x01c\x00"} {
		if k, err := ParseSeriesKey([]byte(s)); err == nil {
			t.Errorf("%q was read as %+v", s, k)
		}
	}
}

func TestCanonicalFormSortsLikeCompare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		return strings.Repeat(string(rune('a'+rng.IntN(2))), rng.IntN(3)) + string(rune(2+rng.IntN(3)))
	}
	key := func() SeriesKey {
		k := SeriesKey{Metric: word(), Entity: word()}
		for range rng.IntN(3) {
			k.Tags = append(k.Tags, Tag{word(), word()})
		}
		k.Tags = k.Tags.Normal()
		return k
	}
	for range 20000 {
		a, b := key(), key()
		if got, want := strings.Compare(string(a.Append(nil)), string(b.Append(nil))), a.Compare(b); got != want {
			t.Fatalf("%+v and %+v: bytes say %d, Compare says %d", a, b, got, want)
		}
	}
}

func TestTagsNormalKeepsTheLastOfEqualNames(t *testing.T) {
	got := Tags{{"b", "1"}, {"a", "2"}, {"b", "3"}}.Normal()
	if diff := cmp.Diff(Tags{{"a", "2"}, {"b", "3"}}, got); diff != "" {
		t.Error(diff)
	}
	if v, ok := got.Get("b"); !ok || v != "3" {
		t.Errorf("Get(b) = %q, %v", v, ok)
	}
	if _, ok := got.Get("c"); ok {
		t.Error("Get(c) found something")
	}
}

func TestParseSeverity(t *testing.T) {
	for text, want := range map[string]Severity{"0": Undefined, "7": Fatal, "warn": Warning, "Error": Critical, "INFO": Normal, "minor": Minor} {
		if got, ok := ParseSeverity(text); !ok || got != want {
			t.Errorf("%s: got %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"8", "-1", "LOUD", "", "256"} {
		if got, ok := ParseSeverity(text); ok {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// The cases are examples of RFC 7396, appendix A.
func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got, err := MergePatch([]byte(c.doc), []byte(c.patch))
		if err != nil || string(got) != c.want {
			t.Errorf("%s + %s = %s, %v; want %s", c.doc, c.patch, got, err, c.want)
		}
	}
	if _, err := MergePatch([]byte(`{}`), []byte(`{`)); CodeOf(err) != Invalid {
		t.Errorf("broken patch: %v", err)
	}
}

func TestPatchOfAnAbsentMetricStartsFromItsDefaults(t *testing.T) {
	body, err := DocChange{Kind: DocMetric, Key: "m", Op: DocPatch, Body: []byte(`{"units":"C"}`)}.Apply(nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"m","enabled":true,"dataType":"FLOAT","units":"C","persistent":true,"interpolate":"LINEAR","versioned":false,"invalidAction":"NONE","created":5}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestRolesExpand(t *testing.T) {
	for _, c := range []struct {
		role Roles
		want []string
	}{
		{DataWrite, []string{"API_DATA_WRITE"}},
		{User, []string{"API_DATA_READ", "API_META_READ", "USER"}},
		{EntityGroupAdmin, []string{"API_DATA_READ", "API_META_READ", "ENTITY_GROUP_ADMIN", "USER"}},
		{Admin, []string{"API_DATA_READ", "API_DATA_WRITE", "API_META_READ", "API_META_WRITE", "ENTITY_GROUP_ADMIN", "USER", "EDITOR", "ADMIN"}},
	} {
		got := c.role.Expand().Names()
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.role.Names(), got, c.want)
		}
		if !c.role.Expand().Has(Authenticated) {
			t.Errorf("%v is not authenticated", c.role.Names())
		}
	}
}

func TestErrorCodes(t *testing.T) {
	inner := errors.New("disk gone")
	err := fmt.Errorf("append: %w", Wrap(NoSpace, inner, "the disk is full"))
	if CodeOf(err) != NoSpace || !errors.Is(err, inner) {
		t.Errorf("code %v, chain %v", CodeOf(err), errors.Is(err, inner))
	}
	if CodeOf(inner) != Internal {
		t.Error("a plain error must be internal")
	}
}

func TestBatchRefsAreDistinct(t *testing.T) {
	var b Batch
	k := SeriesKey{Metric: "m", Entity: "e", Tags: Tags{{"a", "1"}}}
	if b.Ref(k) != 0 || b.Ref(SeriesKey{Metric: "m", Entity: "e"}) != 1 || b.Ref(k.Clone()) != 0 {
		t.Errorf("refs of %v", b.Keys)
	}
}
