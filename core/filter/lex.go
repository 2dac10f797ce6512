package filter

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// The fences checked before parsing: nothing that a client sends can make the parser recurse deeper or run longer than these allow.
const (
	maxSource  = 16 << 10 // bytes; a list of a thousand names fits
	maxNesting = 200      // brackets inside brackets
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenMember // a tag name after `tags.`: taken whole, dots and dashes included
	tokenNumber
	tokenText
	tokenSymbol
)

type token struct {
	kind       tokenKind
	text       string // decoded: a text without quotes, a symbol in its canonical spelling
	start, end int    // bytes in the source
}

func (t token) symbol(s string) bool { return t.kind == tokenSymbol && t.text == s }

// word reports whether t is the operator word w, which ignores case.
func (t token) word(w string) bool { return t.kind == tokenName && strings.EqualFold(t.text, w) }

// checkFences refuses what is too long; nesting is counted while tokens are cut, before anything recurses.
func checkFences(source string) error {
	if len(source) > maxSource {
		return core.Errorf(core.TooLarge, "expression has %d bytes, at most %d are allowed, which no setting changes: put long lists of entities into an entity group", len(source), maxSource)
	}
	if !utf8.ValidString(source) {
		return core.Errorf(core.Invalid, "expression is not UTF-8")
	}
	return nil
}

type lexer struct {
	source string
	at     int
	depth  int
	tokens []token
}

// lex cuts source into tokens, the last of which is tokenEnd.
func lex(source string) ([]token, error) {
	l := &lexer{source: source}
	for {
		if err := l.skipBlank(); err != nil {
			return nil, err
		}
		if l.at == len(source) {
			l.emit(tokenEnd, "", l.at)
			return l.tokens, nil
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
}

func (l *lexer) emit(k tokenKind, text string, end int) {
	l.tokens = append(l.tokens, token{k, text, l.at, end})
	l.at = end
}

func (l *lexer) fail(at int, reason string) error {
	return &SyntaxError{Source: l.source, Offset: at, Reason: reason}
}

// skipBlank passes white space and both kinds of comment.
func (l *lexer) skipBlank() error {
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r):
			l.at += n
		case strings.HasPrefix(rest, "//"):
			i := strings.IndexByte(rest, '\n')
			if i < 0 {
				i = len(rest)
			}
			l.at += i
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest, "*/")
			if i < 0 {
				return l.fail(l.at, "comment is not closed")
			}
			l.at += i + 2
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) next() error {
	r, _ := utf8.DecodeRuneInString(l.source[l.at:])
	switch {
	case r == '\'' || r == '"':
		return l.text(byte(r))
	case isDigit(r) || r == '.' && l.at+1 < len(l.source) && isDigit(rune(l.source[l.at+1])) && !l.afterOperand():
		l.number()
		return nil
	case isNameStart(r):
		l.name()
		return nil
	case r == '.' && l.after(")"):
		l.emit(tokenSymbol, ".", l.at+1)
		return l.member()
	}
	return l.symbol()
}

// after reports whether the previous token is the symbol s.
func (l *lexer) after(s string) bool {
	return len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].symbol(s)
}

func (l *lexer) afterOperand() bool {
	if len(l.tokens) == 0 {
		return false
	}
	last := l.tokens[len(l.tokens)-1]
	return last.kind != tokenSymbol || last.text == ")" || last.text == "]"
}

// symbols in the order in which they must be tried: longer ones first. Those on the right are spelled like those on the left.
var symbols = [...][2]string{
	{"==", "="}, {"!=", "!="}, {">=", ">="}, {"<=", "<="}, {"&&", "and"}, {"||", "or"}, {"=", "="}, {"!", "!"}, {">", ">"}, {"<", "<"},
	{"(", "("}, {")", ")"}, {"[", "["}, {"]", "]"}, {",", ","}, {".", "."}, {"+", "+"}, {"-", "-"}, {"*", "*"}, {"/", "/"}, {"%", "%"},
}

func (l *lexer) symbol() error {
	rest := l.source[l.at:]
	for _, s := range symbols {
		if !strings.HasPrefix(rest, s[0]) {
			continue
		}
		switch s[0] {
		case "(", "[":
			if l.depth++; l.depth > maxNesting {
				return core.Errorf(core.TooLarge, "expression nests deeper than %d", maxNesting)
			}
		case ")", "]":
			l.depth--
		}
		l.emit(tokenSymbol, s[1], l.at+len(s[0]))
		return nil
	}
	_, n := utf8.DecodeRuneInString(rest)
	return l.fail(l.at, "token recognition error at: '"+rest[:n]+"'")
}

// text reads a quoted text. A backslash makes a quote after it literal; before anything else it stays, so that patterns keep their escapes for LIKE.
func (l *lexer) text(quote byte) error {
	var b strings.Builder
	for i := l.at + 1; i < len(l.source); i++ {
		switch c := l.source[i]; {
		case c == '\\' && i+1 < len(l.source) && (l.source[i+1] == '\'' || l.source[i+1] == '"') && l.closedAfter(i+2, quote):
			i++
			b.WriteByte(l.source[i])
		case c == quote:
			l.emit(tokenText, b.String(), i+1)
			return nil
		default:
			b.WriteByte(c)
		}
	}
	return l.fail(l.at, "text is not closed")
}

// closedAfter reports whether a quote is left to close the text with: in `'a\'` the backslash is the last character of the text.
func (l *lexer) closedAfter(i int, quote byte) bool {
	return strings.IndexByte(l.source[i:], quote) >= 0
}

func (l *lexer) number() {
	i := l.digits(l.at)
	if i+1 < len(l.source) && l.source[i] == '.' && isDigit(rune(l.source[i+1])) {
		i = l.digits(i + 1)
	}
	if i < len(l.source) && (l.source[i] == 'e' || l.source[i] == 'E') {
		j := i + 1
		if j < len(l.source) && (l.source[j] == '+' || l.source[j] == '-') {
			j++
		}
		if end := l.digits(j); end > j {
			i = end
		}
	}
	l.emit(tokenNumber, l.source[l.at:i], i)
}

func (l *lexer) digits(i int) int {
	for i < len(l.source) && isDigit(rune(l.source[i])) {
		i++
	}
	return i
}

// name reads a name, and after `tags` or `keys` the member too: the names of tags may hold dots, dashes and what not.
func (l *lexer) name() {
	end := l.at
	for end < len(l.source) {
		r, n := utf8.DecodeRuneInString(l.source[end:])
		if !isNameStart(r) && !unicode.IsDigit(r) {
			break
		}
		end += n
	}
	inner := l.after(".")
	word := l.source[l.at:end]
	l.emit(tokenName, word, end)
	if inner || end >= len(l.source) || l.source[end] != '.' || !strings.EqualFold(word, "tags") && !strings.EqualFold(word, "keys") {
		return
	}
	l.emit(tokenSymbol, ".", end+1)
	_ = l.member() // a missing name is for the parser to report
}

// member reads the longest run of characters that can be a tag name, but stops before `.name(`: that is a method of the map or the value.
func (l *lexer) member() error {
	end, open := l.at, 0
	for end < len(l.source) {
		r, n := utf8.DecodeRuneInString(l.source[end:])
		if unicode.IsSpace(r) || strings.ContainsRune(`'"(),=!<>&|`, r) || r == ']' && open == 0 {
			break
		}
		switch r {
		case '[': // list[0].x is a name that the webhook makes; ['x'] is an index
			if end+1 < len(l.source) && (l.source[end+1] == '\'' || l.source[end+1] == '"') {
				return l.emitMember(end)
			}
			open++
		case ']':
			open--
		}
		end += n
	}
	if end < len(l.source) && l.source[end] == '(' {
		dot := strings.LastIndexByte(l.source[l.at:end], '.')
		if dot < 0 {
			l.emit(tokenName, l.source[l.at:end], end)
			return nil
		}
		end = l.at + dot
	}
	return l.emitMember(end)
}

func (l *lexer) emitMember(end int) error {
	if end > l.at {
		l.emit(tokenMember, l.source[l.at:end], end)
	}
	return nil
}

func isDigit(r rune) bool     { return r >= '0' && r <= '9' }
func isNameStart(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }
