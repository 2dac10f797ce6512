package expr

import (
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// relation is a comparison operator.
type relation uint8

const (
	equal relation = iota
	unequal
	less
	atMost
	greater
	atLeast
)

var relations = map[string]relation{"=": equal, "<>": unequal, "!=": unequal, "<": less, "<=": atMost, ">": greater, ">=": atLeast}

// swapped is the relation with its operands exchanged.
var swapped = [...]relation{equal, unequal, greater, atLeast, less, atMost}

// holds says whether the relation is true of operands that compare like c.
func (r relation) holds(c int) bool {
	switch r {
	case equal:
		return c == 0
	case unequal:
		return c != 0
	case less:
		return c < 0
	case atMost:
		return c <= 0
	case greater:
		return c > 0
	}
	return c >= 0
}

// Compare is l op r, where op is one of = <> != < <= > >=.
func Compare(op string, l, r Node) Node {
	return fold(&comparison{comparer: comparer{op: relations[op]}, l: precise(l), r: precise(r)})
}

// precise returns a literal with all its digits, where they decide; every other node as it is.
func precise(n Node) Node {
	c, ok := n.(*constant)
	if !ok || c.digits == "" {
		return n
	}
	v := column.ParseValue(c.digits)
	return &constant{kind: c.kind, value: v, at: c.at}
}

type comparison struct {
	comparer
	l, r Node
}

func (n *comparison) Type() column.Type { return column.Boolean }
func (n *comparison) Clone() Node {
	return &comparison{comparer: comparer{op: n.op}, l: n.l.Clone(), r: n.r.Clone()}
}
func (n *comparison) operands() []Node { return []Node{n.l, n.r} }
func (n *comparison) own() trait {
	if n.l.Type() == column.Timestamp && n.r.Type() == column.String || n.l.Type() == column.String && n.r.Type() == column.Timestamp {
		return usesEnv
	}
	return 0
}

func (n *comparison) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	a, b, err := evalTwo(env, in, n.l, n.r)
	if err != nil {
		return nil, err
	}
	return n.compare(env, a, b, in.Len), nil
}

// comparer compares columns, with memory of its own.
type comparer struct {
	op          relation
	left, right numberReader
	out         result
}

// compare returns for each of n rows whether the relation is true, false or, with NULL or NaN, NULL.
func (c *comparer) compare(env *Env, a, b *column.Vector, n int) *column.Vector {
	a, b = dated(env, a, b), dated(env, b, a)
	if a.Type == column.Null || b.Type == column.Null {
		return c.out.allNull(n)
	}
	rows, constant := rowsOf(n, a, b)
	c.out.header(column.Boolean, n, constant)
	dst := c.out.makeInts(rows)
	switch {
	case a.Values != nil || b.Values != nil || a.Type == column.Boolean || b.Type == column.Boolean ||
		(a.Type == column.Timestamp || b.Type == column.Timestamp) && (a.Strings != nil || b.Strings != nil):
		c.single(env, a, b, dst)
	case a.Strings != nil && b.Strings != nil:
		compareTexts(dst, a.Strings[:stored(a)], b.Strings[:stored(b)], c.op)
		c.out.unite(rows, cut(a.Nulls, stored(a)), cut(b.Nulls, stored(b)))
	case a.Ints != nil && b.Ints != nil:
		compareLists(dst, a.Ints[:stored(a)], b.Ints[:stored(b)], c.op)
		c.out.unite(rows, cut(a.Nulls, stored(a)), cut(b.Nulls, stored(b)))
	case a.Exact != nil || b.Exact != nil || (a.Type == column.Decimal || b.Type == column.Decimal) && (hasDigits(a) || hasDigits(b)):
		c.single(env, a, b, dst) // only decimals have more digits than doubles
	default:
		x, y := c.left.read(a), c.right.read(b)
		if nan := compareLists(dst, x.values, y.values, c.op); nan > 0 {
			nulls := c.out.makeNulls(rows)
			for i := range nulls {
				p, q := x.at(i), y.at(i)
				nulls[i] = p != p || q != q
			}
		}
		c.out.unite(rows, x.nulls, y.nulls)
	}
	return &c.out.v
}

// hasDigits reports whether a column of numbers has some that doubles do not give exactly. Of whole numbers and texts only constants are looked at: others that are as
// long are rare among computed numbers, and what they are compared with is as a rule as long.
func hasDigits(v *column.Vector) bool {
	switch {
	case v.Exact != nil:
		return true
	case !v.Const || v.IsNull(0):
		return false
	case v.Strings != nil:
		_, ok := column.ParseValue(v.Strings[0]).Decimal()
		return ok
	}
	_, ok := v.Value(0).Decimal()
	return ok
}

// dated returns v, or the instant that it names when it is a constant text to be compared with instants.
func dated(env *Env, v, other *column.Vector) *column.Vector {
	if other.Type != column.Timestamp || !v.Const || v.Strings == nil || v.IsNull(0) {
		return v
	}
	t, ok := env.literal(v.Strings[0])
	if !ok {
		return column.Constant(column.NullValue, v.Len)
	}
	return column.Constant(column.TimeValue(t), v.Len)
}

// single compares value by value: where types differ from row to row, or only texts tell.
func (c *comparer) single(env *Env, a, b *column.Vector, dst []int64) {
	var nulls []bool
	for i := range dst {
		order, ok := compareValues(env, a.Value(i), b.Value(i))
		dst[i] = bit(ok && c.op.holds(order))
		if !ok {
			if nulls == nil {
				nulls = c.out.makeNulls(len(dst))
			}
			nulls[i] = true
		}
	}
}

// compareValues compares two values as operators do; ok is false where the result is NULL.
func compareValues(env *Env, a, b column.Value) (order int, ok bool) {
	if a.IsNull() || b.IsNull() || a.IsNaN() || b.IsNaN() {
		return 0, false
	}
	switch x, y := a.Type, b.Type; {
	case x == column.String && y == column.String:
		return strings.Compare(a.Text, b.Text), true
	case x == column.Boolean && y == column.Boolean:
		return int(a.Int - b.Int), true
	case x == column.Boolean && y == column.String, x == column.String && y == column.Boolean:
		return strings.Compare(string(a.AppendText(nil)), string(b.AppendText(nil))), true
	case x == column.Boolean || y == column.Boolean:
		return 0, false
	case x == column.String:
		order, ok = compareValues(env, b, a)
		return -order, ok
	case y == column.String && x == column.Timestamp:
		t, ok := env.literal(b.Text)
		return column.CompareNumbers(a, column.TimeValue(t)), ok
	case y == column.String:
		b = column.ParseValue(b.Text)
		return column.CompareNumbers(a, b), !b.IsNaN()
	}
	return column.CompareNumbers(a, b), true
}

// bit is 1 for true; the compiler makes it without a branch.
func bit(b bool) int64 {
	var i int64
	if b {
		i = 1
	}
	return i
}

// compareLists sets dst to a op b, where one element stands for all, and returns how many operands were NaN, at least.
func compareLists[T int64 | float64](dst []int64, a, b []T, op relation) (nan int64) {
	switch {
	case len(b) == 1:
		if b[0] != b[0] {
			clear(dst)
			return 1
		}
		return compareConstant(dst, a, b[0], op)
	case len(a) == 1:
		return compareLists(dst, b, a, swapped[op])
	}
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case equal:
		for i, v := range a {
			dst[i] = bit(v == b[i])
		}
	case unequal:
		for i, v := range a {
			dst[i] = bit(v != b[i])
		}
	case less, greater:
		if op == less {
			a, b = b, a
		}
		for i, v := range a {
			dst[i] = bit(v > b[i])
		}
	default:
		if op == atMost {
			a, b = b, a
		}
		for i, v := range a {
			dst[i] = bit(v >= b[i])
		}
	}
	for i, v := range a {
		nan += bit(v != v) | bit(b[i] != b[i])
	}
	return nan
}

// compareConstant is the loop of `value > 10`: one pass, and no branch that depends on a value.
func compareConstant[T int64 | float64](dst []int64, a []T, c T, op relation) (nan int64) {
	a = a[:len(dst)]
	switch op {
	case equal:
		for i, v := range a {
			dst[i] = bit(v == c)
			nan += bit(v != v)
		}
	case unequal:
		for i, v := range a {
			dst[i] = bit(v != c)
			nan += bit(v != v)
		}
	case less:
		for i, v := range a {
			dst[i] = bit(v < c)
			nan += bit(v != v)
		}
	case atMost:
		for i, v := range a {
			dst[i] = bit(v <= c)
			nan += bit(v != v)
		}
	case greater:
		for i, v := range a {
			dst[i] = bit(v > c)
			nan += bit(v != v)
		}
	default:
		for i, v := range a {
			dst[i] = bit(v >= c)
			nan += bit(v != v)
		}
	}
	return nan
}

// compareTexts compares by code point, which is the order of the bytes of UTF-8. Runs of the same text are compared once.
func compareTexts(dst []int64, a, b []string, op relation) {
	if len(a) == 1 && len(b) > 1 {
		a, b, op = b, a, swapped[op]
	}
	if len(b) == 1 {
		for i, s := range a[:len(dst)] {
			switch {
			case i > 0 && s == a[i-1]:
				dst[i] = dst[i-1]
			case op == equal:
				dst[i] = bit(s == b[0])
			case op == unequal:
				dst[i] = bit(s != b[0])
			default:
				dst[i] = bit(op.holds(strings.Compare(s, b[0])))
			}
		}
		return
	}
	for i, s := range a[:len(dst)] {
		dst[i] = bit(op.holds(strings.Compare(s, b[i])))
	}
}

// Bounds are those of BETWEEN.
type Bounds struct {
	Low, High         Node
	LowExcl, HighExcl bool
}

// between is x >= low AND x <= high, which looks at x once. With NULL or NaN among the three it is NULL.
type between struct {
	x         Node
	b         Bounds
	low, high comparer
	out       result
}

// Between is x BETWEEN low AND high.
func Between(x Node, b Bounds) Node { return fold(newBetween(x, b)) }

func newBetween(x Node, b Bounds) *between {
	b.Low, b.High = precise(b.Low), precise(b.High)
	n := &between{x: x, b: b, low: comparer{op: atLeast}, high: comparer{op: atMost}}
	if b.LowExcl {
		n.low.op = greater
	}
	if b.HighExcl {
		n.high.op = less
	}
	return n
}

func (n *between) Type() column.Type { return column.Boolean }
func (n *between) Clone() Node {
	b := n.b
	b.Low, b.High = b.Low.Clone(), b.High.Clone()
	return newBetween(n.x.Clone(), b)
}
func (n *between) operands() []Node { return []Node{n.x, n.b.Low, n.b.High} }
func (n *between) own() trait {
	for _, side := range [...]Node{n.b.Low, n.b.High} {
		if t := (&comparison{l: n.x, r: side}).own(); t != 0 {
			return t
		}
	}
	return 0
}

func (n *between) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	low, high, err := evalTwo(env, in, n.b.Low, n.b.High)
	if err != nil {
		return nil, err
	}
	a, b := n.low.compare(env, x, low, in.Len), n.high.compare(env, x, high, in.Len)
	if a.Type == column.Null || b.Type == column.Null {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, a, b)
	n.out.header(column.Boolean, in.Len, constant)
	dst := n.out.makeInts(rows)
	both(dst, a.Ints[:stored(a)], b.Ints[:stored(b)])
	n.out.unite(rows, a.Nulls, b.Nulls)
	return &n.out.v, nil
}
