package query

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// EntityFilter selects entities as the client wrote it. Of the first three the first that is given counts; Expression narrows it, or stands alone.
type EntityFilter struct {
	Entity     string
	Entities   []string
	Group      string
	Expression string
}

// Escaping says when a backslash in a name or value is an escape.
type Escaping uint8

const (
	// EscapesInPatterns is the rule of messages, properties and alerts: a value without `*` and `?` is a plain name, backslashes included.
	EscapesInPatterns Escaping = iota
	// EscapesAlways is the rule of series queries, whose clients escape every name.
	EscapesAlways
)

// Empty reports whether nothing was given.
func (f EntityFilter) Empty() bool {
	return blank(f.Entity) && !slices.ContainsFunc(f.Entities, func(e string) bool { return !blank(e) }) && f.Group == "" && blank(f.Expression)
}

// Resolve turns f into what backends take. Names of the result are exact; Patterns hold at least one wildcard.
func (f EntityFilter) Resolve(e Escaping) (core.EntityFilter, error) {
	if f.Empty() {
		return core.EntityFilter{}, core.Errorf(core.Invalid,
			"IllegalArgumentException: entity or entities or entityGroup or entityExpression must not be empty")
	}
	out, err := f.condition()
	if err != nil {
		return core.EntityFilter{}, err
	}
	values := []string{f.Entity}
	if blank(f.Entity) {
		values = f.Entities
	}
	for _, value := range values {
		if blank(value) {
			continue
		}
		switch name, ok := literal(strings.ToLower(value), e); {
		case value == "*": // everything: the other values add nothing
			return core.EntityFilter{Expression: out.Expression}, nil
		case ok:
			out.Names = append(out.Names, name)
		default:
			out.Patterns = append(out.Patterns, strings.ToLower(value))
		}
	}
	if len(out.Names) == 0 && len(out.Patterns) == 0 {
		out.Group = f.Group
	}
	slices.Sort(out.Names)
	out.Names = slices.Compact(out.Names)
	return out, nil
}

// condition checks the expression: its errors carry their place.
func (f EntityFilter) condition() (core.EntityFilter, error) {
	if blank(f.Expression) {
		return core.EntityFilter{}, nil
	}
	return core.EntityFilter{Expression: f.Expression}, filter.Check(filter.Entities, f.Expression)
}

// named is the text that an answer without data echoes as its entity.
func (f EntityFilter) named() string {
	if blank(f.Entity) {
		return "*"
	}
	return strings.ToLower(f.Entity)
}

// spellings returns the names of Entities that the client wrote with escapes, each with what it wrote, for an answer without data.
func (f EntityFilter) spellings() map[string]string {
	var sent map[string]string
	for _, value := range f.Entities {
		if !strings.Contains(value, `\`) {
			continue
		}
		value = strings.ToLower(value)
		if name, ok := literal(value, EscapesAlways); ok {
			if sent == nil {
				sent = map[string]string{}
			}
			sent[name] = value
		}
	}
	return sent
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// literal returns the only text that value stands for; ok is false for a pattern. In a series query every backslash escapes the character after it,
// elsewhere only those of a value that has a star or a question mark.
func literal(value string, e Escaping) (text string, ok bool) {
	if e == EscapesInPatterns && !strings.ContainsAny(value, "*?") {
		return value, true
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '*' || c == '?':
			return "", false
		case c == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// Quote spells a plain name so that a filter of the given kind takes it for nothing but that name: what routes with a name in their path need.
func Quote(name string, e Escaping) string {
	if e == EscapesInPatterns && !strings.ContainsAny(name, "*?") {
		return name
	}
	return escape(name)
}

// escape makes a plain text a pattern that matches only itself.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(text)
}

// tagFilters turns requested tags into what backends take. Values are trimmed as stored ones are; a tag without values is no condition.
func tagFilters(tags map[string][]string, e Escaping) []core.TagFilter {
	var out []core.TagFilter
	for name, values := range tags {
		if len(values) == 0 {
			continue
		}
		f := core.TagFilter{Name: strings.ToLower(strings.TrimSpace(name))}
		for _, v := range values {
			v = strings.TrimSpace(v)
			if e == EscapesInPatterns && !strings.ContainsAny(v, "*?") {
				v = escape(v)
			}
			f.Patterns = append(f.Patterns, v)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b core.TagFilter) int { return strings.Compare(a.Name, b.Name) })
	return out
}
