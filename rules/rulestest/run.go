package rulestest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/rules"
)

// Report is the outcome of a run.
type Report struct {
	Files    int
	Tests    int
	Steps    int
	Failures []Failure
}

// OK reports whether everything was as expected.
func (r Report) OK() bool { return len(r.Failures) == 0 }

// String lists the failures, and counts.
func (r Report) String() string {
	var b strings.Builder
	for _, f := range r.Failures {
		b.WriteString(f.String() + "\n")
	}
	fmt.Fprintf(&b, "%d files, %d tests, %d steps, %d failures\n", r.Files, r.Tests, r.Steps, len(r.Failures))
	return b.String()
}

// Failure is one step that did not go as expected.
type Failure struct {
	File string
	Line int
	Test string // name, for tests of rule documents
	Step string
	Want []string
	Got  []string
}

// String prints the step and a diff, `-` for what was expected and `+` for what happened.
func (f Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	if f.Test != "" {
		b.WriteString(f.Test + ": ")
	}
	b.WriteString(f.Step)
	same := 0
	for same < len(f.Want) && same < len(f.Got) && f.Want[same] == f.Got[same] {
		b.WriteString("\n    " + f.Want[same])
		same++
	}
	for _, w := range f.Want[same:] {
		b.WriteString("\n  - " + w)
	}
	if len(f.Want) == 0 {
		b.WriteString("\n  - nothing")
	}
	for _, g := range f.Got[same:] {
		b.WriteString("\n  + " + g)
	}
	if len(f.Got) == 0 {
		b.WriteString("\n  + nothing")
	}
	return b.String()
}

// runner is one sandbox with its engine.
type runner struct {
	files  fs.FS
	date   string // yyyy-MM-dd
	zone   *time.Location
	box    *Sandbox
	engine *rules.Engine
	traces []rules.Trace
}

type effect struct {
	time core.Time
	text string
}

// begin makes the sandbox; the engine starts with the first step, so that entities and stored records come before it.
func (r *runner) begin() error {
	start, err := r.parseClock("00:00")
	if err != nil {
		return fmt.Errorf("date %q: write yyyy-MM-dd", r.date)
	}
	r.box = NewSandbox(start)
	return nil
}

func (r *runner) open() error {
	engine, err := rules.Open(context.Background(), rules.Config{Log: r.box, Ingest: r.box, Reader: r.box, Catalog: r.box, Metadata: r.box, Clock: r.box.Now, Zone: r.zone,
		Files: r.files, NoDelivery: true, Trace: func(t rules.Trace) { r.traces = append(r.traces, t) }})
	if err != nil {
		return err
	}
	if faults := engine.Faults(); len(faults) > 0 {
		return faults
	}
	r.engine = engine
	return nil
}

// entity reads NAME [label:TEXT] [group:NAME] [tag=value].
func (r *runner) entity(text string) error {
	if r.box == nil {
		return errors.New("the date comes first")
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return errors.New("write: entity NAME tag=value")
	}
	e := core.NewEntity(strings.ToLower(words[0]), 0)
	e.Tags = map[string]string{}
	var groups []string
	for _, w := range words[1:] {
		if label, ok := strings.CutPrefix(w, "label:"); ok {
			e.Label = strings.Trim(label, `"`)
		} else if g, ok := strings.CutPrefix(w, "group:"); ok {
			groups = append(groups, g)
		} else if name, value, ok := strings.Cut(w, "="); ok {
			e.Tags[strings.ToLower(name)] = value
		} else {
			return fmt.Errorf("entity: %q is neither label:, group: nor tag=value", w)
		}
	}
	r.box.AddEntity(e, groups...)
	return nil
}

// store puts a record into the store without showing it to rules.
func (r *runner) store(text string) error {
	if r.box == nil {
		return errors.New("the date comes first")
	}
	b, err := r.parse(text)
	if err != nil {
		return err
	}
	_, err = r.box.Append(context.Background(), b)
	return err
}

func (r *runner) parse(commands ...string) (*core.Batch, error) {
	p := command.Parser{Received: r.box.Now()}
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for _, c := range commands {
		if err := p.Line(b, []byte(strings.TrimSpace(c))); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// step moves the clock, does what the command says, and returns the effects since the last step.
func (r *runner) step(at, text string) ([]effect, error) {
	if r.box == nil {
		return nil, errors.New("the date comes before the first step")
	}
	when, err := r.parseClock(at)
	if err != nil {
		return nil, err
	}
	if when < r.box.Now() {
		return nil, fmt.Errorf("time %s lies before the step above", at)
	}
	switch text = strings.TrimSpace(text); text {
	case "tick":
		err = r.insert(when)
	case "restart":
		if err = r.insert(when); err == nil {
			r.engine = nil
			err = r.insert(when)
		}
	default:
		err = r.insert(when, strings.Split(text, " & ")...)
	}
	var out []effect
	for _, t := range r.traces {
		for _, e := range effectsOf(t) {
			out = append(out, effect{t.Time, e})
		}
	}
	return out, err
}

// insert advances to a time, one whole second after the other, and then inserts the commands.
func (r *runner) insert(when core.Time, commands ...string) error {
	if r.engine == nil {
		if len(r.traces) == 0 {
			r.box.SetClock(when)
		}
		if err := r.open(); err != nil {
			return err
		}
	}
	r.traces = r.traces[:0]
	r.box.SetClock(when)
	if err := r.engine.Advance(context.Background()); err != nil {
		return err
	}
	if len(commands) == 0 {
		return nil
	}
	b, err := r.parse(commands...)
	if err != nil {
		return err
	}
	if _, err := r.box.Append(context.Background(), b); err != nil {
		return err
	}
	return r.engine.Advance(context.Background())
}
