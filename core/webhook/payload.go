package webhook

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
)

// leaf is one scalar of the payload, or one plain parameter.
type leaf struct {
	path  string // as sent
	name  string // as a tag: lower case, printable
	value string // trimmed; of JSON texts also unquoted. "" gives no tag
	raw   string // as sent: what json.parse reads
	text  bool   // a text, which json.parse may read
}

// flat is a list of leaves in document order. It reuses its memory from request to request; the strings of its leaves are never reused.
type flat struct {
	leaves   []leaf
	maxDepth int
	spent    int // bytes of all paths made

	// The state of a walk over JSON. Names are collected as bytes and become one string at its end, of which those of the leaves are parts.
	json       string // what is walked over
	path, name []byte // of the value that is being read
	text       []byte // paths and names of the leaves read, one after another
	places     []place
	err        error
	known      string // the text of the body before: a service fills in the same form each time
}

// place is where flat.text holds the path and the name of a leaf; a name that equals the path has no bytes of its own.
type place struct{ path, name, end int }

// reset makes f ready for a request. It keeps nothing that points into the one before.
func (f *flat) reset(maxDepth int) {
	clear(f.leaves)
	f.leaves, f.maxDepth, f.spent, f.json = f.leaves[:0], maxDepth, 0, ""
}

// size is about how much memory f holds on to.
func (f *flat) size() int {
	return cap(f.leaves)*int(unsafe.Sizeof(leaf{})) + cap(f.places)*int(unsafe.Sizeof(place{})) + cap(f.path) + cap(f.name) + cap(f.text) + len(f.known)
}

const (
	// maxLeaves is well above what any service sends and bounds the memory of a hostile body.
	maxLeaves = 1 << 16
	// maxPathBytes bounds the sum of all paths: a long outer name repeats in the path of everything below it.
	maxPathBytes = 16 << 20
)

var errTooMany = core.Errorf(core.TooLarge, "webhook request has too many fields: at most %d, with %d bytes of names, are read", maxLeaves, maxPathBytes)

// addParameters appends the parameters that are not reserved; of repeated ones the first.
func (f *flat) addParameters(params parameters) error {
	seen := make(map[string]bool)
	for _, p := range params {
		name := tagName(p.name)
		if isReserved(p.name) || seen[name] {
			continue
		}
		seen[name] = true
		if err := f.spend(len(name)); err != nil {
			return err
		}
		f.leaves = append(f.leaves, leaf{path: p.name, name: name, value: cleanValue(p.value), raw: p.value, text: true})
	}
	return nil
}

// spend accounts for one more path, before it is kept.
func (f *flat) spend(bytes int) error {
	f.spent += bytes
	if f.spent > maxPathBytes || len(f.leaves) >= maxLeaves {
		return errTooMany
	}
	return nil
}

// find returns the index of a leaf by its path: as sent, else ignoring case, else as a tag name; -1 when there is none.
func (f *flat) find(path string) int {
	for i := range f.leaves {
		if f.leaves[i].path == path {
			return i
		}
	}
	return slices.IndexFunc(f.leaves, func(l leaf) bool { return strings.EqualFold(l.path, path) || strings.EqualFold(l.name, path) })
}

// holds reports whether a text of the payload is exactly this one.
func (f *flat) holds(text string) bool {
	for i := range f.leaves {
		if f.leaves[i].raw == text {
			return true
		}
	}
	return false
}

// expand replaces a leaf that holds a JSON object or array by what is in it; any other text stays a leaf.
func (f *flat) expand(at int) error {
	one := f.leaves[at]
	if first := firstByte(one.raw); !one.text || first != '{' && first != '[' {
		return nil
	}
	if depth(one.raw, f.maxDepth) > f.maxDepth {
		return tooDeep(f.maxDepth)
	}
	if checkJSON(one.raw, f.maxDepth) != nil {
		return nil // text that only looks like JSON is an ordinary tag
	}
	// The children take the place of their parent, so that document order still decides between equal names.
	rest := slices.Clone(f.leaves[at+1:])
	f.leaves = f.leaves[:at]
	if err := f.flatten(one.raw, one.path, one.name); err != nil {
		return err
	}
	f.leaves = append(f.leaves, rest...)
	return nil
}

func tooDeep(limit int) error {
	return core.Errorf(core.Invalid, "JSON is nested deeper than limits.depth (%d levels)", limit)
}

// checkJSON takes nothing but a valid object or array of bounded depth. Whatever walks over it afterwards may recurse, and need not look for faults.
func checkJSON(body string, maxDepth int) error {
	if depth(body, maxDepth) > maxDepth {
		return tooDeep(maxDepth)
	}
	if !gjson.Valid(body) {
		return core.Errorf(core.Invalid, "webhook body is not valid JSON")
	}
	if first := firstByte(body); first != '{' && first != '[' {
		return core.Errorf(core.Invalid, "webhook body is not a JSON object or array")
	}
	return nil
}

// depth returns how deep brackets are nested outside of texts, or a bound that is not above the limit.
func depth(body string, limit int) int {
	// Most bodies have fewer brackets than they may have levels: counting them is much faster than looking at each byte.
	if n := strings.Count(body, "{") + strings.Count(body, "["); n <= limit {
		return n
	}
	deepest, open := 0, 0
	inText := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}

// unquote cuts one quote character at each end.
func unquote(s string) string {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		s = s[1:]
	}
	if s != "" && (s[len(s)-1] == '"' || s[len(s)-1] == '\'') {
		s = s[:len(s)-1]
	}
	return s
}

// tagName makes a name of any text: lower case, with `_` for what is not printable. A text that is such a name comes back as it is.
func tagName(s string) string {
	if isTagName(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isMargin(r) {
			return '_'
		}
		return r
	}, strings.ToLower(strings.ToValidUTF8(s, "_")))
}

// isTagName knows the usual names: ASCII only.
func isTagName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !printable(c) || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// cleanValue trims a value and replaces what no value may hold.
func cleanValue(s string) string {
	if isPlain(s) {
		return trimMargin(s)
	}
	s = strings.TrimFunc(strings.ToValidUTF8(s, "\uFFFD"), isMargin)
	return strings.Map(func(r rune) rune {
		if r <= 1 { // separators of the canonical key
			return '_'
		}
		return r
	}, s)
}

// isPlain reports whether s has nothing but ASCII that a value may hold.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= 1 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// trimMargin cuts margins at both ends.
func trimMargin(s string) string {
	if s == "" || printable(s[0]) && printable(s[len(s)-1]) {
		return s
	}
	return strings.TrimFunc(s, isMargin)
}

// printable holds for ASCII characters only: others take the slow way.
func printable(c byte) bool { return c > ' ' && c < 0x7f }

// isMargin reports whether r is trimmed at the ends of values and not allowed in names.
func isMargin(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
