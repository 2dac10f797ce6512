package query

import (
	"context"
	"iter"
	"sync"

	"github.com/tidemark-db/tidemark/core"
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
			return from.Scan(ctx, e.scoped(), func(n int, key core.SeriesKey, in iter.Seq2[core.Piece, error]) error {
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
		for t, err := range l.run(ctx, scan) {
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
	mu      sync.Mutex // guards all below
	changed sync.Cond
	due     int            // the series whose turn is next
	slots   [inFlight]slot // of series n at n % inFlight, for those from due on
	total   int            // samples in all slots
	held    held           // by one series at a time: what those ahead of their turn keep is bounded by spare
	stopped bool           // nobody waits for what is not done
	ended   bool           // nothing more comes
	failure error          // of what ended
}

type slot struct {
	turn
	done bool
	size int // samples that are kept for the series, or that were made of it
}

func newLine(s Source) *line {
	l := &line{held: s.hold()}
	l.changed.L = &l.mu
	return l
}

// pass does the work for series n and leaves what came of it, be it an error, until its turn: those before it are not lost.
func (l *line) pass(n int, work func(holder) (turn, error)) error {
	if !l.enter(n) {
		return context.Canceled
	}
	t, err := work(func(samples int) error { return l.hold(n, samples) })
	size := 0
	for _, r := range t.results {
		size += r.Samples.Len()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resize(n, size)
	s := &l.slots[n%inFlight]
	s.turn, s.done = t, true
	s.err = err
	l.changed.Broadcast()
	return nil
}

// enter waits until series n may be in flight and reports whether it still matters.
func (l *line) enter(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n >= l.due+inFlight && !l.stopped {
		l.changed.Wait()
	}
	return !l.stopped
}

func (l *line) hold(n, samples int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resize(n, samples)
	if l.stopped {
		return context.Canceled
	}
	l.held.count = 0
	return l.held.add(samples)
}

// resize notes how many samples series n keeps, once there is room for them. With mu.
func (l *line) resize(n, size int) {
	s := &l.slots[n%inFlight]
	for size > s.size && n > l.due && l.total-l.slots[l.due%inFlight].size+size-s.size > spare && !l.stopped {
		l.changed.Wait()
	}
	l.total += size - s.size
	s.size = size
}

// run calls scan, which passes every series, beside the caller and yields their turns in order, and at most one error, the last. It returns when scan has.
func (l *line) run(ctx context.Context, scan func(context.Context) error) iter.Seq2[turn, error] {
	return func(yield func(turn, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		var scanning sync.WaitGroup
		unhook := context.AfterFunc(ctx, l.stop)
		defer func() {
			unhook()
			l.stop()
			cancel()
			scanning.Wait()
		}()
		scanning.Go(func() {
			err := scan(inner)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ended, l.failure = true, err
			l.changed.Broadcast()
		})
		for {
			t, some, err := l.next(ctx)
			if err != nil || !some {
				if err != nil {
					yield(turn{}, err)
				}
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

func (l *line) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.changed.Broadcast()
}

// next waits for the turn of the series that is due, and ends the one before it. some is false after the last.
func (l *line) next(ctx context.Context) (t turn, some bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.slots[l.due%inFlight]
	for !s.done && !l.ended && !l.stopped {
		l.changed.Wait()
	}
	if !s.done && l.ended {
		return turn{}, false, l.failure
	}
	if err := ctx.Err(); err != nil {
		return turn{}, false, err
	}
	t = s.turn
	l.total -= s.size // the caller is done with it at the next call, or counts it himself
	*s = slot{}
	l.due++
	l.changed.Broadcast()
	return t, true, t.err
}
