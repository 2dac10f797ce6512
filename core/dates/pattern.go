package dates

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// Pattern is a compiled date pattern of letters, such as `dd.MM.yyyy HH:mm[:ss]`, or one of the named patterns iso, milliseconds, seconds and tivoli. It
// formats and parses; it is safe for concurrent use.
type Pattern struct {
	source   string
	named    namedPattern
	elements []element
	zoned    bool
	zones    ZoneCache // of the IDs that parsed texts carried
}

type namedPattern uint8

const (
	unnamed namedPattern = iota
	namedISO
	namedMillis
	namedSeconds
)

// element is a field (letter set), an optional section (letter '[') or a literal text (letter 0).
type element struct {
	letter  byte
	count   int    // repetitions of the letter
	pad     int    // width to fill with blanks on the left, 0 for none
	text    string // literal
	section []element
	// Numbers that touch have no separator to end them: then both keep their full width, and a number of open width (a single letter) leaves reserve
	// digits to those behind it.
	touching bool
	reserve  int
}

const (
	maxPatternLength  = 512
	maxPatternNesting = 16
)

// maxCount returns how often a pattern letter may be repeated; 0 for a letter without meaning.
func maxCount(letter byte) int {
	switch letter {
	case 'W', 'F', 'u', 'a':
		return 1
	case 'd', 'H', 'h', 'K', 'k', 'm', 's', 'w', 'V':
		return 2
	case 'D':
		return 3
	case 'Q', 'q', 'z', 'O':
		return 4
	case 'G', 'M', 'E', 'e', 'X', 'x', 'Z':
		return 5
	case 'y', 'Y', 'S':
		return 9
	case 'A', 'n', 'N', 'p':
		return 15
	}
	return 0
}

// CompilePattern compiles a pattern. A letter without meaning, a repetition that means nothing and unbalanced quotes or brackets are errors.
func CompilePattern(pattern string) (*Pattern, error) {
	p := &Pattern{source: pattern, zoned: true}
	switch strings.ToLower(pattern) {
	case "iso":
		p.named = namedISO
		return p, nil
	case "milliseconds":
		p.named = namedMillis
		return p, nil
	case "seconds":
		p.named = namedSeconds
		return p, nil
	case "tivoli":
		pattern = "'1'yyMMddHHmmssSSS"
	case "":
		return nil, fmt.Errorf("date pattern is empty")
	}
	if len(pattern) > maxPatternLength {
		return nil, fmt.Errorf("date pattern is longer than %d bytes", maxPatternLength)
	}
	c := patternCompiler{text: pattern}
	elements, err := c.section(0)
	if err != nil {
		return nil, fmt.Errorf("date pattern %q at character %d: %w", pattern, utf8.RuneCountInString(pattern[:c.fault])+1, err)
	}
	p.elements, p.zoned = elements, c.zoned
	linkNumbers(p.elements)
	return p, nil
}

type patternCompiler struct {
	text  string
	pos   int
	fault int // byte of text at which stands what an error is about
	zoned bool
}

// section compiles up to the end of the text, or to the bracket that closes an optional section.
func (c *patternCompiler) section(depth int) ([]element, error) {
	var elements []element
	opened := c.pos - 1 // the bracket of the section
	for c.pos < len(c.text) {
		c.fault = c.pos
		switch ch := c.text[c.pos]; {
		case ch == ']':
			if depth == 0 {
				return nil, fmt.Errorf("] without [")
			}
			return elements, nil
		case ch == '[':
			e, err := c.optional(depth + 1)
			if err != nil {
				return nil, err
			}
			elements = append(elements, e)
		case ch == '\'':
			text, err := c.quoted()
			if err != nil {
				return nil, err
			}
			elements = append(elements, element{text: text})
		case ch == 'T' || !isLetter(ch):
			c.pos++
			elements = append(elements, element{text: string(ch)})
		default:
			e, err := c.field()
			if err != nil {
				return nil, err
			}
			elements = append(elements, e)
		}
	}
	if depth > 0 {
		c.fault = opened
		return nil, fmt.Errorf("[ without ]")
	}
	return elements, nil
}

func (c *patternCompiler) optional(depth int) (element, error) {
	if depth > maxPatternNesting {
		return element{}, fmt.Errorf("more than %d optional sections inside each other", maxPatternNesting)
	}
	c.pos++
	section, err := c.section(depth)
	c.pos++
	return element{letter: '[', section: section}, err
}

// quoted takes 'text'; two quotes are one quote, inside and outside.
func (c *patternCompiler) quoted() (string, error) {
	if strings.HasPrefix(c.text[c.pos:], "''") {
		c.pos += 2
		return "'", nil
	}
	var b strings.Builder
	for i := c.pos + 1; i < len(c.text); i++ {
		if c.text[i] != '\'' {
			b.WriteByte(c.text[i])
			continue
		}
		if i+1 == len(c.text) || c.text[i+1] != '\'' {
			c.pos = i + 1
			return b.String(), nil
		}
		b.WriteByte('\'')
		i++
	}
	return "", fmt.Errorf("quote without end")
}

func (c *patternCompiler) field() (element, error) {
	e := c.run()
	if e.letter == 'p' {
		width := e.count
		if c.pos >= len(c.text) || !isLetter(c.text[c.pos]) {
			return e, fmt.Errorf("p pads a field, but none follows")
		}
		c.fault = c.pos
		e = c.run()
		e.pad = width
	}
	limit := maxCount(e.letter)
	switch {
	case limit == 0 || e.letter == 'p':
		return e, fmt.Errorf("letter %c has no meaning here: quote it if it is text", e.letter)
	case e.count > limit || e.letter == 'V' && e.count != 2 || e.letter == 'O' && e.count != 1 && e.count != 4:
		return e, fmt.Errorf("letter %c repeated %d times has no meaning", e.letter, e.count)
	}
	c.zoned = c.zoned || strings.IndexByte("VzOXxZ", e.letter) >= 0
	return e, nil
}

// run takes one letter and its repetitions.
func (c *patternCompiler) run() element {
	e := element{letter: c.text[c.pos]}
	for c.pos < len(c.text) && c.text[c.pos] == e.letter {
		c.pos++
		e.count++
	}
	return e
}

// numeric reports whether the field is written in digits alone.
func (e *element) numeric() bool {
	switch e.letter {
	case 'M', 'Q', 'q', 'e':
		return e.count <= 2
	case 'y', 'Y', 'D', 'd', 'w', 'W', 'F', 'u', 'A', 'n', 'N', 'H', 'h', 'K', 'k', 'm', 's', 'S':
		return true
	}
	return false
}

// linkNumbers finds numbers that touch, from the end to the start. An optional section touches through its first element.
func linkNumbers(elements []element) {
	for i := len(elements) - 1; i >= 0; i-- {
		e := &elements[i]
		linkNumbers(e.section)
		next := e.following(elements[i+1:])
		if next == nil || !e.numeric() || !next.numeric() {
			continue
		}
		e.touching, next.touching = true, true
		e.reserve = next.reserve + next.count
	}
}

func (e *element) following(rest []element) *element {
	for len(rest) > 0 {
		if rest[0].letter != '[' {
			return &rest[0]
		}
		rest = rest[0].section
	}
	return nil
}

// String returns the pattern as it was compiled.
func (p *Pattern) String() string { return p.source }

// HasZone reports whether a text of this pattern names an instant by itself.
func (p *Pattern) HasZone() bool { return p.zoned }

// LoadZonesBy makes load resolve the zones that texts name, in place of LoadZoneOrOffset, where there is no database of zones. It is called before the
// pattern is used.
func (p *Pattern) LoadZonesBy(load func(id string) (*time.Location, error)) { p.zones.load = load }

// Parse reads a text that the pattern covers completely. The zone applies when the text carries none. Fields that the pattern lacks take their first
// value; without a year that is 1970.
func (p *Pattern) Parse(text string, zone *time.Location) (core.Time, error) {
	return p.parse(text, reading{zone: zone})
}

// ParseIn is Parse with a zone that the text may repeat but not contradict: another offset in the text is an error.
func (p *Pattern) ParseIn(text string, zone *time.Location) (core.Time, error) {
	return p.parse(text, reading{zone: zone, agree: true})
}

// ParseLenient is Parse for tables made by others: one digit is enough where two are due, text after a complete match is ignored, more digits of a
// fraction are cut, and HH takes an AM/PM marker.
func (p *Pattern) ParseLenient(text string, zone *time.Location) (core.Time, error) {
	return p.parse(text, reading{zone: zone, lenient: true})
}

// Format returns the text of Append.
func (p *Pattern) Format(t core.Time, zone *time.Location) string {
	return string(p.Append(make([]byte, 0, 32), t, zone))
}
