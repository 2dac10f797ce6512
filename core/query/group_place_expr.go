package query

import (
	"fmt"
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core/calc"
)

// The texts of a placement are arithmetic over statistics of a subgroup:
//
//	or      = and { ("OR" | "||") and }
//	and     = not { ("AND" | "&&") not }
//	not     = [ "NOT" | "!" ] compare
//	compare = sum [ ( "<" | "<=" | ">" | ">=" | "=" | "==" | "!=" ) sum ]
//	sum     = product { ("+" | "-") product }
//	product = unary { ("*" | "/") unary }
//	unary   = [ "-" ] ( number | name | function "(" [ argument ] ")" | "(" or ")" )
//
// A name is a tag of the entity that would hold the subgroup; an argument is `series.TAG`, the tag of the entities of all members, or p of percentile.

// Bounds of a text.
const (
	maxPlaceText  = 4096 // bytes
	maxPlaceDepth = 50   // levels of parentheses
)

type placeParser struct {
	text  string
	pos   int
	depth int
}

// compilePlace returns nil for an empty text.
func compilePlace(text string) (placeExpr, error) {
	if blank(text) {
		return nil, nil
	}
	if len(text) > maxPlaceText {
		return nil, fmt.Errorf("the text has %d bytes, more than %d", len(text), maxPlaceText)
	}
	p := &placeParser{text: text}
	e, err := p.or()
	if err == nil && !p.end() {
		err = p.fault("an operator is expected")
	}
	return e, err
}

func (p *placeParser) blanks() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *placeParser) end() bool {
	p.blanks()
	return p.pos == len(p.text)
}

func (p *placeParser) fault(text string) error { return fmt.Errorf("%s at %d", text, p.pos+1) }

// operator reads one of the operators, of which a longer one stands before its prefix; words ignore case and end where a name would.
func (p *placeParser) operator(list ...string) (string, bool) {
	p.blanks()
	rest := p.text[p.pos:]
	for _, op := range list {
		if len(rest) < len(op) || !strings.EqualFold(rest[:len(op)], op) {
			continue
		}
		if nameStart(op[0]) && len(rest) > len(op) && (nameStart(rest[len(op)]) || digit(rest[len(op)])) {
			continue
		}
		p.pos += len(op)
		return op, true
	}
	return "", false
}

// chain reads operands between operators of one rank.
func (p *placeParser) chain(operand func() (placeExpr, error), operators ...string) (placeExpr, error) {
	left, err := operand()
	for err == nil {
		op, ok := p.operator(operators...)
		if !ok {
			break
		}
		var right placeExpr
		if right, err = operand(); err == nil {
			left = binary(op, left, right)
		}
	}
	return left, err
}

func (p *placeParser) or() (placeExpr, error) {
	if p.depth++; p.depth > maxPlaceDepth {
		return nil, errPlaceDepth
	}
	defer func() { p.depth-- }()
	return p.chain(p.and, "OR", "||")
}

func (p *placeParser) and() (placeExpr, error) { return p.chain(p.not, "AND", "&&") }

func (p *placeParser) not() (placeExpr, error) {
	_, negated := p.operator("NOT", "!")
	e, err := p.compare()
	if err != nil || !negated {
		return e, err
	}
	return func(env *placeEnv) float64 { return truth(e(env) == 0) }, nil
}

func (p *placeParser) compare() (placeExpr, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	op, ok := p.operator("<=", ">=", "!=", "==", "<", ">", "=")
	if !ok {
		return left, nil
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	return binary(op, left, right), nil
}

func (p *placeParser) sum() (placeExpr, error) { return p.chain(p.product, "+", "-") }

func (p *placeParser) product() (placeExpr, error) { return p.chain(p.unary, "*", "/") }

func (p *placeParser) unary() (placeExpr, error) {
	_, negated := p.operator("-")
	e, err := p.primary()
	if err != nil || !negated {
		return e, err
	}
	return func(env *placeEnv) float64 { return -e(env) }, nil
}

func (p *placeParser) primary() (placeExpr, error) {
	if _, ok := p.operator("("); ok {
		e, err := p.or()
		if err == nil {
			err = p.shut()
		}
		return e, err
	}
	if p.end() {
		return nil, p.fault("a number, name or function is expected")
	}
	if c := p.text[p.pos]; digit(c) || c == '.' {
		v, err := p.number()
		return func(*placeEnv) float64 { return v }, err
	}
	name := p.name()
	if name == "" {
		return nil, p.fault("a number, name or function is expected")
	}
	if _, call := p.operator("("); call {
		return p.function(strings.ToLower(name))
	}
	tag := strings.ToLower(name)
	return func(env *placeEnv) float64 { return number(env.bin.Value(tag)) }, nil
}

func (p *placeParser) shut() error {
	if _, ok := p.operator(")"); !ok {
		return p.fault("')' is expected")
	}
	return nil
}

func (p *placeParser) number() (float64, error) {
	p.blanks()
	start := p.pos
	if p.end() || !digit(p.text[p.pos]) && p.text[p.pos] != '.' {
		return 0, p.fault("a number is expected")
	}
	p.pos = scanNumber(p.text, p.pos)
	n, err := calc.ParseNumber(p.text[start:p.pos])
	if err != nil {
		return 0, fmt.Errorf("%q at %d is no number", p.text[start:p.pos], start+1)
	}
	return n.Value, nil
}

// name reads letters, digits, underscores and dots.
func (p *placeParser) name() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.text) && (nameStart(p.text[p.pos]) || p.pos > start && (digit(p.text[p.pos]) || p.text[p.pos] == '.')) {
		p.pos++
	}
	return p.text[start:p.pos]
}

// function reads the argument of a statistic.
func (p *placeParser) function(name string) (placeExpr, error) {
	if name == "percentile" {
		rank, err := p.number()
		if err == nil {
			err = p.shut()
		}
		if err == nil && !(rank <= 100) {
			err = fmt.Errorf("percentile %v is not in 0 to 100", rank)
		}
		return func(env *placeEnv) float64 { return new(calc.Sorter).Percentile(env.values, rank) }, err
	}
	f := placeFunctions[name]
	if f == nil {
		return nil, fmt.Errorf("function %s is unknown", name)
	}
	argument := p.name()
	if err := p.shut(); err != nil {
		return nil, err
	}
	if argument == "" {
		return func(env *placeEnv) float64 { return f(env.values) }, nil
	}
	tag, ok := strings.CutPrefix(strings.ToLower(argument), "series.")
	if !ok {
		return nil, fmt.Errorf("the argument of %s must be series.TAG, not %s", name, argument)
	}
	return func(env *placeEnv) float64 {
		var values []float64
		for _, tags := range env.tags {
			v := number(tags[tag])
			if math.IsNaN(v) {
				return v // a member of unknown size fits nowhere
			}
			values = append(values, v)
		}
		return f(values)
	}, nil
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// binary computes an operator. Comparisons with what is no number are false.
func binary(op string, left, right placeExpr) placeExpr {
	holds := func(v float64) bool { return v != 0 && !math.IsNaN(v) }
	compute := map[string]func(a, b float64) float64{
		"+": func(a, b float64) float64 { return a + b }, "-": func(a, b float64) float64 { return a - b },
		"*": func(a, b float64) float64 { return a * b }, "/": func(a, b float64) float64 { return a / b },
		"<": func(a, b float64) float64 { return truth(a < b) }, "<=": func(a, b float64) float64 { return truth(a <= b) },
		">": func(a, b float64) float64 { return truth(a > b) }, ">=": func(a, b float64) float64 { return truth(a >= b) },
		"=": func(a, b float64) float64 { return truth(a == b) }, "==": func(a, b float64) float64 { return truth(a == b) },
		"!=": func(a, b float64) float64 { return truth(a != b && !math.IsNaN(a) && !math.IsNaN(b)) },
		"OR": func(a, b float64) float64 { return truth(holds(a) || holds(b)) }, "||": func(a, b float64) float64 { return truth(holds(a) || holds(b)) },
		"AND": func(a, b float64) float64 { return truth(holds(a) && holds(b)) }, "&&": func(a, b float64) float64 { return truth(holds(a) && holds(b)) },
	}[op]
	return func(env *placeEnv) float64 { return compute(left(env), right(env)) }
}
