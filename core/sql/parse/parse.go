// Package parse turns the text of a SQL statement into the nodes of package ast: a lexer that reads on demand and a recursive-descent parser. Its errors are
// those that clients know: lines count from 1, positions from 0 in characters.
//
//	lex.go      tokens, comments, literals
//	words.go    which words are what
//	parse.go    the parser's state, what it accepts and how it complains
//	select.go   SELECT: items, tables, joins, keys, limits
//	with.go     WITH clauses and PERIOD
//	expr.go     expressions
//	modify.go   INSERT, UPDATE, DELETE
//
// Depth is bounded twice. Nested constructs cost stack here, so at most maxNesting of them may enclose each other. Chains of operators are read in a loop;
// as the nodes of a + b + c lean to the left, at most maxHeight of them may hang on each other, so that whoever walks a tree may recurse. Chains of AND and
// OR have no bound: they become balanced trees, which say the same.
package parse

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

const (
	// maxNesting is how deep parentheses, calls, CASE, subqueries, NOT and signs may nest. Nobody writes 500; each level takes some ten frames.
	maxNesting = 500

	// maxHeight is how high the tree of an expression may be: 2,000 frames of any walk stay below a megabyte of stack.
	maxHeight = 2000

	// maxParts is how many parts a name with dots may have. It bounds how far the parser looks ahead.
	maxParts = 100

	// maxQuote is how much of the statement an error repeats, in bytes: the end of it.
	maxQuote = 2000
)

// What a statement costs, in bytes, once it is bound: of hostile statements of a megabyte the estimate is between the memory that they take and three times as much.
const (
	treeCost = 128 // of a token: the nodes of this package, less than one for each token
	leafCost = 300 // of a literal or a name, beside: the nodes that are computed, and what is noted of them while they are bound
	nodeCost = 700 // of an operator, a call or a predicate, likewise
	itemCost = 64  // of a literal in the list of an IN, which becomes an entry of a set
	costStep = 64 << 10
)

// Parse reads one statement. Errors are *ast.Error.
func Parse(src string) (ast.Statement, error) { return Within(src, func(int64) error { return nil }) }

// Within is Parse where there may not be room for the statement: room is asked for so many bytes more, again and again while the tree grows, and its error ends
// the reading. What it granted is about what the tree and the plan that is made of it take.
func Within(src string, room func(bytes int64) error) (ast.Statement, error) {
	p := &parser{lex: lexer{src: cutSemicolon(src), line: 1}, room: room}
	p.tok = p.lex.next()
	p.clause = p.tok.from
	stmt := p.statement()
	p.finish()
	p.settle()
	if p.err != nil {
		return nil, p.err
	}
	return stmt, nil
}

// settle asks for the room of what was read since the last time.
func (p *parser) settle() {
	if p.err != nil {
		return
	}
	n := int64(p.tokens*treeCost+p.leaves*leafCost+p.nodes*nodeCost+p.items*itemCost) - p.granted
	if n <= 0 {
		return
	}
	p.granted += n
	if err := p.room(n); err != nil {
		p.fail(err)
	}
}

// cutSemicolon cuts off one semicolon at the end, with the blanks behind it.
func cutSemicolon(src string) string {
	if trimmed := strings.TrimRight(src, " \t\n\v\f\r"); strings.HasSuffix(trimmed, ";") {
		return trimmed[:len(trimmed)-1]
	}
	return src
}

// parser reads from left to right. After the first error every token is the end, so that loops finish; what is built from then on is thrown away.
type parser struct {
	lex    lexer
	tok    token
	ahead  []token // tokens behind tok that were looked at, from first on
	first  int
	behind int // where the previous token ended
	clause int // where the clause starts whose text an error repeats
	err    error
	depth  int // nested constructs that are open
	height int // of the tree of the expression read last

	room                         func(bytes int64) error
	tokens, leaves, nodes, items int   // read so far; items are not leaves
	granted                      int64 // bytes
}

// next moves on by one token.
func (p *parser) next() {
	if p.err != nil {
		return
	}
	p.behind = p.tok.to
	if p.tok.kind != symbol {
		p.tokens++
	}
	if p.tokens%(costStep/treeCost) == 0 {
		p.settle()
		if p.err != nil {
			return
		}
	}
	if p.first == len(p.ahead) {
		p.tok = p.lex.next()
		return
	}
	p.tok = p.ahead[p.first]
	if p.first++; p.first == len(p.ahead) {
		p.ahead, p.first = p.ahead[:0], 0
	}
}

// peek returns the n-th token behind the current one, from 1.
func (p *parser) peek(n int) *token {
	if p.err != nil {
		return &p.tok
	}
	for len(p.ahead) < p.first+n {
		p.ahead = append(p.ahead, p.lex.next())
	}
	return &p.ahead[p.first+n-1]
}

func (t *token) is(s string) bool {
	return t.kind == symbol && t.text == s || t.kind == word && t.word == s
}

// is reports whether the current token is the symbol, or the word in lower case.
func (p *parser) is(s string) bool { return p.tok.is(s) }

// accept takes the token if it is s.
func (p *parser) accept(s string) bool {
	if !p.is(s) {
		return false
	}
	p.next()
	return true
}

// expect takes the token, which must be s.
func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.unexpected(quoteWanted(s), func(t *token) bool { return t.is(s) })
	}
}

// words takes words that belong together, as GROUP BY; the first is the current one.
func (p *parser) words(list ...string) {
	for _, w := range list {
		p.expect(w)
	}
}

func quoteWanted(s string) string {
	if isLetter(s[0]) {
		return strings.ToUpper(s)
	}
	return "'" + s + "'"
}

// at returns where the current token starts.
func (p *parser) at() ast.Start {
	return ast.Start{Line: p.tok.line, Column: p.tok.column, Token: p.tok.text}
}

// integer takes digits.
func (p *parser) integer() int64 {
	const wanted = "INTEGER_LITERAL"
	isInteger := func(t *token) bool { return t.kind == integer }
	if !isInteger(&p.tok) {
		p.unexpected(wanted, isInteger)
		return 0
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 64)
	if err != nil {
		p.syntax("integer '%s' is out of range", p.quote(p.tok.from))
		return 0
	}
	p.next()
	return n
}

// enter counts one more construct that is open and reports whether there may be so many. The caller leaves it by taking 1 off depth.
func (p *parser) enter() bool {
	if p.depth++; p.depth > maxNesting {
		p.syntax("more than %d levels of nesting", maxNesting)
	}
	return p.err == nil
}

// grow says how high the tree below a node is that is being built; the node itself adds one.
func (p *parser) grow(below int) {
	p.nodes++
	if p.height = below + 1; p.height > maxHeight {
		p.syntax("more than %d operators in a row", maxHeight)
	}
}

// fail keeps the first error and ends the text.
func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
		p.tok.kind, p.tok.text, p.tok.word = end, "", ""
	}
}

// syntax fails at the current token.
func (p *parser) syntax(format string, args ...any) {
	p.fail(ast.Errorf("Syntax error at line %d position %d: %s", p.tok.line, p.tok.column, fmt.Sprintf(format, args...)))
}

// unexpected fails because something else is wanted here. When what is wanted comes next, the current token is one too many.
func (p *parser) unexpected(wanted string, fits func(*token) bool) {
	switch {
	case p.tok.kind == bad:
		p.unrecognised()
	case p.tok.kind == end:
		p.syntax("mismatched input '<EOF>' expecting %s", wanted)
	case fits(p.peek(1)):
		p.syntax("extraneous input '%s' expecting %s", p.quote(p.tok.from), wanted)
	default:
		p.syntax("mismatched input '%s' expecting %s", p.quote(p.tok.from), wanted)
	}
}

// finish fails unless the whole text was read.
func (p *parser) finish() {
	switch p.tok.kind {
	case end:
	case bad:
		p.unrecognised()
	default:
		p.syntax("extraneous input '%s' expecting <EOF>", p.quote(p.tok.from))
	}
}

// noWay fails because nothing that may stand here begins with the current token. The error repeats the clause up to it.
func (p *parser) noWay(wanted string) {
	switch p.tok.kind {
	case bad:
		p.unrecognised()
	case end:
		p.syntax("mismatched input '<EOF>' expecting %s", wanted)
	default:
		p.syntax("no viable alternative at input '%s'", p.quote(p.clause))
	}
}

func (p *parser) unrecognised() {
	p.syntax("token recognition error at: '%s'", p.quote(p.tok.from))
}

// badTable fails because of the name of a table.
func (p *parser) badTable() {
	if p.tok.kind == end || p.tok.kind == bad && p.tok.text == ";" {
		p.noWay("IDENTIFIER")
		return
	}
	p.fail(ast.Errorf("Mismatched input or invalid table name. Identifiers containing special characters must be enclosed in double quotes."))
}

// quote returns the statement from an offset through the current token, as errors show it.
func (p *parser) quote(from int) string {
	s := p.lex.src[from:p.tok.to]
	if len(s) <= maxQuote {
		return escape(s)
	}
	cut := len(s) - maxQuote
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return "..." + escape(s[cut:])
}

var escapes = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

func escape(s string) string { return escapes.Replace(s) }

// statement reads one whole statement.
func (p *parser) statement() ast.Statement {
	switch {
	case p.is("select"):
		return p.selection()
	case p.is("explain"):
		p.next()
		return &ast.Explain{Select: p.selection()}
	case p.is("insert"):
		return p.insert()
	case p.is("update"):
		return p.update()
	case p.is("delete"):
		return p.delete()
	}
	p.unexpected("{SELECT, INSERT, UPDATE, DELETE}", func(*token) bool { return false })
	return nil
}
