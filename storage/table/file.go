package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// File is an immutable sorted file. Index and filter are in memory, some 2 % of the file; blocks are read when they are asked for.
type File struct {
	path       string
	mapping    vfs.Mapping
	version    uint32
	entries    int64 // tombstones among them
	tombstones int64
	lowest     []byte
	highest    []byte
	separators []byte // memory of the separators of the blocks
	blocks     []place
	filter     []byte

	notice  func(error) // set before the file is shared; nil: nobody asks
	noticed atomic.Bool
}

// place is where a block lies. Its keys are not below its separator, and below that of the next block.
type place struct {
	offset int64
	length uint32 // of the section
	key    uint32 // offset of the separator
	keyEnd uint32
}

// OpenFile maps a file and checks all of it but the blocks.
func OpenFile(fs vfs.FS, path string) (*File, error) {
	h, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("table: open %s: %w", path, err)
	}
	size, err := h.Size()
	if err == nil {
		f := &File{path: path}
		if f.mapping, err = h.Map(size); err == nil {
			if err = f.load(); err == nil {
				if err = h.Close(); err == nil {
					return f, nil
				}
			}
			return nil, errors.Join(fmt.Errorf("table: %w", err), f.mapping.Close(), h.Close())
		}
	}
	return nil, errors.Join(fmt.Errorf("table: open %s: %w", path, err), h.Close())
}

// Path returns where the file lies.
func (f *File) Path() string { return f.path }

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.mapping.Len() }

// Entries returns the number of entries, marks of deleted keys among them.
func (f *File) Entries() int64 { return f.entries }

// Close unmaps the file when those who read it are done.
func (f *File) Close() error { return f.mapping.Close() }

func (f *File) resident() int64 {
	return int64(len(f.separators) + len(f.filter) + 24*len(f.blocks))
}

// OnDamage sets what is called with the first part of the file that cannot be read. It is called by whoever reads, and set before anybody does.
func (f *File) OnDamage(notice func(error)) { f.notice = notice }

func (f *File) damaged(offset int64, cause error) error {
	if errors.Is(cause, vfs.ErrClosed) {
		return cause
	}
	err := &DamageError{f.path, offset, cause}
	if f.notice != nil && !f.noticed.Swap(true) {
		f.notice(err)
	}
	return err
}

// load reads header, footer, index and filter.
func (f *File) load() error {
	size := f.mapping.Len()
	if size < headerBytes+footerBytes {
		return f.damaged(0, fmt.Errorf("%d bytes are too few for a table", size))
	}
	var header [headerBytes]byte
	if _, err := f.mapping.ReadAt(header[:], 0); err != nil {
		return f.damaged(0, err)
	}
	if string(header[:8]) != magic || crc32.Checksum(header[:12], castagnoli) != binary.LittleEndian.Uint32(header[12:]) {
		return f.damaged(0, errors.New("not the header of a table"))
	}
	switch f.version = binary.LittleEndian.Uint32(header[8:]); {
	case f.version > version:
		return &vfs.VersionError{Path: f.path, Found: f.version, Known: version}
	case f.version == 0:
		return f.damaged(0, errors.New("version 0 never was"))
	}
	var footer [footerBytes]byte
	at := size - footerBytes
	if _, err := f.mapping.ReadAt(footer[:], at); err != nil {
		return f.damaged(at, err)
	}
	if string(footer[40:]) != footerMagic || crc32.Checksum(footer[:36], castagnoli) != binary.LittleEndian.Uint32(footer[36:]) ||
		binary.LittleEndian.Uint32(footer[32:]) != f.version {
		return f.damaged(at, errors.New("not the footer of a table"))
	}
	index := binary.LittleEndian.Uint64(footer[:])
	indexLength, filterLength := int64(binary.LittleEndian.Uint32(footer[8:])), int64(binary.LittleEndian.Uint32(footer[12:]))
	entries, tombstones := binary.LittleEndian.Uint64(footer[16:]), binary.LittleEndian.Uint64(footer[24:])
	if f.version >= 2 { // behind the tombstones is the checksum of what is before the footer, which tells files of one shape apart
		tombstones = uint64(uint32(tombstones))
	}
	if index < headerBytes || index > uint64(at) || int64(index)+indexLength+filterLength != at || entries > maxRatio*uint64(size) || tombstones > entries {
		return f.damaged(at, errors.New("a footer that does not fit the file"))
	}
	f.entries, f.tombstones = int64(entries), int64(tombstones)
	raw, err := f.section(int64(index), indexLength)
	if err == nil {
		err = f.parseIndex(raw, int64(index))
	}
	if err != nil {
		return f.damaged(int64(index), err)
	}
	if f.filter, err = f.section(int64(index)+indexLength, filterLength); err != nil {
		return f.damaged(int64(index)+indexLength, err)
	}
	if len(f.filter) == 0 || len(f.filter)%filterLine != 0 {
		return f.damaged(int64(index)+indexLength, fmt.Errorf("filter of %d bytes", len(f.filter)))
	}
	return nil
}

// section returns the raw bytes of a section, in memory of their own.
func (f *File) section(offset, length int64) (raw []byte, err error) {
	err = f.mapping.View(offset, length, func(b []byte) error {
		raw, err = unpack(b)
		return err
	})
	return raw, err
}

// parseIndex reads the index. The blocks end where the index begins.
func (f *File) parseIndex(raw []byte, end int64) error {
	errIndex := errors.New("malformed index")
	text := func(rest []byte) (text, more []byte, ok bool) {
		n, rest, ok := cutUvarint(rest)
		if !ok || n > uint64(len(rest)) {
			return nil, nil, false
		}
		return rest[:n:n], rest[n:], true
	}
	lowest, rest, ok1 := text(raw)
	highest, rest, ok2 := text(rest)
	if !ok1 || !ok2 {
		return errIndex
	}
	f.lowest, f.highest, f.separators = lowest, highest, raw
	offset := int64(headerBytes)
	var before []byte
	for len(rest) > 0 {
		separator, more, ok := text(rest)
		if !ok || len(f.blocks) > 0 && bytes.Compare(separator, before) <= 0 {
			return errIndex
		}
		keyEnd := len(raw) - len(more)
		length, more, ok := cutUvarint(more)
		if !ok || length < sectionBytes || length > uint64(end-offset) || length > maxSection+sectionBytes {
			return errIndex
		}
		f.blocks = append(f.blocks, place{offset, uint32(length), uint32(keyEnd - len(separator)), uint32(keyEnd)})
		before, rest, offset = separator, more, offset+int64(length)
	}
	if offset != end || len(f.blocks) == 0 && f.entries > 0 {
		return errIndex
	}
	return nil
}

func (f *File) separator(block int) []byte {
	p := &f.blocks[block]
	return f.separators[p.key:p.keyEnd]
}

// find returns the block that has the key if any has.
func (f *File) find(key []byte) int {
	lo, hi := 0, len(f.blocks)
	for lo+1 < hi {
		if mid := int(uint(lo+hi) / 2); bytes.Compare(f.separator(mid), key) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// use says what a block is read for.
type use uint8

const (
	useAgain use = iota // a single entry or a short range: the block goes into the cache
	useOnce             // a long walk, which would push out what is asked for again
)

// block returns a block from the cache (nil: there is none) or from the file.
func (f *File) block(i int, c *cache, u use) ([]byte, error) {
	id := blockID{f, i}
	if c != nil {
		if raw := c.get(id); raw != nil {
			return raw, nil
		}
	}
	p := f.blocks[i]
	raw, err := f.section(p.offset, int64(p.length))
	if err != nil {
		return nil, f.damaged(p.offset, err)
	}
	if c != nil && u == useAgain {
		c.put(id, raw)
	}
	return raw, nil
}

// get returns the entry of a key.
func (f *File) get(key []byte, c *cache) (found item, ok bool, err error) {
	if f.entries == 0 || bytes.Compare(key, f.lowest) < 0 || bytes.Compare(key, f.highest) > 0 || !filterHas(f.filter, hashOf(key)) {
		return item{}, false, nil
	}
	i := f.find(key)
	raw, err := f.block(i, c, useAgain)
	if err != nil {
		return item{}, false, err
	}
	var b blockCursor
	if err = b.open(raw); err == nil {
		found, ok, err = b.find(key)
	}
	if err != nil {
		return item{}, false, f.damaged(f.blocks[i].offset, err)
	}
	return found, ok, nil
}
