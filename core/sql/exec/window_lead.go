package exec

import (
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// Functions that look ahead are computed after the others. For that looksBack appends to the columns of the input and of the functions
//
//	for each function that looks ahead: its argument, its default
//	the number of the first row of the partition
//
// and rows wait until as many have come as the function that looks farthest needs.

// looksAhead reports whether some function does.
func looksAhead(op *plan.Window) bool { return farthest(op) > 0 }

// farthest returns how many rows ahead functions look.
func farthest(op *plan.Window) (most int64) {
	for i := range op.Functions {
		if offset, ahead := offsetOf(&op.Functions[i]); ahead {
			most = max(most, offset)
		}
	}
	return most
}

// later stands for a function that looks ahead.
type later struct{}

func (later) size() int64 { return 0 }

func (later) rows(w *windowRows) (*column.Vector, error) {
	return &column.Vector{Type: column.Null, Const: true, Len: w.Len}, nil
}

// appendAhead appends what functions that look ahead need.
func (s *windowState) appendAhead(out *column.Batch) error {
	if !looksAhead(s.op) {
		return nil
	}
	for i := range s.op.Functions {
		f := &s.op.Functions[i]
		if _, ahead := offsetOf(f); !ahead {
			continue
		}
		v, err := f.Args[0].Eval(s.x.env, s.Batch)
		if err != nil {
			return err
		}
		otherwise, err := evalOrNull(s.x, f.Default, s.Batch)
		if err != nil {
			return err
		}
		out.Columns = append(out.Columns, v, otherwise)
	}
	out.Columns = append(out.Columns, &column.Vector{Type: column.Bigint, Len: s.Len, Ints: s.starts[:s.Len]})
	return nil
}

// lookAhead computes the functions that look ahead.
func (x *execution) lookAhead(op *plan.Window, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		w := waiting{account: account{memory: x.Memory}, op: op}
		defer func() { w.release() }()
		most := farthest(op)
		for b, err := range in {
			if err == nil {
				err = w.add(b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for len(w.batches) > 0 && w.rows-int64(w.batches[0].Len) >= most {
				if !yield(w.first(), nil) {
					return
				}
				w.drop()
			}
		}
		for len(w.batches) > 0 {
			if !yield(w.first(), nil) {
				return
			}
			w.drop()
		}
	}
}

// waiting is batches whose functions cannot be computed yet.
type waiting struct {
	account
	op      *plan.Window
	batches []*column.Batch
	sizes   []int64 // in bytes
	rows    int64
}

// add keeps a copy of b.
func (w *waiting) add(b *column.Batch) error {
	if b.Len == 0 {
		return nil
	}
	size, own := int64(0), &column.Batch{Len: b.Len}
	for _, v := range b.Columns {
		if !v.Const {
			size += runSize(v, span{0, b.Len})
		}
		own.Columns = append(own.Columns, &column.Vector{Type: v.Type, Const: v.Const, Len: b.Len, Ints: slices.Clone(v.Ints), Floats: slices.Clone(v.Floats),
			Strings: slices.Clone(v.Strings), Values: slices.Clone(v.Values), Nulls: slices.Clone(v.Nulls), Exact: slices.Clone(v.Exact)})
	}
	w.batches, w.sizes, w.rows = append(w.batches, own), append(w.sizes, size), w.rows+int64(b.Len)
	return w.grow(size)
}

// drop forgets the first batch.
func (w *waiting) drop() {
	w.memory.Shrink(w.sizes[0])
	w.taken -= w.sizes[0]
	w.rows -= int64(w.batches[0].Len)
	w.batches, w.sizes = w.batches[1:], w.sizes[1:]
}

// first returns the first batch with all its functions.
func (w *waiting) first() *column.Batch {
	b := w.batches[0]
	width := len(b.Columns) - 1 // of the input and the functions: what follows is in pairs, then the partitions
	for i := range w.op.Functions {
		if _, ahead := offsetOf(&w.op.Functions[i]); ahead {
			width -= 2
		}
	}
	out := &column.Batch{Len: b.Len, Columns: b.Columns[:width:width]}
	next := width
	for i := range w.op.Functions {
		f := &w.op.Functions[i]
		if offset, ahead := offsetOf(f); ahead {
			out.Columns[width-len(w.op.Functions)+i] = w.ahead(f, next, offset)
			next += 2
		}
	}
	return out
}

// ahead computes a function for the first batch. Its argument is column at, its default the one after that.
func (w *waiting) ahead(f *plan.Analytic, at int, offset int64) *column.Vector {
	b := w.batches[0]
	starts := func(b *column.Batch) []int64 { return b.Columns[len(b.Columns)-1].Ints }
	out, own := column.NewBuilder(f.Type), starts(b)
	n := 0 // of the batch that is looked at, and the row there
	for n < len(w.batches) && offset >= int64(w.batches[n].Len) {
		offset -= int64(w.batches[n].Len)
		n++
	}
	for row := range b.Len {
		if n < len(w.batches) && starts(w.batches[n])[offset] == own[row] {
			out.AppendRow(w.batches[n].Columns[at], int(offset))
		} else {
			out.AppendRow(b.Columns[at+1], row)
		}
		if offset++; n < len(w.batches) && offset == int64(w.batches[n].Len) {
			n, offset = n+1, 0
		}
	}
	return out.Vector()
}
