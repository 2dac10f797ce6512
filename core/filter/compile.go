package filter

import (
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
)

// eval computes one node for the record of r. Errors are noted in r.
type eval func(r *run) Value

type compiler struct {
	*settings
	allFunctions bool // the closures are only built to be checked
}

func (c *compiler) fail(n *node, reason string) error {
	return &SyntaxError{Source: c.source, Offset: n.at.start, Reason: reason}
}

func (c *compiler) node(n *node) (eval, error) {
	switch n.kind {
	case nodeConst:
		return constant(n.value), nil
	case nodeName:
		return c.variable(n)
	case nodeMember, nodeIndex:
		return c.memberOrIndex(n)
	case nodeCall:
		return c.call(n)
	case nodeMethod:
		return c.method(n)
	}
	args, err := c.nodes(n.args)
	if err != nil {
		return nil, err
	}
	switch n.kind {
	case nodeList:
		return list(args), nil
	case nodeOr:
		return c.logic(args, true), nil
	case nodeAnd:
		return c.logic(args, false), nil
	case nodeNot:
		return func(r *run) Value { return Bool(!args[0](r).truth()) }, nil
	case nodeNegate:
		return func(r *run) Value {
			f, _ := args[0](r).number()
			return Number(-f)
		}, nil
	case nodeSum:
		return arithmetic(n.text, args), nil
	case nodeCompare:
		return c.comparison(n, args)
	case nodeLike:
		return like(n, args), nil
	case nodeIn:
		return in(n, args), nil
	case nodeBetween:
		return between(n, args), nil
	case nodeRegex:
		return c.regexNode(n, args)
	}
	return nil, core.Errorf(core.Internal, "expression node %d is not known", n.kind)
}

func (c *compiler) nodes(nodes []*node) ([]eval, error) {
	out := make([]eval, len(nodes))
	for i, n := range nodes {
		f, err := c.node(n)
		if err != nil {
			return nil, err
		}
		out[i] = f
	}
	return out, nil
}

func constant(v Value) eval { return func(*run) Value { return v } }

// variable resolves a name. Unknown ones are the empty text, which the contract wants; a bare name in a property filter is a key or else a tag.
func (c *compiler) variable(n *node) (eval, error) {
	f, ok := c.context.fieldOf(n.text)
	switch {
	case !ok && c.context.refuses(n.text):
		return nil, c.fail(n, "'"+n.at.text+"' is not allowed in an expression")
	case ok && f.kind == textField:
		return func(r *run) Value {
			if v := r.env.Lookup(f.name); v.kind != kindNull {
				return v
			}
			return Text("")
		}, nil
	case ok:
		return func(r *run) Value { return r.env.Lookup(f.name) }, nil
	case c.context == Properties:
		name := n.text
		return func(r *run) Value {
			if v := r.env.Lookup("keys"); v.kind == kindMap {
				if text := v.dict.Get(name); text != "" {
					return Text(text)
				}
			}
			return Text(r.env.Tag(name))
		}, nil
	}
	return constant(Text("")), nil
}

// memberOrIndex compiles `a.b` and `a[b]`. Members of `tags` and `row` are read from the record directly.
func (c *compiler) memberOrIndex(n *node) (eval, error) {
	of := n.args[0]
	key := constant(Text(n.text))
	if n.kind == nodeIndex {
		f, err := c.node(n.args[1])
		if err != nil {
			return nil, err
		}
		key = f
	}
	if of.kind == nodeName && of.text == "row" && c.context == Rows {
		return func(r *run) Value { return Text(r.cell(key(r).String())) }, nil
	}
	if of.kind == nodeName && of.text == "tags" {
		if name, ok := constantKey(n); ok {
			return func(r *run) Value { return Text(r.env.Tag(name)) }, nil
		}
	}
	f, err := c.node(of)
	if err != nil {
		return nil, err
	}
	return func(r *run) Value { return c.index(f(r), key(r)) }, nil
}

// constantKey is the name that a member, or an index with a constant, asks for.
func constantKey(n *node) (string, bool) {
	if n.kind == nodeMember {
		return n.text, true
	}
	if k := n.args[1]; k.kind == nodeConst {
		return strings.ToLower(k.value.String()), true
	}
	return "", false
}

// index reads a member of a map or an element of a list; what is not there is the empty text.
func (s *settings) index(v, key Value) Value {
	switch v.kind {
	case kindMap:
		return Text(v.dict.Get(strings.ToLower(key.String())))
	case kindDate:
		m, _ := v.member(strings.ToLower(key.String()), s.calendar)
		return m
	case kindList:
		if f, ok := key.number(); ok && f >= 0 && f < float64(len(v.list)) {
			return Text(v.list[int(f)])
		}
	}
	return Text("")
}

// cell reads a cell of the row; an unknown column is an error.
func (r *run) cell(column string) string {
	if cells, ok := r.env.(Cells); ok {
		if text, ok := cells.Cell(column); ok {
			return text
		}
	}
	r.note(core.Errorf(core.Invalid, "unknown column '%s'", column))
	return ""
}

func (c *compiler) call(n *node) (eval, error) {
	if c.context == Rows {
		if f, ok, err := c.rowCall(n); ok || err != nil {
			return f, err
		}
	}
	f, ok := functionNamed(n.text)
	if !ok {
		return nil, c.fail(n, "unknown function '"+n.at.text+"'")
	}
	return c.function(n, f, n.args)
}

func (c *compiler) function(n *node, f function, args []*node) (eval, error) {
	if len(args) < f.min || len(args) > f.max {
		return nil, c.fail(n, "wrong number of arguments for function '"+f.name+"'")
	}
	if f.needs != nil && !c.allFunctions && !f.needs(&c.functions) {
		return nil, c.fail(n, "function '"+f.name+"' is not available here")
	}
	evals, err := c.nodes(args)
	if err != nil {
		return nil, err
	}
	if f.check != nil {
		if err := c.constants(args, evals, f.check); err != nil {
			return nil, err
		}
	}
	return func(r *run) Value {
		var values [2]Value // no function takes more
		for i, e := range evals {
			values[i] = e(r)
		}
		if r.err != nil {
			return Null
		}
		return f.call(r, values[:len(evals)])
	}, nil
}

// constants checks the last argument of a function where it is the same for all records: what can never be evaluated is refused with its place, before it is stored.
func (c *compiler) constants(args []*node, evals []eval, check func(s *settings, element string) error) error {
	last := len(args) - 1
	n := args[last]
	if n.kind == nodeList { // each element has a place of its own
		for _, element := range n.args {
			if element.kind != nodeConst {
				continue
			}
			if err := check(c.settings, element.value.String()); err != nil {
				return c.fail(element, err.Error())
			}
		}
		return nil
	}
	if !isConstant(n) {
		return nil
	}
	v := evals[last](&run{settings: c.settings})
	for _, element := range v.elements() {
		if err := check(c.settings, element); err != nil {
			return c.fail(n, err.Error())
		}
	}
	return nil
}

// isConstant reports whether a node is a constant, or a list that is split from one.
func isConstant(n *node) bool {
	if n.kind == nodeCall && n.text == "list" {
		return !slices.ContainsFunc(n.args, func(arg *node) bool { return !isConstant(arg) })
	}
	return n.kind == nodeConst
}

// rowCall compiles the functions of row filters, which take the name of a column where their argument is a plain text.
func (c *compiler) rowCall(n *node) (eval, bool, error) {
	var f func(text string) Value
	switch n.text {
	case "number":
		f = func(s string) Value { v, _ := parseNumber(strings.TrimSpace(s)); return Number(v) }
	case "isnumber":
		f = func(s string) Value {
			v, ok := parseNumber(strings.TrimSpace(s))
			return Bool(ok && !math.IsNaN(v))
		}
	case "isblank":
		f = func(s string) Value { return Bool(strings.TrimSpace(s) == "") }
	case "upper":
		f = func(s string) Value { return Text(strings.ToUpper(s)) }
	case "lower":
		f = func(s string) Value { return Text(strings.ToLower(s)) }
	default:
		return nil, false, nil
	}
	if len(n.args) != 1 {
		return nil, true, c.fail(n, "wrong number of arguments for function '"+n.at.text+"'")
	}
	if arg := n.args[0]; arg.kind == nodeConst && arg.value.kind == kindText {
		column := arg.value.text
		return func(r *run) Value { return f(r.cell(column)) }, true, nil
	}
	arg, err := c.node(n.args[0])
	return func(r *run) Value { return f(arg(r).String()) }, true, err
}

// method compiles `a.name(args)`. Math, Double and Float are no variables but the first part of a function's name.
func (c *compiler) method(n *node) (eval, error) {
	if of := n.args[0]; of.kind == nodeName {
		if f, ok := functionNamed(of.text + "." + n.text); ok {
			return c.function(n, f, n.args[1:])
		}
	}
	if f, ok, err := c.dateMethod(n); ok {
		return f, err
	}
	args, err := c.nodes(n.args)
	if err != nil {
		return nil, err
	}
	arity := 0
	var call func(v, arg Value) Value
	switch n.text {
	case "size", "length":
		call = func(v, _ Value) Value { return Number(float64(v.size())) }
	case "isempty":
		call = func(v, _ Value) Value { return Bool(v.size() == 0) }
	case "values":
		call = func(v, _ Value) Value { return List(v.elements()) }
	case "tolowercase":
		call = func(v, _ Value) Value { return Text(strings.ToLower(v.String())) }
	case "touppercase":
		call = func(v, _ Value) Value { return Text(strings.ToUpper(v.String())) }
	case "get":
		arity, call = 1, c.index
	case "contains":
		arity, call = 1, contains
	case "startswith":
		arity, call = 1, func(v, arg Value) Value { return Bool(strings.HasPrefix(v.String(), arg.String())) }
	case "endswith":
		arity, call = 1, func(v, arg Value) Value { return Bool(strings.HasSuffix(v.String(), arg.String())) }
	default:
		return nil, c.fail(n, "unknown method '"+n.at.text+"'")
	}
	if len(args) != arity+1 {
		return nil, c.fail(n, "wrong number of arguments for method '"+n.at.text+"'")
	}
	if arity == 0 {
		return func(r *run) Value { return call(args[0](r), Null) }, nil
	}
	return func(r *run) Value { return call(args[0](r), args[1](r)) }, nil
}

// contains looks for an element of a collection, or for a part of a text.
func contains(v, arg Value) Value {
	if v.kind == kindText {
		return Bool(strings.Contains(v.text, arg.String()))
	}
	return Bool(slices.Contains(v.elements(), arg.String()))
}

func list(args []eval) eval {
	return func(r *run) Value {
		out := make([]string, len(args))
		for i, a := range args {
			out[i] = a(r).String()
		}
		return List(out)
	}
}

// logic stops at the first operand that decides, and at the first error: what follows could only repeat it.
func (c *compiler) logic(args []eval, decisive bool) eval {
	return func(r *run) Value {
		for _, a := range args {
			if a(r).truth() == decisive {
				return Bool(decisive)
			}
			if r.err != nil {
				return Null
			}
		}
		return Bool(!decisive)
	}
}

// maxText bounds what concatenation can build: a text of 16 KiB could otherwise add the longest value thousands of times. Copying up to it 8000
// times, the most that an expression can ask for, takes some 30 ms.
const maxText = 64 << 10

func arithmetic(op string, args []eval) eval {
	return func(r *run) Value {
		a, b := args[0](r), args[1](r)
		if r.err != nil {
			return Null
		}
		x, ok1 := a.number()
		y, ok2 := b.number()
		if op == "+" && (a.kind == kindText || b.kind == kindText) && !(ok1 && ok2) {
			s, t := a.String(), b.String()
			if len(s)+len(t) > maxText {
				r.note(core.Errorf(core.TooLarge, "expression builds a text of more than %d bytes", maxText))
				return Null
			}
			return Text(s + t)
		}
		switch op {
		case "+":
			return Number(x + y)
		case "-":
			return Number(x - y)
		case "*":
			return Number(x * y)
		case "/":
			return Number(x / y)
		}
		return Number(math.Mod(x, y))
	}
}

func (c *compiler) comparison(n *node, args []eval) (eval, error) {
	if err := c.checkDates(n); err != nil {
		return nil, err
	}
	left, right := args[0], args[1]
	holds := func(ok func(ordering) bool) eval {
		return func(r *run) Value { return Bool(ok(r.order(left(r), right(r)))) }
	}
	switch n.text {
	case "=":
		return holds(func(o ordering) bool { return o == equal }), nil
	case "!=":
		return holds(func(o ordering) bool { return o != equal && o != undefined }), nil
	case "<":
		return holds(func(o ordering) bool { return o == less }), nil
	case "<=":
		return holds(func(o ordering) bool { return o == less || o == equal }), nil
	case ">":
		return holds(func(o ordering) bool { return o == greater }), nil
	}
	return holds(func(o ordering) bool { return o == greater || o == equal }), nil
}

// checkDates refuses a constant that is compared with a date and is none: at the first record it would be too late for a clear answer.
func (c *compiler) checkDates(n *node) error {
	for i, other := range []*node{n.args[1], n.args[0]} {
		variable := n.args[i]
		if variable.kind != nodeName || other.kind != nodeConst || other.value.kind != kindText || other.value.text == "" {
			continue
		}
		if f, ok := c.context.fieldOf(variable.text); ok && f.kind == dateField {
			if _, err := c.date(other.value.text); err != nil {
				return c.fail(other, err.Error())
			}
		}
	}
	return nil
}

// like matches against any of the patterns, compiled once where they are constants. Severities ignore case.
func like(n *node, args []eval) eval {
	patterns := make([]*glob.Pattern, len(args))
	for i, a := range n.args[1:] {
		if a.kind == nodeConst {
			patterns[i+1] = glob.Compile(a.value.String())
		}
	}
	return func(r *run) Value {
		v := args[0](r)
		text := v.String()
		for i := 1; i < len(args); i++ {
			if v.kind != kindSeverity && patterns[i] != nil {
				if patterns[i].Match(text) {
					return Bool(true)
				}
				continue
			}
			for _, p := range args[i](r).elements() {
				if v.kind == kindSeverity {
					p = strings.ToUpper(p)
				}
				if glob.Compile(p).Match(text) {
					return Bool(true)
				}
			}
		}
		return Bool(false)
	}
}

// in looks for an equal element. Text constants, the common case, are a set. Beside NaN no value is outside of the list, as in SQL.
func in(n *node, args []eval) eval {
	not := n.text == negated
	set := make(map[string]bool)
	for _, a := range n.args[1:] {
		if a.kind != nodeConst || a.value.kind != kindText {
			set = nil
			break
		}
		set[a.value.text] = true
	}
	return func(r *run) Value {
		v := args[0](r)
		if set != nil && v.kind == kindText {
			return Bool(set[v.text] != not)
		}
		comparable := true
		same := func(element Value) bool {
			o := r.order(v, element)
			comparable = comparable && o != undefined
			return o == equal
		}
		for _, a := range args[1:] {
			element := a(r)
			if element.kind != kindList && element.kind != kindMap {
				if same(element) {
					return Bool(!not)
				}
				continue
			}
			for _, e := range element.elements() {
				if same(Text(e)) {
					return Bool(!not)
				}
			}
		}
		return Bool(not && comparable)
	}
}

// between tests both bounds, of which each is inside. Where one of the three is NaN, the value is neither between the bounds nor outside, as in SQL.
func between(n *node, args []eval) eval {
	not := n.text == negated
	return func(r *run) Value {
		v := args[0](r)
		low := r.order(v, args[1](r))
		above := low == greater || low == equal
		if !above && !not {
			return Bool(false)
		}
		high := r.order(v, args[2](r))
		switch {
		case low == undefined || high == undefined:
			return Bool(false)
		case above && (high == less || high == equal):
			return Bool(!not)
		}
		return Bool(not)
	}
}

func (c *compiler) regexNode(n *node, args []eval) (eval, error) {
	if n.args[1].kind != nodeConst {
		return func(r *run) Value { return Bool(r.regex(args[1](r).String(), args[0](r).String())) }, nil
	}
	re, err := compileRegex(n.args[1].value.String())
	if err != nil {
		return nil, c.fail(n.args[1], err.Error())
	}
	return func(r *run) Value { return Bool(re.covers(r, args[0](r).String())) }, nil
}
