// Package inorder brings work that is done in any order, by several at once, back into its order. What is kept of each piece until its turn, and how much may be,
// is the caller's.
package inorder

import (
	"context"
	"iter"
	"sync"
)

// Gate lets pieces of work in and waits for the one that is due. Its fields are guarded by its lock; who changes what others wait for calls Broadcast.
type Gate struct {
	sync.Mutex
	changed sync.Cond
	width   int

	Due     int   // the piece whose turn it is
	Stopped bool  // nobody waits for what is not done
	Ended   bool  // nothing more comes
	Failure error // of what ended
}

// Open makes the gate ready. From the piece that is due on, width may be at work or wait for their turn.
func (g *Gate) Open(width int) { g.changed.L, g.width = &g.Mutex, width }

// Wait waits until something changed. With the lock.
func (g *Gate) Wait() { g.changed.Wait() }

// Broadcast wakes all that wait.
func (g *Gate) Broadcast() { g.changed.Broadcast() }

// Enter waits until piece n may be in flight and reports whether it still matters.
func (g *Gate) Enter(n int) bool {
	g.Lock()
	defer g.Unlock()
	for n >= g.Due+g.width && !g.Stopped {
		g.Wait()
	}
	return !g.Stopped
}

// Stop sends away all that wait, and lets nobody in.
func (g *Gate) Stop() {
	g.Lock()
	defer g.Unlock()
	g.Stopped = true
	g.Broadcast()
}

// end notes that work has returned.
func (g *Gate) end(err error) {
	g.Lock()
	defer g.Unlock()
	g.Ended, g.Failure = true, err
	g.Broadcast()
}

// Run does work, which lets its pieces through the gate, beside the caller, and yields what next gives until it says that there is no more; at most one error,
// the last. It returns when work has. The gate stops when the caller leaves, and with ctx.
func Run[T any](ctx context.Context, g *Gate, work func(context.Context) error, next func(context.Context) (item T, some bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		var working sync.WaitGroup
		unhook := context.AfterFunc(ctx, g.Stop)
		defer func() {
			unhook()
			g.Stop()
			cancel()
			working.Wait()
		}()
		working.Go(func() { g.end(work(inner)) })
		for {
			item, some, err := next(ctx)
			if err != nil {
				yield(*new(T), err)
				return
			}
			if !some || !yield(item, nil) {
				return
			}
		}
	}
}
