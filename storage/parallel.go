package storage

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
)

var _ core.Parallel = (*DB)(nil)

// scanShare is how many series a worker takes at most at a time: handing out one by one would cost more than reading the small ones. Towards the end it takes
// fewer, so that all workers end together.
const scanShare = 8

// chosen is the series of a query, in the order of their keys.
type chosen struct {
	db     *DB
	view   *view
	within core.Range
	list   []found
}

// Select implements core.Parallel.
func (db *DB) Select(ctx context.Context, q core.SeriesQuery) (core.Selection, error) {
	c := &chosen{db: db, view: db.views.acquire(), within: q.Range}
	for f, err := range db.find(ctx, c.view, q) {
		if err != nil {
			c.Close()
			return nil, err
		}
		c.list = append(c.list, f)
	}
	return c, nil
}

// Close implements core.Selection.
func (c *chosen) Close() { c.db.views.release(c.view) }

// Keys implements core.Selection.
func (c *chosen) Keys() iter.Seq[core.SeriesKey] {
	return func(yield func(core.SeriesKey) bool) {
		for i := range c.list {
			if !yield(c.list[i].key) {
				return
			}
		}
	}
}

// Scan implements core.Selection, with a worker for each processor. The caller's goroutine is one of them.
func (c *chosen) Scan(ctx context.Context, visit core.Visit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := max(min(runtime.GOMAXPROCS(0), len(c.list)), 1)
	next := share{most: len(c.list), workers: workers}
	work := func() {
		sc := newScanner(c.view, c.db.state)
		defer sc.close()
		for from, to := next.take(); from < to; from, to = next.take() {
			for n := from; n < to; n++ {
				if ctx.Err() != nil {
					return
				}
				if err := visit(n, c.list[n].key, sc.pieces(c.list[n].id, c.within)); err != nil {
					cancel(err)
					return
				}
			}
		}
	}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return context.Cause(ctx)
}

// share hands out numbers below most.
type share struct {
	most, workers int
	next          atomic.Int64
}

// take returns a run of numbers, an empty one when all are taken.
func (s *share) take() (from, to int) {
	for {
		from = int(s.next.Load())
		left := s.most - from
		to = from + min(max(left/(4*s.workers), 1), scanShare, left)
		if left <= 0 || s.next.CompareAndSwap(int64(from), int64(to)) {
			return from, max(to, from)
		}
	}
}
