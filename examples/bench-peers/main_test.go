package main

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCutLines(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a\nb\nc\n", []string{"a\nb\n", "c\n"}},
		{"a\nb\nc\nd\n", []string{"a\nb\n", "c\nd\n"}},
		{"a\nb\nrest", []string{"a\nb\n", "rest"}},
	}
	for _, tt := range tests {
		var got []string
		for _, body := range cutLines([]byte(tt.text), 2) {
			got = append(got, string(body))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

func TestReadLines(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("a\nb\nc\n"))
	for _, want := range []struct {
		text string
		err  error
	}{{"a\nb\n", nil}, {"c\n", io.EOF}} {
		if got, err := readLines(r, 2); string(got) != want.text || err != want.err {
			t.Errorf("got %q and %v, want %q and %v", got, err, want.text, want.err)
		}
	}
}

// Two hosts, two hours: averages 2 and 5 of one host and 10 of the other in the second hour, and the maxima of two metrics.
func TestReference(t *testing.T) {
	name := filepath.Join(t.TempDir(), "devops.csv")
	text := `metric,entity,time,value
cpu_user,host-001,1767225600000,1
cpu_user,host-001,1767225610000,3
cpu_user,host-001,1767229200000,5
cpu_user,host-002,1767229200000,10
latency,host-001,1767229210000,99.75
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readReference(name)
	if err != nil {
		t.Fatal(err)
	}
	want := reference{
		averages: digest{rows: 3, sum: 2 + 5 + 10, weighted: 5 + 10},
		maxima:   digest{rows: 4, sum: 3 + 5 + 10 + 99.75, weighted: 5 + 10 + 99.75},
		export:   digest{rows: 4, sum: 19},
		all:      digest{rows: 5, sum: 118.75},
		above:    1,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(reference{}, digest{})); diff != "" {
		t.Error(diff)
	}
}

// The same two hourly values, 2 at 00:00 and 5 at 01:00, as each system says them.
func TestParsers(t *testing.T) {
	hourly, plain := digest{rows: 2, sum: 7, weighted: 5}, digest{rows: 2, sum: 7}
	tests := []struct {
		name  string
		parse func([]byte) (digest, error)
		body  string
		want  digest
	}{
		{"tidemark", tidemarkSeries, `[{"entity":"a","data":[{"t":1767225600000,"v":2.0}]},{"entity":"b","data":[{"t":1767229200000,"v":5.0}]}]`, hourly},
		{"victoriametrics", matrix, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1767229199.999,"2"],[1767232799.999,"5"]]}]}}`, hourly},
		{"influxdb", influxSeries, `{"results":[{"series":[{"name":"devops","columns":["time","mean"],"values":[[1767225600000,2],[1767229200000,5]]}]}]}`, hourly},
		{"sql", hourlyCSV, "\"entity\",\"datetime\",\"avg(value)\"\n\"a\",\"2026-01-01T00:00:00.000Z\",2\n\"a\",\"2026-01-01T01:00:00.000Z\",5\n", hourly},
		{"export of tidemark", csvColumn("Value"), "Timestamp,Value,Metric\n2026-01-01T00:00:00Z,2,m\n2026-01-01T01:00:00Z,5,m\n", plain},
		{"export of victoriametrics", csvTable, "host,__timestamp__:unix_ms,__value__\na,1767225600000,2\na,1767229200000,5\n", plain},
		{"export of influxdb", csvTable, "name,tags,time,cpu_user\ndevops,host=a,1,2\n\nname,tags,time,cpu_user\ndevops,host=b,1,5\n", plain},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(digest{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	want := digest{rows: 2, sum: 7, weighted: 5}
	for _, wrong := range []digest{{1, 7, 5}, {2, 7.0001, 5}, {2, 7, 4}} {
		if wrong.matches(want) == nil {
			t.Errorf("%v passes for %v", wrong, want)
		}
	}
	if err := (digest{2, 7 + 1e-12, 5}).matches(want); err != nil {
		t.Error(err)
	}
	if err := (digest{2, 7, 99}).matches(digest{rows: 2, sum: 7}); err != nil {
		t.Errorf("an export has no weighted sum to compare: %v", err)
	}
}

func TestJudge(t *testing.T) {
	r := results{
		"rate": {"tidemark": {100, 300, 200}, "victoriametrics": {100}},
		"time": {"tidemark": {0.5}, "victoriametrics": {2}, "duckdb": {0.8}},
	}
	tests := []struct {
		m       measure
		ratio   float64
		verdict string
	}{
		{measure{name: "rate", unit: samplesPerSecond, against: vm, target: 2}, 2, "met"},
		{measure{name: "rate", unit: samplesPerSecond, against: vm, target: 2.1}, 2, "MISSED"},
		{measure{name: "time", against: either, target: 0.6}, 0.625, "MISSED"}, // the faster peer counts
		{measure{name: "time", against: vm, target: 0.6}, 0.25, "met"},
		{measure{name: "time", target: 0.4}, math.NaN(), "MISSED"},
		{measure{name: "time", against: vm}, 0.25, ""},
		{measure{name: "time", against: "influxdb", target: 1}, math.NaN(), "no peer"},
		{measure{name: "absent", against: vm, target: 1}, math.NaN(), "not measured"},
	}
	for _, tt := range tests {
		ratio, verdict := tt.m.judge(r)
		if verdict != tt.verdict || ratio != tt.ratio && !(math.IsNaN(ratio) && math.IsNaN(tt.ratio)) {
			t.Errorf("%+v: %v, %q; want %v, %q", tt.m, ratio, verdict, tt.ratio, tt.verdict)
		}
	}
}

// A peer without SQL stands beside SQL questions with its own; Tidemark does not.
func TestSameQuestion(t *testing.T) {
	r := results{"avg": {"tidemark": {1}, "victoriametrics": {2}}}
	if got := r.value("sql, averages", "victoriametrics"); got != 2 {
		t.Errorf("peer: %v", got)
	}
	if got := r.value("sql, averages", "tidemark"); !math.IsNaN(got) {
		t.Errorf("tidemark: %v, want none", got)
	}
}

func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"data/1": 8192, "journal/1": 4096, "journal/2": 0} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := diskUsage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.apparent != 12288 || got.journal <= 0 || got.journal >= got.allocated {
		t.Errorf("%+v", got)
	}
}

func TestProcessorTime(t *testing.T) {
	stat := "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 9 0 100 1000 50\n"
	if got, err := parseProcessorTime([]byte(stat)); err != nil || got != 1750*time.Millisecond {
		t.Errorf("got %v and %v, want 1.75s", got, err)
	}
}

func TestReplaceBetweenMarks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "BENCH.md")
	if err := os.WriteFile(name, []byte("before\n"+beginMark+"old\n"+endMark+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceBetweenMarks(name, "table\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + beginMark + "\ntable\n\n" + endMark + "after\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-only", "avg,max", "-systems", "duckdb"})
	if err != nil {
		t.Fatal(err)
	}
	if !o.wants("avg") || o.wants("disk") || !o.measures("duckdb") || o.measures("tidemark") {
		t.Errorf("%+v", o)
	}
	for _, args := range [][]string{{"-only", "nothing"}, {"-systems", "oracle"}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
