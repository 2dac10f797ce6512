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

// Live is what a body implements whose sender writes as things happen. Its chunks are then what has come, not what fills them.
type Live interface {
	// Ready reports whether to go on filling a chunk: it waits a moment for more to come, and says no when nothing does. It says no every now and
	// then too when there is always more, so that what came first is not kept back by what follows.
	Ready() bool
}

// readiness is that of a body before anything is wrapped around it, nil for one that is no Live: its chunks are full.
func readiness(body io.Reader) func() bool {
	if l, ok := body.(Live); ok {
		return l.Ready
	}
	return nil
}

// chunks cuts r, at the end of a line where the framing asks for it. The last chunk has abi.FlagLast and may be empty. A chunk is valid until the next one.
func chunks(r io.Reader, framing abi.Framing, ready func() bool) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		buf := make([]byte, chunkSize)
		have := 0
		for {
			n, err := fill(r, buf[have:], ready)
			have += n
			full := have == len(buf)
			if err == io.EOF {
				yield(chunk{buf[:have], abi.FlagLast}, nil)
				return
			}
			if err != nil {
				// The lines that a lost connection had brought are whole.
				if end := bytes.LastIndexByte(buf[:have], '\n') + 1; ready != nil && end > 0 && !yield(chunk{buf[:end], 0}, nil) {
					return
				}
				yield(chunk{}, err)
				return
			}
			end := have
			if framing == abi.FramingLines {
				end = bytes.LastIndexByte(buf[:have], '\n') + 1
			}
			if end == 0 && !full {
				continue // the line goes on when its sender does
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

// fill reads until buf is full, or no more is ready. Unlike io.ReadFull it keeps the end of the input, io.EOF, apart from io.ErrUnexpectedEOF, with
// which a decompressor says that its input was cut off.
func fill(r io.Reader, buf []byte, ready func() bool) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
		if m > 0 && err == nil && n < len(buf) && ready != nil && !ready() {
			break
		}
	}
	if n == len(buf) {
		err = nil
	}
	return n, err
}
