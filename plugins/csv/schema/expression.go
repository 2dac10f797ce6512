package schema

type operator uint8

const (
	noOperator operator = iota
	plus
	minus
	times
	divide
	remainder
	bitAnd
	bitOr
	bitXor
	shiftLeft
	shiftRight
	shiftRightZero
	equalTo
	notEqualTo
	sameAs
	notSameAs
	less
	lessOrEqual
	more
	moreOrEqual
)

// binaries are the operators between two operands. Those of a higher level bind tighter; && and || are none of them, for they may leave their right side alone.
var binaries = map[string]struct {
	level int
	op    operator
}{
	"||": {1, noOperator}, "&&": {2, noOperator}, "|": {3, bitOr}, "^": {4, bitXor}, "&": {5, bitAnd},
	"==": {6, equalTo}, "!=": {6, notEqualTo}, "===": {6, sameAs}, "!==": {6, notSameAs},
	"<": {7, less}, "<=": {7, lessOrEqual}, ">": {7, more}, ">=": {7, moreOrEqual},
	"<<": {8, shiftLeft}, ">>": {8, shiftRight}, ">>>": {8, shiftRightZero},
	"+": {9, plus}, "-": {9, minus}, "*": {10, times}, "/": {10, divide}, "%": {10, remainder},
}

var assignments = map[string]operator{"=": noOperator, "+=": plus, "-=": minus, "*=": times, "/=": divide, "%=": remainder,
	"&=": bitAnd, "|=": bitOr, "^=": bitXor, "<<=": shiftLeft, ">>=": shiftRight, ">>>=": shiftRightZero}

// expression reads one, or several with commas between them.
func (p *parser) expression() (expression, error) {
	e, err := p.assignment()
	if err != nil || !p.is(",") {
		return e, err
	}
	all := &commaNode{items: []expression{e}}
	for {
		ok, err := p.accept(",")
		if !ok || err != nil {
			return all, err
		}
		if e, err = p.assignment(); err != nil {
			return nil, err
		}
		all.items = append(all.items, e)
	}
}

func (p *parser) assignment() (expression, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	target, err := p.choice()
	if err != nil || p.token.kind != tokenMark {
		return target, err
	}
	op, ok := assignments[p.token.text]
	if !ok {
		return target, nil
	}
	at := p.token.at
	if err := p.target(target, at); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	v, err := p.assignment()
	return &assignNode{at, target, op, v}, err
}

// target checks that a value can be put there, and notes the members that the program sets.
func (p *parser) target(e expression, at int) error {
	switch e := e.(type) {
	case *nameNode:
		e.assigned = true
	case *memberNode:
		p.members[e.name] = true
	case *indexNode:
		p.anyName = true
	default:
		return faultf(at, "a variable, a member or an element is expected on the left, nothing else can be set")
	}
	return nil
}

func (p *parser) choice() (expression, error) {
	condition, err := p.binary(1)
	if err != nil || !p.is("?") {
		return condition, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	then, err := p.assignment()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":", "behind the second part of ?"); err != nil {
		return nil, err
	}
	otherwise, err := p.assignment()
	return &choiceNode{condition, then, otherwise}, err
}

// binary reads operators of a level and tighter ones. Those of one level stand in a row, each of which makes the tree deeper.
func (p *parser) binary(level int) (expression, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	left, err := p.unary()
	for err == nil && p.token.kind == tokenMark {
		b, ok := binaries[p.token.text]
		if !ok || b.level < level {
			break
		}
		at := p.token.at
		if err := p.deeper(); err != nil {
			return nil, err
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		right, err := p.binary(b.level + 1)
		if err != nil {
			return nil, err
		}
		if b.op == noOperator {
			left = &logicNode{b.level == 2, left, right}
		} else {
			left = &binaryNode{at, b.op, left, right}
		}
	}
	return left, err
}

func (p *parser) unary() (expression, error) {
	t := p.token
	switch {
	case t.kind == tokenMark && (t.text == "!" || t.text == "-" || t.text == "+" || t.text == "~"), p.is("typeof"):
	case p.is("++"), p.is("--"):
	default:
		return p.postfix()
	}
	depth := p.depth
	defer func() { p.depth = depth }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	of, err := p.unary()
	if err != nil {
		return nil, err
	}
	if t.text == "++" || t.text == "--" {
		n, err := p.step(t, of)
		if err == nil {
			n.prefix = true
		}
		return n, err
	}
	if v, ok := of.(*literalNode); ok && t.text == "-" && v.value.kind == number {
		return &literalNode{numberOf(-v.value.number)}, nil
	}
	return &unaryNode{t.text, of}, nil
}

func (p *parser) step(t token, of expression) (*stepNode, error) {
	by := 1.0
	if t.text == "--" {
		by = -1
	}
	return &stepNode{at: t.at, target: of, by: by}, p.target(of, t.at)
}

// postfix reads a value with the members, elements and calls behind it.
func (p *parser) postfix() (expression, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	e, err := p.primary()
	for err == nil && p.token.kind == tokenMark {
		t := p.token
		if err := p.deeper(); err != nil {
			return nil, err
		}
		switch t.text {
		case ".":
			e, err = p.member(e)
		case "[":
			e, err = p.index(e)
		case "(":
			var args []expression
			if args, err = p.arguments(); err == nil {
				call := &callNode{at: t.at, callee: e, args: args}
				p.calls = append(p.calls, call)
				e = call
			}
		case "++", "--":
			if t.newLine {
				return e, nil
			}
			if err := p.advance(); err != nil {
				return nil, err
			}
			return p.step(t, e)
		default:
			return e, nil
		}
	}
	return e, err
}

func (p *parser) member(of expression) (expression, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	t := p.token
	if t.kind != tokenWord {
		return nil, faultf(t.at, "a name is expected behind the dot, found %s", t)
	}
	if err := p.advance(); err != nil || !p.is("(") {
		return &memberNode{t.at, of, t.text}, err
	}
	args, err := p.arguments()
	m := &methodNode{at: t.at, of: of, name: t.text, args: args}
	p.methods = append(p.methods, m)
	return m, err
}

func (p *parser) index(of expression) (expression, error) {
	at := p.token.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	i, err := p.expression()
	if err != nil {
		return nil, err
	}
	return &indexNode{at, of, i}, p.expect("]", "behind an index")
}

// arguments reads those of a call, parentheses included.
func (p *parser) arguments() (args []expression, err error) {
	return p.list("(", ")")
}

// list reads expressions with commas between brackets.
func (p *parser) list(open, closing string) (items []expression, err error) {
	if err := p.expect(open, "there"); err != nil {
		return nil, err
	}
	for !p.is(closing) {
		e, err := p.assignment()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok && !p.is(closing) {
			return nil, faultf(p.token.at, ", or %s is expected, found %s", closing, p.token)
		}
	}
	return items, p.advance()
}

var constants = map[string]value{"true": boolOf(true), "false": boolOf(false), "null": {kind: null}, "undefined": {}}

func (p *parser) primary() (expression, error) {
	t := p.token
	switch t.kind {
	case tokenNumber:
		return &literalNode{numberOf(t.number)}, p.advance()
	case tokenText:
		return &literalNode{textOf(t.text)}, p.advance()
	case tokenWord:
		return p.wordValue()
	case tokenMark:
		switch t.text {
		case "(":
			if err := p.advance(); err != nil {
				return nil, err
			}
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			return e, p.expect(")", "behind an expression")
		case "[":
			items, err := p.list("[", "]")
			return &listNode{items}, err
		case "{":
			return p.record()
		case "/", "/=":
			return p.pattern()
		}
	}
	return nil, faultf(t.at, "a value is expected, found %s", t)
}

func (p *parser) wordValue() (expression, error) {
	t := p.token
	if v, ok := constants[t.text]; ok {
		return &literalNode{v}, p.advance()
	}
	if t.text == "select" {
		return nil, faultf(t.at, "select begins a statement of the program; it cannot stand inside of another one")
	}
	if t.text == "function" {
		if err := p.advance(); err != nil {
			return nil, err
		}
		name := ""
		if p.token.kind == tokenWord {
			name = p.token.text
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
		f, err := p.function(t.at, name)
		return f, err
	}
	if t.text != "NaN" && t.text != "Infinity" {
		if err := p.checkName("a value"); err != nil {
			return nil, err
		}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.is("=>") {
		return nil, faultf(p.token.at, "\"=>\" is not a part of the script language: use function")
	}
	return p.refer(t), nil
}

func (p *parser) record() (expression, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	r := &recordNode{}
	for !p.is("}") {
		t := p.token
		if t.kind != tokenWord && t.kind != tokenText && t.kind != tokenNumber {
			return nil, faultf(t.at, "the name of a member is expected, found %s", t)
		}
		if t.kind == tokenNumber {
			t.text = numberText(t.number)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if err := p.expect(":", "behind the name of a member"); err != nil {
			return nil, err
		}
		v, err := p.assignment()
		if err != nil {
			return nil, err
		}
		r.names, r.values = append(r.names, t.text), append(r.values, v)
		p.members[t.text] = true
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok && !p.is("}") {
			return nil, faultf(p.token.at, ", or } is expected behind a member, found %s", p.token)
		}
	}
	return r, p.advance()
}

func (p *parser) pattern() (expression, error) {
	at := p.token.at
	body, flags, err := p.lex.pattern(at)
	if err != nil {
		return nil, err
	}
	o, reason := compilePattern(body, flags)
	if reason != "" {
		return nil, faultf(at, "regular expression %s: %s", clip("/"+body+"/"+flags), reason)
	}
	return &patternNode{value{kind: pattern, ref: o}}, p.advance()
}
