package table

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A file, which FORMAT.md draws in full:
//
//	header 16   magic "tidetabl" | version u32 | crc u32
//	blocks      sections that hold the entries, in order of key
//	index       a section: the lowest and the highest key; of each block a key that separates it from the one before, and its length
//	filter      a section: a Bloom filter over all keys
//	footer 48   index offset u64 | index length u32 | filter length u32 | entries u64 | tombstones u32 | content u32 | version u32 | crc u32 | magic "tabltide"
//
//	section     crc u32 | raw length u32 | method u8 | bytes        crc covers what follows it (CRC-32C)
const (
	magic       = "tidetabl"
	footerMagic = "tabltide"
	version     = 2 // version 1 has tombstones u64 and no content

	headerBytes  = 16
	footerBytes  = 48
	sectionBytes = 9 // in front of the bytes of a section

	methodRaw  = 0
	methodZstd = 1

	// blockBytes is where a block ends: what a Get unpacks when the block is not in the cache, some microseconds. An entry that is as long has a
	// block for itself.
	blockBytes = 4 << 10
	// restartEvery is how many entries share prefixes: a search in a block steps through half as many on average.
	restartEvery = 16

	// maxSection bounds a section, unpacked. It holds more than any entry.
	maxSection = 1 << 30
	// maxRatio bounds what a reader allocates for packed bytes. A section that packs better is stored as it is.
	maxRatio = 256
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unpacker is made on first use and safe for concurrent use. It keeps no state between calls.
var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxSection),
		zstd.WithDecodeAllCapLimit(true))
})

// DamageError is a place of a file that is not as it was written.
type DamageError struct {
	Path   string
	Offset int64
	Cause  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: damaged at byte %d: %v", e.Path, e.Offset, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// unpack returns the raw bytes of a section in memory of their own.
func unpack(section []byte) ([]byte, error) {
	if len(section) < sectionBytes {
		return nil, fmt.Errorf("section of %d bytes", len(section))
	}
	if want, got := binary.LittleEndian.Uint32(section), crc32.Checksum(section[4:], castagnoli); want != got {
		return nil, fmt.Errorf("checksum %08x instead of %08x", got, want)
	}
	length, method, stored := binary.LittleEndian.Uint32(section[4:]), section[8], section[sectionBytes:]
	switch {
	case length > maxSection:
		return nil, fmt.Errorf("section of %d raw bytes", length)
	case method == methodRaw && int(length) == len(stored):
		return append(make([]byte, 0, length), stored...), nil
	case method != methodZstd || uint64(length) > maxRatio*uint64(len(stored)):
		return nil, fmt.Errorf("section of method %d, %d raw bytes in %d", method, length, len(stored))
	}
	decoder, err := unpacker()
	if err != nil {
		return nil, err
	}
	raw, err := decoder.DecodeAll(stored, make([]byte, 0, length))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if len(raw) != int(length) {
		return nil, fmt.Errorf("section of %d raw bytes unpacks to %d", length, len(raw))
	}
	return raw, nil
}

// The filter consists of lines of 64 bytes. A key has one line, chosen by the upper half of its hash, and filterProbes bits in it: so a question touches
// one line of the processor's cache. At 10 bits a key some 1.2 % of the absent keys pass.
const (
	filterLine   = 64
	filterBits   = 10 // a key
	filterProbes = 7
)

func filterSize(keys int64) int64 {
	lines := (keys*filterBits + 8*filterLine - 1) / (8 * filterLine)
	return max(lines, 1) * filterLine
}

// filterPlace returns the line of a hash in a filter, and seven times nine bits that say which bits of it.
func filterPlace(filter []byte, hash uint64) (line []byte, places uint64) {
	at := int(hash >> 32 * uint64(len(filter)/filterLine) >> 32)
	return filter[at*filterLine:][:filterLine], hash * 0x9e3779b97f4a7c15 >> 1
}

func filterAdd(filter []byte, hash uint64) {
	line, places := filterPlace(filter, hash)
	for range filterProbes {
		line[places&0x1ff>>3] |= 1 << (places & 7)
		places >>= 9
	}
}

func filterHas(filter []byte, hash uint64) bool {
	line, places := filterPlace(filter, hash)
	for range filterProbes {
		if line[places&0x1ff>>3]&(1<<(places&7)) == 0 {
			return false
		}
		places >>= 9
	}
	return true
}

// hashOf is the hash of the filter: eight bytes at a time, the last ones filled up with zeroes, folded by a multiplication to 128 bits; then the length.
func hashOf(key []byte) uint64 {
	h := uint64(0x2d358dccaa6c78a5)
	for rest := key; len(rest) > 0; {
		var word uint64
		if len(rest) >= 8 {
			word, rest = binary.LittleEndian.Uint64(rest), rest[8:]
		} else {
			var last [8]byte
			copy(last[:], rest)
			word, rest = binary.LittleEndian.Uint64(last[:]), nil
		}
		h = fold(h^word, 0x8bb84b93962eacc9)
	}
	return fold(h^uint64(len(key)), 0x4b33a62ed433d4a3)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
