package rules

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/glob"
)

// Query implements core.OpenAlerts.
func (e *Engine) Query(ctx context.Context, f core.AlertFilter) ([]core.Alert, error) {
	readable := func(entity string) bool {
		return f.Scope.All || slices.ContainsFunc(f.Scope.Groups, func(g string) bool { return e.catalog.Member(entity, g) })
	}
	var expression *filter.Expr
	if f.Entities.Expression != "" {
		source := filter.Source{Reader: e.reader, Catalog: e.catalog, Now: e.now}
		compiler := filter.Compiler{Functions: source.Functions(ctx).Within(readable), Zone: e.zone, Now: e.now}
		var err error
		if expression, err = compiler.Compile(filter.Entities, f.Entities.Expression); err != nil {
			return nil, err
		}
	}
	rules, metrics, names := compileAll(f.Rules), compileAll(f.Metrics), compileAll(f.Entities.Patterns)
	out := []core.Alert{}
	for _, shown := range e.board.list() {
		a := *shown
		switch {
		case !readable(a.Entity),
			!anyMatch(rules, a.Rule), !anyMatch(metrics, a.Metric),
			len(f.Severities) > 0 && !slices.Contains(f.Severities, a.Severity), a.Severity < f.MinSeverity,
			f.Acknowledged != nil && *f.Acknowledged != a.Acknowledged,
			f.Range != core.Range{} && !f.Range.Contains(a.OpenTime),
			len(f.Entities.Names)+len(names) > 0 && !slices.Contains(f.Entities.Names, a.Entity) &&
				!slices.ContainsFunc(names, func(p *glob.Pattern) bool { return p.Match(a.Entity) }),
			f.Entities.Group != "" && !e.catalog.Member(a.Entity, f.Entities.Group):
			continue
		}
		if expression != nil {
			ent, ok := e.catalog.Entity(a.Entity)
			if !ok {
				ent = core.NewEntity(a.Entity, a.OpenTime)
			}
			switch matches, err := expression.Match(filter.EntityEnv{Entity: &ent}); {
			case err != nil:
				return nil, err
			case !matches:
				continue
			}
		}
		a.Tags = a.Tags.Clone()
		out = append(out, a)
	}
	slices.SortFunc(out, compareAlerts)
	return out, ctx.Err()
}

func compileAll(patterns []string) []*glob.Pattern {
	out := make([]*glob.Pattern, len(patterns))
	for i, p := range patterns {
		out[i] = glob.Compile(p)
	}
	return out
}

// anyMatch holds for an empty list too.
func anyMatch(patterns []*glob.Pattern, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p *glob.Pattern) bool { return p.Match(s) })
}

// Acknowledge implements core.OpenAlerts.
func (e *Engine) Acknowledge(ctx context.Context, o core.Origin, ids []uint64, flag core.Acknowledgement) error {
	return e.alter(ctx, o, ids, func(a *core.Alert) core.AlertChangeKind {
		a.Acknowledged = flag == core.Acknowledge
		return core.AlertAcknowledged
	})
}

// Delete implements core.OpenAlerts.
func (e *Engine) Delete(ctx context.Context, o core.Origin, ids []uint64) error {
	return e.alter(ctx, o, ids, func(*core.Alert) core.AlertChangeKind { return core.AlertDeleted })
}

// alter journals one change for each named alert that is open and waits until the engine has applied it.
func (e *Engine) alter(ctx context.Context, o core.Origin, ids []uint64, change func(*core.Alert) core.AlertChangeKind) error {
	b := &core.Batch{Origin: o}
	for _, shown := range e.board.named(ids) {
		a := *shown
		a.Tags = a.Tags.Clone()
		kind := change(&a)
		b.Alerts = append(b.Alerts, core.AlertChange{Event: "api-" + rand.Text(), Kind: kind, Alert: a})
	}
	if len(b.Alerts) == 0 {
		return nil
	}
	receipt, err := e.ingest.Ingest(ctx, b)
	if err != nil {
		return fmt.Errorf("alerts: %w", err)
	}
	return e.passed.wait(ctx, receipt.Position)
}

// Passed implements core.Passer.
func (e *Engine) Passed(ctx context.Context, p core.Position, b *core.Batch) error {
	in := e.interest.Load()
	if in == nil || !in.in(b) || !e.passed.runs() {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, e.wait)
	defer cancel()
	if e.passed.wait(limit, p) != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// in reports whether a rule may see something of b.
func (in *interest) in(b *core.Batch) bool {
	if in.messages && len(b.Messages) > 0 || in.properties && len(b.Properties) > 0 || len(b.Alerts) > 0 {
		return true
	}
	return slices.ContainsFunc(b.Keys, func(k core.SeriesKey) bool { return in.metrics[k.Metric] })
}

// passed tells waiters how far the engine is.
type passed struct {
	mu      sync.Mutex
	at      core.Position
	running bool
	waiters int
	changed chan struct{} // closed, and replaced, when at grows
}

func (p *passed) start(at core.Position) {
	p.advance(at)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = true
}

// runs is false before Run: inserts then do not wait for a server that is still starting.
func (p *passed) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// stop lets everybody go: an engine that does not run will never pass anything.
func (p *passed) stop() { p.advance(math.MaxUint64) }

func (p *passed) advance(at core.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at <= p.at {
		return
	}
	p.at = at
	if p.waiters > 0 {
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

func (p *passed) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters > 0
}

func (p *passed) wait(ctx context.Context, at core.Position) error {
	p.mu.Lock()
	p.waiters++
	for p.at < at {
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			p.mu.Lock()
			p.waiters--
			p.mu.Unlock()
			return ctx.Err()
		}
		p.mu.Lock()
	}
	p.waiters--
	p.mu.Unlock()
	return nil
}

// RuleError is something that went wrong while a rule was evaluated.
type RuleError struct {
	Time   core.Time `json:"time"`
	Rule   string    `json:"rule,omitempty"`
	Window string    `json:"window,omitempty"`
	Entity string    `json:"entity,omitempty"`
	Text   string    `json:"text"`
	Count  int       `json:"count"` // equal errors since the first
}

// faultLog keeps the recent rule errors and the faults of the rule files.
type faultLog struct {
	mu     sync.Mutex
	recent []RuleError
	files  Faults
	total  uint64
	stored core.Time // minute of the last stored message
	budget int       // messages left in that minute
}

const (
	recentErrors = 100
	// storedErrors is how many rule errors a minute become messages: enough to see what is wrong, too few to fill a disk.
	storedErrors = 10
)

func (l *faultLog) load(f Faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = f
}

// add records an error and reports whether it is to be stored as a message.
func (l *faultLog) add(e RuleError) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	for i := range l.recent {
		if r := &l.recent[i]; r.Rule == e.Rule && r.Window == e.Window && r.Text == e.Text {
			r.Count++
			r.Time = e.Time
			return false
		}
	}
	e.Count = 1
	l.recent = append(l.recent, e)
	if len(l.recent) > recentErrors {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	if e.Time-l.stored >= 60_000 || l.stored == 0 {
		l.stored, l.budget = e.Time, storedErrors
	}
	l.budget--
	return l.budget >= 0
}

// ruleErrorType is the message type of rule errors. Rules never see them, or an error in a rule on messages would feed itself.
const ruleErrorType = "rule-error"

// reportError records an error of the evaluation that runs.
func (e *Engine) reportError(ev *evaluation, err error) {
	if e.replaying {
		return
	}
	r := RuleError{Time: ev.now, Rule: ev.rule.Name, Text: err.Error()}
	if ev.win != nil {
		r.Window = ev.win.key
	}
	if ev.cmd != nil {
		r.Entity = ev.cmd.entity
	}
	if e.trace != nil {
		e.trace(Trace{Time: ev.now, Rule: r.Rule, Window: r.Window, Entity: r.Entity, Cause: "error", Error: r.Text})
	}
	e.record(r)
}

// reportText records an error that belongs to no evaluation.
func (e *Engine) reportText(rule, text string) {
	e.record(RuleError{Time: e.now(), Rule: rule, Text: text})
}

func (e *Engine) record(r RuleError) {
	const maxErrorText = 1000
	if len(r.Text) > maxErrorText {
		r.Text = r.Text[:maxErrorText]
	}
	store := e.faults.add(r)
	e.log.Warn("rule error", "rule", r.Rule, "window", r.Window, "error", r.Text)
	if !store {
		return
	}
	m := core.Message{Time: r.Time, Entity: e.service, Type: ruleErrorType, Source: "rule-engine", Severity: core.Warning, Text: r.Text, Flags: core.Stored,
		Tags: core.Tags{{Name: "rule", Value: r.Rule}, {Name: "window", Value: r.Window}}}
	m.Tags = slices.DeleteFunc(m.Tags, func(t core.Tag) bool { return t.Value == "" })
	e.notes.add(m)
}

// notes are messages about the engine itself that wait for the next flush.
type notes struct {
	mu   sync.Mutex
	list []core.Message
}

const maxNotes = 100

func (n *notes) add(m core.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) < maxNotes {
		n.list = append(n.list, m)
	}
}

func (n *notes) take() []core.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.list
	n.list = nil
	return out
}

// Errors returns the recent rule errors, oldest first.
func (e *Engine) Errors() []RuleError {
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	return slices.Clone(e.faults.recent)
}

// Faults returns what the last load found wrong in the rule files.
func (e *Engine) Faults() Faults {
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	return slices.Clone(e.faults.files)
}

// Status is the state of the engine for /health.
type Status struct {
	Rules       int           `json:"rules"`
	Disabled    int           `json:"disabled"`
	Kept        int           `json:"kept"`   // rules that run from their last good source, because of faults in files
	Faults      int           `json:"faults"` // in rule files
	Windows     int           `json:"windows"`
	Samples     int           `json:"samples"` // in windows
	OpenAlerts  int           `json:"openAlerts"`
	Evaluations uint64        `json:"evaluations"`
	Expired     uint64        `json:"expired"` // records that max_offset of a rule kept out, for being too old
	Forward     uint64        `json:"forward"` // or too far ahead
	Actions     uint64        `json:"actions"` // that fired
	Errors      uint64        `json:"errors"`
	Skipped     uint64        `json:"skipped"` // times that records were skipped for lag
	Behind      core.Position `json:"behind"`  // distance of the cursor from the end of the log
	Waiting     int           `json:"waiting"` // batches that the log does not take
}

// Status returns counts as of the last entry or tick.
func (e *Engine) Status() Status {
	s, cursor := e.board.numbers()
	if end := e.tail.End(); end > cursor {
		s.Behind = end - cursor
	}
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	s.Faults, s.Errors = len(e.faults.files), e.faults.total
	return s
}
