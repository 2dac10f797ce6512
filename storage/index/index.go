// Package index finds series by name: canonical key bytes to id, metric or entity to the ids of their series in key order, and the tag names in use.
//
// The truth is in three places that never disagree: the table of keys by id, the sorted run of all ids with its small unsorted part, and
// the postings. In front of the run stands a fastcache of hot keys outside the Go heap. That cache may drop or confuse entries, so each hit is
// verified against the table of keys, and a miss falls through to the run: it can make a lookup slow, never wrong.
//
// Keys have the canonical form `metric 00 entity 00 (tag 01 value 00)*`. One writer at a time may call Add and Remove; everything else may run beside it.
package index

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/fastcache"
)

// ID numbers a series from 1, in order of creation. An id is never given twice in the life of an Index.
type ID uint32

// None is the id of no series.
const None ID = 0

// MinCacheBytes is the smallest cache that fastcache can make: 512 buckets of one 64 KiB chunk each.
const MinCacheBytes = 32 << 20

// mergeAt is the least number of unsorted keys that is worth a merge into the sorted run; above it an eighth of the run is, so that each
// key moves some eight times in all.
const mergeAt = 1024

// Index is the mutable index of one database.
type Index struct {
	cache *fastcache.Cache

	mu       sync.RWMutex // guards all below; posting.mu is taken inside it, never around it
	keys     []string     // by id; a removed key stays until the run is rid of it
	alive    []bool       // by id
	run      []ID         // sorted by key; may hold removed ids
	fresh    map[string]ID
	live     int
	metrics  map[string]*posting
	entities map[string]*posting
	tags     map[string]int // series that have the tag
}

// New makes an empty index with a cache of at least MinCacheBytes. Close gives the cache's memory back.
func New(cacheBytes int) *Index {
	return &Index{cache: fastcache.New(max(cacheBytes, MinCacheBytes)), keys: make([]string, 1), alive: make([]bool, 1), fresh: map[string]ID{},
		metrics: map[string]*posting{}, entities: map[string]*posting{}, tags: map[string]int{}}
}

// Close releases the cache. The index stays usable, only slower.
func (x *Index) Close() { x.cache.Reset() }

// CacheStats is what the cache of hot keys holds.
type CacheStats struct {
	Entries      uint64
	Bytes, Limit uint64
}

// Cache returns what the cache holds now.
func (x *Index) Cache() CacheStats {
	var s fastcache.Stats
	x.cache.UpdateStats(&s)
	return CacheStats{Entries: s.EntriesCount, Bytes: s.BytesSize, Limit: s.MaxBytesSize}
}

// Len returns the number of series.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.live
}

// Lookup returns the id of a canonical key, None when there is no such series.
func (x *Index) Lookup(key []byte) ID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lookup(key)
}

// LookupAll sets ids[i] to the id of the i-th key, under one lock. The keys lie one after the other in arena; ends holds where each one ends.
func (x *Index) LookupAll(arena []byte, ends []int, ids []ID) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	start := 0
	for i, end := range ends {
		ids[i] = x.lookup(arena[start:end])
		start = end
	}
}

func (x *Index) lookup(key []byte) ID {
	var buf [4]byte
	if hit := x.cache.Get(buf[:0], key); len(hit) == 4 {
		id := ID(binary.LittleEndian.Uint32(hit))
		if int(id) < len(x.keys) && x.alive[id] && x.keys[id] == string(key) {
			return id
		}
	}
	id := x.slowLookup(key)
	if id != None {
		x.remember(key, id)
	}
	return id
}

func (x *Index) slowLookup(key []byte) ID {
	if id, ok := x.fresh[string(key)]; ok {
		return id
	}
	at, ok := slices.BinarySearchFunc(x.run, key, func(id ID, key []byte) int { return strings.Compare(x.keys[id], string(key)) })
	if !ok || !x.alive[x.run[at]] {
		return None
	}
	return x.run[at]
}

// remember puts a key into the cache, which copies it and takes nothing above 64 KiB.
func (x *Index) remember(key []byte, id ID) {
	var buf [4]byte
	binary.LittleEndian.PutUint32(buf[:], uint32(id))
	x.cache.Set(key, buf[:])
}

// Add makes a series. The key must not be in the index; it is kept and must not point into memory that changes.
func (x *Index) Add(key string) ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := ID(len(x.keys))
	x.keys, x.alive = append(x.keys, key), append(x.alive, true)
	x.fresh[key] = id
	x.live++
	postingOf(x.metrics, metricOf(key)).add(id)
	postingOf(x.entities, entityOf(key)).add(id)
	for tag := range tagNames(key) {
		x.tags[tag]++
	}
	if len(x.fresh) > max(mergeAt, len(x.run)/8) {
		x.merge()
	}
	return id
}

// Remove ends a series; its id finds nothing from then on.
func (x *Index) Remove(id ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if int(id) >= len(x.keys) || !x.alive[id] {
		return
	}
	key := x.keys[id]
	x.cache.Del([]byte(key))
	if x.fresh[key] == id {
		delete(x.fresh, key)
		x.keys[id] = ""
	}
	x.alive[id] = false
	x.live--
	x.dropFrom(x.metrics, metricOf(key))
	x.dropFrom(x.entities, entityOf(key))
	for tag := range tagNames(key) {
		if x.tags[tag]--; x.tags[tag] == 0 {
			delete(x.tags, tag)
		}
	}
	if len(x.run)+len(x.fresh) > mergeAt+2*x.live {
		x.merge()
	}
}

func metricOf(key string) string {
	metric, _, _ := strings.Cut(key, "\x00")
	return metric
}

func entityOf(key string) string {
	_, rest, _ := strings.Cut(key, "\x00")
	return metricOf(rest)
}

// tagNames yields the tag names of a key.
func tagNames(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, _ := strings.Cut(key, "\x00")
		_, rest, _ = strings.Cut(rest, "\x00")
		for rest != "" {
			var tag string
			tag, rest, _ = strings.Cut(rest, "\x00")
			if name, _, _ := strings.Cut(tag, "\x01"); !yield(name) {
				return
			}
		}
	}
}

// merge moves the unsorted keys into the run and leaves the removed ids out of it.
func (x *Index) merge() {
	added := make([]ID, 0, len(x.fresh))
	for _, id := range x.fresh {
		added = append(added, id)
	}
	x.sort(added)
	run := make([]ID, 0, x.live)
	for _, id := range x.run {
		if !x.alive[id] {
			x.keys[id] = ""
			continue
		}
		for len(added) > 0 && x.keys[added[0]] < x.keys[id] {
			run, added = append(run, added[0]), added[1:]
		}
		run = append(run, id)
	}
	x.run = append(run, added...)
	clear(x.fresh)
}

func (x *Index) sort(ids []ID) {
	slices.SortFunc(ids, func(a, b ID) int { return strings.Compare(x.keys[a], x.keys[b]) })
}

// HasTag reports whether any series has a tag of this name.
func (x *Index) HasTag(name string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.tags[name] > 0
}
