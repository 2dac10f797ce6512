package command

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

func TestPrint(t *testing.T) {
	b := &core.Batch{
		Documents: []core.DocChange{
			{Kind: core.DocMetric, Key: "flow", Op: core.DocPatch, Body: []byte(`{"enabled":true,"label":"a b","minValue":null,"tags":{"b":"2","a":null}}`)},
			{Kind: core.DocEntity, Key: `q"`, Op: core.DocPatch, Body: []byte(`{}`)},
		},
		Messages: []core.Message{{Time: 1, Entity: "e", Type: "audit", Severity: core.Warning, Text: "two\n\nlines", Flags: core.ForRules}},
		Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "e", Type: "t", Key: core.Tags{{Name: "k", Value: "1"}}}, Time: 2,
			Tags: core.Tags{{Name: "v"}}, Flags: core.Default}},
	}
	ref := b.Ref(core.SeriesKey{Metric: "m=1", Entity: "e", Tags: core.Tags{{Name: "site", Value: "north hall"}}})
	b.Add(ref, 3, 1.5)
	b.AddText(ref, 4, `say "x"`)
	b.Samples.Flags[1] |= core.AppendText
	i := b.Add(ref, 5, 9007199254740992)
	b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: uint32(i), Decimal: core.Decimal{Significand: 9007199254740993}})
	b.Samples.Versions = append(b.Samples.Versions, core.VersionAt{Index: uint32(i), Source: "plc", Status: "ok"})
	want := `metric m:flow b:true l:"a b" min:"" t:a="" t:b=2
entity e:q"
series e:e t:site="north hall" m:"m=1"=1.5 ms:3
series e:e t:site="north hall" x:"m=1"="say ""x""" a:true ms:4
series e:e t:site="north hall" t:$version_source=plc t:$version_status=ok m:"m=1"=9007199254740993 ms:5
message e:e t:type=audit t:severity=WARNING m:"two

lines" ms:1 p:false
property e:e t:t k:k=1 v:v="" ms:2
`
	want = strings.Replace(want, `entity e:q"`, `entity e:"q"""`, 1)
	got, err := AppendBatch(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, want, string(got))
}

func TestPrintRefuses(t *testing.T) {
	for _, b := range []*core.Batch{
		{Removed: []core.PropertyKey{{}}},
		{Series: []core.SeriesDelete{{}}},
		{Documents: []core.DocChange{{Kind: core.DocUser, Op: core.DocPut, Body: []byte(`{}`)}}},
		{Documents: []core.DocChange{{Kind: core.DocMetric, Op: core.DocPatch, Body: []byte(`{"created":1}`)}}},
		{Documents: []core.DocChange{{Kind: core.DocMetric, Op: core.DocPatch, Body: []byte(`{"tags":null}`)}}},
	} {
		if text, err := AppendBatch(nil, b); err == nil {
			t.Errorf("printed %q, want an error", text)
		}
	}
}

// FuzzParse feeds arbitrary text; whatever is accepted must print as text that parses to the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`series e:a m:v=1 x:v="a ""b""" t:k=v ms:5 a:true`, `series e:a m:v=9007199254740993 t:$version_source=x`, "message e:a m:\"1\n2\" t:type=x t:k=v",
		`property e:a t:x k:a=1 v:b="" v:c=2 p:false`, `metric m:x l:"" p:double min:-1e3 t:a=b`, `entity e:x z:UTC t:a=""`, `property e:a t:$entity_tags k:a=1`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := Parser{Received: now}
		first := &core.Batch{}
		if p.Line(first, []byte(line)) != nil {
			if first.Len()+len(first.Keys) != 0 {
				t.Fatal("a refused command left records")
			}
			return
		}
		printed, err := AppendBatch(nil, first)
		if err != nil {
			t.Fatal(err)
		}
		second := &core.Batch{}
		commands, _ := split(t, strings.NewReader(string(printed)), Exact)
		for _, command := range commands {
			if err := p.Line(second, []byte(command)); err != nil {
				t.Fatalf("%q printed as %q: %v", line, command, err)
			}
		}
		dropOverflow(first)
		dropOverflow(second)
		diff(t, first, second)
	})
}

// dropOverflow removes what by design is not printed: significands that do not fit.
func dropOverflow(b *core.Batch) {
	kept := b.Samples.Decimals[:0]
	for _, d := range b.Samples.Decimals {
		if d.Decimal != Overflow {
			kept = append(kept, d)
		}
	}
	b.Samples.Decimals = kept
}

// FuzzPrint builds records from arbitrary parts; what is printed must parse to the same record.
func FuzzPrint(f *testing.F) {
	f.Add("entity", "metric", "tag", "value", "some text", 1.5, int64(7), uint8(0))
	f.Add(`e"=`, `"`, `t=`, `"a"`, "\r\n\n x \r", math.Pi, int64(0), uint8(255))
	f.Fuzz(func(t *testing.T, entity, metric, tag, value, text string, number float64, at int64, bits uint8) {
		names := []string{entity, metric, tag}
		for i, name := range names {
			names[i] = strings.ToLower(strings.ToValidUTF8(name, ""))
			if !validName(names[i]) || strings.ToLower(names[i]) != names[i] || strings.HasPrefix(names[i], "$version") {
				return
			}
		}
		value = strings.TrimSpace(strings.ToValidUTF8(value, ""))
		text = strings.ToValidUTF8(text, "")
		when := core.Time(at)
		if value == "" || strings.ContainsAny(value+text, "\x00\x01") || !when.Storable() || math.IsInf(number, 0) || len(value)+len(text) > 1000 {
			return
		}
		want := &core.Batch{}
		key := core.SeriesKey{Metric: names[1], Entity: names[0], Tags: core.Tags{{Name: names[2], Value: value}}}
		if bits&1 == 0 {
			want.Add(want.Ref(key), when, number)
		}
		if bits&1 != 0 || bits&2 != 0 {
			if bits&1 == 0 {
				want.Samples.Texts = append(want.Samples.Texts, core.TextAt{Text: text})
			} else {
				want.AddText(want.Ref(key), when, text)
			}
		}
		flags := core.ForRules
		if bits&4 != 0 {
			flags |= core.Stored
		}
		if names[2] != "type" && names[2] != "source" && names[2] != "severity" {
			want.Messages = append(want.Messages, core.Message{Time: when, Entity: names[0], Type: names[1], Source: names[2], Severity: core.Severity(bits >> 5),
				Text: strings.TrimSpace(text), Tags: key.Tags, Flags: flags})
		}
		want.Properties = append(want.Properties, core.Property{PropertyKey: core.PropertyKey{Entity: names[0], Type: names[1], Key: key.Tags}, Time: when,
			Tags: core.Tags{{Name: names[2], Value: value}}, Flags: flags})
		printed, err := AppendBatch(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		got := &core.Batch{}
		p := Parser{Received: now}
		commands, _ := split(t, strings.NewReader(string(printed)), Exact)
		for _, command := range commands {
			if err := p.Line(got, []byte(command)); err != nil {
				t.Fatalf("%q: %v", command, err)
			}
		}
		diff(t, want, got)
	})
}

// BenchmarkSeries reads series commands with twenty metrics each.
func BenchmarkSeries(b *testing.B) {
	const fields = 20
	var line []byte
	line = append(line, "series e:web-server-001 t:dc=eu t:rack=r17 ms:1620036000000"...)
	for i := range fields {
		line = append(line, " m:cpu.usage."...)
		line = strconv.AppendInt(line, int64(i), 10)
		line = append(line, '=')
		line = strconv.AppendFloat(line, 12.25*float64(i), 'f', -1, 64)
	}
	p := Parser{Received: now, Transport: TCP}
	batch := &core.Batch{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			batch = &core.Batch{}
		}
		if err := p.Line(batch, line); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*fields/b.Elapsed().Seconds(), "fields/s")
}
