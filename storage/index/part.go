package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
)

// part is the memory part of the index. Its series are numbered in order of arrival; what belongs to a number lies in pages that never move, and what the
// writer has added is never changed, so that a reader may keep on reading what it saw under the lock of the index after it has let go of it.
type part struct {
	seed     maphash.Seed
	arena    arena
	pages    [][]record
	n        uint32
	live     int
	dead     bitmap
	keys     table // numbers by hash of the key
	ids      table // numbers by hash of the id; a series that was given another key has two, one of them dead
	metrics  postings
	entities postings
	tags     map[string]int // living series that have the tag
	gone     []ID           // removed or renamed while an older layer had them; each at most once, as it is in at most one older layer

	sorting sync.Mutex // guards the sorted lists of the postings, which readers make
}

// record is one series of the part.
type record struct {
	chunk, off uint32 // of the key in the arena
	length     uint32
	id         ID
	metric     link
	entity     link
}

// link ties a series into the list of its metric or entity.
type link struct {
	name uint32 // in the list of names
	next uint32 // the series of the same name that came before; none at the end
}

const pageSize = 1024

func newPart(seed maphash.Seed) *part {
	p := &part{seed: seed, keys: newTable(), ids: newTable(), tags: map[string]int{}}
	p.metrics = postings{table: newTable()}
	p.entities = postings{table: newTable()}
	return p
}

// arena keeps keys. Chunks grow from small to 1 MiB, and a key that is longer gets one of its own; written bytes stay where they are.
type arena struct {
	chunks [][]byte
	size   int64
}

const (
	minChunk = 4 << 10
	maxChunk = 1 << 20
)

func (a *arena) add(key string) (chunk, off uint32) {
	last := len(a.chunks) - 1
	if last < 0 || cap(a.chunks[last])-len(a.chunks[last]) < len(key) {
		size := max(min(minChunk<<min(len(a.chunks), 20), maxChunk), len(key))
		a.chunks = append(a.chunks, make([]byte, 0, size))
		a.size += int64(size)
		last++
	}
	c := &a.chunks[last]
	off = uint32(len(*c))
	*c = append(*c, key...)
	return uint32(last), off
}

func (p *part) at(i uint32) *record { return &p.pages[i/pageSize][i%pageSize] }

// key returns the key of a series, which stays valid.
func (p *part) key(i uint32) []byte {
	e := p.at(i)
	return p.arena.chunks[e.chunk][e.off : e.off+e.length : e.off+e.length]
}

// add puts a series in; its key is not in the part, or dead.
func (p *part) add(key string, id ID) {
	i := p.n
	if i%pageSize == 0 {
		p.pages = append(p.pages, make([]record, pageSize))
	}
	e := p.at(i)
	e.chunk, e.off = p.arena.add(key)
	e.length, e.id = uint32(len(key)), id
	p.n++
	p.live++
	stored := p.key(i)
	metric, rest := cut(stored)
	entity, _ := cut(rest)
	e.metric = p.metrics.add(p, metric, i)
	e.entity = p.entities.add(p, entity, i)
	p.keys.add(p.hash(stored), i)
	p.ids.add(hashID(id), i)
	for tag := range tagNames(stored) {
		p.tags[string(tag)]++
	}
}

// kill ends a series of the part.
func (p *part) kill(i uint32) {
	e := p.at(i)
	p.dead.add(i)
	p.live--
	p.metrics.names[e.metric.name].live--
	p.entities.names[e.entity.name].live--
	for tag := range tagNames(p.key(i)) {
		if p.tags[string(tag)]--; p.tags[string(tag)] == 0 {
			delete(p.tags, string(tag))
		}
	}
}

func (p *part) hash(text []byte) uint32 {
	h := maphash.Bytes(p.seed, text)
	return uint32(h ^ h>>32)
}

// lookup returns the living series of a key.
func (p *part) lookup(key []byte, hash uint32) uint32 {
	for i, at := p.keys.next(hash, p.keys.start(hash)); i != none; i, at = p.keys.next(hash, at) {
		if !p.dead.has(i) && bytes.Equal(p.key(i), key) {
			return i
		}
	}
	return none
}

// byID returns the living series of an id.
func (p *part) byID(id ID) uint32 {
	hash := hashID(id)
	for i, at := p.ids.next(hash, p.ids.start(hash)); i != none; i, at = p.ids.next(hash, at) {
		if !p.dead.has(i) {
			return i
		}
	}
	return none
}

// mostlyDead reports whether the part is worth a copy without what is dead.
func (p *part) mostlyDead() bool { return p.n > 2*pageSize && int(p.n) > 2*p.live }

// compact returns a part of the living series.
func (p *part) compact() *part {
	q := newPart(p.seed)
	q.gone = p.gone
	for i := range p.n {
		if !p.dead.has(i) {
			q.add(string(p.key(i)), p.at(i).id)
		}
	}
	return q
}

// bytes estimates the heap of the part.
func (p *part) bytes() int64 {
	p.sorting.Lock()
	defer p.sorting.Unlock()
	return p.arena.size + int64(len(p.pages))*pageSize*32 + p.keys.bytes() + p.ids.bytes() + p.metrics.bytes() + p.entities.bytes() +
		int64(cap(p.dead)+cap(p.gone))*4 + int64(len(p.tags))*64
}

func cut(text []byte) (before, after []byte) {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, nil
}

func metricOf(key []byte) []byte {
	metric, _ := cut(key)
	return metric
}

func entityOf(key []byte) []byte {
	_, rest := cut(key)
	return metricOf(rest)
}

// tagNames yields the tag names of a key.
func tagNames(key []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		_, rest := cut(key)
		_, rest = cut(rest)
		for len(rest) > 0 {
			var tag []byte
			tag, rest = cut(rest)
			if i := bytes.IndexByte(tag, 1); i >= 0 {
				tag = tag[:i]
			}
			if !yield(tag) {
				return
			}
		}
	}
}

// sortKey orders series whose keys share their first bytes: most are told apart by the next eight.
type sortKey struct {
	next uint64
	i    uint32
}

// sort brings series into key order whose keys have the first skip bytes in common.
func (p *part) sort(list []uint32, skip int) {
	keys := make([]sortKey, len(list))
	for at, i := range list {
		var b [8]byte
		copy(b[:], p.key(i)[skip:])
		keys[at] = sortKey{binary.BigEndian.Uint64(b[:]), i}
	}
	slices.SortFunc(keys, func(a, b sortKey) int {
		if a.next != b.next {
			return cmp.Compare(a.next, b.next)
		}
		return bytes.Compare(p.key(a.i)[skip:], p.key(b.i)[skip:])
	})
	for at := range keys {
		list[at] = keys[at].i
	}
}
