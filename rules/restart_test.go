package rules_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const start = core.Time(1_715_673_600_000) // 2024-05-14T08:00:00Z

// manyRules use every mechanism whose state must survive: count and time windows, exits, delays, repeats, history, derived records, overrides, grouping.
const manyRules = `
name: hot
type: series
filter: {metric: temp}
condition: 'value > 80'
severity: major
history: {triggers: [open, repeat, cancel], repeat: {count: 2}}
actions:
  - {kind: webhook, name: hook, url: 'https://h.example/${entity}', triggers: [open, repeat, cancel], repeat: {interval: 20s}, params: {n: '${repeat_count}'}}
---
name: silent
type: series
filter: {metric: beat}
group_by: {entity: true, tags: none}
window: {duration: 10s, check_on_exit: true}
condition: 'count() == 0'
history: {triggers: [open, cancel]}
actions:
  - {kind: webhook, name: hook, url: 'https://h.example/silent', triggers: [open, cancel], open_delay: 3s}
---
name: average
type: series
filter: {metric: temp}
window: {duration: 15s}
condition: 'avg() >= (before_status == "CANCEL" ? 60 : 40)'
overrides:
  - rows:
      - {entity: e1, error: 'avg() > 90', warning: 'avg() > 50'}
actions:
  - {kind: command, commands: 'series e:${entity} m:avg_temp=${round(avg(), 2)} ms:${command_time.UnixMilli()}'}
---
name: derived
type: series
filter: {metric: avg_temp}
window: {count: 3}
condition: 'avg() > 70'
history: {triggers: [open, cancel]}
---
name: logins
type: message
filter: {type: auth}
group_by: {tags: [user]}
window: {duration: 20s, check_on_exit: true}
condition: 'count() >= 2'
severity: undefined
history: {triggers: [open, cancel], message: '${count()} by ${tags.user}'}
---
name: drift
type: property
filter: {type: conf}
condition: 'len(property_compare()) > 0'
history: {triggers: [open]}
`

// threeRules are the first three, without what they derive.
var threeRules = strings.Replace(manyRules[:strings.Index(manyRules, "---\nname: derived")], "m:avg_temp=", "m:unwatched=", 1)

// world is a sandbox with an engine that a test may kill.
type world struct {
	t      testing.TB
	box    *rulestest.Sandbox
	engine *rules.Engine
	files  fstest.MapFS
	apart  bool // documents of the engine take no position in the log
}

func newWorld(t testing.TB, box *rulestest.Sandbox, text string) *world {
	w := &world{t: t, box: box, files: fstest.MapFS{"rules.yaml": &fstest.MapFile{Data: []byte(text)}}}
	w.reopen()
	return w
}

func (w *world) config() rules.Config {
	c := rules.Config{Log: w.box, Ingest: w.box, Reader: w.box, Catalog: w.box, Metadata: w.box, Clock: w.box.Now, Files: w.files, NoDelivery: true}
	if w.apart {
		c.Ingest = apart{w.box}
	}
	return c
}

func (w *world) reopen() {
	w.t.Helper()
	if f := w.start(w.files); len(f) > 0 {
		w.t.Fatal(f)
	}
}

// start opens an engine on files, which may be broken.
func (w *world) start(files fs.FS) rules.Faults {
	w.t.Helper()
	c := w.config()
	c.Files = files
	e, err := rules.Open(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine = e
	return e.Faults()
}

func (w *world) advance() {
	w.t.Helper()
	if err := w.engine.Advance(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) insert(lines ...string) {
	w.t.Helper()
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	p := command.Parser{Received: w.box.Now()}
	for _, l := range lines {
		if err := p.Line(b, []byte(l)); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.box.Append(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// outcome is everything that must not depend on restarts.
type outcome struct {
	Alerts  []core.Alert
	History []core.AlertRow
	Outbox  []string
	Derived []string
}

func (w *world) outcome() outcome {
	w.t.Helper()
	var o outcome
	var err error
	if o.Alerts, err = w.engine.Query(w.t.Context(), core.AlertFilter{Scope: core.AllEntities}); err != nil {
		w.t.Fatal(err)
	}
	for row := range w.box.AlertHistory(w.t.Context(), core.AlertHistoryQuery{}) {
		o.History = append(o.History, row)
	}
	for d := range w.box.Documents(w.t.Context(), core.DocumentQuery{Kind: core.DocOutbox}) {
		o.Outbox = append(o.Outbox, d.Key+" "+string(d.Body))
	}
	slices.Sort(o.Outbox)
	for b := range w.box.Series(w.t.Context(), core.SeriesQuery{Metric: "avg_temp", Range: core.AllTime}) {
		o.Derived = append(o.Derived, fmt.Sprint(b.Key, b.Times, b.Values))
	}
	return o
}

// apart is an ingester that keeps the engine's own documents out of the log. A start writes some, which would shift the positions of what follows, and ids
// of events come from positions: so that ids of a restarted run compare with those of a straight one.
type apart struct{ *rulestest.Sandbox }

func (a apart) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	own := func(d core.DocChange) bool { return d.Kind == core.DocCheckpoint || d.Kind == core.DocRule }
	if len(b.Documents) < b.Len() || len(b.Documents) == 0 || !slices.ContainsFunc(b.Documents, own) ||
		slices.ContainsFunc(b.Documents, func(d core.DocChange) bool { return !own(d) }) {
		return a.Sandbox.Ingest(ctx, b)
	}
	a.PutDocuments(b.Documents)
	return core.Receipt{Position: a.End()}, nil
}

// step is one thing that happens at a time.
type step struct {
	at   core.Time
	line string
}

func randomHistory(r *rand.Rand, n int) []step {
	at := start
	out := make([]step, n)
	for i := range out {
		at += core.Time(r.IntN(4000))
		e := fmt.Sprintf("e%d", r.IntN(3))
		var line string
		switch r.IntN(6) {
		case 0, 1, 2:
			line = fmt.Sprintf("series e:%s m:temp=%d ms:%d", e, r.IntN(120), at-core.Time(r.IntN(2)*r.IntN(8000)))
		case 3:
			line = fmt.Sprintf("series e:%s m:beat=1", e)
		case 4:
			line = fmt.Sprintf("message e:%s t:type=auth t:user=u%d t:severity=%d m:failed", e, r.IntN(2), r.IntN(8))
		case 5:
			line = fmt.Sprintf("property e:%s t:conf v:a=%d v:b=%d", e, r.IntN(2), r.IntN(2))
		}
		out[i] = step{at, line}
	}
	return out
}

// TestKilledAnywhereComesToTheSame runs histories once straight and once with an engine that is thrown away at random places, sometimes between the
// append of a record and its evaluation, sometimes after it, and started again from the log, half the time with files that are broken.
func TestKilledAnywhereComesToTheSame(t *testing.T) {
	const length = 100
	broken := fstest.MapFS{"rules.yaml": &fstest.MapFile{Data: []byte("name: [")}}
	for seed := range *histories {
		r := rand.New(rand.NewPCG(seed, 7))
		steps := randomHistory(r, length)
		want := play(t, steps, func(*world, int) {})
		if len(want.History) == 0 || len(want.Outbox) == 0 || len(want.Derived) == 0 {
			t.Fatalf("seed %d: the history proves nothing: %d rows, %d notifications", seed, len(want.History), len(want.Outbox))
		}
		got := play(t, steps, func(w *world, i int) {
			switch r.IntN(16) {
			case 0:
				w.reopen()
			case 1:
				if f := w.start(broken); len(f) != 1 {
					t.Fatalf("faults %v, want that of the broken file", f)
				}
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: restarted run differs (-straight +restarted):\n%s", seed, diff)
		}
	}
}

var histories = flag.Uint64("histories", 8, "random histories that are killed and compared")

func play(t *testing.T, steps []step, kill func(*world, int)) outcome {
	w := &world{t: t, box: rulestest.NewSandbox(start), files: fstest.MapFS{"rules.yaml": &fstest.MapFile{Data: []byte(manyRules)}}, apart: true}
	w.reopen()
	w.advance()
	for i, s := range steps {
		w.box.SetClock(s.at)
		w.advance()
		kill(w, i)
		w.insert(s.line)
		kill(w, i)
		w.advance()
		kill(w, i)
	}
	w.box.SetClock(steps[len(steps)-1].at + 5000)
	w.advance()
	return w.outcome()
}

// TestLostEffectsAreMadeUp cuts the log right after a record whose effects were not written: the next start writes them, once.
func TestLostEffectsAreMadeUp(t *testing.T) {
	steps := randomHistory(rand.New(rand.NewPCG(3, 3)), 60)
	w := newWorld(t, rulestest.NewSandbox(start), manyRules)
	w.advance()
	for _, s := range steps {
		w.box.SetClock(s.at)
		w.advance()
		w.insert(s.line)
		w.advance()
	}
	want := w.outcome()
	for n := int(w.box.End()); n > 2; n -= 5 {
		cut := newWorld(t, w.box.Prefix(n), manyRules)
		cut.advance()
		once := cut.outcome()
		cut.reopen()
		cut.advance()
		if diff := cmp.Diff(once, cut.outcome()); diff != "" {
			t.Fatalf("cut after %d entries: a second start changes the outcome:\n%s", n, diff)
		}
		if n == int(w.box.End()) {
			if diff := cmp.Diff(want, once); diff != "" {
				t.Errorf("whole log differs:\n%s", diff)
			}
		}
		for _, body := range once.Outbox {
			if !slices.Contains(want.Outbox, body) {
				t.Fatalf("cut after %d entries: notification %s is none of the straight run", n, body)
			}
		}
	}
}

func TestSilenceTimersStartOverAfterDowntime(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), manyRules)
	w.advance()
	w.insert("series e:pump m:beat=1")
	w.advance()
	w.box.SetClock(start + 3600_000) // an hour without a server
	w.reopen()
	w.advance()
	if open := w.outcome().Alerts; len(open) != 0 {
		t.Fatalf("opened at once: %+v", open)
	}
	w.box.SetClock(start + 3600_000 + 9_000)
	w.advance()
	if open := w.outcome().Alerts; len(open) != 0 {
		t.Fatalf("opened before the window passed since the start: %+v", open)
	}
	w.box.SetClock(start + 3600_000 + 11_000)
	w.advance()
	open := w.outcome().Alerts
	if len(open) != 1 || open[0].State != "nodata" || open[0].Entity != "pump" {
		t.Fatalf("got %+v, want one nodata alert of pump", open)
	}
}

func TestAcknowledgeAndDeleteSurvive(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), threeRules)
	w.advance()
	w.insert("series e:a m:temp=90 ms:1715673600000", "series e:b m:temp=91 ms:1715673600000")
	w.advance()
	before := w.outcome().Alerts // average and hot for each entity
	if len(before) != 4 {
		t.Fatalf("got %d alerts, want 4", len(before))
	}
	serve(t, w, func(ctx context.Context) {
		if err := w.engine.Acknowledge(ctx, core.SystemOrigin(0), []uint64{before[0].ID, 999}, core.Acknowledge); err != nil {
			t.Error(err)
		}
		if err := w.engine.Delete(ctx, core.SystemOrigin(0), []uint64{before[1].ID}); err != nil {
			t.Error(err)
		}
		after := w.outcome().Alerts
		if len(after) != 3 || !after[0].Acknowledged || after[1].ID == before[1].ID {
			t.Errorf("after acknowledge and delete: %+v", after)
		}
	})
	want := w.outcome().Alerts
	w.reopen()
	w.advance()
	if diff := cmp.Diff(want, w.outcome().Alerts); diff != "" {
		t.Errorf("after restart:\n%s", diff)
	}
	rows := len(w.outcome().History)
	w.insert("series e:a m:temp=95")
	w.advance()
	for _, a := range w.outcome().Alerts {
		if a.ID == before[1].ID {
			t.Error("a deleted alert came back with its old id")
		}
	}
	if len(w.outcome().History) <= rows {
		t.Error("the next true evaluation opened nothing")
	}
}

// serve runs the engine while f works, and stops it in an orderly way.
func serve(t *testing.T, w *world, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.engine.Run(ctx) }()
	limit, stop := context.WithTimeout(ctx, 10*time.Second)
	f(limit)
	stop()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestAlertOnUnstoredRecordSurvives replays a log without the record: it was shown to rules, and not stored.
func TestAlertOnUnstoredRecordSurvives(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), threeRules)
	w.advance()
	b := &core.Batch{}
	b.Add(b.Ref(core.SeriesKey{Metric: "temp", Entity: "a", Tags: core.Tags{{Name: "x", Value: "1"}}}), start, 90)
	b.Samples.Flags[0] = core.ForRules | core.HasValue
	if _, err := w.box.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.advance()
	want := w.outcome().Alerts
	w.box.Forget(b)
	w.reopen()
	w.advance()
	if diff := cmp.Diff(want, w.outcome().Alerts); diff != "" || len(want) != 2 {
		t.Errorf("after restart:\n%s", diff)
	}
	w.insert("series e:a m:temp=10 t:x=1")
	w.advance()
	if got := w.outcome(); len(got.Alerts) != 0 || len(got.History) != 2 || got.History[0].AlertID != want[1].ID {
		t.Errorf("after a good value: %+v", got)
	}
}

func TestChangedRuleStartsEmpty(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), threeRules)
	w.advance()
	w.insert("series e:a m:temp=90")
	w.advance()
	id := w.outcome().Alerts[0].ID
	w.files["rules.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(threeRules, "value > 80", "value > 85"))}
	w.reopen()
	w.advance()
	for _, a := range w.outcome().Alerts {
		if a.Rule == "hot" {
			t.Errorf("alert of the old version is open: %+v", a)
		}
		if a.Rule == "average" && a.ID != id && a.ID > 2 {
			t.Errorf("alert of an unchanged rule has a new id: %+v", a)
		}
	}
	if got := w.outcome().Alerts; len(got) != 1 {
		t.Errorf("open: %+v, want that of the unchanged rule", got)
	}
	w.insert("series e:a m:temp=90")
	w.advance()
	if got := w.outcome().Alerts; len(got) != 2 || got[0].ID == got[1].ID || max(got[0].ID, got[1].ID) < 3 {
		t.Errorf("ids are used again: %+v", got)
	}
}

func TestReloadKeepsWhatCompiles(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), threeRules)
	w.advance()
	w.insert("series e:a m:temp=90")
	w.advance()
	serve(t, w, func(ctx context.Context) {
		w.files["rules.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(threeRules, "value > 80", "valeu > 80"))}
		err := w.engine.Reload(ctx)
		if err == nil || !strings.Contains(err.Error(), `did you mean "value"?`) {
			t.Errorf("reload of a broken rule: %v", err)
		}
		if got := w.outcome().Alerts; len(got) != 2 {
			t.Errorf("a broken file took alerts away: %+v", got)
		}
		w.files["rules.yaml"] = &fstest.MapFile{Data: []byte("name: [")}
		if err := w.engine.Reload(ctx); err == nil {
			t.Error("a file that is not YAML is no fault")
		}
		if got := w.outcome().Alerts; len(got) != 2 {
			t.Errorf("a file that is not YAML took alerts away: %+v", got)
		}
		w.files["rules.yaml"] = &fstest.MapFile{Data: []byte(threeRules[:strings.Index(threeRules, "---")])}
		if err := w.engine.Reload(ctx); err != nil {
			t.Error(err)
		}
		if got := w.outcome().Alerts; len(got) != 1 || got[0].Rule != "hot" {
			t.Errorf("after rules were removed: %+v", got)
		}
	})
	want := w.outcome().Alerts
	w.reopen()
	w.advance()
	if diff := cmp.Diff(want, w.outcome().Alerts); diff != "" {
		t.Errorf("after restart:\n%s", diff)
	}
}

func TestIdleEngineWritesNothing(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), manyRules)
	w.advance()
	w.insert("series e:a m:temp=10")
	w.advance()
	before := w.box.End()
	for range 10 {
		w.box.SetClock(w.box.Now() + 3600_000)
		w.advance()
	}
	if w.box.End() != before {
		t.Errorf("%d entries were written in ten idle hours", w.box.End()-before)
	}
}

func TestFullDiskDelaysEffects(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), manyRules)
	w.advance()
	w.insert("series e:a m:beat=1")
	w.advance()
	w.box.Fail(core.Errorf(core.NoSpace, "disk full"))
	w.box.SetClock(start + 11_000)
	if err := w.engine.Advance(t.Context()); core.CodeOf(err) != core.NoSpace {
		t.Fatalf("advance on a full disk: %v", err)
	}
	if got := w.outcome(); len(got.Alerts) != 1 || len(got.History) != 0 {
		t.Fatalf("on a full disk: %+v", got)
	}
	w.box.Fail(nil)
	w.advance()
	if got := w.outcome(); len(got.History) != 1 {
		t.Errorf("history after there is space again: %+v", got.History)
	}
}

func TestPassed(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), threeRules)
	serve(t, w, func(ctx context.Context) {
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		b.Add(b.Ref(core.SeriesKey{Metric: "temp", Entity: "a"}), start, 99)
		for !running(w.engine) {
			runtime.Gosched()
		}
		receipt, err := w.box.Append(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.engine.Passed(ctx, receipt.Position, b); err != nil {
			t.Fatal(err)
		}
		if got := w.outcome(); len(got.Alerts) != 2 || len(got.History) != 1 {
			t.Errorf("after Passed: %+v", got)
		}
		other := &core.Batch{}
		other.Add(other.Ref(core.SeriesKey{Metric: "unwatched", Entity: "a"}), start, 1)
		if err := w.engine.Passed(ctx, receipt.Position+1000, other); err != nil {
			t.Errorf("batch that no rule matches: %v", err)
		}
	})
	if err := w.engine.Passed(t.Context(), 1_000_000, &core.Batch{Messages: make([]core.Message, 1)}); err != nil {
		t.Errorf("engine that has stopped: %v", err)
	}
}

// running reports whether Run has begun: only then does Passed wait, which an unreachable position and an ended context show.
func running(e *rules.Engine) bool {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return e.Passed(ended, 1_000_000, &core.Batch{Messages: make([]core.Message, 1), Alerts: make([]core.AlertChange, 1)}) != nil
}

func TestLagGuardSkips(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), threeRules)
	w.advance()
	w.insert("series e:a m:temp=99")
	w.box.SetClock(start + 2*3600_000)
	w.advance()
	if got := w.outcome().Alerts; len(got) != 0 {
		t.Errorf("a record of two hours ago was evaluated: %+v", got)
	}
	if e := w.engine.Errors(); len(e) != 1 || !strings.Contains(e[0].Text, "lag by more than 1h0m0s") {
		t.Errorf("errors %+v", e)
	}
	w.insert("series e:a m:temp=99")
	w.advance()
	if got := w.outcome().Alerts; len(got) == 0 {
		t.Error("the engine did not go on")
	}
}
