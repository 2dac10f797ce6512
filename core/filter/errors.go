package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// SyntaxError is an expression that does not compile. It counts as a core.Error of code Invalid.
type SyntaxError struct {
	Source string
	Offset int // byte in Source of the first token that cannot continue
	Reason string
}

// Error names the place and the reason: line from 1, position = zero-based column in characters.
func (e *SyntaxError) Error() string {
	line, column := e.Place()
	return fmt.Sprintf("Syntax error at line %d position %d: %s", line, column, e.Reason)
}

// Unwrap makes core.CodeOf see an invalid request whose text may be shown.
func (e *SyntaxError) Unwrap() error { return core.Errorf(core.Invalid, "%s", e.Error()) }

// Place returns the line, counted from 1, and the column, counted from 0.
func (e *SyntaxError) Place() (line, column int) {
	before := e.Source[:e.Offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), utf8.RuneCountInString(before[start:])
}

// Caret renders the error with the line it is in and a mark below the place.
func (e *SyntaxError) Caret() string {
	_, column := e.Place()
	start := strings.LastIndexByte(e.Source[:e.Offset], '\n') + 1
	text, _, _ := strings.Cut(e.Source[start:], "\n")
	return fmt.Sprintf("%s\n  %s\n  %s^", e.Error(), text, strings.Repeat(" ", column))
}

// noViable is the error of a token that no rule takes: the text from the start of the failed phrase to the end of the token.
func noViable(source string, phrase int, t token) *SyntaxError {
	text := source[min(phrase, t.start):t.end]
	if text = strings.TrimSpace(text); text == "" {
		text = "<EOF>"
	}
	return &SyntaxError{Source: source, Offset: t.start, Reason: "no viable alternative at input '" + text + "'"}
}
