package index

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/fastcache"
)

// ID numbers a series from 1, in order of creation. An id is never given twice in the life of a database.
type ID uint32

// None is the id of no series.
const None ID = 0

// MinCacheBytes is the smallest cache that fastcache can make: 512 buckets of one 64 KiB chunk each.
const MinCacheBytes = 32 << 20

// Index is the index of one database.
type Index struct {
	cache *fastcache.Cache
	seed  maphash.Seed

	// renames counts renames that have begun. A reader that finds it changed may have missed a series on its way from one layer to another.
	renames atomic.Uint64

	mu      sync.RWMutex // guards all below
	memory  *part
	frozen  *layer  // nil when there is none
	stack   *layers // the runs
	live    int
	next    ID
	numbers uint32 // of the next layer
	notice  func(*Run, error)
}

// New makes an empty index without runs, with a cache of at least MinCacheBytes. Close gives the cache's memory back.
func New(cacheBytes int) *Index { return Open(cacheBytes, nil, 1) }

// Open makes an index of runs, from old to new, which belong to it from then on. next is the lowest id that may be given. What newer runs make void in
// older ones is looked up now: a microsecond for each id.
func Open(cacheBytes int, runs []*Run, next ID) *Index {
	x := &Index{cache: fastcache.New(max(cacheBytes, MinCacheBytes)), seed: maphash.MakeSeed(), next: max(next, 1), numbers: uint32(len(runs))}
	x.memory = newPart(x.seed)
	list, _ := stackUp(runs) // damage is remembered by the run
	for _, l := range list {
		x.live += l.run.Len() - l.stale
		if l.run.high >= x.next {
			x.next = l.run.high + 1
		}
	}
	x.stack = newLayers(list)
	return x
}

// Close releases the cache and closes the runs. Of an index without runs everything else stays usable.
func (x *Index) Close() {
	x.cache.Reset()
	x.mu.Lock()
	before := x.swap(nil)
	x.mu.Unlock()
	before.release()
	for _, l := range before.list {
		if err := l.run.Close(); err != nil {
			l.run.fail(err)
		}
	}
}

// OnDamage sets what is called with the first damage that is found in each run. It is called by whoever reads, sometimes under locks of the index, and must
// not call the index. Damage that was found before is told at once.
func (x *Index) OnDamage(f func(*Run, error)) {
	x.mu.Lock()
	x.notice = f
	list := x.stack.list
	for _, l := range list {
		x.watch(l.run)
	}
	x.mu.Unlock()
	for _, l := range list {
		if err := l.run.Err(); err != nil {
			f(l.run, err)
		}
	}
}

func (x *Index) watch(r *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noticed = x.notice
}

// Err returns what is known to be damaged in the runs, nil when nothing is. While it is not nil, a key that is not found may be one that cannot be read.
func (x *Index) Err() error {
	x.mu.RLock()
	list := x.stack.list
	x.mu.RUnlock()
	var errs []error
	for _, l := range list {
		errs = append(errs, l.run.Err())
	}
	return errors.Join(errs...)
}

// Faults counts how often a part of a run could not be read: who reads looks before and behind, whether what it got is all there is.
func (x *Index) Faults() (n int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, l := range x.stack.list {
		n += l.run.faults.Load()
	}
	return n
}

// Runs returns the runs, from old to new.
func (x *Index) Runs() []*Run {
	x.mu.RLock()
	defer x.mu.RUnlock()
	runs := make([]*Run, len(x.stack.list))
	for i, l := range x.stack.list {
		runs[i] = l.run
	}
	return runs
}

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

// Next returns the lowest id that was never given.
func (x *Index) Next() ID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.next
}

// Bytes estimates the heap of the memory part and the frozen one.
func (x *Index) Bytes() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	total := x.memory.bytes()
	if x.frozen != nil {
		total += x.frozen.part.bytes()
	}
	return total
}

// Add makes a series. The key must not be in the index, and is copied. It returns None, and does nothing, when the key is longer than MaxKeyBytes or all
// ids are given.
func (x *Index) Add(key string) ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(key) > MaxKeyBytes || x.next == ^ID(0) {
		return None
	}
	id := x.next
	x.next++
	x.memory.add(key, id)
	x.live++
	return id
}

// Remove ends a series; its id finds nothing from then on.
func (x *Index) Remove(id ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.take(id) {
		return
	}
	x.live--
	x.sweep()
}

// Rename gives a series another key, which must not be in the index. It returns false, and does nothing, when there is no such series or the key is
// longer than MaxKeyBytes.
func (x *Index) Rename(id ID, key string) bool {
	if len(key) > MaxKeyBytes {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.renames.Add(1) // before anything is stale
	if !x.take(id) {
		return false
	}
	x.memory.add(key, id)
	x.sweep()
	return true
}

// sweep copies the memory part when most of it is dead.
func (x *Index) sweep() {
	if x.memory.mostlyDead() {
		x.memory = x.memory.compact()
	}
}

// take ends the entry of an id in the layer that has it.
func (x *Index) take(id ID) bool {
	if i := x.memory.byID(id); i != none {
		x.memory.kill(i)
		return true
	}
	if l := x.frozen; l != nil {
		if i := l.part.byID(id); i != none && !l.marks.has(i) {
			l.mark(i, l.part.n, l.part.key(i))
			x.memory.gone = append(x.memory.gone, id)
			return true
		}
	}
	rd := newReader(nil)
	defer rd.done()
	l, _, ok := x.stack.find(rd, id)
	if !ok {
		return false
	}
	if err := l.void(rd, id); err != nil {
		l.run.fail(err)
	}
	x.memory.gone = append(x.memory.gone, id)
	return true
}

// HasTag reports whether any series has a tag of this name.
func (x *Index) HasTag(name string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.memory.tags[name] > 0 || x.frozen != nil && x.frozen.part.tags[name] > x.frozen.lost[name] {
		return true
	}
	rd := newReader(nil)
	defer rd.done()
	for _, l := range x.stack.list {
		rd.use(l.run)
		numbers, found, err := l.run.tags.lookup(rd, []byte(name))
		if err != nil {
			l.run.fail(err)
		}
		if found && numbers[0] > uint64(l.lost[name]) {
			return true
		}
	}
	return false
}
