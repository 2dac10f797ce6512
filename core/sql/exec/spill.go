package exec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Runs are sorted rows in temporary files, which only the process that wrote them reads. A file has no name once it is open, so that nothing is left of it
// whatever happens. It is a sequence of
//
//	length u32 | rows u32 | (length of key uvarint, key)* | columns uvarint | (type u8, kind u8, nulls u8, [NULL u8]*, values)*
//
// all of it little-endian.

// What of each run is in memory when runs are merged: some 100 KB, less than 256 KiB where rows are long.
const (
	runRows  = 512
	runBytes = 256 << 10
)

// spillSpace holds the temporary files of a query.
type spillSpace struct {
	mu    sync.Mutex // guards both
	files []*os.File
	used  int64
}

func (s *spillSpace) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		f.Close() // nothing of it is needed
	}
	s.files = nil
}

// run is one sorted run, first written, then read.
type run struct {
	space *spillSpace
	limit int64
	file  *os.File
	out   *bufio.Writer
	in    *bufio.Reader
	buf   []byte

	batch column.Batch // rows that were read, with their keys; at is the current one
	keys  [][]byte
	at    int
}

// create makes a run. limit bounds the bytes of all runs together; 0 = no limit.
func (s *spillSpace) create(dir string, limit int64) (*run, error) {
	err := os.MkdirAll(dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(dir, "sql-*.run")
	}
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "the query needs a temporary file, which cannot be made")
	}
	s.mu.Lock()
	s.files = append(s.files, f)
	s.mu.Unlock()
	if err := os.Remove(f.Name()); err != nil {
		return nil, core.Wrap(core.Internal, err, "a temporary file of the query cannot be unlinked")
	}
	return &run{space: s, limit: limit, file: f, out: bufio.NewWriterSize(f, 1<<16)}, nil
}

func (r *run) close() {
	r.space.mu.Lock()
	defer r.space.mu.Unlock()
	for i, f := range r.space.files {
		if f == r.file {
			f.Close() // nothing of it is needed
			r.space.files = append(r.space.files[:i], r.space.files[i+1:]...)
			return
		}
	}
}

// write appends rows with their keys.
func (r *run) write(keys [][]byte, b *column.Batch) error {
	buf := append(r.buf[:0], 0, 0, 0, 0)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(b.Len))
	for _, key := range keys {
		buf = appendBytes(buf, key)
	}
	buf = binary.AppendUvarint(buf, uint64(len(b.Columns)))
	for _, v := range b.Columns {
		buf = appendColumn(buf, v)
	}
	binary.LittleEndian.PutUint32(buf, uint32(len(buf)-4))
	r.buf = buf
	r.space.mu.Lock()
	r.space.used += int64(len(buf))
	full := r.limit > 0 && r.space.used > r.limit
	r.space.mu.Unlock()
	if full {
		return core.Errorf(core.TooLarge, "the query needs more than the %d bytes of temporary files that sql.spill allows: narrow it, or raise the setting", r.limit)
	}
	if _, err := r.out.Write(buf); err != nil {
		return core.Wrap(core.NoSpace, err, "a temporary file of the query cannot be written")
	}
	return nil
}

// rewind ends the writing and begins the reading.
func (r *run) rewind() error {
	err := r.out.Flush()
	if err == nil {
		_, err = r.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return core.Wrap(core.NoSpace, err, "a temporary file of the query cannot be written")
	}
	r.out, r.in = nil, bufio.NewReaderSize(r.file, 1<<16)
	return nil
}

// key returns the key of the current row.
func (r *run) key() []byte { return r.keys[r.at] }

// next reads the rows that follow; at the end there are none.
func (r *run) next() error {
	r.at, r.batch.Len, r.keys = 0, 0, r.keys[:0]
	var head [4]byte
	if _, err := io.ReadFull(r.in, head[:]); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return core.Wrap(core.Internal, err, "a temporary file of the query cannot be read")
	}
	r.buf = make([]byte, binary.LittleEndian.Uint32(head[:])) // texts of the rows lie in it
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return core.Wrap(core.Internal, err, "a temporary file of the query cannot be read")
	}
	d := runDecoder{buf: r.buf}
	n := int(d.u32())
	for range n {
		r.keys = append(r.keys, d.bytes())
	}
	r.batch = column.Batch{Len: n, Columns: make([]*column.Vector, d.uvarint())}
	for i := range r.batch.Columns {
		r.batch.Columns[i] = d.column(n)
	}
	return nil
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendColumn(dst []byte, v *column.Vector) []byte {
	kind := kindOf(v)
	dst = append(dst, byte(v.Type), byte(kind), flag(v.Nulls != nil))
	if v.Nulls != nil {
		for i := range v.Len {
			dst = append(dst, flag(v.Nulls[v.Index(i)]))
		}
	}
	for i := range v.Len {
		switch at := v.Index(i); kind {
		case ints:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Ints[at]))
		case floats:
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Floats[at]))
		case texts:
			dst = appendBytes(dst, v.Strings[at])
		case mixed:
			x := v.Values[at]
			dst = append(dst, byte(x.Type), flag(x.Whole))
			dst = binary.LittleEndian.AppendUint64(dst, uint64(x.Int))
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x.Float))
			dst = appendBytes(dst, x.Text)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(v.Exact)))
	for _, e := range v.Exact {
		dst = binary.LittleEndian.AppendUint32(dst, e.Index)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Significand))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Exponent))
	}
	return dst
}

// runDecoder reads what was written a moment ago by the same process: it checks nothing.
type runDecoder struct{ buf []byte }

func (d *runDecoder) take(n int) []byte {
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *runDecoder) u8() byte    { return d.take(1)[0] }
func (d *runDecoder) u32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *runDecoder) u64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

func (d *runDecoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.buf)
	d.take(size)
	return n
}

func (d *runDecoder) bytes() []byte { return d.take(int(d.uvarint())) }

func (d *runDecoder) column(n int) *column.Vector {
	v := &column.Vector{Type: column.Type(d.u8()), Len: n}
	kind := kind(d.u8())
	if d.u8() != 0 {
		v.Nulls = make([]bool, n)
		for i, b := range d.take(n) {
			v.Nulls[i] = b != 0
		}
	}
	start(v, kind)
	for i := range n {
		switch kind {
		case ints:
			v.Ints[i] = int64(d.u64())
		case floats:
			v.Floats[i] = math.Float64frombits(d.u64())
		case texts:
			v.Strings[i] = string(d.bytes())
		case mixed:
			x := &v.Values[i]
			x.Type, x.Whole = column.Type(d.u8()), d.u8() != 0
			x.Int, x.Float = int64(d.u64()), math.Float64frombits(d.u64())
			x.Text = string(d.bytes())
		}
	}
	for range d.uvarint() {
		e := core.DecimalAt{Index: d.u32()}
		e.Significand, e.Exponent = int64(d.u64()), int32(d.u32())
		v.Exact = append(v.Exact, e)
	}
	return v
}
