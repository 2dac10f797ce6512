package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/samples"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/table"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// flusher moves state from memory to files. It has one worker; what is below mu is shared with those who ask it for something.
type flusher struct {
	shelves  []shelf
	manifest manifest  // that was written last, or read; the worker's
	expiry   core.Time // from which on files are looked at for what is past its retention; the worker's
	pending  *frozen   // what was frozen and is not in files yet; the worker's

	// orphans are files that a manifest names of which it is not known whether the next start finds it; the worker's.
	orphans []fileEntry

	facts samples.Facts // of the file of samples that was just written; the worker's

	wake  chan struct{} // something may be worth doing; holds one
	asked chan request
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed by the worker

	turn    int                      // whose files are looked at next for a merge; the worker's
	pace    pace                     // of merges; the worker's
	failure atomic.Pointer[error]    // of the last try; nil when it went well
	current atomic.Pointer[manifest] // what manifest is; never changed
	last    atomic.Pointer[flushed]  // nil: none since Open
	pins    pins
}

// start begins the work of a database that is open.
func (f *flusher) start(db *DB) {
	f.wake, f.asked = make(chan struct{}, 1), make(chan request)
	f.stop, f.done = make(chan struct{}), make(chan struct{})
	go db.run()
}

// end stops the worker, in the middle of a merge if need be, and waits for it.
func (f *flusher) end() {
	if f.stop != nil {
		close(f.stop)
		<-f.done
	}
}

// poke has the worker look whether there is something to do.
func (f *flusher) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// frozen is a moment of the state: what the shelves have frozen leads up to it.
type frozen struct {
	shelves []shelf // that have a frozen part
	next    manifest
}

// request asks the worker to do something now.
type request struct {
	do    func(ctx context.Context) error
	ctx   context.Context
	reply chan error
}

// run is the worker. Nothing is written while nothing comes in.
func (db *DB) run() {
	f := &db.flusher
	defer close(f.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the worker at the latest
		select {
		case <-f.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	timer := time.NewTimer(db.opts.FlushAge)
	defer timer.Stop()
	var retry time.Duration // 0, or how long to wait after a failure
	var until time.Time     // the end of that wait
	for {
		again := retry > 0
		select {
		case <-f.stop:
			return
		case r := <-f.asked:
			r.reply <- r.do(r.ctx)
			continue
		case <-f.wake:
			if again && time.Now().Before(until) {
				continue // writers that are faster than the disk would have it tried without end
			}
			retry = db.work(ctx, db.full())
		case broken := <-db.faulty:
			if err := db.discard(ctx, broken); err != nil {
				retry = db.failed("set a damaged file aside", err)
			}
		case broken := <-db.msgs.faulty:
			if err := db.discardMessages(ctx, broken); err != nil {
				retry = db.failed("set a damaged file aside", err)
			}
		case base := <-db.doubts.marks:
			if err := db.mark(base); err != nil {
				db.opts.Log("storage: " + err.Error())
			}
		case <-timer.C:
			retry = db.work(ctx, !again || db.full()) // what failed may be a merge, which is no reason to write small files
		}
		if retry > 0 {
			until = time.Now().Add(retry)
			timer.Reset(retry)
		} else {
			timer.Reset(db.opts.FlushAge)
		}
	}
}

// retryFlush is how long the worker waits after a failure: a full disk is not full for long in the best case, and trying costs little.
const retryFlush = 2 * time.Second

// work flushes when it is due, and merges what is worth it. The result is when to try again, 0 for when it is due.
func (db *DB) work(ctx context.Context, due bool) (retry time.Duration) {
	if due || db.flusher.pending != nil {
		err := db.flush(ctx)
		if errors.Is(err, vfs.ErrNoSpace) && db.giveReserve() {
			err = db.flush(ctx)
		}
		if err != nil {
			return db.failed("flush", err)
		}
	}
	for {
		more, err := db.mergeOne(ctx)
		if errors.Is(err, vfs.ErrNoSpace) && db.giveReserve() {
			more, err = db.mergeOne(ctx)
		}
		if err != nil {
			return db.failed("merge", err)
		}
		if !more || ctx.Err() != nil {
			if err := db.reserve(); err != nil {
				return db.failed("keep a reserve", err)
			}
			return 0
		}
		select {
		case <-db.flusher.wake: // a flush comes before the next merge, unless there are too many files
			if db.crowded() {
				db.flusher.poke()
				continue
			}
			if err := db.flushIfFull(ctx); err != nil {
				return db.failed("flush", err)
			}
		default:
		}
	}
}

// crowd is how many files of a kind merges leave at most when they keep up with flushes: some three in each of eight sizes.
const crowd = 24

// crowded reports whether merges have fallen behind. One flush makes a file of each kind, and one merge takes away three of one kind: in turns they would never catch up with writers that fill the memory as
// fast as it is flushed, and every read would look into all those files.
func (db *DB) crowded() bool {
	return slices.ContainsFunc(db.flusher.shelves, func(s shelf) bool { return len(s.entries()) > crowd })
}

func (db *DB) flushIfFull(ctx context.Context) error {
	if !db.full() {
		return nil
	}
	return db.flush(ctx)
}

// flush writes everything that is in memory now to files.
func (db *DB) flush(ctx context.Context) error {
	f := &db.flusher
	if f.pending == nil && !db.freeze() {
		return nil
	}
	began := time.Now()
	if err := db.journal.Sync(ctx); err != nil {
		return fmt.Errorf("make the journal durable: %w", err)
	}
	var made []opened
	for _, s := range f.pending.shelves {
		o, err := db.make(s, s.write)
		if err != nil {
			return db.unmake(made, err)
		}
		made = append(made, o)
	}
	next := f.pending.next
	next.Files = nil
	for _, s := range f.shelves {
		next.Files = append(next.Files, s.entries()...)
		if i := slices.Index(f.pending.shelves, s); i >= 0 {
			next.Files = append(next.Files, made[i].entry)
		}
	}
	if err := db.commit(next); err != nil {
		return db.unmake(made, err)
	}
	for i, s := range f.pending.shelves {
		s.adopt(made[i])
	}
	f.pending = nil
	db.prune()
	db.settled(began, made)
	return db.dropJournal()
}

// unmake gives up files that err has made useless: the next try writes others. Those that the next start may look for stay until a manifest without them
// is durable.
func (db *DB) unmake(made []opened, err error) error {
	errs := []error{err}
	var named *namedError
	for _, o := range made {
		if c, ok := o.file.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
		if errors.As(err, &named) {
			db.flusher.orphans = append(db.flusher.orphans, o.entry)
		} else {
			errs = append(errs, db.removeFile(o.entry))
		}
	}
	return errors.Join(errs...)
}

// freeze makes what is in memory the frozen parts; false when there is nothing that is not in files.
func (db *DB) freeze() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	p := &frozen{}
	for _, err := range db.state.faults {
		db.opts.Log("storage: a write could not build on what is stored: " + err.Error())
	}
	db.state.faults = nil
	db.state.stamp()
	for _, s := range db.flusher.shelves {
		if s.freeze() {
			p.shelves = append(p.shelves, s)
		}
	}
	m := db.flusher.manifest
	if len(p.shelves) == 0 && db.mu.last == m.Position {
		return false
	}
	// Samples and messages are numbered apart, and both go on from the one that is written: from the higher one, or what is deleted after a restart would
	// not apply to files that were written before.
	generation := max(db.active.number, db.msgs.views.current.Load().active.number)
	p.next = manifest{Position: db.mu.last, Reserved: db.mu.reserved, Received: db.mu.received, NextSeries: db.index.Next(),
		Generation: generation, Unknown: m.Unknown, Graves: db.graves.entries(), Edits: db.msgs.edits.all(), Counters: db.counters()}
	db.flusher.pending = p
	return true
}

// commit makes the names of new files durable, and then the manifest that names them.
func (db *DB) commit(next manifest) error {
	next.NextFile = db.flusher.manifest.NextFile
	if err := db.fs.SyncDir(filepath.Join(db.dir, dataDir)); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	if err := next.write(db.fs, db.dir); err != nil {
		return err
	}
	db.flusher.manifest = next
	db.flusher.current.Store(&next)
	db.disk.count(&next)
	var errs []error
	for _, e := range db.flusher.orphans {
		errs = append(errs, db.removeFile(e))
	}
	db.flusher.orphans = nil // what could not be removed, the next Open removes
	if err := errors.Join(errs...); err != nil {
		db.opts.Log("storage: files that are not in use could not be removed: " + err.Error())
	}
	return nil
}

func (db *DB) nextFile() uint64 {
	m := &db.flusher.manifest
	m.NextFile++
	return m.NextFile - 1
}

// dropJournal gives up the journal that is in files, but for what readers of the log still want.
func (db *DB) dropJournal() error {
	keep := db.flusher.manifest.Position + 1
	if db.opts.Hold != nil {
		if held := db.opts.Hold(); held < keep { // the highest position has none behind it
			keep = min(keep, held+1)
		}
	}
	// Tail serves from the disk what is not in the ring: its readers start at the floor at the latest.
	if err := db.journal.DropBefore(journal.Position(keep)); err != nil {
		return fmt.Errorf("drop the journal before position %d: %w", keep, err)
	}
	return nil
}

// trimJournal makes the journal as short as it can be. The last frame always stays, so a small one is written that all others can go before.
func (db *DB) trimJournal(ctx context.Context) error {
	if db.flusher.pending != nil {
		return nil
	}
	if err := db.journal.Turn(); err != nil {
		return err
	}
	if err := db.writeReserve(); err != nil {
		return err
	}
	if err := db.journal.Sync(ctx); err != nil {
		return err
	}
	if err := db.dropJournal(); err != nil {
		return err
	}
	return db.journal.Trim()
}

// writeReserve writes a frame that says nothing new.
func (db *DB) writeReserve() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.closed {
		return core.Errorf(core.Unavailable, "the database is closed")
	}
	position := db.mu.last + 1
	limit := max(db.mu.reserved, position)
	ticket, err := db.journal.Write(journal.Frame{Position: journal.Position(position), Received: int64(db.mu.received), Kind: frameReserve,
		Payload: binary.AppendUvarint(nil, uint64(limit))})
	if err != nil {
		return journalError(err)
	}
	db.mu.last, db.mu.reserved, db.mu.ticket = position, limit, ticket
	return nil
}

// mergeOne does one merge that is worth it, and reports whether there was one.
func (db *DB) mergeOne(ctx context.Context) (bool, error) {
	if s, m, ok := db.oldest(); ok {
		db.opts.Log(fmt.Sprintf("storage: %s is dropped: the files take more than retention.bytes allows", m.old[0].path(db.dir)))
		return true, db.merge(ctx, s, m, db.removeFile)
	}
	f := &db.flusher
	for range f.shelves { // in turn, or those at the end would get none while there is always something for the first ones
		s := f.shelves[f.turn%len(f.shelves)]
		f.turn++
		m, ok := s.plan()
		if !ok {
			continue
		}
		err := db.merge(ctx, s, m, db.removeFile)
		if isDamage(err) {
			m.spoil()
			db.opts.Log("storage: merge: " + err.Error())
			err = nil
		}
		return true, err
	}
	return false, nil
}

// isDamage reports whether err says that something stored cannot be read, which another try does not change.
func isDamage(err error) bool {
	var inFile *sealed.DamageError
	var inTable *table.DamageError
	return errors.As(err, &inFile) || errors.As(err, &inTable) || errors.Is(err, index.ErrDamaged) || errors.Is(err, vfs.ErrFault)
}

// removeFile removes a file that is in no manifest any more. What a crash leaves of such files, the next Open removes.
func (db *DB) removeFile(e fileEntry) error {
	if db.flusher.pins.defers(e) {
		return nil
	}
	return db.removeIfThere(e.path(db.dir))
}

// discard takes a file out of use that the disk does not give any more, and keeps it under another name.
func (db *DB) discard(ctx context.Context, broken *sampleFile) error {
	if !slices.Contains(db.views.current.Load().files, broken) {
		return nil // it went meanwhile
	}
	db.opts.Log(fmt.Sprintf("storage: %s cannot be read and is set aside: its samples are missing from now on", broken.entry.path(db.dir)))
	return db.merge(ctx, sampleShelf{db}, mergeOf(&db.views, []*sampleFile{broken}), db.quarantine)
}

// merge writes files as one and replaces them. done is called with each old file that nobody reads any more.
func (db *DB) merge(ctx context.Context, s shelf, m merge, done func(fileEntry) error) error {
	var o opened
	var fresh []fileEntry
	if m.write != nil {
		var err error
		if o, err = db.make(s, db.attentive(ctx, m.write)); err != nil {
			return err
		}
		fresh = append(fresh, o.entry)
	}
	next := db.flusher.manifest
	next.Files = nil
	for _, one := range db.flusher.shelves {
		list := one.entries()
		if one == s {
			at := slices.Index(list, m.old[0])
			list = slices.Replace(list, at, at+len(m.old), fresh...)
		}
		next.Files = append(next.Files, list...)
	}
	if err := db.commit(next); err != nil {
		if m.write == nil {
			return err
		}
		return db.unmake([]opened{o}, err)
	}
	err := m.show(o, done)
	db.prune()
	return err
}

// Flush writes everything that is in memory to files.
func (db *DB) Flush(ctx context.Context) error { return db.ask(ctx, db.flush) }

// Compact flushes, merges all files of each kind into one, and gives back what of the journal is not needed.
func (db *DB) Compact(ctx context.Context) error {
	return db.ask(ctx, func(ctx context.Context) error {
		if err := db.flush(ctx); err != nil {
			return err
		}
		if err := db.trimJournal(ctx); err != nil {
			return err
		}
		for _, s := range db.flusher.shelves {
			for _, m := range s.whole() {
				if err := db.merge(ctx, s, m, db.removeFile); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// ask has the worker do something.
func (db *DB) ask(ctx context.Context, do func(context.Context) error) error {
	r := request{do, ctx, make(chan error, 1)}
	select {
	case db.flusher.asked <- r:
	case <-db.flusher.done:
		return core.Errorf(core.Unavailable, "the database is closed")
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.reply:
		return err
	case <-db.flusher.done:
		return core.Errorf(core.Unavailable, "the database is closed")
	}
}

// quarantine sets a file aside that cannot be used.
func (db *DB) quarantine(e fileEntry) error {
	path := e.path(db.dir)
	if err := db.fs.Rename(path, path+".damaged"); err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	return nil
}

// failed reports what the worker could not do, and says when it tries again.
func (db *DB) failed(what string, err error) time.Duration {
	if errors.Is(err, context.Canceled) {
		return retryFlush
	}
	err = fmt.Errorf("%s: %w", what, err)
	db.flusher.failure.Store(&err)
	db.gate.signal()
	db.opts.Log("storage: " + err.Error())
	return retryFlush
}

// settled reports a flush that went well.
func (db *DB) settled(began time.Time, made []opened) {
	db.flusher.failure.Store(nil)
	db.gate.signal()
	size := int64(0)
	for _, o := range made {
		size += o.entry.Size
	}
	db.flusher.last.Store(&flushed{at: core.TimeOf(began), took: time.Since(began), files: len(made), bytes: size})
	db.opts.Log(fmt.Sprintf("storage: flushed up to position %d: %d files, %d bytes, in %v", db.flusher.manifest.Position, len(made), size,
		time.Since(began).Round(time.Millisecond)))
}

// prune forgets deletions that every file shows. A reader may hold a view with files that do not show them, and then they stay for now.
func (db *DB) prune() {
	if db.views.live.Load() > 1 {
		return
	}
	v := db.views.acquire()
	defer db.views.release(v)
	oldest := v.active.number
	if v.frozen != nil {
		oldest = v.frozen.number
	}
	for _, f := range v.files {
		oldest = min(oldest, f.file.Generation())
	}
	db.msgs.prune()
	db.graves.prune(oldest, db.dead)
}

// attentive makes a long write end with ctx, and lets a flush go before it when memory is full: writers must not wait for a merge.
func (db *DB) attentive(ctx context.Context, write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error { return write(&attentiveWriter{ctx: ctx, db: db, w: w}) }
}

type attentiveWriter struct {
	ctx   context.Context
	db    *DB
	w     io.Writer
	since int // bytes since it looked last
}

// lookEvery is how many bytes of a merge are written between two looks: some milliseconds of a fast disk, a tenth of a second of a slow card.
const lookEvery = 1 << 20

func (a *attentiveWriter) Write(b []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	if a.since += len(b); a.since >= lookEvery {
		written := a.since
		a.since = 0
		if err := a.db.flushIfFull(a.ctx); err != nil {
			a.db.failed("flush", err)
		}
		a.db.flusher.pace.wait(a.ctx, written, a.db.flusher.wake, func() {
			if err := a.db.flushIfFull(a.ctx); err != nil {
				a.db.failed("flush", err)
			}
		})
	}
	return a.w.Write(b)
}
