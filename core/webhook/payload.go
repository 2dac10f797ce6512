package webhook

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

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

// flat is a list of leaves in document order.
type flat struct {
	leaves   []leaf
	maxDepth int
	spent    int // bytes of all paths made
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

// flatten appends the scalars below v. path and name are those of v, empty at the root. The recursion is as deep as the JSON, which parseJSON has limited.
func (f *flat) flatten(v gjson.Result, path, name string) error {
	var err error
	if v.IsArray() {
		index := 0
		v.ForEach(func(_, element gjson.Result) bool {
			at := "[" + strconv.Itoa(index) + "]"
			index++
			err = f.add(element, path+at, name+at)
			return err == nil
		})
		return err
	}
	v.ForEach(func(key, member gjson.Result) bool {
		childPath, childName := key.Str, tagName(key.Str)
		if path != "" {
			childPath, childName = path+"."+childPath, name+"."+childName
		}
		err = f.add(member, childPath, childName)
		return err == nil
	})
	return err
}

// add appends a scalar, or descends.
func (f *flat) add(v gjson.Result, path, name string) error {
	if err := f.spend(len(path) + len(name)); err != nil {
		return err
	}
	switch v.Type {
	case gjson.JSON:
		return f.flatten(v, path, name)
	case gjson.Null:
		return nil
	}
	one := leaf{path: path, name: name, value: v.Raw} // numbers keep their literal text
	if v.Type == gjson.String {
		one.raw, one.text = v.Str, true
		one.value = cleanValue(unquote(strings.TrimFunc(v.Str, isMargin)))
	}
	f.leaves = append(f.leaves, one)
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
	if i := slices.IndexFunc(f.leaves, func(l leaf) bool { return l.path == path }); i >= 0 {
		return i
	}
	return slices.IndexFunc(f.leaves, func(l leaf) bool { return strings.EqualFold(l.path, path) || strings.EqualFold(l.name, path) })
}

// expand replaces a leaf that holds a JSON object or array by what is in it; any other text stays a leaf.
func (f *flat) expand(at int) error {
	one := f.leaves[at]
	if first := firstByte([]byte(one.raw)); !one.text || first != '{' && first != '[' {
		return nil
	}
	if depth([]byte(one.raw)) > f.maxDepth {
		return tooDeep(f.maxDepth)
	}
	root, err := parseJSON([]byte(one.raw), f.maxDepth)
	if err != nil {
		return nil // text that only looks like JSON is an ordinary tag
	}
	// The children take the place of their parent, so that document order still decides between equal names.
	rest := slices.Clone(f.leaves[at+1:])
	f.leaves = f.leaves[:at]
	if err := f.flatten(root, one.path, one.name); err != nil {
		return err
	}
	f.leaves = append(f.leaves, rest...)
	return nil
}

func tooDeep(limit int) error {
	return core.Errorf(core.Invalid, "JSON is nested deeper than limits.depth (%d levels)", limit)
}

// parseJSON checks an object or array before it is walked: the JSON library recurses without a limit.
func parseJSON(body []byte, maxDepth int) (gjson.Result, error) {
	if depth(body) > maxDepth {
		return gjson.Result{}, tooDeep(maxDepth)
	}
	if !gjson.ValidBytes(body) {
		return gjson.Result{}, core.Errorf(core.Invalid, "webhook body is not valid JSON")
	}
	root := gjson.ParseBytes(body)
	if root.Type != gjson.JSON {
		return gjson.Result{}, core.Errorf(core.Invalid, "webhook body is not a JSON object or array")
	}
	return root, nil
}

// depth returns how deep brackets are nested outside of texts.
func depth(body []byte) int {
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

// tagName makes a name of any text: lower case, with `_` for what is not printable.
func tagName(s string) string {
	return strings.Map(func(r rune) rune {
		if isMargin(r) {
			return '_'
		}
		return r
	}, strings.ToLower(strings.ToValidUTF8(s, "_")))
}

// cleanValue trims a value and replaces what no value may hold.
func cleanValue(s string) string {
	s = strings.TrimFunc(strings.ToValidUTF8(s, "\uFFFD"), isMargin)
	return strings.Map(func(r rune) rune {
		if r <= 1 { // separators of the canonical key
			return '_'
		}
		return r
	}, s)
}

// isMargin reports whether r is trimmed at the ends of values and not allowed in names.
func isMargin(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
