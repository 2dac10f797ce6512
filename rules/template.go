package rules

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// template is a text with placeholders and blocks:
//
//	${expr}                                     the value of an expression; $${ is a literal ${
//	@if{cond} .. @else{cond} .. @else{} .. @end{}  the first true branch
//	@foreach{x : list} .. @{x.field} .. @end{}     the body for every element
type template struct {
	text  Text
	parts []part
}

// part is a literal, a placeholder, an if or a loop; exactly one of its groups of fields is set.
type part struct {
	literal string

	value *program
	raw   string // the placeholder as written, kept when its evaluation fails
	whole bool   // in commands: the placeholder is a whole field value

	branches []branch

	loop string // name of the loop variable
	list *program
	body []part
}

type branch struct {
	cond *program // nil = else
	body []part
}

// errCancelled is how cancelAction() leaves a template.
var errCancelled = errors.New("action cancelled by its template")

func cancelAction(...any) (any, error) { return nil, errCancelled }

// maxTemplate bounds one template; 64 KB are more than any chat service takes.
const maxTemplate = 64 << 10

// template compiles text; faults go to the compiler.
func (c *compiler) template(text Text) *template {
	t := &template{text: text}
	if len(text.Value) > maxTemplate {
		c.fault(text.at, "template is longer than %d bytes", maxTemplate)
		return t
	}
	p := templateParser{c: c, text: text}
	t.parts = p.parse(0)
	if p.pos < len(text.Value) {
		c.fault(p.at(p.pos), "@end{} or @else without a block")
	}
	return t
}

type templateParser struct {
	c    *compiler
	text Text
	pos  int
}

// at is the place in the file of a byte of the template.
func (p *templateParser) at(pos int) place {
	before := p.text.Value[:pos]
	line := strings.Count(before, "\n") + 1
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return p.text.at.inside(line, column)
}

// parse reads parts until the end, or until a block keyword that belongs to the caller.
func (p *templateParser) parse(depth int) []part {
	var parts []part
	s := p.text.Value
	if depth > maxNesting {
		p.c.fault(p.at(p.pos), "blocks are nested deeper than %d", maxNesting)
		p.pos = len(s)
		return nil
	}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for p.pos < len(s) {
		rest := s[p.pos:]
		switch {
		case strings.HasPrefix(rest, "$${"):
			literal.WriteString("${")
			p.pos += 3
		case strings.HasPrefix(rest, "${"), strings.HasPrefix(rest, "@{"):
			flush()
			parts = append(parts, p.placeholder())
		case strings.HasPrefix(rest, "@if{"):
			flush()
			parts = append(parts, p.conditional(depth))
		case strings.HasPrefix(rest, "@foreach{"):
			flush()
			parts = append(parts, p.foreach(depth))
		case strings.HasPrefix(rest, "@else{"), strings.HasPrefix(rest, "@end{}"):
			flush()
			return parts
		default:
			literal.WriteByte(s[p.pos])
			p.pos++
		}
	}
	flush()
	markWhole(parts)
	return parts
}

// markWhole finds the placeholders that stand alone as the value of a field of a text command.
func markWhole(parts []part) {
	for i := range parts {
		if parts[i].value == nil || i == 0 {
			continue
		}
		before := parts[i-1].literal
		opens := strings.HasSuffix(before, "=") || strings.HasSuffix(before, ":")
		closes := i == len(parts)-1 || parts[i+1].literal != "" && strings.ContainsAny(parts[i+1].literal[:1], " \t\r\n")
		parts[i].whole = opens && closes
	}
}

// braces returns the text inside the braces that open at p.pos, and moves behind them. Braces inside quotes do not count.
func (p *templateParser) braces() (inner string, start int, ok bool) {
	s := p.text.Value
	start = p.pos + strings.IndexByte(s[p.pos:], '{') + 1
	depth, quote := 1, byte(0)
	for i := start; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote != 0:
			if ch == '\\' && quote != '`' {
				i++
			} else if ch == quote {
				quote = 0
			}
		case ch == '"' || ch == '\'' || ch == '`':
			quote = ch
		case ch == '{':
			depth++
		case ch == '}':
			if depth--; depth == 0 {
				p.pos = i + 1
				return s[start:i], start, true
			}
		}
	}
	p.c.fault(p.at(p.pos), "placeholder is not closed: } is missing")
	p.pos = len(s)
	return "", start, false
}

func (p *templateParser) expression(inner string, start int) *program {
	if strings.TrimSpace(inner) == "" {
		p.c.fault(p.at(start), "placeholder is empty")
		return nil
	}
	at := p.at(start)
	// The expression is compiled as a text of its own: its places continue those of the template.
	at.style = plain
	if p.text.at.style == literal && strings.Contains(inner, "\n") {
		at.style = folded
	}
	return p.c.compile(Text{inner, at}, inTemplate)
}

func (p *templateParser) placeholder() part {
	from := p.pos
	inner, start, ok := p.braces()
	if !ok {
		return part{}
	}
	return part{value: p.expression(inner, start), raw: p.text.Value[from:p.pos]}
}

func (p *templateParser) conditional(depth int) part {
	from := p.pos
	var out part
	inner, start, ok := p.braces()
	for ok {
		b := branch{}
		if strings.TrimSpace(inner) != "" || len(out.branches) == 0 {
			b.cond = p.expression(inner, start)
		}
		b.body = p.parse(depth + 1)
		out.branches = append(out.branches, b)
		if strings.HasPrefix(p.text.Value[p.pos:], "@end{}") {
			p.pos += len("@end{}")
			return out
		}
		if !strings.HasPrefix(p.text.Value[p.pos:], "@else{") {
			p.c.fault(p.at(from), "@if is not closed: @end{} is missing")
			return out
		}
		inner, start, ok = p.braces()
	}
	return out
}

func (p *templateParser) foreach(depth int) part {
	from := p.pos
	inner, start, ok := p.braces()
	name, list, colon := strings.Cut(inner, ":")
	name = strings.TrimSpace(name)
	if !ok || !colon || !isName(name) {
		p.c.fault(p.at(from), "write @foreach{name : list}")
		return part{}
	}
	out := part{loop: name, list: p.expression(list, start+len(inner)-len(list))}
	outer := p.c.extra[name]
	p.c.extra[name] = true
	out.body = p.parse(depth + 1)
	if !outer {
		delete(p.c.extra, name)
	}
	if !strings.HasPrefix(p.text.Value[p.pos:], "@end{}") {
		p.c.fault(p.at(from), "@foreach is not closed: @end{} is missing")
		return out
	}
	p.pos += len("@end{}")
	return out
}

// escaping says what becomes of placeholder values.
type escaping uint8

const (
	asIs      escaping = iota
	inURL              // percent-encoded
	inCommand          // quoted where it is a whole field, never a line break
	inHeader           // no control characters
)

// render fills t in. It fails only with errCancelled and when the text grows too long; other faults are recorded and leave the placeholder as written.
func (ev *evaluation) render(t *template, esc escaping) (string, error) {
	if t == nil {
		return "", nil
	}
	var b strings.Builder
	ev.phase = inTemplate
	if err := ev.renderParts(&b, t.parts, esc); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (ev *evaluation) renderParts(b *strings.Builder, parts []part, esc escaping) error {
	for i := range parts {
		p := &parts[i]
		var err error
		switch {
		case p.value != nil:
			err = ev.renderValue(b, p, esc)
		case p.branches != nil:
			err = ev.renderBranches(b, p, esc)
		case p.list != nil:
			err = ev.renderLoop(b, p, esc)
		default:
			b.WriteString(p.literal)
		}
		if err != nil {
			return err
		}
		if b.Len() > maxText {
			return errBuilt
		}
	}
	return nil
}

func (ev *evaluation) renderValue(b *strings.Builder, p *part, esc escaping) error {
	v, err := ev.run(p.value)
	if errors.Is(err, errCancelled) {
		return errCancelled
	}
	if err != nil {
		ev.report(fmt.Errorf("placeholder %s: %w", p.raw, firstLine(err)))
		b.WriteString(p.raw)
		return nil
	}
	text := valueText(v)
	switch {
	case esc == inURL:
		text = escape(text)
	case esc == inCommand && p.whole:
		text = quoteField(text)
	case esc == inCommand:
		text = lineBreaks.Replace(text)
	case esc == inHeader && !isSecretMark(text):
		text = strings.Map(printable, text)
	}
	b.WriteString(text)
	return nil
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// printable drops control characters, so that a value can neither end a header nor pose as a secret.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

func (ev *evaluation) renderBranches(b *strings.Builder, p *part, esc escaping) error {
	for _, br := range p.branches {
		ok := br.cond == nil
		if !ok {
			var err error
			if ok, err = ev.truth(br.cond); err != nil {
				ev.report(fmt.Errorf("@if{%s}: %w", br.cond.text.Value, firstLine(err)))
			}
		}
		if ok {
			return ev.renderParts(b, br.body, esc)
		}
	}
	return nil
}

func (ev *evaluation) renderLoop(b *strings.Builder, p *part, esc escaping) error {
	v, err := ev.run(p.list)
	if err != nil {
		ev.report(fmt.Errorf("@foreach{%s}: %w", p.list.text.Value, firstLine(err)))
		return nil
	}
	list, err := listOf(v)
	if err != nil {
		ev.report(fmt.Errorf("@foreach{%s}: %w", p.list.text.Value, err))
		return nil
	}
	outer, shadowed := ev.extra[p.loop]
	defer func() {
		delete(ev.extra, p.loop)
		delete(ev.env, p.loop)
		if shadowed {
			ev.extra[p.loop] = outer
		}
	}()
	for _, item := range list {
		if err := ev.fence.tick(); err != nil {
			return err
		}
		ev.extra[p.loop] = item
		if err := ev.renderParts(b, p.body, esc); err != nil {
			return err
		}
	}
	return nil
}

// valueText prints a value as templates do: numbers without exponent or trailing zeros, times as ISO in UTC, lists as [a, b], maps as {k=v} by key.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return numberText(v)
	case time.Time:
		return dates.FormatISO(core.TimeOf(v))
	case time.Duration:
		return v.String()
	case map[string]string:
		return mapText(v, func(s string) string { return s })
	case map[string]any:
		return mapText(v, valueText)
	}
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(rv.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(rv.Uint(), 10)
	case reflect.Float32:
		return numberText(rv.Float())
	case reflect.Slice, reflect.Array:
		items := make([]string, rv.Len())
		for i := range items {
			items[i] = valueText(rv.Index(i).Interface())
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Pointer:
		if rv.IsNil() {
			return ""
		}
		return fmt.Sprintf("%+v", rv.Elem().Interface())
	}
	return fmt.Sprint(v)
}

func mapText[V any](m map[string]V, text func(V) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k + "=" + text(m[k]))
	}
	b.WriteByte('}')
	return b.String()
}

func numberText(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// escape percent-encodes everything but unreserved characters; a space becomes %20.
func escape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// quoteField quotes a value of a text command where it needs it.
func quoteField(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\r\n\"=") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// firstLine drops the source excerpt that expr adds to its errors: rule errors name the expression themselves.
func firstLine(err error) error {
	text, _, cut := strings.Cut(err.Error(), "\n")
	if !cut {
		return err
	}
	return errors.New(text)
}

// clockText is dd:hh:mm:ss.
func clockText(d core.Time) string {
	s := int64(d) / 1000
	return fmt.Sprintf("%02d:%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}

// unitText joins days to seconds by colons from the largest unit that is not zero: 8m:1s, 1h:0m:9s.
func unitText(d core.Time) string {
	s := int64(d) / 1000
	parts := []struct {
		n    int64
		unit string
	}{{s / 86400, "d"}, {s / 3600 % 24, "h"}, {s / 60 % 60, "m"}, {s % 60, "s"}}
	for len(parts) > 1 && parts[0].n == 0 {
		parts = parts[1:]
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = strconv.FormatInt(p.n, 10) + p.unit
	}
	return strings.Join(texts, ":")
}
