package exec

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Runs are rows in temporary files, which only the process that wrote them reads: sorted ones with their keys, or one of the parts that rows were dealt out to,
// without. A file has no name once it is open, so that nothing is left of it whatever happens. It is a sequence of
//
//	length u32 | rows u32 | keys u8 | (length of key uvarint, key)* | columns uvarint | (type u8, kind u8, same u8, nulls u8, [NULL u8]*, values)*
//
// all of it little-endian. A column that is the same in every row has one value.

// What of each run is in memory when runs are merged: some 100 KB, less than 256 KiB where rows are long.
const (
	runRows  = 512
	runBytes = 256 << 10
)

// runBuffer is how many bytes are written, or read, at once: enough that calls of the system cost little.
const runBuffer = 64 << 10

// spillSpace holds the temporary files of a query.
type spillSpace struct {
	mu    sync.Mutex // guards the rest
	files []*os.File
	free  []*os.File // of them those that are empty and nobody's: making one takes longer than writing a little
	used  int64
}

func (s *spillSpace) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		f.Close() // nothing of it is needed
	}
	s.files, s.free = nil, nil
}

// run is first written, then read, as often as one likes.
type run struct {
	space  *spillSpace
	limit  int64
	file   *os.File
	buffer int           // bytes of out and of in
	out    *bufio.Writer // nil = nothing was written since the last rewind
	in     *bufio.Reader
	buf    []byte
	size   int64 // of the file

	batch column.Batch // rows that were read, with their keys; at is the current one
	keys  [][]byte
	at    int
}

// create makes a run. limit bounds the bytes of all runs together; 0 = no limit.
func (s *spillSpace) create(dir string, limit int64) (*run, error) {
	f, err := s.file(dir)
	if err != nil {
		return nil, err
	}
	return &run{space: s, limit: limit, file: f, buffer: runBuffer}, nil
}

// file returns an empty file.
func (s *spillSpace) file(dir string) (*os.File, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		f := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		return f, nil
	}
	s.mu.Unlock()
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
	return f, nil
}

// close gives the file back.
func (r *run) close() {
	s := r.space
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= r.size
	f := r.file
	*r = run{space: s}
	if f == nil {
		return // it was given back
	}
	if err := f.Truncate(0); err == nil {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			s.free = append(s.free, f)
			return
		}
	}
	f.Close() // nothing of it is needed
	s.files = slices.DeleteFunc(s.files, func(o *os.File) bool { return o == f })
}

// write appends rows with their keys; no keys: nobody asks for them.
func (r *run) write(keys [][]byte, b *column.Batch) error {
	buf := append(r.buf[:0], 0, 0, 0, 0)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(b.Len))
	buf = append(buf, flag(keys != nil))
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
	r.size += int64(len(buf))
	full := r.limit > 0 && r.space.used > r.limit
	r.space.mu.Unlock()
	if full {
		return core.Errorf(core.TooLarge, "the query needs more than the %d bytes of temporary files that sql.spill allows: narrow it, or raise the setting", r.limit)
	}
	if r.out == nil {
		r.out = bufio.NewWriterSize(r.file, r.buffer)
	}
	if _, err := r.out.Write(buf); err != nil {
		return core.Wrap(core.NoSpace, err, "a temporary file of the query cannot be written")
	}
	return nil
}

// rewind ends the writing and begins the reading.
func (r *run) rewind() error {
	if err := r.flush(); err != nil {
		return err
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return core.Wrap(core.Internal, err, "a temporary file of the query cannot be read")
	}
	r.in = bufio.NewReaderSize(r.file, r.buffer)
	return nil
}

// flush ends the writing and forgets its buffers.
func (r *run) flush() error {
	if r.out == nil {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return core.Wrap(core.NoSpace, err, "a temporary file of the query cannot be written")
	}
	r.out, r.buf = nil, nil
	return nil
}

// batches yields the rows from the first on.
func (r *run) batches(ctx context.Context) stream {
	return func(yield func(*column.Batch, error) bool) {
		err := r.rewind()
		for err == nil {
			if err = cmp.Or(ctx.Err(), r.next()); err != nil || r.batch.Len == 0 {
				break
			}
			if !yield(&r.batch, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// key returns the key of the current row.
func (r *run) key() []byte { return r.keys[r.at] }

// next reads the rows that follow; at the end there are none.
func (r *run) next() error {
	r.at, r.batch.Len = 0, 0
	var head [4]byte
	if _, err := io.ReadFull(r.in, head[:]); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return core.Wrap(core.Internal, err, "a temporary file of the query cannot be read")
	}
	size := int(binary.LittleEndian.Uint32(head[:]))
	if len(r.keys) > 0 || cap(r.buf) < size {
		r.buf = make([]byte, size) // the keys lay in the other one
	}
	r.buf = r.buf[:size]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return core.Wrap(core.Internal, err, "a temporary file of the query cannot be read")
	}
	d := runDecoder{buf: r.buf}
	n := int(d.u32())
	r.keys = r.keys[:0]
	if d.u8() != 0 {
		for range n {
			r.keys = append(r.keys, d.bytes())
		}
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
	kind, n := kindOf(v), v.Len
	if v.Const {
		n = 1
	}
	dst = append(dst, byte(v.Type), byte(kind), flag(v.Const), flag(v.Nulls != nil))
	if v.Nulls != nil {
		for _, null := range v.Nulls[:n] {
			dst = append(dst, flag(null))
		}
	}
	for i := range n {
		switch kind {
		case ints:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Ints[i]))
		case floats:
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Floats[i]))
		case texts:
			dst = appendBytes(dst, v.Strings[i])
		case mixed:
			x := v.Values[i]
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
	v := &column.Vector{Type: column.Type(d.u8())}
	kind := kind(d.u8())
	rows := n
	if v.Const = d.u8() != 0; v.Const {
		n = 1
	}
	if d.u8() != 0 {
		v.Nulls = make([]bool, n)
		for i, b := range d.take(n) {
			v.Nulls[i] = b != 0
		}
	}
	v.Len = n
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
	v.Len = rows
	return v
}
