package rules

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"
)

// The fences around expr. Each stops an expression that would otherwise take the process down; the tests hold one such expression for each.
const (
	// maxSource bounds one expression; the parser keeps about a hundred times its input alive.
	maxSource = 16 << 10
	// maxNesting is checked before parsing, because the parser recurses: a million parentheses overflow the stack, which cannot be recovered.
	maxNesting = 200
	// maxText is the longest text an operation may build.
	maxText = 256 << 10
	// maxBuilt is how many bytes of text one evaluation may build altogether.
	maxBuilt = 4 << 20
	// maxLoop is how long predicates may loop in one evaluation: nothing else in the language repeats.
	maxLoop = 50 * time.Millisecond
	// firstPoll is the loop count at which the timer starts; it is passed in well under a millisecond, so that ordinary predicates never pay for one.
	firstPoll = 5000
	pollEvery = 256
)

var (
	errLoop  = fmt.Errorf("loop runs longer than %s", maxLoop)
	errBuilt = fmt.Errorf("text grows beyond %d bytes", maxText)
)

// checkSource is what an expression must pass before the parser sees it.
func checkSource(text string) error {
	if len(text) > maxSource {
		return fmt.Errorf("expression is longer than %d bytes", maxSource)
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("expression is empty")
	}
	// Quotes may be unbalanced on purpose, so the brackets are also counted as if there were none: 16 KB hold few legitimate ones inside texts.
	if strings.Count(text, "(")+strings.Count(text, "[")+strings.Count(text, "{") > maxNesting {
		if err := checkDepth(text); err != nil {
			return err
		}
	}
	return checkChains(text)
}

// checkDepth counts nesting without regard to quotes.
func checkDepth(text string) error {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("brackets are nested deeper than %d", maxNesting)
			}
		case ')', ']', '}':
			depth--
		}
	}
	return nil
}

// maxChain bounds runs of unary operators and of `?`, which nest in the parser without brackets.
const maxChain = 500

func checkChains(text string) error {
	if n := strings.Count(text, "?"); n > maxChain {
		return fmt.Errorf("expression has more than %d question marks", maxChain)
	}
	unary := strings.Count(text, "!") + strings.Count(text, "-") + strings.Count(text, "+") + strings.Count(text, "not")
	if unary > maxChain {
		return fmt.Errorf("expression has more than %d signs", maxChain)
	}
	return nil
}

// fence is the spending of one evaluation, variables included.
type fence struct {
	loops int
	built int
	timer *time.Timer
}

func (f *fence) reset() {
	f.loops, f.built = 0, 0
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}

// tick is called once for every element a predicate looks at.
func (f *fence) tick() error {
	f.loops++
	if f.loops < firstPoll || f.loops%pollEvery != 0 {
		return nil
	}
	if f.timer == nil {
		f.timer = time.NewTimer(maxLoop)
	}
	select {
	case <-f.timer.C:
		f.timer.Reset(0) // every later tick of this evaluation fails too
		return errLoop
	default:
		return nil
	}
}

// build accounts for a text of n bytes that is about to be made.
func (f *fence) build(n int) error {
	f.built += n
	if n > maxText || f.built > maxBuilt {
		return errBuilt
	}
	return nil
}

// add is `+` where its operands are not known to be numbers.
func (f *fence) add(a, b any) (any, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			if err := f.build(len(x) + len(y)); err != nil {
				return nil, err
			}
			return x + y, nil
		}
	}
	return runtime.Add(a, b), nil
}

func (f *fence) replace(s, old, with string) (string, error) {
	if old == "" {
		return s, nil
	}
	grown := len(s) + strings.Count(s, old)*(len(with)-len(old))
	if err := f.build(grown); err != nil {
		return "", err
	}
	return strings.ReplaceAll(s, old, with), nil
}

func (f *fence) repeat(s string, n int) (string, error) {
	if n < 0 {
		return "", errors.New("repeat: the count is negative")
	}
	if n > 0 && len(s) > maxText/n {
		return "", errBuilt
	}
	if err := f.build(len(s) * n); err != nil {
		return "", err
	}
	return strings.Repeat(s, n), nil
}

func (f *fence) join(list []string, sep string) (string, error) {
	size := len(sep) * max(0, len(list)-1)
	for _, s := range list {
		size += len(s)
	}
	if err := f.build(size); err != nil {
		return "", err
	}
	return strings.Join(list, sep), nil
}

// concat joins lists; every element costs what its interface value takes.
func (f *fence) concat(lists [][]any) ([]any, error) {
	size := 0
	for _, l := range lists {
		size += len(l)
	}
	if err := f.build(16 * size); err != nil {
		return nil, err
	}
	out := make([]any, 0, size)
	for _, l := range lists {
		out = append(out, l...)
	}
	return out, nil
}

// patcher rewrites an expression after parsing: fences, names that are values and functions or objects at once, and variables.
type patcher struct {
	variables map[string]bool // names that are computed on first use
	shadowed  map[string]bool // loop variables and parameters: never patched
	used      map[string]bool // identifiers seen, and fields after a dot
	functions map[string]bool // that may be called; nil = the compiler checks
	err       error
	errAt     ast.Node
}

// Visit implements ast.Visitor; expr calls it for children before their parents.
func (p *patcher) Visit(n *ast.Node) {
	switch node := (*n).(type) {
	case *ast.IdentifierNode:
		p.identifier(n, node)
	case *ast.MemberNode:
		p.member(n, node)
	case *ast.CallNode:
		p.call(n, node)
	case *ast.PredicateNode:
		tick := &ast.CallNode{Callee: &ast.IdentifierNode{Value: "__tick"}}
		node.Node = &ast.SequenceNode{Nodes: []ast.Node{tick, node.Node}}
	case *ast.BinaryNode:
		switch {
		case node.Operator == "+" && !numeric(node.Left) && !numeric(node.Right):
			p.patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: addName(node)}, Arguments: []ast.Node{node.Left, node.Right}})
		case node.Operator == "**" || node.Operator == "^": // the interpreter's is that of package math, whose last digit depends on the processor
			p.patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: "__power"}, Arguments: []ast.Node{node.Left, node.Right}})
		}
	}
}

func (p *patcher) patch(n *ast.Node, with ast.Node) {
	at := (*n).Location()
	ast.Patch(n, with)
	(*n).SetLocation(at)
	if call, ok := with.(*ast.CallNode); ok {
		call.Callee.SetLocation(at)
	}
}

// addName keeps the static type where both sides are texts.
func addName(n *ast.BinaryNode) string {
	if kindOf(n.Left) == kindText && kindOf(n.Right) == kindText {
		return "__addText"
	}
	return "__add"
}

func (p *patcher) identifier(n *ast.Node, id *ast.IdentifierNode) {
	p.used[id.Value] = true
	if p.variables[id.Value] && !p.shadowed[id.Value] {
		p.patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: "__var"}, Arguments: []ast.Node{&ast.StringNode{Value: id.Value}}})
	}
}

func (p *patcher) member(n *ast.Node, m *ast.MemberNode) {
	if field, ok := m.Property.(*ast.StringNode); ok {
		p.used["."+field.Value] = true
	}
	switch inner := m.Node.(type) {
	case *ast.IdentifierNode:
		if hidden, ok := objects[inner.Value]; ok && !p.shadowed[inner.Value] {
			inner.Value = hidden
			p.used[hidden] = true
		}
	case *ast.MemberNode:
		p.fold(n, m, inner)
	}
}

// fold turns tags.event.user and tags.list[0] into one key, as flattened JSON names its tags.
func (p *patcher) fold(n *ast.Node, outer, inner *ast.MemberNode) {
	id, ok := inner.Node.(*ast.IdentifierNode)
	if !ok || id.Value != "tags" {
		return
	}
	first, ok := inner.Property.(*ast.StringNode)
	if !ok {
		return
	}
	switch key := outer.Property.(type) {
	case *ast.StringNode:
		inner.Property = &ast.StringNode{Value: first.Value + "." + key.Value}
	case *ast.IntegerNode:
		inner.Property = &ast.StringNode{Value: fmt.Sprintf("%s[%d]", first.Value, key.Value)}
	default:
		return
	}
	p.patch(n, inner)
}

// objects are names that are a text by themselves and an object before a dot.
var objects = map[string]string{"entity": "__entity", "metric": "__metric"}

// clashes are variables that are functions too when they are called.
var clashes = map[string]bool{"value": true, "now": true, "type": true, "keys": true}

// call gives back their function to names that are variables too.
func (p *patcher) call(n *ast.Node, c *ast.CallNode) {
	id, ok := c.Callee.(*ast.IdentifierNode)
	if !ok {
		// A variable that was patched before its call was seen: report it as what the author wrote.
		if v, ok := c.Callee.(*ast.CallNode); ok && p.err == nil {
			if name, ok := v.Callee.(*ast.IdentifierNode); ok && name.Value == "__var" {
				p.err, p.errAt = errors.New("a variable cannot be called"), c
			}
		}
		return
	}
	if p.functions != nil && !p.functions[id.Value] && p.err == nil {
		if !clashes[id.Value] {
			p.err, p.errAt = fmt.Errorf("unknown name %s", id.Value), c
		}
	}
	switch id.Value {
	case "value":
		id.Value = "__value"
	case "now":
		if len(c.Arguments) == 0 {
			p.patch(n, &ast.IdentifierNode{Value: "now"})
		}
	case "type", "keys":
		p.patch(n, &ast.BuiltinNode{Name: id.Value, Arguments: c.Arguments})
	}
}
