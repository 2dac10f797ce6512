package rulestest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules"
)

// ruleFile runs the tests of the rules in one file, with everything in its directory loaded.
func (r *Report) ruleFile(file string) error {
	dir := os.DirFS(filepath.Dir(file))
	set, faults := rules.Load(dir)
	if len(faults) > 0 {
		return faults
	}
	for _, rule := range set.Rules {
		if rule.File() != filepath.Base(file) {
			continue
		}
		for _, test := range rule.Tests {
			t := documentTest{report: r, file: file, rule: rule, test: test}
			t.runner = &runner{files: dir, date: test.Date, zone: time.UTC}
			if err := t.run(); err != nil {
				return fmt.Errorf("%s:%d: test %q: %w", file, test.Line, test.Name, err)
			}
			r.Tests++
		}
	}
	return nil
}

// documentTest is one `tests` block.
type documentTest struct {
	*runner
	report *Report
	file   string
	rule   *rules.Rule
	test   rules.Test
}

func (t *documentTest) run() error {
	if t.test.Zone != "" {
		zone, err := time.LoadLocation(t.test.Zone)
		if err != nil {
			return err
		}
		t.zone = zone
	}
	if t.date == "" {
		t.date = "2024-01-01"
	}
	if err := t.begin(); err != nil {
		return err
	}
	for _, e := range t.test.Entities {
		ent := core.NewEntity(e.Name, 0)
		ent.Label, ent.Tags = e.Label, e.Tags.Map()
		t.box.AddEntity(ent, e.Groups...)
	}
	for _, text := range t.test.Stored {
		if err := t.store(text); err != nil {
			return err
		}
	}
	for _, step := range t.test.Steps {
		if err := t.step(step); err != nil {
			return fmt.Errorf("line %d: %w", step.Line, err)
		}
		t.report.Steps++
	}
	return nil
}

func (t *documentTest) step(s rules.TestStep) error {
	when, err := t.parseClock(s.At)
	if err != nil {
		return err
	}
	if when < t.box.Now() {
		return fmt.Errorf("time %s lies before the step above", s.At)
	}
	var lines []string
	for l := range strings.SplitSeq(s.Insert, "\n") {
		if strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
	}
	if err := t.insert(when, lines...); err != nil {
		return err
	}
	expect, ok := s.Expect.(map[string]any)
	if !ok {
		return nil
	}
	want, got := t.compare(expect)
	if !slices.Equal(want, got) {
		t.report.Failures = append(t.report.Failures, Failure{File: t.file, Line: s.Line, Test: t.rule.Name + ", " + t.test.Name,
			Step: strings.TrimSpace("at " + s.At + " " + s.Insert), Want: want, Got: got})
	}
	return nil
}

// compare returns what was expected and what happened, one line a key, in the same order.
func (t *documentTest) compare(expect map[string]any) (want, got []string) {
	traces := slices.DeleteFunc(slices.Clone(t.traces), func(tr rules.Trace) bool { return tr.Rule != t.rule.Name || !chosen(tr, expect) })
	var last rules.Trace
	for _, tr := range traces {
		if tr.Cause != "error" {
			last = tr
		}
	}
	for _, key := range slices.Sorted(maps.Keys(expect)) {
		v := expect[key]
		switch key {
		case "status":
			want, got = append(want, "status: "+strings.ToUpper(text(v))), append(got, "status: "+string(last.After))
		case "severity":
			severity, _ := core.ParseSeverity(text(v))
			want, got = append(want, "severity: "+severity.String()), append(got, "severity: "+last.Severity.String())
		case "repeat_count":
			want, got = append(want, "repeat_count: "+text(v)), append(got, "repeat_count: "+strconv.Itoa(last.RepeatCount))
		case "variables":
			for _, name := range slices.Sorted(maps.Keys(object(v))) {
				want = append(want, "variables."+name+": "+text(object(v)[name]))
				got = append(got, "variables."+name+": "+text(last.Variables[name]))
			}
		case "error":
			want, got = append(want, "error: "+text(v)), append(got, "error: "+errorText(traces, text(v)))
		case "actions":
			w, g := actions(v, traces)
			want, got = append(want, w...), append(got, g...)
		}
	}
	return want, got
}

// chosen reports whether a trace belongs to the window that a step names.
func chosen(tr rules.Trace, expect map[string]any) bool {
	if e, ok := expect["entity"]; ok && text(e) != tr.Entity {
		return false
	}
	for name, v := range object(expect["tags"]) {
		if tr.Tags.Value(name) != text(v) {
			return false
		}
	}
	return true
}

// errorText returns want when an error contains it, so that the lines are equal, and otherwise all errors.
func errorText(traces []rules.Trace, want string) string {
	var all []string
	for _, tr := range traces {
		if tr.Error != "" {
			all = append(all, tr.Error)
		}
	}
	if joined := strings.Join(all, "; "); !strings.Contains(joined, want) || want == "" {
		return joined
	}
	return want
}

// actions compares names, or for an element that is a map the fields it has.
func actions(v any, traces []rules.Trace) (want, got []string) {
	var fired []rules.TracedAction
	for _, tr := range traces {
		fired = append(fired, tr.Actions...)
	}
	list, _ := v.([]any)
	for i := range max(len(list), len(fired)) {
		if i < len(list) {
			want = append(want, describeWanted(list[i]))
		}
		if i < len(fired) {
			var fields map[string]any
			if i < len(list) {
				fields = object(list[i])
			}
			got = append(got, describeFired(fired[i], fields))
		}
	}
	return want, got
}

func describeWanted(v any) string {
	fields := object(v)
	if fields == nil {
		return "action " + text(v)
	}
	out := "action " + text(fields["name"])
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if k != "name" {
			out += " " + k + "=" + canonical(fields[k])
		}
	}
	return out
}

func describeFired(a rules.TracedAction, fields map[string]any) string {
	out := "action " + a.Name
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case k == "name":
		case len(a.Requests) == 0:
			out += " " + k + "=" + canonical(strings.TrimSpace(a.Text))
		case k == "url":
			out += " url=" + canonical(a.Requests[0].URL)
		case k == "json":
			var body any
			if json.Unmarshal([]byte(a.Requests[0].Body), &body) != nil {
				body = a.Requests[0].Body
			}
			out += " json=" + canonical(body)
		default:
			out += " " + k + "=" + canonical(a.Requests[0].Body)
		}
	}
	return out
}

// canonical prints a value of YAML or JSON alike: keys sorted, numbers as JSON has them.
func canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// text prints a scalar without trailing zeros, so that 81 in YAML equals 81.0 in a rule.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		if math.IsNaN(v) {
			return "NaN"
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
