package expr

import (
	"math"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Some conditions can tell from the smallest and the largest number of a column that none of its rows can pass: they have a method
//
//	Bounds(column int) (low, high float64, ok bool)
//
// When ok, the condition is not true of any row whose number in that column is NaN, below low or above high. Some are even true of all other rows:
//
//	Between(column int) (low, high float64, ok bool)
//
// When ok, the condition is true of the rows whose number in that column is not below low and not above high, and of no other.

type bounded interface {
	Bounds(column int) (low, high float64, ok bool)
}

type exactlyBounded interface {
	Between(column int) (low, high float64, ok bool)
}

// boundsOf asks a node, which may have no answer.
func boundsOf(n Node, column int) (low, high float64, ok bool) {
	if b, is := n.(bounded); is {
		return b.Bounds(column)
	}
	return 0, 0, false
}

// isColumn reports whether n is a column of numbers.
func isColumn(n Node, column int) bool {
	in, ok := n.(*input)
	return ok && in.column == column && in.kind.Numeric()
}

// numberOf returns the number that a constant is compared as.
func numberOf(n Node) (v float64, ok bool) {
	c, ok := constantOf(n)
	return c.Number(), ok && (c.Type.Numeric() || c.Type == column.String)
}

// bounds are those of x op v. NaN is no number that x could be compared with.
func (r relation) bounds(v float64) (low, high float64, ok bool) {
	low, high = math.Inf(-1), math.Inf(1)
	switch {
	case v != v:
		return high, low, true
	case r == unequal:
		return low, high, true
	}
	if r == equal || r == greater || r == atLeast {
		low = v
	}
	if r == equal || r == less || r == atMost {
		high = v
	}
	return low, high, true
}

// only are the numbers x for which x op v is true.
func (r relation) only(v float64) (low, high float64, ok bool) {
	low, high, _ = r.bounds(v)
	switch {
	case r == unequal:
		return 0, 0, false
	case r == greater && math.IsInf(v, 1), r == less && math.IsInf(v, -1):
		return math.Inf(1), math.Inf(-1), true // nothing
	case r == greater:
		low = math.Nextafter(low, math.Inf(1))
	case r == less:
		high = math.Nextafter(high, math.Inf(-1))
	}
	return low, high, true
}

// Between returns between which numbers the column has to lie, and may.
func (n *comparison) Between(column int) (low, high float64, ok bool) {
	if v, ok := numberOf(n.r); ok && isColumn(n.l, column) && inDoubles(n.l) {
		return n.op.only(v)
	}
	if v, ok := numberOf(n.l); ok && isColumn(n.r, column) && inDoubles(n.r) {
		return swapped[n.op].only(v)
	}
	return 0, 0, false
}

// inDoubles reports whether doubles tell how a column compares: decimals may have more digits.
func inDoubles(n Node) bool { return n.Type() != column.Decimal }

// Between returns between which numbers the column has to lie, and may.
func (n *between) Between(column int) (low, high float64, ok bool) {
	from, known := numberOf(n.b.Low)
	to, known2 := numberOf(n.b.High)
	if !isColumn(n.x, column) || !known || !known2 || !inDoubles(n.x) {
		return 0, 0, false
	}
	low, high, _ = n.low.op.only(from)
	low2, high2, _ := n.high.op.only(to)
	return max(low, low2), min(high, high2), true
}

// Between returns what both sides of AND have in common.
func (n *junction) Between(column int) (low, high float64, ok bool) {
	l, is := n.l.(exactlyBounded)
	r, is2 := n.r.(exactlyBounded)
	if n.stop == 1 || !is || !is2 {
		return 0, 0, false
	}
	low, high, ok = l.Between(column)
	low2, high2, ok2 := r.Between(column)
	return max(low, low2), min(high, high2), ok && ok2
}

// Bounds returns between which numbers the column has to lie.
func (n *comparison) Bounds(column int) (low, high float64, ok bool) {
	if v, ok := numberOf(n.r); ok && isColumn(n.l, column) {
		return n.op.bounds(v)
	}
	if v, ok := numberOf(n.l); ok && isColumn(n.r, column) {
		return swapped[n.op].bounds(v)
	}
	return 0, 0, false
}

// Bounds returns between which numbers the column has to lie.
func (n *between) Bounds(column int) (low, high float64, ok bool) {
	if !isColumn(n.x, column) {
		return 0, 0, false
	}
	low, high = math.Inf(-1), math.Inf(1)
	if v, known := numberOf(n.b.Low); known {
		low, _, ok = n.low.op.bounds(v)
	}
	if v, known := numberOf(n.b.High); known {
		_, high, ok = n.high.op.bounds(v)
	}
	return low, high, ok
}

// Bounds returns the bounds of both sides, for OR what contains both.
func (n *junction) Bounds(column int) (low, high float64, ok bool) {
	low, high, ok = boundsOf(n.l, column)
	low2, high2, ok2 := boundsOf(n.r, column)
	switch {
	case n.stop == 1:
		return min(low, low2), max(high, high2), ok && ok2
	case ok && ok2:
		return max(low, low2), min(high, high2), true
	case ok2:
		return low2, high2, true
	}
	return low, high, ok
}

// Bounds returns the smallest and the largest element.
func (n *inConstants) Bounds(column int) (low, high float64, ok bool) {
	if !isColumn(n.x, column) {
		return 0, 0, false
	}
	low, high = math.Inf(1), math.Inf(-1)
	for v := range n.elements.numbers {
		low, high = min(low, v), max(high, v)
	}
	for v := range n.elements.wholes { // of which some are no double
		low, high = min(low, float64(v)), max(high, float64(v))
	}
	return low, high, true
}
