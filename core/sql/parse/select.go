package parse

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// selection reads a SELECT. Errors inside repeat its text from the clause they are in.
func (p *parser) selection() *ast.Select {
	outer := p.clause
	defer func() { p.clause = outer }()
	if !p.enter() {
		return nil
	}
	defer func() { p.depth-- }()

	p.clause = p.tok.from
	s := &ast.Select{Start: p.at()}
	p.expect("select")
	s.Distinct = p.accept("distinct")
	s.Items = list(p, p.item)
	if p.accept("from") {
		s.From = p.source()
		for p.joinAhead() {
			s.Joins = append(s.Joins, p.join())
		}
	}
	if p.begin("where") {
		s.Where = p.expr()
	}
	p.with(s)
	if p.begin("group") {
		p.expect("by")
		s.GroupBy = list(p, p.expr)
	}
	if p.begin("having") {
		s.Having = p.expr()
	}
	p.with(s)
	if p.begin("order") {
		s.OrderBy = p.orderBy()
	}
	if p.begin("limit") {
		s.Limit = p.limit()
	}
	for p.begin("option") {
		p.option()
	}
	return s
}

// begin takes the first keyword of a clause.
func (p *parser) begin(keyword string) bool {
	if p.is(keyword) {
		p.clause = p.tok.from
	}
	return p.accept(keyword)
}

// list reads one or more things with commas between them.
func list[T any](p *parser, one func() T) []T {
	all := []T{one()}
	for p.accept(",") {
		all = append(all, one())
	}
	return all
}

func (p *parser) item() ast.Item {
	if p.starAhead() {
		return ast.Item{Expr: p.star()}
	}
	return ast.Item{Expr: p.expr(), Alias: p.alias()}
}

// starAhead reports whether an expansion begins here: * or names with dots that end in one.
func (p *parser) starAhead() bool {
	if p.tok.kind != word && p.tok.kind != quoted {
		return p.is("*")
	}
	for n := 1; n < 2*maxParts && p.peek(n).is("."); n += 2 {
		switch name := p.peek(n + 1); {
		case name.is("*"):
			return true
		case name.kind != word && name.kind != quoted:
			return false
		}
	}
	return false
}

func (p *parser) star() ast.Expr {
	s := &ast.Star{Start: p.at()}
	for !p.accept("*") && p.err == nil {
		s.Parts = append(s.Parts, p.ident())
		p.expect(".")
	}
	p.height = 1
	return s
}

// ident takes the current word, quoted name or text as an identifier.
func (p *parser) ident() ast.Ident {
	id := ast.Ident{Start: p.at(), Text: p.tok.text}
	if p.tok.kind == quoted || p.tok.kind == text {
		id.Text, id.Quoted = p.tok.unquote(), true
	}
	p.next()
	return id
}

// alias reads the alias that may stand here, with or without AS.
func (p *parser) alias() *ast.Ident {
	named := p.accept("as")
	switch t := &p.tok; {
	case t.kind == quoted, t.kind == text, t.kind == word && (!isReserved(t.word) || named && selfNames[t.word]):
		id := p.ident()
		return &id
	}
	if named {
		p.noWay("IDENTIFIER")
	}
	return nil
}

// source reads a table or a view in parentheses.
func (p *parser) source() *ast.Source {
	s := &ast.Source{Start: p.at()}
	if p.accept("(") {
		s.View = p.selection()
		p.expect(")")
		s.Alias = p.alias()
		return s
	}
	s.Table, s.Quoted = p.table()
	if p.err == nil {
		s.Alias = p.tableAlias()
	}
	return s
}

// table reads the name of a table. Unquoted names may have dots.
func (p *parser) table() (name string, wasQuoted bool) {
	var parts []string
	for {
		switch {
		case p.tok.kind == quoted:
			wasQuoted = true
		case p.tok.kind == word && (len(parts) > 0 || !isReserved(p.tok.word)):
		default:
			p.badTable()
			return "", false
		}
		parts = append(parts, p.ident().Text)
		if !p.accept(".") {
			break
		}
	}
	if t := &p.tok; t.from == p.behind && t.kind == bad && t.text != ";" {
		p.badTable() // m:cpu, m$1
	}
	return strings.Join(parts, "."), wasQuoted
}

// tableAlias reads what follows the name of a table, and refuses what shows that the name lacks its quotes.
func (p *parser) tableAlias() *ast.Ident {
	switch t := &p.tok; {
	case t.kind == word && isReserved(t.word) && !afterTable[t.word],
		t.kind == symbol && strings.Contains("+-*/%.", t.text),
		(t.kind == integer || t.kind == decimal) && t.from == p.behind:
		p.badTable()
		return nil
	case t.kind == word && slices.Contains([]string{"left", "right", "cross", "natural"}, t.word) && (p.peek(1).is("join") || p.peek(1).is("outer")):
		p.syntax("extraneous input '%s' expecting JOIN", t.text) // as an alias it would silently mean another join
		return nil
	}
	return p.alias()
}

func (p *parser) joinAhead() bool {
	return p.is("join") || p.is("inner") || p.is("full") || p.is("outer")
}

func (p *parser) join() ast.Join {
	p.clause = p.tok.from
	j := ast.Join{Start: p.at()}
	if !p.accept("inner") {
		full, outer := p.accept("full"), p.accept("outer")
		j.Outer = full || outer
	}
	p.expect("join")
	if p.accept("using") {
		p.expect("entity")
		j.UsingEntity = true
	}
	j.Source = p.source()
	if p.accept("on") {
		j.On = terms(p.expr(), nil)
	}
	return j
}

// terms appends the operands of the AND that e is, from left to right, or e itself.
func terms(e ast.Expr, to []ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.Binary); ok && b.Op == "and" {
		return terms(b.R, terms(b.L, to))
	}
	return append(to, e)
}

func (p *parser) orderBy() []ast.OrderItem {
	p.expect("by")
	return list(p, func() ast.OrderItem {
		o := ast.OrderItem{Expr: p.expr(), Desc: p.is("desc")}
		if !p.accept("asc") {
			p.accept("desc")
		}
		return o
	})
}

// limit reads LIMIT n, LIMIT skip, n and LIMIT n OFFSET skip.
func (p *parser) limit() *ast.Limit {
	l := &ast.Limit{Count: p.integer()}
	switch {
	case p.accept(","):
		l.Skip, l.Count = l.Count, p.integer()
	case p.accept("offset"):
		l.Skip = p.integer()
	}
	return l
}

// option reads OPTION (ROW_MEMORY_THRESHOLD n), a hint that nothing depends on.
func (p *parser) option() {
	p.words("(", "row_memory_threshold")
	p.accept("-")
	p.integer()
	p.expect(")")
}
