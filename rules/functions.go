package rules

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// function is one function of the expression language. types are pointers to function types, tried in order by the compiler.
type function struct {
	name   string
	window bool // reads the window: not available in filters
	types  []any
	call   func(ev *evaluation, args []any) (any, error)
}

// functionTable lists every function. It is built anew for each rule, so that nothing in it is shared.
func functionTable() []function {
	var all []function
	all = append(all, fenceFunctions()...)
	all = append(all, windowFunctions()...)
	all = append(all, textFunctions()...)
	all = append(all, numberFunctions()...)
	all = append(all, dateFunctions()...)
	all = append(all, collectionFunctions()...)
	return append(all, lookupFunctions()...)
}

// Shapes of functions, for the compiler's checks.
func sig[F any]() any { return new(F) }

// fenceFunctions replace what could grow without bound, and carry what the patcher inserts.
func fenceFunctions() []function {
	return []function{
		{name: "__tick", types: []any{sig[func() bool]()}, call: func(ev *evaluation, _ []any) (any, error) { return true, ev.fence.tick() }},
		{name: "__add", types: []any{sig[func(any, any) any]()}, call: func(ev *evaluation, a []any) (any, error) { return ev.fence.add(a[0], a[1]) }},
		{name: "__addText", types: []any{sig[func(string, string) string]()},
			call: func(ev *evaluation, a []any) (any, error) { return ev.fence.add(a[0], a[1]) }},
		{name: "__power", types: []any{sig[func(any, any) float64]()}, call: arithmetic2(calc.Power)},
		{name: "__var", types: []any{sig[func(string) any]()}, call: func(ev *evaluation, a []any) (any, error) { return ev.variable(a[0].(string)) }},
		{name: "replace", types: []any{sig[func(string, string, string) string]()}, call: func(ev *evaluation, a []any) (any, error) {
			return ev.fence.replace(textOf(a[0]), textOf(a[1]), textOf(a[2]))
		}},
		{name: "repeat", types: []any{sig[func(string, int) string]()}, call: func(ev *evaluation, a []any) (any, error) {
			n, err := intOf(a[1])
			if err != nil {
				return nil, err
			}
			return ev.fence.repeat(textOf(a[0]), n)
		}},
		{name: "join", types: []any{sig[func(any) string](), sig[func(any, string) string]()}, call: func(ev *evaluation, a []any) (any, error) {
			list, err := textsOf(a[0])
			if err != nil {
				return nil, err
			}
			sep := ","
			if len(a) > 1 {
				sep = textOf(a[1])
			}
			return ev.fence.join(list, sep)
		}},
		{name: "concat", types: []any{sig[func(...any) []any]()}, call: func(ev *evaluation, a []any) (any, error) {
			lists := make([][]any, len(a))
			for i, arg := range a {
				var err error
				if lists[i], err = listOf(arg); err != nil {
					return nil, err
				}
			}
			return ev.fence.concat(lists)
		}},
	}
}

// floatOf converts a number of any type; ok is false for anything else.
func floatOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case time.Duration:
		return float64(v.Milliseconds()), true
	}
	rv := reflect.ValueOf(v)
	switch {
	case !rv.IsValid():
		return math.NaN(), false
	case rv.CanInt():
		return float64(rv.Int()), true
	case rv.CanUint():
		return float64(rv.Uint()), true
	case rv.CanFloat():
		return rv.Float(), true
	}
	return math.NaN(), false
}

func numberOf(v any) (float64, error) {
	f, ok := floatOf(v)
	if !ok {
		return 0, fmt.Errorf("%s is not a number", describe(v))
	}
	return f, nil
}

func intOf(v any) (int, error) {
	f, err := numberOf(v)
	if err != nil {
		return 0, err
	}
	const most = min(1<<52, math.MaxInt) // processors of 32 bits have no larger int
	if !(math.Abs(f) <= most) {
		return 0, fmt.Errorf("%v is no whole number of at most %d", f, most)
	}
	return int(f), nil
}

// textOf prints what is not a text as templates do; nil is the empty text.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return valueText(v)
}

func describe(v any) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("%T", v)
}

func listOf(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Slice && rv.Kind() != reflect.Array {
		return nil, fmt.Errorf("%s is not a list", describe(v))
	}
	out := make([]any, rv.Len())
	for i := range out {
		out[i] = rv.Index(i).Interface()
	}
	return out, nil
}

func textsOf(v any) ([]string, error) {
	if list, ok := v.([]string); ok {
		return list, nil
	}
	list, err := listOf(v)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = textOf(e)
	}
	return out, nil
}

// tagsOf reads a map, or text such as `a=1,b=2`.
func tagsOf(v any) (core.Tags, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]string:
		return core.TagsOf(v), nil
	case map[string]any:
		m := make(map[string]string, len(v))
		for k, e := range v {
			m[k] = textOf(e)
		}
		return core.TagsOf(m), nil
	case string:
		var tags core.Tags
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			name, value, ok := strings.Cut(item, "=")
			if !ok {
				return nil, fmt.Errorf("tags %q: write name=value,name=value", v)
			}
			tags = append(tags, core.Tag{Name: strings.ToLower(name), Value: value})
		}
		return tags.Normal(), nil
	}
	return nil, fmt.Errorf("%s is neither a map nor a text of tags", describe(v))
}

// mapOfAny reads a map with text values.
func mapOfAny(v any) (map[string]string, error) {
	switch v := v.(type) {
	case nil:
		return map[string]string{}, nil
	case map[string]string:
		return v, nil
	case map[string]any:
		out := make(map[string]string, len(v))
		for k, e := range v {
			out[k] = textOf(e)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s is not a map", describe(v))
}

// arg returns the i-th argument, nil when it was not given.
func arg(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

var errNoArgument = errors.New("wrong number of arguments")

func parseNumber(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f, err == nil
}
