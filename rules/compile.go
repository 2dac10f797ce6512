package rules

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// phase says where an expression stands, which decides the names it may use.
type phase uint8

const (
	inFilter phase = 1 << iota
	inCondition
	inTemplate
)

// program is one compiled expression.
type program struct {
	text   Text
	code   *vm.Program
	names  []binding // what the environment must hold before a run
	native func(v float64) bool
	kind   kind
}

type binding struct {
	name string
	get  func(*evaluation) any
}

// kind is what is statically known of a value.
type kind uint8

const (
	kindAny kind = iota
	kindNumber
	kindText
	kindBool
	kindOther
)

func kindOf(n ast.Node) kind {
	if _, ok := n.(*ast.NilNode); ok {
		return kindAny
	}
	t := n.Type()
	if t == nil {
		return kindAny
	}
	switch t.Kind() {
	case reflect.Interface:
		return kindAny
	case reflect.Bool:
		return kindBool
	case reflect.String:
		return kindText
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return kindNumber
	}
	return kindOther
}

// numeric also holds for the types that `+` only accepts beside a date or a duration: neither side can grow.
func numeric(n ast.Node) bool {
	if kindOf(n) == kindNumber {
		return true
	}
	t := n.Type()
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[time.Duration]()
}

// compiler compiles the expressions of one rule.
type compiler struct {
	rule      *Rule
	ev        *evaluation
	functions []expr.Option
	windows   []expr.Option   // functions of the window: not in filters
	names     map[string]bool // of all functions
	windowed  map[string]bool
	variables map[string]bool // declared so far
	extra     map[string]bool // loop variables and endpoint parameters in scope
	secrets   bool            // secret() is allowed: headers, auth and sign
	strict    bool            // unknown names are errors in templates too
	asked     map[string]bool // names and fields that some expression uses
	faults    Faults
}

func newCompiler(r *Rule, ev *evaluation) *compiler {
	c := &compiler{rule: r, ev: ev, variables: map[string]bool{}, extra: map[string]bool{}, asked: map[string]bool{}, names: map[string]bool{}, windowed: map[string]bool{}}
	c.names["cancelAction"] = true
	for _, f := range functionTable() {
		call := f.call
		option := expr.Function(f.name, func(args ...any) (any, error) { return call(ev, args) }, f.types...)
		c.names[f.name] = true
		if f.window {
			c.windows = append(c.windows, option)
			c.windowed[f.name] = true
			continue
		}
		c.functions = append(c.functions, option)
	}
	return c
}

// optional compiles text unless it is empty.
func (c *compiler) optional(text Text, ph phase) *program {
	if text.Value == "" {
		return nil
	}
	return c.compile(text, ph)
}

// boolean compiles an expression that must not be known to be anything else than a boolean.
func (c *compiler) boolean(text Text, ph phase) *program {
	p := c.optional(text, ph)
	if p != nil && p.kind != kindBool && p.kind != kindAny {
		c.fault(text.at, "must be true or false, but is %s", p.code.Node().Type())
	}
	return p
}

func (c *compiler) fault(at place, format string, args ...any) {
	c.faults = append(c.faults, at.fault(format, args...))
}

// compile compiles text and records a fault when it does not compile; it then returns nil.
func (c *compiler) compile(text Text, ph phase) *program {
	p, err := c.program(text.Value, ph)
	if err == nil {
		p.text = text
		return p
	}
	at := text.at
	var fe *file.Error
	message := err.Error()
	if errors.As(err, &fe) {
		message = fe.Message
		at = at.inside(max(1, fe.Line), fe.Column)
	}
	c.fault(at, "%s", c.explain(message, ph))
	return nil
}

// explain adds to expr's message what an author of rules needs to know.
func (c *compiler) explain(message string, ph phase) string {
	name, ok := strings.CutPrefix(message, "unknown name ")
	if !ok {
		return message
	}
	if name == "secret" {
		return "secret() is allowed only in headers, auth and sign"
	}
	if ph == inFilter {
		if c.windowed[name] {
			return name + "() is a function of the window, and a filter has no window yet"
		}
		if c.variables[name] {
			return "variable " + name + " cannot be used in a filter: it is computed after filtering"
		}
	}
	var known []string
	for n := range c.types(ph) {
		known = append(known, n)
	}
	for n := range c.names {
		known = append(known, n)
	}
	return message + suggest(name, known)
}

// program compiles an expression. It never panics: a fault in the compiler of the expression library is an error of the rule.
func (c *compiler) program(text string, ph phase) (p *program, err error) {
	if err := checkSource(text); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("cannot compile: %v", r)
		}
	}()
	visitor := &patcher{used: map[string]bool{}, shadowed: c.extra}
	if ph != inFilter {
		visitor.variables = c.variables
	}
	options := []expr.Option{expr.Env(c.types(ph)), expr.Patch(visitor)}
	options = append(options, c.functions...)
	if ph != inFilter {
		options = append(options, c.windows...)
	}
	if ph == inTemplate && !c.strict {
		options = append(options, expr.AllowUndefinedVariables(), expr.Function("cancelAction", cancelAction, new(func() string)))
	}
	c.names["secret"] = c.secrets
	if c.secrets {
		options = append(options, expr.Function("secret", secretMark, new(func(string) string)))
	}
	if ph == inTemplate && !c.strict {
		visitor.functions = c.names
	}
	code, err := expr.Compile(text, options...)
	if err != nil {
		return nil, err
	}
	if visitor.err != nil {
		at := &file.Error{Location: visitor.errAt.Location(), Message: visitor.err.Error()}
		return nil, at.Bind(file.NewSource(text))
	}
	maps.Copy(c.asked, visitor.used)
	p = &program{code: code, kind: kindOf(code.Node())}
	for name := range visitor.used {
		if id, ok := identifiers[name]; ok && id.in&ph != 0 && !c.extra[name] {
			p.names = append(p.names, binding{name, id.get})
		}
	}
	p.native = nativeComparison(code.Node())
	return p, nil
}

// types declares the names that an expression of a phase may use.
func (c *compiler) types(ph phase) types.Map {
	env := types.Map{}
	for name, id := range identifiers {
		if id.in&ph != 0 && (id.kinds == "" || strings.Contains(id.kinds, string(c.rule.Kind[:1]))) {
			env[name] = id.typ
		}
	}
	if ph != inFilter {
		for name := range c.variables {
			env[name] = types.Any
		}
	}
	for name := range c.extra {
		env[name] = types.Any
	}
	return env
}

// nativeComparison recognises `value OP number`, by far the commonest condition, and compares without the interpreter.
func nativeComparison(n ast.Node) func(float64) bool {
	b, ok := n.(*ast.BinaryNode)
	if !ok {
		return nil
	}
	id, ok := b.Left.(*ast.IdentifierNode)
	if !ok || id.Value != "value" {
		return nil
	}
	var limit float64
	switch c := b.Right.(type) {
	case *ast.IntegerNode:
		limit = float64(c.Value)
	case *ast.FloatNode:
		limit = c.Value
	case *ast.ConstantNode:
		switch v := c.Value.(type) {
		case int:
			limit = float64(v)
		case float64:
			limit = v
		default:
			return nil
		}
	default:
		return nil
	}
	switch b.Operator {
	case ">":
		return func(v float64) bool { return v > limit }
	case ">=":
		return func(v float64) bool { return v >= limit }
	case "<":
		return func(v float64) bool { return v < limit }
	case "<=":
		return func(v float64) bool { return v <= limit }
	}
	return nil
}

// compiled is what an engine needs of a rule.
type compiled struct {
	ev        *evaluation
	filter    *program
	condition *program
	depends   *program
	variables []*program
	index     map[string]int // variable name -> index
	rows      []overrideRow
	history   [3]*template // open, repeat, cancel; nil = the default text
	actions   []*action
	repeats   bool // some action may fire on REPEAT
	// What costs time or memory is had only for rules that ask for it.
	asksRecord  bool // they call last_open()
	asksInserts bool // they read a last insert of an entity or metric
}

// compileRule compiles everything in r and returns the faults.
func compileRule(r *Rule, set *Set) Faults {
	ev := newEvaluation(r, set)
	c := newCompiler(r, ev)
	out := &compiled{ev: ev, index: map[string]int{}}
	out.filter = c.boolean(r.Filter.Expression, inFilter)
	for i, v := range r.Variables {
		if _, ok := identifiers[v.Name]; ok || c.names[v.Name] {
			c.fault(v.Expr.at, "variable %q has the name of a field or function", v.Name)
		}
		out.variables = append(out.variables, c.compile(v.Expr, inCondition))
		out.index[v.Name] = i
		c.variables[v.Name] = true
	}
	out.condition = c.boolean(r.Condition, inCondition)
	out.depends = c.boolean(r.DependsOn, inCondition)
	for i := range r.Overrides {
		for _, row := range r.Overrides[i].Rows {
			out.rows = append(out.rows, c.overrideRow(&r.Overrides[i], row))
		}
	}
	for i, text := range []Text{r.History.Open, r.History.Again, r.History.Cancel} {
		if text.Value != "" {
			out.history[i] = c.template(text)
		}
	}
	for i := range r.Actions {
		out.actions = append(out.actions, c.action(&r.Actions[i], set))
		out.repeats = out.repeats || r.Actions[i].Enabled && r.Actions[i].Triggers&OnRepeat != 0
	}
	if len(c.faults) > 0 {
		return c.faults
	}
	out.asksRecord = c.asked["last_open"]
	out.asksInserts = c.asked[".lastInsertTime"] || c.asked[".lastInsertDate"]
	ev.compiled = out
	ev.memo = make([]any, len(out.variables))
	ev.memoErr = make([]error, len(out.variables))
	ev.memoSet = make([]bool, len(out.variables))
	r.compiled = out
	return nil
}
