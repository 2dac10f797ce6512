package webhook

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
)

// flatten appends the scalars in an object or array that checkJSON has taken. path and name are those of the whole, empty at the root.
//
// It is one pass over the bytes: a walk with the JSON library reads everything as often as it is nested.
func (f *flat) flatten(json, path, name string) error {
	f.path, f.name = append(f.path[:0], path...), append(f.name[:0], name...)
	f.text, f.places, f.err, f.json = f.text[:0], f.places[:0], nil, json
	first := len(f.leaves)
	if at := f.next(0); json[at] == '{' {
		f.object(at + 1)
	} else {
		f.array(at + 1)
	}
	text := f.names(path == "")
	for i, at := range f.places {
		one := &f.leaves[first+i]
		one.path, one.name = text[at.path:at.name], text[at.name:at.end]
		if one.name == "" {
			one.name = one.path
		}
	}
	return f.err
}

// names returns the paths and names as a string: that of the body before when it is the same, so that it is allocated once.
func (f *flat) names(ofBody bool) string {
	if ofBody && string(f.text) == f.known {
		return f.known
	}
	text := string(f.text)
	if ofBody {
		f.known = text
	}
	return text
}

// next returns the place of the next byte that says something, from i on: in valid JSON the others can be nothing but what they should be.
func (f *flat) next(i int) int {
	for {
		switch f.json[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		default:
			return i
		}
	}
}

// object reads the members of an object, from i on, and returns the place behind its brace. The recursion is as deep as the JSON, which checkJSON has limited.
func (f *flat) object(i int) int {
	path, name := len(f.path), len(f.name)
	for i = f.next(i); f.json[i] != '}'; i = f.next(i) {
		key, end := f.quoted(i)
		if path > 0 {
			f.path, f.name = append(f.path, '.'), append(f.name, '.')
		}
		f.path, f.name = append(f.path, key.text...), append(f.name, tagName(key.text)...)
		i = f.value(f.next(end))
		if f.err != nil {
			return i
		}
		f.path, f.name = f.path[:path], f.name[:name]
	}
	return i + 1
}

// array reads the elements of an array, as object does.
func (f *flat) array(i int) int {
	path, name := len(f.path), len(f.name)
	index := int64(0)
	for i = f.next(i); f.json[i] != ']'; i = f.next(i) {
		f.path = append(strconv.AppendInt(append(f.path, '['), index, 10), ']')
		f.name = append(f.name, f.path[path:]...)
		index++
		i = f.value(i)
		if f.err != nil {
			return i
		}
		f.path, f.name = f.path[:path], f.name[:name]
	}
	return i + 1
}

// value reads the value at i and returns the place behind it.
func (f *flat) value(i int) int {
	if f.err = f.spend(len(f.path) + len(f.name)); f.err != nil {
		return i
	}
	switch f.json[i] {
	case '{':
		return f.object(i + 1)
	case '[':
		return f.array(i + 1)
	case '"':
		s, end := f.quoted(i)
		one := leaf{raw: s.text, text: true, value: unquote(trimMargin(s.text))}
		if s.plain {
			one.value = trimMargin(one.value)
		} else {
			one.value = cleanValue(one.value)
		}
		f.addLeaf(one)
		return end
	}
	start := i
	for !endsWord(f.json[i]) {
		i++
	}
	if f.json[start] != 'n' { // null is no value
		f.addLeaf(leaf{value: f.json[start:i]}) // numbers keep their literal text
	}
	return i
}

// endsWord holds for the bytes that can follow a number, true, false or null inside of an object or array.
func endsWord(c byte) bool { return c == ',' || c == '}' || c == ']' || c <= ' ' }

// quotedText is a text of the JSON, decoded.
type quotedText struct {
	text  string
	plain bool // nothing but ASCII that a value may hold
}

// quoted reads the text whose quote is at i, and returns the place behind it.
func (f *flat) quoted(i int) (s quotedText, end int) {
	start := i + 1
	bits, escaped := byte(0), false
	for i = start; f.json[i] != '"'; i++ {
		bits |= f.json[i]
		if f.json[i] == '\\' {
			escaped = true
			i++
		}
	}
	if escaped {
		return quotedText{text: gjson.Parse(f.json[start-1 : i+1]).Str}, i + 1
	}
	return quotedText{f.json[start:i], bits < 0x80}, i + 1 // control characters are not valid unless escaped
}

// addLeaf appends a scalar with the path and name that f is at.
func (f *flat) addLeaf(one leaf) {
	f.leaves = append(f.leaves, one)
	at := place{path: len(f.text)}
	f.text = append(f.text, f.path...)
	at.name = len(f.text)
	if !bytes.Equal(f.path, f.name) {
		f.text = append(f.text, f.name...)
	}
	at.end = len(f.text)
	f.places = append(f.places, at)
}
