package line

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// pickles are pickle.dumps([("web-9.load", (1620036000, 1.5)), ("a", (1620036001.0, 7))]) in the protocols of Python, and of Python 2 with its texts in
// bytes.
var pickles = map[string]string{
	"protocol 0":           "286c70300a28567765622d392e6c6f61640a70310a2849313632303033363030300a46312e350a7470320a7470330a612856610a70340a2846313632303033363030312e300a49370a7470350a7470360a612e",
	"protocol 1":           "5d71002828580a0000007765622d392e6c6f61647101284aa0c98f60473ff8000000000000747102747103285801000000617104284741d823f2684000004b07747105747106652e",
	"protocol 2":           "80025d710028580a0000007765622d392e6c6f616471014aa0c98f60473ff800000000000086710286710358010000006171044741d823f2684000004b07867105867106652e",
	"protocol 3":           "80035d710028580a0000007765622d392e6c6f616471014aa0c98f60473ff800000000000086710286710358010000006171044741d823f2684000004b07867105867106652e",
	"protocol 4":           "80049537000000000000005d94288c0a7765622d392e6c6f6164944aa0c98f60473ff8000000000000869486948c0161944741d823f2684000004b0786948694652e",
	"protocol 5":           "80059537000000000000005d94288c0a7765622d392e6c6f6164944aa0c98f60473ff8000000000000869486948c0161944741d823f2684000004b0786948694652e",
	"Python 2, protocol 2": "80025d710028550a7765622d392e6c6f616471014aa0c98f60473ff800000000000086710286710355016171044741d823f2684000004b07867105867106652e",
	"Python 2, protocol 0": "286c70300a2853277765622d392e6c6f6164270a70310a2849313632303033363030300a46312e350a7470320a7470330a6128532761270a70340a2846313632303033363030312e300a49370a7470350a7470360a612e",
}

const pickledSamples = "series e:web-9 m:load=1.5 ms:1620036000000\nseries e:graphite m:a=7 ms:1620036001000"

func decode(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestPickle(t *testing.T) {
	for name, text := range pickles {
		t.Run(name, func(t *testing.T) {
			p := Parser{Received: received}
			b := &core.Batch{}
			if err := p.Pickle(b, decode(t, text), func(err error) { t.Error(err) }); err != nil {
				t.Fatal(err)
			}
			if got, want := show(b), shown(t, pickledSamples); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			// Whatever is cut off is refused, and nothing of it is stored.
			raw := decode(t, text)
			for end := range raw {
				b := &core.Batch{}
				if err := p.Pickle(b, raw[:end], func(error) {}); err == nil || b.Len() > 0 {
					t.Errorf("the first %d bytes: %v, %d records", end, err, b.Len())
				}
			}
		})
	}
}

func TestPickleKinds(t *testing.T) {
	for message, want := range map[string]string{
		"(l.":                                           "",
		"(lp0\n(S'a.b'\n(I-1\nF2.5\ntta.":               "series e:a m:b=2.5",
		"(l(S'a.b'\n(S'1620036000'\nS'7'\ntta.":         "series e:a m:b=7 ms:1620036000000",
		"(l(V\\u0061.b\n(L1620036000L\nI7\ntta.":        "series e:a m:b=7 ms:1620036000000",
		"(l(S'a.b'\n(I1620036000\nFnan\ntta.":           "", // no point, as in the plain form
		"(l(S'a.b'\n(I1620036000\nI01\ntta.":            "series e:a m:b=1 ms:1620036000000",
		"](S'a.b'\nJ\xff\xff\xff\xffK\x07\x86ta.":       "series e:a m:b=7",
		"](S'a.b'\n\x8a\x01\xff\x8a\x02\x00\x80\x86ta.": "series e:a m:b=-32768",
		"(l(S'a.b'\n(I1620036000\nFinf\ntta.":           "",
		"(l(S'a.b'\n(I-2\nI7\ntta.":                     "1 refused",
		"(l(S'a.b'\n(I4294969200\nI7\ntta.":             "1 refused",
		"(l(S'a.b'\n(NI7\ntta.":                         "1 refused",
		"(l(S'a.b'\n(I1\nNtta.":                         "1 refused",
		"(l(I1\n(I1\nI1\ntta.":                          "1 refused",
		"(lI1\na(S'a.b'\n(I-1\nI7\ntta.":                "series e:a m:b=7",
	} {
		p := Parser{Received: received}
		b := &core.Batch{}
		refused := 0
		if err := p.Pickle(b, []byte(message), func(error) { refused++ }); err != nil {
			t.Errorf("%q: %v", message, err)
			continue
		}
		if got := show(b); got != shown(t, want) && !(want == "1 refused" && refused == 1 && b.Len() == 0) {
			t.Errorf("%q: %d refused, %s", message, refused, got)
		}
	}
}

// Nothing that names, calls or builds is in the language that is read; what is missing, endless or too big is refused.
func TestHostilePickles(t *testing.T) {
	for message, want := range map[string]string{
		"cos\nsystem\n(S'id'\ntR.":              "opcode 0x63 at byte 0 is not allowed",
		"(S'id'\nios\nsystem\n.":                "opcode 0x69",
		"\x80\x02cposix\nsystem\nq\x00.":        "opcode 0x63",
		"\x80\x04\x8c\x02os\x8c\x06system\x93.": "opcode 0x93",
		"}.":                                    "opcode 0x7d",
		"I1\n.":                                 "a list is expected",
		".":                                     "the stack is empty",
		"":                                      "ends in the middle",
		"t.":                                    "no mark",
		"\x85.":                                 "the stack is empty",
		"g7\n.":                                 "no object 7",
		"h\x01.":                                "no object 1",
		"gx\n.":                                 "bad index",
		"Ix\n.":                                 "bad number",
		"Fx\n.":                                 "bad number",
		"I1\nI2\na.":                            "only lists",
		"X\xff\xff\xff\xff.":                    "ends in the middle",
		"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.": "ends in the middle",
		"\x8a\x09123456789.":                    "an integer of 9 bytes",
		"\x8b\xff\xff\xff\xff.":                 "ends in the middle",
		strings.Repeat("(", 60000):              "ends in the middle",
	} {
		p := Parser{Received: received}
		b := &core.Batch{}
		err := p.Pickle(b, []byte(message), func(error) {})
		if err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 || core.CodeOf(err) != core.Invalid {
			t.Errorf("%.40q: %v, want %q", message, err, want)
		}
	}
	// A list in itself has no end; nobody looks for one.
	p := Parser{}
	if err := p.Pickle(&core.Batch{}, []byte("]q\x00h\x00a."), func(error) {}); err != nil {
		t.Error(err)
	}
}

func FuzzPickle(f *testing.F) {
	for _, text := range pickles {
		f.Add(decode(f, text))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		p := Parser{Received: received}
		b := &core.Batch{}
		if err := p.Pickle(b, message, func(error) {}); err != nil && b.Len() > 0 {
			t.Errorf("refused with %d records", b.Len())
		}
		check(t, b)
	})
}

// check asserts what every batch must hold.
func check(t *testing.T, b *core.Batch) {
	t.Helper()
	for _, k := range b.Keys {
		if _, err := core.ParseSeriesKey(k.Append(nil)); err != nil || k.Metric == "" || k.Entity == "" {
			t.Errorf("key %q: %v", k, err)
		}
		for i, tag := range k.Tags {
			if tag.Name == "" || tag.Value == "" || i > 0 && k.Tags[i-1].Name >= tag.Name {
				t.Errorf("tags %q", k.Tags)
			}
		}
	}
	for _, at := range b.Samples.Times {
		if !at.Storable() {
			t.Errorf("time %d", at)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, line := range []string{"put sys.load 1620036000 1.5 host=web-9 cpu=0", "web-9.load.short 1.5 1620036000", "web-9/hits:20.5|c|@0.1|#a:b,c"} {
		f.Add(line)
	}
	mapping, err := ParseMapping("^s\\. <tag:type>.<entity>.<metrics>\n^d\\. <>.df-<tag:id>.<metric>\n")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := Parser{Received: received, Mapping: mapping}
		b := &core.Batch{}
		if _, err := p.Line(b, []byte(line)); err != nil && b.Len() > 0 {
			t.Errorf("refused with %d records", b.Len())
		}
		check(t, b)
	})
}

func FuzzInflux(f *testing.F) {
	for _, line := range []string{"cpu,host=web-9,cpu=0 user=1.5,idle=97i 1", `a\ b,c\,d=e\=f g="h\"\\",i=t`, "# x", "a b=1u"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, body string) {
		p := Influx{Received: received}
		rest := body
		for line := range Lines(body) {
			if !strings.HasPrefix(rest, line) {
				t.Fatalf("%q is not next in %q", line, rest)
			}
			rest = strings.TrimPrefix(rest[len(line):], "\n")
			b := &core.Batch{}
			if err := p.Line(b, []byte(line)); err != nil && b.Len() > 0 {
				t.Errorf("refused with %d records", b.Len())
			}
			check(t, b)
		}
		if rest != "" {
			t.Errorf("%q is left of %q", rest, body)
		}
	})
}

func FuzzMapping(f *testing.F) {
	f.Add("^s\\. <tag:type>.<entity>.<metrics>", "s.a.b.c")
	f.Fuzz(func(t *testing.T, file, name string) {
		m, err := ParseMapping(file)
		if err != nil || strings.ContainsAny(name, " \n") {
			return
		}
		p := Parser{Received: received, Mapping: m}
		b := &core.Batch{}
		p.Line(b, []byte(name+" 1 1"))
		check(t, b)
	})
}

func BenchmarkInflux(b *testing.B) {
	line := []byte("cpu,host=web-9,cpu=cpu0,dc=eu usage_user=1.5,usage_system=0.25,usage_idle=97.5,usage_iowait=0.125 1620036000000000000")
	p := Influx{}
	batch := &core.Batch{}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if batch.Len() > 40_000 {
			batch = &core.Batch{}
		}
		if err := p.Line(batch, line); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
