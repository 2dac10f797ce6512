package wasm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

var (
	_ core.Parser        = (*wasm.Parsers)(nil)
	_ core.AlertRenderer = wasm.Renderers{}
)

func TestAppendBatch(t *testing.T) {
	var e abi.Encoder
	e.Reset()
	s := e.Series("CPU", "Web-1", abi.Pair{Name: "Z", Value: "V"}, abi.Pair{Name: "a", Value: "B"})
	e.Sample(s, 1, 0.5)
	e.Text(s, 2, "up", abi.AppendText)
	e.SampleDecimal(s, 3, 0.1, "0.1")                                      // the float gives it back
	e.SampleDecimal(s, 4, 12345678901234568, "12345678901234567.5")        // it does not
	e.SampleDecimal(s, 5, 1e30, "1000000000000000000000000000000")         // exact with an exponent
	e.SampleDecimal(s, 6, 1.2345678901234568, "1.23456789012345678901234") // past 64 bits: the float stands alone
	e.Message(&abi.Message{Entity: "Web-1", Type: "Log", Source: "Src", Severity: 5, Time: 7, Text: "T"})
	e.Property(&abi.Property{Entity: "E", Type: "Disk", Persist: true, Time: 8, Keys: []abi.Pair{{Name: "Id", Value: "/"}}})
	e.Metric(&abi.Record{Name: "CPU", Fields: []abi.Pair{{Name: "units", Value: "%"}, {Name: "min_value", Value: "0"}, {Name: "enabled", Value: "false"}},
		Tags: []abi.Pair{{Name: "T", Value: "v"}}})
	var src abi.Batch
	if err := src.Decode(string(e.Finish()), abi.Limits{}); err != nil {
		t.Fatal(err)
	}
	// A batch that already has a sample: indices of side columns move.
	var got core.Batch
	got.Add(got.Ref(core.SeriesKey{Metric: "m", Entity: "e"}), 0, 9)
	if err := wasm.AppendBatch(&got, &src, nil); err != nil {
		t.Fatal(err)
	}
	number, text := core.Default|core.HasValue, core.Default|core.AppendText
	want := core.Batch{
		Keys: []core.SeriesKey{{Metric: "m", Entity: "e"}, {Metric: "cpu", Entity: "web-1", Tags: core.Tags{{Name: "a", Value: "B"}, {Name: "z", Value: "V"}}}},
		Samples: core.Samples{
			Series: []uint32{0, 1, 1, 1, 1, 1, 1}, Times: []core.Time{0, 1, 2, 3, 4, 5, 6},
			Values:   []float64{9, 0.5, math.NaN(), 0.1, 12345678901234568, 1e30, 1.2345678901234568},
			Flags:    []core.Flags{number, number, text, number, number, number, number},
			Texts:    []core.TextAt{{Index: 2, Text: "up"}},
			Decimals: []core.DecimalAt{{Index: 4, Decimal: core.Decimal{Significand: 123456789012345675, Exponent: -1}}},
		},
		Messages: []core.Message{{Time: 7, Entity: "web-1", Type: "log", Source: "Src", Severity: core.Major, Text: "T", Flags: core.ForRules}},
		Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "e", Type: "disk", Key: core.Tags{{Name: "id", Value: "/"}}}, Time: 8,
			Flags: core.Default}},
		Documents: []core.DocChange{{Kind: core.DocMetric, Key: "cpu", Op: core.DocPatch,
			Body: []byte(`{"enabled":false,"minValue":0,"tags":{"t":"v"},"units":"%"}`)}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(core.Batch{}), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// described is a catalog of one entity and one metric.
type described struct{ core.Catalog }

func (described) Entity(name string) (core.Entity, bool) {
	return core.Entity{Name: name, Tags: map[string]string{"site": "North", "kind": "pump"}}, name == "pump-a"
}

func (described) Metric(name string) (core.Metric, bool) {
	return core.Metric{Name: name, Tags: map[string]string{"kind": "water", "grade": "2"}}, name == "flow"
}

// A copied tag beats the one beside it, the entity beats the metric, and whoever has no such tag leaves both as they are.
func TestAppendBatchCopiesTags(t *testing.T) {
	asked := []abi.Pair{{Name: abi.CopyEntity + "Site"}, {Name: abi.CopyEntity + "kind"}, {Name: abi.CopyMetric + "kind"}, {Name: abi.CopyMetric + "grade"},
		{Name: abi.CopyEntity + "absent"}, {Name: "site", Value: "hq"}, {Name: "Grade", Value: "0"}}
	src := abi.Batch{Messages: []abi.Message{{Entity: "Pump-A", Tags: asked}}, Properties: []abi.Property{{Entity: "pump-a", Tags: asked}}}
	for _, entity := range []string{"Pump-A", "pump-b"} {
		for _, metric := range []string{"Flow", "heat"} {
			src.Series = append(src.Series, abi.Series{Metric: metric, Entity: entity, Tags: asked})
		}
	}
	for i := range src.Series {
		src.Samples = append(src.Samples, abi.Sample{Series: abi.SeriesRef(i)})
	}
	of := core.TagsOf(map[string]string{"site": "North", "kind": "pump", "grade": "0"})
	for _, c := range []struct {
		catalog core.Catalog
		want    []core.Tags // by series
	}{
		{described{}, []core.Tags{core.TagsOf(map[string]string{"site": "North", "kind": "pump", "grade": "2"}), of,
			core.TagsOf(map[string]string{"site": "hq", "kind": "water", "grade": "2"}), core.TagsOf(map[string]string{"site": "hq", "grade": "0"})}},
		{nil, slices.Repeat([]core.Tags{core.TagsOf(map[string]string{"site": "hq", "grade": "0"})}, 4)},
	} {
		var got core.Batch
		if err := wasm.AppendBatch(&got, &src, c.catalog); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if key := got.Keys[got.Samples.Series[i]]; !key.Tags.Equal(want) {
				t.Errorf("series %d: %v, want tags %v", i, key, want)
			}
		}
		if c.catalog != nil && (!got.Messages[0].Tags.Equal(of) || !got.Properties[0].Tags.Equal(of)) {
			t.Errorf("message %v, property %v, want %v", got.Messages[0].Tags, got.Properties[0].Tags, of)
		}
	}
}

// The reserved tags of a series are the version of each of its samples. Without them it is the same series.
func TestAppendBatchTakesVersions(t *testing.T) {
	src := abi.Batch{
		Series: []abi.Series{{Metric: "m", Entity: "e", Tags: []abi.Pair{{Name: "$Version_Status", Value: " ok "}, {Name: "a", Value: "b"}}},
			{Metric: "m", Entity: "e", Tags: []abi.Pair{{Name: "a", Value: "b"}}},
			{Metric: "m", Entity: "e", Tags: []abi.Pair{{Name: "$version_source", Value: "plc"}, {Name: "a", Value: "b"}}}},
		Samples: []abi.Sample{{Series: 0}, {Series: 1, Time: 1}, {Series: 2, Time: 2}, {Series: 0, Time: 3}},
	}
	var got core.Batch
	got.Add(got.Ref(core.SeriesKey{Metric: "m", Entity: "e"}), 0, 9)
	if err := wasm.AppendBatch(&got, &src, nil); err != nil {
		t.Fatal(err)
	}
	want := []core.VersionAt{{Index: 1, Status: "ok"}, {Index: 3, Source: "plc"}, {Index: 4, Status: "ok"}}
	if diff := cmp.Diff(want, got.Samples.Versions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{0, 1, 1, 1, 1}, got.Samples.Series); diff != "" || !got.Keys[1].Tags.Equal(core.Tags{{Name: "a", Value: "b"}}) {
		t.Errorf("keys %v, %s", got.Keys, diff)
	}
}

func TestAppendBatchRefusesUnknownFields(t *testing.T) {
	for _, field := range []abi.Pair{{Name: "colour", Value: "red"}, {Name: "enabled", Value: "maybe"}, {Name: "max_value", Value: "NaN"}} {
		err := wasm.AppendBatch(new(core.Batch), &abi.Batch{Entities: []abi.Record{{Name: "e", Fields: []abi.Pair{field}}}}, nil)
		if err == nil || !strings.Contains(err.Error(), field.Name) {
			t.Errorf("%v: error %v", field, err)
		}
	}
}

func nativePlain(t *testing.T, h *wasm.Host, m abi.Manifest) {
	t.Helper()
	make := func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: m, NewParser: plain.NewParser, NewAlert: plain.NewAlert}, o)
	}
	if _, err := h.AddNative("plain", make, nil); err != nil {
		t.Fatal(err)
	}
}

// A body of several chunks gives the same samples whether it is cut at newlines or anywhere.
func TestParsersCutBodies(t *testing.T) {
	var body strings.Builder
	const lines = 30_000 // about 700 KB: three chunks
	for i := range lines {
		fmt.Fprintf(&body, "%d,web-%d,cpu,%d\n", 1000+i, i%7, i)
	}
	body.WriteString("5,bad,cpu,x") // no newline at the end
	for _, format := range []string{"lines", "raw"} {
		h := newHost(t, wasm.Options{})
		m := plain.Manifest()
		m.Stateful = format == "raw"
		nativePlain(t, h, m)
		parsers := &wasm.Parsers{Host: h}
		var samples, read, batches int
		var rejects []core.Reject
		for p, err := range parsers.Parse(t.Context(), core.ParseRequest{Parser: "plain", Format: format, Received: 77}, strings.NewReader(body.String())) {
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range p.Batch.Samples.Values {
				if v != float64(samples+i) {
					t.Fatalf("%s: sample %d is %v", format, samples+i, v)
				}
			}
			samples += p.Batch.Samples.Len()
			read += p.Lines
			batches++
			rejects = append(rejects, p.Rejects...)
			if p.Batch.Received != 77 {
				t.Errorf("receive time %d", p.Batch.Received)
			}
		}
		if samples != lines || read != lines+1 || batches < 3 {
			t.Errorf("%s: %d samples, %d lines, %d batches", format, samples, read, batches)
		}
		want := []core.Reject{{Column: 4, Line: rejects[0].Line, Reason: "value is not a number", Text: "x"}}
		if diff := cmp.Diff(want, rejects); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

func TestParsersReportErrors(t *testing.T) {
	h := newHost(t, wasm.Options{})
	nativePlain(t, h, plain.Manifest())
	parsers := &wasm.Parsers{Host: h, Configuration: func(_ context.Context, r core.ParseRequest) (wasm.Configuration, error) {
		if r.Parser == "broken" {
			return wasm.Configuration{Plugin: "plain", Config: json.RawMessage("5")}, nil
		}
		return wasm.Configuration{Plugin: r.Parser, Encoding: r.Encoding}, nil
	}}
	read := errors.New("connection reset")
	for name, c := range map[string]struct {
		request core.ParseRequest
		body    io.Reader
		code    core.Code
		text    string
	}{
		"unknown":       {core.ParseRequest{Parser: "nope"}, strings.NewReader(""), core.Invalid, "needs the plugin 'nope'"},
		"configuration": {core.ParseRequest{Parser: "broken"}, strings.NewReader(""), core.Invalid, "config 5: want a text"},
		"encoding":      {core.ParseRequest{Parser: "plain", Encoding: "cp1250"}, strings.NewReader(""), core.Unsupported, "only UTF-8"},
		"long line":     {core.ParseRequest{Parser: "plain"}, strings.NewReader(strings.Repeat("x", 2<<20)), core.TooLarge, "1048576"},
		"cut body":      {core.ParseRequest{Parser: "plain"}, io.MultiReader(strings.NewReader("x"), failing{io.ErrUnexpectedEOF}), core.Internal, "unexpected EOF"},
		"body":          {core.ParseRequest{Parser: "plain"}, io.MultiReader(strings.NewReader("x"), failing{read}), core.Internal, "connection reset"},
	} {
		var last error
		for _, last = range parsers.Parse(t.Context(), c.request, c.body) {
		}
		if last == nil || !strings.Contains(last.Error(), c.text) {
			t.Errorf("%s: error %v, want one with %q", name, last, c.text)
			continue
		}
		if e := (*core.Error)(nil); errors.As(last, &e) && e.Code != c.code {
			t.Errorf("%s: code %v, want %v", name, e.Code, c.code)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRenderers(t *testing.T) {
	h := newHost(t, wasm.Options{})
	nativePlain(t, h, plain.Manifest())
	events := []core.AlertEvent{{Rule: "hot", Status: core.StatusOpen, Alert: core.Alert{Entity: "pump", Value: 91.5}}}
	got, err := wasm.Renderers{Host: h}.Render(t.Context(), "plain", events)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Text != "hot on pump: 91.5" || string(got[0].JSON) != `{"text":"hot on pump: 91.5"}` {
		t.Errorf("rendered %+v", got)
	}
	if _, err := (wasm.Renderers{Host: h}).Render(t.Context(), "nope", events); err == nil {
		t.Error("an unknown plugin renders")
	}
}

// A stateful guest that is killed in the middle of an upload: the error says from which byte on the upload is to be sent again.
func TestParsersNameTheByteOfAKill(t *testing.T) {
	onLast := func(act ...byte) []byte { // if (flags) act
		return append(append([]byte{0x20, 2, 0x04, 0x40}, act...), append([]byte{0x0b}, wasmtest.Const64(0)...)...)
	}
	for _, c := range []struct {
		name  string
		code  []byte
		fault string
	}{
		{"trap", onLast(0x00), "trap: "},
		{"endless loop", onLast(0x03, 0x40, 0x0c, 0, 0x0b), "deadline: "},
		{"no batch", append([]byte{0x20, 2, 0x04, 0x40}, append(append(wasmtest.Packed(wasmtest.DataAt, 3), 0x0f, 0x0b), wasmtest.Const64(0)...)...), "output: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, fast)
			m := abi.Manifest{ABI: 1, Name: "s", Version: "1", Kinds: []abi.Kind{abi.KindParser}, Stateful: true}
			add(t, h, "s", wasmtest.Plugin(m, wasmtest.Func{Export: abi.KindParser.Export(), Code: c.code}).Bytes())
			parsers := &wasm.Parsers{Host: h}
			var last error
			parts := 0
			for _, err := range parsers.Parse(t.Context(), core.ParseRequest{Parser: "s"}, strings.NewReader(strings.Repeat("x", 300_000))) {
				if last = err; err == nil {
					parts++
				}
			}
			if last == nil || !strings.Contains(last.Error(), c.fault) || !strings.Contains(last.Error(), "before byte 300000 is stored") || parts != 2 {
				t.Errorf("after %d parts: %v", parts, last)
			}
		})
	}
}

// When the plugin breaks the contract in a way that only the adapter sees, the byte is that of the chunk.
func TestParsersNameTheByteOfABadRecord(t *testing.T) {
	h := newHost(t, wasm.Options{})
	_, err := h.AddNative("bad", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: abi.Manifest{Name: "bad", Version: "1"}, NewParser: func() guest.Parser { return badField{} }}, o)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsers := &wasm.Parsers{Host: h}
	var last error
	for _, err := range parsers.Parse(t.Context(), core.ParseRequest{Parser: "bad"}, strings.NewReader("12345")) {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "before byte 5 is stored") {
		t.Errorf("error %v", last)
	}
}

// badField describes a metric with a field that does not exist, at the end.
type badField struct{}

func (badField) Open(*abi.OpenRequest) error { return nil }

func (badField) Parse(_ []byte, last bool, out *abi.Encoder) error {
	if last {
		out.Metric(&abi.Record{Name: "m", Fields: []abi.Pair{{Name: "nonsense", Value: "1"}}})
	}
	return nil
}
