package column

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// ExactAt returns the decimal of row i that Floats do not give exactly.
func (v *Vector) ExactAt(i int) (core.Decimal, bool) {
	at, ok := slices.BinarySearchFunc(v.Exact, uint32(v.Index(i)), func(d core.DecimalAt, i uint32) int { return int(d.Index) - int(i) })
	if !ok {
		return core.Decimal{}, false
	}
	return v.Exact[at].Decimal, true
}

// pickExact returns the decimals of the given rows, numbered by their places there.
func pickExact(exact []core.DecimalAt, rows []int32) []core.DecimalAt {
	v := Vector{Exact: exact}
	var out []core.DecimalAt
	for i, row := range rows {
		if d, ok := v.ExactAt(int(row)); ok {
			out = append(out, core.DecimalAt{Index: uint32(i), Decimal: d})
		}
	}
	return out
}

func sliceExact(exact []core.DecimalAt, from, to int) []core.DecimalAt {
	var out []core.DecimalAt
	for _, d := range exact {
		if i := int(d.Index); i >= from && i < to {
			out = append(out, core.DecimalAt{Index: uint32(i - from), Decimal: d.Decimal})
		}
	}
	return out
}
