package journal

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// DamageError says that a reader met damage that recovery did not know. Readers that go on continue behind it.
type DamageError struct{ Damage }

func (e *DamageError) Error() string { return "journal: damaged: " + e.String() }

// Read yields the frames at from and above in order, from disk, until it has caught up with what is written; frames that are written while it
// runs are included, synced or not. Frames below the first that is still there are not: compare Status().First. Damage that recovery has
// reported is passed over in silence; damage that is new is yielded as a *DamageError, after which the loop may go on; any other error ends it.
// The payload of a frame is valid until the next iteration.
func (j *Journal) Read(from Position) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		c := cursor{j: j, next: from}
		defer c.release()
		for {
			f, more, err := c.step()
			var hole *DamageError
			switch {
			case errors.As(err, &hole):
				if !yield(Frame{}, err) {
					return
				}
			case err != nil:
				yield(Frame{}, err)
				return
			case !more || !yield(f, nil):
				return
			}
		}
	}
}

// cursor is the place of a reader. It pins the segment it is in, so that the file is not recycled under it.
type cursor struct {
	j    *Journal
	next Position // frames below are passed over
	seg  *segment
	m    vfs.Mapping
	sc   scanner
	off  int64
	last Position // of the last frame seen in seg
	buf  []byte
}

// step returns the next frame; more is false at the end of the journal.
func (c *cursor) step() (f Frame, more bool, err error) {
	for {
		bound, ok, err := c.enter()
		if err != nil || !ok {
			return Frame{}, false, err
		}
		off, err := c.sc.at(c.off, c.last, func(fr Frame) {
			f = fr
			c.buf = append(c.buf[:0], fr.Payload...)
		})
		switch {
		case errors.Is(err, errBad) || errors.Is(err, vfs.ErrFault):
			if err := c.pass(bound, err); err != nil {
				return Frame{}, true, err
			}
			continue
		case err != nil:
			return Frame{}, false, fmt.Errorf("journal: read %s at %d: %w", c.seg.path, c.off, err)
		}
		c.off, c.last = off, f.Position
		// A frame above bound is void here, and repeated as it is in a later segment: it may as well be given now.
		if f.Position >= c.next {
			c.next = f.Position + 1
			f.Payload = c.buf
			return f, true, nil
		}
	}
}

// enter makes sure that the cursor is in a segment that has frames to come, and returns the last position that counts in it.
func (c *cursor) enter() (bound Position, ok bool, err error) {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	if c.seg != nil {
		c.seg.note(c.off, c.last)
		if c.sc.end = c.seg.end; c.last < c.seg.last && c.off < c.seg.end {
			return c.seg.last, true, nil
		}
		if err := c.leave(); err != nil {
			return 0, false, err
		}
	}
	if c.j.mu.stopped {
		return 0, false, ErrClosed
	}
	for _, s := range c.j.mu.segs {
		if s.last >= c.next && s.end > firstFrame {
			return s.last, true, c.pin(s)
		}
	}
	return 0, false, nil
}

// pin maps s. Callers hold mu.
func (c *cursor) pin(s *segment) error {
	f, err := c.j.fs.Open(s.path, vfs.ReadOnly)
	if err != nil {
		return fmt.Errorf("journal: read %s: %w", s.path, err)
	}
	m, err := f.Map(s.size)
	if err = errors.Join(err, f.Close()); err != nil {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
		return fmt.Errorf("journal: map %s: %w", s.path, err)
	}
	s.readers++
	start := s.near(c.next)
	c.seg, c.m, c.off, c.last = s, m, start.off, start.last
	c.sc = scanner{m: m, head: s.head, end: s.end}
	return nil
}

// leave lets go of the segment. Callers hold mu.
func (c *cursor) leave() error {
	c.next = max(c.next, c.seg.last+1)
	c.seg.readers--
	c.seg = nil
	return c.m.Close()
}

func (c *cursor) release() {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	if c.seg != nil {
		_ = c.leave() // a mapping that was only read has nothing to lose
	}
}

// pass moves the cursor behind bytes that hold no frame. It returns nil when the place is known to be damaged.
func (c *cursor) pass(bound Position, cause error) error {
	c.j.mu.Lock()
	holes := c.seg.holes
	c.j.mu.Unlock()
	for _, h := range holes {
		if c.off == h.Offset && h.Length > 0 {
			c.off += h.Length
			return nil
		}
	}
	found, err := c.sc.search(c.off+frameAlign, c.last)
	if err != nil {
		return fmt.Errorf("journal: search %s behind %d: %w", c.seg.path, c.off, err)
	}
	d := Damage{Segment: c.seg.number, Offset: c.off, Length: c.sc.end - c.off, After: c.last, Before: bound + 1, Reason: "the checksum does not match"}
	if errors.Is(cause, vfs.ErrFault) {
		d.Reason = "the bytes cannot be read"
	}
	if found.found {
		d.Length = found.off - c.off
		if _, err := c.sc.at(found.off, c.last, func(f Frame) { d.Before = f.Position }); err != nil {
			return fmt.Errorf("journal: read %s at %d: %w", c.seg.path, found.off, err)
		}
	}
	c.off += d.Length
	if d.Before <= c.next {
		return nil // nothing that the reader asked for
	}
	c.j.mu.Lock()
	c.seg.holes = append(c.seg.holes, d)
	c.j.mu.Unlock()
	return &DamageError{d}
}
