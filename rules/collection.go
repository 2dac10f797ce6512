package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// collectionFunctions is section 2.5.8 of the rule contract.
func collectionFunctions() []function {
	return []function{
		{name: "excludeKeys", types: []any{sig[func(any, any) map[string]string]()}, call: func(_ *evaluation, a []any) (any, error) {
			m, err := mapOfAny(a[0])
			if err != nil {
				return nil, err
			}
			patterns, err := textsOf(a[1])
			out := maps.Clone(m)
			maps.DeleteFunc(out, func(k, _ string) bool { return matchesAny(k, patterns) })
			return out, err
		}},
		{name: "mergeMaps", types: []any{sig[func(any, any) map[string]string]()}, call: func(_ *evaluation, a []any) (any, error) {
			first, err := mapOfAny(a[0])
			if err != nil {
				return nil, err
			}
			second, err := mapOfAny(a[1])
			out := maps.Clone(first)
			maps.Copy(out, second)
			return out, err
		}},
		{name: "compareMaps", types: []any{sig[func(any, any) map[string]string](), sig[func(any, any, bool) map[string]string]()}, call: compareMaps},
		{name: "values", window: true, types: []any{sig[func(any) []any](), sig[func() []float64]()}, call: valuesFunction},
		{name: "flattenJson", types: []any{sig[func(string) map[string]any]()}, call: flattenJSON},
		{name: "collection", types: []any{sig[func(string) []string]()}, call: func(ev *evaluation, a []any) (any, error) {
			if items := ev.set.collection(textOf(a[0])); items != nil {
				return items, nil
			}
			return []string{}, nil
		}},
		{name: "collection_contains", types: []any{sig[func(any, string) bool]()}, call: func(ev *evaluation, a []any) (any, error) {
			items := ev.set.collection(textOf(a[1]))
			if items == nil {
				return nil, fmt.Errorf("collection %q does not exist", a[1])
			}
			return slices.Contains(items, textOf(a[0])), nil
		}},
	}
}

// changeText is how a difference of two values reads.
func changeText(before, after string) string {
	quote := func(s string) string {
		if s == "" {
			return "''"
		}
		return "'" + s + "'"
	}
	return quote(before) + " -> " + quote(after)
}

func compareMaps(_ *evaluation, a []any) (any, error) {
	before, err := mapOfAny(a[0])
	if err != nil {
		return nil, err
	}
	after, err := mapOfAny(a[1])
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for k, v := range before {
		if w, ok := after[k]; !strings.EqualFold(v, w) && (ok || arg(a, 2) != true) {
			out[k] = changeText(v, w)
		}
	}
	for k, w := range after {
		if _, ok := before[k]; !ok && arg(a, 2) != true {
			out[k] = changeText("", w)
		}
	}
	return out, nil
}

// valuesFunction is values(map) sorted by key; the window's values() is in the same function because a name has one implementation.
func valuesFunction(ev *evaluation, a []any) (any, error) {
	if len(a) == 1 {
		if m, err := mapOfAny(a[0]); err == nil && a[0] != nil {
			out := make([]any, 0, len(m))
			for _, k := range slices.Sorted(maps.Keys(m)) {
				out = append(out, m[k])
			}
			return out, nil
		}
	}
	return windowValues(ev, a)
}

// maxJSON bounds what flattenJson takes; deeper or longer texts are refused before the parser sees them.
const (
	maxJSON      = 1 << 20
	maxJSONDepth = 64
)

func flattenJSON(_ *evaluation, a []any) (any, error) {
	text := textOf(a[0])
	if len(text) > maxJSON || jsonDepth(text) > maxJSONDepth {
		return nil, fmt.Errorf("flattenJson: text is longer than %d bytes or nested deeper than %d", maxJSON, maxJSONDepth)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("flattenJson: text is not JSON")
	}
	out := map[string]any{}
	flatten(out, "", gjson.Parse(text))
	return out, nil
}

func flatten(out map[string]any, path string, v gjson.Result) {
	i := 0
	switch {
	case v.IsObject():
		v.ForEach(func(k, e gjson.Result) bool {
			name := k.String()
			if path != "" {
				name = path + "." + name
			}
			flatten(out, name, e)
			return true
		})
	case v.IsArray():
		v.ForEach(func(_, e gjson.Result) bool {
			flatten(out, fmt.Sprintf("%s[%d]", path, i), e)
			i++
			return true
		})
	case v.Type != gjson.Null && v.String() != "":
		out[path] = v.Value()
	}
}

func jsonDepth(s string) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}
