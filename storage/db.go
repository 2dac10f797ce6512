// Package storage is the local database: a journal on disk, and the state that it leads to in memory.
//
// # Reading map
//
//	db.go      Open, Close: lock, recover, replay          append.go  Append: one batch from the caller to disk and to readers
//	record.go  batch -> bytes, decode.go bytes -> batch    tail.go    Tail, Wait, End: ring.go in memory, else from disk
//	state.go   what readers see, and how a batch changes it: head.go samples, records.go messages, properties and history, catalog.go documents
//	read.go    Reader and Catalog, select.go their filters metadata.go lists of metrics and entities, renames; newest.go their newest samples
//	check.go   Check and Dump for the command line, report.go what Open found
//	expire.go  retention of messages
//
// FORMAT.md draws the files and what is in a frame. The journal is the truth: everything else is made from it when the database
// is opened.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Names in a data directory.
const (
	lockFile   = "lock"
	journalDir = "journal"
)

// DB is an open database: core.Log, core.Reader and core.Catalog. All methods may be called concurrently.
type DB struct {
	world
	opts     Options
	lock     io.Closer
	journal  *journal.Journal
	packer   *packer
	ring     ring
	encoders sync.Pool // *encoder

	// mu orders appends: position, journal, state and ring change in one order. It is held across a write to the journal, never across an
	// fdatasync. The locks of the state and of the ring are taken inside it.
	mu struct {
		sync.Mutex
		last     core.Position  // the highest position that was ever given
		reserved core.Position  // positions up to here may be given to batches that are not journaled
		received core.Time      // of the newest batch
		ticket   journal.Ticket // of the newest frame
		closed   bool
	}
}

var (
	_ core.Log      = (*DB)(nil)
	_ core.Reader   = (*DB)(nil)
	_ core.Catalog  = (*DB)(nil)
	_ core.Metadata = (*DB)(nil)
)

// Open opens the database in dir, which it makes when absent, locks it, and replays the journal. The report says what was found; damage is in
// the report and is no error, since a server must start by itself.
func Open(fs vfs.FS, dir string, opts Options) (*DB, Report, error) {
	if err := opts.Validate(); err != nil {
		return nil, Report{}, err
	}
	opts = opts.withDefaults()
	began := time.Now()
	if err := fs.MkdirAll(dir); err != nil {
		return nil, Report{}, fmt.Errorf("storage: make %s: %w", dir, err)
	}
	lock, err := fs.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, Report{}, fmt.Errorf("storage: lock %s: %w: is another server using it?", dir, err)
	}
	db := &DB{opts: opts, lock: lock, world: world{state: newState(opts.CacheBytes), zone: opts.Zone, now: opts.Now}}
	db.catalog.versions = opts.Versions
	db.msgs.retention, db.msgs.now = opts.MessageRetention, opts.Now
	db.ring.limit = opts.RingBytes
	db.encoders.New = func() any { return new(encoder) }
	report, err := db.recover(fs, filepath.Join(dir, journalDir))
	if err != nil {
		db.index.Close()
		return nil, report, errors.Join(err, lock.Close())
	}
	report.Duration = time.Since(began)
	return db, report, nil
}

// recover opens the journal and replays it.
func (db *DB) recover(fs vfs.FS, dir string) (Report, error) {
	var err error
	if db.packer, err = newPacker(); err != nil {
		return Report{}, err
	}
	var found journal.Recovery
	if db.journal, found, err = journal.Open(fs, dir, db.opts.journal()); err != nil {
		return Report{}, fmt.Errorf("storage: %w", err)
	}
	report := newReport(found)
	if err := db.replay(&report); err != nil {
		return report, errors.Join(err, db.journal.Close(context.Background()))
	}
	return report, nil
}

// Close makes everything durable that was appended, in every mode, and gives up the lock. Batches are refused from then on; readers that are
// running finish.
func (db *DB) Close(ctx context.Context) error {
	db.mu.Lock()
	closed := db.mu.closed
	db.mu.closed = true
	db.mu.Unlock()
	if closed {
		return nil
	}
	err := db.journal.Close(ctx)
	db.index.Close()
	return errors.Join(err, db.lock.Close())
}
