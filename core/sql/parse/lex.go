package parse

import (
	"strings"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	end     kind = iota // of the text
	word                // keyword, function or unquoted name
	quoted              // "name"
	text                // 'text'
	integer             // 12
	decimal             // 12.5, 30e4
	symbol              // an operator or punctuation
	bad                 // what no token begins with, or a literal without its end
)

// token is one token. Positions are those of its first byte.
type token struct {
	kind         kind
	text         string // as written, with quotes
	word         string // of a word: lower case
	from, to     int    // byte offsets: to is behind the token
	line, column int    // line from 1, column from 0 in characters
}

// lexer cuts a text into tokens, one at a time. Its cost is linear in the text whatever stands there.
type lexer struct {
	src          string
	pos          int
	line, column int // of pos
}

// advance moves to the byte offset to and keeps count of lines and columns.
func (l *lexer) advance(to int) {
	run := l.src[l.pos:to]
	if i := strings.LastIndexByte(run, '\n'); i >= 0 {
		l.line += strings.Count(run, "\n")
		l.column = 0
		run = run[i+1:]
	}
	l.column += utf8.RuneCountInString(run)
	l.pos = to
}

// next returns the token that follows blanks and comments.
func (l *lexer) next() token {
	l.skip()
	t := token{from: l.pos, line: l.line, column: l.column}
	t.kind, t.to = l.scan()
	t.text = l.src[t.from:t.to]
	if t.kind == word {
		t.word = strings.ToLower(t.text)
	}
	l.advance(t.to)
	return t
}

// skip passes over white space and comments. A comment without its end stays: it is a bad token.
func (l *lexer) skip() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case isBlank(c):
			l.advance(l.blanks(l.pos))
		case c == '-' && strings.HasPrefix(l.src[l.pos:], "--"):
			n := strings.IndexByte(l.src[l.pos:], '\n')
			if n < 0 {
				l.advance(len(l.src))
				return
			}
			l.advance(l.pos + n + 1)
		case c == '/' && strings.HasPrefix(l.src[l.pos:], "/*"):
			n := commentEnd(l.src, l.pos)
			if n < 0 {
				return
			}
			l.advance(n)
		default:
			return
		}
	}
}

func (l *lexer) blanks(i int) int {
	for i < len(l.src) && isBlank(l.src[i]) {
		i++
	}
	return i
}

// commentEnd returns the offset behind the comment that starts at i, or -1. Comments nest.
func commentEnd(src string, i int) int {
	depth := 0
	for ; i+1 < len(src); i++ {
		switch src[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// scan returns the kind of the token at pos and the offset behind it.
func (l *lexer) scan() (kind, int) {
	if l.pos == len(l.src) {
		return end, l.pos
	}
	switch c := l.src[l.pos]; {
	case isLetter(c):
		return word, l.run(l.pos+1, isWordPart)
	case isDigit(c):
		return l.number()
	case c == '\'':
		return l.literal(text)
	case c == '"':
		return l.literal(quoted)
	case c == '/' && strings.HasPrefix(l.src[l.pos:], "/*"):
		return bad, len(l.src)
	}
	if n := symbolLength(l.src[l.pos:]); n > 0 {
		return symbol, l.pos + n
	}
	_, size := utf8.DecodeRuneInString(l.src[l.pos:])
	return bad, l.pos + size
}

func (l *lexer) run(i int, belongs func(byte) bool) int {
	for i < len(l.src) && belongs(l.src[i]) {
		i++
	}
	return i
}

// number takes digits, a fraction and an exponent, each only if it has digits itself.
func (l *lexer) number() (kind, int) {
	k, i := integer, l.run(l.pos, isDigit)
	if i+1 < len(l.src) && l.src[i] == '.' && isDigit(l.src[i+1]) {
		k, i = decimal, l.run(i+1, isDigit)
	}
	if i < len(l.src) && l.src[i]|0x20 == 'e' {
		digits := i + 1
		if digits < len(l.src) && (l.src[digits] == '-' || l.src[digits] == '+') {
			digits++
		}
		if behind := l.run(digits, isDigit); behind > digits {
			k, i = decimal, behind
		}
	}
	return k, i
}

// literal takes what stands in the quotes that l.pos is at; a doubled quote does not end it.
func (l *lexer) literal(k kind) (kind, int) {
	quote := l.src[l.pos]
	for i := l.pos + 1; i < len(l.src); i++ {
		if l.src[i] != quote {
			continue
		}
		if i+1 < len(l.src) && l.src[i+1] == quote {
			i++
			continue
		}
		return k, i + 1
	}
	return bad, len(l.src)
}

// symbolLength returns the length of the operator that s begins with, 0 for none.
func symbolLength(s string) int {
	if len(s) > 1 {
		switch s[:2] {
		case "<>", "!=", "<=", ">=":
			return 2
		}
	}
	if strings.IndexByte("()*,./+-%=<>?", s[0]) >= 0 {
		return 1
	}
	return 0
}

func isBlank(c byte) bool    { return c == ' ' || c >= '\t' && c <= '\r' }
func isLetter(c byte) bool   { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isWordPart(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

// The pairs that stand for one character in a text literal. A lone backslash or double quote, and every other pair, stands for itself.
var textPairs = strings.NewReplacer(`''`, `'`, `\\`, `\`, `""`, `"`)

// unquote returns what a text literal or a quoted name says.
func (t *token) unquote() string {
	inner := t.text[1 : len(t.text)-1]
	if t.kind == quoted {
		return strings.ReplaceAll(inner, `""`, `"`)
	}
	return textPairs.Replace(inner)
}
