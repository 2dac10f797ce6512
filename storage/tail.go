package storage

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
)

// Tail implements core.Log. Batches are shared by all readers and must not be changed. Batches that were not to be stored are yielded as long
// as they are in memory.
func (db *DB) Tail(ctx context.Context, p core.Position) iter.Seq2[core.Entry, error] {
	return func(yield func(core.Entry, error) bool) {
		at := p // of the last batch yielded
		page := make([]core.Entry, tailPage)
		for {
			n, floor := db.ring.after(at, page)
			if floor > 0 {
				if !db.fromDisk(ctx, at, floor)(yield) {
					return
				}
				at = floor
				continue
			}
			if n == 0 {
				return
			}
			for _, e := range page[:n] {
				if err := ctx.Err(); err != nil {
					yield(core.Entry{}, err)
					return
				}
				if !yield(e, nil) {
					return
				}
				at = e.Position
			}
			clear(page)
		}
	}
}

// fromDisk yields the journaled batches above p, up to the position last. The result reports whether the loop is to go on.
func (db *DB) fromDisk(ctx context.Context, p, last core.Position) func(yield func(core.Entry, error) bool) bool {
	return func(yield func(core.Entry, error) bool) bool {
		if first := core.Position(db.journal.Status().First); p+1 < first {
			yield(core.Entry{}, core.Errorf(core.Unavailable, "the log begins at position %d: what follows position %d is gone", first, p))
			return false
		}
		for f, err := range db.journal.Read(journal.Position(p + 1)) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && core.Position(f.Position) > last {
				return true
			}
			if err != nil {
				yield(core.Entry{}, journalError(err))
				return false
			}
			// A record that cannot be decoded was reported when the database was opened, and what was written since then can be.
			if e, isBatch, err := db.entryOf(f); err == nil && isBatch && !yield(e, nil) {
				return false
			}
		}
		return true
	}
}

// entryOf decodes a frame; isBatch is false for one that is not a batch.
func (db *DB) entryOf(f journal.Frame) (e core.Entry, isBatch bool, err error) {
	switch f.Kind {
	case frameReserve:
		return core.Entry{}, false, nil
	case frameBatch:
		b, err := db.packer.decodeRecord(f.Payload)
		if err != nil {
			return core.Entry{}, false, err
		}
		b.Received = core.Time(f.Received)
		return core.Entry{Position: core.Position(f.Position), Batch: b}, true, nil
	}
	return core.Entry{}, false, laterThan(f)
}

// reservedBy returns the position that a reserve frame names; 0 for one that cannot be read.
func reservedBy(f journal.Frame) core.Position {
	p, n := binary.Uvarint(f.Payload)
	if n != len(f.Payload) || n <= 0 {
		return 0
	}
	return core.Position(p)
}

// Wait implements core.Log.
func (db *DB) Wait(ctx context.Context, p core.Position) error {
	for {
		_, changed := db.ring.newest(p)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// End implements core.Log.
func (db *DB) End() core.Position {
	db.ring.mu.RLock()
	defer db.ring.mu.RUnlock()
	return db.ring.end
}
