package filter

import (
	"strconv"
	"strings"
)

type nodeKind uint8

const (
	nodeConst   nodeKind = iota // value
	nodeName                    // text
	nodeMember                  // args[0] . text
	nodeIndex                   // args[0] [ args[1] ]
	nodeCall                    // text ( args )
	nodeMethod                  // args[0] . text ( args[1:] )
	nodeList                    // [ args ]
	nodeOr                      // any of args
	nodeAnd                     // all of args
	nodeNot                     // args[0]
	nodeNegate                  // - args[0]
	nodeSum                     // args[0] text args[1], text one of + - * / %
	nodeCompare                 // args[0] text args[1], text one of = != < <= > >=
	nodeLike                    // args[0] LIKE any of args[1:]
	nodeIn                      // args[0] IN args[1:], or NOT IN; a list value counts as its elements
	nodeBetween                 // args[0] BETWEEN args[1] AND args[2], or NOT BETWEEN
	nodeRegex                   // args[0] REGEX args[1]
)

type node struct {
	kind  nodeKind
	at    token // for errors
	text  string
	value Value
	args  []*node
}

type parser struct {
	source string
	tokens []token
	next   int
	phrase int   // byte where the comparison that is being read starts
	seed   *node // an operand that was read already, see operands
}

func parse(source string) (*node, error) {
	if err := checkFences(source); err != nil {
		return nil, err
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{source: source, tokens: tokens}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokenEnd {
		return nil, p.fail(t)
	}
	return n, nil
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

func (p *parser) fail(t token) error { return noViable(p.source, p.phrase, t) }

// symbol takes the next token if it is s.
func (p *parser) symbol(s string) bool {
	if !p.peek().symbol(s) {
		return false
	}
	p.next++
	return true
}

// word takes the next token if it is the operator word w.
func (p *parser) word(w string) bool {
	if !p.peek().word(w) {
		return false
	}
	p.next++
	return true
}

func (p *parser) expect(s string) error {
	if !p.symbol(s) {
		return p.fail(p.peek())
	}
	return nil
}

func (p *parser) or() (*node, error) { return p.chain(nodeOr, "or", p.and) }

func (p *parser) and() (*node, error) { return p.chain(nodeAnd, "and", p.not) }

// chain reads operands between equal operators into one flat node, so that a long chain is not a deep tree.
func (p *parser) chain(k nodeKind, op string, operand func() (*node, error)) (*node, error) {
	first, err := operand()
	if err != nil {
		return nil, err
	}
	args := []*node{first}
	for p.symbol(op) || p.word(op) {
		n, err := operand()
		if err != nil {
			return nil, err
		}
		args = append(args, n)
	}
	if len(args) == 1 {
		return first, nil
	}
	return &node{kind: k, at: first.at, args: args}, nil
}

func (p *parser) not() (*node, error) {
	at, negate := p.peek(), false
	p.phrase = at.start
	for p.symbol("!") || p.word("not") {
		negate = !negate
	}
	n, err := p.comparison()
	if err != nil || !negate {
		return n, err
	}
	return &node{kind: nodeNot, at: at, args: []*node{n}}, nil
}

func (p *parser) comparison() (*node, error) {
	p.phrase = p.peek().start
	phrase := p.phrase
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	p.phrase = phrase
	op := p.peek()
	if op.kind == tokenSymbol {
		switch op.text {
		case "=", "!=", "<", "<=", ">", ">=":
			p.next++
			right, err := p.sum()
			return &node{kind: nodeCompare, at: op, text: op.text, args: []*node{left, right}}, err
		}
		return left, nil
	}
	negate := p.word("not")
	n, err := p.wordOperator(left)
	switch {
	case err != nil:
		return nil, err
	case n == nil && negate:
		return nil, p.fail(p.peek())
	case n == nil:
		return left, nil
	case negate && (n.kind == nodeIn || n.kind == nodeBetween):
		n.text = negated // one comparison, which NaN does not fulfil
		return n, nil
	case negate:
		return &node{kind: nodeNot, at: op, args: []*node{n}}, nil
	}
	return n, nil
}

// negated is the text of a node with NOT before its operator.
const negated = "not"

// wordOperator reads what follows left when that is LIKE, IN, BETWEEN or REGEX; nil when it is something else.
func (p *parser) wordOperator(left *node) (*node, error) {
	op := p.peek()
	n := &node{at: op, args: []*node{left}}
	var err error
	switch {
	case p.word("like"):
		n.kind = nodeLike
		err = p.operands(n)
	case p.word("in"):
		n.kind = nodeIn
		err = p.operands(n)
	case p.word("regex"):
		n.kind = nodeRegex
		err = p.operand(n)
	case p.word("between"):
		n.kind = nodeBetween
		if err = p.operand(n); err != nil {
			return nil, err
		}
		if !p.word("and") && !p.symbol("and") {
			return nil, p.fail(p.peek())
		}
		err = p.operand(n)
	default:
		return nil, nil
	}
	return n, err
}

func (p *parser) operand(n *node) error {
	arg, err := p.sum()
	n.args = append(n.args, arg)
	return err
}

// operands reads `(a, b)` or a single sum. `(a) + b` starts like a list; then the element read becomes the first operand of the sum. Going back
// instead would read nested ones an exponential number of times.
func (p *parser) operands(n *node) error {
	if !p.peek().symbol("(") {
		return p.operand(n)
	}
	p.next++
	list, err := p.arguments(")")
	if err != nil {
		return err
	}
	if t := p.peek(); len(list) == 1 && t.kind == tokenSymbol && strings.Contains("+-*/%.[", t.text) {
		p.seed = list[0]
		return p.operand(n)
	}
	if len(list) == 0 {
		return p.fail(p.tokens[p.next-1])
	}
	n.args = append(n.args, list...)
	return nil
}

func (p *parser) sum() (*node, error) { return p.binary("+-", p.product) }

func (p *parser) product() (*node, error) { return p.binary("*/%", p.unary) }

func (p *parser) binary(ops string, operand func() (*node, error)) (*node, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		op := p.peek()
		if op.kind != tokenSymbol || len(op.text) != 1 || !strings.Contains(ops, op.text) {
			return left, nil
		}
		p.next++
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = &node{kind: nodeSum, at: op, text: op.text, args: []*node{left, right}}
	}
}

func (p *parser) unary() (*node, error) {
	if p.seed != nil {
		return p.postfix()
	}
	at, negate := p.peek(), false
	for p.symbol("-") {
		negate = !negate
	}
	n, err := p.postfix()
	if err != nil || !negate {
		return n, err
	}
	if n.kind == nodeConst && n.value.kind == kindNumber {
		return &node{kind: nodeConst, at: at, value: Number(-n.value.num)}, nil
	}
	return &node{kind: nodeNegate, at: at, args: []*node{n}}, nil
}

func (p *parser) postfix() (*node, error) {
	n, err := p.primary()
	for err == nil {
		at := p.peek()
		switch {
		case p.symbol("."):
			n, err = p.member(n)
		case p.symbol("["):
			var index *node
			if index, err = p.or(); err == nil {
				err = p.expect("]")
			}
			n = &node{kind: nodeIndex, at: at, args: []*node{n, index}}
		default:
			return n, nil
		}
	}
	return nil, err
}

func (p *parser) member(of *node) (*node, error) {
	t := p.take()
	if t.kind != tokenName && t.kind != tokenMember {
		return nil, p.fail(t)
	}
	if t.kind == tokenMember || !p.symbol("(") {
		return &node{kind: nodeMember, at: t, text: strings.ToLower(t.text), args: []*node{of}}, nil
	}
	args, err := p.arguments(")")
	return &node{kind: nodeMethod, at: t, text: strings.ToLower(t.text), args: append([]*node{of}, args...)}, err
}

// arguments reads expressions up to the closing symbol and takes it.
func (p *parser) arguments(closing string) ([]*node, error) {
	if p.symbol(closing) {
		return nil, nil
	}
	var args []*node
	for {
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		args = append(args, n)
		if p.symbol(closing) {
			return args, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

func (p *parser) primary() (*node, error) {
	if n := p.seed; n != nil {
		p.seed = nil
		return n, nil
	}
	t := p.take()
	switch {
	case t.kind == tokenNumber:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, &SyntaxError{Source: p.source, Offset: t.start, Reason: "number out of range: " + t.text}
		}
		return &node{kind: nodeConst, at: t, value: Number(f)}, nil
	case t.kind == tokenText:
		return &node{kind: nodeConst, at: t, value: Text(t.text)}, nil
	case t.kind == tokenName:
		return p.named(t)
	case t.symbol("("):
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		return n, p.expect(")")
	case t.symbol("["):
		args, err := p.arguments("]")
		return &node{kind: nodeList, at: t, args: args}, err
	}
	return nil, p.fail(t)
}

// named reads what starts with a name: a constant, a function call or a variable. Operator words are no names.
func (p *parser) named(t token) (*node, error) {
	word := strings.ToLower(t.text)
	switch word {
	case "true":
		return &node{kind: nodeConst, at: t, value: Bool(true)}, nil
	case "false":
		return &node{kind: nodeConst, at: t, value: Bool(false)}, nil
	case "null":
		return &node{kind: nodeConst, at: t}, nil
	case "and", "or", "not", "like", "in", "between", "regex":
		return nil, p.fail(t)
	}
	if !p.symbol("(") {
		return &node{kind: nodeName, at: t, text: word}, nil
	}
	args, err := p.arguments(")")
	return &node{kind: nodeCall, at: t, text: word, args: args}, err
}
