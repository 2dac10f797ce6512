package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// DropBefore gives up frames below p, in whole segments: those whose frames are all below p and durable. The last frame always stays. Files are
// recycled up to Options.Recycle, removed beyond that, and set aside when they hold damage. A running reader keeps what it is reading.
//
// The names change one by one with a sync of the directory after each, lowest first: a power cut in between leaves an end of the journal, never
// a journal with a hole.
func (j *Journal) DropBefore(p Position) error {
	j.dropping.Lock()
	defer j.dropping.Unlock()
	for {
		s, recycle := j.detach(p)
		if s == nil {
			return nil
		}
		if err := j.retire(s, recycle); err != nil {
			j.mu.Lock()
			j.mu.segs = append([]*segment{s}, j.mu.segs...)
			j.mu.Unlock()
			return fmt.Errorf("journal: drop %s: %w", s.path, err)
		}
	}
}

// detach takes the first segment out of the list when all its frames are below p.
func (j *Journal) detach(p Position) (s *segment, recycle bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.closed || len(j.mu.segs) < 2 {
		return nil, false
	}
	s = j.mu.segs[0]
	unsynced := s.last > j.mu.synced && j.opt.Mode != Never
	if s.last >= p || unsynced || s.last >= j.mu.segs[len(j.mu.segs)-1].last || s.syncing || s.file != nil {
		return nil, false
	}
	j.mu.segs = j.mu.segs[1:]
	return s, s.readers == 0 && s.size == j.opt.SegmentSize && len(j.mu.spares) < j.opt.Recycle
}

// retire changes the name of a detached segment, durably.
func (j *Journal) retire(s *segment, recycle bool) error {
	spare := ""
	switch {
	case len(s.holes) > 0:
		if err := j.fs.Rename(s.path, s.path+damagedExt); err != nil {
			return err
		}
	case recycle:
		spare = j.name(s.number, spareExt)
		if err := j.fs.Rename(s.path, spare); err != nil {
			return err
		}
	default:
		if err := j.fs.Remove(s.path); err != nil {
			return err
		}
	}
	// A spare is offered for reuse only when its old name is gone for good: until then a power cut could bring the name back, with new contents.
	err := j.fs.SyncDir(j.dir)
	if err == nil && spare != "" {
		j.mu.Lock()
		j.mu.spares = append(j.mu.spares, spare)
		j.mu.Unlock()
	}
	return err
}

// Turn ends the active segment: the next frame begins a new one, so that DropBefore can give up all before it.
func (j *Journal) Turn() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.closed || j.mu.active == nil || j.mu.active.empty() {
		return nil
	}
	return j.abandon()
}

// Trim gives back the room of files that hold no frames: the spares, and the end of the active segment, when all its frames are durable. The next frame
// begins a new one.
func (j *Journal) Trim() error {
	j.dropping.Lock()
	defer j.dropping.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.closed {
		return ErrClosed
	}
	var errs []error
	for _, spare := range j.mu.spares {
		errs = append(errs, j.fs.Remove(spare))
	}
	j.mu.spares = nil
	if s := j.mu.active; s != nil && !s.syncing && !s.dirty() && !s.empty() {
		j.mu.active = nil
		if err := s.file.Truncate(s.end); err != nil {
			errs = append(errs, err)
		} else {
			s.size = s.end
		}
		errs = append(errs, s.closeFile())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("journal: trim %s: %w", j.dir, err)
	}
	return nil
}

// adoptSpares takes over the spare files found at Open. Only those are kept that were certainly not in use when the last process died.
func (j *Journal) adoptSpares(v *survey) {
	highest := uint64(0)
	for _, s := range v.segments {
		highest = max(highest, s.number)
	}
	for _, i := range v.spares {
		path := filepath.Join(j.dir, i.Name)
		var h header
		err := withFile(j.fs, path, i.Size, func(m vfs.Mapping) (err error) { h, err = readHeader(m); return err })
		idle := errors.Is(err, errHeader) || err == nil && h.number <= highest
		if idle && i.Size == j.opt.SegmentSize && len(j.mu.spares) < max(j.opt.Recycle, 1) {
			j.mu.spares = append(j.mu.spares, path)
			continue
		}
		if err := j.fs.Remove(path); err != nil {
			v.report.Warnings = append(v.report.Warnings, fmt.Errorf("journal: remove spare: %w", err))
		}
	}
}

// prepareRetry keeps a full disk from being filled with zeroes again on every write.
const prepareRetry = 10 * time.Second

// prepareAhead makes a spare file when the active segment is half full and there is none, so that a writer does not wait for 16 MiB of zeroes.
// A failure is not reported: the writer that needs a segment makes it itself and gets the error.
func (j *Journal) prepareAhead() {
	var failed time.Time
	for {
		select {
		case <-j.quit:
			return
		case <-j.want:
		}
		if !failed.IsZero() && time.Since(failed) < prepareRetry {
			continue
		}
		failed = time.Time{}
		if err := j.prepare(); err != nil {
			failed = time.Now()
		}
	}
}

func (j *Journal) prepare() (err error) {
	j.mu.Lock()
	enough := len(j.mu.spares) > 0 || j.mu.closed
	number := j.mu.next
	j.mu.next++
	j.mu.Unlock()
	if enough {
		return nil
	}
	path, temp := j.name(number, spareExt), j.name(number, tempExt)
	f, err := j.fs.Open(temp, vfs.Create)
	if err != nil {
		return err
	}
	if err := errors.Join(vfs.Preallocate(f, j.opt.SegmentSize), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, j.fs.Remove(temp))
	}
	if err := j.fs.Rename(temp, path); err != nil {
		return errors.Join(err, j.fs.Remove(temp))
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return err
	}
	j.mu.Lock()
	j.mu.spares = append(j.mu.spares, path)
	j.mu.Unlock()
	return nil
}
