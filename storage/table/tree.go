package table

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// record is one entry in memory: key and value lie in one allocation, so that an entry is a single pointer to the garbage collector. Immutable.
type record struct {
	data  *byte
	key   uint32 // bytes
	value uint32 // bytes, or tombstone
}

const tombstone = math.MaxUint32

func newRecord(key, value []byte) record {
	data := make([]byte, len(key)+len(value))
	copy(data[copy(data, key):], value)
	return record{unsafe.SliceData(data), uint32(len(key)), uint32(len(value))}
}

func newTombstone(key []byte) record {
	return record{unsafe.SliceData(append(make([]byte, 0, len(key)), key...)), uint32(len(key)), tombstone}
}

func (r record) dead() bool { return r.value == tombstone }

func (r record) keyBytes() []byte { return unsafe.Slice(r.data, r.key) }

func (r record) valueBytes() []byte {
	if r.dead() {
		return nil
	}
	n := r.key + r.value
	return unsafe.Slice(r.data, n)[r.key:n:n]
}

// size estimates the heap of a record: its bytes, rounded as the allocator does, and its place in a block that is three quarters full.
func (r record) size() int64 {
	n := int64(r.key)
	if !r.dead() {
		n += int64(r.value)
	}
	return n + 8 + recordBytes*4/3
}

const (
	recordBytes = 16
	// leafRecords bounds the records of a leaf: an insert moves at most a page of 4 KiB.
	leafRecords = 256
)

// tree is a part in memory: records in order of their keys, in leaves. One goroutine at a time changes it. Two levels are enough for a part whose size is
// bounded: a million records are some 6,000 leaves.
type tree struct {
	mu     sync.RWMutex
	leaves []leaf
	live   int // records that are not tombstones
	dead   int
	bytes  int64
}

// leaf is a run of records. Its keys are not below low, and below the low of the next one; the first leaf has no low, and may be empty.
type leaf struct {
	low     []byte
	records []record
}

// locate returns the place of the first record whose key is not below key, which may be the end of a leaf, and whether it has that key. Callers hold mu.
func (t *tree) locate(key []byte) (at, in int, found bool) {
	lo, hi := 0, len(t.leaves)
	for lo+1 < hi {
		if mid := int(uint(lo+hi) / 2); bytes.Compare(t.leaves[mid].low, key) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	if len(t.leaves) == 0 {
		return 0, 0, false
	}
	in, found = slices.BinarySearchFunc(t.leaves[lo].records, key, func(r record, key []byte) int { return bytes.Compare(r.keyBytes(), key) })
	return lo, in, found
}

func (t *tree) get(key []byte) (record, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at, in, found := t.locate(key); found {
		return t.leaves[at].records[in], true
	}
	return record{}, false
}

// account adjusts the totals by a record that comes (1) or goes (-1).
func (t *tree) account(r record, by int) {
	if r.dead() {
		t.dead += by
	} else {
		t.live += by
	}
	t.bytes += int64(by) * r.size()
}

// put stores a record in the place of the one with the same key, or as one more.
func (t *tree) put(r record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, in, found := t.locate(r.keyBytes())
	t.account(r, 1)
	if found {
		t.account(t.leaves[at].records[in], -1)
		t.leaves[at].records[in] = r
		return
	}
	if len(t.leaves) == 0 {
		t.leaves = append(t.leaves, leaf{})
	}
	if len(t.leaves[at].records) == leafRecords {
		at, in = t.split(at, in)
	}
	t.leaves[at].records = slices.Insert(t.leaves[at].records, in, r)
	if in == 0 && at > 0 && len(t.leaves[at].records) == 1 {
		t.leaves[at].low = bytes.Clone(r.keyBytes()) // a leaf that was just opened
	}
}

// split makes room in a full leaf and returns the new place. Behind the last record a leaf is opened and nothing is moved, so that keys which come in
// order leave full leaves.
func (t *tree) split(at, in int) (int, int) {
	records := t.leaves[at].records
	if at == len(t.leaves)-1 && in == leafRecords {
		t.leaves = append(t.leaves, leaf{records: make([]record, 0, leafRecords)})
		return at + 1, 0
	}
	const half = leafRecords / 2
	upper := leaf{low: bytes.Clone(records[half].keyBytes()), records: append(make([]record, 0, leafRecords), records[half:]...)}
	clear(records[half:])
	t.leaves[at].records = records[:half]
	t.leaves = slices.Insert(t.leaves, at+1, upper)
	if in > half {
		return at + 1, in - half
	}
	return at, in
}

// remove takes a record out.
func (t *tree) remove(key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, in, found := t.locate(key)
	if !found {
		return
	}
	records := t.leaves[at].records
	t.account(records[in], -1)
	t.leaves[at].records = slices.Delete(records, in, in+1)
	if at > 0 && len(records) == 1 {
		t.leaves = slices.Delete(t.leaves, at, at+1)
	}
}

// edge says whether a page starts at the given key or behind it.
type edge uint8

const (
	atKey edge = iota
	behindKey
)

// page copies records to dst and returns how many.
func (t *tree) page(key []byte, start edge, dst []record) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	at, in, found := t.locate(key)
	if found && start == behindKey {
		in++
	}
	n := 0
	for ; at < len(t.leaves) && n < len(dst); at++ {
		n += copy(dst[n:], t.leaves[at].records[in:])
		in = 0
	}
	return n
}

func (t *tree) size() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.bytes
}

// len is how many keys the part adds to those below, as far as it knows.
func (t *tree) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.live - t.dead
}

func (t *tree) count() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int64(t.live) + int64(t.dead)
}

func (t *tree) empty() bool { return t.count() == 0 }
