package samples

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/sealed"
)

// Writer writes one file to w, front to back. Its memory does not depend on the size of the file, but for 20 bytes for each page of the directory.
type Writer struct {
	w       *bufio.Writer
	offset  int64
	encoder chunk.Encoder
	buf     []byte
	columns []byte
	entries []Entry // of the page that is being filled
	pages   []byte  // encoded page list
	total   tail
	last    Entry // the newest block
	flags   Flags // of all blocks
	err     error
}

// writeBuffer is one write to the disk: large enough that system calls do not count.
const writeBuffer = 1 << 20

// NewWriter begins a file that holds samples of the generations from oldest to newest.
func NewWriter(w io.Writer, oldest, newest uint64) *Writer {
	out := &Writer{w: bufio.NewWriterSize(w, writeBuffer)}
	out.total.Oldest, out.total.Generation = oldest, newest
	out.write(kind.AppendHeader(nil))
	return out
}

// Add writes the rows of b, in blocks. Series come in ascending order, and the rows of a series in ascending order of time over all calls; rows of one
// time come in one call. The entries behind an index of a side column are found by binary search, so b may be of any length.
func (w *Writer) Add(id ID, b *core.Block) error {
	for from := 0; from < len(b.Times) && w.err == nil; {
		to := blockEnd(b.Times, from)
		w.block(id, b, from, to)
		from = to
	}
	return w.err
}

// blockEnd returns where the block that starts at from ends: rows of one time are not parted.
func blockEnd(times []core.Time, from int) int {
	to := min(from+chunk.MaxSamples, len(times))
	if to == len(times) {
		return to
	}
	end := to
	for end > from && times[end] == times[end-1] {
		end--
	}
	if end > from {
		return end
	}
	return to // more versions of one time than a block holds: readers put them together again
}

func (w *Writer) block(id ID, b *core.Block, from, to int) {
	e := Entry{ID: id, Count: to - from, First: b.Times[from], Last: b.Times[to-1], offset: w.offset}
	part := slice(b, from, to)
	if len(part.Texts)+len(part.Decimals)+len(part.Versions) > 0 {
		e.Flags |= HasSides
	}
	if hasVersions(part.Times) {
		e.Flags |= HasVersions
	}
	if e.Count >= statsFrom && e.Flags&HasVersions == 0 {
		if stats, some := summarize(&part); some {
			e.Flags, e.Stats = e.Flags|HasStats, stats
		}
	}
	w.buf = w.encode(w.buf[:0], &part, e.Flags)
	w.put(e, w.buf)
}

func hasVersions(times []core.Time) bool {
	for i := 1; i < len(times); i++ {
		if times[i] == times[i-1] {
			return true
		}
	}
	return false
}

// encode appends a block:
//
//	u32 CRC-32C of the rest | uvarint length of the times | times | [ uvarint length, texts | uvarint length, decimals | uvarint length, versions ] | values
//
// The part in brackets is there with HasSides. A single time is not written: it is in the directory.
func (w *Writer) encode(dst []byte, b *core.Block, flags Flags) []byte {
	dst = append(dst, 0, 0, 0, 0)
	if len(b.Times) == 1 {
		dst = append(dst, 0)
	} else {
		dst = w.column(dst, w.encoder.AppendTimes(w.columns[:0], b.Times))
	}
	if flags&HasSides != 0 {
		dst = w.column(dst, w.encoder.AppendTexts(w.columns[:0], b.Texts))
		dst = w.column(dst, w.encoder.AppendDecimals(w.columns[:0], b.Decimals))
		dst = w.column(dst, w.encoder.AppendVersions(w.columns[:0], b.Versions))
	}
	dst = w.encoder.AppendValues(dst, b.Values)
	binary.LittleEndian.PutUint32(dst, sealed.Checksum(dst[4:]))
	return dst
}

func (w *Writer) column(dst, column []byte) []byte {
	w.columns = column
	dst = binary.AppendUvarint(dst, uint64(len(column)))
	return append(dst, column...)
}

// Copy writes a block of another file as it is. The order is that of Add.
func (w *Writer) Copy(e Entry, raw []byte) error {
	e.offset = w.offset
	w.put(e, raw)
	return w.err
}

// put writes an encoded block and its entry.
func (w *Writer) put(e Entry, raw []byte) {
	if w.err == nil && (e.ID < w.last.ID || e.ID == w.last.ID && e.First < w.last.Last) {
		w.err = fmt.Errorf("samples: block of series %d at %d behind one of series %d at %d", e.ID, e.First, w.last.ID, w.last.Last)
	}
	if w.err != nil {
		return
	}
	e.length = len(raw)
	t := &w.total
	if t.Blocks == 0 {
		t.Range = core.Range{Start: e.First, End: e.Last + 1}
	}
	t.Range.Start, t.Range.End = min(t.Range.Start, e.First), max(t.Range.End, e.Last+1)
	if t.Blocks == 0 || e.ID != w.last.ID {
		t.Series++
	}
	t.Blocks++
	t.Rows += uint64(e.Count)
	w.last, w.flags = e, w.flags|e.Flags
	w.entries = append(w.entries, e)
	w.write(raw)
	if len(w.entries) == pageEntries {
		w.page()
	}
}

// Flags are those that any block has.
func (w *Writer) Flags() Flags { return w.flags }

// page writes the directory page of the blocks before it.
func (w *Writer) page() {
	if len(w.entries) == 0 {
		return
	}
	ref := pageRef{first: w.entries[0].ID, last: w.last.ID, offset: w.offset}
	w.buf = appendPage(w.buf[:0], w.entries)
	ref.length = uint32(len(w.buf))
	w.pages = ref.append(w.pages)
	w.write(w.buf)
	w.entries = w.entries[:0]
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
	w.page()
	t := &w.total
	t.list, t.listLength, t.listSum = w.offset, uint32(len(w.pages)), sealed.Checksum(w.pages)
	end := t.append(nil)
	for _, part := range [...][]byte{w.pages, w.pages, end, end} { // twice: a bad byte must not cost the file
		w.write(part)
	}
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

// slice returns rows from to to of b, with the indexes of the sides counted from there. It shares the memory of b where it can.
func slice(b *core.Block, from, to int) core.Block {
	if from == 0 && to == len(b.Times) {
		return *b
	}
	return core.Block{Times: b.Times[from:to], Values: b.Values[from:to],
		Texts:    sliceSide(b.Texts, from, to, func(e *core.TextAt) *uint32 { return &e.Index }),
		Decimals: sliceSide(b.Decimals, from, to, func(e *core.DecimalAt) *uint32 { return &e.Index }),
		Versions: sliceSide(b.Versions, from, to, func(e *core.VersionAt) *uint32 { return &e.Index })}
}

func sliceSide[E any](list []E, from, to int, index func(*E) *uint32) []E {
	var out []E
	for _, e := range list {
		if at := index(&e); int(*at) >= from && int(*at) < to {
			*at -= uint32(from)
			out = append(out, e)
		}
	}
	return out
}
