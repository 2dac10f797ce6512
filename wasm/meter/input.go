package meter

import (
	"errors"
	"fmt"
)

// input reads the binary format. After the first fault every read gives zero, so that callers check once a loop.
type input struct {
	b   []byte
	pos int
	err error
}

var (
	errShort  = errors.New("it ends in the middle of something")
	errNumber = errors.New("a number is longer than its type")
)

func (in *input) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *input) more() bool { return in.err == nil && in.pos < len(in.b) }

func (in *input) rest() []byte { return in.b[in.pos:] }

// end reports the first fault, or bytes that nothing has read.
func (in *input) end(what string) error {
	if in.err == nil && in.pos != len(in.b) {
		in.fail(fmt.Errorf("%d bytes are left over", len(in.b)-in.pos))
	}
	if in.err != nil {
		return fmt.Errorf("%s: %w", what, in.err)
	}
	return nil
}

func (in *input) byte() byte {
	if in.err != nil || in.pos >= len(in.b) {
		in.fail(errShort)
		return 0
	}
	in.pos++
	return in.b[in.pos-1]
}

func (in *input) bytes(n uint32) []byte {
	if in.err != nil || uint64(n) > uint64(len(in.b)-in.pos) {
		in.fail(errShort)
		return nil
	}
	in.pos += int(n)
	return in.b[in.pos-int(n) : in.pos]
}

// u32 reads an unsigned LEB128 number of at most five bytes.
func (in *input) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := in.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v>>32 != 0 {
				break
			}
			return uint32(v)
		}
	}
	in.fail(errNumber)
	return 0
}

// count reads the length of a vector; an absent section has none. Each item takes a byte at least.
func (in *input) count() uint32 {
	if len(in.b) == 0 {
		return 0
	}
	n := in.u32()
	if uint64(n) > uint64(len(in.b)-in.pos) {
		in.fail(errShort)
		return 0
	}
	return n
}

// skipNumber passes over a LEB128 number of either sign and at most ten bytes.
func (in *input) skipNumber() {
	for range 10 {
		if in.byte() < 0x80 {
			return
		}
	}
	in.fail(errNumber)
}

// limits reads the size of a table or memory and returns its minimum.
func (in *input) limits() uint32 {
	flags := in.byte()
	least := in.u32()
	if flags&1 != 0 {
		in.u32()
	}
	if flags > 3 {
		in.fail(fmt.Errorf("limits with flags %#x", flags))
	}
	return least
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendS32(b []byte, v int32) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte { return append(appendU32(b, uint32(len(s))), s...) }

func appendSection(b []byte, id byte, content []byte) []byte {
	return append(appendU32(append(b, id), uint32(len(content))), content...)
}
