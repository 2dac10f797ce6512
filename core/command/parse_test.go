package command

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
)

const now core.Time = 1620036000000 // 2021-05-03T10:00:00Z

// parse runs one command on a batch of its own.
func parse(t *testing.T, transport Transport, line string) (*core.Batch, error) {
	t.Helper()
	b := &core.Batch{}
	p := Parser{Received: now, Transport: transport}
	err := p.Line(b, []byte(line))
	if err != nil && b.Len()+len(b.Keys) > 0 {
		t.Errorf("%q was refused, yet left %d records and %d keys", line, b.Len(), len(b.Keys))
	}
	return b, err
}

// mustParse fails the test when the command is refused.
func mustParse(t *testing.T, line string) *core.Batch {
	t.Helper()
	b, err := parse(t, Exact, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return b
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(core.Batch{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("want(-) got(+):\n%s", d)
	}
}

func TestSeries(t *testing.T) {
	key := func(metric, entity string, tags ...core.Tag) core.SeriesKey {
		return core.SeriesKey{Metric: metric, Entity: entity, Tags: tags}
	}
	full := core.Default | core.HasValue
	nan := math.NaN()
	for _, test := range []struct {
		name, line string
		keys       []core.SeriesKey
		samples    core.Samples
	}{
		{"names lower case, values kept", `series e:Pump-A m:Flow=5.5 x:Flow="low, ""dry run""" t:Site="North Hall" d:2021-05-03T10:00:01Z`,
			[]core.SeriesKey{key("flow", "pump-a", core.Tag{Name: "site", Value: "North Hall"})},
			core.Samples{Series: []uint32{0}, Times: []core.Time{now + 1000}, Values: []float64{5.5}, Flags: []core.Flags{full},
				Texts: []core.TextAt{{Index: 0, Text: `low, "dry run"`}}}},
		{"receive time, several metrics, blanks and tabs", "  SERIES  e:a \t m:x=1   m:y=2 ",
			[]core.SeriesKey{key("x", "a"), key("y", "a")},
			core.Samples{Series: []uint32{0, 1}, Times: []core.Time{now, now}, Values: []float64{1, 2}, Flags: []core.Flags{full, full}}},
		{"text alone is no number", `series e:a x:note="" s:1`, []core.SeriesKey{key("note", "a")},
			core.Samples{Series: []uint32{0}, Times: []core.Time{1000}, Values: []float64{nan}, Flags: []core.Flags{core.Default},
				Texts: []core.TextAt{{Index: 0, Text: ""}}}},
		{"append", `series e:a x:st="Start" a:true ms:5`, []core.SeriesKey{key("st", "a")},
			core.Samples{Series: []uint32{0}, Times: []core.Time{5}, Values: []float64{nan}, Flags: []core.Flags{core.Default | core.AppendText},
				Texts: []core.TextAt{{Index: 0, Text: "Start"}}}},
		{"same metric twice: the last wins; text joins from afar", `series e:a m:v=1 m:w=2 m:V=3 x:v=t ms:0`,
			[]core.SeriesKey{key("v", "a"), key("w", "a")},
			core.Samples{Series: []uint32{0, 1}, Times: []core.Time{0, 0}, Values: []float64{3, 2}, Flags: []core.Flags{full, full},
				Texts: []core.TextAt{{Index: 0, Text: "t"}}}},
		{"repeated fields: the last wins", `series e:a e:b t:k=1 t:K=2 m:v=1 ms:1 ms:2`,
			[]core.SeriesKey{key("v", "b", core.Tag{Name: "k", Value: "2"})},
			core.Samples{Series: []uint32{0}, Times: []core.Time{2}, Values: []float64{1}, Flags: []core.Flags{full}}},
		{"ms over s over d", `series e:a m:v=1 ms:7 s:3 d:2021-05-03T10:00:00Z`, []core.SeriesKey{key("v", "a")},
			core.Samples{Series: []uint32{0}, Times: []core.Time{7}, Values: []float64{1}, Flags: []core.Flags{full}}},
		{"versions are no tags", `series e:a m:v=1 ms:1 t:$version_source=plc t:$version_status="not ok"`, []core.SeriesKey{key("v", "a")},
			core.Samples{Series: []uint32{0}, Times: []core.Time{1}, Values: []float64{1}, Flags: []core.Flags{full},
				Versions: []core.VersionAt{{Source: "plc", Status: "not ok"}}}},
		{"quoted everything", `series e:"a" t:"k"="v" m:"f"="1.5" s:"1620036000"`,
			[]core.SeriesKey{key("f", "a", core.Tag{Name: "k", Value: "v"})},
			core.Samples{Series: []uint32{0}, Times: []core.Time{now}, Values: []float64{1.5}, Flags: []core.Flags{full}}},
		{"odd names", `series e:a\b/c;d m:disk:used=1 m:"q""=t"=2 t:Ключ=Значение ms:1`,
			[]core.SeriesKey{key("disk:used", `a\b/c;d`, core.Tag{Name: "ключ", Value: "Значение"}),
				key(`q"=t`, `a\b/c;d`, core.Tag{Name: "ключ", Value: "Значение"})},
			core.Samples{Series: []uint32{0, 1}, Times: []core.Time{1, 1}, Values: []float64{1, 2}, Flags: []core.Flags{full, full}}},
		{"limits of time", `series e:a m:v=1 ms:4294969199999`, []core.SeriesKey{key("v", "a")},
			core.Samples{Series: []uint32{0}, Times: []core.Time{core.MaxTime}, Values: []float64{1}, Flags: []core.Flags{full}}},
		{"exact decimals travel beside the double", `series e:a ms:1 m:v=0.1234567890123456789`, []core.SeriesKey{key("v", "a")},
			core.Samples{Series: []uint32{0}, Times: []core.Time{1}, Values: []float64{0.12345678901234568}, Flags: []core.Flags{full},
				Decimals: []core.DecimalAt{{Decimal: core.Decimal{Significand: 1234567890123456789, Exponent: -19}}}}},
		{"tags trimmed", `series e:a ms:1 m:v=1 t:k=" v "`, []core.SeriesKey{key("v", "a", core.Tag{Name: "k", Value: "v"})},
			core.Samples{Series: []uint32{0}, Times: []core.Time{1}, Values: []float64{1}, Flags: []core.Flags{full}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := mustParse(t, test.line)
			diff(t, test.keys, b.Keys)
			diff(t, test.samples, b.Samples)
		})
	}
}

func TestRefused(t *testing.T) {
	tags := func(prefix string, n int) string {
		var s strings.Builder
		for i := range n {
			s.WriteString(" " + prefix + ":n" + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + "=1")
		}
		return s.String()
	}
	for _, line := range []string{
		"", "serie e:a m:v=1", "series", "series m:v=1", "series e:a", "series e:a q:1 m:v=1", "series e:a m:v", "series e:a m:=1",
		"series e:a m:v=", "series e:a m:v=1x", "series e:a m:v=0x10", "series e:a m:v=Infinity", "series e:a m:v=1e999", "series e:a m:v=1_000",
		"series e:a m:v=1 a:1", "series e:a m:v=1 a:TRUE", `series e:"my host" m:v=1`, `series e:a m:v=1 t:"my tag"=1`, `series e:a m:"v w"=1`,
		`series e:a m:v=1 t:k=""`, `series e:a m:v=1 t:k="  "`, `series e:a m:v=1 t:k=`, "series e:a m:v=1 t:k=a=b", `series e:a m:v=1 t:k=a"b"`,
		`series e:a m:v=1 t:k="a"b`, `series e:a m:v=1 t:k="a`, "series e:a m:v=1 ms:-1", "series e:a m:v=1 ms:4294969200000",
		"series e:a m:v=1 s:4294969200", "series e:a m:v=1 s:-1", "series e:a m:v=1 s:99999999999999999", "series e:a m:v=1 ms:1.5",
		"series e:a m:v=1 d:2021-05-03T10:00:00", `series e:a m:v=1 d:"2021-05-03 10:00:00Z"`, "series e:a m:v=1 d:1620036000000",
		"series e: m:v=1", `series e:"" m:v=1`, "series e:a m:v=1 t:k=\x00", "series e:a m:v=1 t:k=\xff", "series e:a m:v=1 E:b",
		"series e:a m:v=1 word", "series e:a m:v=1" + tags("t", 1025), "series e:a\u00a0b m:v=1",
		"property e:a t:x", "property e:a v:k=1", "property t:x v:k=1", `property e:a t:x v:k=""`, "property e:a t:x k:a=1 v:k=\" \n \"",
		"property e:a t:x v:k=1 p:yes", `property e:a t:"x y" v:k=1`, "property e:a t:x" + tags("k", 1000) + tags("v", 25), "property e:a t:$entity_tags",
		"message e:a", "message m:hi", "message e:a t:type=x", `message e:a m:" "`, "message e:a m:hi t:severity=8", "message e:a m:hi t:severity=loud",
		`message e:a m:hi t:type="a b"`, `message e:a m:hi t:k=""`, "message e:a" + tags("t", 1025),
		"metric b:true", "metric m:x e:y", "metric m:x b:yes", "metric m:x b:1", "metric m:x b:'true'", "metric m:x v:tru", "metric m:x pe:+",
		"metric m:x p:int", "metric m:x p:lon", "metric m:x i:PREVIOU", "metric m:x i:l\u0131near", "metric m:x a:none_", "metric m:x z:HST",
		"metric m:x z:PST", "metric m:x z:Mars/Olympus", "metric m:x rd:-1", "metric m:x rd:1.5", "metric m:x min:NaN", "metric m:x max:ten",
		`metric m:x b:""`, `metric m:x p:""`, `metric m:x t:"a b"=1`, `metric m:"x y" b:true`,
		"entity b:true", `entity e:x t:"a b"=1`, "entity e:x p:double", "entity e:x z:HST", "entity e:x i:cubic", "csv p:x", "nmon p:x e:a f:a.nmon", "ping",
	} {
		b, err := parse(t, TCP, line)
		if core.CodeOf(err) != core.Invalid {
			t.Errorf("%.60q: got %v and %d records, want an error of code invalid", line, err, b.Len())
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for line, want := range map[string]string{
		"drop e:pump-a":              "Invalid command: drop e:pump-a",
		`property e:a t:x v:k=""`:    `Empty tag values in command: property e:a t:x v:k=""`,
		"series e:a m:v=x":           "Malformed command: series e:a m:v=x",
		"message e:a m:\"1\n2\" q:1": `Malformed command: message e:a m:"1 2" q:1`,
	} {
		_, err := parse(t, Exact, line)
		var e *core.Error
		if !errors.As(err, &e) || e.Text != want {
			t.Errorf("%q: got %v, want text %q", line, err, want)
		}
	}
	_, err := parse(t, Exact, "series e:é m:v=x")
	if want := "column 12: \"x\" is not a number"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q, want it to end in %q", err, want)
	}
}

func TestLineBreaks(t *testing.T) {
	for _, test := range []struct{ sent, tcp, http string }{
		{"a\nb", "a\nb", "a\nb"},
		{"a\rb", "a\rb", "a\nb"},
		{"a\r\nb\n\rc", "a\nb\n\rc", "a\nb\nc"},
		{"a\n\nb", "a\nb", "a\nb"},
		{"a\n\r", "a\n\r", "a\n"},
		{"  \r\r\n\ra\n\rb  \n\r ", "  \n\ra\n\rb  \n\r ", "\na\nb\n"},
	} {
		for transport, want := range map[Transport]string{Exact: test.sent, TCP: test.tcp, HTTP: test.http} {
			line := `series e:a x:v="` + test.sent + `" t:k="` + test.sent + `"`
			s := NewSplitter(strings.NewReader(line+"\nseries e:b m:v=1"), transport)
			command, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			b, err := parse(t, transport, string(command))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if got := b.Samples.Texts[0].Text; got != want {
				t.Errorf("transport %d, %q: got %q, want %q", transport, test.sent, got, want)
			}
			if got := b.Keys[0].Tags[0].Value; got != strings.TrimSpace(want) {
				t.Errorf("transport %d, tag %q: got %q, want %q", transport, test.sent, got, strings.TrimSpace(want))
			}
			if next, err := s.Next(); string(next) != "series e:b m:v=1" {
				t.Errorf("after %q: got %q, %v", line, next, err)
			}
		}
	}
}

func TestProperty(t *testing.T) {
	b := mustParse(t, `property e:Pump-A t:Hardware k:Slot=1 k:none="" v:Make=KX-3 v:bore=" `+"\n\r"+`" v:last=L p:false ms:9`)
	diff(t, []core.Property{{
		PropertyKey: core.PropertyKey{Entity: "pump-a", Type: "hardware", Key: core.Tags{{Name: "slot", Value: "1"}}},
		Time:        9, Flags: core.ForRules,
		Tags: core.Tags{{Name: "bore"}, {Name: "last", Value: "L"}, {Name: "make", Value: "KX-3"}},
	}}, b.Properties)
	b = mustParse(t, `property e:a t:$entity_tags v:k=""`)
	diff(t, core.Tags{{Name: "k"}}, b.Properties[0].Tags)
}

func TestMessage(t *testing.T) {
	b := mustParse(t, "message e:Pump-A t:Type=Audit t:Source=PLC t:severity=warn t:Line=\" A1 \" m:\" valve\n\nopened\n\" s:1620036000 p:true")
	diff(t, []core.Message{{Time: now, Entity: "pump-a", Type: "audit", Source: "plc", Severity: core.Warning, Text: "valve\n\nopened",
		Tags: core.Tags{{Name: "line", Value: "A1"}}, Flags: core.Default}}, b.Messages)
	b = mustParse(t, `message e:a t:k=v m:"" p:false`)
	diff(t, []core.Message{{Time: now, Entity: "a", Tags: core.Tags{{Name: "k", Value: "v"}}, Flags: core.ForRules}}, b.Messages)
}

func TestSettings(t *testing.T) {
	for _, test := range []struct {
		line string
		want core.DocChange
	}{
		{"metric m:Flow u:l/min p:double i:PREVIOUS", core.DocChange{Kind: core.DocMetric, Key: "flow", Body: []byte(
			`{"dataType":"DOUBLE","interpolate":"PREVIOUS","units":"l/min"}`)}},
		{`metric m:x b:"false" l:L d:"a ""b""" f:"value > 1" z:GMT0 v:true a:set_version_status pe:false rd:30 min:-1.5 max:1e3 t:K=V`,
			core.DocChange{Kind: core.DocMetric, Key: "x", Body: []byte(`{"description":"a \"b\"","enabled":false,"filter":"value \u003e 1",` +
				`"invalidAction":"SET_VERSION_STATUS","label":"L","maxValue":1000,"minValue":-1.5,"persistent":false,"retentionDays":30,` +
				`"tags":{"k":"V"},"timeZone":"GMT0","versioned":true}`)}},
		{`metric m:x l:"" d:"" u:"" f:"" z:"" i:"" rd:"" min:"" max:"" t:k=""`, core.DocChange{Kind: core.DocMetric, Key: "x", Body: []byte(
			`{"description":null,"filter":null,"interpolate":"LINEAR","label":null,"maxValue":null,"minValue":null,"retentionDays":null,` +
				`"tags":{"k":null},"timeZone":null,"units":null}`)}},
		{"metric m:x", core.DocChange{Kind: core.DocMetric, Key: "x", Body: []byte(`{}`)}},
		{"entity e:X", core.DocChange{Kind: core.DocEntity, Key: "x", Body: []byte(`{}`)}},
		{`entity e:x b:true l:"Pump X" i:linear z:ROK t:Site=North t:old=""`, core.DocChange{Kind: core.DocEntity, Key: "x", Body: []byte(
			`{"enabled":true,"interpolate":"LINEAR","label":"Pump X","tags":{"old":null,"site":"North"},"timeZone":"ROK"}`)}},
		{`entity e:x i:"" z:"" l:""`, core.DocChange{Kind: core.DocEntity, Key: "x", Body: []byte(`{"interpolate":null,"label":null,"timeZone":null}`)}},
	} {
		test.want.Op = core.DocPatch
		b := mustParse(t, test.line)
		if d := cmp.Diff([]core.DocChange{test.want}, b.Documents, cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" {
			t.Errorf("%s:\n%s", test.line, d)
		}
	}
}

// TestSpecExample is example 1 of the command specification: five commands, one of them over three lines, the last one wrong.
func TestSpecExample(t *testing.T) {
	body := `series e:Pump-A m:Flow=5.5 x:Flow="low, ""dry run""" t:Site="north hall" d:2021-05-03T10:00:00Z
message e:Pump-A t:type=Audit t:severity=warn m:"valve

opened" ms:1620036000000
property e:Pump-A t:Hardware k:slot=1 v:make=KX-3 v:bore=""
metric m:flow u:l/min p:double i:PREVIOUS
metric m:flow b:yes
`
	s := NewSplitter(strings.NewReader(body), HTTP)
	p := Parser{Received: now, Transport: HTTP}
	b := &core.Batch{}
	ok, failed := 0, 0
	for {
		command, err := s.Next()
		if err != nil {
			break
		}
		if p.Line(b, command) != nil {
			failed++
		} else {
			ok++
		}
	}
	if ok != 4 || failed != 1 {
		t.Errorf("got %d accepted and %d refused, want 4 and 1", ok, failed)
	}
	if got := b.Messages[0].Text; got != "valve\nopened" {
		t.Errorf("message text %q, want the two lines without the empty one", got)
	}
	if b.Samples.Len() != 1 || len(b.Properties) != 1 || len(b.Documents) != 1 {
		t.Errorf("got %d samples, %d properties, %d documents, want one of each", b.Samples.Len(), len(b.Properties), len(b.Documents))
	}
}

func TestRefusedCommandLeavesTheBatch(t *testing.T) {
	p := Parser{Received: now}
	b := &core.Batch{}
	if err := p.Line(b, []byte("series e:a m:v=1")); err != nil {
		t.Fatal(err)
	}
	if err := p.Line(b, []byte("series e:b m:v=1 m:w=x")); err == nil {
		t.Fatal("want an error")
	}
	if err := p.Line(b, []byte("series e:c m:v=3")); err != nil {
		t.Fatal(err)
	}
	diff(t, []core.SeriesKey{{Metric: "v", Entity: "a"}, {Metric: "v", Entity: "c"}}, b.Keys)
	diff(t, []float64{1, 3}, b.Samples.Values)
}

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		line string
		kind Control
		rest string
	}{
		{"ping", Ping, ""}, {" PING \r", Ping, ""}, {"time", Time, ""}, {"version", Version, ""}, {"exit", Exit, ""},
		{"debug series e:a m:v=1", Debug, "series e:a m:v=1"}, {"debug", Debug, ""}, {"marker 7f-1", Marker, "7f-1"},
		{"marker", NoControl, ""}, {"marker a b", NoControl, ""}, {"ping e:a", NoControl, ""}, {"series e:a m:v=1", NoControl, ""}, {"", NoControl, ""},
		{"pingpong", NoControl, ""},
	} {
		kind, rest := Classify([]byte(test.line))
		if kind != test.kind || string(rest) != test.rest {
			t.Errorf("%q: got %d %q, want %d %q", test.line, kind, rest, test.kind, test.rest)
		}
	}
}
