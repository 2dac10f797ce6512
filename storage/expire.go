package storage

import (
	"context"
	"time"
)

// Bounds of the time between two sweeps. A sweep looks at every message, some 50 ms for a million of them; what has expired since the last one takes
// memory and is not shown.
const (
	sweepOften  = time.Second
	sweepSeldom = time.Hour
)

// ExpireMessages frees the memory of messages that are older than their retention, until ctx ends. It writes nothing: the journal is replayed with
// the same rule.
func (db *DB) ExpireMessages(ctx context.Context) error { return db.msgs.expire(ctx) }

// expire sweeps some times in each retention.
func (s *messages) expire(ctx context.Context) error {
	if s.retention <= 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(min(max(s.retention/8, sweepOften), sweepSeldom))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.sweep()
		}
	}
}
