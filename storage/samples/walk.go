package samples

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
)

// Walker goes over the directory of a file, in its order.
type Walker struct {
	f      *File
	page   int // that is read next
	at     int
	cursor Cursor
}

// Walk begins with the first block. The file must stay open.
func (f *File) Walk() *Walker { return &Walker{f: f} }

// Next returns the entry of the next block, valid until the next call; nil at the end. After an error it goes on behind the page that cannot be read.
func (w *Walker) Next() (*Entry, error) {
	for w.at == len(w.cursor.entries) {
		if w.page == len(w.f.pages) {
			return nil, nil
		}
		w.page, w.at = w.page+1, 0
		if err := w.f.load(&w.cursor, w.page-1); err != nil {
			w.cursor.entries = w.cursor.entries[:0]
			return nil, err
		}
	}
	w.at++
	return &w.cursor.entries[w.at-1], nil
}

// Window is a part of a file. Whoever reads one block after the other needs a look into the file for each window and not for each block, which counts when
// blocks are of few bytes. The zero value is ready; it serves one file and one goroutine.
type Window struct {
	offset int64
	bytes  []byte
}

// windowBytes is some thousand blocks of one sample.
const windowBytes = 32 << 10

// Raw returns the bytes of a block, for Writer.Copy. Their checksum is right; they are valid until the next call.
func (w *Window) Raw(f *File, e *Entry) ([]byte, error) {
	if e.offset < w.offset || e.offset+int64(e.length) > w.offset+int64(len(w.bytes)) {
		if err := w.move(f, e); err != nil {
			return nil, f.f.Damage(e.offset, err)
		}
	}
	raw := w.bytes[e.offset-w.offset:][:e.length]
	if _, err := open(raw); err != nil {
		return nil, f.f.Damage(e.offset, err)
	}
	return raw, nil
}

// move puts the beginning of the window where a block begins.
func (w *Window) move(f *File, e *Entry) error {
	take := func(raw []byte) error {
		w.offset, w.bytes = e.offset, append(w.bytes[:0], raw...)
		return nil
	}
	w.bytes = w.bytes[:0]
	length := int64(e.length)
	if more := min(windowBytes, f.tail.list-e.offset); more > length && f.f.Map.View(e.offset, more, take) == nil {
		return nil
	}
	w.bytes = w.bytes[:0] // a bad sector behind the block is no fault of the block
	return f.f.Map.View(e.offset, length, take)
}

// Read is File.Read.
func (w *Window) Read(f *File, e *Entry, d *chunk.Decoder, b *core.Block) error {
	raw, err := w.Raw(f, e)
	if err != nil {
		return err
	}
	return f.f.Damage(e.offset, decode(raw, e, d, b))
}
