package schema

import (
	"math"
	"strconv"
	"strings"
)

// last stands for * in a selection: the last row or column.
const last = math.MaxInt32

// maxPosition bounds the numbers in a selection, so that a position and a step fit 32 bits.
const maxPosition = 999_999_999

// span is a range of rows or columns, from 1, bounds included. The step counts from its beginning.
type span struct{ from, to, step int }

var everything = span{1, last, 1}

// within puts the number of columns in the place of *.
func (s span) within(size int) span {
	if s.from == last {
		s.from = size
	}
	s.to = min(s.to, size)
	return s
}

func (s span) has(n int) bool { return n >= s.from && n <= s.to && (n-s.from)%s.step == 0 }

// selection is a rectangle of cells.
type selection struct{ rows, columns span }

// parseSelection reads #row=, #col= and #cell= with their ranges (the contract, section 8.1).
func parseSelection(text string) (selection, string) {
	name, ranges, _ := strings.Cut(text, "=")
	s := selection{everything, everything}
	reason := ""
	switch name {
	case "#row":
		s.rows, reason = parseSpan(ranges)
	case "#col":
		s.columns, reason = parseSpan(ranges)
	case "#cell":
		s, reason = parseRectangle(ranges)
	default:
		reason = "#row=, #col= or #cell= is expected at its beginning"
	}
	if reason != "" {
		reason = "selection " + strconv.Quote(clip(text)) + ": " + reason
	}
	return s, reason
}

func parseSpan(text string) (span, string) {
	text, step, stepped := strings.Cut(text, "!")
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	if stepped && !ranged {
		return span{}, "a step needs a range: " + from + "-*!" + step
	}
	return makeSpan(from, to, step, stepped)
}

func parseRectangle(text string) (s selection, reason string) {
	text, steps, stepped := strings.Cut(text, "!")
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	row, column, ok := strings.Cut(from, ",")
	lastRow, lastColumn, okTo := strings.Cut(to, ",")
	rowStep, columnStep, okSteps := strings.Cut(steps, ",")
	switch {
	case !ok || !okTo:
		return s, "row,column is expected, or row,column-row,column"
	case stepped && !ranged:
		return s, "a step needs a range: " + from + "-*,*!" + steps
	case stepped && !okSteps:
		return s, "a step for rows and one for columns are expected behind !"
	}
	if s.rows, reason = makeSpan(row, lastRow, rowStep, stepped); reason == "" {
		s.columns, reason = makeSpan(column, lastColumn, columnStep, stepped)
	}
	return s, reason
}

func makeSpan(from, to, step string, stepped bool) (s span, reason string) {
	number := func(text string) int {
		n, err := strconv.ParseUint(text, 10, 31)
		if (err != nil || n == 0 || n > maxPosition) && reason == "" {
			reason = strconv.Quote(clip(text)) + " is not a number from 1"
		}
		return int(n)
	}
	bound := func(text string) int {
		if text == "*" {
			return last
		}
		return number(text)
	}
	s = span{bound(from), bound(to), 1}
	if reason != "" {
		reason += " and not *"
	}
	if stepped {
		s.step = number(step)
	}
	return s, reason
}
