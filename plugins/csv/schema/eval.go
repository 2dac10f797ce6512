package schema

import (
	"math"
	"strconv"
)

func (n *literalNode) eval(*Run) value { return n.value }
func (n *patternNode) eval(*Run) value { return n.value }

func (n *nameNode) eval(r *Run) value {
	if !r.spend(1) {
		return value{}
	}
	switch n.use {
	case useLocal:
		return *r.local(n)
	case useGlobal:
		r.setUp()
		return r.globals[n.slot]
	case useVariable:
		return n.variable.get(r)
	}
	return value{kind: function, ref: n.native.object()}
}

func (r *Run) local(n *nameNode) *value {
	f := r.frame
	for range n.hops {
		f = f.around
	}
	return &f.vars[n.slot]
}

func (n *listNode) eval(r *Run) value {
	items := make([]value, 0, len(n.items))
	for _, e := range n.items {
		items = append(items, e.eval(r))
	}
	r.took(valueBytes * len(items))
	return listOf(items)
}

func (n *recordNode) eval(r *Run) value {
	o := &object{members: make(map[string]value, len(n.names))}
	for i, name := range n.names {
		r.setMember(o, name, n.values[i].eval(r))
	}
	return value{kind: record, ref: o}
}

func (n *functionNode) eval(r *Run) value {
	r.took(valueBytes)
	return functionOf(n, r.frame)
}

func functionOf(code *functionNode, around *frame) value {
	return value{kind: function, ref: &object{code: &closure{code, around}}}
}

func (n *memberNode) eval(r *Run) value { return r.member(n.at, n.of.eval(r), n.name) }

// member reads a.name.
func (r *Run) member(at int, of value, name string) value {
	switch {
	case !r.spend(1):
	case of.kind <= null:
		r.failAt(at, "%s has no member %s", kindNames[of.kind], name)
	case name == "length" && of.kind == text:
		return numberOf(float64(r.length(of.text)))
	case name == "length" && of.kind == list:
		return numberOf(float64(len(of.ref.items)))
	case of.kind == record:
		return of.ref.members[name]
	}
	return value{}
}

func (n *indexNode) eval(r *Run) value {
	of, index := n.of.eval(r), n.index.eval(r)
	switch of.kind {
	case list, text:
		i, ok := r.whole(index)
		if !ok {
			return r.member(n.at, of, r.text(index))
		}
		if of.kind == text {
			if c := r.substring(of.text, i, i+1); i >= 0 && c != "" {
				return r.newValue(c)
			}
		} else if i >= 0 && i < len(of.ref.items) {
			return of.ref.items[i]
		}
		return value{}
	}
	return r.member(n.at, of, r.text(index))
}

// whole reads an index.
func (r *Run) whole(v value) (int, bool) {
	if v.kind != number && v.kind != text {
		return 0, false
	}
	n := v.toNumber()
	if v.kind == text && numberText(n) != v.text || n != math.Trunc(n) || math.Abs(n) > maxPosition {
		return 0, false
	}
	return int(n), true
}

// set puts a value into a variable, a member or an element. An array grows up to its index.
func (r *Run) set(target expression, at int, v value) {
	switch t := target.(type) {
	case *nameNode:
		if t.use == useLocal {
			*r.local(t) = v
			return
		}
		r.setUp()
		r.globals[t.slot] = v
	case *memberNode:
		of := t.of.eval(r)
		if of.kind != record {
			r.failAt(at, "%s has no members to set", kindNames[of.kind])
			return
		}
		r.setMember(of.ref, t.name, v)
	case *indexNode:
		of, index := t.of.eval(r), t.index.eval(r)
		i, ok := r.whole(index)
		switch {
		case of.kind == record:
			r.setMember(of.ref, r.text(index), v)
		case of.kind == list && ok && i >= 0:
			r.setItem(of.ref, i, v)
		default:
			r.failAt(at, "%s has no element %s to set", kindNames[of.kind], strconv.Quote(clip(r.text(index))))
		}
	}
}

func (r *Run) setItem(o *object, i int, v value) {
	if i >= maxItems {
		r.fail("an array has more than %d elements", maxItems)
		return
	}
	if more := i + 1 - len(o.items); more > 0 {
		if !r.took(valueBytes * more) {
			return
		}
		o.items = append(o.items, make([]value, more)...)
	}
	o.items[i] = v
}

func (r *Run) setMember(o *object, name string, v value) {
	if o == r.math {
		r.fail("Math cannot be changed")
		return
	}
	if _, ok := o.members[name]; !ok {
		if len(o.members) >= maxItems {
			r.fail("an object has more than %d members", maxItems)
			return
		}
		if !r.took(2*valueBytes + len(name)) {
			return
		}
		o.names = append(o.names, name)
	}
	o.members[name] = v
}

func (n *callNode) eval(r *Run) (result value) {
	base := len(r.stack)
	if n.native != nil {
		if args := r.args(n.args); r.spend(1) {
			r.at = n.at
			result = n.native.call(r, args)
		}
		r.stack = r.stack[:base]
		return result
	}
	callee := n.callee.eval(r)
	if callee.kind != function {
		r.failAt(n.at, "%s is not a function", kindNames[callee.kind])
		return value{}
	}
	result = r.call(n.at, callee, r.args(n.args))
	r.stack = r.stack[:base]
	return result
}

// args evaluates arguments onto the stack, from which the caller takes them again. Functions do not keep the slice.
func (r *Run) args(of []expression) []value {
	base := len(r.stack)
	for _, e := range of {
		v := e.eval(r)
		r.reads(v)
		r.stack = append(r.stack, v)
	}
	return r.stack[base:]
}

// call calls a function of the program or a built-in one.
func (r *Run) call(at int, f value, args []value) (result value) {
	if !r.spend(1) {
		return value{}
	}
	r.at = at
	if native := f.ref.native; native != nil {
		return native.call(r, args)
	}
	if r.calls >= maxCalls {
		r.failAt(at, "more than %d functions call each other", maxCalls)
		return value{}
	}
	code := f.ref.code.code
	inner := &frame{vars: make([]value, code.slots), around: f.ref.code.around}
	if !r.took(valueBytes * code.slots) {
		return value{}
	}
	copy(inner.vars[:code.params], args)
	for _, h := range code.functions {
		inner.vars[h.slot] = functionOf(h.code, inner)
	}
	outer := r.frame
	r.frame = inner
	r.calls++
	for _, s := range code.body {
		if s.exec(r) == flowReturn {
			result = r.result
			break
		}
	}
	r.calls--
	r.frame, r.at, r.result = outer, at, value{}
	return result
}

func (n *methodNode) eval(r *Run) (result value) {
	of := n.of.eval(r)
	if !r.spend(1) {
		return value{}
	}
	member := value{}
	if of.kind == record {
		member = of.ref.members[n.name]
	}
	m := n.methods[of.kind]
	if member.kind != function && m == nil {
		r.failAt(n.at, "%s has no function %s", kindNames[of.kind], n.name)
		return value{}
	}
	r.reads(of)
	base := len(r.stack)
	args := r.args(n.args)
	r.at = n.at
	if member.kind == function {
		result = r.call(n.at, member, args)
	} else {
		result = m(r, of, args)
	}
	r.stack = r.stack[:base]
	return result
}

func (n *unaryNode) eval(r *Run) value {
	v := n.of.eval(r)
	if !r.spend(1) {
		return value{}
	}
	switch n.op {
	case "!":
		return boolOf(!v.truth())
	case "-":
		return numberOf(-v.toNumber())
	case "+":
		return numberOf(v.toNumber())
	case "~":
		return numberOf(float64(^toInt32(v.toNumber())))
	}
	return textOf([...]string{"undefined", "object", "boolean", "number", "string", "object", "object", "function", "object"}[v.kind])
}

func (n *binaryNode) eval(r *Run) value {
	left := n.left.eval(r)
	return r.binary(n.at, n.op, left, n.right.eval(r))
}

func (r *Run) binary(at int, op operator, a, b value) value {
	r.reads(a)
	r.reads(b)
	if !r.spend(1) {
		return value{}
	}
	r.at = at
	switch op {
	case plus:
		if a.kind >= text || b.kind >= text {
			left := r.text(a)
			right := r.text(b)
			if len(left)+len(right) > maxText {
				r.fail("a text grows longer than %d bytes", maxText)
				return value{}
			}
			return r.newValue(left + right)
		}
		return numberOf(a.toNumber() + b.toNumber())
	case equalTo:
		return boolOf(r.equal(a, b))
	case notEqualTo:
		return boolOf(!r.equal(a, b))
	case sameAs:
		return boolOf(same(a, b))
	case notSameAs:
		return boolOf(!same(a, b))
	case less, lessOrEqual, more, moreOrEqual:
		o, unordered := r.order(a, b)
		return boolOf(!unordered && (op == less && o < 0 || op == lessOrEqual && o <= 0 || op == more && o > 0 || op == moreOrEqual && o >= 0))
	}
	return numberOf(arithmetic(op, a.toNumber(), b.toNumber()))
}

func arithmetic(op operator, x, y float64) float64 {
	switch op {
	case minus:
		return x - y
	case times:
		return x * y
	case divide:
		return x / y
	case remainder:
		return math.Mod(x, y)
	case bitAnd:
		return float64(toInt32(x) & toInt32(y))
	case bitOr:
		return float64(toInt32(x) | toInt32(y))
	case bitXor:
		return float64(toInt32(x) ^ toInt32(y))
	case shiftLeft:
		return float64(toInt32(x) << (uint32(toInt32(y)) & 31))
	case shiftRight:
		return float64(toInt32(x) >> (uint32(toInt32(y)) & 31))
	case shiftRightZero:
		return float64(uint32(toInt32(x)) >> (uint32(toInt32(y)) & 31))
	}
	return math.NaN()
}

func (n *logicNode) eval(r *Run) value {
	left := n.left.eval(r)
	if !r.spend(1) || left.truth() != n.and {
		return left
	}
	return n.right.eval(r)
}

func (n *choiceNode) eval(r *Run) value {
	if n.condition.eval(r).truth() {
		return n.then.eval(r)
	}
	return n.otherwise.eval(r)
}

func (n *assignNode) eval(r *Run) value {
	if !r.spend(1) {
		return value{}
	}
	var v value
	if n.op == noOperator {
		v = n.value.eval(r)
	} else {
		old := n.target.eval(r)
		v = r.binary(n.at, n.op, old, n.value.eval(r))
	}
	r.at = n.at
	if r.fault == nil {
		r.set(n.target, n.at, v)
	}
	return v
}

func (n *stepNode) eval(r *Run) value {
	if !r.spend(1) {
		return value{}
	}
	old := numberOf(n.target.eval(r).toNumber())
	stepped := numberOf(old.number + n.by)
	r.at = n.at
	if r.fault == nil {
		r.set(n.target, n.at, stepped)
	}
	if n.prefix {
		return stepped
	}
	return old
}

func (n *commaNode) eval(r *Run) (v value) {
	for _, e := range n.items {
		v = e.eval(r)
	}
	return v
}

func (s evalStatement) exec(r *Run) flow {
	if r.fault == nil {
		s.of.eval(r)
	}
	return flowNext
}

func (s blockStatement) exec(r *Run) flow {
	for _, inner := range s.body {
		if f := inner.exec(r); f != flowNext {
			return f
		}
	}
	return flowNext
}

func (s *ifStatement) exec(r *Run) flow {
	if !r.spend(1) {
		return flowNext
	}
	if s.condition.eval(r).truth() {
		return s.then.exec(r)
	}
	if s.otherwise != nil {
		return s.otherwise.exec(r)
	}
	return flowNext
}

func (s *loopStatement) exec(r *Run) flow {
	if s.first != nil {
		s.first.eval(r)
	}
	for skipTest := s.bodyFirst; ; skipTest = false {
		r.at = s.at
		if !r.spend(1) {
			break
		}
		if !skipTest && s.condition != nil && !s.condition.eval(r).truth() {
			break
		}
		if f := s.body.exec(r); f == flowBreak {
			break
		} else if f == flowReturn {
			return f
		}
		if s.step != nil {
			s.step.eval(r)
		}
	}
	return flowNext
}

func (s *eachStatement) exec(r *Run) flow {
	of := s.of.eval(r)
	var names []value
	switch of.kind {
	case record:
		for _, name := range of.ref.names {
			names = append(names, textOf(name))
		}
	case list:
		for i := range of.ref.items {
			names = append(names, textOf(strconv.Itoa(i)))
		}
	}
	r.took(valueBytes * len(names))
	for _, name := range names {
		r.at = s.at
		if !r.spend(1) {
			break
		}
		r.set(s.target, r.at, name)
		if f := s.body.exec(r); f == flowBreak {
			break
		} else if f == flowReturn {
			return f
		}
	}
	return flowNext
}

func (s returnStatement) exec(r *Run) flow {
	r.result = s.of.eval(r)
	return flowReturn
}

func (s jumpStatement) exec(*Run) flow { return s.to }
