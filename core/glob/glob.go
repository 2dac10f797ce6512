// Package glob matches names against wildcard patterns.
//
// `*` stands for zero or more characters, `?` for exactly one, and a backslash makes the character after it literal. A pattern always covers the whole
// text. A character is one UTF-8 sequence, or one byte where the text is not valid UTF-8. `%`, `_` and `[` mean themselves. Matching is case-sensitive:
// callers whose names ignore case lower both sides first.
package glob

import (
	"strings"
	"unicode/utf8"
)

// Pattern is a compiled wildcard pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	source string
	first  segment   // anchored at the start of the text
	middle []segment // each found somewhere after the one before, leftmost first
	last   segment   // anchored at the end; unused without a star
	star   bool
}

// segment is what stands between two stars: a fixed number of characters.
type segment struct {
	pieces []piece
	chars  int
}

// piece is skip arbitrary characters followed by a literal text.
type piece struct {
	skip int
	text string
}

// Compile never fails: every text is a pattern. A lone backslash at the end stands for itself.
func Compile(pattern string) *Pattern {
	segments := split(pattern)
	p := &Pattern{source: pattern, first: segments[0], star: len(segments) > 1}
	if !p.star {
		return p
	}
	p.last = segments[len(segments)-1]
	for _, s := range segments[1 : len(segments)-1] {
		if s.chars > 0 {
			p.middle = append(p.middle, s)
		}
	}
	return p
}

// split cuts a pattern at its stars and resolves escapes; a pattern with n stars gives n+1 segments.
func split(pattern string) []segment {
	var (
		segments []segment
		current  segment
		open     piece
		text     strings.Builder
	)
	closePiece := func() {
		if open.skip == 0 && text.Len() == 0 {
			return
		}
		open.text = text.String()
		current.pieces = append(current.pieces, open)
		current.chars += open.skip + utf8.RuneCountInString(open.text)
		open = piece{}
		text.Reset()
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			closePiece()
			segments = append(segments, current)
			current = segment{}
		case c == '?':
			if text.Len() > 0 {
				closePiece()
			}
			open.skip++
		case c == '\\' && i+1 < len(pattern):
			i++
			text.WriteByte(pattern[i])
		default:
			text.WriteByte(c)
		}
	}
	closePiece()
	return append(segments, current)
}

// String returns the pattern as it was compiled.
func (p *Pattern) String() string { return p.source }

// Literal returns the only text that matches, with escapes resolved; ok is false for a pattern with a wildcard.
func (p *Pattern) Literal() (text string, ok bool) {
	if p.star || len(p.first.pieces) > 1 || p.first.skips() {
		return "", false
	}
	return p.Prefix(), true
}

// Prefix returns the literal text that every match starts with, possibly empty: the bound of an index scan.
func (p *Pattern) Prefix() string {
	if len(p.first.pieces) == 0 || p.first.pieces[0].skip > 0 {
		return ""
	}
	return p.first.pieces[0].text
}

// Match reports whether the whole of s matches. Text and pattern lengths bound its time together (len(s) × len(pattern) at worst, len(s) without `?`);
// it never goes back to an earlier star, because taking the leftmost place for every segment leaves the most text for the rest.
func (p *Pattern) Match(s string) bool {
	end := p.first.matchAt(s, 0)
	if end < 0 || !p.star {
		return end == len(s)
	}
	for i := range p.middle {
		if end = p.middle[i].find(s, end); end < 0 {
			return false
		}
	}
	return p.last.matchEnd(s[end:])
}

func (g *segment) skips() bool { return len(g.pieces) > 0 && g.pieces[0].skip > 0 }

// matchAt matches the segment at byte i and returns the byte after it, or -1.
func (g *segment) matchAt(s string, i int) int {
	for _, p := range g.pieces {
		if i = skipChars(s, i, p.skip); i < 0 || !strings.HasPrefix(s[i:], p.text) {
			return -1
		}
		i += len(p.text)
	}
	return i
}

// find returns the byte after the leftmost place at or after byte i where the segment matches, or -1. Arbitrary characters that lead the segment are
// taken at once: after a star, `??x` asks for an x with at least two characters before it.
func (g *segment) find(s string, i int) int {
	head := g.pieces[0]
	if i = skipChars(s, i, head.skip); i < 0 {
		return -1
	}
	tail := segment{pieces: g.pieces[1:]}
	for {
		n := strings.Index(s[i:], head.text)
		if n < 0 {
			return -1
		}
		i += n
		if end := tail.matchAt(s, i+len(head.text)); end >= 0 {
			return end
		}
		// Only reached with a text that is not empty: an empty one is the last piece, and nothing after it can fail.
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
}

// matchEnd reports whether the segment matches the last characters of s.
func (g *segment) matchEnd(s string) bool {
	if len(g.pieces) == 1 && !g.skips() {
		return strings.HasSuffix(s, g.pieces[0].text)
	}
	start := len(s)
	for range g.chars {
		if start == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	return g.matchAt(s, start) == len(s)
}

// skipChars returns the byte after n characters from byte i, or -1 when fewer are left.
func skipChars(s string, i, n int) int {
	for range n {
		if i >= len(s) {
			return -1
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// HasMeta reports whether s contains a wildcard. A backslash alone does not make a pattern.
func HasMeta(s string) bool { return strings.ContainsAny(s, "*?") }

// Escape returns the pattern that matches exactly s.
func Escape(s string) string {
	if !strings.ContainsAny(s, `*?\`) {
		return s
	}
	b := make([]byte, 0, len(s)+4)
	for i := range len(s) {
		if c := s[i]; c == '*' || c == '?' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}
