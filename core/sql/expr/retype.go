package expr

import "github.com/tidemark-db/tidemark/core/sql/column"

// retyped shows the same values as another type.
type retyped struct {
	x   Node
	to  column.Type
	out column.Vector
}

// Retype is x as a type whose values lie in the same slices: Bigint and Timestamp.
func Retype(x Node, t column.Type) Node {
	if x.Type() == t {
		return x
	}
	return &retyped{x: x, to: t}
}

func (n *retyped) Type() column.Type { return n.to }
func (n *retyped) Clone() Node       { return &retyped{x: n.x.Clone(), to: n.to} }
func (n *retyped) operands() []Node  { return []Node{n.x} }
func (n *retyped) own() trait        { return 0 }

func (n *retyped) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	v, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	n.out = *v
	if v.Type != column.Null {
		n.out.Type = n.to
	}
	return &n.out, nil
}
