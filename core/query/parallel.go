package query

import (
	"context"
	"iter"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/inorder"
)

// inFlight is how many series, from the one that is due on, may be at work or wait for their turn: enough that no processor waits for a long one.
const inFlight = 64

// spare is how many samples, 4 MiB of them, the series after the one that is due may hold together; past it they wait for their turn. The one that is due
// holds what the limits allow.
const spare = 1 << 18

// parallel returns the reader, if it can read several series at once and the first stage takes their pieces; otherwise nil. Whatever looks at single samples
// before that stage, or wants others than the latest of all times in the range, goes without.
func (e *execution) parallel() core.Parallel {
	q := &e.query
	if len(e.stages) == 0 || e.stages[0].pieces == nil || !e.filters.idle() || e.outer || q.Versions || q.Limit > 0 || q.NewestFirst {
		return nil
	}
	p, _ := e.Reader.(core.Parallel)
	return p
}

// scanned yields, in key order, what the first stage makes of the series that load would yield. Several are at work at once.
func (e *execution) scanned(ctx context.Context, from core.Parallel) flow {
	return func(yield func(*Result, error) bool) {
		if _, stored := stores[e.kind]; !stored || e.query.Range.Empty() {
			return
		}
		allowed, err := e.inserted(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		most, decimal := e.series()
		pieces := e.stages[0].pieces
		l := newLine(e.Source)
		scan := func(ctx context.Context) error {
			return core.Scan(ctx, from, e.scoped(), func(n int, key core.SeriesKey, in iter.Seq2[core.Piece, error]) error {
				return l.pass(n, func(hold holder) (t turn, err error) {
					if allowed != nil && !allowed[string(key.Append(nil))] {
						return turn{}, nil
					}
					k := key.Clone()
					r := &Result{Metric: k.Metric, Entity: k.Entity, Tags: k.Tags, Decimal: decimal}
					t.results, t.some, err = pieces(r, alive(ctx, in), hold)
					return t, err
				})
			})
		}
		for t, err := range inorder.Run(ctx, &l.Gate, scan, l.next) {
			if err == nil && t.some {
				err = most.add()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range t.results {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// turn is what was made of one series.
type turn struct {
	results []*Result
	some    bool // it has samples
	err     error
}

// holder is told how many samples of a series are kept. It waits while those ahead of their turn keep too many, and refuses what exceeds a limit.
type holder func(samples int) error

// line lets series be worked on in any order and brings them back into theirs. A series is in flight from the start of its work until its turn comes.
type line struct {
	inorder.Gate // its lock guards all below

	slots [inFlight]slot // of series n at n % inFlight, for those from the due one on
	total int            // samples in all slots
	held  held           // by one series at a time: what those ahead of their turn keep is bounded by spare
}

type slot struct {
	turn
	done bool
	size int // samples that are kept for the series, or that were made of it
}

func newLine(s Source) *line {
	l := &line{held: s.hold()}
	l.Open(inFlight)
	return l
}

// pass does the work for series n and leaves what came of it, be it an error, until its turn: those before it are not lost.
func (l *line) pass(n int, work func(holder) (turn, error)) error {
	if !l.Enter(n) {
		return context.Canceled
	}
	t, err := work(func(samples int) error { return l.hold(n, samples) })
	size := 0
	for _, r := range t.results {
		size += r.Samples.Len()
	}
	l.Lock()
	defer l.Unlock()
	l.resize(n, size)
	s := &l.slots[n%inFlight]
	s.turn, s.done = t, true
	s.err = err
	l.Broadcast()
	return nil
}

func (l *line) hold(n, samples int) error {
	l.Lock()
	defer l.Unlock()
	l.resize(n, samples)
	if l.Stopped {
		return context.Canceled
	}
	l.held.count = 0
	return l.held.add(samples)
}

// resize notes how many samples series n keeps, once there is room for them. With the lock.
func (l *line) resize(n, size int) {
	s := &l.slots[n%inFlight]
	for size > s.size && n > l.Due && l.total-l.slots[l.Due%inFlight].size+size-s.size > spare && !l.Stopped {
		l.Wait()
	}
	l.total += size - s.size
	s.size = size
}

// next waits for the turn of the series that is due, and ends the one before it. some is false after the last.
func (l *line) next(ctx context.Context) (t turn, some bool, err error) {
	l.Lock()
	defer l.Unlock()
	s := &l.slots[l.Due%inFlight]
	for !s.done && !l.Ended && !l.Stopped {
		l.Wait()
	}
	if !s.done && l.Ended {
		return turn{}, false, l.Failure
	}
	if err := ctx.Err(); err != nil {
		return turn{}, false, err
	}
	t = s.turn
	l.total -= s.size // the caller is done with it at the next call, or counts it himself
	*s = slot{}
	l.Due++
	l.Broadcast()
	return t, true, t.err
}
