package csv

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// withSchema is a configuration with a program.
func withSchema(t testing.TB, config, program string) json.RawMessage {
	t.Helper()
	all := map[string]any{}
	if config != "" {
		if err := json.Unmarshal([]byte(config), &all); err != nil {
			t.Fatal(err)
		}
	}
	all["schema"] = program
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

var commandField = regexp.MustCompile(`(\w+):(?:([^\s=:]+)=)?("[^"]*"|\S+)`)

// plain writes text commands as texts does: a line for each sample.
func plain(commands string) (out []string) {
	for _, line := range lines(commands) {
		kind, rest, _ := strings.Cut(line, " ")
		fields := map[string]string{"type": "", "source": ""}
		var tags, values, samples []string
		message := ""
		for _, m := range commandField.FindAllStringSubmatch(rest, -1) {
			v := strings.Trim(m[3], `"`)
			switch {
			case m[1] == "m" && m[2] != "":
				n, _ := strconv.ParseFloat(v, 64)
				samples = append(samples, fmt.Sprintf("%s=%s", m[2], strconv.FormatFloat(n, 'f', -1, 64)))
			case m[1] == "m":
				message = v
			case m[1] == "t" && (m[2] == "" || kind == "message" && (m[2] == "type" || m[2] == "source")):
				fields[m[1]+m[2]] = v
			case m[1] == "t":
				tags = append(tags, " t:"+m[2]+"="+v)
			case m[1] == "v":
				values = append(values, " v:"+m[2]+"="+v)
			default:
				fields[m[1]] = v
			}
		}
		head := fmt.Sprintf("%s e:%s ", kind, fields["e"])
		switch kind {
		case "series":
			for _, s := range samples {
				out = append(out, head+"d:"+fields["d"]+" m:"+s+sortedFields(tags))
			}
		case "property":
			out = append(out, head+"t:"+fields["t"]+" d:"+fields["d"]+sortedFields(values))
		case "message":
			out = append(out, head+"d:"+fields["d"]+" type="+fields["ttype"]+" source="+fields["tsource"]+" severity=0"+sortedFields(tags)+" m:"+message)
		}
	}
	return out
}

func sortedFields(fields []string) string {
	pairs := make(map[string]bool)
	for _, f := range fields {
		pairs[f] = true
	}
	var all []string
	for f := range pairs {
		all = append(all, f)
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func TestSchemaExamples(t *testing.T) {
	data, err := os.ReadFile("testdata/schema_examples.txt")
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(data), "\n== ")[1:]
	if len(examples) != 16 {
		t.Errorf("%d examples, want 16", len(examples))
	}
	for _, example := range examples {
		name, rest, _ := strings.Cut(example, "\n")
		t.Run(name, func(t *testing.T) {
			config, rest, _ := strings.Cut(rest, "\n-- schema\n")
			program, rest, _ := strings.Cut(rest, "-- file\n")
			file, want, ok := strings.Cut(rest, "-- commands\n")
			if !ok {
				t.Fatal("a part is missing")
			}
			for _, ends := range []string{"\n", "\r\n"} {
				for _, size := range []int{1, 7, 1 << 20} {
					r := abi.OpenRequest{Config: withSchema(t, config, program), Received: 1620036000000}
					got, rejects, n, err := upload(t, r, strings.ReplaceAll(file, "\n", ends), size)
					if err != nil || len(rejects) > 0 {
						t.Fatalf("chunks of %d: %v, rejects %q", size, err, rejects)
					}
					if diff := cmp.Diff(plain(want), got); diff != "" {
						t.Errorf("chunks of %d (-want +got):\n%s", size, diff)
					}
					if want := strings.Count(file, "\n"); n != want {
						t.Errorf("%d lines, want %d", n, want)
					}
				}
			}
		})
	}
}

// The contract, section 8: which settings and parameters are applied, and what a row becomes that lacks something.
func TestSchemaMode(t *testing.T) {
	const all = "select('#row=2-*').select('#col=3-*').addSeries().timestamp(cell(row, 1)).entity(cell(row, 2)).metric(cell(1, col))"
	for _, c := range []struct {
		name, config, zone, program, file, want string
		params, tags                            map[string]string
		rejects                                 []string
	}{
		{
			name: "defaults, prefixes, tags and replaced entities as in column mode",
			config: `{"defaultEntity":"Else","entityPrefix":"p-","metricPrefix":"M.","defaultMetric":"none","defaultTags":{"site":"d","dc":"d"},"entityTags":"owner,kind",
				"entityReplacements":{"a":"Pump A"}}`,
			tags:    map[string]string{"dc": "r"},
			program: all + ".tag('Kind', cell(row, 4))",
			file:    "t,e,Flow Rate,\n2021-05-03T10:00:00Z,a,1,k\n2021-05-03T10:00:00Z,,2,\n",
			want: "series e:p-pump_a d:2021-05-03T10:00:00Z m:m.flow_rate=1 t:dc=r t:entity\x00owner= t:kind=k t:site=d\n" +
				"series e:p-else d:2021-05-03T10:00:00Z m:m.flow_rate=2 t:dc=r t:entity\x00kind= t:entity\x00owner= t:site=d",
			rejects: []string{"2,4: not a number: k"},
		},
		{
			name:    "request parameters",
			config:  `{"defaultEntity":"x"}`,
			params:  map[string]string{"default-entity": "web-9", "default-metric": "load", "time": "1620036000000"},
			program: "select('#row=1-*').addSeries()",
			file:    "5\n",
			want:    "series e:web-9 d:2021-05-03T10:00:00Z m:load=5",
		},
		{
			name: "numbers, renamed columns and the row filter, which sees the names of row 1",
			config: `{"delimiter":";","decimalSeparator":",","groupingSeparator":".","renamedColumns":{"CO(GT)":"co"},"filter":"NOT isBlank('co') AND number('Count') > 1 AND timestamp > 0",
				"timestampPattern":"dd/MM/yyyy","discardNaN":true}`,
			program: all,
			file:    "\uFEFFDay;Site;co(gt);Count\n03/05/2021;r;2,6;1.360\n03/05/2021;r;1;1\n04/05/2021;r;NaN;2\n",
			want:    "series e:r d:2021-05-03T00:00:00Z m:co=2.6\nseries e:r d:2021-05-03T00:00:00Z m:count=1360\nseries e:r d:2021-05-04T00:00:00Z m:count=2",
		},
		{
			name:    "offset column and zone",
			zone:    "Asia/Tokyo",
			config:  `{"timestampPattern":"yyyy-MM-dd HH:mm","timezoneDiffColumn":"off"}`,
			program: "select('#row=2-*').select('#col=3').addSeries().timestamp(cell(row, 1)).entity('e').metric('m')",
			file:    "t,off,v\n2021-05-03 10:00,,1\n2021-05-03 10:00,2,2\n2021-05-03 10:00,soon,3\n",
			want:    "series e:e d:2021-05-03T01:00:00Z m:m=1\nseries e:e d:2021-05-03T08:00:00Z m:m=2",
			rejects: []string{"4,2: not an offset from UTC: use +hh:mm, +hhmm, hours below 24 or minutes, up to 18 hours: soon"},
		},
		{
			name:    "preambles, comments and blank lines do not count, rows of empty cells do, without being visited",
			config:  `{"skipLines":1,"comment":"#"}`,
			program: "select('#row=3-*').addMessage().entity('e').timestamp(0).messageText(row + rowText)",
			file:    "preamble\n# x\n\na\n,,\n  \n1,2\n,\n\"a \"\"b\"\"\n\"\n",
			want:    "message e:e d:1970-01-01T00:00:00Z type= source= severity=0 m:31,2\nmessage e:e d:1970-01-01T00:00:00Z type= source= severity=0 m:5\"a \"\"b\"\"\n\"",
		},
		{
			name:    "fixed width",
			config:  `{"fieldLengths":[8,4,4],"padding":"_","timestampPattern":"yyyyMMdd"}`,
			program: "select('#cell=1,2-*,*').addSeries().timestamp(cell(row, 1)).entity('e').metric('m' + col)",
			file:    "20210503_1.5__22\n",
			want:    "series e:e d:2021-05-03T00:00:00Z m:m2=1.5\nseries e:e d:2021-05-03T00:00:00Z m:m3=22",
		},
		{
			name:    "values and times that the program computes",
			program: "select('#cell=1,1').addSeries().timestamp(parseFloat(cell(row, 1)) * 1000 + 0.9).entity('e').metric('m').value(col / 3); select('#cell=1,1').addSeries().timestamp(0).entity('e').metric('n').value(1 / 0)",
			file:    "1620036000,x\n",
			want:    "series e:e d:2021-05-03T10:00:00Z m:m=0.3333333333333333",
			rejects: []string{"1,1: not a number: +Inf"},
		},
		{
			name:    "exact decimals",
			program: "select('#cell=1,1').addSeries().timestamp(0).entity('e').metric('m')",
			file:    "1.2345678901234567891\n",
			want:    "series e:e d:1970-01-01T00:00:00Z m:m=1.2345678901234567891",
		},
		{ // of the cells of a row with equal entity, type, source and time one message remains
			name:    "messages of several cells",
			program: "select('#row=1-*').addMessage().entity('e').timestamp(0).messageText(value).tag('type', 'T').tag('severity', 'major').tag('source', cell(row, 2))",
			file:    "a,b\nc,b\nd\n",
			want: "message e:e d:1970-01-01T00:00:00Z type=t source=b severity=5 m:b\nmessage e:e d:1970-01-01T00:00:00Z type=t source=b severity=5 m:b\n" +
				"message e:e d:1970-01-01T00:00:00Z type=t source= severity=5 m:d",
		},
		{
			name:    "nothing to write",
			config:  `{"defaultTags":{"site":"hq"}}`,
			program: "select('#row=1-*').addProperty().entity('e').timestamp(0).type('t').key('k', 'v').tag('a', '').tag('b', null)",
			file:    "x\n",
		},
		{
			name:    "tags of properties, and names that are equal when they are stored",
			config:  `{"defaultTags":{"site":"hq"}}`,
			program: "select('#row=1-*').addProperty().entity('e').timestamp(0).type('My Type').key('K 1', 'v').tag('A b', '1').tag('a B', '2')",
			file:    "x\n",
			want:    "property e:e t:my_type d:1970-01-01T00:00:00Z k:k_1=v v:a_b=2 v:site=hq",
		},
		{
			name: "what a command lacks",
			program: "select('#row=1').addSeries().timestamp(0).metric('m'); select('#row=2').addSeries().entity('e').metric('m'); select('#row=3').addSeries().entity('e').timestamp(0).metric('');" +
				"select('#row=4').addProperty().entity('e').timestamp(0).type('').tag('a', 'b'); select('#row=5').addSeries().entity('e').timestamp(1e15).metric('m');" +
				"select('#row=6').addMessage().entity('e').timestamp(0).tag('severity', 'loud'); select('#row=7').addSeries().entity('e').timestamp('tomorrow').metric('m');" +
				"select('#row=8').addSeries().entity('e').timestamp(0).metric('m')",
			file: "1\n2\n3\n4\n5\n6\n7\n8\n",
			want: "series e:e d:1970-01-01T00:00:00Z m:m=8",
			rejects: []string{
				"1,1: no entity: set entity() or default-entity: 1", "2,1: no time: set timestamp() or the parameter time: 2", "3,1: no metric name: set metric() or default-metric: 3",
				"4,1: no property type: type() is empty: 4", "5,1: not a time in Unix milliseconds between 1970 and 2106: 1e+15", "6,1: not a severity: loud",
				"7,1: not a time between 1970 and 2106 in the form of timestampPattern: tomorrow",
			},
		},
		{
			name:    "a row that is no row counts, the cells behind a fault are left",
			program: "select('#row=2-*').addSeries().timestamp(0).entity('e').metric('m' + row).value(cell(row, col) == 'x' ? null.y : value)",
			file:    "1\n\"a\"b\n1,x,2\n4\n",
			want:    "series e:e d:1970-01-01T00:00:00Z m:m3=1\nseries e:e d:1970-01-01T00:00:00Z m:m4=4",
			rejects: []string{"2,1: text after a quoted cell: \"a\"b", "3,2: schema line 1, column 110: null has no member y: 1,x,2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.zone == "" {
				c.zone = "UTC"
			}
			config := withSchema(t, c.config, c.program)
			config = json.RawMessage(`{"ignoreLineErrors":true,` + string(config[1:]))
			r := abi.OpenRequest{Config: config, Params: c.params, Tags: c.tags, Offsets: offsetsOf(t, c.zone), Received: 1620036000000}
			for _, size := range []int{1, 1 << 20} {
				got, rejects, _, err := upload(t, r, c.file, size)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(lines(c.want), lines(strings.Join(got, "\n"))); diff != "" {
					t.Errorf("chunks of %d (-want +got):\n%s", size, diff)
				}
				if diff := cmp.Diff(c.rejects, rejects); diff != "" {
					t.Errorf("chunks of %d, rejects (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

// Without ignoreLineErrors the first fault ends the file; a program that would fail in every row ends it in any case.
func TestFaultsOfSchemas(t *testing.T) {
	for _, c := range []struct {
		ignore        bool
		program, want string
		commands      int
	}{
		{false, "select('#row=1-*').addSeries().timestamp(0).entity('e').metric('m' + col)", `Line 2, column 2: not a number: "x"`, 2},
		{true, "select('#row=1-*').addSeries().timestamp(0).entity('e').metric('m' + col)", "", 4},
		{true, "var a = null.b; select('#row=2-*').addSeries().timestamp(a)", `Line 2, column 1: schema line 1, column 14: null has no member b: "2,x"`, 0},
		{true, "select('#row=1-*').addMessage().messageText(f()); function f() { for (;;) {} }", `Line 1, column 1: schema line 1, column 66: the program takes more than 500000 steps for one cell: "1"`, 0},
	} {
		config := withSchema(t, fmt.Sprintf(`{"ignoreLineErrors":%v}`, c.ignore), c.program)
		got, _, _, err := upload(t, abi.OpenRequest{Config: config}, "1\n2,x\n3,4\n", 1000)
		if len(got) != c.commands || fmt.Sprint(err) != c.want && (err != nil || c.want != "") {
			t.Errorf("%s: %q, %v; want %d commands, %s", c.program, got, err, c.commands, c.want)
		}
	}
	r := abi.OpenRequest{Config: withSchema(t, `{"timezoneDiffColumn":"off","ignoreLineErrors":true}`, "select('#row=2-*').addMessage()")}
	if _, _, _, err := upload(t, r, "a,b\n1,2\n", 1000); err == nil || err.Error() != `Line 1: the first row has no column off, which timezoneDiffColumn names; it has a, b: "a,b"` {
		t.Error(err)
	}
	r = abi.OpenRequest{Config: withSchema(t, `{"entityTags":"type"}`, "select('#row=2-*').addMessage()")}
	if _, _, _, err := upload(t, r, "", 1000); err == nil || !strings.Contains(err.Error(), "entityTags: type is a field of messages") {
		t.Error(err)
	}
}

// The expected lines were read off the files by eye, the numbers of samples counted with awk.
func TestSchemaOfRealFiles(t *testing.T) {
	for _, c := range []struct {
		file, config, program, want string
		samples                     int
	}{
		{"cities-three-header-rows.csv", `{"timestampPattern":"yyyy"}`,
			"select('#cell=5,2-*,*').addSeries().metric('population').entity('us').timestamp(cell(row, 1)).tag('city', cell(1, col)).tag('state', cell(2, col)).tag('region', cell(3, col))",
			"series e:us d:1970-01-01T00:00:00Z m:population=275425 t:city=Akron t:region=3 t:state=OH", 732},
		{"vehicles-latin1-tab.tsv", `{"timestampPattern":"yyyy","delimiter":"tab"}`,
			"select('#row=2-*').select('#col=2-*').addSeries().metric('registered').entity(cell(row, 1)).timestamp(cell(1, col))",
			"series e:altech d:2008-01-01T00:00:00Z m:registered=0", 333},
		{"solar-preamble-footer.csv", `{"timestampPattern":"yyyyMMdd:HHmm"}`,
			"select('#row=8-*').select('#col=2-*').filter(columnCount == 8).addSeries().metric(cell(7, col)).entity('roof').timestamp(cell(row, 1))",
			"series e:roof d:2016-01-01T00:10:00Z m:t2m=3.44", 98},
	} {
		t.Run(c.file, func(t *testing.T) {
			r := abi.OpenRequest{Config: withSchema(t, c.config, c.program)}
			got, rejects, _, err := upload(t, r, strings.ToValidUTF8(sample(t, c.file), "?"), 1<<18)
			if err != nil || len(rejects) > 0 {
				t.Fatalf("%v, rejects %q", err, rejects)
			}
			if !slices.Contains(got, c.want) || len(got) != c.samples {
				t.Errorf("%d samples, want %d and %s among %q", len(got), c.samples, c.want, got[:min(20, len(got))])
			}
		})
	}
}
