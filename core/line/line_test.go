package line

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

const received core.Time = 1620036000123

// show prints the records of a batch as text commands.
func show(b *core.Batch) string {
	text, err := command.AppendBatch(nil, b)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// shown is what show prints of the records that some commands make; anything else is itself.
func shown(t *testing.T, commands string) string {
	t.Helper()
	if !strings.HasPrefix(commands, "series ") {
		return commands
	}
	b := &core.Batch{}
	p := command.Parser{Received: received}
	lines := command.NewSplitter(strings.NewReader(commands), command.Exact)
	for {
		line, err := lines.Next()
		if err != nil {
			return show(b)
		}
		if err := p.Line(b, line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func TestLine(t *testing.T) {
	mapping, err := ParseMapping("^servers\\. <tag:type>.<entity>.<metrics>\n^agent\\. <metric>.<entity>.<tag:id>.<metrics>\n# comment\n\n^debug\\.\n" +
		"^df\\. <>.df-<tag:id>.<metric>\n^const\\. cpu.<entity=a.b>.<>.<metric=load>\n^two\\. <>.<entity>.<entity>.<metrics>\n")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		// 15.1
		"put sys.load 1620036000 1.5 host=web-9 cpu=0": `series e:"web-9" ms:1620036000000 t:"cpu"="0" m:"sys.load"=1.5`,
		"put sys.load 1620036000 1.5":                  `series e:"tcollector" ms:1620036000000 m:"sys.load"=1.5`,
		"PUT Sys.Load 1620036000123 -2e3 HOST=Web":     `series e:"web" ms:1620036000123 m:"sys.load"=-2000`,
		"put a 1620036000 1 b=1 b=2":                   `series e:"tcollector" ms:1620036000000 t:"b"="2" m:"a"=1`,
		"put a 1620036000":                             "! syntax",
		"put a x 1":                                    "! time",
		"put a 16200360001234 1":                       "! time",
		"put a 4294969200 1":                           "! time",
		"put a 1620036000 x":                           "! value",
		"put a 1620036000 1 b":                         "! syntax",
		"put a 1620036000 1 b=":                        "! syntax",
		// 15.2
		"web-9.load.short 1.5 1620036000":            `series e:"web-9" ms:1620036000000 m:"load.short"=1.5`,
		"load 1.5 1620036000":                        `series e:"graphite" ms:1620036000000 m:"load"=1.5`,
		"load. 1.5 1620036000":                       `series e:"graphite" ms:1620036000000 m:"load"=1.5`,
		".load 1.5 1620036000":                       `series e:"graphite" ms:1620036000000 m:"load"=1.5`,
		"Web.Load 1 1620036000":                      `series e:"web" ms:1620036000000 m:"load"=1`,
		"servers.web-9.workers.busy 7 1620036000":    `series e:"web-9" ms:1620036000000 t:"type"="servers" m:"workers.busy"=7`,
		"agent.web-9.disk-sda.io.write 7 1620036000": `series e:"web-9" ms:1620036000000 t:"id"="disk-sda" m:"agent.io.write"=7`,
		"df.df-root.used 7 1620036000":               `series e:"graphite" ms:1620036000000 t:"id"="root" m:"used"=7`,
		"df.root.used.extra 7 1620036000":            `series e:"graphite" ms:1620036000000 t:"id"="root" m:"used"=7`,
		"const.x.y.z 7 1620036000":                   `series e:"a.b" ms:1620036000000 m:"cpu.load"=7`,
		"two.a.b.c.d 7 1620036000":                   `series e:"a.b" ms:1620036000000 m:"c.d"=7`,
		"agent.web-9 7 1620036000":                   `series e:"web-9" ms:1620036000000 m:"agent"=7`,
		"df.root 7 1620036000":                       "! name",
		"debug.x 7 1620036000":                       "! dropped",
		"a.b 7 -1":                                   `series e:"a" ms:1620036000123 m:"b"=7`,
		"a.b 7 N":                                    `series e:"a" ms:1620036000123 m:"b"=7`,
		"a.b 7 1620036000.75":                        `series e:"a" ms:1620036000000 m:"b"=7`,
		// a point that is none, as Carbon passes over it
		"a.b NaN 1620036000":         "",
		"a.b nan 1620036000":         "",
		"a.b -Inf 1620036000":        "",
		"a.b infinity 1620036000":    "",
		"a.b nano 1620036000":        "-",
		"a.b 7 -2":                   "! time",
		"a.b 7 4294969200":           "! time",
		"a.b 7 99999999999999999999": "! time",
		"... 7 1620036000":           "! name",
		// 15.4
		"web-9/hits:20.5|c":       `series e:"web-9" ms:1620036000123 m:"hits"=20.5`,
		"hits:20.5|c":             `series e:"statsd" ms:1620036000123 m:"hits"=20.5`,
		"web.hits:1|g":            `series e:"statsd" ms:1620036000123 m:"web.hits"=1`,
		"hits:1|c|@0.1":           `series e:"statsd" ms:1620036000123 m:"hits"=1`,
		"Hits:-3|g|#Dc:EU,canary": `series e:"statsd" ms:1620036000123 t:"canary"="true" t:"dc"="EU" m:"hits"=-3`,
		"hits:1|c|@0.1|#dc:eu":    `series e:"statsd" ms:1620036000123 t:"dc"="eu" m:"hits"=1`,
		"a:b:1|ms":                `series e:"statsd" ms:1620036000123 m:"a:b"=1`,
		"hits:1|c|@0":             "! syntax",
		"hits:1|":                 "! syntax",
		"hits:1|c|what":           "! syntax",
		"hits:1|c|#dc:":           "! syntax",
		"/hits:1|c":               "! name",
		// what has none of the shapes
		"drop": "-", "hits:x|c": "-", "a b": "-", "a b c": "-", "a 1 b": "-", "a x 1620036000": "-", "a 1 1620036000 x": "-", "putt a 1620036000 1": "-",
		"": "-", "|": "-", ":1|c": "-", "a 1 -": "-",
	} {
		p := Parser{Received: received, Mapping: mapping}
		b := &core.Batch{}
		foreign, err := p.Line(b, []byte(line))
		got := show(b)
		switch {
		case !foreign:
			got = "-"
		case err == ErrDropped:
			got = "! dropped"
		case err != nil:
			got = "! " + command.ReasonOf(err).String()
		}
		if err != nil && (b.Len() > 0 || core.CodeOf(err) != core.Invalid) {
			t.Errorf("%s: refused with %d records, %v", line, b.Len(), err)
		}
		if want := shown(t, want); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}

func TestMappingFaults(t *testing.T) {
	_, err := ParseMapping("ok <metric>\n( <metric>\nx <entity>\nx <metrics>.<entity>\nx <what>\nx <tag:>.<metric>\nx a<metric>b\nx <metric>..a\na b c\n")
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{"line 2: \"(\" is not a regular expression", "line 3: \"<entity>\" has no metric", "line 4: ", "line 5: token \"<what>\"", "line 6: ",
		"line 7: ", "line 8: ", "line 9: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "line 1:") {
		t.Error(err)
	}
}

func TestInflux(t *testing.T) {
	const second = "1620036000000000000"
	for line, want := range map[string]string{
		"cpu,host=web-9,cpu=0 user=1.5,idle=97i " + second: "series e:\"web-9\" ms:1620036000000 t:\"cpu\"=\"0\" m:\"cpu.user\"=1.5\n" +
			"series e:\"web-9\" ms:1620036000000 t:\"cpu\"=\"0\" m:\"cpu.idle\"=97",
		"cpu value=1":                              `series e:"influx" ms:1620036000123 m:"cpu"=1`,
		"CPU,Host=Web,DC=Eu Value=1":               `series e:"web" ms:1620036000123 t:"dc"="Eu" m:"cpu"=1`,
		"cpu a=9223372036854775807i":               `series e:"influx" ms:1620036000123 m:"cpu.a"=9223372036854775807`,
		"cpu a=-9007199254740993i":                 `series e:"influx" ms:1620036000123 m:"cpu.a"=-9007199254740993`,
		"cpu a=18446744073709551615u":              `series e:"influx" ms:1620036000123 m:"cpu.a"=1.8446744073709552e+19`,
		"cpu a=t":                                  `series e:"influx" ms:1620036000123 m:"cpu.a"=1`,
		"cpu a=FALSE":                              `series e:"influx" ms:1620036000123 m:"cpu.a"=0`,
		`cpu a="it is \"on\", \\ fine=1"`:          `series e:"influx" ms:1620036000123 x:"cpu.a"="it is ""on"", \ fine=1"`,
		`cpu a=""`:                                 `series e:"influx" ms:1620036000123 x:"cpu.a"=""`,
		"cpu a=\"two\nlines\" 1620036000000000000": "series e:\"influx\" ms:1620036000000 x:\"cpu.a\"=\"two\nlines\"",
		`c\,pu,t\=ag=a\ b\,c a\ b=1`:               `series e:"influx" ms:1620036000123 t:"t=ag"="a b,c" m:"c,pu.a_b"=1`,
		`win\path a=1`:                             `series e:"influx" ms:1620036000123 m:"win\path.a"=1`,
		"cpu  a=1  1620036000000000000 ":           `series e:"influx" ms:1620036000000 m:"cpu.a"=1`,
		"cpu a=1 1620036000123999999":              `series e:"influx" ms:1620036000123 m:"cpu.a"=1`,
		"cpu a=1e3":                                `series e:"influx" ms:1620036000123 m:"cpu.a"=1000`,
		"# cpu a=1":                                "",
		"":                                         "",
		"cpu":                                      "! syntax unable to parse 'cpu': missing fields",
		",a=b c=1":                                 "! name unable to parse ',a=b c=1': missing measurement",
		"cpu,a= b=1":                               "! syntax unable to parse 'cpu,a= b=1': missing tag value",
		"cpu,a b=1":                                "! syntax unable to parse 'cpu,a b=1': missing tag value",
		"cpu,=a b=1":                               "! name unable to parse 'cpu,=a b=1': missing tag key",
		"cpu,a=b=c d=1":                            "! syntax unable to parse 'cpu,a=b=c d=1': invalid tag format",
		"cpu bad":                                  "! syntax unable to parse 'cpu bad': invalid field format",
		"cpu =1":                                   "! name unable to parse 'cpu =1': missing field key",
		"cpu a=":                                   "! syntax unable to parse 'cpu a=': missing field value",
		"cpu a=NaN":                                "! value unable to parse 'cpu a=NaN': invalid number",
		"cpu a=x":                                  "! value unable to parse 'cpu a=x': invalid number",
		"cpu a=1.5i":                               "! value unable to parse 'cpu a=1.5i': invalid integer",
		"cpu a=-1u":                                "! value unable to parse 'cpu a=-1u': invalid integer",
		"cpu a=9223372036854775808i":               "! value unable to parse 'cpu a=9223372036854775808i': invalid integer",
		`cpu a="x`:                                 `! syntax unable to parse 'cpu a="x': unbalanced quotes`,
		`cpu a="x"y`:                               `! syntax unable to parse 'cpu a="x"y': invalid field format`,
		"cpu a=1 x":                                "! time unable to parse 'cpu a=1 x': bad timestamp",
		"cpu a=1 -1":                               "! time unable to parse 'cpu a=1 -1': time outside 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z, or in another precision",
	} {
		p := Influx{Received: received}
		b := &core.Batch{}
		err := p.Line(b, []byte(line))
		got := show(b)
		if err != nil {
			got = "! " + command.ReasonOf(err).String() + " " + err.(*core.Error).Text
		}
		if want := shown(t, want); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}

func TestInfluxUnits(t *testing.T) {
	for text, stamp := range map[string]string{"": "1620036000000000000", "n": "1620036000000000000", "ns": "1620036000000000000", "u": "1620036000000000",
		"us": "1620036000000000", "µ": "1620036000000000", "ms": "1620036000000", "s": "1620036000", "m": "27000600", "h": "450010"} {
		unit, ok := ParseUnit(text)
		p := Influx{Unit: unit}
		b := &core.Batch{}
		err := p.Line(b, []byte("a b=1 "+stamp))
		if !ok || err != nil || b.Samples.Times[0] != 1620036000000 {
			t.Errorf("%s: %v %v %v", text, ok, err, b.Samples.Times)
		}
	}
	if _, ok := ParseUnit("d"); ok {
		t.Error("d is a unit")
	}
	p := Influx{Unit: Hour}
	if err := p.Line(&core.Batch{}, []byte("a b=1 9223372036854775807")); command.ReasonOf(err) != command.BadTime {
		t.Errorf("an overflow is %v", err)
	}
	p = Influx{EntityTag: "device"}
	b := &core.Batch{}
	if err := p.Line(b, []byte("a,device=d1,host=h b=1 0")); err != nil || show(b) != shown(t, `series e:d1 ms:0 t:host=h m:a.b=1`) {
		t.Errorf("%v %s", err, show(b))
	}
}

func TestLines(t *testing.T) {
	for body, want := range map[string][]string{
		"a b=1\nc d=2\n":              {"a b=1", "c d=2"},
		"a b=\"x\ny\",c=1\nd e=1":     {"a b=\"x\ny\",c=1", "d e=1"},
		"a b=\"x\\\"\ny\"\nd e=1":     {"a b=\"x\\\"\ny\"", "d e=1"},
		"# it's \"open\nd e=1":        {"# it's \"open", "d e=1"},
		"a,t=\"q b=1\nd e=1":          {"a,t=\"q b=1", "d e=1"},
		"a\\ b,t=\"q b=1\nd e=1":      {"a\\ b,t=\"q b=1", "d e=1"},
		"a b=1\\\nd e=1":              {"a b=1\\", "d e=1"},
		"":                            nil,
		"a b=\"never closed\nd e=1\n": {"a b=\"never closed\nd e=1\n"},
	} {
		var got []string
		for line := range Lines(body) {
			got = append(got, line)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
