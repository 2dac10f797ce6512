package chunk

import (
	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// byteString reads a byte string of n bytes. It lies in scratch memory or in the column, until the next call.
func (d *Decoder) byteString(r *reader, n int) []byte {
	method := r.byte()
	b := r.bytes(r.count(len(r.b)))
	if n > maxBytes && n/maxRatio > len(b) {
		r.fail("%d bytes stand for %d", len(b), n)
	}
	if r.err != nil {
		return nil
	}
	switch method {
	case bytesRaw:
		if len(b) != n {
			r.fail("%d bytes stand for %d", len(b), n)
			return nil
		}
		return b
	case bytesSame:
		if len(b) != 1 {
			r.fail("a repeated byte takes %d", len(b))
			return nil
		}
		d.bytes = resize(d.bytes, n)
		fill(d.bytes, b[0])
		return d.bytes
	case bytesHuffOne, bytesHuff, bytesZstd:
	default:
		r.fail("byte string of method %d", method)
		return nil
	}
	d.bytes = resize(d.bytes, n)
	out, err := d.expand(d.bytes[:0:n], b, method)
	switch {
	case err != nil:
		r.fail("byte string: %v", err)
	case len(out) != n:
		r.fail("%d bytes became %d, not %d", len(b), len(out), n)
	}
	return out
}

// expand decompresses b into dst, which has exactly the capacity that the result needs.
func (d *Decoder) expand(dst, b []byte, method byte) ([]byte, error) {
	if method == bytesZstd {
		return d.unzip(dst, b)
	}
	s, rest, err := huff0.ReadTable(b, &d.huff)
	if err != nil {
		return nil, err
	}
	if method == bytesHuffOne {
		return s.Decoder().Decompress1X(dst, rest)
	}
	return s.Decoder().Decompress4X(dst, rest)
}

// unzip decompresses one zstd frame, to no more than the capacity of dst.
func (d *Decoder) unzip(dst, b []byte) ([]byte, error) {
	if d.zstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxWindow(1<<23))
		if err != nil {
			return nil, err
		}
		d.zstd = z
	}
	return d.zstd.DecodeAll(b, dst)
}
