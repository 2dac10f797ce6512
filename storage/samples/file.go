package samples

import (
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// File is an open file. All methods may be called concurrently.
type File struct {
	f     *sealed.File
	tail  tail
	pages []pageRef

	// Facts are kept with the file for its owner, who sets them before others see it.
	Facts Facts
	// Pages is where Find looks for directory pages first; nil: nowhere. The owner sets it before others see the file.
	Pages *Pages
}

// Facts are what may be known of a file beside what is in it; the zero value is that nothing is known.
type Facts struct {
	Numbers  bool   // all rows are numbers alone, one for each time
	Removals uint64 // how many series had ended when all series of the file were alive
}

// Open maps the file at path and reads its page list. The blocks are not looked at.
func Open(fs vfs.FS, path string) (*File, error) {
	f, err := kind.Open(fs, path)
	if err != nil {
		return nil, err
	}
	out := &File{f: f}
	err = f.ReadEnds(sealed.Ends{
		Tail: func(b []byte) (err error) {
			out.tail, err = parseTail(b, f.Size)
			return err
		},
		Directory: out.list,
		Content:   out.readPages,
	})
	if err != nil {
		return nil, errors.Join(err, f.Map.Close())
	}
	return out, nil
}

// list is where the page list is.
func (f *File) list() (offset, length int64) { return f.tail.list, int64(f.tail.listLength) }

func (f *File) readPages(b []byte) error {
	if sealed.Checksum(b) != f.tail.listSum || len(b)%pageRefSize != 0 {
		return fmt.Errorf("the page list does not match its checksum")
	}
	pages := make([]pageRef, 0, len(b)/pageRefSize)
	for ; len(b) > 0; b = b[pageRefSize:] {
		p := parsePageRef(b)
		if p.offset < sealed.HeaderSize || p.offset+int64(p.length) > f.tail.list || p.last < p.first {
			return fmt.Errorf("a page lies outside of the file")
		}
		pages = append(pages, p)
	}
	f.pages = pages
	return nil
}

// Close gives the mapping back when the last view has ended.
func (f *File) Close() error { return f.f.Map.Close() }

// Path is where the file was opened.
func (f *File) Path() string { return f.f.Path }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.f.Size }

// Range contains the times of all rows.
func (f *File) Range() core.Range { return f.tail.Range }

// Rows and Series count what is in the file.
func (f *File) Rows() uint64   { return f.tail.Rows }
func (f *File) Series() uint64 { return f.tail.Series }

// Generation is that of the newest samples, Oldest that of the oldest: both as the Writer was told.
func (f *File) Generation() uint64 { return f.tail.Generation }
func (f *File) Oldest() uint64     { return f.tail.Oldest }

// Cursor remembers the directory page that was read last, for those who ask for one series after the other. The zero value is ready; it serves one
// file and one goroutine.
type Cursor struct {
	page    int // plus one
	entries []Entry
	memory  []Entry // of pages that are its own
}

// Reset makes the cursor ready for another file.
func (c *Cursor) Reset() { c.page = 0 }

// load reads page i into the cursor.
func (f *File) load(c *Cursor, i int) error {
	if c.page == i+1 {
		return nil
	}
	c.page = 0
	var err error
	if c.memory, err = f.parse(c.memory[:0], i); err != nil {
		return err
	}
	c.entries, c.page = c.memory, i+1
	return nil
}

// look is load by way of the pages that are kept.
func (f *File) look(c *Cursor, i int) (err error) {
	if f.Pages == nil || c.page == i+1 {
		return f.load(c, i)
	}
	c.page = 0
	if c.entries, err = f.Pages.entries(f, i); err == nil {
		c.page = i + 1
	}
	return err
}

// parse appends the entries of page i to dst.
func (f *File) parse(dst []Entry, i int) ([]Entry, error) {
	p := &f.pages[i]
	err := f.f.Map.View(p.offset, int64(p.length), func(b []byte) (err error) {
		dst, err = parsePage(dst, b, p.offset)
		return err
	})
	if err != nil {
		return dst, f.f.Damage(p.offset, err)
	}
	return dst, nil
}

// Find appends to dst the entries of a series that overlap r, in order of time.
func (f *File) Find(c *Cursor, id ID, r core.Range, dst []Entry) ([]Entry, error) {
	if f.tail.Range.Intersect(r).Empty() {
		return dst, nil
	}
	i := sort.Search(len(f.pages), func(i int) bool { return f.pages[i].last >= id })
	for ; i < len(f.pages) && f.pages[i].first <= id; i++ {
		if err := f.look(c, i); err != nil {
			return dst, err
		}
		at := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].ID >= id })
		for ; at < len(c.entries) && c.entries[at].ID == id; at++ {
			if e := &c.entries[at]; e.Overlaps(r) {
				dst = append(dst, *e)
			}
		}
	}
	return dst, nil
}

// Entries yields the whole directory, in the order of the file.
func (f *File) Entries() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var c Cursor
		for i := range f.pages {
			if err := f.load(&c, i); err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for at := range c.entries {
				if !yield(&c.entries[at], nil) {
					return
				}
			}
		}
	}
}

// Read decodes a block into the columns of b, whose memory it uses again; the key is left alone.
func (f *File) Read(e *Entry, d *chunk.Decoder, b *core.Block) error {
	err := f.f.Map.View(e.offset, int64(e.length), func(raw []byte) error { return decode(raw, e, d, b) })
	if err != nil {
		return f.f.Damage(e.offset, err)
	}
	return nil
}

// Values decodes the values of a block alone into dst[:0].
func (f *File) Values(e *Entry, d *chunk.Decoder, dst []float64) ([]float64, error) {
	dst = dst[:0]
	err := f.f.Map.View(e.offset, int64(e.length), func(raw []byte) error {
		r, err := open(raw)
		if err != nil {
			return err
		}
		r.Take(r.Uvarint()) // times
		if e.Flags&HasSides != 0 {
			for range 3 { // texts, decimals, versions
				r.Take(r.Uvarint())
			}
		}
		if r.Failed {
			return errShort
		}
		dst, err = d.Values(dst, r.Rest, e.Count)
		return err
	})
	if err != nil {
		return dst, f.f.Damage(e.offset, err)
	}
	return dst, nil
}

func decode(raw []byte, e *Entry, d *chunk.Decoder, b *core.Block) (err error) {
	r, err := open(raw)
	if err != nil {
		return err
	}
	if times := r.Take(r.Uvarint()); e.Count == 1 {
		b.Times = append(b.Times[:0], e.First)
	} else if b.Times, err = d.Times(b.Times[:0], times, e.Count); err != nil {
		return err
	}
	b.Texts, b.Decimals, b.Versions = b.Texts[:0], b.Decimals[:0], b.Versions[:0]
	if e.Flags&HasSides != 0 {
		if b.Texts, err = d.Texts(b.Texts, r.Take(r.Uvarint()), e.Count); err != nil {
			return err
		}
		if b.Decimals, err = d.Decimals(b.Decimals, r.Take(r.Uvarint()), e.Count); err != nil {
			return err
		}
		if b.Versions, err = d.Versions(b.Versions, r.Take(r.Uvarint()), e.Count); err != nil {
			return err
		}
	}
	if r.Failed {
		return errShort
	}
	b.Values, err = d.Values(b.Values[:0], r.Rest, e.Count)
	b.Places = e.places(d)
	return err
}

// places is what the block says of values that were just decoded.
func (e *Entry) places(d *chunk.Decoder) int8 {
	const most = 1 << 31
	k, ok := d.Places()
	if !ok || k == 0 && !(e.Flags&HasStats != 0 && e.Stats.Min > -most && e.Stats.Max < most) {
		return 0
	}
	return int8(k + 1)
}

var errShort = errors.New("a block ends early")

// open checks the checksum of a block and returns what is behind it.
func open(raw []byte) (sealed.Reader, error) {
	if len(raw) < 5 {
		return sealed.Reader{}, errShort
	}
	if sum := uint32(raw[0]) | uint32(raw[1])<<8 | uint32(raw[2])<<16 | uint32(raw[3])<<24; sum != sealed.Checksum(raw[4:]) {
		return sealed.Reader{}, errors.New("a block does not match its checksum")
	}
	return sealed.Reader{Rest: raw[4:]}, nil
}

// Raw appends the bytes of a block to dst, for Writer.Copy.
func (f *File) Raw(e *Entry, dst []byte) ([]byte, error) {
	start := len(dst)
	err := f.f.Map.View(e.offset, int64(e.length), func(raw []byte) error {
		if _, err := open(raw); err != nil {
			return err
		}
		dst = append(dst[:start], raw...)
		return nil
	})
	if err != nil {
		return dst[:start], f.f.Damage(e.offset, err)
	}
	return dst, nil
}
