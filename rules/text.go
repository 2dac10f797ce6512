package rules

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-db/tidemark/core/glob"
)

// textFunctions is section 2.5.7 of the rule contract. nil counts as the empty text unless said otherwise.
func textFunctions() []function {
	one := []any{sig[func(any) string]()}
	two := []any{sig[func(any, string) string]()}
	fs := []function{
		{name: "length", types: []any{sig[func(any) int]()}, call: func(_ *evaluation, a []any) (any, error) {
			if a[0] == nil {
				return -1, nil
			}
			return len([]rune(textOf(a[0]))), nil
		}},
		{name: "truncate", types: []any{sig[func(any, int) string]()}, call: func(_ *evaluation, a []any) (any, error) {
			n, err := intOf(a[1])
			r := []rune(textOf(a[0]))
			return string(r[:min(max(n, 0), len(r))]), err
		}},
		{name: "abbreviate", types: []any{sig[func(any, int) string]()}, call: abbreviate},
		{name: "ifEmpty", types: []any{sig[func(any, any) any]()}, call: func(_ *evaluation, a []any) (any, error) {
			if a[0] == nil || a[0] == "" {
				return a[1], nil
			}
			return a[0], nil
		}},
		{name: "coalesce", types: []any{sig[func(any) any]()}, call: func(_ *evaluation, a []any) (any, error) {
			list, err := listOf(a[0])
			for _, v := range list {
				if v != nil && v != "" {
					return v, nil
				}
			}
			return "", err
		}},
		{name: "keepBefore", types: two, call: keep(func(s, sub string) string { return cutOr(s, strings.Index(s, sub), 0, -1) })},
		{name: "keepAfter", types: two, call: keep(func(s, sub string) string { return cutOr(s, strings.Index(s, sub), len(sub), 1) })},
		{name: "keepBeforeLast", types: two, call: keep(func(s, sub string) string { return cutOr(s, strings.LastIndex(s, sub), 0, -1) })},
		{name: "keepAfterLast", types: two, call: keep(func(s, sub string) string { return cutOr(s, strings.LastIndex(s, sub), len(sub), 1) })},
		{name: "removeBeginning", types: two, call: keep(strings.TrimPrefix)},
		{name: "removeEnding", types: two, call: keep(strings.TrimSuffix)},
		{name: "capFirst", types: one, call: mapped(capFirst)},
		{name: "capitalize", types: one, call: mapped(func(s string) string {
			words := strings.Split(s, " ")
			for i := range words {
				words[i] = capFirst(words[i])
			}
			return strings.Join(words, " ")
		})},
	}
	return append(fs, searchFunctions(one)...)
}

// searchFunctions split, find and match.
func searchFunctions(one []any) []function {
	return []function{
		{name: "splitQuoted", types: []any{sig[func(any, string) []string]()}, call: func(_ *evaluation, a []any) (any, error) {
			return splitQuoted(textOf(a[0]), textOf(a[1])), nil
		}},
		{name: "list", types: []any{sig[func(any) []string](), sig[func(any, string) []string]()}, call: listFunction},
		{name: "concatLines", types: one, call: func(ev *evaluation, a []any) (any, error) {
			list, err := textsOf(a[0])
			if err != nil {
				return nil, err
			}
			return ev.fence.join(list, "\n")
		}},
		{name: "indexOf", types: []any{sig[func(any, string) int](), sig[func(any, string, int) int]()}, call: indexOf},
		{name: "locate", types: []any{sig[func(any, string) int](), sig[func(any, string, int) int]()}, call: indexOf},
		{name: "countMatches", types: []any{sig[func(any, string) int]()}, call: func(_ *evaluation, a []any) (any, error) {
			if sub := textOf(a[1]); sub != "" {
				return strings.Count(textOf(a[0]), sub), nil
			}
			return 0, nil
		}},
		{name: "urlencode", types: one, call: mapped(escape)},
		{name: "jsonencode", types: one, call: mapped(jsonInner)},
		{name: "htmlDecode", types: one, call: mapped(html.UnescapeString)},
		{name: "unquote", types: one, call: mapped(func(s string) string { return strings.Trim(s, `"'`) })},
		{name: "like", types: []any{sig[func(any, ...string) bool]()}, call: func(_ *evaluation, a []any) (any, error) {
			return a[0] != nil && slices.ContainsFunc(a[1:], func(p any) bool { return glob.Compile(textOf(p)).Match(textOf(a[0])) }), nil
		}},
		{name: "likeAny", types: []any{sig[func(any, any) bool]()}, call: func(_ *evaluation, a []any) (any, error) {
			patterns, err := textsOf(a[1])
			return a[0] != nil && matchesAny(textOf(a[0]), patterns), err
		}},
		{name: "anyLike", types: []any{sig[func(any, string) bool]()}, call: func(_ *evaluation, a []any) (any, error) {
			list, err := textsOf(a[0])
			pattern := glob.Compile(textOf(a[1]))
			return slices.ContainsFunc(list, pattern.Match), err
		}},
		{name: "matchList", types: []any{sig[func(any, string) bool]()}, call: func(ev *evaluation, a []any) (any, error) {
			return a[0] != nil && matchesAny(textOf(a[0]), ev.set.collection(textOf(a[1]))), nil
		}},
		{name: "eqi", types: []any{sig[func(any, any) bool]()}, call: func(_ *evaluation, a []any) (any, error) {
			return strings.EqualFold(textOf(a[0]), textOf(a[1])), nil
		}},
		{name: "regexReplace", types: []any{sig[func(any, string, string) string]()}, call: regexReplace},
	}
}

// mapped lifts a function over texts; its result is at most a small multiple of its input.
func mapped(f func(string) string) func(*evaluation, []any) (any, error) {
	return func(ev *evaluation, a []any) (any, error) {
		out := f(textOf(a[0]))
		return out, ev.fence.build(len(out))
	}
}

// keep lifts a function that cuts text at sub; an empty sub leaves the text as it is.
func keep(f func(s, sub string) string) func(*evaluation, []any) (any, error) {
	return func(_ *evaluation, a []any) (any, error) {
		if sub := textOf(a[1]); sub != "" {
			return f(textOf(a[0]), sub), nil
		}
		return textOf(a[0]), nil
	}
}

// cutOr returns s before (side < 0) or after (side > 0) the place at, s itself when at is negative.
func cutOr(s string, at, width, side int) string {
	switch {
	case at < 0:
		return s
	case side < 0:
		return s[:at]
	}
	return s[at+width:]
}

func capFirst(s string) string {
	r := []rune(s)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

func abbreviate(_ *evaluation, a []any) (any, error) {
	n, err := intOf(a[1])
	if err != nil {
		return nil, err
	}
	if n < 4 {
		return nil, errors.New("abbreviate needs room for at least 4 characters")
	}
	r := []rune(textOf(a[0]))
	if len(r) <= n {
		return string(r), nil
	}
	return string(r[:n-3]) + "...", nil
}

// splitQuoted splits at sep outside double quotes and drops the quotes.
func splitQuoted(s, sep string) []string {
	out := []string{}
	var part strings.Builder
	inside := false
	for i := 0; i < len(s); {
		switch {
		case s[i] == '"':
			inside = !inside
			i++
		case !inside && sep != "" && strings.HasPrefix(s[i:], sep):
			out = append(out, part.String())
			part.Reset()
			i += len(sep)
		default:
			part.WriteByte(s[i])
			i++
		}
	}
	return append(out, part.String())
}

func listFunction(_ *evaluation, a []any) (any, error) {
	sep := ","
	if len(a) > 1 {
		sep = textOf(a[1])
	}
	out := []string{}
	for _, s := range strings.Split(textOf(a[0]), sep) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

// indexOf counts in characters, from 0; -1 when absent.
func indexOf(_ *evaluation, a []any) (any, error) {
	s, sub := []rune(textOf(a[0])), textOf(a[1])
	from := 0
	if len(a) > 2 {
		var err error
		if from, err = intOf(a[2]); err != nil {
			return nil, err
		}
	}
	from = min(max(from, 0), len(s))
	rest := string(s[from:])
	i := strings.Index(rest, sub)
	if i < 0 {
		return -1, nil
	}
	return from + len([]rune(rest[:i])), nil
}

func jsonInner(s string) string {
	quoted := jsonText(s)
	return quoted[1 : len(quoted)-1]
}

func matchesAny(s string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob.Compile(p).Match(s) })
}

func regexReplace(ev *evaluation, a []any) (any, error) {
	re, err := regexp.Compile(textOf(a[1]))
	if err != nil {
		return nil, fmt.Errorf("regexReplace: %w", err)
	}
	s, with := textOf(a[0]), textOf(a[2])
	// Every match may expand the whole input as often as the replacement names a group.
	if n := len(re.FindAllStringIndex(s, -1)); n > 0 {
		groups := strings.Count(with, "$")
		if err := ev.fence.build(len(s)*(1+groups) + n*len(with)); err != nil {
			return nil, err
		}
	}
	return re.ReplaceAllString(s, with), nil
}
