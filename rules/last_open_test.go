package rules_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules/outbox"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

// notifications are those in the outbox, in the order in which they were made.
func (w *world) notifications() []outbox.Notification {
	w.t.Helper()
	var out []outbox.Notification
	for d := range w.box.Documents(w.t.Context(), core.DocumentQuery{Kind: core.DocOutbox}) {
		n, err := outbox.Decode(d.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b outbox.Notification) int {
		return slices.Compare([]int{int(a.Order.Position), int(a.Order.Tick), a.Order.Event}, []int{int(b.Order.Position), int(b.Order.Tick), b.Order.Event})
	})
	return out
}

// stop ends the engine in order, which leaves a checkpoint.
func (w *world) stop() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	if err := w.engine.Run(ctx); err != nil {
		w.t.Fatal(err)
	}
	for d := range w.box.Documents(w.t.Context(), core.DocumentQuery{Kind: core.DocCheckpoint, Key: "rules/checkpoint"}) {
		if len(d.Body) > 0 {
			return
		}
	}
	w.t.Fatal("no checkpoint")
}

func (w *world) bodies() []string {
	w.t.Helper()
	var out []string
	for _, n := range w.notifications() {
		out = append(out, n.Request.Body)
	}
	return out
}

// The record of the opening at 08:00:00 tells of that moment, whatever has come since, and after a restart as well.
func TestLastOpenFields(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t, rulestest.NewSandbox(start), `
name: r
type: message
filter: {type: app}
group_by: {entity: true, tags: [node]}
variables: [{name: words, expr: 'split(message, " ")'}, {name: size, expr: 'len(message)'}, {name: seen, expr: 'now'}]
condition: 'severity == "CRITICAL"'
severity: undefined
history: {triggers: [open, cancel], message: 'text ${message}'}
actions:
  - kind: webhook
    url: 'https://h.example/'
    triggers: [cancel]
    body: >-
      ${last_open().status}|${last_open().message}|${last_open().type}|${last_open().source}|${last_open().tags}|${last_open().severity}|

      ${last_open().alert_message}|${last_open().alert_duration_interval}|${last_open().command_time}|${last_open().open_time}|${last_open().add_time}|

      ${last_open().previous_add_time}|${last_open().change_time}|${last_open().cancel_time}|${last_open().words[1]}|${last_open().size + 1}|

      ${last_open().seen}|${last_open().keys}
`)
		w.insert("message e:a t:type=app t:source=first t:node=n1 t:severity=critical m:\"disk is full\"")
		w.advance()
		if restart {
			w.stop()
			w.reopen()
		}
		w.box.SetClock(start + 5000)
		w.insert("message e:a t:type=app t:source=second t:node=n1 t:severity=normal m:\"all is well again\"")
		w.advance()
		const opened = "2024-05-14T08:00:00.000Z"
		want := "OPEN|disk is full|app|first|{node=n1}|CRITICAL|text disk is full||" + opened + "|" + opened + "|" + opened + "||" + opened + "||is|13|" + opened + "|{}"
		if got := w.bodies(); len(got) != 1 || strings.ReplaceAll(got[0], "\n", "") != want {
			t.Errorf("restart %v: got %q\nwant %q\nerrors %v", restart, got, want, w.engine.Errors())
		}
	}
}

func TestRuleOpenLooksAtTheStatus(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: hot
type: series
filter: {metric: temp}
condition: 'value > 80'
---
name: first
type: series
filter: {metric: x}
condition: 'rule_open("hot", "pump", "status = ''OPEN'' && tags.unit = ''c''")'
---
name: again
type: series
filter: {metric: x}
condition: 'rule_open("hot", "pump", "status = ''REPEAT''")'
---
name: known
type: series
filter: {metric: x}
condition: 'rule_window("hot", "pump", "status = ''CANCEL''") != nil'
`)
	open := func(line string) string {
		w.insert(line)
		w.insert("series e:a m:x=1")
		w.advance()
		var names []string
		for _, a := range w.outcome().Alerts {
			if a.Rule != "hot" {
				names = append(names, a.Rule)
			}
		}
		return strings.Join(names, " ")
	}
	for _, step := range []struct{ line, want string }{
		{"series e:pump m:temp=90 t:unit=c", "first"}, {"series e:pump m:temp=91 t:unit=c", "again"}, {"series e:pump m:temp=9 t:unit=c", "known"},
	} {
		if got := open(step.line); got != step.want {
			t.Errorf("%s: open are %q, want %q; errors %v", step.line, got, step.want, w.engine.Errors())
		}
	}
}

// The third update lacks b: with merge it is still 1, without it is gone.
func TestPropertyCompareWithoutMerge(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: r
type: property
filter: {type: conf}
condition: 'a != ""'
variables: [{name: a, expr: 'properties.a'}]
actions:
  - kind: webhook
    url: 'https://h.example/'
    triggers: [open, repeat]
    body: '${property_compare()} ${property_compare(false)} ${property_compare_except(["b"], [], false)}'
`)
	for i, line := range []string{"property e:x t:conf v:a=1 v:b=1 v:c=1", "property e:x t:conf v:a=1 v:b=1", "property e:x t:conf v:a=2"} {
		w.box.SetClock(start + core.Time(i)*1000)
		w.insert(line)
		w.advance()
	}
	want := []string{"{a='' -> '1', b='' -> '1', c='' -> '1'} {a='' -> '1', b='' -> '1', c='' -> '1'} {a='' -> '1', c='' -> '1'}",
		"{} {c='1' -> ''} {c='1' -> ''}", "{a='1' -> '2'} {a='1' -> '2', b='1' -> ''} {a='1' -> '2'}"}
	if got := w.bodies(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
