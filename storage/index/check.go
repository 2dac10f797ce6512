package index

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// CheckRun verifies a run wholly: every checksum, the order of the keys and names, that ids lead to their keys, that the postings of the entities are all
// series and no others, the counts of the tags, and that the filter lets every key pass. It returns the first thing that is wrong.
func CheckRun(fs vfs.FS, path string) error {
	r, err := OpenRun(fs, path)
	if err != nil {
		return err
	}
	c := checker{run: r, rd: newReader(r), other: newReader(r), tags: map[string]uint64{}}
	defer c.rd.done()
	defer c.other.done()
	return errors.Join(c.check(), r.Close())
}

type checker struct {
	run   *Run
	rd    *reader
	other *reader
	tags  map[string]uint64 // as counted from the keys
}

func (c *checker) check() error {
	if err := c.keys(); err != nil {
		return err
	}
	if err := c.ids(); err != nil {
		return err
	}
	if err := c.entities(); err != nil {
		return err
	}
	if err := c.tagCounts(); err != nil {
		return err
	}
	if err := c.lines(); err != nil {
		return err
	}
	last := None
	return c.run.eachGone(c.rd, func(id ID) error {
		if id <= last {
			return c.wrong("gone id %d follows %d", id, last)
		}
		last = id
		return nil
	})
}

func (c *checker) wrong(format string, args ...any) error {
	return fmt.Errorf("index: %s: %w: %s", c.run.path, ErrDamaged, fmt.Sprintf(format, args...))
}

func (c *checker) keys() error {
	var last []byte
	for ordinal := range c.run.keys.count {
		key, err := c.rd.keyAt(ordinal)
		if err != nil {
			return err
		}
		if ordinal > 0 && bytes.Compare(key, last) <= 0 {
			return c.wrong("key %d, %q, is not above the one before it, %q", ordinal, key, last)
		}
		last = append(last[:0], key...)
		id, err := c.rd.idAt(ordinal)
		if err != nil {
			return err
		}
		for tag := range tagNames(key) {
			c.tags[string(tag)]++
		}
		if err := c.key(ordinal, id, key); err != nil {
			return err
		}
	}
	return nil
}

// key checks that one key is found, by its text and by its id.
func (c *checker) key(ordinal uint32, id ID, key []byte) error {
	p, err := c.other.find(key)
	if err != nil {
		return err
	}
	if p.ordinal != ordinal || p.id != id {
		return c.wrong("key %d, %q, is found as key %d", ordinal, key, p.ordinal)
	}
	if !c.run.filter.may(c.other, filterHash(key)) {
		return c.wrong("the filter does not let key %q pass", key)
	}
	got, err := c.other.ordinalOf(id)
	if err != nil {
		return err
	}
	if got != ordinal {
		return c.wrong("series %d is key %d and found as key %d", id, ordinal, got)
	}
	return nil
}

// ids checks that there are no more ids than keys.
func (c *checker) ids() error {
	found, last := uint32(0), uint64(0)
	for i := range c.run.ordinals.count {
		ordinal, err := c.run.ordinals.at(c.rd, i)
		if err != nil {
			return err
		}
		if ordinal < uint64(c.run.keys.count) {
			found++
		}
		if c.run.ids.count == 0 {
			continue
		}
		id, err := c.run.ids.at(c.rd, i)
		if err != nil {
			return err
		}
		if id <= last {
			return c.wrong("id %d follows %d", id, last)
		}
		last = id
	}
	if found != c.run.keys.count {
		return c.wrong("%d ids of %d keys", found, c.run.keys.count)
	}
	return nil
}

func (c *checker) entities() error {
	walk := c.run.entities.from(c.rd, nil)
	var last []byte
	var list []uint32
	count, names := uint32(0), uint32(0)
	for walk.next() {
		name := walk.walk.text
		if names > 0 && bytes.Compare(name, last) <= 0 {
			return c.wrong("entity %q is not above the one before it, %q", name, last)
		}
		last = append(last[:0], name...)
		names++
		var err error
		if list, err = c.rd.postings(list[:0], walk.column(0), walk.column(1)); err != nil {
			return err
		}
		count += uint32(len(list))
		for _, ordinal := range list {
			key, err := c.other.keyAt(ordinal)
			if err != nil {
				return err
			}
			if !bytes.Equal(entityOf(key), name) {
				return c.wrong("key %q is listed under entity %q", key, name)
			}
		}
	}
	if walk.err != nil {
		return walk.err
	}
	if count != c.run.keys.count || names != c.run.entities.count {
		return c.wrong("%d entities list %d series, there are %d and %d", names, count, c.run.entities.count, c.run.keys.count)
	}
	return nil
}

func (c *checker) tagCounts() error {
	walk := c.run.tags.from(c.rd, nil)
	names := 0
	for walk.next() {
		if c.tags[string(walk.walk.text)] != walk.column(0) {
			return c.wrong("%d series with tag %q, there are %d", walk.column(0), walk.walk.text, c.tags[string(walk.walk.text)])
		}
		names++
	}
	if walk.err == nil && names != len(c.tags) {
		return c.wrong("%d tag names, there are %d", names, len(c.tags))
	}
	return walk.err
}

// lines reads the whole filter: a key of each line need not be in the run.
func (c *checker) lines() error {
	f := &c.run.filter
	for n := range f.lines {
		if _, err := c.rd.group.read(c.run, piece{f.off + int64(n)*lineBytes, lineBytes, kindFilter.seed(0, n)}); err != nil {
			return err
		}
	}
	return nil
}
