package exec

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// rowNumber numbers rows in partitions. Where only the first few of each are wanted, no others are held; otherwise all rows are sorted.
func (x *execution) rowNumber(ctx context.Context, op *plan.RowNumber) stream {
	in := x.open(ctx, op.In)
	if most, ok := mostOf(op); ok && most <= mostHeld {
		return x.firstRows(ctx, op, in)
	}
	return x.numbered(op, x.byPartition(ctx, op, in))
}

// mostHeld is how many rows of a partition are found by comparing each row with those that are held: beyond it a sort costs less.
const mostHeld = 1000

// mostOf returns up to which number rows are kept; ok is false when there is no such number.
func mostOf(op *plan.RowNumber) (most int64, ok bool) {
	switch op.Op {
	case "<=", "=":
		return op.Number, true
	case "<":
		if op.Number == math.MinInt64 {
			return 0, true
		}
		return op.Number - 1, true
	}
	return 0, false
}

// keeps reports whether the row of a number is kept.
func keeps(op *plan.RowNumber, n int64) bool {
	switch op.Op {
	case "<":
		return n < op.Number
	case "<=":
		return n <= op.Number
	case ">":
		return n > op.Number
	case ">=":
		return n >= op.Number
	case "=":
		return n == op.Number
	}
	return true
}

// partitionKeys sorts partition by partition, and in each by Order.
func partitionKeys(op *plan.RowNumber) []plan.Key {
	return append(keysOf(op.Partition), op.Order...)
}

// keysOf makes ascending keys of expressions.
func keysOf(nodes []expr.Node) []plan.Key {
	keys := make([]plan.Key, len(nodes))
	for i, node := range nodes {
		keys[i].Expr = node
	}
	return keys
}

// numbered adds the numbers to rows that are sorted, and drops those that are not kept.
func (x *execution) numbered(op *plan.RowNumber, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		partition, order := x.newKeying(keysOf(op.Partition)), x.newKeying(op.Order)
		count := numbering{op: op}
		var partitions, ties []bool // where a partition, or another rank, begins
		for b, err := range in {
			if err == nil {
				err = partition.load(b)
			}
			if err == nil {
				err = order.load(b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			count.begin()
			partitions, ties = partition.changes(partitions, b.Len), order.changes(ties, b.Len)
			for i := range b.Len {
				count.next(i, partitions[i], ties[i])
			}
			if out := count.rows(b); out.Len > 0 && !yield(out, nil) {
				return
			}
		}
	}
}

// numbering numbers rows that come partition by partition.
type numbering struct {
	op      *plan.RowNumber
	started bool
	number  int64
	rank    int64
	dense   int64

	picks   []int32    // rows of the batch that are kept
	columns [3][]int64 // row_number, rank and dense_rank of those
}

func (c *numbering) begin() {
	c.picks = c.picks[:0]
	for i := range c.columns {
		c.columns[i] = c.columns[i][:0]
	}
}

// next numbers row i.
func (c *numbering) next(i int, partition, order bool) {
	if partition || !c.started {
		c.started, c.number, c.rank, c.dense = true, 0, 0, 0
		order = true
	}
	c.number++
	if order {
		c.rank = c.number
		c.dense++
	}
	if keeps(c.op, c.number) {
		c.picks = append(c.picks, int32(i))
		for j, n := range [...]int64{c.number, c.rank, c.dense} {
			c.columns[j] = append(c.columns[j], n)
		}
	}
}

// rows returns the rows of b that are kept, with their numbers.
func (c *numbering) rows(b *column.Batch) *column.Batch {
	out := &column.Batch{Len: len(c.picks)}
	if out.Len == 0 {
		return out
	}
	for _, v := range b.Columns {
		if out.Len < b.Len {
			v = v.Gather(c.picks, nil)
		}
		out.Columns = append(out.Columns, v)
	}
	for i := range c.columns {
		out.Columns = append(out.Columns, &column.Vector{Type: column.Bigint, Len: out.Len, Ints: c.columns[i]})
	}
	return out
}

// keying evaluates keys and compares them from row to row.
type keying struct {
	x       *execution
	keys    []plan.Key
	vectors []*column.Vector
	last    []byte // key of the last row of the batch before
	some    bool   // there is one
	key     []byte
}

func (x *execution) newKeying(keys []plan.Key) *keying {
	return &keying{x: x, keys: keys, vectors: make([]*column.Vector, len(keys))}
}

// load evaluates the expressions for the rows of b.
func (k *keying) load(b *column.Batch) (err error) {
	for i := range k.keys {
		if k.vectors[i], err = k.keys[i].Expr.Eval(k.x.env, b); err != nil {
			return err
		}
	}
	return nil
}

// of returns the key of row i, whose bytes sort as the expressions do; it is valid until the next call.
func (k *keying) of(i int) []byte {
	k.key = k.key[:0]
	for j, v := range k.vectors {
		if k.keys[j].Desc {
			k.key = appendDescKey(k.key, v, i)
		} else {
			k.key = appendKey(k.key, v, i)
		}
	}
	return k.key
}

// compare compares two rows of the batch as their keys do.
func (k *keying) compare(i, j int32) int {
	for n, v := range k.vectors {
		if c := column.Compare(v, int(i), v, int(j)); c != 0 {
			if k.keys[n].Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// constant reports whether all rows have the key of row 0.
func (k *keying) constant() bool {
	return !slices.ContainsFunc(k.vectors, func(v *column.Vector) bool { return !v.Const && v.Type != column.Null })
}

// changes reports for each of n rows whether it differs from the one before, in the batch before for row 0; without keys none does. dst is overwritten.
func (k *keying) changes(dst []bool, n int) []bool {
	dst = append(dst[:0], make([]bool, n)...)
	if n == 0 || len(k.keys) == 0 {
		return dst
	}
	dst[0] = !k.some || !bytes.Equal(k.of(0), k.last)
	for _, v := range k.vectors {
		if v.Const || v.Type == column.Null {
			continue
		}
		for i := 1; i < n; i++ {
			dst[i] = dst[i] || column.Compare(v, i, v, i-1) != 0
		}
	}
	k.last, k.some = append(k.last[:0], k.of(n-1)...), true
	return dst
}
