package chunk

import (
	"encoding/binary"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// coder compresses byte strings.
type coder struct {
	huff huff0.Scratch
	zstd *zstd.Encoder // made when it is first needed
	out  []byte
}

// estimate returns the size of a byte string as append would store it, without zstd.
func (c *coder) estimate(b []byte) int {
	c.huff.Reuse = huff0.ReusePolicyNone
	table, data, _, err := huff0.EstimateSizes(b, &c.huff)
	switch {
	case err == huff0.ErrUseRLE:
		return 3
	case err != nil:
		return len(b) + 3
	}
	return min(table+data+3+8, len(b)+3)
}

// append stores a byte string by the Huffman code, or as it is.
func (c *coder) append(dst, b []byte) []byte {
	method, out := c.shrink(b)
	return appendByteString(dst, out, method)
}

// appendRepeats stores a byte string in which something may repeat.
func (c *coder) appendRepeats(dst, b []byte) []byte {
	method, out := c.shrink(b)
	if len(out) >= minZip {
		if c.out = c.zip(c.out[:0], b); len(c.out) < len(out)*9/10 {
			method, out = bytesZstd, c.out
		}
	}
	if len(b) > maxBytes && len(b)/maxRatio > len(out) {
		method, out = bytesRaw, b
	}
	return appendByteString(dst, out, method)
}

// The decoder of zstd is slower than the others, so it has to save a tenth. A frame takes some ten bytes more than its contents.
const (
	minZip = 64
	// A byte may stand for maxRatio bytes when they are more than a block needs for its integers: that bounds what a damaged length makes a decoder
	// allocate.
	maxRatio = 1 << 10
	maxBytes = 8 * MaxSamples
)

func appendByteString(dst, b []byte, method byte) []byte {
	dst = append(dst, method)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// shrink returns the smallest form of b but for zstd. It lies in scratch memory, or is b.
func (c *coder) shrink(b []byte) (method byte, out []byte) {
	c.huff.Reuse = huff0.ReusePolicyNone
	method, compress := byte(bytesHuffOne), huff0.Compress1X
	if len(b) >= fourStreams {
		method, compress = bytesHuff, huff0.Compress4X
	}
	if len(b) == 0 || len(b) > huff0.BlockSizeMax {
		return bytesRaw, b
	}
	out, _, err := compress(b, &c.huff)
	switch {
	case err == huff0.ErrUseRLE || len(b) == 1:
		return bytesSame, b[:1]
	case err != nil || len(out) >= len(b):
		return bytesRaw, b
	}
	return method, out
}

// zip appends the zstd frame of b.
func (c *coder) zip(dst, b []byte) []byte {
	if c.zstd == nil {
		c.zstd = newZstdEncoder()
	}
	return c.zstd.EncodeAll(b, dst)
}

// newZstdEncoder makes an encoder that keeps one thread and a small window. Its options are constant, so they cannot be refused.
func newZstdEncoder() *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<18),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("chunk: " + err.Error())
	}
	return z
}
