package rules

import (
	"errors"
	"fmt"
	"time"

	"github.com/expr-lang/expr/vm"

	"github.com/tidemark-db/tidemark/core"
)

// command is one record as a rule sees it. Its strings may point into the batch; a window keeps a clone.
type command struct {
	entity   string
	metric   string // "message" and "property" for those kinds
	tags     core.Tags
	value    float64 // 0 for messages and properties
	text     string  // message text, or the text of a sample
	time     core.Time
	received core.Time
	typ      string
	source   string
	severity core.Severity
	keys     core.Tags // of a property
	props    core.Tags

	batch *core.Batch // where the command came from, nil once kept
	index int
	plan  *plan // of the series, nil for other kinds and after a restart
}

func (c command) clone() command {
	m := core.Message{Entity: c.entity, Type: c.typ, Source: c.source, Text: c.text, Tags: c.tags}.Clone()
	c.entity, c.typ, c.source, c.text, c.tags = m.Entity, m.Type, m.Source, m.Text, m.Tags
	c.keys, c.props = c.keys.Clone(), c.props.Clone()
	c.batch = nil
	return c
}

// evaluation is the state that the functions and names of one rule's expressions read. A rule has one; the engine's goroutine is its only user.
type evaluation struct {
	host     *Engine // nil until an engine takes the rule
	rule     *Rule
	set      *Set
	compiled *compiled

	win         *window // nil in filters
	cmd         *command
	now         core.Time
	exiting     bool
	phase       phase
	before      core.Status
	status      core.Status
	severity    core.Severity
	threshold   string
	delayed     bool   // an Open action that waited
	repeatText  string // repeat setting of the action that is being rendered
	historyText string
	extra       map[string]any // loop variables and endpoint parameters

	env     map[string]any
	machine []*vm.VM // one a level of nested variables
	depth   int
	fence   fence
	memo    []any
	memoErr []error
	memoSet []bool
}

func newEvaluation(r *Rule, set *Set) *evaluation {
	return &evaluation{rule: r, set: set, env: map[string]any{}, extra: map[string]any{}}
}

// begin resets what lasts for one evaluation.
func (ev *evaluation) begin(w *window, cmd *command, now core.Time) {
	ev.win, ev.cmd, ev.now = w, cmd, now
	ev.exiting, ev.delayed = false, false
	ev.threshold, ev.historyText, ev.repeatText = "", "", ""
	if ev.fence.loops > 0 || ev.fence.built > 0 {
		ev.fence.reset()
	}
	for i := range ev.memoSet {
		ev.memoSet[i], ev.memo[i], ev.memoErr[i] = false, nil, nil
	}
}

// run evaluates p. Panics of custom functions and of the interpreter come back as errors.
func (ev *evaluation) run(p *program) (any, error) {
	for _, b := range p.names {
		ev.env[b.name] = b.get(ev)
	}
	for name, v := range ev.extra {
		ev.env[name] = v
	}
	if ev.depth == len(ev.machine) {
		ev.machine = append(ev.machine, &vm.VM{})
	}
	m := ev.machine[ev.depth]
	ev.depth++
	v, err := m.Run(p.code, ev.env)
	ev.depth--
	return v, err
}

// truth evaluates a boolean program. nil is false.
func (ev *evaluation) truth(p *program) (bool, error) {
	if p.native != nil {
		return p.native(ev.cmd.value), nil
	}
	v, err := ev.run(p)
	if err != nil {
		return false, err
	}
	switch v := v.(type) {
	case bool:
		return v, nil
	case nil:
		return false, nil
	}
	return false, fmt.Errorf("result is %T, not true or false", v)
}

// variable computes a variable on first use and remembers it for the evaluation.
func (ev *evaluation) variable(name string) (any, error) {
	i, ok := ev.compiled.index[name]
	if !ok {
		return nil, fmt.Errorf("no variable %q", name)
	}
	if !ev.memoSet[i] {
		ev.memo[i], ev.memoErr[i] = ev.run(ev.compiled.variables[i])
		ev.memoSet[i] = true
	}
	return ev.memo[i], ev.memoErr[i]
}

// allVariables computes those that the condition did not need; actions may use them.
func (ev *evaluation) allVariables() error {
	var errs []error
	for _, v := range ev.rule.Variables {
		if _, err := ev.variable(v.Name); err != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", v.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (ev *evaluation) zone() *time.Location {
	if ev.host == nil {
		return time.UTC
	}
	return ev.host.zone
}

// at returns t in the server's zone, nil for the zero time: that stands for an event that did not happen.
func (ev *evaluation) at(t core.Time) any {
	if t == 0 {
		return nil
	}
	return t.Std().In(ev.zone())
}

func (ev *evaluation) clock() time.Time { return ev.now.Std().In(ev.zone()) }

func (ev *evaluation) midnight(days int) time.Time {
	y, m, d := ev.clock().Date()
	return time.Date(y, m, d+days, 0, 0, 0, 0, ev.zone())
}

// dropExtra forgets loop variables and endpoint parameters.
func (ev *evaluation) dropExtra() {
	for name := range ev.extra {
		delete(ev.env, name)
	}
	clear(ev.extra)
}

// report records a rule error of this evaluation.
func (ev *evaluation) report(err error) {
	if ev.host != nil {
		ev.host.reportError(ev, err)
	}
}
