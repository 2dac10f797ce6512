package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// Bounds of a query: each leaf costs a comparison with every name of every series.
const (
	maxText   = 4096
	maxLeaves = 64
	maxDepth  = 32
)

// defaultField stands for all names and values.
const defaultField = "contents"

type kind uint8

const (
	nodeTerm kind = iota
	nodePhrase
	nodeAnd
	nodeOr
	nodeNot
)

// node is a part of a query. Terms and phrases are leaves.
type node struct {
	kind     kind
	field    string   // of a leaf, lower case
	text     string   // of a term: lower case, unescaped, wildcards as * and ? unless escaped
	pattern  []glyph  // of a term with wildcards
	words    []string // of text without wildcards
	same     []string // synonyms of a term
	wild     bool
	excluded bool // below a NOT: adds nothing to the relevance
	index    int  // of a leaf
	args     []*node
}

// glyph is a character of a pattern: any text, any character, or itself.
type glyph struct {
	r    rune
	kind byte // '*', '?' or 0
}

// Parse reads an expression. Its errors are of code Invalid and say where it cannot go on.
func Parse(text string) (*Query, error) {
	if len(text) > maxText {
		return nil, core.Errorf(core.Invalid, "search: the query is longer than %d bytes", maxText)
	}
	p := &parser{text: text}
	p.next()
	if p.err == nil && p.token == tokenNot {
		p.fail("a query must not begin with NOT")
	}
	root := p.or(0)
	if p.err == nil && p.token != tokenEnd {
		p.fail("unexpected %q", p.word())
	}
	if p.err != nil {
		return nil, p.err
	}
	exclude(root, false)
	return &Query{root: root, leaves: p.leaves}, nil
}

func exclude(n *node, below bool) {
	below = below || n.kind == nodeNot
	n.excluded = below
	for _, arg := range n.args {
		exclude(arg, below)
	}
}

type token uint8

const (
	tokenEnd token = iota
	tokenWord
	tokenQuoted
	tokenColon
	tokenOpen
	tokenClose
	tokenAnd
	tokenOr
	tokenNot
)

// parser reads by recursive descent: or = and { [OR] and }, and = unary { AND unary }, unary = NOT unary | "(" or ")" | [field ":"] word.
type parser struct {
	text   string
	at     int // behind the token
	start  int // of the token
	token  token
	glyphs []glyph // of a word or quoted text
	field  string
	leaves []*node
	err    error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = core.Errorf(core.Invalid, "search: at position %d: "+format, append([]any{p.start + 1}, args...)...)
	}
	p.token = tokenEnd
}

func (p *parser) word() string { return p.text[p.start:min(p.at, len(p.text))] }

// next reads a token.
func (p *parser) next() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t' || p.text[p.at] == '\n' || p.text[p.at] == '\r') {
		p.at++
	}
	p.start = p.at
	if p.at >= len(p.text) {
		p.token = tokenEnd
		return
	}
	rest := p.text[p.at:]
	for _, fixed := range [...]struct {
		text  string
		token token
	}{{"(", tokenOpen}, {")", tokenClose}, {":", tokenColon}, {"&&", tokenAnd}, {"||", tokenOr}, {"!", tokenNot}} {
		if strings.HasPrefix(rest, fixed.text) {
			p.at += len(fixed.text)
			p.token = fixed.token
			return
		}
	}
	if rest[0] == '"' {
		p.quoted()
		return
	}
	p.bare()
}

func (p *parser) quoted() {
	p.token, p.glyphs = tokenQuoted, nil
	p.at++
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		p.at += size
		switch {
		case r == '"':
			return
		case r == '\\' && p.at < len(p.text):
			r, size = utf8.DecodeRuneInString(p.text[p.at:])
			p.at += size
		}
		p.glyphs = append(p.glyphs, glyph{r: r})
	}
	p.fail("the quote is not closed")
}

// reserved are the characters that must be escaped; + and - only at the start of a word, and : ends one.
const reserved = `{}[]^~"()`

func (p *parser) bare() {
	p.token, p.glyphs = tokenWord, nil
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		first := len(p.glyphs) == 0
		switch {
		case unicode.IsSpace(r) || r == ':' || r == '(' || r == ')':
			p.operator()
			return
		case strings.ContainsRune(reserved, r) || first && (r == '+' || r == '-' || r == '/' || r == '&' || r == '|'):
			p.start = p.at
			p.fail("%q is reserved: write \\%c, or put the text in quotes", r, r)
			return
		case r == '*' || r == '?':
			p.at += size
			p.glyphs = append(p.glyphs, glyph{kind: byte(r)})
			continue
		case r == '\\':
			p.at++
			if r, size = utf8.DecodeRuneInString(p.text[p.at:]); size == 0 {
				p.fail("the escape at the end escapes nothing")
				return
			}
		}
		p.at += size
		p.glyphs = append(p.glyphs, glyph{r: r})
	}
	p.operator()
}

// operator tells the words AND, OR and NOT from terms; an escaped one is a term.
func (p *parser) operator() {
	switch p.word() {
	case "AND":
		p.token = tokenAnd
	case "OR":
		p.token = tokenOr
	case "NOT":
		p.token = tokenNot
	}
}

func (p *parser) or(depth int) *node {
	if depth > maxDepth {
		p.fail("parentheses are nested deeper than %d", maxDepth)
		return &node{}
	}
	n := &node{kind: nodeOr, args: []*node{p.and(depth)}}
	for p.err == nil {
		switch p.token {
		case tokenEnd, tokenClose:
			if len(n.args) == 1 {
				return n.args[0]
			}
			return n
		case tokenNot: // `a NOT b` excludes b
			last := len(n.args) - 1
			n.args[last] = join(nodeAnd, n.args[last], p.unary(depth))
			continue
		case tokenOr:
			p.next()
		}
		n.args = append(n.args, p.and(depth))
	}
	return n
}

func (p *parser) and(depth int) *node {
	n := p.unary(depth)
	for p.err == nil && p.token == tokenAnd {
		p.next()
		n = join(nodeAnd, n, p.unary(depth))
	}
	return n
}

// join makes a list of equal operators one node.
func join(k kind, a, b *node) *node {
	if a.kind == k {
		a.args = append(a.args, b)
		return a
	}
	return &node{kind: k, args: []*node{a, b}}
}

func (p *parser) unary(depth int) *node {
	switch p.token {
	case tokenNot:
		if depth >= maxDepth {
			p.fail("NOT is nested deeper than %d", maxDepth)
			return &node{}
		}
		p.next()
		return &node{kind: nodeNot, args: []*node{p.unary(depth + 1)}}
	case tokenOpen:
		p.next()
		n := p.or(depth + 1)
		if p.err == nil && p.token != tokenClose {
			p.fail("a closing parenthesis is missing")
		}
		p.nextAfter()
		return n
	case tokenWord, tokenQuoted:
		return p.leaf(depth)
	}
	p.fail("a term is expected")
	return &node{}
}

// nextAfter reads on unless something failed.
func (p *parser) nextAfter() {
	if p.err == nil {
		p.next()
	}
}

// leaf reads a term or phrase, or a field with what it applies to.
func (p *parser) leaf(depth int) *node {
	token, glyphs, start := p.token, p.glyphs, p.start
	p.next()
	if p.err == nil && p.token == tokenColon && token == tokenWord {
		outer := p.field
		p.field = strings.ToLower(plain(glyphs))
		defer func() { p.field = outer }()
		p.next()
		if p.token == tokenNot || p.token == tokenEnd {
			p.fail("a term is expected after the field %s", p.field)
			return &node{}
		}
		return p.unary(depth)
	}
	if p.err != nil {
		return &node{}
	}
	n := &node{field: p.field, index: len(p.leaves)}
	if n.field == "" {
		n.field = defaultField
	}
	if len(p.leaves) >= maxLeaves {
		p.fail("more than %d terms", maxLeaves)
		return n
	}
	p.leaves = append(p.leaves, n)
	n.text = strings.ToLower(plain(glyphs))
	for _, g := range glyphs {
		n.wild = n.wild || g.kind != 0
		g.r = unicode.ToLower(g.r)
		n.pattern = append(n.pattern, g)
	}
	// Text that is not one word, such as "/opt" or "a b", is looked for word by word, whether it was quoted or escaped.
	if n.words = words(n.text); !n.wild && (len(n.words) != 1 || n.words[0] != n.text) {
		n.kind = nodePhrase
	}
	if n.wild && glyphs[0].kind != 0 {
		p.start = start
		p.fail("a wildcard must not be the first character of a term")
	}
	return n
}

func plain(glyphs []glyph) string {
	var b strings.Builder
	for _, g := range glyphs {
		if g.kind != 0 {
			b.WriteByte(g.kind)
		} else {
			b.WriteRune(g.r)
		}
	}
	return b.String()
}

// print writes the parsed form.
func (n *node) print(b *strings.Builder, outermost bool) {
	switch n.kind {
	case nodeTerm:
		b.WriteString(n.field + ":" + n.text)
	case nodePhrase:
		b.WriteString(n.field + `:"` + n.text + `"`)
	case nodeNot:
		b.WriteByte('-')
		n.args[0].print(b, false)
	default:
		if !outermost {
			b.WriteByte('(')
		}
		for i, arg := range n.args {
			if i > 0 {
				b.WriteByte(' ')
			}
			if n.kind == nodeAnd && arg.kind != nodeNot {
				b.WriteByte('+')
			}
			arg.print(b, false)
		}
		if !outermost {
			b.WriteByte(')')
		}
	}
}
