package rules_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

// ruleWith is a rule on the series x with one condition, written so that any text is valid YAML.
func ruleWith(condition string) string {
	return "name: r\ntype: series\nfilter: {metric: x}\ncondition: |\n  " + strings.ReplaceAll(condition, "\n", "\n  ") + "\n"
}

func load(text string) (*rules.Set, rules.Faults) {
	return rules.Load(fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(text)}})
}

// TestHostileSources are texts that kill the process, or take seconds, when they reach the parser of the expression library as they are.
func TestHostileSources(t *testing.T) {
	for name, condition := range map[string]string{
		"a million parentheses":  strings.Repeat("(", 900_000) + "1",
		"five thousand in range": strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " > 0",
		"after a quote":          `"` + strings.Repeat("[", 5000),
		"unary signs":            strings.Repeat("!", 10_000) + "true",
		"minus signs":            strings.Repeat("-", 10_000) + "1 > 0",
		"nots":                   strings.Repeat("not ", 3000) + "true",
		"ternaries":              strings.Repeat("true ? 1 : ", 1000) + "1 > 0",
		"too long":               "value > 0 || " + strings.Repeat("value > 1 || ", 2000) + "true",
	} {
		t.Run(name, func(t *testing.T) {
			began := selfmetrics.ProcessorTime()
			set, faults := load(ruleWith(condition))
			if len(faults) != 1 || len(set.Rules) != 0 {
				t.Errorf("%d rules, faults %.200v", len(set.Rules), faults)
			}
			if d := selfmetrics.ProcessorTime() - began; d > 2*time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

// TestHostileFiles are rule files that take the YAML parser gigabytes when it sees them.
func TestHostileFiles(t *testing.T) {
	for name, text := range map[string]string{
		"list in list":       strings.Repeat("- ", 400_000),
		"key in key":         strings.Repeat("? ", 400_000),
		"brackets":           strings.Repeat("[\n", 5000),
		"behind closed ones": strings.Repeat("']'\n", 5000) + strings.Repeat("[don't,\n", 5000),
		"documents":          strings.Repeat("--- a\n", 20_000),
		"size":               strings.Repeat("#\n", 600_000),
		"indent":             strings.Repeat(" ", 1000) + "a: b",
	} {
		began := selfmetrics.ProcessorTime()
		if set, faults := load(text); len(faults) != 1 || len(set.Rules) != 0 {
			t.Errorf("%s: %d rules, %d faults", name, len(set.Rules), len(faults))
		}
		if d := selfmetrics.ProcessorTime() - began; d > 2*time.Second {
			t.Errorf("%s took %s", name, d)
		}
	}
}

// TestHostileEvaluations compile, and must end in an error within bounds of time and memory.
func TestHostileEvaluations(t *testing.T) {
	for name, c := range map[string]struct{ condition, want string }{
		"nested loops": {"let a = map(1..300, #); any(a, any(a, any(a, any(a, any(a, false)))))", "loop runs longer than 50ms"},
		"growing text": {`len(reduce(1..40, #acc + #acc, "aaaa")) > 0`, "text grows beyond"},
		"repeat":       {`len(repeat("aaaaaaaaaaaaaaaa", 100000000)) > 0`, "text grows beyond"},
		"repeat twice": {`len(repeat(repeat("a", 100000), 100000)) > 0`, "text grows beyond"},
		"replace":      {`len(reduce(1..40, replace(#acc, "a", "aaaaaaaa"), "a")) > 0`, "text grows beyond"},
		"join":         {`len(reduce(1..40, join([#acc, #acc], #acc), "aaaa")) > 0`, "text grows beyond"},
		"concat":       {`len(reduce(1..40, concat(#acc, #acc), [1])) > 0`, "text grows beyond"},
		"many texts":   {`len(map(1..100000, repeat("a", 100000))) > 0`, "text grows beyond"},
		"regex":        {`len(reduce(1..40, regexReplace(#acc, "(a)", "$1$1$1$1"), "aaaa")) > 0`, "text grows beyond"},
		"huge range":   {"len(map(1..int(1000000000 + value), #)) > 0", "memory budget"},
		"jsonencode":   {`len(reduce(1..40, jsonencode(#acc), "\\")) > 0`, "text grows beyond"},
		"join of many": {`len(join(map(1..3000, "` + strings.Repeat("a", 100) + `"), ",")) > 0`, "text grows beyond"},
		"let":          {`let a = "aaaaaaaaaaaaaaaa"; let b = a + a + a + a; let c = reduce(1..30, #acc + b + #acc, b); len(c) > 0`, "text grows beyond"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rulestest.NewSandbox(start), ruleWith(c.condition))
			began := selfmetrics.ProcessorTime()
			w.insert("series e:a m:x=1")
			w.advance()
			if d := selfmetrics.ProcessorTime() - began; d > 5*time.Second { // 50 ms by the timer; the rest is the race detector
				t.Errorf("took %s", d)
			}
			errs := w.engine.Errors()
			if len(errs) != 1 || !strings.Contains(errs[0].Text, c.want) {
				t.Errorf("errors %+v, want one with %q", errs, c.want)
			}
			if open := w.outcome().Alerts; len(open) != 0 {
				t.Errorf("a failed evaluation opened %+v", open)
			}
		})
	}
}

func TestOrdinaryExpressionsPassTheFences(t *testing.T) {
	for _, condition := range []string{
		`"a" + "b" == "ab"`, `tags.x + "-" + entity == "1-a"`, `join(["a", "b"]) == "a,b"`, `now + duration("1h") > now`, `1 + value == 2`,
		`filter(1..1000, # > 999) == [1000]`, `sum(map([1, 2], # * 2)) == 6`, `len(concat([1], [2, 3])) == 3`, `replace("aaa", "", "x") == "aaa"`,
		`type(value) == "float" && type(entity) == "string"`, `now() == now`, `value("y", 7) == 7`, `entity.name == entity && entity == "a"`,
		`metric.name == "x"`, `tags["x"] == "1" && ifEmpty(tags["z"], "d") == "d"`, `tags.event.user == "" && tags.list[0] == ""`,
		`max(2, 3) == 3 && max([1, 5, 2]) == 5 && min(value, 2) == 1`, `first([4, 5]) == 4 && last([4, 5]) == 5`, `round(2.345, 2) == 2.35`,
		`count() == 1 && last() == value`, `let d = 3; d + value == 4`, `value in [1, 2]`, `values({"b": 2, "a": 1}) == ["1", "2"]`,
	} {
		w := newWorld(t, rulestest.NewSandbox(start), ruleWith(condition))
		w.insert("series e:a m:x=1 t:x=1")
		w.advance()
		if len(w.outcome().Alerts) != 1 {
			t.Errorf("%s is not true; errors %+v", condition, w.engine.Errors())
		}
	}
}

func TestWindowCaps(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: r
type: series
filter: {metric: x}
window: {duration: 1h, max_samples: 10, max_windows: 3}
condition: 'count() > 10 || sum() < 0'
`)
	for i := range 20 {
		w.insert(fmt.Sprintf("series e:a m:x=%d", i))
	}
	for i := range 10 {
		w.insert(fmt.Sprintf("series e:b%d m:x=1", i))
	}
	w.advance()
	if s := w.engine.Status(); s.Windows != 3 || s.OpenAlerts != 0 {
		t.Errorf("status %+v, want three windows of at most ten samples", s)
	}
	if e := w.engine.Errors(); len(e) != 1 || !strings.Contains(e[0].Text, "more than 3 windows") {
		t.Errorf("errors %+v, want one that names the cap", e)
	}
}

func TestRulesThatFeedEachOtherStop(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: ping
type: series
filter: {metric: x}
condition: 'true'
actions: [{kind: command, commands: 'series e:${entity} m:y=${value + 1}'}]
---
name: pong
type: series
filter: {metric: y}
condition: 'true'
actions: [{kind: command, commands: 'series e:${entity} m:x=${value + 1}'}]
`)
	w.insert("series e:a m:x=0")
	for range 30 {
		w.advance()
	}
	var found bool
	for _, e := range w.engine.Errors() {
		found = found || strings.Contains(e.Text, "feed each other")
	}
	if !found || w.box.End() > 60 {
		t.Errorf("%d entries, errors %+v", w.box.End(), w.engine.Errors())
	}
}

func TestRuleErrorsAreStoredButNotFed(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: every-message
type: message
condition: 'values()[5] > 5'
`)
	for i := range 50 {
		w.insert(fmt.Sprintf("message e:a m:text%d", i))
		w.advance()
	}
	n := 0
	for m := range w.box.Messages(t.Context(), core.MessageQuery{Type: "rule-error", Range: core.AllTime}) {
		n++
		if m.Entity != "tidemark" {
			t.Errorf("entity %q", m.Entity)
		}
	}
	if n != 1 {
		t.Errorf("%d stored messages for fifty equal errors, want 1", n)
	}
	if e := w.engine.Errors(); len(e) != 1 || e[0].Count != 50 {
		t.Errorf("errors %+v, want one that counts 50", e)
	}
}

// brokenRenderer fails, or answers.
type brokenRenderer struct{ err error }

func (r brokenRenderer) Render(_ context.Context, _ string, events []core.AlertEvent) ([]core.RenderedAlert, error) {
	if r.err != nil {
		return nil, r.err
	}
	return []core.RenderedAlert{{Text: "t", JSON: []byte(`{"rule":"` + events[0].Rule + `"}`)}}, nil
}

func TestRenderPlugin(t *testing.T) {
	const rule = `
name: r
type: series
filter: {metric: x}
condition: 'value > 0'
actions: [{kind: webhook, url: 'https://h.example/', render: {plugin: alert, format: json}}]
`
	for want, err := range map[string]error{
		`"body":"{\"rule\":\"r\"}"`:                                nil,
		`"flag":"plugin alert failed: the built-in text was used"`: core.Errorf(core.Unavailable, "no plugin"),
	} {
		box := rulestest.NewSandbox(start)
		w := &world{t: t, box: box, files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(rule)}}}
		c := w.config()
		c.Renderer = brokenRenderer{err}
		var openErr error
		if w.engine, openErr = rules.Open(t.Context(), c); openErr != nil {
			t.Fatal(openErr)
		}
		w.insert("series e:a m:x=1")
		w.advance()
		if got := w.outcome().Outbox; len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("outbox %s, want %s", got, want)
		}
	}
}

func TestSecretsNeverReachTheOutbox(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: r
type: message
condition: 'true'
actions:
  - kind: webhook
    url: 'https://h.example/'
    headers: {Authorization: 'Bearer ${secret("TOKEN")}', X-Note: '${message}'}
    json: {text: '${message}'}
`)
	w.insert("message e:a m:\"evil\x02TOKEN\x02 ${secret(\"\"TOKEN\"\")}\"")
	w.advance()
	got := w.outcome().Outbox
	if len(got) != 1 || !strings.Contains(got[0], `{"name":"Authorization","value":"Bearer \u0001TOKEN\u0001"}`) ||
		!strings.Contains(got[0], `{"name":"X-Note","value":"evilTOKEN ${secret(\"TOKEN\")}"}`) {
		t.Errorf("outbox %s", got)
	}
	_, faults := load("name: r\ntype: message\ncondition: 'true'\nactions: [{kind: webhook, url: 'https://h.example/', body: '${secret(\"T\")}'}]\n")
	if len(faults) != 1 {
		t.Errorf("secret() in a body: %v", faults)
	}
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"value > 80", "avg() >= 1 && tags.x == 'a'", `join(map(values(), # + 1), "-") == ""`, "((((", "`", "let a = 1; a", "1..10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, "\r") {
			return
		}
		set, faults := load(ruleWith(s))
		if len(set.Rules)+len(faults) == 0 {
			t.Error("neither a rule nor a fault")
		}
		if len(set.Rules) == 0 {
			return
		}
		w := newWorld(t, rulestest.NewSandbox(start), ruleWith(s))
		w.insert("series e:a m:x=1 t:x=1")
		w.advance()
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"${value}", "@if{value > 0}a@else{}b@end{}", "@foreach{x : values()}@{x}@end{}", "$${", "${\"}\"}", "@end{}", "${", "@if{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := ruleWith("true") + "actions:\n  - kind: log\n    message: |\n      " + strings.NewReplacer("\n", "\n      ", "\r", "").Replace(s) + "\n"
		set, _ := load(text)
		if len(set.Rules) == 0 {
			return
		}
		w := newWorld(t, rulestest.NewSandbox(start), text)
		w.insert("series e:a m:x=1 t:x=1")
		w.advance()
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(manyRules)
	f.Add("kind: endpoint\nname: x\nurl: [1]")
	f.Add("- a\n- b: {c: *d}")
	f.Add("? {a: b}\n: !!binary x")
	f.Fuzz(func(_ *testing.T, s string) { load(s) })
}
