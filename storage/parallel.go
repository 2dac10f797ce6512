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

// scanShare is how many series a worker takes at a time: handing out one by one would cost more than reading the small ones.
const scanShare = 8

// Scan implements core.Parallel, with a worker for each processor. The caller's goroutine is one of them.
func (db *DB) Scan(ctx context.Context, q core.SeriesQuery, visit func(n int, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error) error {
	v := db.views.acquire()
	defer db.views.release(v)
	var list []found
	for f, err := range db.find(ctx, v, q) {
		if err != nil {
			return err
		}
		list = append(list, f)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() {
		sc := newScanner(v, db.state)
		defer sc.close()
		for {
			from := int(next.Add(scanShare)) - scanShare
			if from >= len(list) {
				return
			}
			for n := from; n < min(from+scanShare, len(list)); n++ {
				if ctx.Err() != nil {
					return
				}
				if err := visit(n, list[n].key, sc.pieces(list[n].id, q.Range)); err != nil {
					cancel(err)
					return
				}
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (len(list)+scanShare-1)/scanShare) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return context.Cause(ctx)
}
