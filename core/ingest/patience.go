package ingest

import (
	"context"
	"sync"
	"time"
)

// patience is the context of a wait for the rule engine. Most batches concern no rule, so that nobody waits: the timer is made when somebody asks for it.
type patience struct {
	context.Context // of the insert
	span            time.Duration

	once   sync.Once
	timed  context.Context
	cancel context.CancelFunc
}

// start returns the context that ends in time. Its span runs from the first question on, which comes before any wait.
func (p *patience) start() context.Context {
	p.once.Do(func() { p.timed, p.cancel = context.WithTimeout(p.Context, p.span) })
	return p.timed
}

// end frees the timer, if there is one. Whoever asks for the first time afterwards has the context of the insert.
func (p *patience) end() {
	p.once.Do(func() { p.timed, p.cancel = p.Context, func() {} })
	p.cancel()
}

// The methods of a context. All answer for the one with the timer; its values are what makes a context derived from it cheap.

func (p *patience) Deadline() (time.Time, bool) { return p.start().Deadline() }
func (p *patience) Done() <-chan struct{}       { return p.start().Done() }
func (p *patience) Err() error                  { return p.start().Err() }
func (p *patience) Value(key any) any           { return p.start().Value(key) }
