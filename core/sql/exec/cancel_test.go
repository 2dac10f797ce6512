package exec

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// countdown is a context that ends when it has been asked often enough: cancelled at a place of the work, and not of the clock.
type countdown struct {
	context.Context
	calls, left atomic.Int64
}

func (c *countdown) Err() error {
	if c.calls.Add(1) > c.left.Load() {
		return context.Canceled
	}
	return nil
}

// Every operator asks often whether the query was cancelled, wherever it is in its work, and ends at once when it was.
func TestEveryOperatorAsksForCancel(t *testing.T) {
	const n = 20_000
	var l loader
	for _, metric := range []string{"m", "o"} {
		for _, entity := range []string{"a", "b"} {
			for i := range n {
				l.sample(key(metric, entity), core.Time(1+i)*1000, float64(i*7919%n))
			}
		}
	}
	for i := range 450 {
		l.sample(key("p", "a", "n", string(rune('a'+i%26))+string(rune('a'+i/26))), 1000, 1)
	}
	db, _, err := storage.Open(vfs.NewMem(), "/data", storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	l.batch.Origin = core.SystemOrigin(0)
	if _, err := db.Append(t.Context(), &l.batch); err != nil {
		t.Fatal(err)
	}
	// One worker, whose work comes in one order.
	alone := func(c *Config) {
		c.Reader, c.Catalog, c.Metadata, c.Workers, c.Memory = db, db, db, 1, NewMemory(1<<30)
	}
	s := example(t)
	numbers := func() *plan.Scan { s := scanOf("m"); s.Needs.Text = false; return s }
	product, byTime := joinOf(false, scanOf("p"), scanOf("p")), joinOf(false, scanOf("m"), scanOf("o"))
	product.Inputs[1].UseTags, byTime.Inputs[1].UseEntity = false, false
	analytic := func(name string, offset int64) plan.Operator {
		f := plan.Analytic{Aggregate: plan.Aggregate{Func: name, Args: []expr.Node{valuePlace}, Type: column.Double}, Offset: offset}
		return &plan.Window{In: numbers(), Functions: []plan.Analytic{f}}
	}
	fine := numbers()
	fine.Fill = readInterpolate(t, "1 second")
	fill := by(groupBy(numbers(), []int{plan.ScanEntity, plan.ScanTime}, "count(*)"), 250, dates.Millisecond)
	fill.Period.Fill, fill.Period.Number = ast.FillValue, 0
	for name, c := range map[string]struct {
		op    plan.Operator
		least int64 // times that it asks: what it does between two of them takes few milliseconds
	}{
		"scan":          {numbers(), 20},
		"sort":          {sortBy(numbers(), plan.Key{Expr: valuePlace}), 40},
		"top":           {&plan.Sort{In: numbers(), Keys: []plan.Key{{Expr: valuePlace}}, Keep: n}, 20},
		"group":         {groupBy(numbers(), []int{valueColumn}, "count(*)"), 20},
		"distinct":      {&plan.Distinct{In: pick(numbers(), valueColumn), Width: 1}, 20},
		"fill":          {fill, 100},
		"window":        {analytic("sum", 0), 20},
		"lead":          {analytic("lead", 100), 20},
		"row number":    {partitioned(numbers(), ">", 1, []expr.Node{entityPlace}, plan.Key{Expr: valuePlace}), 40},
		"first rows":    {partitioned(numbers(), "<=", 1, []expr.Node{valuePlace}, plan.Key{Expr: timePlace}), 20},
		"join":          {joinOf(true, scanOf("m"), scanOf("o")), 20},
		"join by time":  {byTime, 40},
		"product":       {product, 20},
		"interpolation": {fine, 20},
		"merged entity": {scanOf("p"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			whole := &countdown{Context: t.Context()}
			whole.left.Store(1 << 60)
			if _, err := tryRun(whole, s, c.op, alone); err != nil {
				t.Fatal(err)
			}
			all := whole.calls.Load()
			if all < c.least {
				t.Errorf("it asked %d times, want at least %d", all, c.least)
			}
			for _, part := range []int64{0, 3, 6, 8} {
				ctx := &countdown{Context: t.Context()}
				ctx.left.Store(all * part / 9)
				_, err := tryRun(ctx, s, c.op, alone)
				if core.CodeOf(err) != core.Canceled {
					t.Errorf("cancelled after %d of %d questions: error %v", ctx.left.Load(), all, err)
				}
				if late := ctx.calls.Load() - ctx.left.Load(); late > 12 {
					t.Errorf("cancelled after %d of %d questions, it asked %d times more", ctx.left.Load(), all, late)
				}
			}
		})
	}
}
