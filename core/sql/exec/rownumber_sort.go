package exec

import (
	"context"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// byPartition yields the rows of the input partition by partition, in order. Samples come by entity and time: when partitions begin with the entity, that is
// the order already, or what is to be sorted are the rows of one entity at a time.
func (x *execution) byPartition(ctx context.Context, op *plan.RowNumber, in stream) stream {
	keys := partitionKeys(op)
	rest, ok := x.afterEntity(keys)
	switch {
	case !ok || !inNaturalOrder(op.In):
		return x.sorted(ctx, keys, 0, in)
	case len(rest) == 0 || len(rest) == 1 && !rest[0].Desc && x.isColumn(rest[0].Expr, plan.ScanTime):
		return in
	}
	return x.sortedByEntity(ctx, rest, in)
}

// afterEntity returns the keys that follow the entity of a scan of one metric; ok is false when there is another one before it.
func (x *execution) afterEntity(keys []plan.Key) (rest []plan.Key, ok bool) {
	for i, k := range keys {
		switch {
		case k.Desc:
			return nil, false
		case x.isColumn(k.Expr, plan.ScanEntity):
			return keys[i+1:], true
		case !x.isColumn(k.Expr, plan.ScanMetric):
			return nil, false
		}
	}
	return nil, false
}

// isColumn reports whether an expression is a column of its input: then it returns the very vector.
func (x *execution) isColumn(node expr.Node, at int) bool {
	if c := expr.Columns(node); len(c) != 1 || c[0] != at {
		return false
	}
	probe := column.Batch{Columns: make([]*column.Vector, at+1)}
	probe.Columns[at] = &column.Vector{Type: node.Type()}
	v, err := node.Eval(x.env, &probe)
	return err == nil && v == probe.Columns[at]
}

// sortedByEntity sorts the rows of each entity of a scan.
func (x *execution) sortedByEntity(ctx context.Context, keys []plan.Key, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		s := x.newSorter(keys, 0)
		defer func() { s.close() }()
		entity := x.newKeying([]plan.Key{{Expr: place{plan.ScanEntity, column.String}}})
		var starts []bool
		for b, err := range in {
			if err == nil {
				err = entity.load(b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			starts = entity.changes(starts, b.Len)
			for from := 0; from < b.Len; {
				if starts[from] {
					if !pass(s.rows(ctx), yield) {
						return
					}
					s.close()
					s = x.newSorter(keys, 0)
				}
				to := from + 1
				for to < b.Len && !starts[to] {
					to++
				}
				if err := s.add(b.Slice(from, to)); err != nil {
					yield(nil, err)
					return
				}
				from = to
			}
		}
		pass(s.rows(ctx), yield)
	}
}

// pass yields all of a stream and reports whether to go on.
func pass(s stream, yield func(*column.Batch, error) bool) bool {
	for b, err := range s {
		if !yield(b, err) || err != nil {
			return false
		}
	}
	return true
}
