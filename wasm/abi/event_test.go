package abi

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var event = Event{Time: 1000, Received: 1001, Opened: 900, Value: 1.5, OpenValue: -2, Repeat: 3, Severity: 6, Status: StatusCancel,
	Texts: [eventFieldCount]string{EventRule: "hot", EventEntity: "pump", EventID: "id"},
	Tags:  []Pair{{"site", "n"}, {"", ""}}, EntityTags: []Pair{{"k", "v"}}, Variables: []Pair{{"limit", "90"}}}

func collect(seq func(func(name, value []byte) bool)) []Pair {
	var ps []Pair
	for n, v := range seq {
		ps = append(ps, Pair{string(n), string(v)})
	}
	return ps
}

func TestEventsKeepEveryField(t *testing.T) {
	es, err := ParseEvents(AppendEvents(nil, []Event{{}, event}))
	if err != nil {
		t.Fatal(err)
	}
	if es.Len() != 2 {
		t.Fatalf("%d events", es.Len())
	}
	v := es.At(1)
	got := Event{Time: v.Time(), Received: v.Received(), Opened: v.Opened(), Value: v.Value(), OpenValue: v.OpenValue(), Repeat: v.Repeat(),
		Severity: v.Severity(), Status: v.Status(), Tags: collect(v.Tags), EntityTags: collect(v.EntityTags), Variables: collect(v.Variables)}
	for f := range eventFieldCount {
		got.Texts[f] = string(v.Text(f))
	}
	if diff := cmp.Diff(event, got); diff != "" {
		t.Error(diff)
	}
	if n := len(collect(es.At(0).Tags)); n != 0 || es.At(0).Time() != 0 {
		t.Errorf("the empty event has %d tags, time %d", n, es.At(0).Time())
	}
}

// The places of fields are a promise to guests in other languages: the numbers are those of ABI.md.
func TestEventLayout(t *testing.T) {
	b := AppendEvents(nil, []Event{event})
	if got := b[:8]; string(got) != "\x01\x00\x00\x00\x08\x00\x00\x00" {
		t.Errorf("count and offset % x", got)
	}
	rec := b[8:]
	if rec[0] != 160 || rec[8] != 0xe8 || rec[9] != 0x03 || rec[48] != 3 || rec[52] != 6 || rec[53] != 2 {
		t.Errorf("header % x", rec[:56])
	}
	// entity is the third text: offset at 72, length at 76.
	at, n := int(rec[72]), int(rec[76])
	if string(rec[at:at+n]) != "pump" {
		t.Errorf("entity %q at %d", rec[at:at+n], at)
	}
	if rec[136] != 160 || rec[140] != 2 {
		t.Errorf("tags at %d, %d of them; want 160, 2", rec[136], rec[140])
	}
}

func FuzzParseEvents(f *testing.F) {
	f.Add(AppendEvents(nil, nil))
	f.Add(AppendEvents(nil, []Event{event, {}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		es, err := ParseEvents(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v does not wrap ErrFormat", err)
			}
			return
		}
		for i := range es.Len() {
			v := es.At(i)
			for fld := range eventFieldCount {
				_ = string(v.Text(fld))
			}
			_, _, _ = collect(v.Tags), collect(v.EntityTags), collect(v.Variables)
			_, _ = v.Value(), v.Severity()
		}
	})
}

func TestRenderingsRoundTrip(t *testing.T) {
	want := []Rendering{{Text: "hot", Body: `{"a":1}`, Commands: "series e:x m:y=1"}, {BuiltIn: true}}
	got, err := DecodeRenderings(string(AppendRenderings(nil, want)), 2, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := DecodeRenderings(string(AppendRenderings(nil, want)), 3, Limits{}); !errors.Is(err, ErrFormat) {
		t.Errorf("two renderings for three events: error %v", err)
	}
}

func TestRequestRoundTrip(t *testing.T) {
	want := &Request{Method: "POST", Path: "/hook", Query: []Pair{{"a", "b"}}, Headers: []Pair{{"Content-Type", "x"}, {"X", ""}}, Body: "\xff\x00"}
	got, err := DecodeRequest(string(AppendRequest(nil, want)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecodeRenderings(f *testing.F) {
	f.Add(AppendRenderings(nil, []Rendering{{Text: "a", Body: "{}"}}), 1)
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		if rs, err := DecodeRenderings(string(data), max(0, n), Limits{}); err == nil && len(rs) != max(0, n) {
			t.Errorf("%d renderings, want %d", len(rs), n)
		}
	})
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add(AppendRequest(nil, &Request{Method: "GET", Path: "/", Query: []Pair{{"a", "b"}}, Body: "x"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := DecodeRequest(string(data), Limits{})
		if err != nil {
			return
		}
		again, err := DecodeRequest(string(AppendRequest(nil, q)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(q, again); diff != "" {
			t.Error(diff)
		}
	})
}

func TestManifestListsEveryFault(t *testing.T) {
	m := Manifest{ABI: 2, Name: "Bad Name", Kinds: []Kind{"cook"}, Formats: []Format{{Framing: "words"}}, Limits: ManifestLimits{MemoryMB: -1}}
	err := m.Validate()
	if err == nil {
		t.Fatal("no fault")
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 6 {
		t.Errorf("faults %v, want 6", err)
	}
}

func TestFramingOf(t *testing.T) {
	m := Manifest{Formats: []Format{{Name: "a", Framing: FramingLines}, {Name: "b", Framing: FramingNone}, {Name: "c"}}}
	for format, want := range map[string]Framing{"": FramingLines, "a": FramingLines, "b": FramingNone, "c": FramingNone, "x": FramingNone} {
		if got := m.FramingOf(format); got != want {
			t.Errorf("format %q: %q, want %q", format, got, want)
		}
	}
}
