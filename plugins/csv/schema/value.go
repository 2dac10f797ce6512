package schema

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

type valueKind uint8

const (
	undefined valueKind = iota
	null
	boolean // in number: 0 or 1
	number
	text
	list
	record
	function
	pattern
	kinds // how many there are
)

// kindNames say in messages what a value is.
var kindNames = [...]string{"undefined", "null", "a boolean", "a number", "a text", "an array", "an object", "a function", "a regular expression"}

// value is a value of the script language.
type value struct {
	kind   valueKind
	number float64
	text   string
	ref    *object // of lists, records, functions and patterns
}

// object is what several values may refer to.
type object struct {
	items   []value          // of a list
	names   []string         // of a record, in the order in which they were set
	members map[string]value // of a record
	code    *closure
	native  *native
	regex   *regexp.Regexp
	// Of a regular expression: it has the flag g; a match may be of any length.
	global, unbounded bool
}

// closure is a function of the program with the variables around it.
type closure struct {
	code   *functionNode
	around *frame
}

// frame holds the variables of one call.
type frame struct {
	vars   []value
	around *frame
}

func textOf(s string) value    { return value{kind: text, text: s} }
func numberOf(n float64) value { return value{kind: number, number: n} }
func listOf(items []value) value {
	return value{kind: list, ref: &object{items: items}}
}

func boolOf(b bool) value {
	if b {
		return value{kind: boolean, number: 1}
	}
	return value{kind: boolean}
}

// truth is what conditions see.
func (v value) truth() bool {
	switch v.kind {
	case undefined, null:
		return false
	case boolean, number:
		return v.number != 0 && v.number == v.number
	case text:
		return v.text != ""
	}
	return true
}

// none reports whether a value stands for nothing.
func (v value) none() bool { return v.kind <= null || v.kind == text && v.text == "" }

// toNumber converts as arithmetic and comparisons do: an empty text is 0, one that is not a number NaN.
func (v value) toNumber() float64 {
	switch v.kind {
	case null:
		return 0
	case boolean, number:
		return v.number
	case text:
		return numberIn(v.text)
	case list:
		if len(v.ref.items) == 0 {
			return 0
		}
		if len(v.ref.items) == 1 && v.ref.items[0].kind <= text {
			return v.ref.items[0].toNumber()
		}
	}
	return math.NaN()
}

// maxDigits is the length of a text that may be a number.
const maxDigits = 1000

func numberIn(s string) float64 {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return 0
	case len(s) > maxDigits:
		return math.NaN()
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x':
		if n, err := strconv.ParseUint(s[2:], 16, 64); err == nil {
			return float64(n)
		}
		return math.NaN()
	case strings.TrimLeft(s, "+-") == "Infinity" && len(s) <= len("+Infinity"):
		if s[0] == '-' {
			return math.Inf(-1)
		}
		return math.Inf(1)
	case strings.Trim(s, "0123456789.+-eE") != "" || strings.ContainsRune(s, '_'):
		return math.NaN() // strconv would read infinities and underscores
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(n, 0) {
		return math.NaN()
	}
	return n
}

// numberText writes a number as the language does (ECMA-262, Number::toString).
func numberText(n float64) string {
	switch {
	case n != n:
		return "NaN"
	case math.IsInf(n, 1):
		return "Infinity"
	case math.IsInf(n, -1):
		return "-Infinity"
	case n == 0:
		return "0"
	}
	if a := math.Abs(n); a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
	return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// text converts as + does beside a text. Elements of arrays are joined with commas.
func (r *Run) text(v value) string {
	switch v.kind {
	case undefined:
		return "undefined"
	case null:
		return "null"
	case boolean:
		return strconv.FormatBool(v.number != 0)
	case number:
		return numberText(v.number)
	case text:
		return v.text
	case list:
		return r.join(v.ref.items, ",")
	case record:
		return "[object Object]"
	case pattern:
		return "/" + v.ref.regex.String() + "/"
	}
	return "function"
}

// join puts the texts of elements together; what an array holds of itself would have no end.
func (r *Run) join(items []value, between string) string {
	if r.joining++; r.joining > maxCalls {
		r.fail("arrays are nested deeper than %d", maxCalls)
	}
	defer func() { r.joining-- }()
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteString(between)
		}
		if !r.spend(1) {
			return ""
		}
		if item.kind > null {
			b.WriteString(r.text(item))
		}
		if b.Len() > maxText {
			r.fail("a text grows longer than %d bytes", maxText)
			return ""
		}
	}
	return r.newText(b.String())
}

// equal compares as == does.
func (r *Run) equal(a, b value) bool {
	switch {
	case a.kind <= null || b.kind <= null:
		return a.kind <= null && b.kind <= null
	case a.kind == b.kind:
		return same(a, b)
	case a.kind >= list && b.kind >= list:
		return false
	case a.kind >= list && b.kind == text:
		return r.text(a) == b.text
	case b.kind >= list && a.kind == text:
		return r.text(b) == a.text
	}
	return a.toNumber() == b.toNumber()
}

// same compares as === does.
func same(a, b value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case boolean, number:
		return a.number == b.number
	case text:
		return a.text == b.text
	}
	return a.ref == b.ref
}

// order compares for < and its like; unordered is true when a side is NaN.
func (r *Run) order(a, b value) (o int, unordered bool) {
	if a.kind >= list {
		a = textOf(r.text(a))
	}
	if b.kind >= list {
		b = textOf(r.text(b))
	}
	if a.kind == text && b.kind == text {
		return strings.Compare(a.text, b.text), false
	}
	x, y := a.toNumber(), b.toNumber()
	switch {
	case x < y:
		return -1, false
	case x > y:
		return 1, false
	}
	return 0, x != y
}

// toInt32 converts as the operators on bits do (ECMA-262, ToInt32).
func toInt32(n float64) int32 {
	if n != n || math.IsInf(n, 0) {
		return 0
	}
	n = math.Mod(math.Trunc(n), 1<<32)
	if n < 0 {
		n += 1 << 32
	}
	return int32(uint32(n))
}

// toIndex clamps a position to 0..size; NaN is 0.
func toIndex(n float64, size int) int {
	switch {
	case !(n > 0):
		return 0
	case n > float64(size):
		return size
	}
	return int(n)
}
