package wasm

import (
	"bytes"
	"fmt"
	"io"
	"iter"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// chunkSize is a compromise: throughput hardly changes from 64 KB to 1 MB, a Go guest needs 8 MB of memory for 256 KB.
const chunkSize = 256 << 10

// maxLine is the longest line of a format that is cut at newlines.
const maxLine = 1 << 20

// errLongLine is returned by chunks for a line of more than maxLine bytes.
var errLongLine = fmt.Errorf("a line is longer than %d bytes", maxLine)

// chunk is a piece of an input with the flags of its call.
type chunk struct {
	data  []byte
	flags uint32
}

// chunks cuts r. The last chunk has abi.FlagLast and may be empty. A chunk is valid until the next one.
func chunks(r io.Reader, framing abi.Framing) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		buf := make([]byte, chunkSize)
		have := 0
		for {
			n, err := fill(r, buf[have:])
			have += n
			if err == io.EOF {
				yield(chunk{buf[:have], abi.FlagLast}, nil)
				return
			}
			if err != nil {
				yield(chunk{}, err)
				return
			}
			end := have
			if framing == abi.FramingLines {
				end = bytes.LastIndexByte(buf[:have], '\n') + 1
			}
			if end == 0 { // one line fills the buffer
				if len(buf) >= maxLine {
					yield(chunk{}, errLongLine)
					return
				}
				buf = append(buf, make([]byte, len(buf))...)
				continue
			}
			if !yield(chunk{buf[:end], 0}, nil) {
				return
			}
			have = copy(buf, buf[end:have])
		}
	}
}

// fill reads until buf is full. Unlike io.ReadFull it keeps the end of the input, io.EOF, apart from io.ErrUnexpectedEOF, with which a
// decompressor says that its input was cut off.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	if n == len(buf) {
		err = nil
	}
	return n, err
}
