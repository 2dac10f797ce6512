package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Cast is CAST(x AS to), where to is number, string, timestamp or integer. Numbers are decimal and NaN where x is none, also where it is NULL.
func Cast(x Node, to string) Node {
	t := map[string]column.Type{"string": column.String, "timestamp": column.Timestamp, "integer": column.Integer}[to]
	if t == column.Null {
		t = column.Decimal
	}
	return fold(&cast{x: x, to: t})
}

type cast struct {
	x      Node
	to     column.Type
	number numberReader
	text   textReader
	out    result
}

func (n *cast) Type() column.Type { return n.to }
func (n *cast) Clone() Node       { return &cast{x: n.x.Clone(), to: n.to} }
func (n *cast) operands() []Node  { return []Node{n.x} }
func (n *cast) own() trait        { return 0 }

func (n *cast) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	if x.Type == column.Null && n.to != column.Decimal {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, x)
	n.out.header(n.to, in.Len, constant)
	switch {
	case n.to == column.String:
		t := n.text.read(x)
		n.out.v.Strings, n.out.v.Nulls = t.values, t.nulls
	case n.to == column.Decimal:
		n.toNumber(x, rows)
	case whole(x):
		n.out.v.Ints, n.out.v.Nulls = x.Ints, x.Nulls
	default:
		n.toWhole(n.number.read(x), rows)
		if n.out.v.Ints != nil {
			n.cutDigits(x, rows)
		}
	}
	return &n.out.v, nil
}

// cutDigits cuts the fractions of numbers that have more digits than a double.
func (n *cast) cutDigits(x *column.Vector, rows int) {
	for _, e := range x.Digits(rows) {
		text, _, _ := strings.Cut(string(calc.AppendDecimal(nil, e.Significand, e.Exponent)), ".")
		if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
			n.out.v.Ints[e.Index] = whole
		}
	}
}

func (n *cast) toNumber(x *column.Vector, rows int) {
	if whole(x) && x.Nulls == nil {
		n.out.v.Ints = x.Ints
		return
	}
	numbers := n.number.read(x)
	n.out.v.Exact = x.Digits(rows)
	if numbers.nulls == nil {
		n.out.v.Floats = numbers.values
		return
	}
	dst := n.out.makeFloats(rows)
	for i := range dst {
		if dst[i] = numbers.at(i); isNull(numbers.nulls, i) {
			dst[i] = nan
		}
	}
}

// toWhole cuts fractions. What is no number is NULL as an instant, and NaN as an integer, which keeps all of the column from being whole.
func (n *cast) toWhole(x numbers, rows int) {
	dst := n.out.makeInts(rows)
	some := false
	for i := range dst {
		f := x.at(i)
		dst[i] = calc.Saturated(f)
		some = some || f != f && !isNull(x.nulls, i)
		if f != f && n.to == column.Timestamp {
			n.out.makeNulls(rows)[i] = true
		}
	}
	n.out.unite(rows, x.nulls)
	if n.to == column.Timestamp || !some {
		return
	}
	floats := n.out.makeFloats(rows)
	for i := range floats {
		floats[i] = math.Trunc(x.at(i))
	}
	n.out.v.Ints = nil
}
