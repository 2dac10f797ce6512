package exec

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// rows keeps rows of batches in columns and charges the memory of the query for them. The zero rows of an account is ready.
type rows struct {
	account
	columns []*column.Vector
	n       int
}

func (x *execution) newRows() *rows { return &rows{account: account{memory: x.Memory}} }

// newLooseRows returns rows that are charged to nobody: a batch that is put together and passed on.
func newLooseRows() *rows { return &rows{account: account{memory: NewMemory(0)}} }

// add appends all rows of b; none when there is no room for them.
func (r *rows) add(b *column.Batch) error { return r.addRun(b, span{0, b.Len}) }

// addRow appends row i of b.
func (r *rows) addRow(b *column.Batch, i int) error { return r.addRun(b, span{i, i + 1}) }

func (r *rows) addRun(b *column.Batch, s span) error {
	r.widen(b)
	var size int64
	for _, v := range b.Columns {
		size += runSize(v, s)
	}
	if err := r.grow(size); err != nil {
		return err
	}
	for j, v := range b.Columns {
		appendRun(r.columns[j], v, s)
	}
	r.n += s.to - s.from
	return nil
}

// runSize is how many bytes some rows of v take when they are kept.
func runSize(v *column.Vector, s span) (size int64) {
	n := int64(s.to - s.from)
	switch kindOf(v) {
	case texts:
		if v.Const {
			return 17 * n
		}
		for _, text := range v.Strings[s.from:s.to] {
			size += int64(len(text))
		}
		return size + 17*n
	case mixed:
		return 64 * n
	}
	return 9*n + int64(len(v.Exact))*24
}

func (r *rows) widen(b *column.Batch) {
	for j := len(r.columns); j < len(b.Columns); j++ {
		r.columns = append(r.columns, &column.Vector{Type: b.Columns[j].Type})
	}
}

// batch is a view of all rows, valid until the next change.
func (r *rows) batch() *column.Batch { return &column.Batch{Len: r.n, Columns: r.columns} }

// reset forgets the rows and gives their memory back. The columns keep their room.
func (r *rows) reset() {
	r.release()
	r.n = 0
	for _, v := range r.columns {
		clear(v.Strings)
		clear(v.Values)
		v.Len, v.Ints, v.Floats, v.Strings, v.Values = 0, v.Ints[:0], v.Floats[:0], v.Strings[:0], v.Values[:0]
		v.Nulls, v.Exact = nil, nil
	}
}

// appendRun appends some rows of v to dst, which is not Const. dst takes on how v holds its values when it has none so far; where they differ, whole numbers
// become floats, and others become single values.
func appendRun(dst, v *column.Vector, s span) {
	n := s.to - s.from
	if dst.Type == column.Null && v.Type != column.Null {
		dst.Type = v.Type
	}
	kind := kindOf(v)
	if kind == noValues {
		padNulls(dst, n)
		return
	}
	appendValues(dst, v, kind, s)
	appendNulls(dst, v, s)
	for _, e := range v.Exact {
		from, to := int(e.Index), int(e.Index)+1
		if v.Const {
			from, to = s.from, s.to
		}
		for i := max(from, s.from); i < min(to, s.to); i++ {
			dst.Exact = append(dst.Exact, core.DecimalAt{Index: uint32(dst.Len + i - s.from), Decimal: e.Decimal})
		}
	}
	dst.Len += n
}

// appendWhole appends a whole number to Floats, and its digits where these are more than a double has.
func appendWhole(dst *column.Vector, whole int64) {
	if d, ok := column.IntValue(column.Bigint, whole).Decimal(); ok {
		dst.Exact = append(dst.Exact, core.DecimalAt{Index: uint32(len(dst.Floats)), Decimal: d})
	}
	dst.Floats = append(dst.Floats, float64(whole))
}

// span is a run of rows; to is not in it.
type span struct{ from, to int }

// kind is which of the slices of a vector holds its values.
type kind uint8

const (
	noValues kind = iota
	ints
	floats
	texts
	mixed
)

func kindOf(v *column.Vector) kind {
	switch {
	case v.Ints != nil:
		return ints
	case v.Floats != nil:
		return floats
	case v.Strings != nil:
		return texts
	case v.Values != nil:
		return mixed
	}
	return noValues
}

// padNulls appends n NULLs.
func padNulls(dst *column.Vector, n int) {
	switch kindOf(dst) {
	case ints:
		dst.Ints = extend(dst.Ints, n)
	case floats:
		dst.Floats = extend(dst.Floats, n)
	case texts:
		dst.Strings = extend(dst.Strings, n)
	case mixed:
		dst.Values = extend(dst.Values, n)
	}
	if dst.Nulls == nil {
		dst.Nulls = make([]bool, dst.Len, dst.Len+n)
	}
	for range n {
		dst.Nulls = append(dst.Nulls, true)
	}
	dst.Len += n
}

func extend[T any](list []T, n int) []T {
	var zero T
	for range n {
		list = append(list, zero)
	}
	return list
}

func appendNulls(dst, v *column.Vector, s span) {
	n := s.to - s.from
	switch {
	case v.Nulls == nil && dst.Nulls == nil:
		return
	case dst.Nulls == nil:
		dst.Nulls = make([]bool, dst.Len, dst.Len+n)
	}
	switch {
	case v.Nulls == nil:
		dst.Nulls = extend(dst.Nulls, n)
	case v.Const:
		for range n {
			dst.Nulls = append(dst.Nulls, v.Nulls[0])
		}
	default:
		dst.Nulls = append(dst.Nulls, v.Nulls[s.from:s.to]...)
	}
}

// appendValues appends the values alone.
func appendValues(dst, v *column.Vector, kind kind, s span) {
	have := kindOf(dst)
	if have == noValues {
		have = kind
		start(dst, kind)
	}
	switch {
	case have == kind:
	case have == ints && kind == floats:
		dst.Floats = make([]float64, 0, 2*len(dst.Ints)+s.to-s.from)
		for _, whole := range dst.Ints {
			appendWhole(dst, whole)
		}
		dst.Ints, have = nil, floats
	case have == floats && kind == ints:
		for i := s.from; i < s.to; i++ {
			appendWhole(dst, v.Ints[v.Index(i)])
		}
		return
	default:
		loosen(dst)
		have = mixed
	}
	switch have {
	case ints:
		dst.Ints = appendSlice(dst.Ints, v.Ints, v, s)
	case floats:
		dst.Floats = appendSlice(dst.Floats, v.Floats, v, s)
	case texts:
		dst.Strings = appendSlice(dst.Strings, v.Strings, v, s)
	case mixed:
		for i := s.from; i < s.to; i++ {
			dst.Values = append(dst.Values, v.Value(i))
		}
	}
}

// start gives a vector whose rows so far are NULL a slice for its values.
func start(dst *column.Vector, kind kind) {
	switch kind {
	case ints:
		dst.Ints = make([]int64, dst.Len, dst.Len+1)
	case floats:
		dst.Floats = make([]float64, dst.Len, dst.Len+1)
	case texts:
		dst.Strings = make([]string, dst.Len, dst.Len+1)
	case mixed:
		dst.Values = make([]column.Value, dst.Len, dst.Len+1)
	}
}

// appendSlice appends some rows of src, which is one of the slices of v.
func appendSlice[T any](dst, src []T, v *column.Vector, s span) []T {
	if !v.Const {
		return append(dst, src[s.from:s.to]...)
	}
	for range s.to - s.from {
		dst = append(dst, src[0])
	}
	return dst
}

// loosen makes the values of dst single ones.
func loosen(dst *column.Vector) {
	values := make([]column.Value, dst.Len)
	for i := range values {
		values[i] = dst.Value(i)
	}
	dst.Ints, dst.Floats, dst.Strings, dst.Values, dst.Exact, dst.Type = nil, nil, nil, values, nil, column.Object
}

// gather sets dst to the rows of src that pick names, in its order. dst is overwritten and has memory of its own, but for constants and texts.
func gather(dst, src *column.Batch, pick []int32) {
	dst.Len = len(pick)
	for len(dst.Columns) < len(src.Columns) {
		dst.Columns = append(dst.Columns, &column.Vector{})
	}
	dst.Columns = dst.Columns[:len(src.Columns)]
	for j, v := range src.Columns {
		into := dst.Columns[j]
		if into.Const {
			into = nil // its memory is that of another
		}
		dst.Columns[j] = v.Gather(pick, into)
	}
}

// slice sets dst to a run of the rows of src, whose memory it shares.
func slice(dst, src *column.Batch, s span) {
	dst.Len = s.to - s.from
	dst.Columns = dst.Columns[:0]
	for _, v := range src.Columns {
		dst.Columns = append(dst.Columns, v.Slice(s.from, s.to))
	}
}
