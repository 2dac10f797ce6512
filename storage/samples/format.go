// Package samples is the format of immutable files of samples: blocks of columns, each of one series, with a directory that answers what a block is about
// without decoding it. storage/FORMAT.md draws the file.
//
// A file is written once, front to back, by a Writer, and read by any number of readers through a File. Series are numbers here: which series a number
// stands for is the index's business.
package samples

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/sealed"
)

// ID is the number of a series, from 1.
type ID uint32

// Flags of a block.
type Flags uint8

const (
	// HasSides: some samples have texts, exact decimals or version fields.
	HasSides Flags = 1 << iota
	// HasVersions: some times occur more than once; the last row of a time is its latest version.
	HasVersions
	// HasStats: the directory entry carries Stats. Blocks of few samples, and those with versions, have none.
	HasStats

	knownFlags = HasSides | HasVersions | HasStats
)

// Entry is what the directory says of one block. First and Last are the times of its first and last row.
type Entry struct {
	ID          ID
	Flags       Flags
	Count       int // rows
	First, Last core.Time
	Stats       Stats // with HasStats

	offset int64
	length int
}

// Stats sums up the numbers of a block; NaN are none. Sum adds from left to right. MinTime and MaxTime are those of the first occurrence.
type Stats struct {
	Count                                 int
	Sum, Min, Max, First, Last            float64
	FirstTime, LastTime, MinTime, MaxTime core.Time
}

// summarize makes the Stats of a block that is not all NaN.
func summarize(b *core.Block) (s Stats, ok bool) {
	c := chunk.Summarize(b.Values)
	if c.Count == 0 {
		return s, false
	}
	t := b.Times
	return Stats{c.Count, c.Sum, c.Min, c.Max, c.First, c.Last, t[c.FirstIndex], t[c.LastIndex], t[c.MinIndex], t[c.MaxIndex]}, true
}

// Bytes is the size of the block in the file.
func (e *Entry) Bytes() int64 { return int64(e.length) }

// Overlaps reports whether a row of the block may lie in r.
func (e *Entry) Overlaps(r core.Range) bool { return e.Last >= r.Start && e.First < r.End }

// Covered reports whether all rows lie in r.
func (e *Entry) Covered(r core.Range) bool { return e.First >= r.Start && e.Last < r.End }

const (
	magic   = "tidesmpl"
	version = 1

	tailSize = 80

	// pageEntries bounds the entries of one directory page: some 6 KB, which a lookup decodes in a few microseconds. The list of pages stays in memory,
	// 40 bytes for each.
	pageEntries = 128

	// statsFrom is the count from which on a block carries Stats: the 40 bytes they take are not worth it for less.
	statsFrom = 64

	// maxBlock bounds the bytes of a block, so that a damaged length cannot ask for more: texts may be long.
	maxBlock = 1 << 30
)

// kind is what a file of samples is: see there for its shape.
var kind = sealed.Kind{Name: "samples", Magic: magic, Version: version, TailSize: tailSize}

// DamageError says which part of a file cannot be read.
type DamageError = sealed.DamageError

// summary is what the tail says of a whole file.
type summary struct {
	Rows, Blocks, Series uint64
	Range                core.Range // of all rows
	Generation           uint64     // of the newest samples in it
	Oldest               uint64     // generation of the oldest
}

// tail is the end of a file, which is there twice, as is the page list in front of it:
//
//	offset  bytes  field
//	     0      8  offset of the page list u64
//	     8      4  its length u32
//	    12      4  its CRC-32C
//	    16      8  rows u64
//	    24      8  blocks u64
//	    32      8  series u64
//	    40      8  first time i64
//	    48      8  last time i64
//	    56      8  generation u64: of the newest samples
//	    64      8  oldest u64: generation of the oldest samples
//	    72      4  version u32
//	    76      4  CRC-32C of the bytes before
type tail struct {
	summary
	list       int64
	listLength uint32
	listSum    uint32
}

func (t *tail) append(b []byte) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(t.list))
	b = le.AppendUint32(b, t.listLength)
	b = le.AppendUint32(b, t.listSum)
	for _, v := range [...]uint64{t.Rows, t.Blocks, t.Series, uint64(t.Range.Start), uint64(t.Range.End - 1), t.Generation, t.Oldest} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, version)
	return le.AppendUint32(b, sealed.Checksum(b[start:]))
}

func parseTail(b []byte, size int64) (t tail, err error) {
	le := binary.LittleEndian
	if len(b) != tailSize || le.Uint32(b[76:]) != sealed.Checksum(b[:76]) {
		return t, fmt.Errorf("the end of the file does not match its checksum")
	}
	if v := le.Uint32(b[72:]); v != version {
		return t, fmt.Errorf("version %d of a later release", v)
	}
	t.list, t.listLength, t.listSum = int64(le.Uint64(b)), le.Uint32(b[8:]), le.Uint32(b[12:])
	t.Rows, t.Blocks, t.Series = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])
	t.Range = core.Range{Start: core.Time(le.Uint64(b[40:])), End: core.Time(le.Uint64(b[48:])) + 1}
	t.Generation, t.Oldest = le.Uint64(b[56:]), le.Uint64(b[64:])
	if t.list < sealed.HeaderSize || t.list+2*int64(t.listLength)+2*tailSize != size {
		return t, fmt.Errorf("the page list lies outside of the file")
	}
	return t, nil
}

// pageRef is one directory page in the page list:
//
//	u32 first id | u32 last id | u64 offset | u32 length
type pageRef struct {
	first, last ID
	offset      int64
	length      uint32
}

const pageRefSize = 20

func (p *pageRef) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(p.first))
	b = le.AppendUint32(b, uint32(p.last))
	b = le.AppendUint64(b, uint64(p.offset))
	return le.AppendUint32(b, p.length)
}

func parsePageRef(b []byte) pageRef {
	le := binary.LittleEndian
	return pageRef{first: ID(le.Uint32(b)), last: ID(le.Uint32(b[4:])), offset: int64(le.Uint64(b[8:])), length: le.Uint32(b[16:])}
}

// appendPage encodes the entries of a page; the first block begins at base, and each one ends where the next one begins.
//
//	u32 CRC-32C of the rest | uvarint count | u64 base | count * entry
//	entry = uvarint id, less the one before | u8 flags | uvarint rows | varint first time, less that of the entry before | uvarint last time, less the first
//	      | uvarint length | with HasStats: uvarint numbers, float sum, min, max, first, last, uvarint times of the first and last number, the minimum
//	      and the maximum, less the first time
func appendPage(b []byte, entries []Entry) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = append(b, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	b = le.AppendUint64(b, uint64(entries[0].offset))
	id, at := ID(0), core.Time(0)
	for i := range entries {
		e := &entries[i]
		b = binary.AppendUvarint(b, uint64(e.ID-id))
		b = append(b, byte(e.Flags))
		b = binary.AppendUvarint(b, uint64(e.Count))
		b = binary.AppendVarint(b, int64(e.First-at))
		b = binary.AppendUvarint(b, uint64(e.Last-e.First))
		b = binary.AppendUvarint(b, uint64(e.length))
		if e.Flags&HasStats != 0 {
			b = appendStats(b, e)
		}
		id, at = e.ID, e.First
	}
	le.PutUint32(b[start:], sealed.Checksum(b[start+4:]))
	return b
}

func appendStats(b []byte, e *Entry) []byte {
	s := &e.Stats
	b = binary.AppendUvarint(b, uint64(s.Count))
	for _, v := range [...]float64{s.Sum, s.Min, s.Max, s.First, s.Last} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	for _, t := range [...]core.Time{s.FirstTime, s.LastTime, s.MinTime, s.MaxTime} {
		b = binary.AppendUvarint(b, uint64(t-e.First))
	}
	return b
}

func parseStats(r *sealed.Reader, first core.Time) (s Stats) {
	s.Count = int(r.Uvarint())
	for _, v := range [...]*float64{&s.Sum, &s.Min, &s.Max, &s.First, &s.Last} {
		*v = math.Float64frombits(r.U64())
	}
	for _, t := range [...]*core.Time{&s.FirstTime, &s.LastTime, &s.MinTime, &s.MaxTime} {
		*t = first + core.Time(r.Uvarint())
	}
	return s
}

// parsePage decodes a page and appends its entries to dst. The blocks lie below limit.
func parsePage(dst []Entry, b []byte, limit int64) ([]Entry, error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != sealed.Checksum(b[4:]) {
		return dst, fmt.Errorf("a directory page does not match its checksum")
	}
	r := sealed.Reader{Rest: b[4:]}
	n := r.Uvarint()
	if n > pageEntries {
		return dst, fmt.Errorf("a directory page of %d entries", n)
	}
	offset := int64(r.U64())
	var e Entry
	for range n {
		e.ID += ID(r.Uvarint())
		e.Flags = Flags(r.U8())
		count, first, span, length := r.Uvarint(), r.Varint(), r.Uvarint(), r.Uvarint()
		e.Count, e.First, e.length, e.offset = int(count), e.First+core.Time(first), int(length), offset
		e.Last = e.First + core.Time(span)
		if r.Failed || e.Flags&^knownFlags != 0 || count == 0 || count > chunk.MaxSamples || length > maxBlock || span > math.MaxInt64 ||
			offset < sealed.HeaderSize || offset+int64(length) > limit {
			return dst, fmt.Errorf("a directory entry makes no sense")
		}
		if e.Stats = (Stats{}); e.Flags&HasStats != 0 {
			e.Stats = parseStats(&r, e.First)
		}
		offset += int64(length)
		dst = append(dst, e)
	}
	if r.Failed {
		return dst, fmt.Errorf("a directory page ends early")
	}
	return dst, nil
}
