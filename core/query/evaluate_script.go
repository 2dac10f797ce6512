package query

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// The script of an evaluation is a small part of Java: declarations and assignments, method calls, literals and return. There are no loops, no
// conditions and no user functions, so that a script takes at most as many steps as it has tokens; nothing that it can name reaches beyond the query.
//
//	script    = { statement ";" } [ statement ]
//	statement = "return" expr | [ type ] name "=" expr | expr
//	expr      = primary { "." name "(" [ expr { "," expr } ] ")" }
//	primary   = number | string | name | "(" expr ")" | "new" type "[" "]" "{" [ expr { "," expr } ] "}" | "new" "ArrayList" [ "<" ... ">" ] "(" ")"
//
// Methods: union and add on series, Series.of(times, values, metric, entity, tag, value...).

// Bounds of a script. Each is far beyond what clients send and far below what hurts.
const (
	maxScript      = 16 << 10 // bytes
	maxScriptDepth = 50       // levels of parentheses and calls
	maxScriptList  = 10_000   // series or elements of a list
)

// script is a compiled script.
type script struct {
	inputs []string
	steps  []step
}

// step is one statement: its value is that of the expression, which is stored under a name when it has one.
type step struct {
	name string
	expr expr
	last bool // return
}

// expr computes a value.
type expr func(vars map[string]value) (value, error)

// value is a *collection of series, string, float64, []string or []float64.
type value any

// collection is a list of series. Lists are shared between the names that they have, as in Java.
type collection struct {
	list  []*Result
	input bool // an input or union, which can not be added to
}

func (c *collection) append(list []*Result) error {
	if len(c.list)+len(list) > maxScriptList {
		return fmt.Errorf("a list has more than %d series", maxScriptList)
	}
	c.list = append(c.list, list...)
	return nil
}

// compileScript checks everything that does not depend on the data.
func compileScript(text string, inputs []string) (*script, error) {
	if len(text) > maxScript {
		return nil, fmt.Errorf("the script has %d bytes, more than %d", len(text), maxScript)
	}
	tokens, err := scanScript(text)
	if err != nil {
		return nil, err
	}
	p := &scriptParser{tokens: tokens, known: map[string]bool{}}
	for _, name := range inputs {
		p.known[name] = true
	}
	s := &script{inputs: inputs}
	for !p.end() {
		if p.skip(";") {
			continue
		}
		if n := len(s.steps); n > 0 && s.steps[n-1].last {
			return nil, p.fault("nothing may follow return")
		}
		one, err := p.statement()
		if err != nil {
			return nil, err
		}
		s.steps = append(s.steps, one)
		if !p.end() && !p.skip(";") {
			return nil, p.fault("';' is expected")
		}
	}
	if len(s.steps) == 0 {
		return nil, errors.New("the script is empty")
	}
	return s, nil
}

// run computes the value of the script: that of its last statement.
func (s *script) run(inputs []*collection) ([]*Result, error) {
	vars := map[string]value{}
	for i, name := range s.inputs {
		vars[name] = inputs[i]
	}
	var last value
	for _, one := range s.steps {
		v, err := one.expr(vars)
		if err != nil {
			return nil, err
		}
		if one.name != "" {
			vars[one.name] = v
		}
		last = v
	}
	c, ok := last.(*collection)
	if !ok {
		return nil, errors.New("the script must end with a series or a list of series")
	}
	return slices.Clone(c.list), nil
}

// scriptToken is a name, number or punctuation by its text, or a string by its content.
type scriptToken struct {
	kind byte // 'n' name, '0' number, 's' string, 'p' punctuation
	text string
	at   int
}

func scanScript(text string) ([]scriptToken, error) {
	var tokens []scriptToken
	for i := 0; i < len(text); {
		c := text[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.HasPrefix(text[i:], "//"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return tokens, nil
			}
			i += end
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return nil, fmt.Errorf("the comment at %d has no end", i+1)
			}
			i += end + 4
		case c == '\'' || c == '"':
			s, end, err := scanString(text, i)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, scriptToken{'s', s, start})
			i = end
		case nameStart(c):
			for i < len(text) && (nameStart(text[i]) || digit(text[i])) {
				i++
			}
			tokens = append(tokens, scriptToken{'n', text[start:i], start})
		case digit(c) || c == '-' && i+1 < len(text) && (digit(text[i+1]) || text[i+1] == '.') || c == '.' && i+1 < len(text) && digit(text[i+1]):
			i = scanNumber(text, i)
			tokens = append(tokens, scriptToken{'0', text[start:i], start})
		case strings.IndexByte("()[]{}<>.,;=", c) >= 0:
			i++
			tokens = append(tokens, scriptToken{'p', text[start:i], start})
		default:
			return nil, fmt.Errorf("%q at %d is not supported", c, i+1)
		}
	}
	return tokens, nil
}

func nameStart(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func scanNumber(text string, i int) int {
	for i++; i < len(text); i++ {
		c := text[i]
		if !digit(c) && c != '.' && c|0x20 != 'e' && !((c == '-' || c == '+') && text[i-1]|0x20 == 'e') {
			break
		}
	}
	return i
}

// scanString reads a quoted text with the usual escapes and returns the place after it.
func scanString(text string, i int) (s string, end int, err error) {
	quote := text[i]
	var b strings.Builder
	for j := i + 1; j < len(text); j++ {
		switch c := text[j]; c {
		case quote:
			return b.String(), j + 1, nil
		case '\\':
			if j++; j == len(text) {
				continue
			}
			switch text[j] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case '\\', '\'', '"':
				b.WriteByte(text[j])
			default:
				return "", 0, fmt.Errorf("escape \\%c at %d is not supported", text[j], j)
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, fmt.Errorf("the string at %d has no end", i+1)
}

type scriptParser struct {
	tokens []scriptToken
	pos    int
	depth  int
	known  map[string]bool // names that have a value
}

func (p *scriptParser) end() bool { return p.pos == len(p.tokens) }

// at reports whether the token n places on is this punctuation.
func (p *scriptParser) at(n int, text string) bool {
	i := p.pos + n
	return i < len(p.tokens) && p.tokens[i].kind == 'p' && p.tokens[i].text == text
}

func (p *scriptParser) skip(text string) bool {
	if !p.at(0, text) {
		return false
	}
	p.pos++
	return true
}

func (p *scriptParser) expect(texts ...string) error {
	for _, text := range texts {
		if !p.skip(text) {
			return p.fault("'" + text + "' is expected")
		}
	}
	return nil
}

// name reads a name; ok is false when there is none.
func (p *scriptParser) name() (text string, ok bool) {
	if p.end() || p.tokens[p.pos].kind != 'n' {
		return "", false
	}
	p.pos++
	return p.tokens[p.pos-1].text, true
}

func (p *scriptParser) fault(text string) error {
	if p.end() {
		return errors.New(text + " at the end")
	}
	t := p.tokens[p.pos]
	return fmt.Errorf("%s at %d, before %q", text, t.at+1, t.text)
}

func (p *scriptParser) statement() (step, error) {
	start := p.pos
	word, ok := p.name()
	if ok && word == "return" {
		e, err := p.expr()
		return step{expr: e, last: true}, err
	}
	if ok {
		name := word
		if p.typeTail() {
			if next, declared := p.name(); declared {
				name = next
			}
		}
		if p.skip("=") {
			e, err := p.expr()
			p.known[name] = true
			return step{name: name, expr: e}, err
		}
	}
	p.pos = start
	e, err := p.expr()
	return step{expr: e}, err
}

// typeTail moves over what may follow the name of a type: <...> and [].
func (p *scriptParser) typeTail() bool {
	if p.skip("<") {
		for !p.skip(">") {
			if _, ok := p.name(); !ok && !p.skip(",") {
				return false
			}
		}
	}
	for p.at(0, "[") && p.at(1, "]") {
		p.pos += 2
	}
	return true
}

func (p *scriptParser) expr() (expr, error) {
	if p.depth++; p.depth > maxScriptDepth {
		return nil, fmt.Errorf("the script is nested more than %d levels deep", maxScriptDepth)
	}
	defer func() { p.depth-- }()
	e, err := p.primary()
	for err == nil && p.skip(".") {
		name, ok := p.name()
		if !ok {
			return nil, p.fault("a method is expected")
		}
		if name != "union" && name != "add" {
			return nil, fmt.Errorf("method %s is not supported: use union, add or Series.of", name)
		}
		var args []expr
		if args, err = p.list("(", ")"); err == nil {
			if len(args) != 1 {
				return nil, fmt.Errorf("%s takes one argument", name)
			}
			e = method(name, e, args[0])
		}
	}
	return e, err
}

// list reads expressions between brackets.
func (p *scriptParser) list(open, shut string) ([]expr, error) {
	if err := p.expect(open); err != nil {
		return nil, err
	}
	var list []expr
	for !p.skip(shut) {
		if len(list) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (p *scriptParser) primary() (expr, error) {
	if p.end() {
		return nil, p.fault("an expression is expected")
	}
	switch t := p.tokens[p.pos]; t.kind {
	case 's':
		p.pos++
		return constant(t.text), nil
	case '0':
		p.pos++
		n, err := calc.ParseNumber(t.text)
		if err != nil || math.IsInf(n.Value, 0) {
			return nil, fmt.Errorf("%q at %d is no number", t.text, t.at+1)
		}
		return constant(n.Value), nil
	case 'n':
		p.pos++
		return p.named(t)
	}
	if !p.skip("(") {
		return nil, p.fault("an expression is expected")
	}
	e, err := p.expr()
	if err == nil {
		err = p.expect(")")
	}
	return e, err
}

func constant(v value) expr { return func(map[string]value) (value, error) { return v, nil } }

func (p *scriptParser) named(t scriptToken) (expr, error) {
	switch {
	case t.text == "new":
		return p.created()
	case t.text == "Series" && !p.known["Series"] && p.at(0, "."):
		p.pos++
		if name, _ := p.name(); name != "of" {
			return nil, errors.New("of Series only Series.of is supported")
		}
		args, err := p.list("(", ")")
		if err == nil && (len(args) < 4 || len(args)%2 != 0) {
			err = errors.New("write Series.of(times, values, metric, entity, tag, value...)")
		}
		return seriesOf(args), err
	case !p.known[t.text]:
		return nil, fmt.Errorf("name %q at %d is unknown", t.text, t.at+1)
	}
	return func(vars map[string]value) (value, error) { return vars[t.text], nil }, nil
}

// created reads what follows new.
func (p *scriptParser) created() (expr, error) {
	kind, ok := p.name()
	if ok && kind == "ArrayList" {
		if !p.typeTail() {
			return nil, p.fault("'>' is expected")
		}
		err := p.expect("(", ")")
		return func(map[string]value) (value, error) { return &collection{}, nil }, err
	}
	if !ok || kind != "String" && kind != "double" {
		return nil, p.fault("new makes ArrayList, String[] and double[] only")
	}
	if err := p.expect("[", "]"); err != nil {
		return nil, err
	}
	items, err := p.list("{", "}")
	if err != nil {
		return nil, err
	}
	if len(items) > maxScriptList {
		return nil, fmt.Errorf("an array has more than %d elements", maxScriptList)
	}
	if kind == "String" {
		return array[string](items, "a string"), nil
	}
	return array[float64](items, "a number"), nil
}

func array[T string | float64](items []expr, what string) expr {
	return func(vars map[string]value) (value, error) {
		out := make([]T, 0, len(items))
		for _, item := range items {
			one, err := evaluateAs[T](item, vars, what)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	}
}

// evaluateAs computes a value that has to be of one type; what names it for people.
func evaluateAs[T any](e expr, vars map[string]value, what string) (T, error) {
	v, err := e(vars)
	if err != nil {
		var zero T
		return zero, err
	}
	t, ok := v.(T)
	if !ok {
		return t, errors.New(what + " is expected")
	}
	return t, nil
}

// method is union, which makes a new collection, or add, which changes its list and gives true.
func method(name string, object, argument expr) expr {
	return func(vars map[string]value) (value, error) {
		c, err := evaluateAs[*collection](object, vars, "a series before ."+name)
		if err != nil {
			return nil, err
		}
		o, err := evaluateAs[*collection](argument, vars, "a series in "+name+"()")
		if err != nil {
			return nil, err
		}
		if name == "union" {
			both := &collection{input: true, list: slices.Clone(c.list)}
			return both, both.append(o.list)
		}
		if c.input {
			return nil, errors.New("add needs a list: write new ArrayList() first")
		}
		return true, c.append(slices.Clone(o.list))
	}
}

// seriesOf makes a series from its parts.
func seriesOf(args []expr) expr {
	return func(vars map[string]value) (value, error) {
		times, err := evaluateAs[[]string](args[0], vars, "an array of times in Series.of")
		if err != nil {
			return nil, err
		}
		values, err := evaluateAs[[]float64](args[1], vars, "an array of numbers in Series.of")
		if err != nil {
			return nil, err
		}
		var names []string
		for _, arg := range args[2:] {
			name, err := evaluateAs[string](arg, vars, "a string in Series.of")
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
		r, err := newSeries(times, values, names)
		if err != nil {
			return nil, err
		}
		return &collection{list: []*Result{r}, input: true}, nil
	}
}

// newSeries takes the metric, the entity and pairs of tags in names. Of equal times the last one counts.
func newSeries(times []string, values []float64, names []string) (*Result, error) {
	if len(times) != len(values) {
		return nil, fmt.Errorf("Series.of has %d times and %d values", len(times), len(values))
	}
	for _, name := range names {
		if blank(name) || strings.ContainsAny(name, "\x00\x01") {
			return nil, errors.New("Series.of has an empty name or one with control characters")
		}
	}
	r := &Result{Metric: strings.ToLower(names[0]), Entity: strings.ToLower(names[1]), Type: History, Computed: true}
	for i := 2; i < len(names); i += 2 {
		r.Tags = append(r.Tags, core.Tag{Name: strings.ToLower(names[i]), Value: names[i+1]})
	}
	r.Tags = r.Tags.Normal()
	points := make([]calc.Point, len(times))
	for i, text := range times {
		t, err := dates.ParseISO(text)
		if err != nil {
			return nil, fmt.Errorf("Series.of: %w", err)
		}
		points[i] = calc.Point{Time: t, Value: values[i]}
	}
	slices.SortStableFunc(points, func(a, b calc.Point) int { return cmp.Compare(a.Time, b.Time) })
	for i, p := range points {
		if i+1 == len(points) || points[i+1].Time != p.Time {
			r.Samples.Times, r.Samples.Values = append(r.Samples.Times, p.Time), append(r.Samples.Values, p.Value)
		}
	}
	return r, nil
}
