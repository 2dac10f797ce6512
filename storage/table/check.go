package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Check reads all of a file and verifies it: checksums, the order of the keys, counts, and that index and filter find every key.
func Check(f *File) error {
	var before []byte
	var entries, tombstones int64
	for i := range f.blocks {
		err := f.walk(i, func(one *item) error {
			switch {
			case entries > 0 && bytes.Compare(before, one.key) >= 0:
				return fmt.Errorf("key %q behind %q", one.key, before)
			case entries == 0 && !bytes.Equal(one.key, f.lowest):
				return fmt.Errorf("lowest key %q, not %q", one.key, f.lowest)
			case f.find(one.key) != i:
				return fmt.Errorf("key %q is looked for in another block", one.key)
			case !filterHas(f.filter, hashOf(one.key)):
				return fmt.Errorf("key %q is not in the filter", one.key)
			}
			before = append(before[:0], one.key...)
			entries++
			if one.dead {
				tombstones++
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("table: %w", err)
		}
	}
	if entries != f.entries || tombstones != f.tombstones || !bytes.Equal(before, f.highest) {
		return fmt.Errorf("table: %w", f.damaged(f.Size()-footerBytes, fmt.Errorf("%d entries, %d of them deleted, up to key %q: the file says %d, %d, %q",
			entries, tombstones, before, f.entries, f.tombstones, f.highest)))
	}
	return nil
}

// walk calls visit with the entries of a block. Each restart must be the beginning of an entry.
func (f *File) walk(i int, visit func(*item) error) error {
	raw, err := f.block(i, nil, useOnce)
	if err != nil {
		return err
	}
	var c blockCursor
	err = c.open(raw)
	n := 0
	for ok := true; err == nil; {
		start := c.next
		if ok, err = c.advance(); !ok {
			break
		}
		if restart := 4 * (n / restartEvery); n%restartEvery == 0 && (restart >= len(c.restarts) || !c.isRestart(restart, start)) {
			err = errors.New("an entry without its restart")
			break
		}
		n++
		err = visit(&c.item)
	}
	if err == nil && (n+restartEvery-1)/restartEvery != len(c.restarts)/4 {
		err = errors.New("restarts without entries")
	}
	if err != nil {
		return f.damaged(f.blocks[i].offset, err)
	}
	return nil
}

func (c *blockCursor) isRestart(at, start int) bool {
	r := c.restarts[at:]
	return int64(r[0])|int64(r[1])<<8|int64(r[2])<<16|int64(r[3])<<24 == int64(start)
}

// Dump writes a file as text. describe returns the text of an entry; a value is nil for a mark that its key is deleted.
func Dump(w io.Writer, f *File, describe func(key, value []byte) string) error {
	set := 0
	for _, b := range f.filter {
		set += bits.OnesCount8(b)
	}
	if _, err := fmt.Fprintf(w, "table of %d bytes, version %d: %d entries, %d of them deleted, %d blocks, filter of %d bytes, %d %% of its bits set\n",
		f.Size(), f.version, f.entries, f.tombstones, len(f.blocks), len(f.filter), 100*set/(8*len(f.filter))); err != nil {
		return err
	}
	for i, p := range f.blocks {
		if _, err := fmt.Fprintf(w, "block %d at %d, %d bytes, from %q\n", i, p.offset, p.length, f.separator(i)); err != nil {
			return err
		}
		err := f.walk(i, func(one *item) error {
			value := one.value
			if value == nil && !one.dead {
				value = []byte{}
			}
			_, err := fmt.Fprintf(w, "  %s\n", describe(one.key, value))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
