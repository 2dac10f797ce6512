package api

import (
	"github.com/tidemark-db/tidemark/core"
)

// scanJSON checks that text is one JSON value of at most depth levels, without recursion: a body of ten million brackets costs one pass
// and no stack. Everything after it may rely on that. The bare token NaN is accepted as a value, because the series insert takes it.
//
// It is a loop over two states, "a value is due" and "a value has ended", with one bit a level to tell objects from arrays.
func scanJSON(text string, depth int) error {
	s := jsonScanner{text: text, limit: depth}
	s.space()
	if err := s.value(); err != nil {
		return err
	}
	for len(s.open) > 0 {
		if err := s.next(); err != nil {
			return err
		}
	}
	s.space()
	if s.i < len(text) {
		return s.unexpected()
	}
	return nil
}

type jsonScanner struct {
	text  string
	i     int
	open  []byte // '{' or '[' for each level
	limit int
}

// next goes on after a value inside a container: a comma and the next value, or the end of the container.
func (s *jsonScanner) next() error {
	s.space()
	if s.i >= len(s.text) {
		return s.unexpected()
	}
	top := len(s.open) - 1
	object := s.open[top] == '{'
	switch c := s.text[s.i]; {
	case c == ',':
		s.i++
		s.space()
		if object {
			if err := s.name(); err != nil {
				return err
			}
		}
		return s.value()
	case object && c == '}', !object && c == ']':
		s.i++
		s.open = s.open[:top]
		return nil
	}
	return s.unexpected()
}

// value reads a scalar, an empty container, or opens a container and reads its first value.
func (s *jsonScanner) value() error {
	for {
		if s.i >= len(s.text) {
			return s.unexpected()
		}
		c := s.text[s.i]
		if c != '{' && c != '[' {
			return s.scalar(c)
		}
		if len(s.open) >= s.limit {
			return core.Errorf(core.Invalid, "JSON is nested deeper than limits.depth (%d levels)", s.limit)
		}
		s.i++
		s.space()
		if s.i < len(s.text) && s.text[s.i] == c+2 { // '{'+2 is '}', '['+2 is ']'
			s.i++
			return nil
		}
		s.open = append(s.open, c)
		if c == '{' {
			if err := s.name(); err != nil {
				return err
			}
		}
	}
}

// name reads a member name and its colon.
func (s *jsonScanner) name() error {
	if s.i >= len(s.text) || s.text[s.i] != '"' {
		return s.unexpected()
	}
	if err := s.str(); err != nil {
		return err
	}
	s.space()
	if s.i >= len(s.text) || s.text[s.i] != ':' {
		return s.unexpected()
	}
	s.i++
	s.space()
	return nil
}

// scalar reads a value that is no container, by its first byte.
func (s *jsonScanner) scalar(c byte) error {
	switch {
	case c == '"':
		return s.str()
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == 'N':
		return s.word("NaN")
	}
	return s.unexpected()
}

func (s *jsonScanner) word(w string) error {
	if len(s.text)-s.i < len(w) || s.text[s.i:s.i+len(w)] != w {
		return s.unexpected()
	}
	s.i += len(w)
	return nil
}

// str reads a string; a control character inside must be escaped.
func (s *jsonScanner) str() error {
	for s.i++; s.i < len(s.text); s.i++ {
		switch c := s.text[s.i]; {
		case c == '"':
			s.i++
			return nil
		case c < ' ':
			return s.unexpected()
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return s.unexpected()
}

// escape stands on a backslash and ends on the last byte of the escape.
func (s *jsonScanner) escape() error {
	s.i++
	if s.i >= len(s.text) {
		return s.unexpected()
	}
	switch s.text[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			s.i++
			if s.i >= len(s.text) || !isHex(s.text[s.i]) {
				return s.unexpected()
			}
		}
		return nil
	}
	return s.unexpected()
}

// number reads a number. Zeros in front are let pass, other laxity is not.
func (s *jsonScanner) number() error {
	if s.text[s.i] == '-' {
		s.i++
	}
	if s.digits() == 0 {
		return s.unexpected()
	}
	if s.i < len(s.text) && s.text[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			return s.unexpected()
		}
	}
	if s.i < len(s.text) && (s.text[s.i] == 'e' || s.text[s.i] == 'E') {
		s.i++
		if s.i < len(s.text) && (s.text[s.i] == '+' || s.text[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return s.unexpected()
		}
	}
	return nil
}

// digits skips digits and returns how many there were.
func (s *jsonScanner) digits() int {
	start := s.i
	for s.i < len(s.text) && isDigit(s.text[s.i]) {
		s.i++
	}
	return s.i - start
}

func (s *jsonScanner) space() {
	for s.i < len(s.text) {
		switch s.text[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// unexpected is the fault at the current byte, in the words that clients of the contract know.
func (s *jsonScanner) unexpected() error {
	if s.i >= len(s.text) {
		return core.Errorf(core.Invalid, "JsonParseException: Unexpected end of input at offset %d", len(s.text))
	}
	return core.Errorf(core.Invalid, "JsonParseException: Unexpected character %q at offset %d", string(rune(s.text[s.i])), s.i)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
