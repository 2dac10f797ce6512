package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// round is one group commit: all that wait when it starts share its fdatasync and its outcome.
type round struct {
	done chan struct{}
	err  error // set before done is closed
}

func newRound() *round { return &round{done: make(chan struct{})} }

// Commit waits until the frame of t is as durable as the mode promises, and says what that is. After an error the outcome is unknown: the
// frame is in the journal and may be found by the next Open, or not. An error of ctx means only that the caller stopped waiting.
func (j *Journal) Commit(ctx context.Context, t Ticket) (Durability, error) {
	if j.opt.Mode != Always {
		return Journaled, nil
	}
	if err := j.wait(ctx, t.position); err != nil {
		return Journaled, err
	}
	return Synced, nil
}

// Sync makes everything written so far durable, in any mode.
func (j *Journal) Sync(ctx context.Context) error {
	j.mu.Lock()
	end, closed := j.mu.end, j.mu.closed
	j.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return j.wait(ctx, end)
}

// wait waits until all frames up to p are durable.
func (j *Journal) wait(ctx context.Context, p Position) error {
	j.mu.Lock()
	r, stopped, durable := j.mu.round, j.mu.stopped, j.mu.synced >= p
	lost := contains(j.mu.lost, p)
	j.mu.Unlock()
	switch {
	case lost:
		return ErrLost
	case durable:
		return nil
	case stopped:
		return ErrClosed
	}
	poke(j.wake)
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("journal: wait for position %d to become durable: %w", p, context.Cause(ctx))
	}
	if r.err != nil {
		return r.err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if contains(j.mu.lost, p) {
		return ErrLost
	}
	return nil
}

// run is the committer: the only goroutine that syncs frames. It touches the disk only when something is unsynced.
func (j *Journal) run() {
	var due <-chan time.Time
	for {
		select {
		case <-j.quit:
			j.mu.Lock()
			j.mu.stopped = true
			j.mu.round.err = ErrClosed
			close(j.mu.round.done)
			j.mu.Unlock()
			return
		case <-j.arm:
			if due == nil {
				due = time.After(j.opt.Interval)
			}
		case <-due:
			due = nil
			if err := j.commit(); err != nil {
				poke(j.arm) // Status tells; tried again after the next interval
			}
		case <-j.wake:
			_ = j.commit() // every waiter gets the error
		}
	}
}

// work is a segment with something to sync. The lock is not held while it is done.
type work struct {
	s    *segment
	file vfs.File // nil: open it
	from Position // frames up to here are known to be durable
	upTo Position
}

// commit runs one round: it makes everything that is written when it starts durable.
func (j *Journal) commit() error {
	j.mu.Lock()
	r := j.mu.round
	j.mu.round = newRound()
	var err error
	if j.mu.broken != nil {
		err = j.rescue()
	} else if jobs, unlinked := j.jobs(); len(jobs) > 0 {
		j.mu.Unlock()
		n, serr := j.sync(jobs, unlinked)
		j.mu.Lock()
		j.settle(jobs, n)
		if serr != nil {
			j.mu.broken = serr
			err = j.rescue()
		}
	}
	j.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	r.err = err
	close(r.done)
	return err
}

// jobs lists what must be synced, in order of position, and whether the names of the files must be too. Callers hold mu.
func (j *Journal) jobs() (jobs []work, unlinked bool) {
	for _, s := range j.mu.segs {
		if !s.dirty() {
			continue
		}
		s.syncing = true
		unlinked = unlinked || !s.linked
		jobs = append(jobs, work{s, s.file, s.upTo, s.last})
	}
	return jobs, unlinked
}

// sync makes jobs durable in order and returns how many were.
func (j *Journal) sync(jobs []work, unlinked bool) (int, error) {
	if unlinked {
		if err := j.fs.SyncDir(j.dir); err != nil {
			return 0, fmt.Errorf("journal: sync %s: %w", j.dir, err)
		}
	}
	for i, w := range jobs {
		if err := j.syncFile(w); err != nil {
			return i, fmt.Errorf("journal: sync %s: %w", w.s.path, err)
		}
	}
	return len(jobs), nil
}

func (j *Journal) syncFile(w work) error {
	if w.file != nil {
		return w.file.Sync()
	}
	f, err := j.fs.Open(w.s.path, vfs.ReadWrite)
	if err != nil {
		return err
	}
	if err := renew(f, w); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// renew writes the frames that Open found, and of which nobody knows whether they are durable, once more over themselves. An fdatasync of the
// process before may have failed, and then the kernel has marked their pages clean: they can be read, but no later sync would write them.
func renew(f vfs.File, w work) error {
	if len(w.s.unsure) == 0 {
		return nil
	}
	m, err := f.Map(w.s.size)
	if err != nil {
		return err
	}
	sc := scanner{m: m, head: w.s.head, end: w.s.end}
	var buf []byte
	for _, r := range w.s.unsure {
		last := r.first - 1
		for off := r.start; off < r.end && err == nil; {
			at := off
			off, err = sc.at(off, last, func(f Frame) {
				last = f.Position
				buf = appendFrame(buf[:0], f, w.s.head.salt)
			})
			if err == nil && last > w.from {
				_, err = f.WriteAt(buf, at)
			}
		}
	}
	return errors.Join(err, m.Close())
}

// settle records that the first n jobs are durable. Callers hold mu.
func (j *Journal) settle(jobs []work, n int) {
	for i, w := range jobs {
		w.s.syncing = false
		if i < n {
			w.s.upTo, w.s.linked = w.upTo, true
			j.mu.synced = max(j.mu.synced, w.upTo)
		}
		if w.s != j.mu.active && !w.s.dirty() {
			_ = w.s.closeFile() // its bytes are durable: a failing close has nothing left to lose
		}
	}
}

// rescue writes every unsynced frame again, into a new file, after an fdatasync failed: the kernel may have marked the pages of the old file
// clean, so syncing it again would prove nothing. The new file gets its name when it is durable, and its base voids the frames it repeats.
// On an error everything stays as it is and mu.broken says why. Callers hold mu.
func (j *Journal) rescue() error {
	j.mu.active = nil // nothing is added to a file whose sync failed
	room := int64(0)
	for _, s := range j.mu.segs {
		if s.last > j.mu.synced {
			room += s.end - firstFrame
		}
	}
	if room == 0 {
		j.mu.broken = nil
		return nil
	}
	s, err := j.create(j.mu.synced+1, room+frameAlign)
	if err == nil {
		if err = j.refill(s); err != nil {
			err = errors.Join(err, j.discard(s))
		} else if err = j.publish(s); err == nil {
			// From here on the new file counts, whether or not its name is durable yet.
			err = j.replace(s)
		}
	}
	j.mu.broken = err
	j.mu.retry = time.Now().Add(retryAfter)
	return err
}

// refill copies all unsynced frames to s and syncs it. What cannot be read back is noted in mu.lost.
func (j *Journal) refill(s *segment) error {
	var out []byte
	flush := func() error {
		_, err := s.file.WriteAt(append(out, terminator[:]...), s.end)
		s.end += int64(len(out))
		out = out[:0]
		return err
	}
	emit := func(f Frame) error {
		f.Synced = j.mu.synced
		out = appendFrame(out, f, s.head.salt)
		s.last = f.Position
		if len(out) < keepBuffer {
			return nil
		}
		return flush()
	}
	var lost []span
	for _, from := range j.mu.segs {
		if from.last <= j.mu.synced {
			continue
		}
		spans, err := j.readBack(from, emit)
		if err != nil {
			return fmt.Errorf("journal: read unsynced frames of %s: %w", from.path, err)
		}
		lost = append(lost, spans...)
	}
	if err := flush(); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	j.mu.lost = append(j.mu.lost, lost...)
	return nil
}

// readBack emits the unsynced frames of s and returns the positions among which some could not be read.
func (j *Journal) readBack(s *segment, emit func(Frame) error) (lost []span, err error) {
	err = withFile(j.fs, s.path, s.end, func(m vfs.Mapping) error {
		sc := scanner{m: m, head: s.head, end: s.end}
		last, off, bad := s.head.base-1, int64(firstFrame), false
		for last < s.last {
			var emitted error
			next, err := sc.at(off, last, func(f Frame) {
				if bad {
					lost = append(lost, span{last + 1, f.Position - 1})
				}
				last, bad = f.Position, false
				if f.Position > j.mu.synced {
					emitted = emit(f)
				}
			})
			switch {
			case emitted != nil:
				return emitted
			case err == nil:
				off = next
				continue
			case !errors.Is(err, errBad) && !errors.Is(err, vfs.ErrFault):
				return err
			}
			found, err := sc.search(off+frameAlign, last)
			if err != nil {
				return err
			}
			if !found.found {
				lost = append(lost, span{last + 1, s.last})
				return nil
			}
			off, bad = found.off, true
		}
		return nil
	})
	return lost, err
}

// replace puts s, which holds all unsynced frames, in the place of the segments that held them. Their files go when the name of s is durable, and
// not before: frames that an earlier process made durable are among the unsynced ones when nothing has been written since.
func (j *Journal) replace(s *segment) error {
	kept := j.mu.segs[:0:0]
	var void []string
	var errs []error // of closing, which matter to nobody when the frames are safe elsewhere
	for _, old := range j.mu.segs {
		if old.last <= j.mu.synced {
			kept = append(kept, old)
			continue
		}
		errs = append(errs, old.closeFile())
		if old.head.base <= j.mu.synced {
			old.last, old.upTo = j.mu.synced, j.mu.synced // frames above are void, readers stop there
			kept = append(kept, old)
		} else {
			void = append(void, old.path)
		}
	}
	j.mu.segs = append(kept, s)
	if s.fits(frameHeader) {
		j.mu.active = s
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return errors.Join(append(errs, err)...)
	}
	s.upTo, s.linked = s.last, true
	j.mu.synced = s.last
	for _, path := range void {
		// What cannot be removed holds void frames only; the next Open tries again.
		_ = j.fs.Remove(path)
	}
	return nil
}

// contains reports whether p lies in one of the spans.
func contains(spans []span, p Position) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return p >= s.first && p <= s.last })
}
