package index

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
)

// A block holds sorted strings, front-coded, each with one or two numbers:
//
//	+---------+------+----------------------------------------+---------------------------------------------+
//	| crc u32 | n u8 | columns * (uvarint base, u8 width,     | n * (uvarint shared, uvarint length, bytes) |
//	|         |      |            n * width bits, lowest first)|                                            |
//	+---------+------+----------------------------------------+---------------------------------------------+
//
// crc is CRC-32C of the rest, continued from the seed of the block: its kind, level and number. So a block in the wrong place is a damaged block. A
// number is base plus the bits of its column. Where a block lies, and how long it is, stands outside of it.
const (
	// leafSize strings are in a leaf: a search decodes half a leaf, a stored key pays a sixteenth of a full one.
	leafSize = 16
	// nodeSize children are in a node above the leaves: a million keys are four levels of nodes of some 300 bytes.
	nodeSize = 32

	crcBytes = 4
	// maxWidth keeps a number within the eight bytes that start at its first bit.
	maxWidth = 56
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is what all errors about bytes of a run wrap.
var ErrDamaged = errors.New("damaged")

// Why a block is damaged. The errors are made once: a reader adds the file and the offset.
var (
	errChecksum = errors.New("the checksum does not match")
	errBlock    = errors.New("the block is malformed")
)

// kind says what a block or group is; it goes into the seed of the checksum.
type kind uint32

const (
	kindKeys     kind = 1 + iota // strings are keys, numbers their ids
	kindEntities                 // strings are names, numbers offset and length of the postings
	kindTags                     // strings are names, numbers how many series have the tag
	kindPostings                 // one list of ordinals
	kindBlocks                   // array: offsets of the leaves of the keys
	kindIDs                      // array: ids in ascending order
	kindOrdinals                 // array: ordinals by id
	kindGone                     // array: ids whose older entries are void
	kindFilter                   // a line of the filter
)

// seed is what a checksum starts from. Leaves are numbered below 2^28, nodes of each level below 2^23, as a run has less than 2^32 keys.
func (k kind) seed(level int, number uint32) uint32 {
	return uint32(k)*0x9e3779b1 ^ uint32(level)<<28 ^ number
}

// seal puts the checksum of what follows the first four bytes of b into these.
func seal(b []byte, seed uint32) {
	binary.LittleEndian.PutUint32(b, crc32.Update(seed, castagnoli, b[crcBytes:]))
}

// unseal returns what follows the checksum.
func unseal(b []byte, seed uint32) ([]byte, error) {
	if len(b) < crcBytes || binary.LittleEndian.Uint32(b) != crc32.Update(seed, castagnoli, b[crcBytes:]) {
		return nil, errChecksum
	}
	return b[crcBytes:], nil
}

// columns is how many numbers go with a string.
func (k kind) columns(level int) int {
	if level > 0 || k == kindEntities {
		return 2
	}
	return 1
}

// blockWriter gathers one block.
type blockWriter struct {
	n       int
	numbers [2][nodeSize]uint64
	entries []byte
	last    []byte
}

func (b *blockWriter) add(text []byte, numbers [2]uint64) {
	shared := 0
	if b.n > 0 {
		shared = commonPrefix(b.last, text)
	}
	b.entries = binary.AppendUvarint(b.entries, uint64(shared))
	b.entries = binary.AppendUvarint(b.entries, uint64(len(text)-shared))
	b.entries = append(b.entries, text[shared:]...)
	b.last = append(b.last[:0], text...)
	b.numbers[0][b.n], b.numbers[1][b.n] = numbers[0], numbers[1]
	b.n++
}

// flush appends the block to dst and empties the writer.
func (b *blockWriter) flush(dst []byte, columns int, seed uint32) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(b.n))
	for c := range columns {
		numbers := b.numbers[c][:b.n]
		low, high := numbers[0], numbers[0]
		for _, v := range numbers {
			low, high = min(low, v), max(high, v)
		}
		width := bits.Len64(high - low)
		dst = binary.AppendUvarint(dst, low)
		dst = append(dst, byte(width))
		dst = appendBits(dst, numbers, low, width)
	}
	dst = append(dst, b.entries...)
	seal(dst[start:], seed)
	b.n, b.entries, b.last = 0, b.entries[:0], b.last[:0]
	return dst
}

// appendBits appends the numbers less base in width bits each, lowest bits first, and fills the last byte with zeroes.
func appendBits(dst []byte, numbers []uint64, base uint64, width int) []byte {
	var acc uint64
	have := 0
	for _, v := range numbers {
		acc |= (v - base) << have
		for have += width; have >= 8; have -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	if have > 0 {
		dst = append(dst, byte(acc))
	}
	return dst
}

func packedLen(n, width int) int { return (n*width + 7) / 8 }

// column is the numbers of a block or of a group of an array.
type column struct {
	base   uint64
	width  int
	packed []byte
}

// at returns number i, which is in the column.
func (c *column) at(i int) uint64 {
	if c.width == 0 {
		return c.base
	}
	bit := i * c.width
	b := c.packed[bit>>3:]
	var v uint64
	if len(b) >= 8 {
		v = binary.LittleEndian.Uint64(b)
	} else {
		for j, x := range b {
			v |= uint64(x) << (8 * j)
		}
	}
	return c.base + v>>(bit&7)&(1<<c.width-1)
}

// block is a checked block. It points into the page it was read to.
type block struct {
	n       int
	columns [2]column
	entries []byte
}

// parse reads the frame of a block, whose checksum has been verified.
func (b *block) parse(body []byte, columns int) error {
	if len(body) < 1 || body[0] == 0 || body[0] > nodeSize {
		return errBlock
	}
	b.n, body = int(body[0]), body[1:]
	for c := range columns {
		base, k := binary.Uvarint(body)
		if k <= 0 || k == len(body) || body[k] > maxWidth {
			return errBlock
		}
		width := int(body[k])
		body = body[k+1:]
		size := packedLen(b.n, width)
		if size > len(body) {
			return errBlock
		}
		b.columns[c] = column{base, width, body[:size]}
		body = body[size:]
	}
	b.entries = body
	return nil
}

// entry takes the first front-coded string off p; a negative shared says that p is malformed.
func entry(p []byte) (shared int, suffix, rest []byte) {
	if len(p) >= 2 && p[0] < 0x80 && p[1] < 0x80 { // all but long keys
		if n := 2 + int(p[1]); n <= len(p) {
			return int(p[0]), p[2:n], p[n:]
		}
		return -1, nil, nil
	}
	s, k := binary.Uvarint(p)
	if k <= 0 || s > MaxKeyBytes {
		return -1, nil, nil
	}
	p = p[k:]
	n, k := binary.Uvarint(p)
	if k <= 0 || n > uint64(len(p)-k) {
		return -1, nil, nil
	}
	return int(s), p[k : k+int(n)], p[k+int(n):]
}

// MaxKeyBytes bounds a key, so that a leaf of them is at most 256 MiB.
const MaxKeyBytes = 16 << 20

// search returns the slot of the first string that is not below text, b.n when there is none, and whether it is text. It builds no string: same is how
// much of text the string before has in common with it, and a string that shares more or less than that with the one before is on the same or the
// other side of text.
func (b *block) search(text []byte) (slot int, found bool, err error) {
	same, at := 0, 0
	p := b.entries
	for slot = range b.n {
		var shared, length int
		if at+1 < len(p) && p[at]|p[at+1] < 0x80 { // both one byte long: a lookup spends most of its time here
			shared, length = int(p[at]), int(p[at+1])
			at += 2
		} else {
			var suffix, rest []byte
			if shared, suffix, rest = entry(p[min(at, len(p)):]); shared < 0 {
				return 0, false, errBlock
			}
			length = len(suffix)
			at = len(p) - len(rest) - length
		}
		if length > len(p)-at {
			return 0, false, errBlock
		}
		suffix := p[at : at+length]
		at += length
		if shared > same {
			continue
		}
		if shared < same {
			return slot, false, nil
		}
		want := text[same:]
		if len(suffix) > 0 && len(want) > 0 && suffix[0] != want[0] {
			if suffix[0] > want[0] {
				return slot, false, nil
			}
			continue
		}
		m := commonPrefix(suffix, want)
		same += m
		switch {
		case m == len(suffix) && m == len(want):
			return slot, true, nil
		case m == len(suffix):
		case m == len(want) || suffix[m] > want[m]:
			return slot, false, nil
		}
	}
	return b.n, false, nil
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// walker builds the strings of a block one after the other.
type walker struct {
	text []byte
	slot int // of text; -1 before the first
	rest []byte
}

func (w *walker) start(b *block) {
	w.text, w.slot, w.rest = w.text[:0], -1, b.entries
}

func (w *walker) next() error {
	shared, suffix, rest := entry(w.rest)
	if shared < 0 || shared > len(w.text) {
		return errBlock
	}
	w.text = append(w.text[:shared], suffix...)
	w.slot++
	w.rest = rest
	return nil
}
