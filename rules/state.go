package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
)

// overrideRow is a compiled row of a threshold table.
type overrideRow struct {
	table   *Override
	group   string
	entity  *glob.Pattern
	tags    []tagPattern
	labels  []tagPattern // entity tags
	failed  *program     // the `error` threshold
	warning *program
}

type tagPattern struct {
	name    string
	pattern *glob.Pattern
}

func (c *compiler) overrideRow(table *Override, r OverrideRow) overrideRow {
	out := overrideRow{table: table, group: r.Group, failed: c.boolean(r.Error, inCondition), warning: c.boolean(r.Warning, inCondition)}
	if r.Entity != "" {
		out.entity = glob.Compile(r.Entity)
	}
	for _, t := range r.Tags {
		out.tags = append(out.tags, tagPattern{t.Name, glob.Compile(t.Value)})
	}
	for _, t := range r.EntityTags {
		out.labels = append(out.labels, tagPattern{t.Name, glob.Compile(t.Value)})
	}
	return out
}

func (ev *evaluation) rowMatches(row *overrideRow) bool {
	if row.entity != nil && !row.entity.Match(ev.cmd.entity) {
		return false
	}
	if row.group != "" && (ev.host == nil || ev.host.catalog == nil || !ev.host.catalog.Member(ev.cmd.entity, row.group)) {
		return false
	}
	for _, t := range row.tags {
		if v, ok := ev.win.tags.Get(t.name); !ok || !t.pattern.Match(v) {
			return false
		}
	}
	if len(row.labels) == 0 {
		return true
	}
	e, _ := ev.catalogEntity(ev.cmd.entity)
	return !slices.ContainsFunc(row.labels, func(t tagPattern) bool {
		v, ok := e.Tags[t.name]
		return !ok || !t.pattern.Match(v)
	})
}

// verdict is the outcome of one evaluation of the condition.
type verdict struct {
	open     bool
	severity core.Severity
	table    *Override // whose row decided, nil = the default condition
}

// judge evaluates depends_on, the threshold tables and the condition.
func (ev *evaluation) judge() (verdict, error) {
	c := ev.compiled
	if c.depends != nil {
		if ok, err := ev.truth(c.depends); err != nil || !ok {
			return verdict{}, err
		}
	}
	for i := range c.rows {
		if row := &c.rows[i]; ev.rowMatches(row) {
			return ev.thresholds(row)
		}
	}
	ok, err := ev.truth(c.condition)
	v := verdict{open: ok, severity: ev.rule.Severity}
	if ok && v.severity <= core.Unknown {
		v.severity = core.Undefined
		if ev.rule.Kind == KindMessage {
			v.severity = ev.cmd.severity
		}
	}
	return v, err
}

func (ev *evaluation) thresholds(row *overrideRow) (verdict, error) {
	v := verdict{table: row.table}
	for _, t := range []struct {
		p        *program
		severity core.Severity
	}{{row.failed, core.Critical}, {row.warning, core.Warning}} {
		if t.p == nil {
			continue
		}
		ok, err := ev.truth(t.p)
		if err != nil {
			return verdict{}, err
		}
		if ok {
			v.open, v.severity, ev.threshold = true, t.severity, t.p.text.Value
			return v, nil
		}
	}
	return v, nil
}

// cause is where in the log an evaluation happens; it makes the ids of its events.
type cause struct {
	position core.Position // 0 for ticks, so that an id does not depend on what the log held when the tick ran
	index    int           // of the record within the batch
	tick     core.Time     // 0 for records
	depth    uint8
}

// evaluate runs the condition of w for its last command and moves the status. An error voids the evaluation.
func (e *Engine) evaluate(w *window, c cause) {
	ev := w.rule.compiled.ev
	ev.before, ev.status, ev.severity = w.status, w.status, w.severity
	ev.phase = inCondition
	v, err := ev.judge()
	e.stats.evaluations++
	if err != nil {
		ev.report(firstLine(err))
		return
	}
	if !v.open && w.status == core.StatusCancel {
		if w.cancelTime == 0 {
			w.cancelTime = ev.now
		}
		e.traceEvaluation(w, c, nil)
		return
	}
	if len(ev.compiled.variables) > 0 && v.open {
		if err := ev.allVariables(); err != nil {
			ev.report(firstLine(err))
		}
	}
	switch {
	case !v.open:
		e.cancel(w, c)
	case w.status == core.StatusCancel:
		e.openAlert(w, c, v)
	default:
		e.repeatAlert(w, c, v)
	}
}

func (e *Engine) openAlert(w *window, c cause, v verdict) {
	ev := w.rule.compiled.ev
	w.status, w.repeat, w.severity = core.StatusOpen, 0, v.severity
	w.openTime, w.repeatTime, w.changeTime = ev.now, ev.now, ev.now
	w.openValue, w.acked = w.last.value, false
	w.nodata = ev.exiting && w.len() == 0
	w.openText = ev.threshold
	ev.status, ev.severity = w.status, w.severity
	event := e.eventID(w, c)
	id, known := e.known[event]
	if !known {
		e.lastID++
		id = e.lastID
	}
	e.lastID = max(e.lastID, id)
	w.alert = id
	e.open[id] = w
	e.touch(w)
	for i, a := range ev.compiled.actions {
		w.actions[i] = actionState{opened: a.allowed(v.table), lastFired: 0}
	}
	fx := e.effects(event, c)
	fx.change(core.AlertOpened, w, e.historyRow(w, OnOpen))
	e.runActions(w, fx, OnOpen, v.table)
	done := e.emit(fx)
	w.unconfirmed, w.fresh = done == droppedUnknown, done == queued
	e.traceEvaluation(w, c, fx)
}

func (e *Engine) repeatAlert(w *window, c cause, v verdict) {
	ev := w.rule.compiled.ev
	if w.status == core.StatusOpen {
		w.changeTime = ev.now
	}
	changed := w.severity != v.severity
	w.status, w.severity = core.StatusRepeat, v.severity
	w.repeat++
	w.repeatTime = ev.now
	e.touch(w)
	ev.status, ev.severity = w.status, w.severity
	row := e.historyRow(w, OnRepeat)
	if !changed && row == nil && !w.rule.compiled.repeats {
		e.traceEvaluation(w, c, nil)
		return
	}
	fx := e.effects(e.eventID(w, c), c)
	switch {
	case changed:
		fx.change(core.AlertSeverity, w, row)
	case row != nil:
		fx.change(core.AlertRepeated, w, row)
	}
	e.runActions(w, fx, OnRepeat, v.table)
	e.emit(fx)
	e.traceEvaluation(w, c, fx)
}

func (e *Engine) cancel(w *window, c cause) {
	ev := w.rule.compiled.ev
	w.status = core.StatusCancel
	w.cancelTime, w.changeTime = ev.now, ev.now
	ev.status = w.status
	fx := e.effects(e.eventID(w, c), c)
	fx.change(core.AlertClosed, w, e.historyRow(w, OnCancel))
	e.runActions(w, fx, OnCancel, nil)
	w.fresh = e.emit(fx) == queued
	e.traceEvaluation(w, c, fx)
	e.shut(w)
}

// alertOf is the alert of an open window as clients see it.
func alertOf(w *window) core.Alert {
	a := core.Alert{ID: w.alert, Rule: w.rule.Name, Window: w.key, Metric: w.last.metric, Entity: w.last.entity, Tags: w.tags, Severity: w.severity,
		RepeatCount: w.repeat, Value: w.last.value, OpenValue: w.openValue, TextValue: textValue(w), OpenTime: w.openTime, LastEvent: w.lastEvent,
		Acknowledged: w.acked}
	if w.rule.Kind == KindMessage {
		a.Message = w.last.text
	}
	if w.nodata {
		a.State = "nodata"
	}
	return a
}

func textValue(w *window) string {
	switch w.rule.Kind {
	case KindMessage:
		return w.last.text
	case KindProperty:
		return tagText(w.last.props, ";")
	}
	text, err := formatPattern(w.last.value, "0.###")
	if err != nil {
		return numberText(w.last.value)
	}
	return text
}

func tagText(tags core.Tags, sep string) string {
	parts := make([]string, len(tags))
	for i, t := range tags {
		parts[i] = t.Name + "=" + t.Value
	}
	return strings.Join(parts, sep)
}

// historyRow returns the row to record for a status change, nil when the rule does not record it.
func (e *Engine) historyRow(w *window, on Triggers) *core.AlertRow {
	h := &w.rule.History
	if h.Triggers&on == 0 || on == OnRepeat && !h.Repeat.due(w.repeat, w.recordedAt, w.rule.compiled.ev.now) {
		return nil
	}
	ev := w.rule.compiled.ev
	row := &core.AlertRow{AlertID: w.alert, Time: w.commandTime, Received: ev.now, OpenTime: w.openTime, Entity: w.last.entity, Metric: w.last.metric,
		Rule: w.rule.Name, Tags: w.tags, Type: w.status, Value: w.last.value, Severity: w.severity, Condition: w.rule.Condition.Value,
		Filter: w.rule.Filter.Expression.Value, Window: w.rule.Window.String(), RepeatCount: w.repeat}
	var template *template
	switch on {
	case OnOpen:
		template = ev.compiled.history[0]
	case OnRepeat:
		template = ev.compiled.history[1]
	case OnCancel:
		template = ev.compiled.history[2]
		row.Severity = core.Undefined
	}
	row.Text = defaultText(w, on)
	if template != nil {
		if text, err := ev.render(template, asIs); err == nil {
			row.Text = text
		} else if err != errCancelled {
			ev.report(err)
		}
	}
	ev.historyText = row.Text
	w.recordedAt = ev.now
	if on != OnCancel {
		w.recorded = ev.record(w, row)
	}
	return row
}

// defaultText is the built-in alert text, which the history and failed renderings use.
func defaultText(w *window, on Triggers) string {
	subject := w.last.entity + ", " + w.last.metric + ", {" + tagText(w.tags, ", ") + "}"
	if on == OnCancel {
		return "Cancel alert for " + subject
	}
	return "Open alert for " + subject + ". Value: " + textValue(w)
}

// due reports whether something limited by r fires at a REPEAT evaluation.
func (r Repeat) due(count int, last, now core.Time) bool {
	switch {
	case r.Never:
		return false
	case r.Count > 0:
		return count%r.Count == 0
	case r.Interval.Count > 0:
		return last == 0 || now-last >= core.Time(r.Interval.NominalMillis())
	}
	return true
}

// String is the setting as templates see it.
func (r Repeat) String() string {
	switch {
	case r.Never:
		return "NONE"
	case r.Count > 0:
		return "COUNT " + numberText(float64(r.Count))
	case r.Interval.Count > 0:
		return strings.ToUpper(intervalText(r.Interval))
	}
	return "ALL"
}

func compareAlerts(a, b core.Alert) int {
	return cmp.Or(cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.ID, b.ID))
}
