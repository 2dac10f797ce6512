package rulestest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/rules"
)

// script is a parsed trace.
type script struct {
	name  string
	fixed bool
	lines []line
	files fstest.MapFS
	tail  string // the files as written, for rewriting
}

// line is a step, or any other line, which is kept as it is.
type line struct {
	number  int
	text    string // without its effects
	step    bool
	at      string
	command string
	effects []string // nil for lines that are no steps
}

func parseScript(name, text string) (*script, error) {
	s := &script{name: name, fixed: strings.HasPrefix(text, "# fixed"), files: fstest.MapFS{}}
	head, rest := text, ""
	if i := strings.Index("\n"+text, "\n-- "); i >= 0 {
		head, rest = text[:i], text[i:]
	}
	s.tail = rest
	for i, raw := range strings.Split(strings.TrimRight(head, "\n"), "\n") {
		effect, more := strings.CutPrefix(strings.TrimSpace(raw), "-> ")
		switch {
		case more && strings.HasPrefix(raw, " "):
			if len(s.lines) == 0 || !s.lines[len(s.lines)-1].step {
				return nil, fmt.Errorf("%s:%d: an effect without a step", name, i+1)
			}
			last := &s.lines[len(s.lines)-1]
			last.effects = append(last.effects, effect)
		case strings.HasPrefix(raw, "at "):
			l := line{number: i + 1, step: true, effects: []string{}}
			l.text = raw
			if j := strings.LastIndex(raw, " -> "); j >= 0 {
				l.text = raw[:j]
				if e := strings.TrimSpace(raw[j+4:]); e != "nothing" {
					l.effects = append(l.effects, e)
				}
			}
			l.text = strings.TrimSpace(l.text)
			var ok bool
			if l.at, l.command, ok = strings.Cut(strings.TrimPrefix(l.text, "at "), " "); !ok {
				return nil, fmt.Errorf("%s:%d: write: at TIME COMMAND -> EFFECT", name, i+1)
			}
			s.lines = append(s.lines, l)
		default:
			s.lines = append(s.lines, line{number: i + 1, text: raw})
		}
	}
	for _, part := range strings.Split("\n"+rest, "\n-- ")[1:] {
		file, body, ok := strings.Cut(part, " --\n")
		if !ok {
			return nil, fmt.Errorf("%s: write file headers as -- NAME --", name)
		}
		s.files[file] = &fstest.MapFile{Data: []byte(body + "\n")}
	}
	return s, nil
}

// run executes the script and returns its lines with the effects that happened, ticks included.
func (s *script) run() ([]line, error) {
	r := &runner{files: s.files, zone: time.UTC}
	var out []line
	for _, l := range s.lines {
		if !l.step {
			if err := r.directive(l.text); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", s.name, l.number, err)
			}
			out = append(out, l)
			continue
		}
		got, err := r.step(l.at, l.command)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", s.name, l.number, err)
		}
		var own []string
		at := r.box.Now()
		for _, e := range got {
			if e.time == at {
				own = append(own, e.text)
				continue
			}
			out = appendTick(out, e, r)
		}
		l.effects = own
		out = append(out, l)
	}
	return out, nil
}

// appendTick adds an effect of a tick that no step names.
func appendTick(out []line, e effect, r *runner) []line {
	at := r.clockText(e.time)
	if n := len(out); n > 0 && out[n-1].step && out[n-1].number == 0 && out[n-1].at == at {
		out[n-1].effects = append(out[n-1].effects, e.text)
		return out
	}
	return append(out, line{step: true, at: at, command: "tick", text: "at " + at + " tick", effects: []string{e.text}})
}

// directive handles the lines before the steps.
func (r *runner) directive(text string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch word {
	case "", "#":
		return nil
	case "date":
		r.date = rest
		return r.begin()
	case "zone":
		zone, err := time.LoadLocation(rest)
		r.zone = zone
		return err
	case "entity":
		return r.entity(rest)
	case "store":
		return r.store(rest)
	}
	if strings.HasPrefix(word, "#") {
		return nil
	}
	return fmt.Errorf("unknown line %q: date, zone, entity, store or at", word)
}

// print writes lines as a script.
func (s *script) print(lines []line) string {
	const width = 150
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		switch {
		case !l.step:
		case len(l.effects) == 0:
			b.WriteString(" -> nothing")
		case len(l.effects) == 1 && len(l.text)+len(l.effects[0]) < width:
			b.WriteString(" -> " + l.effects[0])
		default:
			b.WriteString("\n  -> " + strings.Join(l.effects, "\n  -> "))
		}
		b.WriteByte('\n')
	}
	return b.String() + s.tail
}

// compare lists the steps whose effects differ.
func (s *script) compare(got []line) []Failure {
	var out []Failure
	want := slices.DeleteFunc(slices.Clone(s.lines), func(l line) bool { return !l.step })
	got = slices.DeleteFunc(slices.Clone(got), func(l line) bool { return !l.step })
	i := 0
	for _, g := range got {
		if g.number == 0 {
			out = append(out, Failure{File: s.name, Line: next(want, i), Step: g.text + " (not in the file)", Got: g.effects})
			continue
		}
		w := want[i]
		i++
		if !slices.EqualFunc(w.effects, g.effects, sameEffect) {
			out = append(out, Failure{File: s.name, Line: w.number, Step: w.text, Want: w.effects, Got: g.effects})
		}
	}
	return out
}

// sameEffect takes `...` at the end of an expected error for any rest: its wording may belong to another package.
func sameEffect(want, got string) bool {
	if start, open := strings.CutSuffix(want, "..."); open && strings.HasPrefix(want, "error ") {
		return strings.HasPrefix(got, start)
	}
	return want == got
}

func next(want []line, i int) int {
	if i < len(want) {
		return want[i].number
	}
	return 0
}

// Rewrite replaces the expectations of a trace by what happens. It refuses files that start with `# fixed`.
func Rewrite(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, err := parseScript(file, string(text))
	if err != nil {
		return err
	}
	if s.fixed {
		return fmt.Errorf("%s is fixed: its expectations are not the program's to write", file)
	}
	got, err := s.run()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(s.print(got)), 0o644)
}

// Run runs every test in the files and reports what failed. The error is for files that cannot be read or understood.
func Run(files []string) (Report, error) {
	var r Report
	for _, file := range files {
		r.Files++
		var err error
		if filepath.Ext(file) == ".rules" {
			err = r.script(file)
		} else {
			err = r.ruleFile(file)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Report) script(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, err := parseScript(file, string(text))
	if err != nil {
		return err
	}
	got, err := s.run()
	if err != nil {
		return err
	}
	r.Tests++
	for _, l := range s.lines {
		if l.step {
			r.Steps++
		}
	}
	r.Failures = append(r.Failures, s.compare(got)...)
	return nil
}

func effectsOf(t rules.Trace) []string {
	var out []string
	if t.Cause == "error" {
		return []string{"error " + t.Rule + " " + t.Error}
	}
	if (t.Before != core.StatusCancel || t.After != core.StatusCancel) && t.Cause != "delay" {
		text := fmt.Sprintf("alert %s %s %s %s rc=%d", t.Rule, t.Entity, t.After, t.Severity, t.RepeatCount)
		if t.After == core.StatusOpen {
			text += fmt.Sprintf(" id=%d", t.AlertID)
		}
		if len(t.Tags) > 0 {
			text += " " + tagText(t.Tags)
		}
		if t.State != "" && t.After != core.StatusCancel {
			text += " " + t.State
		}
		out = append(out, text)
	}
	if row := t.History; row != nil {
		text := fmt.Sprintf("history %s %s %s", row.Type, row.Severity, row.Text)
		if row.Type == core.StatusCancel {
			text += fmt.Sprintf(" duration=%d", row.Received-row.OpenTime)
		}
		out = append(out, text)
	}
	for _, a := range t.Actions {
		for _, q := range a.Requests {
			text := strings.TrimRight("action "+a.Name+" "+q.Method+" "+q.URL+" "+q.Body, " ")
			if q.User != "" {
				text += " user=" + q.User
			}
			out = append(out, text)
		}
		if a.Kind != "webhook" {
			out = append(out, "action "+a.Name+" "+strings.ReplaceAll(strings.TrimSpace(a.Text), "\n", " & "))
		}
	}
	return out
}

func tagText(tags core.Tags) string {
	parts := make([]string, len(tags))
	for i, t := range tags {
		parts[i] = t.Name + "=" + t.Value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (r *runner) clockText(t core.Time) string {
	text := t.Std().In(r.zone).Format("15:04:05.000")
	return strings.TrimSuffix(text, ".000")
}

// parseClock reads HH:mm[:ss[.SSS]] on the date of the runner.
func (r *runner) parseClock(text string) (core.Time, error) {
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	return dates.Moment{Zone: r.zone}.ParseLocal(r.date + "T" + text)
}
