package schema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenNumber
	tokenText
	tokenMark // operators and brackets
)

// token is a piece of a program.
type token struct {
	kind    tokenKind
	at      int // offset in the program
	end     int
	text    string // of texts what they stand for
	number  float64
	newLine bool // an end of line lies before it
}

// String says in a message what was found.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the program"
	case tokenText:
		return "the text " + strconv.Quote(clip(t.text))
	case tokenNumber:
		return "the number " + clip(t.text)
	}
	return strconv.Quote(clip(t.text))
}

// clip shortens what is quoted in messages.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// lexer cuts a program into tokens on demand: whether a slash divides or begins a regular expression only the parser knows.
type lexer struct {
	source  string
	at      int
	newLine bool
}

// fault is what the lexer and the parser give up with; only Compile takes it.
type fault struct {
	at     int
	reason string
}

func (f *fault) Error() string { return f.reason }

func faultf(at int, format string, args ...any) error {
	return &fault{at, fmt.Sprintf(format, args...)}
}

// marks are the operators and brackets, longer ones before their beginnings.
var marks = []string{">>>=", "===", "!==", ">>>", "<<=", ">>=", "=>", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>",
	"{", "}", "(", ")", "[", "]", ";", ",", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?", ":", "=", "."}

// next returns the next token.
func (l *lexer) next() (token, error) {
	if err := l.blanks(); err != nil {
		return token{}, err
	}
	t := token{at: l.at, newLine: l.newLine}
	rest := l.source[l.at:]
	if rest == "" {
		t.end = l.at
		return t, nil
	}
	c, _ := utf8.DecodeRuneInString(rest)
	var err error
	switch {
	case c == '"' || c == '\'':
		t.kind = tokenText
		t.text, err = l.quoted(rest[0])
	case c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		t.kind = tokenNumber
		t.text, t.number, err = l.number()
	case isWordRune(c):
		t.kind = tokenWord
		t.text = l.word()
	default:
		t.kind = tokenMark
		if t.text, err = l.mark(c); err == nil {
			l.at += len(t.text)
		}
	}
	t.end = l.at
	return t, err
}

func (l *lexer) mark(c rune) (string, error) {
	for _, m := range marks {
		if strings.HasPrefix(l.source[l.at:], m) {
			return m, nil
		}
	}
	if c == '`' {
		return "", faultf(l.at, "texts stand in ' or \", not in `")
	}
	return "", faultf(l.at, "unexpected character %q", c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordRune(c rune) bool {
	return c == '_' || c == '$' || unicode.IsLetter(c) || c >= '0' && c <= '9'
}

func (l *lexer) word() string {
	start := l.at
	for l.at < len(l.source) {
		c, size := utf8.DecodeRuneInString(l.source[l.at:])
		if !isWordRune(c) {
			break
		}
		l.at += size
	}
	return l.source[start:l.at]
}

// blanks passes over blanks and comments, also those of lines that begin with #.
func (l *lexer) blanks() error {
	l.newLine = l.at == 0
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case c == '\n' || c == '\r':
			l.newLine = true
			l.at++
		case unicode.IsSpace(c) || c == '\uFEFF':
			l.at += size
		case strings.HasPrefix(rest, "//"), c == '#' && l.newLine:
			end := strings.IndexAny(rest, "\r\n")
			if end < 0 {
				end = len(rest)
			}
			l.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return faultf(l.at, "the comment has no end: */ is expected")
			}
			l.newLine = l.newLine || strings.ContainsAny(rest[:2+end], "\r\n")
			l.at += 2 + end + 2
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) number() (text string, v float64, err error) {
	start := l.at
	if hex := l.source[l.at:]; len(hex) > 2 && hex[0] == '0' && hex[1]|0x20 == 'x' {
		text = l.word()
		n, err := strconv.ParseUint(text[2:], 16, 53)
		if err != nil {
			return text, 0, faultf(start, "%s is not a number", clip(text))
		}
		return text, float64(n), nil
	}
	digits := func() {
		for l.at < len(l.source) && isDigit(l.source[l.at]) {
			l.at++
		}
	}
	digits()
	if l.at < len(l.source) && l.source[l.at] == '.' {
		l.at++
		digits()
	}
	if l.at < len(l.source) && l.source[l.at]|0x20 == 'e' {
		l.at++
		if l.at < len(l.source) && (l.source[l.at] == '+' || l.source[l.at] == '-') {
			l.at++
		}
		digits()
	}
	tail := l.word()
	text = l.source[start:l.at]
	if v, err = strconv.ParseFloat(text, 64); err != nil || tail != "" {
		return text, 0, faultf(start, "%s is not a number", clip(text))
	}
	return text, v, nil
}

// escapes are what letters behind a backslash stand for; any other character stands for itself.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': ""}

func (l *lexer) quoted(quote byte) (string, error) {
	start := l.at
	var b strings.Builder
	for l.at++; l.at < len(l.source); {
		c := l.source[l.at]
		switch c {
		case quote:
			l.at++
			return b.String(), nil
		case '\n', '\r':
			return "", faultf(start, "the text has no end: %c is expected in its line", quote)
		case '\\':
			s, err := l.escape()
			if err != nil {
				return "", err
			}
			b.WriteString(s)
		default:
			b.WriteByte(c)
			l.at++
		}
	}
	return "", faultf(start, "the text has no end: %c is expected", quote)
}

func (l *lexer) escape() (string, error) {
	rest := l.source[l.at+1:]
	if rest == "" {
		return "", faultf(l.at, "the text has no end")
	}
	digits := map[byte]int{'x': 2, 'u': 4}[rest[0]]
	if digits > 0 {
		if len(rest) > digits {
			if code, err := strconv.ParseUint(rest[1:1+digits], 16, 32); err == nil {
				l.at += 2 + digits
				return string(rune(code)), nil
			}
		}
		return "", faultf(l.at, "\\%c needs %d hexadecimal digits", rest[0], digits)
	}
	if s, ok := escapes[rest[0]]; ok {
		l.at += 2
		return s, nil
	}
	_, size := utf8.DecodeRuneInString(rest)
	l.at += 1 + size
	return rest[:size], nil
}

// pattern reads the rest of a regular expression that begins at a slash.
func (l *lexer) pattern(slash int) (body, flags string, err error) {
	l.at = slash + 1
	for class := false; l.at < len(l.source) && l.source[l.at] != '\n'; l.at++ {
		switch l.source[l.at] {
		case '\\':
			l.at++
			if l.at < len(l.source) && l.source[l.at] == '\n' {
				return "", "", faultf(slash, "the regular expression has no end: / is expected in its line")
			}
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if class {
				continue
			}
			body = l.source[slash+1 : l.at]
			l.at++
			return body, l.word(), nil
		}
	}
	l.at = min(l.at, len(l.source))
	return "", "", faultf(slash, "the regular expression has no end: / is expected in its line")
}
