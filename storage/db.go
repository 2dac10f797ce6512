// Package storage is the local database: a journal on disk, recent state in memory, and everything older in immutable files.
//
// # Reading map
//
//	db.go         Open, Close: lock, files, replay             append.go   Append: one batch from the caller to disk and to readers
//	record.go     batch -> bytes, decode.go bytes -> batch     tail.go     Tail, Wait, End: ring.go in memory, else from disk
//	state.go      how a batch changes what readers see: head.go samples, messages.go, and what is in tables.go:
//	              properties.go, history.go, catalog.go documents (documents.go how they are stored, superseded.go the versions of entities)
//	generation.go samples in memory                            view.go     the layers that a reader sees, scanner.go reads a series through them
//	flush.go      from memory to files, shelf.go files alike   manifest.go which files there are, sampleshelf.go and merge.go those of samples
//	read.go       Reader and Catalog, select.go their filters  metadata.go lists of metrics and entities, renames; newest.go their newest samples
//	check.go      Check, dump.go Dump, restore.go Restore: the command line's                 report.go, usage.go   what Open found, and the state of an open database
//	backup.go     Backup: a copy while everything else goes on
//	expire.go     retention of messages
//
// FORMAT.md draws the files and what is in a frame. What is in memory is in the journal as well, and is made from it when the database is opened.
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
	fs       vfs.FS
	dir      string
	lock     io.Closer
	flusher  flusher
	found    Report // by Open
	gate     gate
	disk     disk
	doubts   doubts
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
	if err := refuseHalf(fs, dir); err != nil {
		return nil, Report{}, errors.Join(err, lock.Close())
	}
	db := &DB{opts: opts, fs: fs, dir: dir, lock: lock}
	db.ring.limit = opts.RingBytes
	db.flusher.pace.rate = opts.MergeRate
	db.doubts.marks = make(chan string, 16)
	db.encoders.New = func() any { return new(encoder) }
	report, err := db.recover()
	if err != nil {
		return nil, report, errors.Join(err, lock.Close())
	}
	report.Duration = time.Since(began)
	db.found = report
	db.flusher.start(db)
	return db, report, nil
}

// recover opens the files that the manifest names, then the journal, and replays what the files do not hold.
func (db *DB) recover() (report Report, err error) {
	if db.packer, err = newPacker(); err != nil {
		return report, err
	}
	files, err := db.openFiles(&report)
	if err != nil {
		return report, errors.Join(err, db.closeFiles())
	}
	// Until here nothing was changed, and the journal changes nothing before it has seen that all of its records can be read.
	opts, found := db.opts.journal(), journal.Recovery{}
	opts.Accept = acceptFrom(files.manifest.Position + 1)
	if db.journal, found, err = journal.Open(db.fs, filepath.Join(db.dir, journalDir), opts); err != nil {
		return report, errors.Join(fmt.Errorf("storage: %w", err), db.closeFiles())
	}
	if err := db.settleFiles(files, &report); err != nil {
		return report, errors.Join(err, db.journal.Close(context.Background()), db.closeFiles())
	}
	report.addJournal(found)
	if err := db.replay(&report); err != nil {
		return report, errors.Join(err, db.journal.Close(context.Background()), db.closeFiles())
	}
	return report, nil
}

// Close makes everything durable that was appended, in every mode, waits for the worker, and gives up the lock. What is in memory stays in the journal. Batches are refused from then on; readers that are
// running finish.
func (db *DB) Close(ctx context.Context) error {
	db.mu.Lock()
	closed := db.mu.closed
	db.mu.closed = true
	db.mu.Unlock()
	if closed {
		return nil
	}
	db.flusher.end()
	err := db.journal.Close(ctx)
	return errors.Join(err, db.closeFiles(), db.lock.Close())
}
