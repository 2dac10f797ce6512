package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core/glob"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// metricSelection finds out which metrics the WHERE of atsd_series selects.
type metricSelection struct {
	resolve func(*ast.Name) (ref, bool)
	table   int // of atsd_series in FROM

	exists   func(name string) bool                // nil: every metric does
	prefixed func(prefix string) ([]string, error) // the metrics whose names start so
	of       func(entity string) ([]string, error) // the metrics for which an entity has series, ascending
	limit    int                                   // metrics that patterns may select
	without  []string                              // metrics of the tables that it is joined with
	at       ast.Start                             // of the WHERE expression; of the table when there is none
}

// candidates are metrics in the order in which the statement names them. The value says whether only a pattern names the metric.
type candidates struct {
	names   []string
	pattern map[string]bool
}

// exactly makes candidates of names that are written out.
func exactly(names []string) *candidates {
	c := &candidates{pattern: map[string]bool{}}
	for _, name := range names {
		c.add(name, false)
	}
	return c
}

// merge appends the candidates of o that are not there. A name that is written out somewhere needs no pattern.
func (c *candidates) merge(o *candidates) {
	for _, name := range o.names {
		c.add(name, o.pattern[name])
	}
}

func (c *candidates) add(name string, pattern bool) {
	before, again := c.pattern[name]
	if !again {
		c.names = append(c.names, name)
	}
	c.pattern[name] = pattern && (before || !again)
}

// metrics returns the selected metrics in their natural order and the terms that remain to be tested. Terms that speak of nothing but the name are settled.
func (m metricSelection) metrics(terms []ast.Expr) (names []string, rest []ast.Expr, err error) {
	selected, err := m.positive(terms)
	if err != nil {
		return nil, nil, err
	}
	tests := make([]nameTest, 0, len(terms))
	for _, term := range terms {
		test, ok := m.test(term)
		if !ok {
			rest = append(rest, term)
			continue
		}
		tests = append(tests, test)
	}
	byPattern := 0
	for _, name := range selected.names {
		if m.exists != nil && !m.exists(name) || slices.Contains(m.without, name) ||
			slices.ContainsFunc(tests, func(test nameTest) bool { return test(name) != isTrue }) {
			continue
		}
		names = append(names, name)
		if selected.pattern[name] {
			byPattern++
		}
	}
	switch {
	case byPattern > m.limit:
		return nil, nil, ast.Errorf("Too many metrics found. Maximum: %d", m.limit)
	case len(names) == 0:
		return nil, nil, ast.Errorf("No matching metrics found")
	}
	return names, rest, nil
}

// positive returns what the terms name, of which there must be something.
func (m metricSelection) positive(terms []ast.Expr) (*candidates, error) {
	selected, err := m.intersection(terms)
	if selected == nil && err == nil {
		err = m.at.Errorf("Missing metric expression in the where clause")
	}
	return selected, err
}

// intersection returns what all terms that name metrics name; nil when none does. An OR that names metrics on one side only is an error unless another term
// names some: then it narrows them, row by row.
func (m metricSelection) intersection(terms []ast.Expr) (*candidates, error) {
	var selected *candidates
	var half error
	for _, term := range terms {
		found, err := m.named(term)
		var mistake *ast.Error
		switch {
		case errors.As(err, &mistake):
			half = mistake
		case err != nil:
			return nil, err
		default:
			selected = meet(selected, found)
		}
	}
	if selected == nil {
		return nil, half
	}
	return selected, nil
}

// meet returns what is in a and b; nil stands for all.
func meet(a, b *candidates) *candidates {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	c := exactly(nil)
	for _, name := range a.names {
		if pattern, ok := b.pattern[name]; ok {
			c.add(name, pattern && a.pattern[name])
		}
	}
	return c
}

// named returns the metrics that a condition names; nil when it names none.
func (m metricSelection) named(e ast.Expr) (*candidates, error) {
	switch e := e.(type) {
	case *ast.Binary:
		switch e.Op {
		case "and":
			return m.intersection(conjuncts(e, nil))
		case "or":
			return m.either(e)
		case "=":
			if name, ok := m.compared(e); ok {
				return exactly([]string{strings.ToLower(name)}), nil
			}
		}
	case *ast.In:
		return m.listed(e)
	case *ast.Like:
		return m.matching(e)
	}
	return nil, nil
}

// either joins the sides of an OR. Both must name metrics, or none.
func (m metricSelection) either(e *ast.Binary) (*candidates, error) {
	left, err := m.named(e.L)
	if err != nil {
		return nil, err
	}
	right, err := m.named(e.R)
	if err != nil {
		return nil, err
	}
	if left == nil && right == nil {
		return nil, nil
	}
	if left == nil || right == nil {
		return nil, ast.Errorf("Invalid metric expression")
	}
	left.merge(right)
	return left, nil
}

// column reports whether e is the name of the metric.
func (m metricSelection) column(e ast.Expr) bool {
	n, ok := e.(*ast.Name)
	if !ok {
		return false
	}
	r, ok := m.resolve(n)
	return ok && r.source.Kind == SourceMetric && (r.table == m.table || r.table == joined)
}

// compared returns the text that the name is compared with, on whichever side it stands.
func (m metricSelection) compared(e *ast.Binary) (string, bool) {
	if m.column(e.L) {
		return textOf(e.R)
	}
	if m.column(e.R) {
		return textOf(e.L)
	}
	return "", false
}

func textOf(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.Literal)
	if !ok || l.Kind != ast.String {
		return "", false
	}
	return l.Text, true
}

// textsOf returns the texts of a list; ok is false when it has anything else but NULL, which equals nothing.
func textsOf(list []ast.Expr) (texts []string, ok bool) {
	for _, e := range list {
		if l, isLiteral := e.(*ast.Literal); isLiteral && l.Kind == ast.Null {
			continue
		}
		text, ok := textOf(e)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

func loweredAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

func (m metricSelection) listed(e *ast.In) (*candidates, error) {
	if e.Not || !m.column(e.X) {
		return nil, nil
	}
	if set, ok := e.Set.(*ast.Call); ok && set.Name == "metrics" {
		return m.measured(set)
	}
	names, ok := textsOf(e.List)
	if !ok || e.Set != nil {
		return nil, nil
	}
	return exactly(loweredAll(names)), nil
}

// measured returns the metrics of all entities of a call of metrics.
func (m metricSelection) measured(call *ast.Call) (*candidates, error) {
	entities, ok := textsOf(call.Args)
	if !ok {
		return nil, nil
	}
	c := exactly(nil)
	for _, entity := range loweredAll(entities) {
		names, err := m.of(entity)
		if err != nil {
			return nil, err
		}
		c.merge(exactly(names))
	}
	return c, nil
}

// matching returns the metrics that a pattern selects. Stored names are in lower case and the pattern is not, so that a capital letter matches nothing.
func (m metricSelection) matching(e *ast.Like) (*candidates, error) {
	text, ok := textOf(e.Pattern)
	if e.Not || !ok || !m.column(e.X) {
		return nil, nil
	}
	p := glob.Compile(globOf(text, e.Escape))
	names, err := m.prefixed(p.Prefix())
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !p.Match(name) })
	slices.Sort(names)
	c := exactly(nil)
	for _, name := range names {
		c.add(name, true)
	}
	return c, nil
}

// globOf turns a pattern of LIKE into one of package glob. The escape character makes the next one literal, whatever it is; at the end it is itself.
func globOf(like string, escape *ast.Literal) string {
	special := '\\'
	if escape != nil {
		special = []rune(escape.Text + "\\")[0]
	}
	var b strings.Builder
	escaped := false
	for i, r := range like {
		switch {
		case !escaped && r == special && i+len(string(r)) < len(like):
			escaped = true
			continue
		case !escaped && r == '%':
			b.WriteByte('*')
		case !escaped && r == '_':
			b.WriteByte('?')
		default:
			b.WriteString(glob.Escape(string(r)))
		}
		escaped = false
	}
	return b.String()
}

// truth is the value of a condition: true, false or NULL.
type truth uint8

const (
	isNull truth = iota
	isFalse
	isTrue
)

func truthOf(ok bool) truth {
	if ok {
		return isTrue
	}
	return isFalse
}

func (t truth) not() truth {
	switch t {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	}
	return isNull
}

// nameTest is a condition on the name of a metric alone.
type nameTest func(name string) truth

// not is the opposite of the test; of NULL it is NULL.
func (t nameTest) not() nameTest {
	return func(name string) truth { return t(name).not() }
}

// test compiles a condition that speaks of nothing but the name; ok is false for all others.
func (m metricSelection) test(e ast.Expr) (test nameTest, ok bool) {
	negated := false
	switch e := e.(type) {
	case *ast.Not:
		negated = true
		test, ok = m.test(e.X)
	case *ast.Binary:
		if e.Op == "and" || e.Op == "or" {
			return m.testBoth(e)
		}
		return m.testComparison(e)
	case *ast.In:
		negated = e.Not
		test, ok = m.testIn(e)
	case *ast.Like:
		negated = e.Not
		test, ok = m.testLike(e)
	case *ast.Regex:
		negated = e.Not
		test, ok = m.testRegex(e)
	}
	if ok && negated {
		test = test.not()
	}
	return test, ok
}

func (m metricSelection) testBoth(e *ast.Binary) (nameTest, bool) {
	left, ok := m.test(e.L)
	if !ok {
		return nil, false
	}
	right, ok := m.test(e.R)
	if !ok {
		return nil, false
	}
	// The value that decides alone: FALSE of AND, TRUE of OR.
	decides := truthOf(e.Op == "or")
	return func(name string) truth {
		l := left(name)
		if l == decides {
			return l
		}
		r := right(name)
		if r == decides || l != isNull {
			return r
		}
		return isNull
	}, true
}

func (m metricSelection) testComparison(e *ast.Binary) (nameTest, bool) {
	text, ok := m.compared(e)
	if !ok {
		return nil, false
	}
	op := e.Op
	if op == "=" || op == "<>" {
		text = strings.ToLower(text)
	} else if !m.column(e.L) {
		op = flipped[op]
	}
	return func(name string) truth {
		order := cmp.Compare(name, text)
		switch op {
		case "=":
			return truthOf(order == 0)
		case "<>":
			return truthOf(order != 0)
		case "<":
			return truthOf(order < 0)
		case "<=":
			return truthOf(order <= 0)
		case ">":
			return truthOf(order > 0)
		}
		return truthOf(order >= 0)
	}, true
}

// testIn tests membership, whatever NOT says.
func (m metricSelection) testIn(e *ast.In) (nameTest, bool) {
	if !m.column(e.X) {
		return nil, false
	}
	positive := *e
	positive.Not = false
	c, err := m.listed(&positive)
	if err != nil || c == nil {
		return nil, false
	}
	return func(name string) truth {
		_, ok := c.pattern[name]
		return truthOf(ok)
	}, true
}

func (m metricSelection) testLike(e *ast.Like) (nameTest, bool) {
	text, ok := textOf(e.Pattern)
	if !ok || !m.column(e.X) {
		return nil, false
	}
	p := glob.Compile(globOf(text, e.Escape))
	return func(name string) truth { return truthOf(p.Match(name)) }, true
}

// testRegex leaves expressions that do not compile to whoever reports that.
func (m metricSelection) testRegex(e *ast.Regex) (nameTest, bool) {
	text, ok := textOf(e.Pattern)
	if !ok || !m.column(e.X) {
		return nil, false
	}
	re, err := expr.CompileRegex(text)
	if err != nil {
		return nil, false
	}
	return func(name string) truth { return truthOf(re.MatchString(name)) }, true
}
