package filter

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindSeverity
	kindDate
	kindClock
	kindList
	kindMap
)

// Value is what a variable or a part of an expression holds. The zero Value is null.
type Value struct {
	kind kind
	num  float64 // number; 1 for true; Unix ms of a date; ms since midnight of a time of day; code of a severity
	text string
	list []string
	dict Map
	zone *time.Location // of a date; nil = UTC
}

// Map is a value with members, such as tags.
type Map interface {
	// Get returns the member of a lower-case name, "" when there is none.
	Get(name string) string
	// Values returns all values; the order is not defined.
	Values() []string
}

// Null is the absent value.
var Null = Value{}

// Text returns a text.
func Text(s string) Value { return Value{kind: kindText, text: s} }

// Number returns a number; NaN stands for a missing one.
func Number(f float64) Value { return Value{kind: kindNumber, num: f} }

// Bool returns a truth value.
func Bool(b bool) Value {
	if b {
		return Value{kind: kindBool, num: 1}
	}
	return Value{kind: kindBool}
}

// Date returns an instant, which compares with date texts, and with numbers as Unix ms.
func Date(t core.Time) Value { return Value{kind: kindDate, num: float64(t)} }

// Severity returns a severity: a text that ignores case and orders by code.
func Severity(s core.Severity) Value {
	return Value{kind: kindSeverity, num: float64(s), text: s.String()}
}

// List returns a list of texts.
func List(elements []string) Value { return Value{kind: kindList, list: elements} }

// MapOf returns a map.
func MapOf(m Map) Value { return Value{kind: kindMap, dict: m} }

// StringMap is a Map with lower-case names.
type StringMap map[string]string

// Get returns the member of a lower-case name.
func (m StringMap) Get(name string) string { return m[name] }

// Values returns all values.
func (m StringMap) Values() []string {
	out := make([]string, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// TagMap makes core.Tags a Map.
type TagMap core.Tags

// Get returns the value of a tag.
func (m TagMap) Get(name string) string { return core.Tags(m).Value(name) }

// Values returns all values, by tag name.
func (m TagMap) Values() []string {
	out := make([]string, len(m))
	for i, t := range m {
		out[i] = t.Value
	}
	return out
}

// truth is the value as a condition: null, false, zero, NaN and everything empty are false.
func (v Value) truth() bool {
	switch v.kind {
	case kindBool, kindNumber:
		return v.num != 0 && !math.IsNaN(v.num)
	case kindText:
		return v.text != ""
	case kindSeverity, kindDate, kindClock:
		return true
	}
	return v.size() > 0
}

// size is the number of elements or members, or of characters.
func (v Value) size() int {
	switch v.kind {
	case kindList:
		return len(v.list)
	case kindMap:
		return len(v.dict.Values())
	}
	return len([]rune(v.String()))
}

// String returns the value as a text: what lower() or LIKE see of it.
func (v Value) String() string {
	switch v.kind {
	case kindText, kindSeverity:
		return v.text
	case kindBool:
		return strconv.FormatBool(v.num != 0)
	case kindNumber:
		return strconv.FormatFloat(v.num, 'f', -1, 64)
	case kindDate:
		return core.Time(v.num).Std().Format("2006-01-02T15:04:05.000Z")
	case kindClock:
		return clockText(v.num)
	case kindList:
		return strings.Join(v.list, ",")
	}
	return ""
}

// number returns the value as a number; ok is false for what is none.
func (v Value) number() (f float64, ok bool) {
	switch v.kind {
	case kindBool, kindNumber, kindDate, kindSeverity:
		return v.num, true
	case kindText:
		return parseNumber(v.text)
	}
	return math.NaN(), false
}

// parseNumber takes decimal numbers and NaN. Hexadecimal, underscores and infinities, which strconv also takes, are texts here.
func parseNumber(s string) (float64, bool) {
	if s == "NaN" {
		return math.NaN(), true
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && !strings.ContainsRune("+-.eE", rune(c)) {
			return math.NaN(), false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN(), false
	}
	return f, true
}

// elements returns what a function that takes a collection sees: a list as it is, a text as its only element.
func (v Value) elements() []string {
	switch v.kind {
	case kindList:
		return v.list
	case kindMap:
		return v.dict.Values()
	case kindNull:
		return nil
	}
	return []string{v.String()}
}

// ordering is the result of a comparison. Two values may be in no order at all: then every operator but != is false, and for NaN that one too.
type ordering uint8

const (
	unordered ordering = iota // only != holds
	undefined                 // nothing holds
	less
	equal
	greater
)

func orderOf(c int) ordering { return ordering(int(equal) + c) }

// compare orders two values. Dates in texts were resolved before (see run.order).
func compare(a, b Value) ordering {
	switch {
	case a.kind == kindNull || b.kind == kindNull:
		return compareNull(a, b)
	case a.kind == kindText && b.kind == kindText:
		return orderOf(compareUnits(a.text, b.text))
	case a.kind == kindSeverity && b.kind == kindText:
		return compareSeverity(a, b.text)
	case b.kind == kindSeverity && a.kind == kindText:
		return reverse(compareSeverity(b, a.text))
	case a.kind == kindBool && b.kind == kindText:
		return compareBool(a, b.text)
	case b.kind == kindBool && a.kind == kindText:
		return compareBool(b, a.text)
	case a.kind >= kindList || b.kind >= kindList:
		return compareLists(a, b)
	}
	x, ok1 := a.number()
	y, ok2 := b.number()
	switch {
	case !ok1 || !ok2:
		return orderOf(compareUnits(a.String(), b.String()))
	case math.IsNaN(x) || math.IsNaN(y):
		return undefined
	}
	return orderOf(cmp.Compare(x, y))
}

// compareNull knows that an undefined text field equals both null and the empty text.
func compareNull(a, b Value) ordering {
	if a.kind == kindNull {
		a, b = b, a
	}
	if a.kind == kindNull || a.kind == kindText && a.text == "" {
		return equal
	}
	return unordered
}

func compareSeverity(a Value, text string) ordering {
	if s, ok := core.ParseSeverity(text); ok {
		return orderOf(cmp.Compare(a.num, float64(s)))
	}
	return unordered
}

func compareBool(a Value, text string) ordering {
	if strings.EqualFold(a.String(), text) {
		return equal
	}
	return unordered
}

func compareLists(a, b Value) ordering {
	if a.kind != b.kind || a.kind != kindList || len(a.list) != len(b.list) {
		return unordered
	}
	for i := range a.list {
		if a.list[i] != b.list[i] {
			return unordered
		}
	}
	return equal
}

// compareUnits orders texts by UTF-16 code unit. It differs from the order of bytes only where a character above U+FFFF meets one from U+E000 up.
func compareUnits(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	x, y := a[n], b[n]
	if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
		return cmp.Compare(y, x)
	}
	return cmp.Compare(x, y)
}

func reverse(o ordering) ordering {
	switch o {
	case less:
		return greater
	case greater:
		return less
	}
	return o
}
