// Package exec runs a bound query: each operator of the plan becomes a stream of batches.
//
//	exec.go          Run, and which code an operator is
//	memory.go        what a query may hold
//	rows.go          rows that are kept, in columns
//	keys.go          values as bytes that sort and compare like SQL
//	simple.go        Row, Filter, Project, Limit
//	distinct.go      Distinct
//	scan.go          Scan: metrics one after the other
//	scan_order.go    the natural order: the series of an entity merged by time (scan_merge.go)
//	scan_series.go   blocks of one series become batches; scan_parallel.go reads several series at once
//	interpolate*.go  samples on a regular grid
//	table.go         Table: entities, metrics, messages, properties, alerts; view.go: other queries
//	join*.go         Join; detail.go at the times of the other tables
//	sort.go          Sort, with runs on disk (spill.go) when memory is short; sort_parts.go where rows come in parts that do not overlap
//	rownumber*.go    RowNumber; window*.go analytic functions
//	group.go         Group: hashing; period.go finds periods, fill.go fills empty ones
//	group_parted.go  groups in parts when memory is short; partition.go deals rows out to files
//	group_scan.go    groups of several series read at once; group_filter.go when a filter is a range of values
//	aggregate*.go    aggregate functions, over exact.go
package exec

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// Config is what a query runs on.
type Config struct {
	Reader   core.Reader
	Catalog  core.Catalog
	Metadata core.Metadata
	Alerts   core.OpenAlerts // optional: the table of open alerts
	Memory   *Memory
	SpillDir string        // where temporary files lie; "" = there are none, and what exceeds Memory is an error
	Spill    int64         // bytes that temporary files may have together; 0 = no limit
	Workers  int           // series that are read at once; at least 1
	Fetched  *atomic.Int64 // counts the samples that were read; nil = nobody asks
}

// stream is what an operator yields: batches, valid until the next one, and at most one error, which ends it. It may be ranged over again, which runs the operator
// again; never by two at a time.
type stream = iter.Seq2[*column.Batch, error]

// execution is one run of one query.
type execution struct {
	Config
	env   *expr.Env
	spill *spillSpace
	most  int // rows of a batch that expressions are computed for
	scans int // that may be open at one time

	stopped func() error // why the query is to end, for what takes long between two batches; nil = nobody ends it
}

// patience is how many steps pass between two questions whether the query is to end.
const patience = 1 << 16

// halted returns why the query is to end; nil = it is not.
func (x *execution) halted() error {
	if x.stopped == nil {
		return nil
	}
	return x.stopped()
}

// The memory of expressions. One holds the values of a batch, AND and OR copy the columns that their right side reads, so that a statement of a megabyte would hold
// gigabytes of values in batches of the usual size: it gets smaller ones.
const (
	valueBytes = 32 // of an expression in a row
	leastRows  = 8  // of a batch
	valueShare = 8  // part of the memory of a query
)

// fit sets the size of batches and takes the memory that the values of all expressions need.
func (x *execution) fit(q *plan.Query, held *account) error {
	n := int64(q.Computed()) * valueBytes
	x.most = column.Size
	if limit := x.Memory.Limit(); limit > 0 && n > 0 {
		x.most = int(min(max(limit/valueShare/n, leastRows), column.Size))
	}
	return held.grow(n * int64(min(x.most, leastRows)))
}

// Run yields the rows of a query. Batches are valid until the next one; an error, at most one, comes last. When the loop over them ends, no goroutine and no
// file of the query is left.
func Run(ctx context.Context, q *plan.Query, c Config) iter.Seq2[*column.Batch, error] {
	return func(yield func(*column.Batch, error) bool) {
		if c.Workers < 1 {
			c.Workers = 1
		}
		if c.Memory == nil {
			c.Memory = NewMemory(0)
		}
		x := &execution{Config: c, env: q.Env, spill: &spillSpace{}, stopped: ctx.Err, scans: plan.Scans(q.Root)}
		defer x.spill.close()
		held := account{memory: x.Memory}
		defer held.release()
		if err := x.fit(q, &held); err != nil {
			yield(nil, err)
			return
		}
		for b, err := range x.open(ctx, q.Root) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if b.Len > 0 && !yield(b, nil) {
				return
			}
		}
	}
}

// open returns the stream of an operator, in batches of the size that expressions are computed for.
func (x *execution) open(ctx context.Context, op plan.Operator) stream {
	rows := x.operator(ctx, op)
	if x.most == 0 || x.most >= column.Size {
		return rows
	}
	return func(yield func(*column.Batch, error) bool) {
		var part column.Batch
		for b, err := range rows {
			if err == nil {
				err = ctx.Err() // rows of so many expressions take long
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if b.Len <= x.most {
				if !yield(b, nil) {
					return
				}
				continue
			}
			for from := 0; from < b.Len; from += x.most {
				slice(&part, b, span{from, min(from+x.most, b.Len)})
				if !yield(&part, nil) {
					return
				}
			}
		}
	}
}

func (x *execution) operator(ctx context.Context, op plan.Operator) stream {
	switch op := op.(type) {
	case *plan.Row:
		return x.row()
	case *plan.Scan:
		return x.scan(ctx, op)
	case *plan.Table:
		return x.table(ctx, op)
	case *plan.View:
		return x.view(ctx, op)
	case *plan.Join:
		return x.join(ctx, op)
	case *plan.Filter:
		return x.filter(op.Condition, x.open(ctx, op.In))
	case *plan.RowNumber:
		return x.rowNumber(ctx, op)
	case *plan.Group:
		return x.group(ctx, op)
	case *plan.Window:
		return x.window(ctx, op)
	case *plan.Project:
		return x.project(op, x.open(ctx, op.In))
	case *plan.Distinct:
		return x.distinct(ctx, op, x.open(ctx, op.In))
	case *plan.Sort:
		return x.sort(ctx, op)
	case *plan.Limit:
		return x.limit(op, x.open(ctx, op.In))
	}
	return failing(core.Errorf(core.Internal, "sql: operator %T cannot be run", op))
}

// failing is a stream of one error.
func failing(err error) stream {
	return func(yield func(*column.Batch, error) bool) { yield(nil, err) }
}
