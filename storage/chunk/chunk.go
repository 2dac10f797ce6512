package chunk

import (
	"fmt"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// MaxSamples is the largest block: times and values of 8,192 samples take 64 KiB each and stay in the second-level cache, and a day of one
// sample in ten seconds is about one block.
const MaxSamples = 8192

// Encoder encodes columns. The zero value is ready. It keeps scratch memory, some hundred kilobytes, and is not for concurrent use.
type Encoder struct {
	levels   [depths]level
	coder    coder
	integers []int64 // the column
	words    []int64 // of the dictionary
	special  specials
	wide     []byte // integers as bytes, or strings behind each other
	test     []byte // what is compressed to see whether it pays

	texts     []string
	distinct  []string
	wordIndex map[string]int
}

// Decoder decodes columns. The zero value is ready. It keeps scratch memory, about 70 kB and more for rare encodings, and is not for
// concurrent use. Results never point into it or into the column.
type Decoder struct {
	levels [depths]struct {
		gaps, patches []int64
	}
	tail     tail
	integers []int64
	words    []int64
	bytes    []byte
	places   int // of the values that were read last; see Places
	huff     huff0.Scratch
	zstd     *zstd.Decoder // made when it is first needed
}

// mustFit panics when a block is too large, which is a mistake of the caller: its decoder would refuse the column.
func mustFit(n int) {
	if n > MaxSamples {
		panic(fmt.Sprintf("chunk: a block of %d samples is above %d", n, MaxSamples))
	}
}
