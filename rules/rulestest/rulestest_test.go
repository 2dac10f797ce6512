package rulestest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/rules/rulestest"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the traces that are not fixed")

func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.rules")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			report, err := rulestest.Run([]string{file})
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() {
				return
			}
			if *rewrite {
				if err := rulestest.Rewrite(file); err == nil {
					return
				}
			}
			t.Error("\n" + report.String())
		})
	}
}

const document = `
name: cpu-high
type: series
filter: {metric: cpu_busy, entities: ['web-*']}
window: {duration: 3m}
variables:
  - {name: limit, expr: 'before_status == "CANCEL" ? 80 : 70'}
condition: 'count() >= 3 && avg() >= limit'
severity: major
actions:
  - {kind: webhook, name: chat, url: 'https://h.example/', triggers: [open, cancel], json: {text: '${entity} ${round(avg(), 1)}', n: 1}}
  - {kind: command, commands: 'series e:${entity} m:high=1'}
tests:
  - name: open, hysteresis
    date: 2024-05-14
    entities: {web-1: {tags: {site: north}, groups: [edge]}}
    steps:
      - {at: '10:00:00', insert: 'series e:web-1 m:cpu_busy=60'}
      - {at: '10:01:00', insert: 'series e:web-1 m:cpu_busy=70'}
      - {at: '10:02:00', insert: 'series e:web-1 m:cpu_busy=95', expect: {status: CANCEL, actions: []}}
      - at: '10:03:00'
        insert: 'series e:web-1 m:cpu_busy=99'
        expect:
          status: open
          severity: major
          repeat_count: 0
          variables: {limit: 80}
          actions:
            - {name: chat, url: 'https://h.example/', json: {text: 'web-1 81', n: 1}}
            - {name: command-1, commands: 'series e:web-1 m:high=1'}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRuleDocuments(t *testing.T) {
	report, err := rulestest.Run([]string{write(t, "cpu.yaml", document)})
	if err != nil || !report.OK() || report.Tests != 1 || report.Steps != 4 {
		t.Fatalf("%v\n%s", err, report)
	}
	for change, want := range map[string]string{
		"{status: CANCEL, actions: []}|{status: OPEN}":              "- status: OPEN\n  + status: CANCEL",
		"{status: CANCEL, actions: []}|{actions: [chat]}":           "- action chat\n  + nothing",
		"repeat_count: 0|repeat_count: 4":                           "- repeat_count: 4",
		"variables: {limit: 80}|variables: {limit: 70}":             "- variables.limit: 70\n  + variables.limit: 80",
		"text: 'web-1 81', n: 1}}\n   |text: 'x'}}\n   ":            `json={"text":"x"}`,
		"commands: 'series e:web-1 m:high=1'}\n|commands: 'x'}\n":   `+ action command-1 commands="series e:web-1 m:high=1"`,
		"severity: major\n          r|severity: fatal\n          r": "- severity: FATAL",
	} {
		from, to, _ := strings.Cut(change, "|")
		changed := strings.Replace(document, from, to, 1)
		if strings.Contains(from, "commands") { // the expectation, not the action
			i := strings.LastIndex(document, from)
			changed = document[:i] + to + document[i+len(from):]
		}
		report, err := rulestest.Run([]string{write(t, "cpu.yaml", changed)})
		if err != nil || len(report.Failures) != 1 || !strings.Contains(report.String(), want) {
			t.Errorf("%s: %v\n%s\nwant %s", change, err, report, want)
		}
	}
}

func TestRewrite(t *testing.T) {
	rule := "-- r.yaml --\nname: r\ntype: series\nfilter: {metric: x}\nwindow: {duration: 10s, check_on_exit: true}\ncondition: 'count() == 0'\n"
	wrong := "date 2024-05-14\n\nat 10:00 series e:a m:x=1 -> alert wrong\n# later\nat 10:01 series e:a m:x=1 -> nothing\n" + rule
	right := "date 2024-05-14\n\nat 10:00 series e:a m:x=1 -> nothing\n# later\nat 10:00:11 tick -> alert r a OPEN WARNING rc=0 id=1 nodata\n" +
		"at 10:01 series e:a m:x=1 -> alert r a CANCEL WARNING rc=0\n" + rule
	file := write(t, "t.rules", wrong)
	report, err := rulestest.Run([]string{file})
	if err != nil || len(report.Failures) != 3 || !strings.Contains(report.String(), "at 10:00:11 tick (not in the file)") {
		t.Fatalf("%v\n%s", err, report)
	}
	if err := rulestest.Rewrite(file); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != right {
		t.Errorf("%v, rewritten to\n%s", err, got)
	}
	if report, err := rulestest.Run([]string{file}); err != nil || !report.OK() {
		t.Errorf("after rewrite: %v\n%s", err, report)
	}
	if err := rulestest.Rewrite(write(t, "f.rules", "# fixed\n"+wrong)); err == nil || !strings.Contains(err.Error(), "fixed") {
		t.Errorf("a fixed file was rewritten: %v", err)
	}
}

func TestBadTraces(t *testing.T) {
	for text, want := range map[string]string{
		"at 10:00 tick -> nothing\n": "date comes before",
		"date x\n":                   "write yyyy-MM-dd",
		"date 2024-05-14\nat 10:00 series -> nothing\n":                      "t.rules:2: Malformed command",
		"date 2024-05-14\nat 10:00 tick -> nothing\nat 9:00 tick -> nothing": "t.rules:3: ",
		"date 2024-05-14\nwait 5\n":                                          "unknown line",
		"  -> nothing\n":                                                     "without a step",
		"date 2024-05-14\nat 10:00 tick -> nothing\n-- r.yaml --\nname: r\n": "type is required",
	} {
		_, err := rulestest.Run([]string{write(t, "t.rules", text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
