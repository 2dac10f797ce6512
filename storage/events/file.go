package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// File is an open file. All methods may be called concurrently.
type File struct {
	path   string
	m      vfs.Mapping
	size   int64
	tail   tail
	blocks []Block
}

// DamageError says which part of a file cannot be read.
type DamageError struct {
	Path   string
	Offset int64
	Cause  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("messages: %s is damaged at byte %d: %v", e.Path, e.Offset, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// Open maps the file at path and reads its directory, some hundred bytes for a thousand messages.
func Open(fs vfs.FS, path string) (*File, error) {
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("messages: open: %w", err)
	}
	defer f.Close() // read only; the mapping outlives it
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("messages: size of %s: %w", path, err)
	}
	if size < headerSize+2*tailSize {
		return nil, &DamageError{path, 0, fmt.Errorf("%d bytes are too few", size)}
	}
	m, err := f.Map(size)
	if err != nil {
		return nil, fmt.Errorf("messages: map %s: %w", path, err)
	}
	out := &File{path: path, m: m, size: size}
	if err := out.readEnds(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return out, nil
}

// readEnds reads the tail and the directory, or their copies.
func (f *File) readEnds() error {
	parse := func(b []byte) (err error) {
		f.tail, err = parseTail(b, f.size)
		return err
	}
	at := f.size - tailSize
	err := f.m.View(at, tailSize, parse)
	if err != nil && f.m.View(at-tailSize, tailSize, parse) == nil {
		err = nil
	}
	if err == nil {
		at = f.tail.directory
		err = f.m.View(at, int64(f.tail.length), f.readDirectory)
		if err != nil && f.m.View(at+int64(f.tail.length), int64(f.tail.length), f.readDirectory) == nil {
			err = nil
		}
	}
	if err != nil {
		return &DamageError{f.path, at, err}
	}
	return nil
}

func (f *File) readDirectory(b []byte) error {
	if checksum(b) != f.tail.sum {
		return errors.New("the directory does not match its checksum")
	}
	r := reader{b: b}
	var blocks []Block
	for len(r.b) > 0 && !r.failed {
		blocks = append(blocks, r.block(f.tail.directory))
	}
	if r.failed {
		return errors.New("the directory makes no sense")
	}
	f.blocks = blocks
	return nil
}

// Close gives the mapping back when the last view has ended.
func (f *File) Close() error { return f.m.Close() }

// Size is the length of the file in bytes, Messages how many it holds.
func (f *File) Size() int64      { return f.size }
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
	err = f.m.View(b.offset, int64(b.length), func(raw []byte) error {
		if binary.LittleEndian.Uint32(raw) != checksum(raw[4:]) {
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
		return nil, &DamageError{f.path, b.offset, err}
	}
	return records, nil
}

// decode is the inverse of encode.
func decode(body []byte, n int) ([]Record, error) {
	if n > len(body) { // every message takes some bytes: nothing is allocated for a count that cannot be
		return nil, errShort
	}
	r := reader{b: body}
	out := make([]Record, n)
	last := core.Time(0)
	for i := range out {
		last += core.Time(r.varint())
		out[i].Time = last
	}
	r.column(out, func(m *Record, name string) { m.Entity = name })
	r.column(out, func(m *Record, name string) { m.Type = name })
	r.column(out, func(m *Record, name string) { m.Source = name })
	for i := range out {
		out[i].Severity = core.Severity(r.u8())
	}
	for i := range out {
		out[i].Received = out[i].Time + core.Time(r.varint())
	}
	arrival := uint64(0)
	for i := range out {
		arrival += uint64(r.varint())
		out[i].Arrival = arrival
	}
	values := r.tags(out)
	lengths := make([]uint64, n)
	for i := range lengths {
		lengths[i] = r.uvarint()
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
	if r.failed || len(r.b) > 0 {
		return nil, errShort
	}
	return out, nil
}

var errShort = errors.New("a block ends too early or too late")

// names reads a dictionary.
func (r *reader) names() []string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.failed = true
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text(r.uvarint())
	}
	return list
}

func (r *reader) column(out []Record, set func(*Record, string)) {
	names := r.names()
	for i := range out {
		at := r.uvarint()
		if at >= uint64(len(names)) {
			r.failed = true
			return
		}
		set(&out[i], names[at])
	}
}

// tags makes the tags of all messages and returns the lengths of their values.
func (r *reader) tags(out []Record) (values []uint64) {
	names := r.names()
	var all core.Tags
	counts := make([]int, len(out))
	for i := range out {
		n := r.uvarint()
		if n > uint64(len(r.b)) {
			r.failed = true
			return nil
		}
		counts[i] = int(n)
		for range n {
			at := r.uvarint()
			if at >= uint64(len(names)) {
				r.failed = true
				return nil
			}
			all, values = append(all, core.Tag{Name: names[at]}), append(values, r.uvarint())
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
func (r *reader) text(n uint64) string {
	if n > uint64(len(r.b)) {
		r.failed, r.b = true, nil
		return ""
	}
	b := r.take(n)
	return unsafe.String(unsafe.SliceData(b), len(b))
}
