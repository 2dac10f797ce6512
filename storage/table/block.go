package table

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// A block, unpacked:
//
//	entries    uvarint shared | uvarint suffix length | uvarint value length + 1, or 0 for a tombstone | suffix | value
//	restarts   u32 each: where entries begin that share nothing with the one before, the first among them
//	count      u32 of restarts, at least 1
//
// A key is the first shared bytes of the key before and the suffix.

// item is an entry, or the mark that there is none any more. The key is valid until the source of the item moves on; the value is shared and stays.
type item struct {
	key, value []byte
	dead       bool
}

var errBlock = errors.New("malformed block")

// blockCursor walks the entries of a block. Whatever the bytes are, it reads inside of them.
type blockCursor struct {
	item
	entries  []byte
	restarts []byte
	next     int    // offset of the entry behind the item
	keys     []byte // memory of item.key
}

// open starts in front of the first entry.
func (c *blockCursor) open(raw []byte) error {
	if len(raw) < 4 {
		return errBlock
	}
	body := len(raw) - 4
	n := uint64(binary.LittleEndian.Uint32(raw[body:]))
	if n == 0 || 4*n > uint64(body) {
		return errBlock
	}
	c.entries, c.restarts = raw[:body-4*int(n)], raw[body-4*int(n):body]
	c.next = 0
	return nil
}

// coded is an entry as it stands in a block.
type coded struct {
	shared        int
	suffix, value []byte
	dead          bool
}

// read reads the next entry, which must be there.
func (c *blockCursor) read() (coded, error) {
	rest := c.entries[c.next:]
	shared, rest, ok1 := cutUvarint(rest)
	suffix, rest, ok2 := cutUvarint(rest)
	length, rest, ok3 := cutUvarint(rest)
	dead := length == 0
	if !dead {
		length--
	}
	if !ok1 || !ok2 || !ok3 || shared > maxSection || suffix > uint64(len(rest)) || length > uint64(len(rest))-suffix {
		return coded{}, errBlock
	}
	end := suffix + length
	e := coded{shared: int(shared), suffix: rest[:suffix], dead: dead}
	if !dead {
		e.value = rest[suffix:end:end]
	}
	c.next = len(c.entries) - len(rest) + int(end)
	return e, nil
}

// advance moves to the next entry; ok is false at the end.
func (c *blockCursor) advance() (ok bool, err error) {
	if c.next == len(c.entries) {
		return false, nil
	}
	e, err := c.read()
	if err != nil || e.shared > len(c.keys) {
		return false, errBlock
	}
	c.keys = append(c.keys[:e.shared], e.suffix...)
	c.item = item{c.keys, e.value, e.dead}
	return true, nil
}

// cutUvarint reads a number from the front. Most are below 128.
func cutUvarint(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], true
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

// seek moves to the first entry whose key is not below key; ok is false when there is none.
func (c *blockCursor) seek(key []byte) (ok bool, err error) {
	lo, hi := 0, len(c.restarts)/4
	for lo+1 < hi {
		mid := int(uint(lo+hi) / 2)
		if err := c.restart(mid); err != nil {
			return false, err
		}
		if ok, err := c.advance(); !ok {
			return false, errors.Join(errBlock, err)
		}
		if bytes.Compare(c.key, key) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	if err := c.restart(lo); err != nil {
		return false, err
	}
	for {
		ok, err := c.advance()
		if !ok || bytes.Compare(c.key, key) >= 0 {
			return ok, err
		}
	}
}

// find looks for the entry of a key without putting keys together: as long as an entry shares more with the one before than that shares with the key,
// it is on the same side of it.
func (c *blockCursor) find(key []byte) (found item, ok bool, err error) {
	lo, hi := 0, len(c.restarts)/4
	for lo+1 < hi {
		mid := int(uint(lo+hi) / 2)
		if err := c.restart(mid); err != nil {
			return item{}, false, err
		}
		e, err := c.read()
		if err != nil {
			return item{}, false, err
		}
		if bytes.Compare(e.suffix, key) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	if err := c.restart(lo); err != nil {
		return item{}, false, err
	}
	common := 0 // bytes that the entry before, which is below key, shares with it
	for c.next < len(c.entries) {
		e, err := c.read()
		switch {
		case err != nil:
			return item{}, false, err
		case e.shared > common:
			continue
		case e.shared < common:
			return item{}, false, nil
		}
		n := commonPrefix(e.suffix, key[common:])
		switch common += n; {
		case n == len(e.suffix) && common == len(key):
			return item{value: e.value, dead: e.dead}, true, nil
		case n < len(e.suffix) && (common == len(key) || e.suffix[n] > key[common]):
			return item{}, false, nil
		}
	}
	return item{}, false, nil
}

// restart moves in front of an entry that shares nothing.
func (c *blockCursor) restart(i int) error {
	at := binary.LittleEndian.Uint32(c.restarts[4*i:])
	if uint64(at) > uint64(len(c.entries)) {
		return errBlock
	}
	c.next, c.keys = int(at), c.keys[:0]
	return nil
}
