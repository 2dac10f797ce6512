package index

import "math/bits"

// An array holds numbers of one width, in groups of 64, so that each can be read alone:
//
//	groups * ( crc u32 | 64 * width bits, lowest first )        the last group is filled up with zeroes; a number is base plus its bits
//
// Offset, count, base and width stand in the footer.
const groupSize = 64

type array struct {
	kind  kind
	off   int64
	count uint32
	width int
	base  uint64
}

func (a *array) groupBytes() int64 { return int64(crcBytes + groupSize/8*a.width) }

func (a *array) groups() int64 { return (int64(a.count) + groupSize - 1) / groupSize }

// size is 0 for an array of width 0: all its numbers are base.
func (a *array) size() int64 {
	if a.width == 0 {
		return 0
	}
	return a.groups() * a.groupBytes()
}

// fit makes an array that can hold numbers from low to high.
func fit(k kind, low, high uint64) array {
	return array{kind: k, base: low, width: bits.Len64(high - low)}
}

// arrayWriter writes an array to the end of a file.
type arrayWriter struct {
	array
	out     *output
	numbers []uint64
	buf     []byte
}

func newArray(out *output, a array) *arrayWriter {
	a.off, a.count = out.off, 0
	return &arrayWriter{array: a, out: out, numbers: make([]uint64, 0, groupSize)}
}

func (a *arrayWriter) add(v uint64) {
	a.numbers = append(a.numbers, v)
	a.count++
	if len(a.numbers) == groupSize {
		a.flush()
	}
}

func (a *arrayWriter) flush() {
	if a.width > 0 {
		a.buf = append(a.buf[:0], make([]byte, crcBytes)...)
		a.buf = appendBits(a.buf, a.numbers, a.base, a.width)
		for len(a.buf) < int(a.groupBytes()) {
			a.buf = append(a.buf, 0)
		}
		seal(a.buf, a.kind.seed(0, (a.count-1)/groupSize))
		a.out.write(a.buf)
	}
	a.numbers = a.numbers[:0]
}

func (a *arrayWriter) finish() array {
	if len(a.numbers) > 0 {
		a.flush()
	}
	return a.array
}

// at returns number i, which must be below the count.
func (a *array) at(rd *reader, i uint32) (uint64, error) {
	c := column{base: a.base, width: a.width}
	if a.width == 0 {
		return a.base, nil
	}
	group := i / groupSize
	var err error
	c.packed, err = rd.group.read(rd.run, piece{a.off + int64(group)*a.groupBytes(), a.groupBytes(), a.kind.seed(0, group)})
	if err != nil {
		return 0, err
	}
	return c.at(int(i % groupSize)), nil
}

// search returns the first place in an ascending array whose number is not below v.
func (a *array) search(rd *reader, v uint64) (uint32, error) {
	low, high := uint32(0), a.count
	for low < high {
		mid := low + (high-low)/2
		got, err := a.at(rd, mid)
		if err != nil {
			return 0, err
		}
		if got < v {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}
