package journal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Check verifies every frame in dir and changes nothing. The journal must not be open. Damage and Torn of the report are the findings; a torn
// tail is what the next Open would cut.
func Check(fs vfs.FS, dir string) (Recovery, error) {
	v, err := examine(fs, dir, nil)
	if err != nil {
		return Recovery{}, err
	}
	return v.report, nil
}

// Dump writes the contents of one segment file as text: its header, a line per frame, and what lies between valid frames. describe, when not
// nil, is asked for a text for each payload. Frames that later segments void are shown too: a file alone does not tell.
func Dump(w io.Writer, fs vfs.FS, path string, describe func(Frame) string) error {
	info, err := fs.Stat(path)
	if err != nil {
		return fmt.Errorf("journal: dump: %w", err)
	}
	err = withFile(fs, path, info.Size, func(m vfs.Mapping) error {
		h, err := readHeader(m)
		if err != nil {
			return err
		}
		d := dumper{w: w, describe: describe}
		d.printf("segment %d format %d salt %08x base %d synced %d, %d bytes\n", h.number, segmentVersion, h.salt, h.base, h.synced, m.Len())
		if number, _, ok := parseName(filepath.Base(path)); ok && number != h.number {
			d.printf("! the file name says segment %d\n", number)
		}
		return errors.Join(d.frames(&scanner{m: m, head: h, end: m.Len()}), d.err)
	})
	if err != nil {
		return fmt.Errorf("journal: dump %s: %w", path, err)
	}
	return nil
}

// dumper keeps the first write error.
type dumper struct {
	w        io.Writer
	describe func(Frame) string
	err      error
}

func (d *dumper) printf(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *dumper) frame(off int64, f Frame) {
	d.printf("%d: position %d received %d synced %d kind %d flags %#02x depth %d, %d bytes", off, f.Position, f.Received, f.Synced, f.Kind, f.Flags, f.Depth, len(f.Payload))
	if d.describe != nil {
		d.printf(": %s", d.describe(f))
	}
	d.printf("\n")
}

func (d *dumper) frames(s *scanner) error {
	c, err := s.read(math.MaxUint64)
	if err != nil {
		return err
	}
	gaps := c.gaps
	last := s.head.base - 1
	for _, r := range c.runs {
		if len(gaps) > 0 && gaps[0].off < r.start {
			d.printf("%d: %d bytes without a valid frame\n", gaps[0].off, gaps[0].length)
			gaps = gaps[1:]
		}
		for off := r.start; off < r.end && d.err == nil; {
			next, err := s.at(off, last, func(f Frame) { d.frame(off, f); last = f.Position })
			if err != nil {
				return err
			}
			off = next
		}
	}
	for _, g := range gaps {
		if g.clean {
			d.printf("%d: end\n", g.off)
		} else {
			d.printf("%d: %d bytes without a valid frame\n", g.off, g.length)
		}
	}
	return nil
}
