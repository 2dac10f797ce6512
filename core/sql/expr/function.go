package expr

import (
	"maps"
	"slices"
	"sync"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// call is a function as a statement calls it.
type call struct {
	name string
	args []Node
	at   ast.Start
}

// definition is a function: how many arguments it takes, most < 0 for any number, and what makes its node.
type definition struct {
	least, most int
	make        func(c *call) (Node, error)
}

// definitions of all scalar functions by name. Aggregates and what has a constructor of its own, such as CAST, are not among them.
var definitions = sync.OnceValue(func() map[string]definition {
	all := map[string]definition{}
	for _, group := range []map[string]definition{mathFunctions(), textFunctions(), dateFunctions(), workdayFunctions(), databaseFunctions()} {
		maps.Copy(all, group)
	}
	all["isnull"] = definition{2, 2, func(c *call) (Node, error) { return fold(newCoalesce(c.args, coalesce{lastAsIs: true})), nil }}
	all["coalesce"] = definition{2, -1, func(c *call) (Node, error) { return foldCoalesce(newCoalesce(c.args, coalesce{})), nil }}
	return all
})

// foldCoalesce folds but what OrderKey has to see: NULL that stands for NaN.
func foldCoalesce(n *coalesce) Node {
	if c, ok := fold(n).(*constant); ok && !c.value.IsNull() {
		return c
	}
	return n
}

// Functions returns the names of the scalar functions that Call knows, in lower case, sorted.
func Functions() []string {
	names := slices.Sorted(maps.Keys(definitions()))
	return slices.DeleteFunc(names, func(name string) bool { return name == TagsObject })
}

// Call is a call of a scalar function, its name in lower case. at is where it stands, for errors. Keywords among the arguments are Word and Span.
func Call(name string, args []Node, at ast.Start) (Node, error) {
	d, ok := definitions()[name]
	switch {
	case !ok:
		return nil, at.Errorf("Unknown function: '%s'", name)
	case len(args) < d.least:
		return nil, at.Errorf("Function %s requires at least %d arguments, %d given", name, d.least, len(args))
	case d.most >= 0 && len(args) > d.most:
		return nil, at.Errorf("Function %s takes at most %d arguments, %d given", name, d.most, len(args))
	}
	return d.make(&call{name, args, at})
}

// kernel computes the rows of a function. Rows that out marks as NULL are skipped; it may mark more.
type kernel func(env *Env, args []*column.Vector, rows int, out *result) error

// scalar is a function of rows.
type scalar struct {
	kind    column.Type
	args    []Node
	lenient uint // bit i: argument i may be NULL; of others NULL makes the result NULL
	flags   trait
	make    func() kernel // a kernel has buffers and caches

	run     kernel
	vectors []*column.Vector
	out     result
}

// node makes the node of the function, folded.
func (s scalar) node() Node {
	s.run = s.make()
	return fold(&s)
}

func (n *scalar) Type() column.Type { return n.kind }
func (n *scalar) Clone() Node {
	return &scalar{kind: n.kind, args: cloneAll(n.args), lenient: n.lenient, flags: n.flags, make: n.make, run: n.make()}
}
func (n *scalar) operands() []Node { return n.args }
func (n *scalar) own() trait       { return n.flags }

func (n *scalar) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	n.vectors = n.vectors[:0]
	for i, a := range n.args {
		v, err := a.Eval(env, in)
		if err != nil {
			return nil, err
		}
		if v.Type == column.Null && n.lenient>>i&1 == 0 {
			return n.out.allNull(in.Len), nil
		}
		n.vectors = append(n.vectors, v)
	}
	rows, constant := rowsOf(in.Len, n.vectors...)
	if n.flags&volatile != 0 {
		rows, constant = in.Len, false
	}
	n.out.header(n.kind, in.Len, constant)
	for i, v := range n.vectors {
		if n.lenient>>i&1 == 0 {
			n.out.uniteVector(rows, v)
		}
	}
	if err := n.run(env, n.vectors, rows, &n.out); err != nil {
		return nil, err
	}
	return &n.out.v, nil
}

// uniteVector marks the rows that are NULL in v.
func (r *result) uniteVector(rows int, v *column.Vector) {
	if v.Values == nil {
		r.unite(rows, cut(v.Nulls, min(stored(v), rows)))
		return
	}
	for i := range rows {
		if v.IsNull(i) || v.Values[v.Index(i)].IsNull() {
			r.makeNulls(rows)[i] = true
		}
	}
}

// skip reports whether row i is NULL already.
func (r *result) skip(i int) bool { return r.v.Nulls != nil && r.v.Nulls[i] }
