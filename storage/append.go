package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Kinds of frames in the journal of a database.
const (
	frameBatch   = 1 // payload: a batch record
	frameReserve = 2 // payload: uvarint, the highest position that batches which are not journaled may take
)

// reserveStep is how many positions a reserve frame sets aside: one small frame for 65,536 batches that are not to be stored.
const reserveStep = 1 << 16

// Append implements core.Log. The batch is visible to readers and to Tail when it returns. A batch whose alert changes are all stored already is
// the replay of one that was appended before a crash: it is acknowledged and dropped. The columns of b belong to the log from the call on.
//
// After an error from making the batch durable (code Unavailable or NoSpace at that point, or the end of ctx) the outcome is unknown: readers see
// the batch, a restart may not find it.
func (db *DB) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return core.Receipt{}, err
	}
	if err := checkShape(b); err != nil {
		return core.Receipt{}, err
	}
	if takesRoom(b) {
		if err := db.room(ctx, b.Origin.Door); err != nil {
			return core.Receipt{}, err
		}
	}
	e := db.encoders.Get().(*encoder)
	defer db.release(e)
	a := appending{whole: b, part: storedPart(b), encoder: e}
	if a.part != nil {
		if err := e.encode(db.packer, a.part); err != nil {
			return core.Receipt{}, err
		}
	}
	if err := db.place(&a); err != nil {
		return core.Receipt{}, err
	}
	if a.part == nil {
		return a.receipt, nil
	}
	durability, err := db.journal.Commit(ctx, a.ticket)
	if err != nil {
		return core.Receipt{}, journalError(err)
	}
	a.receipt.Durability = core.Journaled
	if durability == journal.Synced {
		a.receipt.Durability = core.Synced
	}
	return a.receipt, nil
}

// takesRoom reports whether a batch stores something: what only deletes is welcome on a full disk.
func takesRoom(b *core.Batch) bool {
	return b.Samples.Len()+len(b.Messages)+len(b.Properties)+len(b.Documents)+len(b.Alerts) > 0
}

// keepEncoder bounds what an encoder that waits for its next batch keeps: some tens of thousands of series. The collector frees those that nobody wants.
const keepEncoder = 4 << 20

func (db *DB) release(e *encoder) {
	if cap(e.body)+cap(e.arena)+cap(e.payload) <= keepEncoder {
		db.encoders.Put(e)
	}
}

// appending is one batch on its way through Append.
type appending struct {
	whole   *core.Batch
	part    *core.Batch // what of it is to be stored, nil for nothing
	encoder *encoder
	ticket  journal.Ticket
	receipt core.Receipt
}

// place gives the batch its position and puts it in the journal, the state and the ring, in this order and in the order of positions.
func (db *DB) place(a *appending) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.closed {
		return core.Errorf(core.Unavailable, "the database is closed")
	}
	now := max(db.opts.Now(), db.mu.received)
	replayed, err := db.history.replayed(a.whole.Alerts)
	if err != nil {
		return err
	}
	if replayed {
		end, _ := db.ring.newest(0)
		a.ticket, a.receipt = db.mu.ticket, core.Receipt{Position: end, Received: db.mu.received}
		return nil
	}
	if err := db.catalog.check(a.whole.Documents, now); err != nil {
		return err
	}
	position, err := db.write(a, now)
	if err != nil {
		return err
	}
	db.mu.last, db.mu.received = position, now
	a.receipt = core.Receipt{Position: position, Received: now}
	a.whole.Received = now
	var shared []*series
	var failed error
	if a.part != nil {
		a.part.Received = now
		if err := db.apply(a.part, a.encoder); err != nil {
			failed = core.Wrap(core.Internal, err, "the batch is stored but could not be shown in full")
		}
		if a.part.Samples.Len() > 0 {
			shared = db.resolved
		}
	}
	db.ring.add(core.Entry{Position: position, Batch: keep(a.whole, shared)})
	if db.full() {
		db.flusher.poke()
	}
	return failed
}

// write journals the stored part, or sees to it that the position of a batch without one is never given again. Callers hold mu.
func (db *DB) write(a *appending, now core.Time) (core.Position, error) {
	position := db.mu.last + 1
	f := journal.Frame{Position: journal.Position(position), Received: int64(now), Kind: frameBatch, Depth: a.whole.Origin.Depth}
	switch {
	case a.part != nil:
		f.Payload = a.encoder.payload
	case position <= db.mu.reserved:
		return position, nil
	default:
		f.Kind, f.Payload = frameReserve, binary.AppendUvarint(nil, uint64(position)+reserveStep)
	}
	ticket, err := db.journal.Write(f)
	if err != nil {
		return 0, journalError(err)
	}
	db.mu.ticket, a.ticket = ticket, ticket
	if f.Kind == frameReserve {
		db.mu.reserved = position + reserveStep
		position++
	}
	return position, nil
}

// retryAfter is what a client is told to wait when the disk refuses: some group commits on a slow SD card.
const retryAfter = 5 * time.Second

// journalError says in the terms of core what the journal could not do.
func journalError(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, vfs.ErrNoSpace):
		return core.Wrap(core.NoSpace, err, "the disk is full: nothing can be stored until there is room, reading goes on")
	case errors.Is(err, journal.ErrTooLarge):
		return core.Wrap(core.TooLarge, err, "the batch is too large: send it in parts")
	case errors.Is(err, journal.ErrClosed):
		return core.Wrap(core.Unavailable, err, "the database is closed")
	}
	return &core.Error{Code: core.Unavailable, Text: "the disk does not accept writes", Cause: err, RetryAfter: retryAfter}
}
