package expr

import (
	"cmp"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// CommonType is the type of what may be a value of any of the types: the type that all have, the wider one of numbers, where float with another number is
// double, otherwise Object. Null adds nothing.
func CommonType(types ...column.Type) column.Type {
	all := column.Null
	for _, t := range types {
		switch {
		case t == column.Null:
		case all == column.Null:
			all = t
		case all == column.Float && t.Numeric() || t == column.Float && all.Numeric():
			all = max(all, t, column.Double)
		case all.Numeric() && t.Numeric():
			all = max(all, t)
		case all != t:
			all = column.Object
		}
	}
	return all
}

func typesOf(nodes []Node) []column.Type {
	types := make([]column.Type, 0, len(nodes))
	for _, n := range nodes {
		if n != nil {
			types = append(types, n.Type())
		}
	}
	return types
}

// assembly puts a column together from pieces: each gives the values of some rows.
type assembly struct{ out result }

// begin starts a column of n rows, all NULL.
func (a *assembly) begin(t column.Type, n int) {
	a.out.header(t, n, false)
	nulls := a.out.makeNulls(n)
	for i := range nulls {
		nulls[i] = true
	}
	switch t {
	case column.String:
		clear(a.out.makeStrings(n))
	case column.Object:
		clear(a.out.makeValues(n))
	case column.Null:
	case column.Float, column.Double, column.Decimal: // always Floats: a whole number shows the same digits whatever its neighbours are
		clear(a.out.makeFloats(n))
	default:
		clear(a.out.makeInts(n))
	}
}

// put gives the rows, nil for all, their values: row k of v is that of rows[k].
func (a *assembly) put(v *column.Vector, rows []int32) {
	n := v.Len
	o := &a.out
	if v.Floats != nil && o.v.Ints != nil && o.v.Type.Numeric() {
		a.digits(&o.v, nil)
		floats := o.makeFloats(o.v.Len)
		for i, whole := range o.v.Ints {
			floats[i] = float64(whole)
		}
		o.v.Ints = nil
	}
	if o.v.Floats != nil {
		a.digits(v, rows)
	}
	if v.Nulls == nil && rows != nil {
		switch {
		case o.v.Strings != nil && v.Strings != nil:
			a.place(rows)
			scatter(o.v.Strings, v.Strings[:stored(v)], rows)
			return
		case o.v.Floats != nil && v.Floats != nil:
			a.place(rows)
			scatter(o.v.Floats, v.Floats[:stored(v)], rows)
			return
		}
	}
	for k := range n {
		row := k
		if rows != nil {
			row = int(rows[k])
		}
		if v.IsNull(k) {
			continue
		}
		o.nulls[row] = false
		switch i := v.Index(k); {
		case o.v.Strings != nil:
			o.v.Strings[row], _ = v.AsText(k)
		case o.v.Values != nil:
			o.v.Values[row] = v.Value(k)
			o.nulls[row] = o.v.Values[row].IsNull()
		case o.v.Floats != nil:
			o.v.Floats[row] = v.Float(k)
		case v.Ints != nil:
			o.v.Ints[row] = v.Ints[i]
		default:
			o.v.Ints[row] = v.Value(k).Int
		}
	}
}

// digits takes the numbers that have more digits than a double.
func (a *assembly) digits(v *column.Vector, rows []int32) {
	if v.Exact == nil && v.Ints == nil {
		return // texts are parsed as they are, which no type of numbers asks for
	}
	for _, e := range v.Digits(stored(v)) {
		from, to := int(e.Index), int(e.Index)+1
		if v.Const {
			to = v.Len
		}
		for k := from; k < to && !v.IsNull(k); k++ {
			row := k
			if rows != nil {
				row = int(rows[k])
			}
			a.out.v.Exact = append(a.out.v.Exact, core.DecimalAt{Index: uint32(row), Decimal: e.Decimal})
		}
	}
}

// place marks rows as having a value.
func (a *assembly) place(rows []int32) {
	for _, row := range rows {
		a.out.nulls[row] = false
	}
}

// scatter puts values into rows; one value stands for all.
func scatter[T any](dst, values []T, rows []int32) {
	for k, row := range rows {
		dst[row] = at(values, k)
	}
}

// end returns the column.
func (a *assembly) end() *column.Vector {
	o := &a.out
	if !slices.Contains(o.nulls, true) {
		o.v.Nulls = nil
	}
	if len(o.v.Exact) > 1 {
		slices.SortFunc(o.v.Exact, func(x, y core.DecimalAt) int { return cmp.Compare(x.Index, y.Index) })
	}
	return &o.v
}

// choice is CASE. In the simple form x is compared with the conditions.
type choice struct {
	x         Node
	whens     []When
	otherwise Node
	kind      column.Type

	compare  comparer
	rows     [2][]int32     // that are undecided
	hit      []int32        // the rows of the branch at hand
	found    []bool         // whether a row of the part hits it
	compared *column.Vector // x of the rows that are undecided
	memory   column.Vector  // of compared
	subsets  []subset       // for conditions, then for branches, the last for ELSE
	assembly assembly
}

// Case is CASE x WHEN a OR b THEN r ... ELSE otherwise END; x is nil in the searched form, otherwise is nil without ELSE. Conditions and branches are evaluated only
// on the rows that reach them.
func Case(x Node, whens []When, otherwise Node) Node {
	n := newChoice(x, whens, otherwise)
	return fold(n)
}

func newChoice(x Node, whens []When, otherwise Node) *choice {
	n := &choice{x: x, whens: whens, otherwise: otherwise, compare: comparer{op: equal}}
	var results []Node
	for _, w := range whens {
		var s [2]subset
		s[0].of(w.Conditions...)
		s[1].of(w.Then)
		n.subsets = append(n.subsets, s[:]...)
		results = append(results, w.Then)
	}
	var last subset
	last.of(otherwise)
	n.subsets = append(n.subsets, last)
	n.kind = CommonType(typesOf(append(results, otherwise))...)
	return n
}

func (n *choice) Type() column.Type { return n.kind }

func (n *choice) Clone() Node {
	whens := make([]When, len(n.whens))
	for i, w := range n.whens {
		whens[i] = When{cloneAll(w.Conditions), w.Then.Clone()}
	}
	return newChoice(cloneOne(n.x), whens, cloneOne(n.otherwise))
}

func (n *choice) operands() []Node {
	var list []Node
	if n.x != nil {
		list = append(list, n.x)
	}
	for _, w := range n.whens {
		list = append(append(list, w.Conditions...), w.Then)
	}
	if n.otherwise != nil {
		list = append(list, n.otherwise)
	}
	return list
}

func (n *choice) own() trait {
	if n.x == nil {
		return costly
	}
	for _, w := range n.whens {
		for _, c := range w.Conditions {
			if t := (&comparison{l: n.x, r: c}).own(); t != 0 {
				return t | costly
			}
		}
	}
	return costly
}

func (n *choice) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	var x *column.Vector
	if n.x != nil {
		var err error
		if x, err = n.x.Eval(env, in); err != nil {
			return nil, err
		}
	}
	n.assembly.begin(n.kind, in.Len)
	rows := all(n.rows[0][:0], in.Len)
	for i, w := range n.whens {
		if len(rows) == 0 {
			break
		}
		if x != nil {
			n.compared = x.Gather(rows, &n.memory)
		}
		if err := n.find(env, n.part(in, rows, 2*i), w.Conditions); err != nil {
			return nil, err
		}
		next := n.divide(rows)
		n.rows[0], n.rows[1] = next, rows
		rows = next
		if err := n.branch(env, w.Then, in, 2*i+1); err != nil {
			return nil, err
		}
	}
	n.rows[0] = rows
	if n.otherwise != nil && len(rows) > 0 {
		n.hit = append(n.hit[:0], rows...)
		if err := n.branch(env, n.otherwise, in, len(n.subsets)-1); err != nil {
			return nil, err
		}
	}
	return n.assembly.end(), nil
}

// all appends the numbers of n rows.
func all(rows []int32, n int) []int32 {
	for i := range n {
		rows = append(rows, int32(i))
	}
	return rows
}

// part is the batch of some rows.
func (n *choice) part(in *column.Batch, rows []int32, subset int) *column.Batch {
	if len(rows) == in.Len {
		return in
	}
	return n.subsets[subset].pick(in, rows)
}

// branch evaluates the result of a branch on the rows that hit it.
func (n *choice) branch(env *Env, then Node, in *column.Batch, subset int) error {
	if len(n.hit) == 0 {
		return nil
	}
	v, err := then.Eval(env, n.part(in, n.hit, subset))
	if err != nil {
		return err
	}
	n.assembly.put(v, n.hit)
	return nil
}

// find marks the rows of a part for which one of the conditions is true; in the simple form they are compared with compared.
func (n *choice) find(env *Env, part *column.Batch, conditions []Node) error {
	n.found = sized(n.found, part.Len)
	clear(n.found)
	for _, c := range conditions {
		v, err := c.Eval(env, part)
		if err != nil {
			return err
		}
		if n.x != nil {
			v = n.compare.compare(env, n.compared, v, part.Len)
		}
		if v.Type != column.Boolean {
			continue
		}
		for k := range n.found {
			n.found[k] = n.found[k] || v.Ints[v.Index(k)] != 0 && !v.IsNull(k)
		}
	}
	return nil
}

// divide sorts the rows of the part into hit, and those that it returns.
func (n *choice) divide(rows []int32) (rest []int32) {
	hit, rest := sized(n.hit, len(rows)+1), sized(n.rows[1], len(rows)+1)
	hits, rests := 0, 0
	for k, row := range rows {
		hit[hits], rest[rests] = row, row
		one := int(bit(n.found[k]))
		hits += one
		rests += 1 - one
	}
	n.hit = hit[:hits]
	return rest[:rests]
}

// coalesce is ISNULL and COALESCE: the first argument that is neither NULL nor NaN.
type coalesce struct {
	args     []Node
	kind     column.Type
	lastAsIs bool // the last argument counts whatever it is: ISNULL
	nanStays bool // where all are missing and one is NaN, the result is NaN: where rows are ordered
	rows     [2][]int32
	subsets  []subset
	assembly assembly
}

func newCoalesce(args []Node, shape coalesce) *coalesce {
	n := &coalesce{args: args, kind: CommonType(typesOf(args)...), lastAsIs: shape.lastAsIs, nanStays: shape.nanStays, subsets: make([]subset, len(args))}
	for i, a := range args {
		n.subsets[i].of(a)
	}
	return n
}

// OrderKey returns what rows are ordered by where n is shown: COALESCE of NaN shows NULL, but its place is that of NaN.
func OrderKey(n Node) Node {
	if c, ok := n.(*coalesce); ok && !c.lastAsIs {
		return newCoalesce(cloneAll(c.args), coalesce{nanStays: true})
	}
	return n
}

func (n *coalesce) Type() column.Type { return n.kind }
func (n *coalesce) Clone() Node       { return newCoalesce(cloneAll(n.args), *n) }
func (n *coalesce) operands() []Node  { return n.args }
func (n *coalesce) own() trait        { return 0 }

func (n *coalesce) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	v, err := n.args[0].Eval(env, in)
	if err != nil {
		return nil, err
	}
	missing := n.missing(v, nil, n.rows[0][:0])
	n.rows[0] = missing
	if len(missing) == 0 && v.Type == n.kind {
		return v, nil
	}
	n.assembly.begin(n.kind, in.Len)
	n.put(v, nil, missing)
	for i := 1; i < len(n.args) && len(missing) > 0; i++ {
		part := in
		if len(missing) < in.Len {
			part = n.subsets[i].pick(in, missing)
		}
		if v, err = n.args[i].Eval(env, part); err != nil {
			return nil, err
		}
		if n.lastAsIs && i == len(n.args)-1 {
			n.assembly.put(v, missing)
			break
		}
		rest := n.missing(v, missing, n.rows[1][:0])
		n.put(v, missing, rest)
		n.rows[0], n.rows[1] = rest, missing
		missing = rest
	}
	return n.assembly.end(), nil
}

// put takes the values of an argument, of which those of some rows are missing: their NaN is no result, unless rows are ordered.
func (n *coalesce) put(v *column.Vector, rows, missing []int32) {
	n.assembly.put(v, rows)
	if n.nanStays {
		return
	}
	for _, row := range missing {
		n.assembly.out.nulls[row] = true
	}
}

// missing appends those of the rows, nil for all, whose value is NULL or NaN.
func (n *coalesce) missing(v *column.Vector, rows, missing []int32) []int32 {
	for k := range v.Len {
		if !v.IsMissing(k) {
			continue
		}
		if rows == nil {
			missing = append(missing, int32(k))
		} else {
			missing = append(missing, rows[k])
		}
	}
	return missing
}
