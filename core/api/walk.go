package api

import (
	"strings"

	"github.com/tidwall/gjson"
)

// walk calls f for each member of an object or each element of an array, until it returns false. It is Result.ForEach for the hot path: text that
// scanJSON has passed needs no second look, keys need no Result, and numbers are not converted, since their text is what counts here: v.Num is not set.
func walk(json string, f func(key string, v gjson.Result) bool) { walkAt(json, 0, f) }

// walkAt is walk for the object or array at i, whose end need not be known. It returns the place after it, or after the member at which f ended the walk.
func walkAt(json string, i int, f func(key string, v gjson.Result) bool) (end int) {
	object := i < len(json) && json[i] == '{'
	for i++; ; {
		i = nextItem(json, i)
		if i >= len(json) || json[i] == '}' || json[i] == ']' {
			return i + 1
		}
		key := ""
		if object {
			var raw string
			raw, i = textAt(json, i)
			key = textOf(raw)
			for i < len(json) && (isSpace(json[i]) || json[i] == ':') {
				i++
			}
		}
		var v gjson.Result
		if v, i = valueAt(json, i); !f(key, v) {
			return i
		}
	}
}

// nextItem returns the place of the next member, element or closing bracket.
func nextItem(json string, i int) int {
	for i < len(json) && (isSpace(json[i]) || json[i] == ',') {
		i++
	}
	return i
}

// eachObject calls f for the place of each element of the array, until it returns false; f returns the place after the element.
func eachObject(json string, f func(i int) (end int, more bool)) {
	for i, more := 1, true; more; {
		i = nextItem(json, i)
		if i >= len(json) || json[i] == ']' {
			return
		}
		i, more = f(i)
	}
}

// valueAt reads the value at i and returns the place after it.
func valueAt(json string, i int) (v gjson.Result, end int) {
	if i >= len(json) {
		return v, i
	}
	switch json[i] {
	case '"':
		v.Type = gjson.String
		v.Raw, end = textAt(json, i)
		v.Str = textOf(v.Raw)
		return v, end
	case '{', '[':
		end = containerEnd(json, i)
		return gjson.Result{Type: gjson.JSON, Raw: json[i:end]}, end
	case 't':
		v.Type = gjson.True
	case 'f':
		v.Type = gjson.False
	case 'n':
		v.Type = gjson.Null
	default:
		v.Type = gjson.Number
	}
	end = i + 1
	for end < len(json) && json[end] != ',' && json[end] != '}' && json[end] != ']' && !isSpace(json[end]) {
		end++
	}
	v.Raw = json[i:end]
	return v, end
}

// textAt returns the text at i with its quotes, and the place after it.
func textAt(json string, i int) (raw string, end int) {
	for end = i + 1; end < len(json); end++ {
		switch json[end] {
		case '"':
			return json[i : end+1], end + 1
		case '\\':
			end++
		}
	}
	return json[i:], len(json)
}

// textOf is what the quotes hold. Escapes are rare: they take the way over the library.
func textOf(raw string) string {
	if strings.IndexByte(raw, '\\') >= 0 || len(raw) < 2 {
		return gjson.Parse(raw).Str
	}
	return raw[1 : len(raw)-1]
}

// containerEnd returns the place after the object or array at i.
func containerEnd(json string, i int) int {
	for open := 0; i < len(json); i++ {
		switch json[i] {
		case '"':
			_, end := textAt(json, i)
			i = end - 1
		case '{', '[':
			open++
		case '}', ']':
			if open--; open == 0 {
				return i + 1
			}
		}
	}
	return len(json)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
