package plan

import (
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// checkWidths fails when an expression of the plan reads a column that its input has not.
func checkWidths(t *testing.T, q *Query) {
	t.Helper()
	if width := (checker{t}).width(q.Root); width < len(q.Columns) {
		t.Errorf("the query has %d columns, its operator yields %d", len(q.Columns), width)
	}
}

type checker struct{ *testing.T }

func (c checker) reads(width int, nodes ...expr.Node) {
	c.Helper()
	for _, n := range nodes {
		if n == nil {
			continue
		}
		for _, i := range expr.Columns(n) {
			if i < 0 || i >= width {
				c.Fatalf("an expression reads column %d of %d", i, width)
			}
		}
	}
}

// width checks an operator and returns how many columns it yields.
func (c checker) width(op Operator) int {
	c.Helper()
	switch op := op.(type) {
	case *Scan:
		c.reads(len(op.Columns), op.Series, op.Filter)
		return len(op.Columns)
	case *Table:
		c.reads(len(op.Columns), op.Filter)
		return len(op.Columns)
	case *View:
		width := len(op.Query.Columns)
		checkWidths(c.T, op.Query)
		c.reads(width, op.Filter)
		return width
	case *Join:
		sum := 0
		for _, in := range op.Inputs {
			if width := c.width(in.In); width != in.Width {
				c.Fatalf("an input of %d columns is joined as one of %d", width, in.Width)
			}
			sum += in.Width
		}
		return sum + 3
	case *Filter:
		width := c.width(op.In)
		c.reads(width, op.Condition)
		return width
	case *RowNumber:
		width := c.width(op.In)
		c.reads(width, op.Partition...)
		for _, k := range op.Order {
			c.reads(width, k.Expr)
		}
		return width + 3
	case *Group:
		return c.group(op)
	case *Window:
		width := c.width(op.In)
		c.reads(width, append(op.Partition, op.Time)...)
		for _, f := range op.Functions {
			c.reads(width, append(f.Args, f.Default, f.Time)...)
		}
		return width + len(op.Functions)
	case *Project:
		c.reads(c.width(op.In), op.Exprs...)
		return len(op.Exprs)
	case *Distinct:
		return c.width(op.In)
	case *Sort:
		width := c.width(op.In)
		for _, k := range op.Keys {
			c.reads(width, k.Expr)
		}
		return width
	case *Limit:
		return c.width(op.In)
	}
	return 0
}

func (c checker) group(op *Group) int {
	width := c.width(op.In)
	c.reads(width, op.Keys...)
	c.reads(width, op.Carried...)
	for _, a := range op.Aggregates {
		c.reads(width, append(a.Args, a.Time)...)
	}
	if p := op.Period; p != nil && (p.ZoneKey >= width || p.Interval >= width || op.PeriodKey >= len(op.Keys)) {
		c.Fatalf("a period refers to column %d and %d of %d", p.ZoneKey, p.Interval, width)
	}
	return len(op.Keys) + len(op.Aggregates) + len(op.Carried)
}
