package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// File is an open file. All methods may be called concurrently.
type File struct {
	f      *sealed.File
	tail   tail
	blocks []Block
}

// Open maps the file at path and reads its directory, some hundred bytes for a thousand messages.
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
		Directory: out.directory,
		Content:   out.readDirectory,
	})
	if err != nil {
		return nil, errors.Join(err, f.Map.Close())
	}
	return out, nil
}

// directory is where the directory is.
func (f *File) directory() (offset, length int64) { return f.tail.directory, int64(f.tail.length) }

func (f *File) readDirectory(b []byte) error {
	if sealed.Checksum(b) != f.tail.sum {
		return errors.New("the directory does not match its checksum")
	}
	r := fields{sealed.Reader{Rest: b}}
	var blocks []Block
	for len(r.Rest) > 0 && !r.Failed {
		blocks = append(blocks, parseBlock(&r.Reader, f.tail.directory))
	}
	if r.Failed {
		return errors.New("the directory makes no sense")
	}
	f.blocks = blocks
	return nil
}

// Close gives the mapping back when the last view has ended.
func (f *File) Close() error { return f.f.Map.Close() }

// Size is the length of the file in bytes, Messages how many it holds.
func (f *File) Size() int64      { return f.f.Size }
func (f *File) Messages() uint64 { return f.tail.messages }

// Newest is the time of the newest message.
func (f *File) Newest() core.Time { return f.tail.newest }

// Received is the latest time at which a message was received.
func (f *File) Received() core.Time {
	last := core.MinTime
	for i := range f.blocks {
		last = max(last, f.blocks[i].Received)
	}
	return last
}

// Generation is that of the newest messages, Oldest that of the oldest: both as the Writer was told.
func (f *File) Generation() uint64 { return f.tail.generation }
func (f *File) Oldest() uint64     { return f.tail.old }

// Blocks is the directory, newest first. It must not be changed.
func (f *File) Blocks() []Block { return f.blocks }

// zips holds decoders: each has some hundred kilobytes.
var zips = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock), zstd.IgnoreChecksum(true))
	if err != nil {
		return err
	}
	return d
}}

// Read decodes block i. The records share memory with each other and with nothing else.
func (f *File) Read(i int) (records []Record, err error) {
	b := &f.blocks[i]
	err = f.f.Map.View(b.offset, int64(b.length), func(raw []byte) error {
		if binary.LittleEndian.Uint32(raw) != sealed.Checksum(raw[4:]) {
			return errors.New("a block does not match its checksum")
		}
		zip, ok := zips.Get().(*zstd.Decoder)
		if !ok {
			return errors.New("no decoder")
		}
		defer zips.Put(zip)
		body, err := zip.DecodeAll(raw[4:], make([]byte, 0, b.raw))
		if err != nil {
			return err
		}
		if len(body) != b.raw {
			return fmt.Errorf("a block of %d bytes instead of %d", len(body), b.raw)
		}
		records, err = decode(body, b.Count)
		return err
	})
	if err != nil {
		return nil, f.f.Damage(b.offset, err)
	}
	return records, nil
}

// decode is the inverse of encode.
func decode(body []byte, n int) ([]Record, error) {
	if n > len(body) { // every message takes some bytes: nothing is allocated for a count that cannot be
		return nil, errShort
	}
	r := fields{sealed.Reader{Rest: body}}
	out := make([]Record, n)
	last := core.Time(0)
	for i := range out {
		last += core.Time(r.Varint())
		out[i].Time = last
	}
	r.column(out, func(m *Record, name string) { m.Entity = name })
	r.column(out, func(m *Record, name string) { m.Type = name })
	r.column(out, func(m *Record, name string) { m.Source = name })
	for i := range out {
		out[i].Severity = core.Severity(r.U8())
	}
	for i := range out {
		out[i].Received = out[i].Time + core.Time(r.Varint())
	}
	arrival := uint64(0)
	for i := range out {
		arrival += uint64(r.Varint())
		out[i].Arrival = arrival
	}
	values := r.tags(out)
	lengths := make([]uint64, n)
	for i := range lengths {
		lengths[i] = r.Uvarint()
	}
	at := 0
	for i := range out {
		for t := range out[i].Tags {
			out[i].Tags[t].Value = r.text(values[at])
			at++
		}
	}
	for i := range out {
		out[i].Text = r.text(lengths[i])
		out[i].Flags = core.Stored
	}
	if r.Failed || len(r.Rest) > 0 {
		return nil, errShort
	}
	return out, nil
}

// fields reads the columns of a block.
type fields struct{ sealed.Reader }

var errShort = errors.New("a block ends too early or too late")

// names reads a dictionary.
func (r *fields) names() []string {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)) {
		r.Failed = true
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text(r.Uvarint())
	}
	return list
}

func (r *fields) column(out []Record, set func(*Record, string)) {
	names := r.names()
	for i := range out {
		at := r.Uvarint()
		if at >= uint64(len(names)) {
			r.Failed = true
			return
		}
		set(&out[i], names[at])
	}
}

// tags makes the tags of all messages and returns the lengths of their values.
func (r *fields) tags(out []Record) (values []uint64) {
	names := r.names()
	var all core.Tags
	counts := make([]int, len(out))
	for i := range out {
		n := r.Uvarint()
		if n > uint64(len(r.Rest)) {
			r.Failed = true
			return nil
		}
		counts[i] = int(n)
		for range n {
			at := r.Uvarint()
			if at >= uint64(len(names)) {
				r.Failed = true
				return nil
			}
			all, values = append(all, core.Tag{Name: names[at]}), append(values, r.Uvarint())
		}
	}
	for i := range out {
		if n := counts[i]; n > 0 {
			out[i].Tags, all = all[:n:n], all[n:]
		}
	}
	return values
}

// text returns the next n bytes as a string that shares their memory.
func (r *fields) text(n uint64) string {
	b := r.Take(n)
	return unsafe.String(unsafe.SliceData(b), len(b))
}
