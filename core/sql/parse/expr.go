package parse

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// wantExpr is what errors call an expression.
const wantExpr = "EXPRESSION"

// nothing stands for an expression that could not be read.
var nothing ast.Expr = &ast.Literal{Written: "null"}

// expr reads an expression of any kind.
func (p *parser) expr() ast.Expr {
	if !p.enter() {
		return nothing
	}
	e := p.chain("or", p.and)
	p.depth--
	return e
}

func (p *parser) and() ast.Expr { return p.chain("and", p.not) }

// operand is an operand of AND or OR and where its text starts, parentheses included.
type operand struct {
	ast.Start
	expr ast.Expr
}

// chain reads operands with op between them into a balanced tree.
func (p *parser) chain(op string, one func() ast.Expr) ast.Expr {
	at := p.at()
	first := one()
	if !p.is(op) {
		return first
	}
	height := p.height
	all := []operand{{at, first}}
	for p.accept(op) {
		at = p.at()
		all = append(all, operand{at, one()})
		height = max(height, p.height)
	}
	p.nodes += len(all) - 2 // grow counts one
	p.grow(height + bits.Len(uint(len(all)-1)) - 1)
	return balanced(op, all)
}

// balanced joins operands. AND and OR are associative, also with NULL and when evaluation stops early from the left.
func balanced(op string, all []operand) ast.Expr {
	if len(all) == 1 {
		return all[0].expr
	}
	half := (len(all) + 1) / 2
	return &ast.Binary{Start: all[0].Start, Op: op, Written: op, L: balanced(op, all[:half]), R: balanced(op, all[half:])}
}

// not reads any number of NOT and a predicate.
func (p *parser) not() ast.Expr {
	var nots []ast.Start
	for p.is("not") && p.enter() {
		nots = append(nots, p.at())
		p.next()
	}
	e := p.predicate()
	for i := len(nots) - 1; i >= 0; i-- {
		e = &ast.Not{Start: nots[i], X: e}
		p.grow(p.height)
	}
	p.depth -= len(nots)
	return e
}

// predicate reads sums with comparisons and tests between them, from left to right.
func (p *parser) predicate() ast.Expr {
	at := p.at()
	e := p.sum()
	for p.err == nil {
		written := p.tok.text
		height := p.height
		if op := p.comparison(); op != "" {
			e = &ast.Binary{Start: at, Op: op, Written: written, L: e, R: p.sum()}
			p.grow(max(height, p.height))
			continue
		}
		tested := p.test(at, e)
		if tested == nil {
			break
		}
		p.grow(max(height, p.height))
		e = tested
	}
	return e
}

// comparison takes a comparison operator and returns its first spelling, "" if there is none.
func (p *parser) comparison() string {
	op := p.oneOf("=", "<>", "!=", "<", "<=", ">", ">=")
	if op == "!=" {
		return "<>"
	}
	return op
}

// test reads LIKE, REGEX, IN, BETWEEN or IS behind x; nil = there is none.
func (p *parser) test(at ast.Start, x ast.Expr) ast.Expr {
	negated := p.is("not")
	if negated {
		switch p.peek(1).word {
		case "like", "regex", "in", "between":
			p.next()
		default:
			return nil
		}
	}
	switch p.oneOf("like", "regex", "in", "between", "is") {
	case "like":
		l := &ast.Like{Start: at, Not: negated, X: x, Pattern: p.sum()}
		if p.accept("escape") {
			l.Escape = p.escape()
		}
		return l
	case "regex":
		return &ast.Regex{Start: at, Not: negated, X: x, Pattern: p.sum()}
	case "in":
		return p.in(&ast.In{Start: at, Not: negated, X: x})
	case "between":
		return p.between(&ast.Between{Start: at, Not: negated, X: x})
	case "is":
		is := &ast.IsNull{Start: at, Not: p.accept("not"), X: x}
		p.expect("null")
		return is
	}
	return nil
}

func (p *parser) escape() *ast.Literal {
	if p.tok.kind != text {
		p.noWay("STRING_LITERAL")
		return nil
	}
	l := p.stringLiteral()
	if utf8.RuneCountInString(l.Text) != 1 {
		p.fail(l.Errorf("Invalid escape character: '%s'. The escape character must be a character string of length 1", l.Text))
	}
	return l
}

// in reads what follows IN: a list, a call that makes a list, or the groups of an entity.
func (p *parser) in(e *ast.In) ast.Expr {
	if p.accept("(") {
		e.List = p.exprs()
		p.expect(")")
		return e
	}
	if w := p.tok.word; (w == "metrics" || w == "collection") && p.peek(1).is("(") {
		e.Set = p.call()
		return e
	}
	if p.tok.kind == word || p.tok.kind == quoted {
		n := p.name()
		if last := n.Parts[len(n.Parts)-1]; !last.Quoted && strings.EqualFold(last.Text, "groups") {
			e.Set = n
			p.height = 1
			return e
		}
		p.fail(ast.Errorf("Syntax error at line %d position %d: mismatched input '%s' expecting '('", n.Line, n.Column, escape(n.Token)))
		return e
	}
	p.unexpected("'('", func(t *token) bool { return t.is("(") })
	return e
}

// exprs reads expressions with commas between them; height is that of the highest.
func (p *parser) exprs() []ast.Expr {
	height := 0
	all := list(p, func() ast.Expr {
		e := p.expr()
		height = max(height, p.height)
		if _, ok := e.(*ast.Literal); ok {
			p.leaves--
			p.items++
		}
		return e
	})
	p.height = height
	return all
}

func (p *parser) between(e *ast.Between) ast.Expr {
	if p.is("(") && p.peek(1).is("select") {
		p.next()
		e.View = p.selection()
		p.expect(")")
		p.height = 1
		return e
	}
	e.Low, e.LowExcl = p.bound()
	height := p.height
	p.expect("and")
	e.High, e.HighExcl = p.bound()
	p.height = max(height, p.height)
	return e
}

func (p *parser) bound() (e ast.Expr, exclusive bool) {
	e = p.sum()
	exclusive = p.accept("excl")
	if !exclusive {
		p.accept("incl")
	}
	return e, exclusive
}

func (p *parser) sum() ast.Expr { return p.leftChain(p.term, "+", "-") }

func (p *parser) term() ast.Expr { return p.leftChain(p.unary, "*", "/", "%") }

// leftChain reads operands with one of ops between them; the tree leans to the left.
func (p *parser) leftChain(one func() ast.Expr, ops ...string) ast.Expr {
	at := p.at()
	e := one()
	for {
		height := p.height
		op := p.oneOf(ops...)
		if op == "" {
			return e
		}
		e = &ast.Binary{Start: at, Op: op, Written: op, L: e, R: one()}
		p.grow(max(height, p.height))
	}
}

// unary reads any number of signs and a primary expression.
func (p *parser) unary() ast.Expr {
	type sign struct {
		ast.Start
		op string
	}
	var signs []sign
	for (p.is("-") || p.is("+")) && p.enter() {
		signs = append(signs, sign{p.at(), p.tok.text})
		p.next()
	}
	e := p.primary()
	for i := len(signs) - 1; i >= 0; i-- {
		if l := smallest(e, signs[i].op); l != nil {
			l.Start = signs[i].Start
			e = l
			continue
		}
		e = &ast.Unary{Start: signs[i].Start, Op: signs[i].op, X: e}
		p.grow(p.height)
	}
	p.depth -= len(signs)
	return e
}

// smallest returns the literal of the smallest integer, whose digits alone are out of range; otherwise nil.
func smallest(e ast.Expr, sign string) *ast.Literal {
	if l, ok := e.(*ast.Literal); ok && sign == "-" && l.Written == "9223372036854775808" && l.Parens == 0 {
		return &ast.Literal{Kind: ast.Integer, Int: math.MinInt64, Float: math.MinInt64, Written: "-9223372036854775808"}
	}
	return nil
}

func (p *parser) primary() ast.Expr {
	p.height = 1
	p.leaves++
	at := p.at()
	switch {
	case p.tok.kind == text:
		return p.stringLiteral()
	case p.tok.kind == integer, p.tok.kind == decimal:
		return p.number()
	case p.accept("?"):
		return &ast.Placeholder{Start: at}
	case p.accept("("):
		e := p.expr()
		p.expect(")")
		if p.err == nil {
			ast.Enclose(e)
		}
		return e
	case p.tok.kind == word:
		return p.wordExpr(at)
	case p.tok.kind == quoted:
		return p.nameExpr()
	}
	p.noWay(wantExpr)
	return nothing
}

func (p *parser) stringLiteral() *ast.Literal {
	l := &ast.Literal{Start: p.at(), Kind: ast.String, Text: p.tok.unquote(), Written: p.tok.text}
	p.next()
	return l
}

func (p *parser) number() *ast.Literal {
	l := &ast.Literal{Start: p.at(), Kind: ast.Number, Written: p.tok.text}
	l.Float, _ = strconv.ParseFloat(p.tok.text, 64) // out of range: an infinity or 0, as everywhere
	if p.tok.kind == integer {
		if n, err := strconv.ParseInt(p.tok.text, 10, 64); err == nil {
			l.Kind, l.Int = ast.Integer, n
		}
	}
	p.next()
	return l
}

var constants = map[string]ast.LiteralKind{"null": ast.Null, "true": ast.True, "false": ast.False, "nan": ast.NaN}

// wordExpr reads an expression that begins with a word.
func (p *parser) wordExpr(at ast.Start) ast.Expr {
	w, written := p.tok.word, p.tok.text
	called, dotted := p.peek(1).is("("), p.peek(1).is(".")
	if kind, ok := constants[w]; ok {
		l := &ast.Literal{Start: at, Kind: kind, Written: written}
		if kind == ast.NaN {
			l.Float = math.NaN()
		}
		p.next()
		return l
	}
	switch {
	case w == "case":
		return p.caseExpr()
	case called && w == "cast":
		return p.cast()
	case called && w == "extract":
		return p.extract()
	case called && w == "period":
		return p.period(nil, at)
	case called && (functions[w] || !isReserved(w)):
		return p.call()
	case called:
	case dotted && !isReserved(w), columns[w]:
		return p.nameExpr()
	case dotted:
	case calendar[w]:
		p.next()
		return &ast.Calendar{Start: at, Name: w}
	case units[w]:
		p.next()
		return &ast.Unit{Start: at, Name: w}
	case w == "dbtimezone":
		p.next()
		return &ast.Call{Start: at, Name: w}
	case !isReserved(w):
		return p.nameExpr()
	}
	p.noWay(wantExpr)
	return nothing
}

// name reads a column. Behind a dot every word may stand, behind tags. also a text.
func (p *parser) name() *ast.Name {
	n := &ast.Name{Start: p.at(), Parts: []ast.Ident{p.ident()}}
	for p.accept(".") {
		before := &n.Parts[len(n.Parts)-1]
		switch {
		case len(n.Parts) == maxParts:
			p.syntax("a name has more than %d parts", maxParts)
			return n
		case p.tok.kind == word, p.tok.kind == quoted, p.tok.kind == text && strings.EqualFold(before.Text, "tags"):
			n.Parts = append(n.Parts, p.ident())
		default:
			p.noWay("IDENTIFIER")
			return n
		}
	}
	return n
}

// nameExpr reads a column, or the PERIOD of a table.
func (p *parser) nameExpr() ast.Expr {
	at := p.at()
	// Only a look ahead tells t.PERIOD( from a column.
	for i := 1; i < 2*maxParts && p.peek(i).is("."); i += 2 {
		if p.peek(i+1).is("period") && p.peek(i+2).is("(") {
			return p.tablePeriod(at)
		}
	}
	n := p.name()
	p.height = 1
	if p.is("(") && len(n.Parts) > 0 {
		p.noWay(wantExpr)
	}
	return n
}

func (p *parser) tablePeriod(at ast.Start) ast.Expr {
	table := ast.Ident{Start: at, Quoted: p.tok.kind == quoted}
	var parts []string
	for !(p.is("period") && p.peek(1).is("(")) {
		if p.tok.kind != word && p.tok.kind != quoted {
			p.noWay("IDENTIFIER")
			return nothing
		}
		parts = append(parts, p.ident().Text)
		p.expect(".")
	}
	table.Text = strings.Join(parts, ".")
	return p.period(&table, at)
}

// call reads a function with its arguments.
func (p *parser) call() ast.Expr {
	c := &ast.Call{Start: p.at(), Name: p.tok.word}
	p.next()
	p.expect("(")
	if p.accept(")") {
		return c
	}
	if p.is("*") && p.peek(1).is(")") {
		p.next()
		p.next()
		c.Star = true
		return c
	}
	c.Distinct = p.accept("distinct")
	height := 0
	c.Args = list(p, func() ast.Expr {
		e := p.argument()
		height = max(height, p.height)
		return e
	})
	p.expect(")")
	p.grow(height)
	return c
}

// argument reads an expression, a word that stands alone or a count of units.
func (p *parser) argument() ast.Expr {
	at := p.at()
	closed := func(n int) bool { return p.peek(n).is(",") || p.peek(n).is(")") }
	switch {
	case p.tok.kind == word && (units[p.tok.word] || arguments[p.tok.word]) && closed(1):
		w := &ast.Word{Start: at, Text: p.tok.word}
		p.next()
		p.height = 1
		return w
	case p.tok.kind == integer && units[p.peek(1).word] && closed(2):
		p.height = 1
		return &ast.Span{Interval: p.interval()}
	}
	return p.expr()
}

func (p *parser) caseExpr() ast.Expr {
	if !p.enter() {
		return nothing
	}
	c := &ast.Case{Start: p.at()}
	height := 0
	read := func(one func() ast.Expr) ast.Expr {
		e := one()
		height = max(height, p.height)
		return e
	}
	p.next()
	if !p.is("when") {
		c.X = read(p.expr)
	}
	for {
		p.expect("when")
		var w ast.When
		if c.X == nil {
			w.Conditions = []ast.Expr{read(p.expr)}
		} else {
			w.Conditions = []ast.Expr{read(p.and)}
			for p.accept("or") {
				w.Conditions = append(w.Conditions, read(p.and))
			}
		}
		p.expect("then")
		w.Then = read(p.expr)
		c.Whens = append(c.Whens, w)
		if !p.is("when") {
			break
		}
	}
	if p.accept("else") {
		c.Else = read(p.expr)
	}
	p.expect("end")
	p.depth--
	p.grow(height)
	return c
}

func (p *parser) cast() ast.Expr {
	c := &ast.Cast{Start: p.at(), Type: "number"}
	p.words("cast", "(")
	c.X = p.expr()
	if p.accept("as") {
		c.Written = p.tok.word
		var ok bool
		if c.Type, ok = castTypes[c.Written]; !ok {
			p.unexpected("{NUMBER, STRING, TIMESTAMP, INTEGER}", func(t *token) bool { return castTypes[t.word] != "" })
		}
		p.next()
	}
	p.expect(")")
	p.grow(p.height)
	return c
}

func (p *parser) extract() ast.Expr {
	e := &ast.Extract{Start: p.at()}
	p.words("extract", "(")
	if e.Part = p.tok.word; !units[e.Part] && !arguments[e.Part] {
		p.noWay("a part of a date")
	}
	p.next()
	p.expect("from")
	e.X = p.expr()
	height := p.height
	if p.accept(",") {
		e.Zone = p.expr()
	}
	p.expect(")")
	p.grow(max(height, p.height))
	return e
}
