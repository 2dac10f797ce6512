// Package events is the format of immutable files of messages: compressed blocks of columns in the order in which messages are read, newest first, with a
// directory that says which blocks cannot hold what a query asks for. storage/FORMAT.md draws the file.
package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/sealed"
)

// Record is a stored message.
type Record struct {
	core.Message
	Arrival  uint64    // orders messages of one time, entity, type and source
	Received core.Time // of the latest insert: retention counts from it
}

const (
	magic   = "tidemsgs"
	version = 1

	tailSize = 64

	// blockRecords and blockBytes bound a block, whichever comes first: a query that wants one message decodes one block, in some tenths of a
	// millisecond, and compression gains little beyond.
	blockRecords = 1024
	blockBytes   = 256 << 10
	// Messages of one time are not parted, so that a block can be put in order by itself, unless there are more than this.
	maxRecords = 64 << 10
	// maxBlock bounds what a block may claim to decompress to.
	maxBlock = 1 << 30
	// maxNames is how many entities or types a directory entry lists; a block with more of them is looked at by every query.
	maxNames = 48
)

// kind is what a file of messages is: see there for its shape.
var kind = sealed.Kind{Name: "messages", Magic: magic, Version: version, TailSize: tailSize}

// DamageError says which part of a file cannot be read.
type DamageError = sealed.DamageError

// hash is the number by which a directory entry knows a name: FNV-1a. Two names that share one cost a look at a block.
func hash(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// Block is a directory entry.
type Block struct {
	Newest, Oldest core.Time // of its messages
	Received       core.Time // the latest one
	Count          int

	severities byte     // bit s: some message has severity s
	entities   []uint32 // sorted hashes; nil: any
	types      []uint32
	offset     int64
	length     int
	raw        int // bytes when decompressed
}

// Query is what a directory can tell of a query. Empty fields select all.
type Query struct {
	Range       core.Range
	Entities    []string
	Type        string
	MinSeverity core.Severity
	Severities  []core.Severity
}

// MayMatch reports whether the block may hold a message that q selects.
func (b *Block) MayMatch(q *Query) bool {
	if b.Newest < q.Range.Start || b.Oldest >= q.Range.End || b.severities>>q.MinSeverity == 0 {
		return false
	}
	if len(q.Severities) > 0 && !slices.ContainsFunc(q.Severities, func(s core.Severity) bool { return b.severities&(1<<s) != 0 }) {
		return false
	}
	if q.Type != "" && !listed(b.types, q.Type) {
		return false
	}
	return len(q.Entities) == 0 || slices.ContainsFunc(q.Entities, func(name string) bool { return listed(b.entities, name) })
}

func listed(hashes []uint32, name string) bool {
	if hashes == nil {
		return true
	}
	_, found := slices.BinarySearch(hashes, hash(name))
	return found
}

// append encodes a directory entry:
//
//	uvarint offset, length, raw length, count | varint newest, oldest, received | u8 severities | uvarint n, n * u32 entities | uvarint n, n * u32 types
//
// A count of 0 stands for any name.
func (b *Block) append(dst []byte) []byte {
	for _, v := range [...]uint64{uint64(b.offset), uint64(b.length), uint64(b.raw), uint64(b.Count)} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, t := range [...]core.Time{b.Newest, b.Oldest, b.Received} {
		dst = binary.AppendVarint(dst, int64(t))
	}
	dst = append(dst, b.severities)
	for _, hashes := range [...][]uint32{b.entities, b.types} {
		dst = binary.AppendUvarint(dst, uint64(len(hashes)))
		for _, h := range hashes {
			dst = binary.LittleEndian.AppendUint32(dst, h)
		}
	}
	return dst
}

func parseBlock(r *sealed.Reader, limit int64) (b Block) {
	b.offset, b.length, b.raw, b.Count = int64(r.Uvarint()), int(r.Uvarint()), int(r.Uvarint()), int(r.Uvarint())
	b.Newest, b.Oldest, b.Received = core.Time(r.Varint()), core.Time(r.Varint()), core.Time(r.Varint())
	b.severities = r.U8()
	for _, hashes := range [...]*[]uint32{&b.entities, &b.types} {
		n := r.Uvarint()
		if n > maxNames {
			r.Failed = true
			return b
		}
		for range n {
			*hashes = append(*hashes, r.U32())
		}
	}
	if b.Count <= 0 || b.Count > maxRecords || b.offset < sealed.HeaderSize || b.length < 4 || b.raw < 0 || b.raw > maxBlock || b.offset > limit-int64(b.length) {
		r.Failed = true
	}
	return b
}

// tail is the end of a file, which is there twice, as is the directory in front of it:
//
//	offset  bytes  field
//	     0      8  offset of the directory u64
//	     8      4  its length u32
//	    12      4  its CRC-32C
//	    16      8  messages u64
//	    24      8  newest time i64
//	    32      8  oldest time i64
//	    40      8  generation u64: of the newest messages
//	    48      8  oldest u64: generation of the oldest messages
//	    56      4  version u32
//	    60      4  CRC-32C of the bytes before
type tail struct {
	directory       int64
	length, sum     uint32
	messages        uint64
	newest, oldest  core.Time
	generation, old uint64
}

func (t *tail) append(b []byte) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(t.directory))
	b = le.AppendUint32(b, t.length)
	b = le.AppendUint32(b, t.sum)
	for _, v := range [...]uint64{t.messages, uint64(t.newest), uint64(t.oldest), t.generation, t.old} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, version)
	return le.AppendUint32(b, sealed.Checksum(b[start:]))
}

func parseTail(b []byte, size int64) (t tail, err error) {
	le := binary.LittleEndian
	if le.Uint32(b[60:]) != sealed.Checksum(b[:60]) {
		return t, errors.New("the end of the file does not match its checksum")
	}
	if v := le.Uint32(b[56:]); v != version {
		return t, fmt.Errorf("version %d of a later release", v)
	}
	t = tail{directory: int64(le.Uint64(b)), length: le.Uint32(b[8:]), sum: le.Uint32(b[12:]), messages: le.Uint64(b[16:]),
		newest: core.Time(le.Uint64(b[24:])), oldest: core.Time(le.Uint64(b[32:])), generation: le.Uint64(b[40:]), old: le.Uint64(b[48:])}
	if t.directory < sealed.HeaderSize || t.directory+2*int64(t.length)+2*tailSize != size {
		return t, errors.New("the directory lies outside of the file")
	}
	return t, nil
}
