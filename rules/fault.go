package rules

import (
	"fmt"
	"path"
	"strings"
)

// Fault is one thing wrong in a rule file.
type Fault struct {
	File     string
	Document int    // 1-based document within the file
	Name     string // of the rule, endpoint or collection, when known
	Field    string // path of the field, such as actions[1].params.text
	Line     int    // 1-based
	Column   int    // 1-based, in characters
	Text     string
	Excerpt  string // the line, and a caret under the place
}

// Error prints the fault over one to three lines:
//
//	cpu.yaml:14:21: document 2 (rule cpu-high), condition: unknown name avgg
//	  condition: 'avgg() > 80'
//	              ^
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: document %d", f.File, f.Line, f.Column, f.Document)
	if f.Name != "" {
		fmt.Fprintf(&b, " (%s)", f.Name)
	}
	if f.Field != "" {
		fmt.Fprintf(&b, ", %s", f.Field)
	}
	fmt.Fprintf(&b, ": %s", f.Text)
	if f.Excerpt != "" {
		b.WriteString("\n" + f.Excerpt)
	}
	return b.String()
}

// Faults are all faults of one load, in file order.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// source is one rule file, kept for excerpts.
type source struct {
	name  string // path relative to the rules directory
	lines []string
}

func newSource(name string, text []byte) *source {
	return &source{name: path.Clean(name), lines: strings.Split(string(text), "\n")}
}

// style says how a text was written, which decides where its characters lie in the file.
type style uint8

const (
	plain   style = iota // the text starts at the place
	quoted               // one character after it
	literal              // on the following lines, indented
	folded               // on the following lines, joined: only the first line is known
)

// place is where something stands in a file.
type place struct {
	src      *source
	document int
	name     string
	field    string
	line     int
	column   int
	style    style
}

// fault makes a Fault that points at p.
func (p place) fault(format string, args ...any) Fault {
	f := Fault{Document: p.document, Name: p.name, Field: p.field, Line: p.line, Column: p.column, Text: fmt.Sprintf(format, args...)}
	if p.src != nil {
		f.File = p.src.name
		f.Excerpt = p.src.excerpt(p.line, p.column)
	}
	return f
}

// inside returns the place of a character of the text that starts at p. Line is 1-based and column 0-based, as expr counts them.
func (p place) inside(line, column int) place {
	switch p.style {
	case literal:
		p.column = p.src.indent(p.line+1) + column + 1
		p.line += line
	case folded:
	case quoted:
		p.column++
		fallthrough
	default:
		if line == 1 {
			p.column += column
		}
	}
	return p
}

// documentText returns the whole document that p lies in, from its `---`, which is added where it is missing, to the next one.
func (p place) documentText() string {
	if p.src == nil {
		return ""
	}
	lines := p.src.lines
	from, to := min(max(p.line-1, 0), len(lines)-1), p.line
	for from > 0 && !strings.HasPrefix(lines[from], "---") {
		from--
	}
	for to < len(lines) && !strings.HasPrefix(lines[to], "---") {
		to++
	}
	text := strings.Join(lines[from:to], "\n")
	if !strings.HasPrefix(text, "---") {
		text = "---\n" + text
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

func (s *source) indent(line int) int {
	if s == nil || line < 1 || line > len(s.lines) {
		return 0
	}
	text := s.lines[line-1]
	return len(text) - len(strings.TrimLeft(text, " "))
}

// excerptWidth keeps an excerpt on one line of a terminal.
const excerptWidth = 100

func (s *source) excerpt(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	text := []rune(strings.ReplaceAll(strings.TrimRight(s.lines[line-1], "\r"), "\t", " "))
	from := max(0, min(column-1-excerptWidth/2, len(text)-excerptWidth))
	to := min(len(text), from+excerptWidth)
	caret := max(0, min(column-1, len(text))-from)
	return "  " + string(text[from:to]) + "\n  " + strings.Repeat(" ", caret) + "^"
}
