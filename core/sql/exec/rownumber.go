package exec

import (
	"context"
	"math"

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
