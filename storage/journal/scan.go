package journal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// errBad says that no valid frame is at an offset.
var errBad = errors.New("no valid frame")

// peek is how much is looked at first: enough for most frames in one view, one page where a view is a read.
const peek = 4096

// scanner reads the frames of one segment and trusts none of its bytes.
type scanner struct {
	m    vfs.Mapping
	head header
	end  int64 // no frame reaches beyond
	// wasted counts the bytes that were checksummed in vain, see searchBudget.
	wasted int64
	accept func(Frame) error // see Options; nil: all are
}

// searchBudget bounds the bytes that are checksummed in vain in one segment. A payload can be made of headers that each claim megabytes; without
// a bound such a file would keep recovery busy for hours. At 1 GB/s, a small ARM box, this is a quarter of a second.
const searchBudget = 256 << 20

// at verifies the frame at off and calls f with it; its payload is valid until f returns. It returns the offset behind the frame, or errBad
// when there is no frame above last, or vfs.ErrFault when the bytes cannot be read.
func (s *scanner) at(off int64, last Position, f func(fr Frame)) (next int64, err error) {
	room := s.end - off
	if room < frameHeader {
		return off, errBad
	}
	var size int64
	check := func(b []byte) error {
		if !plausible(b, room, last) {
			return errBad
		}
		fr, length, _ := parseHeader(b)
		size = frameSize(int(length))
		if int64(len(b)) < size {
			return nil // the whole frame is viewed next
		}
		if !sound(b, s.head.salt) {
			s.wasted += size
			return errBad
		}
		fr.Payload = b[frameHeader : frameHeader+int(length) : frameHeader+int(length)]
		f(fr)
		next = off + size
		return nil
	}
	err = s.m.View(off, min(peek, room), check)
	if err == nil && next == 0 {
		err = s.m.View(off, size, check)
	}
	return next, err
}

// ended reports whether the end mark is at off, or no frame fits there.
func (s *scanner) ended(off int64) bool {
	if s.end-off < frameHeader {
		return true
	}
	zero := false
	err := s.m.View(off, frameAlign, func(b []byte) error { zero = [frameAlign]byte(b) == terminator; return nil })
	return err == nil && zero
}

// extent returns how many bytes at off belong to a frame that was begun there: what its header says, or up to the last byte that is not zero.
func (s *scanner) extent(off int64, last Position) (n int64, err error) {
	if s.end-off >= frameHeader {
		err := s.m.View(off, frameHeader, func(b []byte) error {
			if plausible(b, s.end-off, last) {
				_, length, _ := parseHeader(b)
				n = frameSize(int(length))
			}
			return nil
		})
		if n > 0 || err != nil && !errors.Is(err, vfs.ErrFault) {
			return n, err
		}
	}
	for end := s.end; end > off; {
		size := min(stride, end-off)
		err := s.m.View(end-size, size, func(b []byte) error { n = int64(len(bytes.TrimRight(b, "\x00"))); return nil })
		if err != nil && !errors.Is(err, vfs.ErrFault) {
			return 0, err
		}
		if end -= size; n > 0 || err != nil {
			return end - off + max(n, 1), nil
		}
	}
	return 0, nil
}

// searched is the outcome of a search.
type searched struct {
	off    int64
	found  bool
	faults bool // some bytes could not be read
	gaveUp bool // the budget ran out
}

// The units of search: how much is viewed at once, and what is given up when a byte cannot be read.
const (
	stride = 64 << 10
	sector = 4096
)

// search looks for the next valid frame above last at or behind off.
func (s *scanner) search(off int64, last Position) (r searched, err error) {
	careful := off // below it, one header is viewed at a time, to get around bytes that cannot be read
	for s.end-off >= frameHeader {
		n := min(stride, s.end-off)
		if off < careful {
			n = frameHeader
		}
		at, looks, err := s.look(off, n, last)
		switch {
		case errors.Is(err, vfs.ErrFault) && n > frameHeader:
			careful = off + n
			continue
		case errors.Is(err, vfs.ErrFault):
			r.faults = true
			off += sector - off%sector
			continue
		case err != nil:
			return r, err
		case !looks:
			off = at
			continue
		}
		_, err = s.at(at, last, func(Frame) {})
		if err == nil {
			r.off, r.found = at, true
			return r, nil
		}
		if r.faults = r.faults || errors.Is(err, vfs.ErrFault); !errors.Is(err, errBad) && !errors.Is(err, vfs.ErrFault) {
			return r, err
		}
		if s.wasted > searchBudget {
			r.gaveUp = true
			return r, nil
		}
		off = at + frameAlign
	}
	return r, nil
}

// look returns the first offset in n bytes from off that looks like a frame, or the first that was not looked at.
func (s *scanner) look(off, n int64, last Position) (at int64, looks bool, err error) {
	err = s.m.View(off, n, func(b []byte) error {
		for at = off; off+n-at >= frameHeader; at += frameAlign {
			if plausible(b[at-off:], s.end-at, last) {
				looks = true
				return nil
			}
		}
		return nil
	})
	return at, looks, err
}

// run is a sequence of valid frames without a gap.
type run struct {
	start, end  int64
	first, last Position
	frames      int
}

// gap is a place in a segment where frames are missing or unreadable: after position after, [off, off+length) holds none.
type gap struct {
	off, length int64
	after       Position
	before      Position // the next valid frame, 0 when none is in this file
	unreadable  bool
	partly      bool // not all of what follows could be searched
	clean       bool // the end mark is at off: nothing was begun here
}

// contents is what a segment holds below limit.
type contents struct {
	runs   []run
	gaps   []gap
	synced Position // the highest Synced seen
	// refused is the first frame that was not accepted, and why; without an error there is none.
	refused struct {
		position Position
		err      error
	}
}

// last returns the last position of c, or the one before base.
func (c contents) last(base Position) Position {
	if len(c.runs) == 0 {
		return base - 1
	}
	return c.runs[len(c.runs)-1].last
}

// end returns the offset behind the last frame.
func (c contents) end() int64 {
	if len(c.runs) == 0 {
		return firstFrame
	}
	return c.runs[len(c.runs)-1].end
}

// read lists the runs of a segment. Frames at limit and above are void; the segment is whole when limit-1 is its last.
func (s *scanner) read(limit Position) (contents, error) {
	c := contents{synced: s.head.synced}
	last, off := s.head.base-1, int64(firstFrame)
	for {
		r, err := s.run(off, last, limit, &c)
		if r.frames > 0 {
			c.runs = append(c.runs, r)
			off, last = r.end, r.last
		}
		if err != nil && !errors.Is(err, errBad) && !errors.Is(err, vfs.ErrFault) {
			return c, fmt.Errorf("read frame at %d: %w", off, err)
		}
		if last == limit-1 {
			return c, nil
		}
		if err == nil { // a void frame comes where frames of this segment are missing
			c.gaps = append(c.gaps, gap{off: off, after: last, clean: true})
			return c, nil
		}
		found, serr := s.search(min(off+frameAlign, s.end), last)
		if serr != nil {
			return c, fmt.Errorf("search for a frame behind %d: %w", off, serr)
		}
		g := gap{off: off, length: s.end - off, after: last, unreadable: errors.Is(err, vfs.ErrFault), partly: found.gaveUp || found.faults, clean: s.ended(off)}
		if !found.found {
			if g.length, serr = s.extent(off, last); serr != nil {
				return c, serr
			}
			g.unreadable = g.unreadable || found.faults && !g.clean
			c.gaps = append(c.gaps, g)
			return c, nil
		}
		g.length = found.off - off
		c.gaps = append(c.gaps, g)
		off = found.off
	}
}

// run reads frames from off until one is bad (errBad or vfs.ErrFault) or void (nil).
func (s *scanner) run(off int64, last, limit Position, c *contents) (run, error) {
	r := run{start: off, end: off, first: last, last: last}
	for {
		var f Frame
		var refusal error
		next, err := s.at(r.end, r.last, func(fr Frame) {
			if f = fr; s.accept != nil && fr.Position < limit {
				refusal = s.accept(fr)
			}
		})
		if err != nil {
			return r, err
		}
		if f.Position >= limit {
			return r, nil
		}
		if refusal != nil && c.refused.err == nil {
			c.refused.position, c.refused.err = f.Position, refusal
		}
		if r.frames == 0 {
			r.first = f.Position
			if n := len(c.gaps); n > 0 {
				c.gaps[n-1].before = f.Position
			}
		}
		r.frames++
		r.end, r.last = next, f.Position
		c.synced = max(c.synced, f.Synced)
	}
}
