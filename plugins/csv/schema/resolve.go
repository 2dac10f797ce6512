package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core/nearest"
)

// scope holds the names of a function while it is read; the outermost those of the program.
type scope struct {
	outer     *scope
	slots     map[string]int
	refs      []*nameNode // whose variables are not known yet
	functions []hoisted
}

func (s *scope) declare(name string) int {
	slot, ok := s.slots[name]
	if !ok {
		slot = len(s.slots)
		s.slots[name] = slot
	}
	return slot
}

// close finds the variables of a function; what is not there is sought around it.
func (s *scope) close() {
	for _, ref := range s.refs {
		if slot, ok := s.slots[ref.name]; ok {
			ref.use, ref.slot = useLocal, slot
			continue
		}
		ref.hops++
		s.outer.refs = append(s.outer.refs, ref)
	}
}

// refer makes the node of a name. A variable may be declared behind its use.
func (p *parser) refer(t token) *nameNode {
	n := &nameNode{at: t.at, name: t.text}
	p.scope.refs = append(p.scope.refs, n)
	return n
}

// referToSet makes the node of a name that is given a value.
func (p *parser) referToSet(t token) *nameNode {
	n := p.refer(t)
	n.assigned = true
	return n
}

// resolve finds what the remaining names mean: variables of the program, also those that are only set, and what is built in.
func (p *parser) resolve() error {
	top := p.scope
	for _, ref := range top.refs {
		if _, known := top.slots[ref.name]; ref.assigned && !known {
			if isBuiltIn(ref.name) {
				return faultf(ref.at, "%s cannot be set: it has a meaning in programs", ref.name)
			}
			top.declare(ref.name)
		}
	}
	for _, ref := range top.refs {
		slot, ok := top.slots[ref.name]
		v, isVariable := variables[ref.name]
		n, isNative := natives[ref.name]
		switch {
		case ok:
			ref.use, ref.slot = useGlobal, slot
		case isVariable:
			ref.use, ref.variable = useVariable, v
		case isNative:
			ref.use, ref.native = useNative, n
		default:
			return faultf(ref.at, "unknown name %s%s", ref.name, p.meant(ref.name))
		}
	}
	p.program.globals, p.program.functions = len(top.slots), top.functions
	return nil
}

// meant suggests the name of which another one is a misspelling.
func (p *parser) meant(name string) string {
	known := slices.Concat(slices.Sorted(maps.Keys(natives)), slices.Sorted(maps.Keys(variables)), slices.Sorted(maps.Keys(p.scope.slots)), []string{"select"})
	return suggest(name, known)
}

func suggest(name string, known []string) string {
	if found := nearest.Name(name, known, 3); found != "" && found != name {
		return ", did you mean \"" + found + "\"?"
	}
	return ""
}

// check looks at calls when all names are known: at the number of arguments, at the names of methods, and at the rows that they ask for.
func (p *parser) check() error {
	direct := map[*nameNode]bool{}
	for _, c := range p.calls {
		n, ok := c.callee.(*nameNode)
		if !ok || n.use != useNative {
			continue
		}
		direct[n] = true
		c.native = n.native
		if reason := n.native.wrong(len(c.args)); reason != "" {
			return faultf(c.at, "%s", reason)
		}
		if n.native.looks != looksNowhere {
			p.program.needs.add(n.native.looks, c.args[0])
		}
	}
	for _, ref := range p.scope.refs {
		if ref.use == useNative && ref.native.looks != looksNowhere && !direct[ref] {
			p.program.needs.any = true
			p.program.needs.above = p.program.needs.above || ref.native.looks == looksUp
		}
	}
	for _, m := range p.methods {
		for k := range kinds {
			m.methods[k] = methodsOf(k)[m.name]
		}
		if p.anyName || p.members[m.name] || methodNames[m.name] {
			continue
		}
		return faultf(m.at, "unknown function %s%s", m.name, suggest(m.name, slices.Concat(slices.Sorted(maps.Keys(methodNames)), slices.Sorted(maps.Keys(p.members)))))
	}
	return nil
}

// needs is which earlier rows a program can ask for.
type needs struct {
	first int  // rows from the beginning
	back  int  // rows before the current one
	any   bool // a row that is computed
	above bool // the nearest cell above that is not empty
}

func (n *needs) add(l looks, row expression) {
	up := l == looksUp
	n.above = n.above || up
	switch e := row.(type) {
	case *literalNode:
		if e.value.kind == number && e.value.number < maxPosition {
			n.first = max(n.first, int(e.value.number))
			return
		}
	case *nameNode:
		if e.use == useVariable && e.variable == variableRow {
			return
		}
	case *binaryNode:
		of, isName := e.left.(*nameNode)
		by, isLiteral := e.right.(*literalNode)
		if isName && of.use == useVariable && of.variable == variableRow && isLiteral && by.value.kind == number {
			switch distance := by.value.number; {
			case e.op == plus && distance >= 0 && !up:
				return
			case e.op == minus && distance < maxPosition && !up:
				n.back = max(n.back, int(distance))
				return
			}
		}
	}
	n.any = true
}

// isBuiltIn reports whether a name has a meaning without the program.
func isBuiltIn(name string) bool {
	_, isVariable := variables[name]
	return isVariable || natives[name] != nil || name == "select"
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

func namesOf(kinds []Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, addNames[k])
	}
	return strings.Join(all, ", ")
}
