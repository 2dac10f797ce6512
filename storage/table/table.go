// Package table is an ordered map of byte keys to byte values that may be larger than memory. Changes go into memory; from time to time the owner
// freezes that part, writes it to a file and hands the file back. Files are immutable and merged when there are many.
//
// # Reading map
//
//	table.go   Table: get, put, delete, and the change of its parts    tree.go   a part in memory
//	scan.go    Ascend: all parts in one order                          merge.go  which files to merge, and how
//	format.go  the file, drawn                                         writer.go writes one
//	file.go    opens one and finds keys in it                          block.go  finds entries in a block
//	cache.go   unpacked blocks                                         check.go  Check and Dump
//
// The parts are layers by age: memory, frozen, files from new to old. The newest layer that has a key, or says that it is deleted, is right.
//
// One goroutine at a time may change entries and freeze (the appender), and one may write, adopt and merge (the flusher); readers run beside both.
package table

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Options of a table. The zero value is the default.
type Options struct {
	CacheBytes int // of unpacked blocks; 0 is DefaultCacheBytes
}

// DefaultCacheBytes holds some 250 blocks: what a busy client asks for again and again.
const DefaultCacheBytes = 1 << 20

// Table is the map. Keys and values given to it are copied. Values that it returns are shared and must not be changed; they stay valid.
type Table struct {
	cache *cache

	changes sync.Mutex           // guards stores to parts
	parts   atomic.Pointer[view] // replaced, never changed: a reader loads all layers at once, so that it sees each entry exactly once
}

// view is the layers at one moment. The memory part goes on changing until it is frozen.
type view struct {
	memory *tree
	frozen *tree   // nil when there is none
	files  []*File // from old to new
}

// New returns an empty table in memory.
func New(opts Options) *Table { return Open(opts, nil) }

// Open returns a table over files, from old to new. The caller closes them when the table is not used any more.
func Open(opts Options, files []*File) *Table {
	if opts.CacheBytes == 0 {
		opts.CacheBytes = DefaultCacheBytes
	}
	t := &Table{cache: newCache(opts.CacheBytes)}
	t.parts.Store(&view{memory: &tree{}, files: slices.Clone(files)})
	return t
}

// Get returns the value of a key. An error is a damaged or unreadable file; then nothing is known.
func (t *Table) Get(key []byte) (value []byte, ok bool, err error) {
	for {
		v := t.parts.Load()
		value, ok, err = v.get(key, t.cache)
		if err == nil || !t.outdated(v, err) {
			return value, ok, err
		}
	}
}

// Has reports whether the key is there.
func (t *Table) Has(key []byte) (bool, error) {
	_, ok, err := t.Get(key)
	return ok, err
}

// outdated reports whether err only says that a file was replaced, and closed, since v was loaded.
func (t *Table) outdated(v *view, err error) bool {
	return errors.Is(err, vfs.ErrClosed) && t.parts.Load() != v
}

func (v *view) get(key []byte, c *cache) (value []byte, ok bool, err error) {
	if r, found := v.memory.get(key); found {
		return r.valueBytes(), !r.dead(), nil
	}
	if v.frozen != nil {
		if r, found := v.frozen.get(key); found {
			return r.valueBytes(), !r.dead(), nil
		}
	}
	for _, f := range slices.Backward(v.files) {
		one, found, err := f.get(key, c)
		if err != nil {
			return nil, false, err
		}
		if found {
			return one.value, !one.dead, nil
		}
	}
	return nil, false, nil
}

// Put stores a value. Key and value together are below 1 GiB.
func (t *Table) Put(key, value []byte) { t.parts.Load().memory.put(newRecord(key, value)) }

// Delete removes a key, which need not be there. Where older layers may have it, a mark says that it is gone, until a merge drops both.
func (t *Table) Delete(key []byte) {
	v := t.parts.Load()
	if v.frozen == nil && len(v.files) == 0 {
		v.memory.remove(key)
		return
	}
	v.memory.put(newTombstone(key))
}

// Bytes estimates the heap that the parts in memory take.
func (t *Table) Bytes() int64 {
	v := t.parts.Load()
	n := v.memory.size()
	if v.frozen != nil {
		n += v.frozen.size()
	}
	return n
}

// Fresh is the part of Bytes that is not frozen.
func (t *Table) Fresh() int64 { return t.parts.Load().memory.size() }

// Resident estimates the heap that the files take: indexes, filters and unpacked blocks.
func (t *Table) Resident() int64 {
	n := t.cache.size()
	for _, f := range t.parts.Load().files {
		n += f.resident()
	}
	return n
}

// Len estimates the number of keys: a key that is in several layers counts for each, a deletion takes one away. It is exact while all is in memory.
func (t *Table) Len() int {
	v := t.parts.Load()
	n := v.memory.len()
	if v.frozen != nil {
		n += v.frozen.len()
	}
	for _, f := range v.files {
		n += int(f.entries - 2*f.tombstones)
	}
	return max(n, 0)
}

// Files returns the files, from old to new.
func (t *Table) Files() []*File { return slices.Clone(t.parts.Load().files) }

// Freeze makes the part in memory the frozen one, in constant time, and reports whether there is something to write: not when nothing changed. While
// there is a frozen part it does nothing and returns false. No entry may be changed meanwhile.
func (t *Table) Freeze() bool {
	t.changes.Lock()
	defer t.changes.Unlock()
	v := t.parts.Load()
	if v.frozen != nil || v.memory.empty() {
		return false
	}
	t.parts.Store(&view{memory: &tree{}, frozen: v.memory, files: v.files})
	return true
}

// Frozen reports whether there is a frozen part, which waits to be written.
func (t *Table) Frozen() bool { return t.parts.Load().frozen != nil }

// WriteFrozen writes the frozen part as a file, which is empty when there is none. It may be called again after an error.
func (t *Table) WriteFrozen(w io.Writer) error {
	v := t.parts.Load()
	if v.frozen == nil {
		return writeAll(w, nil, plan{})
	}
	marks := keepTombstones
	if len(v.files) == 0 {
		marks = dropTombstones // nothing that they could hide
	}
	return writeAll(w, []source{newTreeSource(v.frozen, nil)}, plan{entries: v.frozen.count(), marks: marks})
}

// Adopt puts the file that WriteFrozen wrote in the place of the frozen part. Without one, the file becomes the newest of the table.
func (t *Table) Adopt(f *File) {
	t.changes.Lock()
	defer t.changes.Unlock()
	v := t.parts.Load()
	t.parts.Store(&view{memory: v.memory, files: append(slices.Clone(v.files), f)})
}

// Replace puts the file that Merge wrote in the place of those it was made of. The caller may close them and remove them from the disk: readers that are
// at work in one of them go on in the other.
func (t *Table) Replace(old []*File, merged *File) {
	t.changes.Lock()
	v := t.parts.Load()
	files := make([]*File, 0, len(v.files))
	for _, f := range v.files {
		switch {
		case f == old[0]:
			files = append(files, merged)
		case !slices.Contains(old, f):
			files = append(files, f)
		}
	}
	t.parts.Store(&view{memory: v.memory, frozen: v.frozen, files: files})
	t.changes.Unlock()
	for _, f := range old {
		t.cache.forget(f)
	}
}
