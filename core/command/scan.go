package command

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shape is what stands after the colon of a prefix.
type shape uint8

const (
	unknown shape = iota
	plain         // prefix:value
	named         // prefix:name=value
)

// field is one part of a command. Names are lower case.
type field struct {
	prefix string
	name   string
	value  string
	at     int // character offset of the field in the command, for errors
	quoted bool
}

// cursor reads the fields of one command.
type cursor struct {
	text      string
	pos       int
	transport Transport
}

// word reads the first word of the command, in lower case.
func (c *cursor) word() string {
	start := c.pos
	for c.pos < len(c.text) && !isBlank(c.text[c.pos]) {
		c.pos++
	}
	return strings.ToLower(c.text[start:c.pos])
}

// field reads the next field into f; more is false at the end of the command.
func (c *cursor) field(f *field, shapes func(prefix string) shape) (more bool, err error) {
	for c.pos < len(c.text) && isBlank(c.text[c.pos]) {
		c.pos++
	}
	if c.pos == len(c.text) {
		return false, nil
	}
	f.at, f.name = c.pos, ""
	colon := strings.IndexByte(c.text[c.pos:min(len(c.text), c.pos+maxPrefix+1)], ':')
	if colon < 0 {
		return false, c.fault(c.pos, "expected a field such as e:name")
	}
	f.prefix = c.text[c.pos : c.pos+colon]
	c.pos += colon + 1
	switch shapes(f.prefix) {
	case unknown:
		return false, c.fault(f.at, "unknown field %q", f.prefix)
	case named:
		if f.name, err = c.name(); err != nil {
			return false, err
		}
	}
	f.value, f.quoted, err = c.value()
	return true, err
}

// maxPrefix is the length of the longest prefix: pe, rd, min, max.
const maxPrefix = 3

// name reads a bare or quoted name and the equals sign after it.
func (c *cursor) name() (string, error) {
	start, text := c.pos, ""
	if c.peek() == '"' {
		quoted, err := c.quoted()
		if err != nil {
			return "", err
		}
		text = quoted
	} else {
		for c.pos < len(c.text) && c.text[c.pos] != '=' && c.text[c.pos] != '"' && !isBlank(c.text[c.pos]) {
			c.pos++
		}
		text = c.text[start:c.pos]
	}
	if c.peek() != '=' {
		return "", c.fault(c.pos, "expected = after the name %q", text)
	}
	c.pos++
	if !validName(text) {
		return "", c.reject(BadName, start, "invalid name %q: names have no blanks and only printable characters", text)
	}
	return strings.ToLower(text), nil
}

// value reads a bare or quoted value up to the blank after it.
func (c *cursor) value() (text string, quoted bool, err error) {
	start := c.pos
	if c.peek() == '"' {
		if text, err = c.quoted(); err != nil {
			return "", true, err
		}
		if c.pos < len(c.text) && !isBlank(c.text[c.pos]) {
			return "", true, c.fault(c.pos, "expected a blank after the closing quote")
		}
		if strings.ContainsAny(text, "\r\n") {
			text = normaliseBreaks(text, c.transport)
		}
		return text, true, nil
	}
	for c.pos < len(c.text) && !isBlank(c.text[c.pos]) {
		if b := c.text[c.pos]; b == '"' || b == '=' || b < ' ' || b == 0x7f {
			return "", false, c.fault(c.pos, "%q needs quotes around the value", b)
		}
		c.pos++
	}
	if c.pos == start {
		return "", false, c.fault(start, `empty value: write ""`)
	}
	return c.text[start:c.pos], false, nil
}

// quoted reads from an opening quote past the closing one; two quotes in between are one character.
func (c *cursor) quoted() (string, error) {
	open := c.pos
	c.pos++
	start := c.pos
	doubled := false
	for {
		i := strings.IndexByte(c.text[c.pos:], '"')
		if i < 0 {
			return "", c.fault(open, "the quote is not closed")
		}
		c.pos += i + 1
		if c.peek() != '"' {
			break
		}
		doubled = true
		c.pos++
	}
	text := c.text[start : c.pos-1]
	if doubled {
		text = strings.ReplaceAll(text, `""`, `"`)
	}
	return text, nil
}

func (c *cursor) peek() byte {
	if c.pos < len(c.text) {
		return c.text[c.pos]
	}
	return 0
}

// fault is a fault of the grammar at a place of the command.
func (c *cursor) fault(at int, format string, args ...any) error {
	return c.reject(BadSyntax, at, format, args...)
}

// reject is a fault at a place of the command; columns count characters from 1.
func (c *cursor) reject(reason Reason, at int, format string, args ...any) error {
	column := utf8.RuneCountInString(c.text[:at]) + 1
	return Rejectf(reason, "column %d: %s", column, fmt.Sprintf(format, args...))
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// validName reports whether s can name an entity, a metric or a tag: printable characters of any script, without blanks.
func validName(s string) bool {
	for i := range len(s) {
		if b := s[i]; b <= ' ' || b == 0x7f {
			return false
		} else if b >= utf8.RuneSelf {
			return validRunes(s[i:])
		}
	}
	return s != ""
}

func validRunes(s string) bool {
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// normaliseBreaks treats the line breaks inside a quoted value as its transport does. The first part keeps what precedes it and the last part what
// follows it, since they share their lines with the rest of the command.
func normaliseBreaks(text string, transport Transport) string {
	var parts []string
	switch transport {
	case Exact:
		return text
	case HTTP:
		parts = strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
	case TCP:
		parts = strings.Split(text, "\n")
	}
	var out strings.Builder
	out.Grow(len(text))
	for i, part := range parts {
		last := i == len(parts)-1
		if transport == HTTP && i > 0 {
			part = strings.TrimLeftFunc(part, isMargin)
		}
		if !last {
			part = strings.TrimRightFunc(part, lineMargin(transport))
		}
		if i > 0 {
			if part == "" && !last {
				continue
			}
			out.WriteByte('\n')
		}
		out.WriteString(part)
	}
	return out.String()
}

// lineMargin returns what is cut at the end of a line.
func lineMargin(transport Transport) func(rune) bool {
	if transport == HTTP {
		return isMargin
	}
	return func(r rune) bool { return r == '\r' }
}

func isMargin(r rune) bool { return r <= ' ' }
