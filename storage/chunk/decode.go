package chunk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrDamaged is what every error of a decoder wraps: the bytes are not what an Encoder of this or an earlier version wrote.
var ErrDamaged = errors.New("damaged column")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// reader takes fields from the front of a column. After the first fault it yields zeroes and keeps the fault.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = damaged(format, args...)
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("it ends early")
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

// bytes takes n bytes. They point into the column.
func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail("%d bytes are missing", n-len(r.b))
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("a number is malformed")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("a number is malformed")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count takes a number that is at most limit.
func (r *reader) count(limit int) int {
	v := r.uvarint()
	if v > uint64(limit) {
		r.fail("a count of %d is above %d", v, limit)
		return 0
	}
	return int(v)
}

// finish fails when bytes are left over.
func (r *reader) finish() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return r.err
}

// header is what stands before the body of a stream.
type header struct {
	kind      byte
	transform transform
	zigzag    bool
	patches   bool
	first     [2]int64 // values that the transform stores as they are: the first, and the first difference
	param     int64
	base      int64
	unit      int64
}

// header reads the head of a stream of n integers, n not 0.
func (r *reader) header(n int) header {
	b := r.byte()
	h := header{kind: b & kindMask, transform: transform(b>>headTransform) & transformMask, zigzag: b&headZigzag != 0, patches: b&headPatches != 0, unit: 1}
	order := h.transform.order()
	if h.transform > transformMean || n <= order {
		r.fail("a stream of %d numbers begins with %#x", n, b)
		return h
	}
	for i := range order {
		h.first[i] = r.varint()
	}
	if h.transform.hasParam() {
		h.param = r.varint()
	}
	if h.transform == transformMean && (h.param < 0 || h.param > maxMeanShift) {
		r.fail("a mean is shifted by %d", h.param)
	}
	h.base = r.varint()
	if b&headUnit != 0 {
		h.unit = int64(r.uvarint())
	}
	return h
}

// stream reads len(dst) integers. Depth bounds how far patches of patches go.
func (d *Decoder) stream(r *reader, dst []int64, depth int) {
	if len(dst) == 0 || r.err != nil {
		return
	}
	if h := d.residuals(r, dst, depth); r.err == nil {
		h.restore(dst)
	}
}

// residuals reads a stream but for its last step. Dst is not empty; the values that the transform stores as they are, are not in it.
func (d *Decoder) residuals(r *reader, dst []int64, depth int) header {
	h := r.header(len(dst))
	if r.err == nil {
		d.body(r, &h, dst, depth)
	}
	return h
}

// body reads what is behind a header.
func (d *Decoder) body(r *reader, h *header, dst []int64, depth int) {
	// All happens in place: q is dst without the first values, and what is unpacked into it becomes the numbers.
	q := dst[h.transform.order():]
	switch h.kind {
	case kindConstant:
		clear(q)
	case kindPacked:
		d.groups(r, q, h.zigzag)
	case kindCoded:
		d.coded(r, q)
	case kindBytes:
		d.wide(r, q)
	}
	if h.patches && r.err == nil {
		d.patch(r, q, depth)
	}
}

// groups reads a width a group and the groups.
func (d *Decoder) groups(r *reader, q []int64, signed bool) {
	widths := r.bytes((len(q) + groupSize - 1) / groupSize)
	for _, width := range widths {
		if width > maxWidth && width != 64 {
			r.fail("a group has width %d", width)
			return
		}
		n := min(len(q), groupSize)
		group := q[:n]
		q = q[n:]
		// The group is sure to be there; the kernels may look at what is behind it, as far as the column goes.
		size := packedLen(n, uint(width))
		if size > len(r.b) {
			r.fail("a group is cut off")
			return
		}
		d.tail.unpack(group, r.b, uint(width))
		r.b = r.b[size:]
		if signed {
			unzigzag(group)
		}
	}
}

// coded reads symbols and the low bits behind them.
func (d *Decoder) coded(r *reader, q []int64) {
	symbols, low := d.symbols(r, q)
	switch {
	case symbols == nil:
	case low > 0:
		joinSymbols(q, symbols, low)
	default:
		spreadSymbols(q, symbols)
	}
}

// symbols reads symbols of a byte, one for each of q, and the low bits behind them, if any, into q. It returns no symbols when several shared a byte, of which
// q then has all, or after a fault.
func (d *Decoder) symbols(r *reader, q []int64) (symbols []byte, low uint) {
	form := r.byte()
	low = uint(form & 63)
	var each int // symbols a byte
	switch form >> 6 {
	case 2:
		each = 1
	case 1:
		each = 2
	case 0:
		each = 4
	}
	if each == 0 || low > maxWidth || each > 1 && low > 0 {
		r.fail("symbols have form %#x", form)
		return nil, 0
	}
	symbols = d.byteString(r, (len(q)+each-1)/each)
	size := packedLen(len(q), low)
	if r.err == nil && size > len(r.b) {
		r.fail("low bits are cut off")
	}
	switch {
	case r.err != nil:
		return nil, 0
	case each == 4:
		d.tail.unpack(q, symbols, 2)
		return nil, 0
	case each == 2:
		d.tail.unpack(q, symbols, 4)
		return nil, 0
	case low > 0:
		d.tail.unpack(q, r.b, low)
		r.b = r.b[size:]
	}
	return symbols, low
}

// wide reads u8 width and integers of so many bytes each.
func (d *Decoder) wide(r *reader, q []int64) {
	width := int(r.byte())
	if width < 1 || width > 8 {
		r.fail("integers of %d bytes", width)
		return
	}
	b := d.byteString(r, len(q)*width)
	if r.err != nil {
		return
	}
	mask := uint64(math.MaxUint64) >> (64 - 8*width)
	for i := range q {
		if len(b) >= 8 {
			q[i] = int64(binary.LittleEndian.Uint64(b) & mask)
		} else {
			var padded [8]byte
			copy(padded[:], b)
			q[i] = int64(binary.LittleEndian.Uint64(padded[:]) & mask)
		}
		b = b[width:]
	}
}

// patch replaces residuals: a stream of the gaps between their indexes, and one of values.
func (d *Decoder) patch(r *reader, q []int64, depth int) {
	if depth == packedDepth {
		r.fail("patches are nested too deep")
		return
	}
	n := r.count(len(q))
	l := &d.levels[depth]
	l.gaps, l.patches = resize(l.gaps, n), resize(l.patches, n)
	d.stream(r, l.gaps, depth+1)
	d.stream(r, l.patches, depth+1)
	if r.err != nil {
		return
	}
	// A gap is checked against what is left of q: the index itself cannot overflow.
	rest := q
	patches := l.patches
	for i, gap := range l.gaps {
		if uint64(gap) >= uint64(len(rest)) {
			r.fail("a patch lies outside")
			return
		}
		rest[gap] = patches[i]
		rest = rest[gap+1:]
	}
}
