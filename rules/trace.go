package rules

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules/outbox"
)

// Trace is what one evaluation did, for tests and for looking into a rule.
type Trace struct {
	Time        core.Time
	Rule        string
	Window      string // grouping key
	Entity      string // of the last command
	Tags        core.Tags
	Cause       string // add, exit, timer, delay (a deferred action) or error
	CommandTime core.Time
	Samples     int
	Before      core.Status
	After       core.Status
	Severity    core.Severity // of the alert, while it is open or was just closed
	RepeatCount int
	AlertID     uint64
	State       string // "nodata"
	Threshold   string
	Variables   map[string]any // those that were computed
	History     *core.AlertRow
	Actions     []TracedAction
	Error       string
}

// TracedAction is one action that fired.
type TracedAction struct {
	Name     string
	Kind     string
	Requests []outbox.Request // webhook
	Text     string           // command and log
}

// traceEvaluation reports an evaluation to the observer of the engine.
func (e *Engine) traceEvaluation(w *window, c cause, fx *effects) {
	if e.trace == nil {
		return
	}
	ev := w.rule.compiled.ev
	t := Trace{Time: ev.now, Rule: w.rule.Name, Window: w.key, Entity: ev.cmd.entity, Tags: w.tags, Cause: "add", CommandTime: w.commandTime, Samples: w.len(),
		Before: ev.before, After: ev.status, Severity: ev.severity, RepeatCount: w.repeat, AlertID: w.alert, Threshold: ev.threshold,
		Variables: map[string]any{}}
	if w.nodata {
		t.State = "nodata"
	}
	switch {
	case ev.delayed:
		t.Cause = "delay"
	case ev.exiting:
		t.Cause = "exit"
	case c.position == 0:
		t.Cause = "timer"
	}
	for i, v := range ev.rule.Variables {
		if ev.memoSet[i] && ev.memoErr[i] == nil {
			t.Variables[v.Name] = ev.memo[i]
		}
	}
	if fx != nil {
		t.Actions = fx.fired
		for i := range fx.changes {
			if row := fx.changes[i].Row; row != nil {
				t.History = row
				t.AlertID = row.AlertID
			}
		}
	}
	e.trace(t)
}
