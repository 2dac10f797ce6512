package storage

import (
	"context"
	"time"
)

// DefaultMergeRate leaves a flash card, or a disk that others use as well, time for the journal and for queries. A merge reads and computes about as fast, so
// that on a larger machine it costs little.
const DefaultMergeRate = 64 << 20

// pace spreads what merges write over time: bursts of a merge would make every fdatasync of the journal wait for them.
type pace struct {
	rate int64     // bytes a second; below 0 there is no bound
	next time.Time // when more may be written; the worker's
}

// wait waits until what was written has had its time, and flushes meanwhile when memory is full: a flush is never held up, and takes its time from the merge.
func (p *pace) wait(ctx context.Context, written int, wake <-chan struct{}, flush func()) {
	if p.rate < 0 {
		return
	}
	now := time.Now()
	if p.next.Before(now) { // time that nobody used is not made up for
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(written) / float64(p.rate) * float64(time.Second)))
	timer := time.NewTimer(p.next.Sub(now))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-ctx.Done(): // the writer looks
			return
		case <-wake:
			flush()
		}
	}
}
