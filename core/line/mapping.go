package line

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// Mapping makes entities, metrics and tags of Graphite names. A mapping file has one rule a line, tried from the top; the first whose regular expression
// matches the name decides:
//
//	# regular expression     token pattern, split at dots like the name
//	^servers\.               <tag:type>.<entity>.<metrics>
//	^agent\.                 <metric>.<entity>.<tag:id>.<metrics>
//	^debug\.
//
// A rule without a pattern drops the sample. The tokens of a pattern:
//
//	<entity> <metric>   the token of the name; several are joined with dots
//	<tag:NAME>          the token is the value of a tag
//	<metrics>           the rest of the tokens, the last token of a pattern
//	<>                  left out
//	<entity=TEXT>       a constant in place of the token; so for metric and tag:NAME
//	TEXT                a constant that is added to the metric; the token of the name is left out
//	TEXT<entity>        the token without TEXT at its beginning, if it begins so; so for metric and tag:NAME
//
// A nil Mapping has no rules. A Mapping may be shared.
type Mapping struct{ rules []rule }

type rule struct {
	match  *regexp.Regexp
	drop   bool
	tokens []token
}

type part uint8

const (
	skipPart part = iota
	entityPart
	metricPart
	tagPart
	restPart
)

// token says what becomes of one token of a name.
type token struct {
	part     part
	tag      string // name
	constant string // in place of the token
	prefix   string // cut off the token
}

// maxRules bounds what one sample may cost.
const maxRules = 1000

// ErrDropped is the error of a sample that the mapping file says to drop.
var ErrDropped = core.Errorf(core.Invalid, "dropped by the mapping of Graphite names")

// ParseMapping reads a mapping file. All faults are listed, each with its line.
func ParseMapping(text string) (*Mapping, error) {
	m := &Mapping{}
	var faults []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		m.rules = append(m.rules, r)
	}
	if len(m.rules) > maxRules {
		faults = append(faults, fmt.Errorf("%d rules: at most %d are allowed", len(m.rules), maxRules))
	}
	return m, errors.Join(faults...)
}

func parseRule(line string) (rule, error) {
	words := strings.Fields(line)
	if len(words) > 2 {
		return rule{}, fmt.Errorf("%q: a regular expression and a token pattern are expected, neither with blanks", excerpt(line))
	}
	match, err := regexp.Compile(words[0])
	if err != nil {
		return rule{}, fmt.Errorf("%q is not a regular expression: %w", excerpt(words[0]), err)
	}
	r := rule{match: match, drop: len(words) == 1}
	if r.drop {
		return r, nil
	}
	named := false
	parts := splitPattern(words[1])
	for i, text := range parts {
		t, err := parseToken(text)
		if err != nil {
			return rule{}, err
		}
		if t.part == restPart && i < len(parts)-1 {
			return rule{}, fmt.Errorf("%q: <metrics> takes the rest of the name, nothing may follow it", words[1])
		}
		named = named || t.part == metricPart || t.part == restPart
		r.tokens = append(r.tokens, t)
	}
	if !named {
		return rule{}, fmt.Errorf("%q has no metric: use <metric> or <metrics>", words[1])
	}
	return r, nil
}

// splitPattern splits a pattern at the dots outside of brackets: a constant inside of them may have dots.
func splitPattern(pattern string) []string {
	var parts []string
	start, inside := 0, false
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '<':
			inside = true
		case c == '>':
			inside = false
		case c == '.' && !inside:
			parts = append(parts, pattern[start:i])
			start = i + 1
		}
	}
	return append(parts, pattern[start:])
}

func parseToken(text string) (token, error) {
	prefix, rest, found := strings.Cut(text, "<")
	if !found {
		if text == "" || strings.Contains(text, ">") {
			return token{}, fmt.Errorf("token %q: a token such as <metric> is expected between two dots", text)
		}
		return token{part: metricPart, constant: text}, nil
	}
	inner, after, closed := strings.Cut(rest, ">")
	if !closed || after != "" {
		return token{}, fmt.Errorf("token %q: a token ends with its bracket", text)
	}
	kind, constant, _ := strings.Cut(inner, "=")
	t := token{prefix: prefix, constant: constant}
	tag, isTag := strings.CutPrefix(kind, "tag:")
	switch {
	case isTag:
		t.part, t.tag = tagPart, name(tag)
		if tag == "" {
			return token{}, fmt.Errorf("token %q: the tag has no name", text)
		}
	case kind == "entity":
		t.part = entityPart
	case kind == "metric":
		t.part = metricPart
	case kind == "metrics" && constant == "" && prefix == "":
		t.part = restPart
	case inner == "":
	default:
		return token{}, fmt.Errorf("token %q: use <entity>, <metric>, <tag:NAME>, <metrics> or <>", text)
	}
	return t, nil
}

// add appends a Graphite sample to a batch, named as the mapping says.
func (m *Mapping) add(b *core.Batch, sent string, t core.Time, n command.Number) error {
	if strings.Trim(sent, ".") == "" {
		return refuse(command.BadName, "no metric: %q", excerpt(sent))
	}
	key := plainName(sent)
	if m != nil {
		for i := range m.rules {
			if r := &m.rules[i]; r.match.MatchString(sent) {
				if r.drop {
					return ErrDropped
				}
				key = r.key(sent)
				break
			}
		}
	}
	key.Entity, key.Metric = name(key.Entity), name(key.Metric)
	if key.Entity == "" {
		key.Entity = GraphiteEntity
	}
	if key.Metric == "" {
		return refuse(command.BadName, "the mapping leaves no metric of %q", excerpt(sent))
	}
	add(b, key, t, n)
	return nil
}

// plainName is the name without a rule: what stands before the first dot is the entity.
func plainName(sent string) core.SeriesKey {
	entity, metric, found := strings.Cut(sent, ".")
	if !found || entity == "" || metric == "" {
		return core.SeriesKey{Entity: GraphiteEntity, Metric: strings.Trim(sent, ".")}
	}
	return core.SeriesKey{Entity: entity, Metric: metric}
}

// key takes a name apart. Tokens of the name that the pattern does not have are ignored, fields whose token is missing stay empty.
func (r *rule) key(sent string) core.SeriesKey {
	var key core.SeriesKey
	rest := sent
	for _, t := range r.tokens {
		if t.part == restPart {
			key.Metric = join(key.Metric, rest)
			break
		}
		var text string
		text, rest, _ = strings.Cut(rest, ".")
		text = strings.TrimPrefix(text, t.prefix)
		if t.constant != "" {
			text = t.constant
		}
		switch t.part {
		case entityPart:
			key.Entity = join(key.Entity, text)
		case metricPart:
			key.Metric = join(key.Metric, text)
		case tagPart:
			if text = value(text); text != "" {
				key.Tags = append(key.Tags, core.Tag{Name: t.tag, Value: text})
			}
		}
	}
	key.Tags = key.Tags.Normal()
	return key
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}
