package filter

import (
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Expr is a compiled expression. It is immutable and safe for concurrent use.
type Expr struct {
	source   string
	settings settings
	eval     eval
}

// Compiler compiles with what the surroundings offer. The zero Compiler has no functions beyond text and arithmetic, and reads dates in UTC.
type Compiler struct {
	Functions Functions
	Zone      *time.Location   // of dates without one; nil = UTC
	Now       func() core.Time // for calendar keywords; nil: they are errors
	Calendar  *dates.Calendar  // of working days where none is named; nil = Monday to Friday
	Calendars *dates.Calendars // those that an expression may name; nil = the built-in ones
}

// Compile compiles text with the zero Compiler.
func Compile(c Context, text string) (*Expr, error) { return Compiler{}.Compile(c, text) }

// Check reports what is wrong with text, as Compile does, but takes every function for available: requests are validated where there is no store to ask.
func Check(c Context, text string) error {
	root, err := parse(text)
	if err != nil {
		return err
	}
	s := settings{source: text, context: c, now: func() core.Time { return 0 }}
	_, err = (&compiler{settings: &s, allFunctions: true}).node(root)
	return err
}

// Compile parses and checks text. The error is a *SyntaxError where it has a place, and of code Invalid or TooLarge.
func (k Compiler) Compile(c Context, text string) (*Expr, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := settings{source: text, patterns: new(patterns), context: c, functions: k.Functions, zone: k.Zone, now: k.Now, calendar: k.Calendar, calendars: k.Calendars}
	f, err := (&compiler{settings: &s}).node(root)
	if err != nil {
		return nil, err
	}
	return &Expr{source: text, settings: s, eval: f}, nil
}

// String returns the text of the expression.
func (e *Expr) String() string { return e.source }

// Match reports whether the record fulfils the expression. The error says what could not be evaluated; the record does not match then.
func (e *Expr) Match(env Env) (bool, error) {
	v, err := e.value(env)
	return err == nil && v.truth(), err
}

// Refutes reports whether the expression gives false for the record: not null, no number or text, and nothing that cannot be evaluated.
func (e *Expr) Refutes(env Env) bool {
	v, err := e.value(env)
	return err == nil && v.kind == kindBool && !v.truth()
}

func (e *Expr) value(env Env) (Value, error) {
	r := run{settings: &e.settings, env: env}
	v := e.eval(&r)
	return v, r.err
}

// settings are shared by all evaluations of an expression.
type settings struct {
	source    string
	patterns  *patterns
	context   Context
	functions Functions
	zone      *time.Location
	now       func() core.Time
	calendar  *dates.Calendar
	calendars *dates.Calendars
}

// moment is what date texts are relative to. Without a clock, now is the start of time: relative dates are refused before (see date).
func (s *settings) moment() dates.Moment {
	m := dates.Moment{Zone: s.zone, Calendar: s.calendar}
	if s.now != nil {
		m.Now = s.now()
	}
	return m
}

// date reads a date text of a comparison.
func (s *settings) date(text string) (core.Time, error) {
	if text != "" && (text[0] < '0' || text[0] > '9') && s.now == nil {
		return 0, core.Errorf(core.Invalid, "'%s' needs a clock, which this filter does not have: use an ISO date", text)
	}
	t, err := s.moment().ParseLocal(strings.TrimSpace(text))
	if err != nil {
		return 0, core.Errorf(core.Invalid, "'%s' is not a date: use an ISO date, yyyy-MM-dd or a calendar expression", text)
	}
	return t, nil
}

// run is one evaluation.
type run struct {
	*settings
	env Env
	err error // first
}

func (r *run) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// entity is the name of the entity the record belongs to.
func (r *run) entity() string {
	if s := r.context.subject(); s != "" {
		return r.env.Lookup(s).text
	}
	return ""
}

// order compares two values; a text next to a date is read as a date.
func (r *run) order(a, b Value) ordering {
	if o, ok := orderClocks(a, b); ok {
		return o
	}
	switch {
	case a.kind == kindDate && b.kind == kindText:
		b = r.asDate(b)
	case b.kind == kindDate && a.kind == kindText:
		a = r.asDate(a)
	}
	return compare(a, b)
}

func (r *run) asDate(v Value) Value {
	if v.text == "" {
		return Null
	}
	t, err := r.date(v.text)
	r.note(err)
	return Date(t)
}
