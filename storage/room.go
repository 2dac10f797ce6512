package storage

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Writers that are faster than the disk wait, or else memory would grow without end. The bounds are multiples of Options.FlushBytes: at the first the
// worker begins to write; while it writes, as much again may come in; at maxFull writers wait.
const maxFull = 3

// maxWait is how long a write waits for room before its client is told to come back.
const maxWait = 20 * time.Second

// gate is where writers wait for the worker.
type gate struct {
	mu     sync.Mutex
	change chan struct{} // closed and replaced when the worker has done something; nil while nobody waits
}

func (g *gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.change == nil {
		g.change = make(chan struct{})
	}
	return g.change
}

// signal lets writers look again.
func (g *gate) signal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.change != nil {
		close(g.change)
		g.change = nil
	}
}

// full reports whether there is enough in memory to write it to files.
func (db *DB) full() bool { return db.fresh() >= db.opts.FlushBytes }

// room waits until memory has room for more, and refuses when the disk has none.
func (db *DB) room(ctx context.Context, door core.Door) error {
	if err := db.roomOnDisk(door); err != nil {
		return err
	}
	if db.unwritten() < maxFull*db.opts.FlushBytes {
		return nil
	}
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for {
		changed := db.gate.wait()
		if db.unwritten() < maxFull*db.opts.FlushBytes {
			return nil
		}
		db.flusher.poke()
		if failure := db.flusher.failure.Load(); failure != nil {
			return journalError(*failure)
		}
		select {
		case <-changed:
		case <-timeout.C:
			return &core.Error{Code: core.Unavailable, Text: "the disk is too slow: recent data waits in memory to be written", RetryAfter: retryAfter}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
