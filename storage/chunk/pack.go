package chunk

import (
	"encoding/binary"
	"math/bits"
)

//go:generate go run kernels_gen.go

// Bit packing: value i of width w lies in bits i*w .. i*w+w-1 of the little-endian bit string, so eight values fill exactly w bytes. A reader
// loads eight bytes from the byte in which a value begins; with up to 7 bits to drop, that serves widths up to maxWidth. Wider values are
// stored in 64 bits.
const maxWidth = 56

// kernel unpacks eight values of one width at a time, as long as dst has room for eight and src holds the bytes that its loads touch, which
// may be more than the eight values fill. It returns how many values it wrote.
type kernel func(dst []int64, src []byte) int

// packedLen is the number of bytes that n values of a width take.
func packedLen(n int, width uint) int { return (n*int(width) + 7) / 8 }

// storedWidth is the width in which values of so many bits are packed.
func storedWidth(width int) uint8 {
	if width > maxWidth {
		return 64
	}
	return uint8(width)
}

// appendPacked appends values, all below 1<<width. The last byte is filled up with zeroes.
func appendPacked(dst []byte, values []uint64, width uint) []byte {
	if width == 0 {
		return dst
	}
	var word uint64
	var used uint
	for _, v := range values {
		word |= v << used
		used += width
		if used >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, word)
			used -= 64
			word = v >> (width - used) // 0 when nothing is left: a shift by all 64 bits
		}
	}
	for ; used > 0; used -= min(used, 8) {
		dst = append(dst, byte(word))
		word >>= 8
	}
	return dst
}

// tail is room for the values at the end of a column, where the loads of a kernel would leave it. It is kept, since what is given to a kernel lies
// on the heap.
type tail struct {
	padded [maxWidth + 8]byte
	eight  [8]int64
}

// unpack reads len(dst) values from src, which is packedLen long or longer. Width is at most maxWidth, or 64.
func (t *tail) unpack(dst []int64, src []byte, width uint) {
	switch {
	case width == 0:
		clear(dst)
		return
	case width > maxWidth:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
		}
		return
	}
	unpackEights := kernels[width]
	done := unpackEights(dst, src)
	dst, src = dst[done:], src[done/8*int(width):]
	for len(dst) > 0 {
		// What is behind the last value is not looked at.
		copy(t.padded[:width], src)
		unpackEights(t.eight[:], t.padded[:])
		n := copy(dst, t.eight[:])
		dst = dst[n:]
		src = src[min(len(src), int(width)):]
	}
}

// zigzag maps small numbers of either sign to small numbers: 0, -1, 1, -2 to 0, 1, 2, 3.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// unzigzag is the inverse of zigzag, in place.
func unzigzag(values []int64) {
	for i, v := range values {
		values[i] = int64(uint64(v)>>1) ^ -(v & 1)
	}
}

// bitLen is the number of bits that v needs, 0 for zero.
func bitLen(v uint64) int { return bits.Len64(v) }
