package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules/outbox"
)

// Open loads the rules, restores windows and alerts from the last checkpoint, and reads what the log holds since then: what has happened before is not
// done again, what a crash prevented is done now. Faults of rule files do not stop it, see Faults: a rule that they take away goes on as it last was.
func Open(ctx context.Context, c Config) (*Engine, error) {
	if c.Log == nil || c.Ingest == nil || c.Reader == nil || c.Catalog == nil || c.Clock == nil {
		return nil, core.Errorf(core.Internal, "rules: Log, Ingest, Reader, Catalog and Clock are required")
	}
	e := newEngine(c)
	e.ctx = ctx
	saved, err := e.readState(ctx)
	if err != nil {
		return nil, fmt.Errorf("rules: cannot read the engine's documents: %w", err)
	}
	set, faults := e.load(len(saved.rules))
	if len(faults) > 0 {
		e.keep(set, e.lastGood(saved.rules))
	}
	end := e.tail.End()
	for _, r := range set.Rules {
		start := end
		if fp, ok := saved.rules[r.Name]; ok && fp.Fingerprint == r.windows {
			start = fp.Start
		}
		e.adopt(r, start)
	}
	e.index()
	e.cursor = end
	e.needs.Store(math.MaxUint64)
	if saved.checkpoint != nil {
		e.restore(saved.checkpoint)
		e.needs.Store(uint64(e.cursor))
	}
	if len(e.rules) == 0 && len(e.open) == 0 { // nothing is to be found in the log
		e.cursor = end
	}
	if err := e.replay(ctx, end); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("rules: replay of the log: %w", err)
		}
		// A log that has lost what the checkpoint needs must not keep the server from starting.
		e.reportText("", fmt.Sprintf("log cannot be replayed from position %d, going on at %d: %v", e.cursor, end, err))
		e.replaying, e.cursor = false, end
	}
	e.removeGone()
	e.deleteOrphans()
	now := e.now()
	if e.tick == 0 || now-e.lastSeen() >= restartGap {
		e.resume(now)
	}
	changes := e.ruleChanges(saved.rules)
	if err := e.flush(ctx); err != nil {
		e.log.Warn("rules: effects of the last run wait for the log", "error", err)
	}
	e.restart = changes
	e.publish()
	return e, nil
}

// lastSeen is the last time the engine is known to have been at work.
func (e *Engine) lastSeen() core.Time { return e.tick }

// replay reads the log from the cursor to end twice: first for the events that are in it, then for the records that led to them.
func (e *Engine) replay(ctx context.Context, end core.Position) error {
	if e.cursor >= end {
		return nil
	}
	last := map[[2]string]logged{}
	for en, err := range e.tail.Tail(ctx, e.cursor) {
		if err != nil {
			return err
		}
		for _, c := range en.Batch.Alerts {
			if c.Kind != core.AlertAcknowledged && c.Kind != core.AlertDeleted {
				e.known[strings.Clone(c.Event)] = c.Alert.ID
			}
			e.lastID = max(e.lastID, c.Alert.ID)
			last[[2]string{strings.Clone(c.Alert.Rule), strings.Clone(c.Alert.Window)}] = logged{c, en.Position}
		}
		if en.Position >= end {
			break
		}
	}
	e.replaying = true
	for en, err := range e.tail.Tail(ctx, e.cursor) {
		if err != nil {
			return err
		}
		e.entry(en)
		if en.Position >= end {
			break
		}
	}
	e.replaying = false
	e.cursor = max(e.cursor, end)
	e.reconcile(last)
	clear(e.known)
	return nil
}

// logged is the last change of an alert in the log, and where it is.
type logged struct {
	core.AlertChange
	position core.Position
}

// reconcile makes the log the judge of what is open, where the replay came to another result: an expression may depend on more than the log, such as
// stored data that has changed since, and records that are not stored are not in the log at all.
func (e *Engine) reconcile(last map[[2]string]logged) {
	for name, windows := range e.windows {
		for key, w := range windows {
			c, known := last[[2]string{name, key}]
			if w.unconfirmed && !w.fresh && (!known || closes(c.Kind)) {
				e.shut(w)
			}
			w.unconfirmed = false
		}
	}
	for id, c := range last {
		l := e.rules[id[0]]
		if l == nil || !l.Enabled || closes(c.Kind) || c.position <= l.start {
			continue
		}
		w := e.windows[l.Name][id[1]]
		if w == nil {
			w = windowOfAlert(l, &c.Alert)
			e.addWindow(w)
		}
		if !w.fresh && !w.open() {
			w.adopt(&c.Alert)
			e.open[w.alert] = w
			e.touch(w)
		}
		w.fresh = false
	}
}

// windowOfAlert makes a window without samples, from what its alert says.
func windowOfAlert(l *live, a *core.Alert) *window {
	w := newWindow(l.Rule, strings.Clone(a.Window))
	w.metric, w.tags = strings.Clone(a.Metric), a.Tags.Clone()
	w.last = command{entity: strings.Clone(a.Entity), metric: w.metric, tags: w.tags, value: a.Value, text: strings.Clone(a.Message), time: a.LastEvent,
		received: a.LastEvent, severity: a.Severity}
	if l.Group.Entity {
		w.entity = w.last.entity
	}
	w.lastEvent, w.commandTime = a.LastEvent, a.LastEvent
	return w
}

// adopt opens w as the log has it.
func (w *window) adopt(a *core.Alert) {
	w.status, w.severity, w.alert, w.repeat = core.StatusOpen, a.Severity, a.ID, a.RepeatCount
	w.openTime, w.openValue, w.acked, w.nodata = a.OpenTime, a.OpenValue, a.Acknowledged, a.State == "nodata"
	if w.repeat > 0 {
		w.status = core.StatusRepeat
	}
	for i, action := range w.rule.compiled.actions {
		w.actions[i] = actionState{opened: action.allowed(nil)}
	}
}

func closes(k core.AlertChangeKind) bool { return k == core.AlertClosed || k == core.AlertDeleted }

// ruleChanges lists what is to be written about rules that are new, changed or gone, and forgets the alerts of the latter two.
func (e *Engine) ruleChanges(saved map[string]ruleState) []core.DocChange {
	var out []core.DocChange
	for _, name := range slices.Sorted(maps.Keys(e.rules)) {
		if state := e.rules[name].state; saved[name] != state {
			out = append(out, core.DocChange{Kind: core.DocRule, Key: name, Op: core.DocPut, Body: state.body()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		if e.rules[name] == nil {
			out = append(out, core.DocChange{Kind: core.DocRule, Key: name, Op: core.DocDelete})
		}
	}
	return out
}

// removeGone drops the windows of rules that are no longer there, or disabled; their open alerts are deleted without a trigger.
func (e *Engine) removeGone() {
	for _, name := range slices.Sorted(maps.Keys(e.windows)) {
		l := e.rules[name]
		if l == nil || !l.Enabled {
			e.dropWindows(name)
		}
	}
}

// noRecord is the index in an event id for what no record of a batch caused.
const noRecord = math.MinInt32

// dropWindows removes all windows of a rule and journals the deletion of their alerts.
func (e *Engine) dropWindows(name string) {
	for _, key := range slices.Sorted(maps.Keys(e.windows[name])) {
		w := e.windows[name][key]
		if w.open() {
			fx := &effects{event: e.eventID(w, cause{position: e.cursor, index: noRecord, tick: e.tick}), point: point{e.cursor, e.tick}}
			fx.change(core.AlertDeleted, w, nil)
			e.shut(w)
			e.emit(fx)
		}
		e.unschedule(w)
		e.forget(w)
	}
	delete(e.windows, name)
	if e.rules[name] != nil {
		e.windows[name] = map[string]*window{}
	}
}

type reloadRequest struct {
	ctx  context.Context
	done chan error
}

// Reload reads the rules again. Each changed rule replaces the old one if it compiles; a rule that no longer compiles stays in force as it was, and so
// does one that is no longer there while anything in the files is faulty. The error holds all faults; what is faultless is in force all the same.
func (e *Engine) Reload(ctx context.Context) error {
	r := reloadRequest{ctx, make(chan error, 1)}
	select {
	case e.reloads <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Engine) reload(ctx context.Context) error {
	old := e.rules
	set, faults := e.load(len(old))
	saved, good := map[string]ruleState{}, map[string]*Rule{}
	for name, l := range old {
		saved[name], good[name] = l.state, l.Rule
	}
	e.kept = 0
	if len(faults) > 0 {
		e.keep(set, good)
	}
	e.rules = make(map[string]*live, len(set.Rules))
	for _, r := range set.Rules {
		e.replaceRule(r, old[r.Name])
	}
	e.removeGone()
	e.index()
	changes := e.ruleChanges(saved)
	e.publish()
	if err := e.writeState(ctx, changes); err != nil {
		return errors.Join(err, faults.err())
	}
	return faults.err()
}

func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// replaceRule puts r in the place of old. Windows survive when nothing changed that decides about them.
func (e *Engine) replaceRule(r *Rule, old *live) {
	if old == nil {
		e.adopt(r, e.cursor)
		return
	}
	if old.windows != r.windows {
		e.dropWindows(r.Name)
		e.adopt(r, e.cursor)
		return
	}
	windows := e.windows[r.Name]
	e.adopt(r, old.start)
	if old.full == r.full {
		copy(e.rules[r.Name].lastSent, old.lastSent)
	}
	for _, w := range windows {
		w.rule = r
		if old.full != r.full { // actions may have moved: what is pending is sent no more
			w.actions = make([]actionState, len(r.Actions))
			for i, a := range r.compiled.actions {
				w.actions[i].opened = w.open() && a.allowed(nil)
			}
		}
		e.schedule(w)
	}
}

// Run evaluates until ctx ends; then it writes a checkpoint. When it returns, no goroutine of this package is left.
func (e *Engine) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	if e.outbox != nil {
		wg.Go(func() {
			if err := e.outbox.Run(ctx); err != nil && ctx.Err() == nil {
				e.log.Error("rules: outbox stopped", "error", err)
			}
		})
	}
	e.passed.start(e.cursor)
	defer e.passed.stop()
	err := e.loop(ctx)
	wg.Wait()
	// The context has ended, and the last words of the engine are worth a moment of their own.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := e.flush(last); err == nil {
		if err := e.checkpoint(last, nil); err != nil {
			e.log.Warn("rules: no checkpoint at shutdown: the next start replays more of the log", "error", err)
		}
	}
	return err
}

const (
	// shutdownTime is how long the last batch and checkpoint may take.
	shutdownTime = 10 * time.Second
	// retryAfter is the pause after the log refused a batch or could not be read.
	retryAfter = time.Second
	// readAttempts is how often the log may fail to be read from one place before what is there is given up.
	readAttempts = 3
)

func (e *Engine) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := time.Duration(-1)
		if err := e.step(ctx); err != nil && ctx.Err() == nil {
			e.log.Warn("rules: waiting for the log", "error", err)
			pause = retryAfter
		}
		if e.read >= e.every {
			if err := e.checkpoint(ctx, nil); err != nil && ctx.Err() == nil {
				e.reportText("", fmt.Sprintf("checkpoint: %v", err))
				e.read = e.every / 2
			}
		}
		e.sleep(ctx, pause)
	}
	return nil
}

// sleep waits for an entry, the next tick that has work, or a reload. A pause of zero or more is waited out in full.
func (e *Engine) sleep(ctx context.Context, pause time.Duration) {
	wake, cancel := context.WithCancel(ctx)
	defer cancel()
	appended := make(chan struct{})
	cursor := e.cursor
	var wg sync.WaitGroup
	if pause < 0 {
		wg.Go(func() {
			if e.tail.Wait(wake, cursor) == nil {
				close(appended)
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	timer := time.NewTimer(e.untilTick(pause))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-appended:
	case <-timer.C:
	case r := <-e.reloads:
		r.done <- e.reload(r.ctx)
	}
}

// idleCheck bounds a sleep without anything due; it only guards against a clock that was set back.
const idleCheck = time.Hour

func (e *Engine) untilTick(pause time.Duration) time.Duration {
	if pause >= 0 {
		return pause
	}
	next := e.nextTick()
	if next == 0 {
		return idleCheck
	}
	return min(max(time.Duration(next-e.now())*time.Millisecond, 0), idleCheck)
}

// Advance processes what the log holds and then every tick up to the clock. Run calls it; tests and replays with a clock of their own call it in place of
// Run.
func (e *Engine) Advance(ctx context.Context) error { return e.step(ctx) }

func (e *Engine) step(ctx context.Context) error {
	e.ctx = ctx
	if !e.started {
		if err := e.writeState(ctx, e.restart); err != nil {
			e.log.Warn("rules: no checkpoint after the start, trying again", "error", err)
		} else {
			e.restart, e.started = nil, true
		}
	}
	// The clock is read before the end of the log is: entries appended later were received at this time or after it, and every earlier one is read now.
	wall := e.now()
	// Effects are entries too, so rounds follow each other until nothing is added; the depth of derived records bounds them.
	for range core.MaxDepth + 2 {
		if err := e.drain(ctx, wall); err != nil {
			return err
		}
		e.ticks(wall)
		if err := e.flush(ctx); err != nil {
			return err
		}
		e.passed.advance(e.cursor)
		if e.tail.End() <= e.cursor {
			break
		}
	}
	return nil
}

// drain processes the log up to its end.
func (e *Engine) drain(ctx context.Context, wall core.Time) error {
	lagged := false
	for en, err := range e.tail.Tail(ctx, e.cursor) {
		if err != nil {
			if e.unread++; ctx.Err() != nil || e.unread <= readAttempts {
				return err
			}
			e.unread = 0
			end := e.tail.End()
			e.reportText("", fmt.Sprintf("log cannot be read from position %d, going on at %d: %v", e.cursor, end, err))
			e.cursor = end
			return nil
		}
		e.unread = 0
		if wall-en.Batch.Received > e.maxLag {
			lagged = true
			break
		}
		e.entry(en)
		full := len(e.queue) >= maxQueued
		if full || e.passed.waiting() {
			if err := e.flush(ctx); err != nil && full {
				return err
			} else if err == nil {
				e.passed.advance(e.cursor)
			}
		}
	}
	if lagged {
		e.skip()
	}
	return nil
}

// skip gives up on entries that the engine is too late for.
func (e *Engine) skip() {
	from, end := e.cursor, e.tail.End()
	e.cursor = end
	e.stats.skipped++
	e.reportText("", fmt.Sprintf("rules lag by more than %s: records from position %d to %d are skipped", time.Duration(e.maxLag)*time.Millisecond, from, end))
}

// Outbox returns the queue of notifications, nil with NoDelivery.
func (e *Engine) Outbox() *outbox.Outbox { return e.outbox }
