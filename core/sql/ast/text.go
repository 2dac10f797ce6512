package ast

import (
	"strconv"
	"strings"
)

// Text returns the normal form of an expression: functions and keywords in lower case, one blank behind commas and around binary operators, names as written
// but without quotes, literals and parentheses as written. It is what labels show. Its cost is linear.
func Text(e Expr) string {
	p := printer{}
	p.expr(e, lowest)
	return p.String()
}

// Key returns a text that is equal for expressions that say the same: Text with names in lower case, one spelling of each operator and literal, and
// only the parentheses that are needed. Grouping compares by it.
func Key(e Expr) string {
	p := printer{canonical: true}
	p.expr(e, lowest)
	return p.String()
}

// NameText returns the name with dots between its parts and without quotes.
func NameText(parts []Ident) string {
	if len(parts) == 1 {
		return parts[0].Text
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Text
	}
	return strings.Join(texts, ".")
}

// Enclose notes that e stands in one more pair of parentheses.
func Enclose(e Expr) {
	if s, ok := e.(interface{ enclose() }); ok {
		s.enclose()
	}
}

func (s *Start) enclose() { s.Parens++ }

// Levels of precedence, from the one that binds least. Operands of a lower level than their place needs stand in parentheses.
const (
	lowest = iota
	levelOr
	levelAnd
	levelNot
	levelTest // comparisons, LIKE, IN, BETWEEN, IS
	levelSum
	levelTerm
	levelSign
	levelPrimary
)

var binaryLevels = map[string]int{"or": levelOr, "and": levelAnd, "+": levelSum, "-": levelSum, "*": levelTerm, "/": levelTerm, "%": levelTerm}

func level(e Expr) int {
	switch e := e.(type) {
	case *Binary:
		if l, ok := binaryLevels[e.Op]; ok {
			return l
		}
		return levelTest
	case *Not:
		return levelNot
	case *Like, *Regex, *In, *IsNull, *Between:
		return levelTest
	case *Unary:
		return levelSign
	}
	return levelPrimary
}

// printer writes expressions.
type printer struct {
	strings.Builder
	canonical bool
}

// expr writes e where at least the level need is wanted.
func (p *printer) expr(e Expr, need int) {
	parens := 0
	if !p.canonical {
		parens = e.At().Parens
	}
	if parens == 0 && level(e) < need {
		parens = 1
	}
	for range parens {
		p.WriteByte('(')
	}
	p.bare(e)
	for range parens {
		p.WriteByte(')')
	}
}

// bare writes e without parentheses around it.
func (p *printer) bare(e Expr) {
	switch e := e.(type) {
	case *Literal:
		p.literal(e)
	case *Name:
		p.name(e.Parts)
	case *Star:
		for _, part := range e.Parts {
			p.name([]Ident{part})
			p.WriteByte('.')
		}
		p.WriteByte('*')
	case *Unary:
		p.unary(e)
	case *Binary:
		p.binary(e)
	case *Not:
		p.WriteString("not ")
		p.expr(e.X, levelNot)
	case *Like:
		p.test(e.X, nots[e.Not]+" like ")
		p.expr(e.Pattern, levelSum)
		if e.Escape != nil {
			p.WriteString(" escape ")
			p.literal(e.Escape)
		}
	case *Regex:
		p.test(e.X, nots[e.Not]+" regex ")
		p.expr(e.Pattern, levelSum)
	case *In:
		p.in(e)
	case *IsNull:
		p.test(e.X, " is"+nots[e.Not]+" null")
	case *Between:
		p.between(e)
	case *Case:
		p.caseExpr(e)
	case *Cast:
		p.WriteString("cast(")
		p.expr(e.X, lowest)
		p.castType(e)
		p.WriteByte(')')
	case *Extract:
		p.WriteString("extract(" + e.Part + " from ")
		p.expr(e.X, lowest)
		if e.Zone != nil {
			p.WriteString(", ")
			p.expr(e.Zone, lowest)
		}
		p.WriteByte(')')
	case *Call:
		p.call(e)
	case *Word:
		p.WriteString(e.Text)
	case *Span:
		p.interval(e.Interval)
	case *Unit:
		p.WriteString(e.Name)
	case *Calendar:
		p.WriteString(e.Name)
	case *Period:
		p.period(e)
	case *Placeholder:
		p.WriteByte('?')
	}
}

func (p *printer) literal(l *Literal) {
	written := l.Written
	if p.canonical || written == "" {
		switch l.Kind {
		case String:
			written = quote(l.Text)
		case Integer:
			written = strconv.FormatInt(l.Int, 10)
		case Number:
			written = strconv.FormatFloat(l.Float, 'g', -1, 64)
		}
	}
	switch l.Kind {
	case Null:
		written = "null"
	case True:
		written = "true"
	case False:
		written = "false"
	case NaN:
		if p.canonical || written == "" {
			written = "NaN"
		}
	}
	p.WriteString(written)
}

var quotes = strings.NewReplacer(`'`, `''`, `\\`, `\\\\`, `""`, `""""`)

// quote writes a text literal that reads back as s. Pairs that a literal would join are doubled; those that a single character forms with its neighbour
// through doubling do not arise, as the replacement goes from left to right.
func quote(s string) string { return "'" + quotes.Replace(s) + "'" }

func (p *printer) name(parts []Ident) {
	s := NameText(parts)
	if p.canonical {
		s = strings.ToLower(s)
	}
	p.WriteString(s)
}

func (p *printer) unary(e *Unary) {
	p.WriteString(e.Op)
	// Two signs must not become a comment.
	switch x := e.X.(type) {
	case *Unary:
		if p.canonical || x.Parens == 0 {
			p.WriteByte(' ')
		}
	case *Literal:
		if strings.HasPrefix(x.Written, "-") && x.Parens == 0 {
			p.WriteByte(' ')
		}
	}
	p.expr(e.X, levelSign)
}

// binary writes chains that lean to the left. AND in AND needs no parentheses on either side.
func (p *printer) binary(e *Binary) {
	own := level(e)
	right := own + 1
	if own <= levelAnd {
		right = own
	}
	op := e.Written
	if p.canonical || op == "" || own <= levelAnd {
		op = e.Op
	}
	p.expr(e.L, own)
	p.WriteString(" " + op + " ")
	p.expr(e.R, right)
}

// nots is what a negation writes.
var nots = map[bool]string{true: " not"}

// test writes the left side and the keywords of a test.
func (p *printer) test(x Expr, keywords string) {
	p.expr(x, levelTest)
	p.WriteString(keywords)
}

func (p *printer) list(all []Expr) {
	for i, e := range all {
		if i > 0 {
			p.WriteString(", ")
		}
		p.expr(e, lowest)
	}
}

func (p *printer) in(e *In) {
	p.test(e.X, nots[e.Not]+" in ")
	if e.Set != nil {
		p.expr(e.Set, levelPrimary)
		return
	}
	p.WriteByte('(')
	p.list(e.List)
	p.WriteByte(')')
}

func (p *printer) between(e *Between) {
	p.test(e.X, nots[e.Not]+" between ")
	if e.View != nil {
		p.WriteString("(select ...)")
		return
	}
	p.expr(e.Low, levelSum)
	if e.LowExcl {
		p.WriteString(" excl")
	}
	p.WriteString(" and ")
	p.expr(e.High, levelSum)
	if e.HighExcl {
		p.WriteString(" excl")
	}
}

func (p *printer) caseExpr(e *Case) {
	p.WriteString("case ")
	need := lowest
	if e.X != nil {
		p.expr(e.X, lowest)
		p.WriteByte(' ')
		need = levelAnd // OR lists alternatives
	}
	for _, w := range e.Whens {
		p.WriteString("when ")
		for i, c := range w.Conditions {
			if i > 0 {
				p.WriteString(" or ")
			}
			p.expr(c, need)
		}
		p.WriteString(" then ")
		p.expr(w.Then, lowest)
		p.WriteByte(' ')
	}
	if e.Else != nil {
		p.WriteString("else ")
		p.expr(e.Else, lowest)
		p.WriteByte(' ')
	}
	p.WriteString("end")
}

func (p *printer) castType(e *Cast) {
	t := e.Written
	if p.canonical {
		t = e.Type
	}
	if t != "" {
		p.WriteString(" as " + t)
	}
}

// bareCalls are the functions that have no parentheses.
var bareCalls = map[string]bool{"dbtimezone": true}

func (p *printer) call(e *Call) {
	p.WriteString(e.Name)
	if bareCalls[e.Name] && len(e.Args) == 0 {
		return
	}
	p.WriteByte('(')
	if e.Distinct {
		p.WriteString("distinct ")
	}
	if e.Star {
		p.WriteByte('*')
	}
	p.list(e.Args)
	p.WriteByte(')')
}

func (p *printer) interval(i Interval) {
	p.WriteString(strconv.FormatInt(i.Count, 10) + " " + i.Unit)
}

var (
	fillNames  = map[Fill]string{FillPrevious: "previous", FillNext: "next", FillLinear: "linear"}
	alignNames = map[Align]string{AlignStart: "start_time", AlignEnd: "end_time", AlignFirst: "first_value_time"}
)

// period writes the options that differ from the default, in a fixed order.
func (p *printer) period(e *Period) {
	if e.Table != nil {
		p.name([]Ident{*e.Table})
		p.WriteByte('.')
	}
	p.WriteString("period(")
	p.interval(e.Step)
	option := func(s string) {
		if s != "" {
			p.WriteString(", " + s)
		}
	}
	option(fillNames[e.Fill])
	if e.Fill == FillValue {
		option("value " + strconv.FormatFloat(e.Number, 'f', -1, 64))
	}
	if e.Extend {
		option("extend")
	}
	option(alignNames[e.Align])
	if e.Zone != nil {
		p.WriteString(", ")
		p.expr(e.Zone, lowest)
	}
	p.WriteByte(')')
}
