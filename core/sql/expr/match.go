package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// matcher decides whether a whole text matches. Where e says to stop the answer does not count.
type matcher interface {
	match(s string, e *effort) bool
}

// matching is x LIKE pattern or x REGEX pattern.
type matching struct {
	x, pattern Node
	compile    func(pattern string) (matcher, error)
	cost       trait
	compiled   matcher // of source
	source     string
	text, form textReader
	out        result
}

func (n *matching) Type() column.Type { return column.Boolean }
func (n *matching) Clone() Node {
	c := &matching{x: n.x.Clone(), pattern: n.pattern.Clone(), compile: n.compile, cost: n.cost}
	c.compiled, c.source = n.compiled, n.source // safe for concurrent use
	return c
}
func (n *matching) operands() []Node { return []Node{n.x, n.pattern} }
func (n *matching) own() trait       { return n.cost }

// build compiles a pattern that is constant, and folds.
func (n *matching) build() (Node, error) {
	if v, ok := constantOf(n.pattern); ok {
		n.cost &^= mayFail
		if text, ok := v.AsText(); ok {
			m, err := n.compile(text)
			if err != nil {
				return nil, err
			}
			n.compiled, n.source = m, text
		}
	}
	return fold(n), nil
}

func (n *matching) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	a, b, err := evalTwo(env, in, n.x, n.pattern)
	if err != nil {
		return nil, err
	}
	if a.Type == column.Null || b.Type == column.Null {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, a, b)
	n.out.header(column.Boolean, in.Len, constant)
	dst := n.out.makeInts(rows)
	x, p := n.text.read(a), n.form.read(b)
	last, known := "", false // the text before, whose answer is that before
	e := effort{env: env}
	for i := range dst {
		dst[i] = 0
		if isNull(x.nulls, i) || isNull(p.nulls, i) {
			known = false
			continue
		}
		s, pattern := at(x.values, i), at(p.values, i)
		if n.compiled == nil || pattern != n.source {
			pattern = strings.Clone(pattern) // a text of a column is gone with its batch
			if n.compiled, err = n.compile(pattern); err != nil {
				return nil, err
			}
			n.source, known = pattern, false
		}
		if known && s == last {
			dst[i] = dst[i-1]
			continue
		}
		dst[i] = bit(n.compiled.match(s, &e))
		if e.err != nil {
			return nil, e.err
		}
		last, known = s, true
	}
	n.out.unite(rows, x.nulls, p.nulls)
	return &n.out.v, nil
}

// Like is x LIKE pattern. escape is nil for the backslash.
func Like(x, pattern Node, escape *ast.Literal) (Node, error) {
	mark := '\\'
	if escape != nil {
		r, size := utf8.DecodeRuneInString(escape.Text)
		if size == 0 || size != len(escape.Text) {
			return nil, escape.Errorf("Invalid escape character: '%s'. The escape character must be a character string of length 1", escape.Text)
		}
		mark = r
	}
	n := &matching{x: x, pattern: pattern, compile: func(p string) (matcher, error) { return compileLike(p, mark), nil }}
	return n.build()
}

// like is a pattern cut at its % signs: texts must contain the parts one after another. In a part a rune anyRune is any character.
type like struct {
	parts []likePart // at least one; the first stands at the start, the last at the end
}

type likePart struct {
	text  string
	wild  bool   // it holds _
	runes []rune // of text, when wild
}

// anyRune stands for _ : no text holds it.
const anyRune = -1

func compileLike(pattern string, escape rune) *like {
	m := &like{}
	var part likePart
	var b strings.Builder
	add := func(r rune) {
		part.runes = append(part.runes, r)
		if r == anyRune {
			part.wild = true
			return
		}
		b.WriteRune(r)
	}
	end := func() {
		part.text = b.String()
		m.parts = append(m.parts, part)
		part = likePart{}
		b.Reset()
	}
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			add(r)
			escaped = false
		case r == escape:
			escaped = true
		case r == '%':
			end()
		case r == '_':
			add(anyRune)
		default:
			add(r)
		}
	}
	if escaped { // at the end it is itself
		add(escape)
	}
	end()
	return m
}

func (m *like) match(s string, e *effort) bool {
	first, last := &m.parts[0], &m.parts[len(m.parts)-1]
	n, ok := first.prefix(s)
	if !ok {
		return false
	}
	s = s[n:]
	if first == last {
		return s == ""
	}
	for i := 1; i < len(m.parts)-1; i++ {
		if s, ok = m.parts[i].after(s, e); !ok {
			return false
		}
	}
	return last.suffix(s)
}

// prefix returns how many bytes of the start of s the part covers, as far as it does.
func (p *likePart) prefix(s string) (n int, ok bool) {
	if !p.wild {
		return len(p.text), strings.HasPrefix(s, p.text)
	}
	for _, want := range p.runes {
		r, size := utf8.DecodeRuneInString(s[n:])
		if size == 0 || want != anyRune && r != want {
			return n, false
		}
		n += size
	}
	return n, true
}

// after returns what follows the first place of the part in s.
func (p *likePart) after(s string, e *effort) (rest string, ok bool) {
	if !p.wild {
		_, rest, ok = strings.Cut(s, p.text)
		return rest, ok
	}
	for {
		n, ok := p.prefix(s)
		if ok {
			return s[n:], true
		}
		if !e.spend(n + 1) {
			return "", false
		}
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return "", false
		}
		s = s[size:]
	}
}

// suffix reports whether s ends with the part.
func (p *likePart) suffix(s string) bool {
	if !p.wild {
		return strings.HasSuffix(s, p.text)
	}
	for i := len(p.runes) - 1; i >= 0; i-- {
		r, size := utf8.DecodeLastRuneInString(s)
		if size == 0 || p.runes[i] != anyRune && r != p.runes[i] {
			return false
		}
		s = s[:len(s)-size]
	}
	return true
}
