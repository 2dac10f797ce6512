package expr

import (
	"github.com/tidemark-db/tidemark/core/sql/column"
)

var (
	nanOnly   = []float64{nan}
	nullOnly  = []bool{true}
	emptyOnly = []string{""}
)

// junction is AND or OR. stop is the value of the left side that decides: false for AND, true for OR.
type junction struct {
	stop   int64
	below  trait // of both operands
	l, r   Node
	eager  bool // the right side may be evaluated on rows that do not need it
	rows   []int32
	subset subset
	left   result
	out    result
}

// And is l AND r in three-valued logic. The right side is evaluated only where the left one does not decide.
func And(l, r Node) Node { return newJunction(0, l, r) }

// Or is l OR r.
func Or(l, r Node) Node { return newJunction(1, l, r) }

func newJunction(stop int64, l, r Node) Node {
	right := traits(r)
	n := &junction{stop: stop, below: traits(l) | right, l: l, r: r, eager: right&(mayFail|costly|volatile) == 0}
	n.subset.of(r)
	if v, ok := constantOf(l); ok && v.Type == column.Boolean {
		if v.Int == stop {
			return l // whatever the other side would be
		}
		if r.Type() == column.Boolean {
			return r
		}
	}
	return fold(n)
}

func (n *junction) Type() column.Type { return column.Boolean }
func (n *junction) Clone() Node       { return newJunction(n.stop, n.l.Clone(), n.r.Clone()) }
func (n *junction) operands() []Node  { return []Node{n.l, n.r} }
func (n *junction) own() trait        { return 0 }
func (n *junction) all() trait        { return n.below }

func (n *junction) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	a, err := n.l.Eval(env, in)
	if err != nil {
		return nil, err
	}
	a = n.boolean(a)
	if a.Const {
		return n.afterConstant(env, in, a)
	}
	open := n.undecided(a)
	if open == 0 {
		return a, nil
	}
	// Copying the few columns that the right side reads costs about as much as one comparison.
	if open == in.Len || n.eager && open > in.Len/4 {
		b, err := n.r.Eval(env, in)
		if err != nil {
			return nil, err
		}
		n.out.header(column.Boolean, in.Len, false)
		n.join(n.out.makeInts(in.Len), a, b)
		return &n.out.v, nil
	}
	n.collect(a, open)
	b, err := n.r.Eval(env, n.subset.pick(in, n.rows))
	if err != nil {
		return nil, err
	}
	return n.scatter(a, b), nil
}

// boolean makes a vector that may be of another type, NULL or a placeholder, one of booleans.
func (n *junction) boolean(a *column.Vector) *column.Vector {
	if a.Type == column.Boolean {
		return a
	}
	n.left.header(column.Boolean, a.Len, true)
	n.left.makeInts(1)[0] = 0
	n.left.makeNulls(1)[0] = true
	return &n.left.v
}

// afterConstant goes on where all rows have the same left side.
func (n *junction) afterConstant(env *Env, in *column.Batch, a *column.Vector) (*column.Vector, error) {
	null := a.Nulls != nil && a.Nulls[0]
	if !null && a.Ints[0] == n.stop {
		return a, nil
	}
	b, err := n.r.Eval(env, in)
	if err != nil {
		return nil, err
	}
	rows, constant := rowsOf(in.Len, b)
	n.out.header(column.Boolean, in.Len, constant)
	n.join(n.out.makeInts(rows), a, b)
	return &n.out.v, nil
}

// undecided counts the rows whose result depends on the right side.
func (n *junction) undecided(a *column.Vector) int {
	if a.Nulls == nil {
		trues := int64(0)
		for _, v := range a.Ints[:a.Len] {
			trues += v
		}
		if n.stop == 0 {
			return int(trues)
		}
		return a.Len - int(trues)
	}
	open := int64(0)
	for i, v := range a.Ints[:a.Len] {
		open += bit(v != n.stop) | bit(a.Nulls[i])
	}
	return int(open)
}

// collect fills rows with the undecided ones, of which there are so many. It has no branch: which rows these are is hard to predict.
func (n *junction) collect(a *column.Vector, open int) {
	n.rows = sized(n.rows, open+1)
	at := 0
	for i, v := range a.Ints[:a.Len] {
		n.rows[at] = int32(i)
		at += int(bit(v != n.stop) | bit(a.Nulls != nil && a.Nulls[i]))
	}
	n.rows = n.rows[:open]
}

// join combines both sides. A NULL side leaves the decision to the other one.
func (n *junction) join(dst []int64, a, b *column.Vector) {
	if b.Type != column.Boolean {
		b = &column.Vector{Type: column.Boolean, Const: true, Len: b.Len, Ints: []int64{0}, Nulls: nullOnly}
	}
	x, y := a.Ints[:stored(a)], b.Ints[:stored(b)]
	if a.Nulls == nil && b.Nulls == nil {
		if n.stop == 0 {
			both(dst, x, y)
			return
		}
		for i := range dst {
			dst[i] = at(x, i) | at(y, i)
		}
		return
	}
	nulls := n.out.makeNulls(len(dst))
	for i := range dst {
		p, q := at(x, i), at(y, i)
		pn, qn := isNull(a.Nulls, i), isNull(b.Nulls, i)
		switch {
		case !pn && p == n.stop, !qn && q == n.stop:
			dst[i] = n.stop
		case pn || qn:
			dst[i], nulls[i] = 0, true
		default:
			dst[i] = 1 - n.stop
		}
	}
}

// both sets dst to a & b, where one element stands for all.
func both(dst, a, b []int64) {
	if len(a) != len(dst) || len(b) != len(dst) {
		for i := range dst {
			dst[i] = at(a, i) & at(b, i)
		}
		return
	}
	for i, v := range a {
		dst[i] = v & b[i]
	}
}

// scatter puts the right side, known for n.rows alone, into the left one.
func (n *junction) scatter(a, b *column.Vector) *column.Vector {
	n.out.header(column.Boolean, a.Len, false)
	dst := n.out.makeInts(a.Len)
	copy(dst, a.Ints)
	n.out.unite(a.Len, a.Nulls)
	for k, row := range n.rows {
		v, null := int64(0), b.Type != column.Boolean || b.IsNull(k)
		if !null {
			v = b.Ints[b.Index(k)]
		}
		leftNull := a.Nulls != nil && a.Nulls[row]
		switch {
		case !null && v == n.stop:
			dst[row] = n.stop
			if leftNull {
				n.out.nulls[row] = false
			}
		case null || leftNull:
			dst[row] = 0
			n.out.makeNulls(a.Len)[row] = true
		default:
			dst[row] = 1 - n.stop
		}
	}
	return &n.out.v
}

// subset takes rows out of a batch for a node that is to see these alone.
type subset struct {
	columns []int
	batch   column.Batch
	picked  []*column.Vector // memory, by column
}

// of prepares for a node: only the columns that it reads are copied. A node of another package may read all.
func (s *subset) of(nodes ...Node) {
	s.columns = nil
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if _, ok := n.(parent); !ok {
			s.columns = nil
			return
		}
		s.columns = appendColumns(s.columns, n)
	}
	if s.columns == nil {
		s.columns = []int{}
	}
}

// pick returns the given rows of a batch. It is valid until the next call.
func (s *subset) pick(in *column.Batch, rows []int32) *column.Batch {
	s.batch.Len = len(rows)
	s.batch.Columns = sized(s.batch.Columns, len(in.Columns))
	if s.columns == nil {
		for i := range in.Columns {
			s.columns = append(s.columns, i)
		}
	}
	for len(s.picked) < len(in.Columns) {
		s.picked = append(s.picked, &column.Vector{})
	}
	clear(s.batch.Columns)
	for _, c := range s.columns {
		if s.batch.Columns[c] == nil && in.Columns[c] != nil {
			s.batch.Columns[c] = in.Columns[c].Gather(rows, s.picked[c])
		}
	}
	return &s.batch
}

// not is NOT x.
type not struct {
	x   Node
	out result
}

// Not is NOT x: NULL stays NULL.
func Not(x Node) Node { return fold(&not{x: x}) }

func (n *not) Type() column.Type { return column.Boolean }
func (n *not) Clone() Node       { return &not{x: n.x.Clone()} }
func (n *not) operands() []Node  { return []Node{n.x} }
func (n *not) own() trait        { return 0 }

func (n *not) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	if x.Type != column.Boolean {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, x)
	n.out.header(column.Boolean, in.Len, constant)
	dst := n.out.makeInts(rows)
	for i, v := range x.Ints[:rows] {
		dst[i] = 1 - v
	}
	n.out.v.Nulls = cut(x.Nulls, rows)
	return &n.out.v, nil
}

// missing is x IS NULL, which is true for NaN as well.
type missing struct {
	x   Node
	out result
}

// IsNull is x IS NULL: true for NULL and NaN, otherwise false.
func IsNull(x Node) Node { return fold(&missing{x: x}) }

func (n *missing) Type() column.Type { return column.Boolean }
func (n *missing) Clone() Node       { return &missing{x: n.x.Clone()} }
func (n *missing) operands() []Node  { return []Node{n.x} }
func (n *missing) own() trait        { return 0 }

func (n *missing) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	rows, constant := rowsOf(in.Len, x)
	n.out.header(column.Boolean, in.Len, constant)
	dst := n.out.makeInts(rows)
	switch {
	case x.Floats != nil && x.Nulls == nil:
		for i, v := range x.Floats[:rows] {
			dst[i] = bit(v != v)
		}
	case x.Type != column.Null && x.Nulls == nil && x.Values == nil:
		clear(dst)
	default:
		for i := range dst {
			dst[i] = bit(x.IsMissing(i))
		}
	}
	return &n.out.v, nil
}
