package index

import (
	"encoding/binary"
	"iter"
	"slices"
)

// Lookup returns the id of a canonical key, None when there is no such series.
func (x *Index) Lookup(key []byte) ID {
	x.mu.RLock()
	id := x.inMemory(key)
	if id != None || len(x.stack.list) == 0 {
		x.mu.RUnlock()
		return id
	}
	stack := x.acquire()
	x.mu.RUnlock()
	defer stack.release()
	rd := newReader(nil)
	defer rd.done()
	id, _ = x.inRuns(rd, stack, key)
	return id
}

// LookupAll sets ids[i] to the id of the i-th key. The keys lie one after the other in arena; ends holds where each one ends. order names them as they sort,
// or is empty: keys that lie side by side in a run are found several times faster one after the other.
func (x *Index) LookupAll(arena []byte, ends []int, ids []ID, order []uint32) {
	missing := 0
	x.mu.RLock()
	start := 0
	for i, end := range ends {
		if ids[i] = x.inMemory(arena[start:end]); ids[i] == None {
			missing++
		}
		start = end
	}
	if missing == 0 || len(x.stack.list) == 0 {
		x.mu.RUnlock()
		return
	}
	stack := x.acquire()
	x.mu.RUnlock()
	defer stack.release()
	rd := newReader(nil)
	defer rd.done()
	s := search{x: x, rd: rd, stack: stack}
	if len(order) != len(ends) {
		start = 0
		for i, end := range ends {
			if ids[i] == None {
				ids[i] = s.id(arena[start:end])
			}
			start = end
		}
		return
	}
	for _, i := range order {
		if ids[i] != None {
			continue
		}
		start = 0
		if i > 0 {
			start = ends[i-1]
		}
		ids[i] = s.id(arena[start:ends[i]])
	}
}

// search looks for one key after the other in the runs.
type search struct {
	x     *Index
	rd    *reader
	stack *layers
	layer *layer // where the key before was found; its leaf is the one that rd has
}

// id looks in the leaf of the key before, and then everywhere.
func (s *search) id(key []byte) (id ID) {
	if l := s.layer; l != nil && s.rd.run == l.run && s.rd.parsed {
		slot, found, err := s.rd.block.search(key)
		if err == nil && found && !l.marks.has(s.rd.number*leafSize+uint32(slot)) {
			return ID(s.rd.block.columns[0].at(slot))
		}
	}
	id, s.layer = s.x.inRuns(s.rd, s.stack, key)
	return id
}

// inMemory looks a key up in the memory part and the frozen one, under x.mu.
func (x *Index) inMemory(key []byte) ID {
	l := x.frozen
	if x.memory.n == 0 && l == nil {
		return None
	}
	hash := x.memory.hash(key)
	if i := x.memory.lookup(key, hash); i != none {
		return x.memory.at(i).id
	}
	if l != nil {
		if i := l.part.lookup(key, hash); i != none && !l.marks.has(i) {
			return l.part.at(i).id
		}
	}
	return None
}

// inRuns looks a key up in the cache, then in the runs. It returns the layer as well, whose leaf the reader is left with.
func (x *Index) inRuns(rd *reader, stack *layers, key []byte) (ID, *layer) {
	if id, l := x.cached(rd, stack, key); id != None {
		return id, l
	}
	hash := filterHash(key)
	for _, l := range slices.Backward(stack.list) {
		rd.use(l.run)
		if !l.run.filter.may(rd, hash) {
			continue
		}
		p, err := rd.find(key)
		if err != nil {
			l.run.fail(err)
			continue
		}
		if p.id != None && !l.marks.has(p.ordinal) {
			x.remember(key, l, p)
			return p.id, l
		}
	}
	return None, nil
}

// The cache maps a key to the leaf that holds it:
//
//	layer u32 | leaf u32 | offset u64 | length u32
const cachedBytes = 20

// remember puts the leaf of a key into the cache, which copies both and takes nothing above 64 KiB.
func (x *Index) remember(key []byte, l *layer, p place) {
	var b [cachedBytes]byte
	binary.LittleEndian.PutUint32(b[:], l.number)
	binary.LittleEndian.PutUint32(b[4:], p.ordinal/leafSize)
	binary.LittleEndian.PutUint64(b[8:], uint64(p.leaf.off))
	binary.LittleEndian.PutUint32(b[16:], uint32(p.leaf.n))
	x.cache.Set(key, b[:])
}

// cached looks a key up in the leaf that the cache names. Whatever the cache says, the key is found in a leaf whose checksum says that it is this leaf of
// this run, or it is not found; what does not fit is no damage of the run, but of the cache.
func (x *Index) cached(rd *reader, stack *layers, key []byte) (ID, *layer) {
	var buf [cachedBytes]byte
	b := x.cache.Get(buf[:0], key)
	if len(b) != cachedBytes {
		return None, nil
	}
	l := stack.byNumber(binary.LittleEndian.Uint32(b))
	number := binary.LittleEndian.Uint32(b[4:])
	if l == nil || number >= l.run.keys.leaves() {
		return None, nil
	}
	rd.use(l.run)
	at := piece{int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint32(b[16:])), kindKeys.seed(0, number)}
	p, err := rd.findIn(number, at, key)
	if err != nil || p.id == None || l.marks.has(p.ordinal) {
		return None, nil
	}
	return p.id, l
}

// patience is how often a reader that a rename has crossed tries again beside the writer; then it makes the writer wait.
const patience = 3

// attempt is one try of a reader that looks into memory under x.mu, then into the runs outside of it. A series that is renamed in between may be missed in
// both; so the reader tries until no rename has come in between:
//
//	for a := x.attempt(); a.next(); {
//		look into memory
//		a.unlock()
//		look into a.stack
//	}
type attempt struct {
	x      *Index
	tries  int
	seen   uint64  // renames before
	stack  *layers // of the same time as the memory that is seen
	locked bool
}

func (x *Index) attempt() attempt { return attempt{x: x} }

// next takes the lock and the stack; false when the try before was good. The loop must not be left otherwise.
func (a *attempt) next() bool {
	if a.stack != nil {
		if a.locked {
			a.x.mu.RUnlock()
		}
		a.stack.release()
		if a.locked || a.seen == a.x.renames.Load() {
			return false
		}
		a.tries++
	}
	a.seen = a.x.renames.Load()
	a.x.mu.RLock()
	a.stack, a.locked = a.x.acquire(), true
	return true
}

func (a *attempt) unlock() {
	if a.tries < patience {
		a.x.mu.RUnlock()
		a.locked = false
	}
}

// Key appends the canonical key of a series to dst; false when there is no such series.
func (x *Index) Key(id ID, dst []byte) (key []byte, ok bool) {
	rd := newReader(nil)
	defer rd.done()
	return x.keyOf(rd, id, dst)
}

func (x *Index) keyOf(rd *reader, id ID, dst []byte) (key []byte, ok bool) {
	for a := x.attempt(); a.next(); {
		key, ok = x.memoryKey(id, dst)
		if a.unlock(); !ok {
			key, ok = a.stack.key(rd, id, dst)
		}
	}
	return key, ok
}

// Keys yields the keys of series by their place in ids, and leaves out what is no series. A key is valid until the next one. For ids that lie side by
// side in key order, as Select gives them, it is several times faster than Key.
func (x *Index) Keys(ids []ID) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		rd := newReader(nil)
		defer rd.done()
		var buf []byte
		for i, id := range ids {
			key, ok := x.keyOf(rd, id, buf[:0])
			if buf = key; ok && !yield(i, key) {
				return
			}
		}
	}
}

// Alive reports whether there is a series with the id.
func (x *Index) Alive(id ID) (alive bool) {
	rd := newReader(nil)
	defer rd.done()
	for a := x.attempt(); a.next(); {
		alive = x.livesInMemory(id)
		if a.unlock(); !alive {
			_, _, alive = a.stack.find(rd, id)
		}
	}
	return alive
}

func (x *Index) livesInMemory(id ID) bool {
	if x.memory.byID(id) != none {
		return true
	}
	l := x.frozen
	if l == nil {
		return false
	}
	i := l.part.byID(id)
	return i != none && !l.marks.has(i)
}

// memoryKey is Key for the memory part and the frozen one, under x.mu.
func (x *Index) memoryKey(id ID, dst []byte) ([]byte, bool) {
	if i := x.memory.byID(id); i != none {
		return append(dst, x.memory.key(i)...), true
	}
	if l := x.frozen; l != nil {
		if i := l.part.byID(id); i != none && !l.marks.has(i) {
			return append(dst, l.part.key(i)...), true
		}
	}
	return dst, false
}

// find returns where a series is in the runs.
func (s *layers) find(rd *reader, id ID) (l *layer, ordinal uint32, ok bool) {
	for _, l := range slices.Backward(s.list) {
		ordinal, ok, err := l.living(rd, id)
		if err != nil {
			l.run.fail(err)
		}
		if ok {
			return l, ordinal, true
		}
	}
	return nil, 0, false
}

func (s *layers) key(rd *reader, id ID, dst []byte) ([]byte, bool) {
	l, ordinal, ok := s.find(rd, id)
	if !ok {
		return dst, false
	}
	key, err := rd.keyAt(ordinal)
	if err != nil {
		l.run.fail(err)
		return dst, false
	}
	return append(dst, key...), true
}
