package expr

import (
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// trait says what the result of a node depends on, beside the values of its operands.
type trait uint8

const (
	usesColumns trait = 1 << iota // rows of the batch
	usesEnv                       // the query: its time, zone, facts
	volatile                      // differs each time: RANDOM
	mayFail                       // evaluation may be an error, so that it must not happen on rows that are not reached
	costly                        // more expensive than to pick the rows that need it
)

// parent is what the nodes of this package have beside Node. Of nodes of other packages nothing is known.
type parent interface {
	Node
	operands() []Node
	own() trait
}

// chained are nodes that are made one upon the other, hundreds of them: they know the traits of all below, for which each would ask otherwise.
type chained interface{ all() trait }

// traits of n and of all that it is made of.
func traits(n Node) trait {
	if c, ok := n.(chained); ok {
		return c.all()
	}
	p, ok := n.(parent)
	if !ok {
		return usesColumns | usesEnv | volatile | mayFail | costly
	}
	t := p.own()
	for _, x := range p.operands() {
		t |= traits(x)
	}
	return t
}

// Columns returns the numbers of the columns that n reads, ascending.
func Columns(n Node) []int {
	list := appendColumns(nil, n)
	slices.Sort(list)
	return slices.Compact(list)
}

func appendColumns(list []int, n Node) []int {
	if in, ok := n.(*input); ok {
		return append(list, in.column)
	}
	if p, ok := n.(parent); ok {
		for _, x := range p.operands() {
			list = appendColumns(list, x)
		}
	}
	return list
}

// Computed reports whether a node has values of its own, beside those of a column or a constant.
func Computed(n Node) bool {
	switch n.(type) {
	case *input, *constant:
		return false
	}
	return n != nil
}

// oneRow is a batch for what reads no columns.
var oneRow = column.Batch{Len: 1}

// Constant returns the value of a node that reads no columns; ok is false for one that does, or whose value is not the same each time.
func Constant(n Node, env *Env) (v column.Value, ok bool, err error) {
	if traits(n)&(usesColumns|volatile) != 0 {
		return column.NullValue, false, nil
	}
	out, err := n.Eval(env, &oneRow)
	if err != nil {
		return column.NullValue, false, err
	}
	return out.Value(0), true, nil
}

// fold returns the constant that n always is, otherwise n. An error is kept for the rows that reach it.
func fold(n Node) Node {
	if traits(n)&(usesColumns|usesEnv|volatile) != 0 {
		return n
	}
	out, err := n.Eval(nil, &oneRow)
	if err != nil {
		return n
	}
	return &constant{kind: n.Type(), value: out.Value(0)}
}

// constantOf returns the value of a constant.
func constantOf(n Node) (column.Value, bool) {
	c, ok := n.(*constant)
	if !ok {
		return column.NullValue, false
	}
	return c.value, true
}

// input is a column of the batch.
type input struct {
	column int
	kind   column.Type
}

// Input is column n of the batch, which holds values of type t.
func Input(n int, t column.Type) Node { return &input{n, t} }

func (n *input) Type() column.Type { return n.kind }
func (n *input) Clone() Node       { return n }
func (n *input) operands() []Node  { return nil }
func (n *input) own() trait        { return usesColumns }

func (n *input) Eval(_ *Env, in *column.Batch) (*column.Vector, error) {
	return in.Columns[n.column], nil
}

// constant is a value as a column. kind is its type where that says more: that of an expression which was found to be NULL.
type constant struct {
	kind  column.Type
	value column.Value
	at    *ast.Start // where it is written; nil = not known
	// digits are those of a literal whose double does not give them back: comparisons look at them.
	digits string
	out    column.Vector
}

// Const is the same value in every row.
func Const(v column.Value) Node { return &constant{kind: v.Type, value: v} }

// Placeholder is ?, whose value nobody knows: NULL of any type.
func Placeholder() Node { return &constant{kind: column.Object} }

func (n *constant) Type() column.Type { return n.kind }
func (n *constant) Clone() Node {
	return &constant{kind: n.kind, value: n.value, at: n.at, digits: n.digits}
}
func (n *constant) operands() []Node { return nil }
func (n *constant) own() trait       { return 0 }

func (n *constant) Eval(_ *Env, in *column.Batch) (*column.Vector, error) {
	if n.out.Len == 0 {
		n.out = *column.Constant(n.value, in.Len)
		if n.value.Type.Numeric() && n.kind.Numeric() {
			n.out.Type = n.kind
		}
	}
	n.out.Len = in.Len
	return &n.out, nil
}

// cloneAll clones nodes, of which some may be nil.
func cloneAll(list []Node) []Node {
	out := make([]Node, len(list))
	for i, n := range list {
		out[i] = cloneOne(n)
	}
	return out
}

func cloneOne(n Node) Node {
	if n == nil {
		return nil
	}
	return n.Clone()
}

// Word is a keyword as an argument of a function: the unit of DATEADD, the part of EXTRACT. It reads as its text in lower case.
func Word(text string) Node { return Const(column.TextValue(text)) }
