package expr

import (
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// result is the vector that a node returns, with the memory that it uses again for the next batch.
type result struct {
	v       column.Vector
	ints    []int64
	floats  []float64
	strings []string
	values  []column.Value
	nulls   []bool
}

// rowsOf returns how many rows have to be computed for a batch of n rows: one where all operands are constant.
func rowsOf(n int, operands ...*column.Vector) (rows int, constant bool) {
	for _, v := range operands {
		if !v.Const && v.Type != column.Null {
			return n, false
		}
	}
	return min(n, 1), true
}

// header starts the vector for rows computed rows that stand for n.
func (r *result) header(t column.Type, n int, constant bool) {
	r.v = column.Vector{Type: t, Const: constant, Len: n}
}

// makeInts makes the rows of a vector in Ints.
func (r *result) makeInts(rows int) []int64 {
	r.ints = sized(r.ints, rows)
	r.v.Ints = r.ints
	return r.ints
}

func (r *result) makeFloats(rows int) []float64 {
	r.floats = sized(r.floats, rows)
	r.v.Floats = r.floats
	return r.floats
}

func (r *result) makeStrings(rows int) []string {
	r.strings = sized(r.strings, rows)
	r.v.Strings = r.strings
	return r.strings
}

func (r *result) makeValues(rows int) []column.Value {
	r.values = sized(r.values, rows)
	r.v.Values = r.values
	return r.values
}

// makeNulls marks no row as NULL, so that some can be.
func (r *result) makeNulls(rows int) []bool {
	if r.v.Nulls == nil {
		r.nulls = sized(r.nulls, rows)
		clear(r.nulls)
		r.v.Nulls = r.nulls
	}
	return r.nulls
}

// unite marks the rows that are NULL in any operand. A mark list of one row is that of a constant.
func (r *result) unite(rows int, lists ...[]bool) {
	for _, list := range lists {
		switch {
		case list == nil:
		case len(list) < rows:
			if list[0] {
				nulls := r.makeNulls(rows)
				for i := range nulls {
					nulls[i] = true
				}
			}
		default:
			nulls := r.makeNulls(rows)
			for i, null := range list[:rows] {
				nulls[i] = nulls[i] || null
			}
		}
	}
}

// allNull makes a vector of n NULLs.
func (r *result) allNull(n int) *column.Vector {
	r.v = column.Vector{Type: column.Null, Const: true, Len: n}
	return &r.v
}

// sized returns s with n elements of any content.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// numbers is a column as numbers; one element stands for all rows.
type numbers struct {
	values []float64
	nulls  []bool // nil = no NULL
}

func (n *numbers) at(i int) float64 { return at(n.values, i) }

// at returns element i of a list in which one element stands for all.
func at[T any](list []T, i int) T {
	if len(list) == 1 {
		return list[0]
	}
	return list[i]
}

func isNull(nulls []bool, i int) bool { return nulls != nil && at(nulls, i) }

// numberReader reads columns as numbers: texts are parsed, instants are Unix milliseconds, what is no number is NaN.
type numberReader struct {
	buf   []float64
	nulls []bool
}

func (r *numberReader) read(v *column.Vector) numbers {
	rows := stored(v)
	if v.Type == column.Null {
		return numbers{nanOnly, nullOnly}
	}
	if v.Floats != nil {
		return numbers{v.Floats[:rows], cut(v.Nulls, rows)}
	}
	r.buf = sized(r.buf, rows)
	switch {
	case v.Strings != nil:
		for i, s := range v.Strings[:rows] {
			if i > 0 && s == v.Strings[i-1] {
				r.buf[i] = r.buf[i-1]
				continue
			}
			r.buf[i] = column.ParseFloat(s)
		}
	case v.Values != nil:
		return r.mixed(v, rows)
	case v.Type == column.Boolean:
		for i := range r.buf {
			r.buf[i] = nanOnly[0]
		}
	default:
		for i, n := range v.Ints[:rows] {
			r.buf[i] = float64(n)
		}
	}
	return numbers{r.buf, cut(v.Nulls, rows)}
}

func (r *numberReader) mixed(v *column.Vector, rows int) numbers {
	r.nulls = sized(r.nulls, rows)
	for i, x := range v.Values[:rows] {
		r.nulls[i] = x.IsNull() || v.Nulls != nil && v.Nulls[i]
		r.buf[i] = x.Number()
	}
	return numbers{r.buf, r.nulls}
}

// stored returns how many rows the slices of v hold.
func stored(v *column.Vector) int {
	if v.Const {
		return min(v.Len, 1)
	}
	return v.Len
}

func cut(nulls []bool, rows int) []bool {
	if nulls == nil {
		return nil
	}
	return nulls[:rows]
}

// texts is a column as texts; one element stands for all rows.
type texts struct {
	values []string
	nulls  []bool
}

// textReader reads columns as texts by the #.## rule. NaN has none: it is NULL.
type textReader struct {
	buf   []string
	nulls []bool
	bytes []byte
	ends  []int
}

func (r *textReader) read(v *column.Vector) texts {
	rows := stored(v)
	switch {
	case v.Type == column.Null:
		return texts{emptyOnly, nullOnly}
	case v.Strings != nil:
		return texts{v.Strings[:rows], cut(v.Nulls, rows)}
	}
	r.buf, r.nulls, r.ends = sized(r.buf, rows), sized(r.nulls, rows), sized(r.ends, rows)
	r.bytes = r.bytes[:0]
	for i := range rows {
		x := v.Value(i)
		r.nulls[i] = x.IsNull() || x.IsNaN()
		r.bytes = x.AppendText(r.bytes)
		r.ends[i] = len(r.bytes)
	}
	all, from := string(r.bytes), 0
	for i, end := range r.ends {
		r.buf[i] = all[from:end]
		from = end
	}
	return texts{r.buf, r.nulls}
}
