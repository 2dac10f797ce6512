package schema

import (
	"errors"
	"slices"
)

// Compile reads a program. A fault is an *Error.
func Compile(source string) (*Program, error) {
	p := &parser{lex: lexer{source: source}, program: &Program{source: source}, scope: &scope{slots: map[string]int{}}, members: map[string]bool{}}
	err := p.compile()
	if err == nil {
		return p.program, nil
	}
	e := &Error{Reason: err.Error()}
	at := 0
	if f := (*fault)(nil); errors.As(err, &f) {
		at = f.at
	}
	e.Line, e.Column = position(source, at)
	return nil, e
}

type parser struct {
	lex     lexer
	token   token // the next one
	program *Program
	scope   *scope // of the function in work
	depth   int
	loops   int // around the statement in work, in its function
	calls   []*callNode
	methods []*methodNode
	members map[string]bool // that the program sets
	anyName bool            // it sets members by computed names
}

func (p *parser) compile() error {
	if len(p.lex.source) > maxProgram {
		return faultf(0, "the program has %d bytes; it may have %d", len(p.lex.source), maxProgram)
	}
	if err := p.advance(); err != nil {
		return err
	}
	for p.token.kind != tokenEnd {
		if err := p.topStatement(); err != nil {
			return err
		}
	}
	if err := p.resolve(); err != nil {
		return err
	}
	if len(p.program.chains) == 0 {
		return faultf(p.token.at, "the program selects no cells: select('#row=2-*') is expected")
	}
	return p.check()
}

// topStatement reads a statement outside of functions, or a chain.
func (p *parser) topStatement() error {
	if p.token.kind == tokenWord && p.token.text == "select" {
		return p.chain()
	}
	s, err := p.statement()
	if err == nil && s != nil {
		p.program.statements = append(p.program.statements, s)
	}
	return err
}

func (p *parser) advance() (err error) {
	p.token, err = p.lex.next()
	return err
}

// is reports whether the next token is a mark or a word.
func (p *parser) is(text string) bool {
	return (p.token.kind == tokenMark || p.token.kind == tokenWord) && p.token.text == text
}

// accept takes a token when it is the one.
func (p *parser) accept(text string) (bool, error) {
	if !p.is(text) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(text, where string) error {
	if !p.is(text) {
		return faultf(p.token.at, "%s is expected %s, found %s", text, where, p.token)
	}
	return p.advance()
}

// deeper counts a level of the tree until the caller puts the depth back.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return faultf(p.token.at, "expressions and statements are nested, or operators follow each other, deeper than %d", maxDepth)
	}
	return nil
}

// foreign are words of JavaScript that are no part of the script language, with what to write.
var foreign = map[string]string{"let": "use var", "const": "use var", "class": "", "new": "", "this": "", "try": "", "throw": "", "switch": "use if", "with": "", "yield": "",
	"await": "", "async": "", "import": "", "export": "", "delete": "", "instanceof": "", "void": "", "arguments": "name the parameters", "eval": "", "super": ""}

// reserved are words that cannot be names.
var reserved = []string{"var", "function", "if", "else", "for", "while", "do", "return", "break", "continue", "true", "false", "null", "undefined", "typeof", "in", "NaN", "Infinity"}

// refuse says of a word that it is no part of the language.
func (p *parser) refuse(t token) error {
	hint, ok := foreign[t.text]
	if t.kind != tokenWord || !ok {
		return nil
	}
	if hint != "" {
		hint = ": " + hint
	}
	return faultf(t.at, "%q is not a part of the script language%s", t.text, hint)
}

// checkName looks whether the next token can be a name.
func (p *parser) checkName(of string) error {
	if err := p.refuse(p.token); err != nil {
		return err
	}
	if p.token.kind != tokenWord || slices.Contains(reserved, p.token.text) {
		return faultf(p.token.at, "the name of %s is expected, found %s", of, p.token)
	}
	return nil
}

// name takes a name that the program gives.
func (p *parser) name(of string) (token, error) {
	t := p.token
	if err := p.checkName(of); err != nil {
		return t, err
	}
	if p.scope.outer == nil && isBuiltIn(t.text) {
		return t, faultf(t.at, "%s has a meaning in programs: choose another name", t.text)
	}
	return t, p.advance()
}

func (p *parser) statement() (s statement, err error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	if p.token.kind != tokenWord {
		switch {
		case p.is("{"):
			return p.block()
		case p.is(";"):
			return nil, p.advance()
		}
		return p.expressionStatement()
	}
	switch p.token.text {
	case "var":
		return p.varStatement()
	case "function":
		return nil, p.functionStatement()
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement()
	case "while", "do":
		return p.whileStatement()
	case "return":
		return p.returnStatement()
	case "break", "continue":
		return p.jump()
	case "select":
		return nil, faultf(p.token.at, "select begins a statement of the program; it cannot stand inside of another one")
	}
	return p.expressionStatement()
}

// body is the statement that belongs to an if or a loop.
func (p *parser) body() (statement, error) {
	s, err := p.statement()
	if s == nil {
		s = blockStatement{}
	}
	return s, err
}

// end takes the end of a statement: a semicolon, which may be left out before an end of line.
func (p *parser) end() error {
	if p.is("}") || p.token.kind == tokenEnd {
		return nil
	}
	if ok, err := p.accept(";"); ok || err != nil {
		return err
	}
	if p.token.newLine {
		return nil
	}
	if err := p.refuse(p.token); err != nil {
		return err
	}
	return faultf(p.token.at, "; or an operator is expected, found %s", p.token)
}

func (p *parser) expressionStatement() (statement, error) {
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	return evalStatement{e}, p.end()
}

func (p *parser) block() (statement, error) {
	body, err := p.statements()
	return blockStatement{body}, err
}

// statements reads those between braces.
func (p *parser) statements() (body []statement, err error) {
	if err := p.expect("{", "before statements"); err != nil {
		return nil, err
	}
	for !p.is("}") {
		if p.token.kind == tokenEnd {
			return nil, faultf(p.token.at, "} is expected behind statements, found %s", p.token)
		}
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		if s != nil {
			body = append(body, s)
		}
	}
	return body, p.advance()
}

func (p *parser) varStatement() (statement, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	first, err := p.name("a variable")
	if err != nil {
		return nil, err
	}
	all, err := p.variables(first)
	if err != nil {
		return nil, err
	}
	return evalStatement{all}, p.end()
}

// variables reads a = 1, b behind var, whose first name was taken.
func (p *parser) variables(first token) (all *commaNode, err error) {
	all = &commaNode{}
	for t := first; ; {
		p.scope.declare(t.text)
		if ok, err := p.accept("="); err != nil {
			return nil, err
		} else if ok {
			v, err := p.assignment()
			if err != nil {
				return nil, err
			}
			all.items = append(all.items, &assignNode{at: t.at, target: p.referToSet(t), value: v})
		}
		if ok, err := p.accept(","); !ok || err != nil {
			return all, err
		}
		if t, err = p.name("a variable"); err != nil {
			return nil, err
		}
	}
}

func (p *parser) functionStatement() error {
	at := p.token.at
	if err := p.advance(); err != nil {
		return err
	}
	t, err := p.name("a function")
	if err != nil {
		return err
	}
	slot := p.scope.declare(t.text)
	f, err := p.function(at, t.text)
	if err == nil {
		p.scope.functions = append(p.scope.functions, hoisted{slot, f})
	}
	return err
}

// function reads parameters and body of a function.
func (p *parser) function(at int, name string) (*functionNode, error) {
	f := &functionNode{at: at, name: name}
	outer, loops := p.scope, p.loops
	p.scope, p.loops = &scope{outer: outer, slots: map[string]int{}}, 0
	defer func() { p.scope, p.loops = outer, loops }()
	if err := p.expect("(", "before parameters"); err != nil {
		return nil, err
	}
	for !p.is(")") {
		t, err := p.name("a parameter")
		if err != nil {
			return nil, err
		}
		if p.scope.declare(t.text) != f.params {
			return nil, faultf(t.at, "the parameter %s is there twice", t.text)
		}
		f.params++
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok && !p.is(")") {
			return nil, faultf(p.token.at, ", or ) is expected behind a parameter, found %s", p.token)
		}
	}
	err := p.advance()
	if err == nil {
		f.body, err = p.statements()
	}
	f.slots, f.functions = len(p.scope.slots), p.scope.functions
	p.scope.close()
	return f, err
}

func (p *parser) returnStatement() (statement, error) {
	if p.scope.outer == nil {
		return nil, faultf(p.token.at, "return stands outside of a function")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	s := returnStatement{&literalNode{}}
	if !p.is(";") && !p.is("}") && !p.token.newLine && p.token.kind != tokenEnd {
		var err error
		if s.of, err = p.expression(); err != nil {
			return nil, err
		}
	}
	return s, p.end()
}

func (p *parser) jump() (statement, error) {
	if p.loops == 0 {
		return nil, faultf(p.token.at, "%s stands outside of a loop", p.token.text)
	}
	to := flowBreak
	if p.token.text == "continue" {
		to = flowContinue
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return jumpStatement{to}, p.end()
}

// condition reads an expression in parentheses.
func (p *parser) condition(of string) (expression, error) {
	if err := p.expect("(", "behind "+of); err != nil {
		return nil, err
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	return e, p.expect(")", "behind the condition of "+of)
}

func (p *parser) ifStatement() (statement, error) {
	err := p.advance()
	if err != nil {
		return nil, err
	}
	s := &ifStatement{}
	if s.condition, err = p.condition("if"); err != nil {
		return nil, err
	}
	if s.then, err = p.body(); err != nil {
		return nil, err
	}
	ok, err := p.accept("else")
	if ok && err == nil {
		s.otherwise, err = p.body()
	}
	return s, err
}

func (p *parser) loopBody() (statement, error) {
	p.loops++
	defer func() { p.loops-- }()
	return p.body()
}

func (p *parser) whileStatement() (statement, error) {
	s := &loopStatement{at: p.token.at, bodyFirst: p.token.text == "do"}
	err := p.advance()
	if err != nil {
		return nil, err
	}
	if !s.bodyFirst {
		if s.condition, err = p.condition("while"); err != nil {
			return nil, err
		}
		s.body, err = p.loopBody()
		return s, err
	}
	if s.body, err = p.loopBody(); err != nil {
		return nil, err
	}
	if err = p.expect("while", "behind the body of do"); err != nil {
		return nil, err
	}
	if s.condition, err = p.condition("while"); err != nil {
		return nil, err
	}
	_, err = p.accept(";")
	return s, err
}

func (p *parser) forStatement() (statement, error) {
	at := p.token.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.expect("(", "behind for"); err != nil {
		return nil, err
	}
	first, each, err := p.forHead()
	if err != nil {
		return nil, err
	}
	if each != nil {
		if each.of, err = p.expression(); err != nil {
			return nil, err
		}
		if err = p.expect(")", "behind the object of for"); err != nil {
			return nil, err
		}
		each.at = at
		each.body, err = p.loopBody()
		return each, err
	}
	s := &loopStatement{at: at, first: first}
	if err = p.expect(";", "behind the beginning of for"); err != nil {
		return nil, err
	}
	if s.condition, err = p.optional(";"); err != nil {
		return nil, err
	}
	if err = p.expect(";", "behind the condition of for"); err != nil {
		return nil, err
	}
	if s.step, err = p.optional(")"); err != nil {
		return nil, err
	}
	if err = p.expect(")", "behind the step of for"); err != nil {
		return nil, err
	}
	s.body, err = p.loopBody()
	return s, err
}

// forHead reads up to the first semicolon of a for, or up to the in of one over the names of an object.
func (p *parser) forHead() (first expression, each *eachStatement, err error) {
	isVar, err := p.accept("var")
	if err != nil {
		return nil, nil, err
	}
	if isVar {
		t, err := p.name("a variable")
		if err != nil {
			return nil, nil, err
		}
		if ok, err := p.accept("in"); ok || err != nil {
			p.scope.declare(t.text)
			return nil, &eachStatement{target: p.referToSet(t)}, err
		}
		first, err := p.variables(t)
		return first, nil, err
	}
	if first, err = p.optional(";"); err != nil {
		return nil, nil, err
	}
	if t, ok := first.(*nameNode); ok && p.is("in") {
		t.assigned = true
		return nil, &eachStatement{target: t}, p.advance()
	}
	return first, nil, nil
}

// optional reads an expression, or nothing before a mark.
func (p *parser) optional(before string) (expression, error) {
	if p.is(before) {
		return nil, nil
	}
	return p.expression()
}
