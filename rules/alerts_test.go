package rules_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

func TestQueryFilters(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: Hot
type: series
filter: {metric: temp}
condition: 'value > 80'
severity: major
---
name: down
type: message
filter: {type: status}
condition: 'message == "down"'
severity: undefined
`)
	w.box.AddEntity(core.Entity{Name: "a", Enabled: true, Tags: map[string]string{"site": "north"}}, "edge")
	w.advance()
	w.insert("series e:b m:temp=90", "series e:a m:temp=90")
	w.advance()
	w.box.SetClock(start + 60_000)
	w.insert("message e:a t:type=status t:severity=fatal m:down")
	w.advance()
	yes := true
	for name, c := range map[string]struct {
		filter core.AlertFilter
		want   string
	}{
		"all":          {core.AlertFilter{Scope: core.AllEntities}, "a/message/3 a/temp/2 b/temp/1"},
		"rule pattern": {core.AlertFilter{Scope: core.AllEntities, Rules: []string{"H*"}}, "a/temp/2 b/temp/1"},
		"rule case":    {core.AlertFilter{Scope: core.AllEntities, Rules: []string{"hot"}}, ""},
		"metric":       {core.AlertFilter{Scope: core.AllEntities, Metrics: []string{"message"}}, "a/message/3"},
		"severities":   {core.AlertFilter{Scope: core.AllEntities, Severities: []core.Severity{core.Major}}, "a/temp/2 b/temp/1"},
		"min severity": {core.AlertFilter{Scope: core.AllEntities, MinSeverity: core.Critical}, "a/message/3"},
		"acknowledged": {core.AlertFilter{Scope: core.AllEntities, Acknowledged: &yes}, ""},
		"entity":       {core.AlertFilter{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{"b"}}}, "b/temp/1"},
		"pattern":      {core.AlertFilter{Scope: core.AllEntities, Entities: core.EntityFilter{Patterns: []string{"*"}}}, "a/message/3 a/temp/2 b/temp/1"},
		"group":        {core.AlertFilter{Scope: core.AllEntities, Entities: core.EntityFilter{Group: "edge"}}, "a/message/3 a/temp/2"},
		"expression":   {core.AlertFilter{Scope: core.AllEntities, Entities: core.EntityFilter{Expression: "tags.site = 'north'"}}, "a/message/3 a/temp/2"},
		"function":     {core.AlertFilter{Scope: core.AllEntities, Entities: core.EntityFilter{Expression: "memberOf('edge')"}}, "a/message/3 a/temp/2"},
		"open time":    {core.AlertFilter{Scope: core.AllEntities, Range: core.Range{Start: start, End: start + 60_000}}, "a/temp/2 b/temp/1"},
		"scope":        {core.AlertFilter{Scope: core.Scope{Groups: []string{"edge"}}}, "a/message/3 a/temp/2"},
		"no scope":     {core.AlertFilter{}, ""},
	} {
		list, err := w.engine.Query(t.Context(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s/%s/%d", a.Entity, a.Metric, a.ID))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	if _, err := w.engine.Query(t.Context(), core.AlertFilter{Scope: core.AllEntities, Entities: core.EntityFilter{Expression: "(("}}); err == nil {
		t.Error("a broken expression gives no error")
	}
}

// Records that max_offset keeps out are counted by direction, and actions when they fire.
func TestStatusCountsWhatFiltersAndActionsDo(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: near
type: series
filter: {metric: temp, max_offset: 1 minute}
condition: 'value > 80'
actions:
  - {kind: log, triggers: [open]}
`)
	w.advance()
	at := func(offset core.Time) string { return fmt.Sprintf("series e:a m:temp=90 ms:%d", start+offset) }
	w.insert(at(-60_001), at(-120_000), at(60_001), at(-60_000), at(60_000), at(0))
	w.advance()
	s := w.engine.Status()
	if s.Expired != 2 || s.Forward != 1 || s.Evaluations != 3 || s.Actions != 1 {
		t.Errorf("%d too old, %d too far ahead, %d evaluations, %d actions, want 2, 1, 3 and 1", s.Expired, s.Forward, s.Evaluations, s.Actions)
	}
}

// transport keeps bodies and answers 200.
type transport struct{ bodies chan string }

func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	tr.bodies <- r.Header.Get("Authorization") + " " + string(body)
	return &http.Response{StatusCode: 200, Status: "200 OK", Body: http.NoBody, Request: r}, nil
}

// TestFromRecordToRequest runs the engine and its outbox: a record opens, silence closes nothing by itself, a tick fires the no-data rule.
func TestFromRecordToRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := rulestest.NewSandbox(core.TimeOf(time.Now()))
		clock := func() core.Time {
			box.SetClock(core.TimeOf(time.Now()))
			return box.Now()
		}
		tr := transport{make(chan string, 10)}
		c := rules.Config{Log: box, Ingest: box, Reader: box, Catalog: box, Clock: clock, Files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(`
name: silent
type: series
filter: {metric: beat}
window: {duration: 1m, check_on_exit: true}
condition: 'count() == 0'
actions: [{kind: webhook, url: 'https://h.example/', headers: {Authorization: 'Bearer ${secret("T")}'}, json: {e: '${entity}', s: '${status}'}}]
`)}}}
		c.Outbox.Transport = tr
		c.Outbox.Secrets = func(string) (string, bool) { return "tok", true }
		e, err := rules.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		b := &core.Batch{}
		b.Add(b.Ref(core.SeriesKey{Metric: "beat", Entity: "pump"}), clock(), 1)
		if _, err := box.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if got := <-tr.bodies; got != `Bearer tok {"e":"pump","s":"OPEN"}` {
			t.Errorf("request %s", got)
		}
		if d := time.Since(began); d < time.Minute || d > 62*time.Second {
			t.Errorf("fired after %s of silence, want a minute and at most a tick", d)
		}
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for d := range box.Documents(t.Context(), core.DocumentQuery{Kind: core.DocOutbox}) {
			t.Errorf("left in the queue: %s", d.Body)
		}
	})
}

// asking is a renderer that looks at the engine which is waiting for it.
type asking struct {
	engine *rules.Engine
	seen   []int // open alerts
}

func (a *asking) Render(ctx context.Context, _ string, _ []core.AlertEvent) ([]core.RenderedAlert, error) {
	answer := make(chan int, 1)
	go func() {
		list, err := a.engine.Query(ctx, core.AlertFilter{Scope: core.AllEntities})
		if err != nil || len(list) != a.engine.Status().OpenAlerts {
			answer <- -1
		}
		answer <- len(list)
	}()
	select {
	case n := <-answer:
		a.seen = append(a.seen, n)
	case <-time.After(5 * time.Second):
		a.seen = append(a.seen, -2)
	}
	return []core.RenderedAlert{{Text: "t", JSON: []byte("{}")}}, nil
}

const renderRule = "name: r\ntype: series\nfilter: {metric: x}\ncondition: 'value > 0'\n" +
	"actions: [{kind: webhook, url: 'https://h.example/', render: {plugin: alert, format: json}}]\n"

func TestQueriesDoNotWaitForEvaluations(t *testing.T) {
	a := &asking{}
	w := &world{t: t, box: rulestest.NewSandbox(start), files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(renderRule)}}}
	c := w.config()
	c.Renderer = a
	var err error
	if w.engine, err = rules.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a.engine = w.engine
	w.insert("series e:a m:x=1")
	w.insert("series e:b m:x=1")
	w.advance()
	w.insert("series e:a m:x=0")
	w.advance()
	if fmt.Sprint(a.seen) != "[0 1]" {
		t.Errorf("during evaluations there were %v open alerts, want none and then one, without waiting", a.seen)
	}
	if got := w.outcome().Alerts; len(got) != 1 || got[0].Entity != "b" {
		t.Errorf("open at the end: %+v", got)
	}
}

// TestOpenAlertShowsItsLatestValue looks at what every evaluation changes, also one that fails.
func TestOpenAlertShowsItsLatestValue(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), ruleWith(`value > 0 && (value < 5 || values()[9] > 0)`))
	for i := range 6 {
		w.box.SetClock(start + core.Time(i)*1000)
		w.insert(fmt.Sprintf("series e:a m:x=%d", i))
		w.advance()
	}
	got := w.outcome().Alerts
	if len(got) != 1 || got[0].Value != 5 || got[0].LastEvent != start+5000 || got[0].RepeatCount != 3 || got[0].OpenValue != 1 {
		t.Errorf("open %+v, want value 5, opened at 1 and repeated three times", got)
	}
}

// slowRenderer takes as long as a plugin that must be compiled first.
type slowRenderer struct{ first time.Duration }

func (r *slowRenderer) Render(ctx context.Context, _ string, _ []core.AlertEvent) ([]core.RenderedAlert, error) {
	select {
	case <-time.After(r.first):
		return []core.RenderedAlert{{Text: "t", JSON: []byte(`{"from":"plugin"}`)}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestRenderingWaitsForTheFirstCompilation(t *testing.T) {
	for first, want := range map[time.Duration]string{20 * time.Second: `{\"from\":\"plugin\"}`, time.Minute: "the built-in text was used"} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, box: rulestest.NewSandbox(start), files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(renderRule)}}}
			c := w.config()
			c.Renderer = &slowRenderer{first}
			var err error
			if w.engine, err = rules.Open(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			w.insert("series e:a m:x=1")
			w.advance()
			if got := w.outcome().Outbox; len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("plugin that takes %s: %s", first, got)
			}
		})
	}
}
