package column

import (
	"cmp"
	"strings"
)

// Compare orders row i of a and row j of b as ORDER BY and GROUP BY do: NULL first, then false before true, numbers and instants with NaN last, strings by code
// point. A number and a string are compared as texts.
func Compare(a *Vector, i int, b *Vector, j int) int {
	if a.Nulls == nil && b.Nulls == nil {
		switch {
		case a.Floats != nil && b.Floats != nil:
			if c := cmpFloats(a.Floats[a.Index(i)], b.Floats[b.Index(j)]); c != 0 || a.Exact == nil && b.Exact == nil {
				return c
			}
		case a.Strings != nil && b.Strings != nil:
			return strings.Compare(a.Strings[a.Index(i)], b.Strings[b.Index(j)])
		case a.Ints != nil && b.Ints != nil && a.Type == b.Type:
			return cmp.Compare(a.Ints[a.Index(i)], b.Ints[b.Index(j)])
		}
	}
	return CompareValues(a.Value(i), b.Value(j))
}

// CompareValues orders values as Compare does.
func CompareValues(a, b Value) int {
	x, y := a.rank(), b.rank()
	switch {
	case x != y && (x == textRank || y == textRank) && min(x, y) != nullRank:
		return strings.Compare(a.Format(), b.Format())
	case x != y:
		return cmp.Compare(x, y)
	}
	switch x {
	case booleanRank:
		return cmp.Compare(a.Int, b.Int)
	case textRank:
		return strings.Compare(a.Text, b.Text)
	case numberRank:
		return CompareNumbers(a, b)
	}
	return 0
}

// CompareNumbers orders two numbers or instants exactly, also those that no double can hold; NaN comes last. A double stands for its shortest text.
func CompareNumbers(a, b Value) int {
	if a.isInt() && b.isInt() {
		return cmp.Compare(a.Int, b.Int)
	}
	if c := cmpFloats(a.anyFloat(), b.anyFloat()); c != 0 {
		return c
	}
	return cmp.Compare(a.excess(), b.excess())
}

func (v Value) isInt() bool { return v.Whole || v.Type == Timestamp }

const (
	nullRank = iota
	booleanRank
	numberRank
	textRank
)

func (v Value) rank() int {
	switch {
	case v.Type == Null:
		return nullRank
	case v.Type == Boolean:
		return booleanRank
	case v.Type == String:
		return textRank
	}
	return numberRank
}

// cmpFloats orders numbers with NaN last.
func cmpFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a:
		return -1
	case b == b:
		return 1
	}
	return 0
}
