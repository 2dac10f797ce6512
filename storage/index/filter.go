package index

import (
	"hash/crc32"
	"math/bits"
)

// The filter says of most keys that are not in a run that they are not, so that a lookup of a new key reads one line of each run:
//
//	lines * ( crc u32 | 480 bits )
//
// The hash of a key chooses one line and six bits of it, all of which are set when the key is in the run. With 48 keys a line one absent key in some
// seventy passes. The hash is CRC-32C of the key, spread over 64 bits with the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 32 bits of
// hash are enough, as ten million keys make one absent key in 400 look present.
const (
	lineBytes  = 64
	lineBits   = 8 * (lineBytes - crcBytes)
	lineKeys   = 48
	lineProbes = 6
)

type filter struct {
	off   int64
	lines uint32
}

func linesFor(keys uint32) uint32 { return (keys + lineKeys - 1) / lineKeys }

func (f *filter) size() int64 { return int64(f.lines) * lineBytes }

func filterHash(key []byte) uint64 {
	h := uint64(crc32.Checksum(key, castagnoli)) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// lineOf returns the line of a hash among lines.
func lineOf(hash uint64, lines uint32) uint32 {
	high, _ := bits.Mul64(hash, uint64(lines))
	return uint32(high)
}

// probe yields the bit of each of the probes: another spread of the hash, nine bits at a time.
func probe(hash uint64, i int) int {
	h := hash * 0xd6e8feb86659fd93
	return int(h>>(9*i)&511) * lineBits >> 9
}

// set marks a key in a line without its checksum.
func set(line []byte, hash uint64) {
	for i := range lineProbes {
		bit := probe(hash, i)
		line[bit>>3] |= 1 << (bit & 7)
	}
}

// may reports whether the key of a hash can be in the run. A line that cannot be read rules nothing out.
func (f *filter) may(rd *reader, hash uint64) bool {
	if f.lines == 0 {
		return false
	}
	n := lineOf(hash, f.lines)
	line, err := rd.group.read(rd.run, piece{f.off + int64(n)*lineBytes, lineBytes, kindFilter.seed(0, n)})
	if err != nil {
		rd.run.fail(err)
		return true
	}
	for i := range lineProbes {
		if bit := probe(hash, i); line[bit>>3]>>(bit&7)&1 == 0 {
			return false
		}
	}
	return true
}
