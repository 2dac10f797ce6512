package samples

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Check reads all of a file and verifies it: both copies of its end, every directory page and every block, what the directory says of the blocks, and the
// totals. It yields each block with what is wrong with it, nil when it is sound, and then what is wrong with the rest of the file, with a nil entry. An
// entry is valid until the next one. A file that was cut short while it is read is a fault too.
func Check(fs vfs.FS, path string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		f, err := Open(fs, path)
		if err != nil {
			yield(nil, err)
			return
		}
		c := checker{f: f, yield: yield, next: sealed.HeaderSize}
		c.ends()
		for i := range f.pages {
			c.page(i)
		}
		c.totals()
		if err := f.Close(); err != nil {
			c.fault(0, err)
		}
	}
}

// checker walks over a file from front to back.
type checker struct {
	f       *File
	yield   func(*Entry, error) bool
	stopped bool
	next    int64 // offset of what comes next
	total   summary
	last    Entry
	broken  bool // a page cannot be read: the totals cannot be compared
	cursor  Cursor
	decoder chunk.Decoder
	block   core.Block
}

func (c *checker) say(e *Entry, err error) {
	if !c.stopped {
		c.stopped = !c.yield(e, err)
	}
}

// fault reports something that is wrong at an offset; nil is nothing.
func (c *checker) fault(offset int64, err error) {
	if err != nil {
		c.say(nil, c.f.f.Damage(offset, err))
	}
}

// ends verifies the header, and both copies of the page list and of the tail.
func (c *checker) ends() {
	c.f.f.Check(sealed.Ends{
		Tail: func(b []byte) error {
			_, err := parseTail(b, c.f.f.Size)
			return err
		},
		Directory: c.f.list,
		Content: func(b []byte) error {
			if sealed.Checksum(b) != c.f.tail.listSum {
				return errors.New("a copy of the page list does not match its checksum")
			}
			return nil
		},
	}, func(err error) { c.say(nil, err) })
}

// page verifies a directory page and the blocks before it.
func (c *checker) page(i int) {
	p := &c.f.pages[i]
	if err := c.f.load(&c.cursor, i); err != nil {
		c.say(nil, err)
		c.broken, c.next = true, p.offset+int64(p.length)
		return
	}
	list := c.cursor.entries
	if len(list) == 0 || list[0].ID != p.first || list[len(list)-1].ID != p.last {
		c.fault(p.offset, errors.New("the page list is wrong about the series of a directory page"))
	}
	for at := range list {
		if c.stopped {
			return
		}
		e := &list[at]
		err := c.place(e)
		if err == nil {
			err = c.f.f.Map.View(e.offset, int64(e.length), func(raw []byte) error { return c.content(raw, e) })
		}
		if err != nil {
			err = c.f.f.Damage(e.offset, err)
		}
		c.add(e)
		c.say(e, err)
	}
	if c.next != p.offset {
		c.fault(c.next, fmt.Errorf("%d bytes between the blocks and their directory page", p.offset-c.next))
	}
	c.next = p.offset + int64(p.length)
}

// place verifies where a block stands.
func (c *checker) place(e *Entry) error {
	switch {
	case e.offset != c.next:
		return fmt.Errorf("the block should begin at byte %d", c.next)
	case c.total.Blocks > 0 && (e.ID < c.last.ID || e.ID == c.last.ID && e.First < c.last.Last):
		return fmt.Errorf("series %d at %d stands behind series %d at %d", e.ID, e.First, c.last.ID, c.last.Last)
	case e.ID == 0:
		return errors.New("series 0")
	}
	return nil
}

// add counts a block.
func (c *checker) add(e *Entry) {
	t := &c.total
	if t.Blocks == 0 {
		t.Range = core.Range{Start: e.First, End: e.Last + 1}
	}
	t.Range.Start, t.Range.End = min(t.Range.Start, e.First), max(t.Range.End, e.Last+1)
	if t.Blocks == 0 || e.ID != c.last.ID {
		t.Series++
	}
	t.Blocks++
	t.Rows += uint64(e.Count)
	c.last, c.next = *e, e.offset+int64(e.length)
}

// content decodes a block and compares it with what the directory says of it.
func (c *checker) content(raw []byte, e *Entry) error {
	b := &c.block
	if err := decode(raw, e, &c.decoder, b); err != nil {
		return err
	}
	parts, err := split(raw, e)
	if err != nil {
		return err
	}
	if err := c.decoder.Check(parts.values, e.Count); err != nil { // more than what decoding notices
		return err
	}
	sides := len(b.Texts)+len(b.Decimals)+len(b.Versions) > 0
	switch {
	case b.Times[0] != e.First || b.Times[e.Count-1] != e.Last:
		return fmt.Errorf("the block has the times %d to %d, its directory entry %d to %d", b.Times[0], b.Times[e.Count-1], e.First, e.Last)
	case hasVersions(b.Times) != (e.Flags&HasVersions != 0):
		return errors.New("the directory entry is wrong about versions")
	case sides != (e.Flags&HasSides != 0):
		return errors.New("the directory entry is wrong about texts, decimals and version fields")
	case e.Flags&HasStats == 0:
		return nil
	}
	if s, some := summarize(b); !some || !s.equal(&e.Stats) {
		return fmt.Errorf("the statistics of the directory entry are not those of the block: %v instead of %v", e.Stats, s)
	}
	return nil
}

// equal compares numbers by their bits.
func (s *Stats) equal(o *Stats) bool {
	x, y := *s, *o
	for _, pair := range [...][2]*float64{{&x.Sum, &y.Sum}, {&x.Min, &y.Min}, {&x.Max, &y.Max}, {&x.First, &y.First}, {&x.Last, &y.Last}} {
		if math.Float64bits(*pair[0]) != math.Float64bits(*pair[1]) {
			return false
		}
		*pair[0], *pair[1] = 0, 0
	}
	return x == y
}

// totals compares the tail with what was counted.
func (c *checker) totals() {
	t := &c.f.tail
	if c.next != t.list && !c.stopped {
		c.fault(c.next, fmt.Errorf("%d bytes in front of the page list", t.list-c.next))
	}
	if c.broken || c.stopped {
		return
	}
	want := c.total
	want.Generation, want.Oldest = t.Generation, t.Oldest
	if want.Blocks == 0 {
		want.Range = t.Range
	}
	if t.Oldest > t.Generation || t.summary != want {
		c.fault(c.f.f.Size-tailSize, fmt.Errorf("the end of the file says %+v, and %+v was found", t.summary, want))
	}
}

// columns are the parts of a block as they are encoded.
type columns struct{ times, texts, decimals, versions, values []byte }

// split verifies the checksum of a block and parts its columns. They point into raw.
func split(raw []byte, e *Entry) (c columns, err error) {
	r, err := open(raw)
	if err != nil {
		return c, err
	}
	c.times = r.Take(r.Uvarint())
	if e.Flags&HasSides != 0 {
		for _, column := range [...]*[]byte{&c.texts, &c.decimals, &c.versions} {
			*column = r.Take(r.Uvarint())
		}
	}
	if c.values = r.Rest; r.Failed {
		return c, errShort
	}
	return c, nil
}

// Dump writes a file as text: its end, its directory pages and each block with how it is encoded. rows, when it is not nil, is asked for the text of the rows
// of each block. What cannot be read is a line that begins with an exclamation mark.
func Dump(w io.Writer, f *File, rows func(*core.Block) string) error {
	d := dumper{w: w, f: f, rows: rows}
	t := &f.tail
	d.printf("samples of %d bytes, version %d: %d rows in %d blocks of %d series, times %d to %d, generations %d to %d\n", f.f.Size, version,
		t.Rows, t.Blocks, t.Series, t.Range.Start, t.Range.End-1, t.Oldest, t.Generation)
	var c Cursor
	for i := range f.pages {
		p := &f.pages[i]
		d.printf("page %d at %d, %d bytes: series %d to %d\n", i, p.offset, p.length, p.first, p.last)
		if err := f.load(&c, i); err != nil {
			d.printf("! %v\n", err)
			continue
		}
		for at := range c.entries {
			d.entry(&c.entries[at])
		}
	}
	return d.err
}

// dumper keeps the first write error.
type dumper struct {
	w       io.Writer
	f       *File
	rows    func(*core.Block) string
	decoder chunk.Decoder
	block   core.Block
	err     error
}

func (d *dumper) printf(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *dumper) entry(e *Entry) {
	d.printf("%d: series %d, %d rows, times %d to %d, %d bytes\n", e.offset, e.ID, e.Count, e.First, e.Last, e.length)
	err := d.f.f.Map.View(e.offset, int64(e.length), func(raw []byte) error {
		c, err := split(raw, e)
		if err != nil {
			return err
		}
		for _, column := range [...][]byte{c.times, c.values, c.texts, c.decimals, c.versions} {
			if len(column) > 0 {
				d.printf("  %s\n", chunk.Describe(column))
			}
		}
		return nil
	})
	if s := &e.Stats; e.Flags&HasStats != 0 {
		d.printf("  %d numbers: sum %v, min %v at %d, max %v at %d, first %v at %d, last %v at %d\n", s.Count, s.Sum, s.Min, s.MinTime, s.Max, s.MaxTime,
			s.First, s.FirstTime, s.Last, s.LastTime)
	}
	if err == nil && d.rows != nil {
		if err = d.f.Read(e, &d.decoder, &d.block); err == nil {
			d.printf("%s", d.rows(&d.block))
		}
	}
	if err != nil {
		d.printf("! %v\n", err)
	}
}
