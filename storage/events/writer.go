package events

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/sealed"
)

// Writer writes one file to w, front to back. It keeps one block in memory, and the directory.
type Writer struct {
	w         *bufio.Writer
	zip       *zstd.Encoder
	offset    int64
	records   []Record
	bytes     int
	body      []byte
	packed    []byte
	names     dictionary
	directory []byte
	total     tail
	err       error
}

// NewWriter begins a file that holds messages of the generations from oldest to newest.
func NewWriter(w io.Writer, oldest, newest uint64) (*Writer, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	out := &Writer{w: bufio.NewWriterSize(w, 256<<10), zip: zip}
	out.total.old, out.total.generation = oldest, newest
	out.write(kind.AppendHeader(nil))
	return out, out.err
}

// Add writes a message. They come newest first; equal times by entity, type, source and arrival.
func (w *Writer) Add(r *Record) error {
	if n := len(w.records); n > 0 && (n >= blockRecords || w.bytes >= blockBytes) && (r.Time != w.records[n-1].Time || n >= maxRecords) {
		w.flush()
	}
	w.records = append(w.records, *r)
	w.bytes += len(r.Text) + 16
	for _, t := range r.Tags {
		w.bytes += len(t.Value) + 2
	}
	return w.err
}

// flush writes the block that is being filled.
func (w *Writer) flush() {
	n := len(w.records)
	if n == 0 || w.err != nil {
		return
	}
	b := Block{Newest: w.records[0].Time, Oldest: w.records[n-1].Time, Count: n, offset: w.offset}
	for i := range w.records {
		b.severities |= 1 << (w.records[i].Severity & 7)
		b.Received = max(b.Received, w.records[i].Received)
	}
	w.encode(&b)
	b.raw = len(w.body)
	w.packed = w.zip.EncodeAll(w.body, append(w.packed[:0], 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(w.packed, sealed.Checksum(w.packed[4:]))
	b.length = len(w.packed)
	w.write(w.packed)
	w.directory = b.append(w.directory)
	if w.total.messages == 0 {
		w.total.newest = b.Newest
	}
	w.total.oldest = b.Oldest
	w.total.messages += uint64(n)
	clear(w.records)
	w.records, w.bytes = w.records[:0], 0
}

// encode writes the columns of a block, one after the other:
//
//	times: n * varint, less the one before | entities | types | sources | n * u8 severity | received: n * varint, less the time | arrivals: n * varint, less the one before
//	| tag names: dictionary | tags: n * ( uvarint count, count * ( uvarint name, uvarint length of the value ) ) | texts: n * uvarint length | values | texts
//
// entities, types and sources are each a dictionary and n * uvarint index into it. A dictionary is a uvarint count and so many names, each a uvarint length and bytes.
func (w *Writer) encode(b *Block) {
	w.body = w.body[:0]
	last := core.Time(0)
	for i := range w.records {
		w.varint(int64(w.records[i].Time - last))
		last = w.records[i].Time
	}
	b.entities = w.column(func(r *Record) string { return r.Entity })
	b.types = w.column(func(r *Record) string { return r.Type })
	w.column(func(r *Record) string { return r.Source })
	for i := range w.records {
		w.body = append(w.body, byte(w.records[i].Severity))
	}
	for i := range w.records {
		w.varint(int64(w.records[i].Received - w.records[i].Time))
	}
	arrival := uint64(0)
	for i := range w.records {
		w.varint(int64(w.records[i].Arrival - arrival))
		arrival = w.records[i].Arrival
	}
	w.tags()
	for i := range w.records {
		w.uvarint(len(w.records[i].Text))
	}
	for i := range w.records {
		for _, t := range w.records[i].Tags {
			w.body = append(w.body, t.Value...)
		}
	}
	for i := range w.records {
		w.body = append(w.body, w.records[i].Text...)
	}
}

func (w *Writer) uvarint(v int)  { w.body = binary.AppendUvarint(w.body, uint64(v)) }
func (w *Writer) varint(v int64) { w.body = binary.AppendVarint(w.body, v) }

// column writes one name of each message, and returns the hashes of all of them, nil when they are too many.
func (w *Writer) column(name func(*Record) string) (hashes []uint32) {
	w.names.reset()
	for i := range w.records {
		w.names.index(name(&w.records[i]))
	}
	w.dictionary()
	for i := range w.records {
		w.uvarint(w.names.index(name(&w.records[i])))
	}
	if len(w.names.list) > maxNames {
		return nil
	}
	for _, one := range w.names.list {
		hashes = append(hashes, hash(one))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

func (w *Writer) tags() {
	w.names.reset()
	for i := range w.records {
		for _, t := range w.records[i].Tags {
			w.names.index(t.Name)
		}
	}
	w.dictionary()
	for i := range w.records {
		w.uvarint(len(w.records[i].Tags))
		for _, t := range w.records[i].Tags {
			w.uvarint(w.names.index(t.Name))
			w.uvarint(len(t.Value))
		}
	}
}

func (w *Writer) dictionary() {
	w.uvarint(len(w.names.list))
	for _, one := range w.names.list {
		w.uvarint(len(one))
		w.body = append(w.body, one...)
	}
}

// dictionary numbers names in the order in which they come.
type dictionary struct {
	at   map[string]int
	list []string
}

func (d *dictionary) reset() {
	if d.at == nil {
		d.at = map[string]int{}
	}
	clear(d.at)
	d.list = d.list[:0]
}

func (d *dictionary) index(name string) int {
	i, ok := d.at[name]
	if !ok {
		i = len(d.list)
		d.at[name] = i
		d.list = append(d.list, name)
	}
	return i
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.offset += int64(n)
	w.err = err
}

// Close writes the end of the file and flushes; it does not close what is written to.
func (w *Writer) Close() error {
	w.flush()
	t := &w.total
	t.directory, t.length, t.sum = w.offset, uint32(len(w.directory)), sealed.Checksum(w.directory)
	end := t.append(nil)
	for _, part := range [...][]byte{w.directory, w.directory, end, end} { // twice: a bad byte must not cost the file
		w.write(part)
	}
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}
