package expr

import (
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// moment is what calendar expressions and local dates are relative to.
func (e *Env) moment() dates.Moment {
	if e == nil {
		return dates.Moment{}
	}
	return dates.Moment{Now: e.Now, Zone: e.zone(), Calendar: e.Calendars.Default(), Calendars: e.Calendars}
}

// zone returns the zone of the query.
func (e *Env) zone() *time.Location {
	if e == nil || e.Zone == nil {
		return time.UTC
	}
	return e.Zone
}

// literal reads a text where a time is expected: an ISO date, or a local one in the zone of the query.
func (e *Env) literal(text string) (core.Time, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' { // keywords are no literals
		return 0, false
	}
	t, err := e.moment().ParseLiteral(text)
	return t, err == nil
}

// Literal is a constant as it is written, which remembers where for errors about it.
func Literal(l *ast.Literal) Node {
	v := column.NullValue
	switch l.Kind {
	case ast.True, ast.False:
		v = column.BoolValue(l.Kind == ast.True)
	case ast.NaN:
		v = column.FloatValue(column.Double, nan)
	case ast.Integer:
		v = column.IntValue(column.Bigint, l.Int)
	case ast.Number:
		v = column.FloatValue(column.Double, l.Float)
	case ast.String:
		v = column.TextValue(l.Text)
	}
	c := &constant{kind: v.Type, value: v, at: &l.Start}
	if l.Kind == ast.Number {
		if _, ok := column.ParseValue(l.Written).Decimal(); ok {
			c.digits = l.Written
		}
	}
	return c
}

// instant is a date argument as Unix milliseconds.
type instant struct {
	x   Node
	at  ast.Start
	out result
}

// Instant is x where a date is expected: an instant, Unix milliseconds, or a text in the forms of date literals; its type is Bigint. Fractions of milliseconds are
// cut, Infinity is the last instant there is, and NaN is NULL, as is a text of a column that is no date. A literal that is no date is an error.
func Instant(x Node, at ast.Start) Node {
	if c, ok := x.(*constant); ok && c.at != nil {
		at = *c.at
	}
	return fold(&instant{x: x, at: at})
}

func (n *instant) Type() column.Type { return column.Bigint }
func (n *instant) Clone() Node       { return &instant{x: n.x.Clone(), at: n.at} }
func (n *instant) operands() []Node  { return []Node{n.x} }
func (n *instant) own() trait {
	if t := n.x.Type(); t == column.String || t == column.Object {
		return usesEnv | mayFail
	}
	return 0
}

func (n *instant) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	return n.instants(env, x, in.Len)
}

func (n *instant) instants(env *Env, x *column.Vector, batch int) (*column.Vector, error) {
	rows, constant := rowsOf(batch, x)
	n.out.header(column.Bigint, batch, constant)
	switch {
	case x.Type == column.Null || x.Type == column.Boolean:
		return n.out.allNull(batch), nil
	case x.Ints != nil:
		n.out.v.Ints, n.out.v.Nulls = x.Ints, x.Nulls
		return &n.out.v, nil
	}
	n.out.uniteVector(rows, x)
	dst := n.out.makeInts(rows)
	last, known := "", false // the text before, whose instant is the one before
	for i := range dst {
		if n.out.skip(i) {
			known = false
			continue
		}
		if x.Strings != nil && known && x.Strings[i] == last {
			dst[i] = dst[i-1]
			continue
		}
		t, ok, err := n.single(env, x.Value(i))
		if err != nil {
			return nil, err
		}
		if dst[i] = t; !ok {
			n.out.makeNulls(rows)[i] = true
		}
		if known = ok && x.Strings != nil; known {
			last = x.Strings[i]
		}
	}
	return &n.out.v, nil
}

// single reads one value; ok is false for one that is no instant.
func (n *instant) single(env *Env, v column.Value) (t int64, ok bool, err error) {
	switch {
	case v.Type == column.String:
		at, ok := env.literal(v.Text)
		if _, written := constantOf(n.x); written && !ok {
			return 0, false, n.at.Errorf("Invalid date value: '%s'", v.Text)
		}
		return int64(at), ok, nil
	case v.Whole || v.Type == column.Timestamp:
		return v.Int, true, nil
	}
	f := v.Number()
	return calc.Saturated(f), f == f, nil
}

// calendar is a keyword such as current_day.
type calendar struct {
	word dates.Expr
	kind column.Type
	out  constant
}

// Calendar is a keyword for an instant: Bigint, or Timestamp for current_timestamp.
func Calendar(keyword string, at ast.Start) (Node, error) {
	n := &calendar{kind: column.Bigint}
	if keyword == "current_timestamp" {
		keyword, n.kind = "now", column.Timestamp
	}
	word, err := dates.ParseExpr(keyword)
	if err != nil {
		return nil, at.Errorf("Invalid date value: '%s'", keyword)
	}
	n.word = word
	return n, nil
}

func (n *calendar) Type() column.Type { return n.kind }
func (n *calendar) Clone() Node       { return &calendar{word: n.word, kind: n.kind} }
func (n *calendar) operands() []Node  { return nil }
func (n *calendar) own() trait        { return usesEnv }

func (n *calendar) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	n.out = constant{kind: n.kind, value: column.IntValue(n.kind, int64(n.word.Eval(env.moment())))}
	return n.out.Eval(env, in)
}

// shift moves an instant by units of time in the zone of the query.
type shift struct {
	x    Node
	by   dates.Interval
	kind column.Type
	out  result
}

// Shift is x, an instant or Unix milliseconds, plus units of time, and minus for a negative count: now - 2*day. Its type is Timestamp or Bigint, as that of x.
func Shift(x Node, by dates.Interval) Node {
	kind := column.Bigint
	if x.Type() == column.Timestamp {
		kind = column.Timestamp
	}
	return &shift{x: Instant(x, ast.Start{}), by: by, kind: kind}
}

func (n *shift) Type() column.Type { return n.kind }
func (n *shift) Clone() Node       { return &shift{x: n.x.Clone(), by: n.by, kind: n.kind} }
func (n *shift) operands() []Node  { return []Node{n.x} }
func (n *shift) own() trait        { return usesEnv }

func (n *shift) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	if x.Type == column.Null {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, x)
	n.out.header(n.kind, in.Len, constant)
	n.out.uniteVector(rows, x)
	zone := env.zone()
	dst := n.out.makeInts(rows)
	for i, t := range x.Ints[:rows] {
		dst[i] = int64(n.by.After(core.Time(t), zone))
	}
	return &n.out.v, nil
}

// span is a count and a unit as an argument.
type span struct {
	constant
	interval dates.Interval
}

// Span is a count of units as an argument of a function: 15 MINUTE.
func Span(v dates.Interval) Node {
	return &span{constant{kind: column.String, value: column.TextValue(v.String())}, v}
}

func (n *span) Clone() Node { return Span(n.interval) }
