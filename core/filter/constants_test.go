package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// What is constant and can never be evaluated is refused by its place (line from 1, column from 0), whether it is checked or compiled.
func TestConstantsAreChecked(t *testing.T) {
	for _, test := range []struct {
		text   string
		column int // -1: there is no fault
		reason string
	}{
		{"regexAny(name, ['('])", 16, "bad regular expression '('"},
		{"regexAny(name, ['a', 'b', '['])", 26, "bad regular expression '['"},
		{"regexAny(name, ['a)(b'])", 16, "unexpected )"},
		{"name REGEX 'a)(b'", 11, "unexpected )"},
		{"regexAny(name, '(')", 15, "bad regular expression '('"},
		{"regexAny(name, list('a,('))", 15, "bad regular expression '('"},
		{"regexAny(name, list('a|(', '|'))", 15, "bad regular expression '('"},
		{"name = 'a' OR regexAny(name, ['a{1001}'])", 30, "bad regular expression"},
		{"regexAny(name, ['" + strings.Repeat("a{1000}", 11) + "'])", 16, "regular expression of more than 10000 steps"},
		{"property('a') = 'b'", 9, "property search 'a' is not of the form"},
		{"property('e1', 'a') = 'b'", 15, "property search 'a' is not of the form"},
		{"property_values('a:b').contains('b')", 16, "property search 'a:b' is not of the form"},
		{"created > date('soon')", 15, "'soon' is not a date"},
		{"regexAny(name, ['a.*', 'b|c'])", -1, ""},
		{"regexAny(name, [])", -1, ""},
		{"regexAny(name, tags.pattern)", -1, ""}, // known with a record only
		{"regexAny(name, [tags.pattern, 'a'])", -1, ""},
		{"regexAny(name, list(tags.pattern))", -1, ""},
		{"property('a::b') = 'c'", -1, ""},
		{"property(name) = 'c'", -1, ""},
		{"date(tags.when) > date('2030-01-01')", -1, ""},
	} {
		err := Check(Entities, test.text)
		if test.column < 0 {
			if err != nil {
				t.Errorf("%s: %v", test.text, err)
			}
			continue
		}
		var e *SyntaxError
		if !errors.As(err, &e) || core.CodeOf(err) != core.Invalid || !strings.Contains(e.Reason, test.reason) {
			t.Errorf("%s: %v, want %s", test.text, err, test.reason)
			continue
		}
		if line, column := e.Place(); line != 1 || column != test.column {
			t.Errorf("%s: at line %d position %d, want position %d", test.text, line, column, test.column)
		}
	}
	if _, err := Compile(Entities, "regexAny(name, ['('])"); err == nil {
		t.Error("it compiles")
	}
}

// The bound of an expression says that no setting changes it, and what to do.
func TestExpressionLimit(t *testing.T) {
	text := "name = '" + strings.Repeat("x", maxSource) + "'"
	err := Check(Entities, text)
	if core.CodeOf(err) != core.TooLarge || err.Error() != "expression has 16393 bytes, at most 16384 are allowed, which no setting changes: put long lists of entities into an entity group" {
		t.Error(err)
	}
	if err := Check(Entities, text[:8]+text[8+9:]); err != nil { // exactly 16384
		t.Error(err)
	}
}
