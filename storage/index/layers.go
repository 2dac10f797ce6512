package index

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// layer is the frozen part or a run, with what has become of its series since.
type layer struct {
	number uint32 // of a run, never given twice: what the cache knows it by
	part   *part
	run    *Run
	marks  marks
	stale  int            // marks that are set
	lost   map[string]int // tags of the stale series: so many fewer than the layer says; guarded by Index.mu
}

// marks are the stale series of a layer by number or ordinal. One writer sets them while readers look.
type marks struct {
	words atomic.Pointer[[]uint32] // nil until the first is set
}

func (m *marks) has(i uint32) bool {
	words := m.words.Load()
	return words != nil && atomic.LoadUint32(&(*words)[i>>5])>>(i&31)&1 != 0
}

func (m *marks) set(i, size uint32) {
	words := m.words.Load()
	if words == nil {
		made := make([]uint32, size/32+1)
		words = &made
		m.words.Store(words)
	}
	atomic.OrUint32(&(*words)[i>>5], 1<<(i&31))
}

// mark makes a series of the layer stale, whose key is given.
func (l *layer) mark(i, size uint32, key []byte) {
	l.marks.set(i, size)
	l.stale++
	for tag := range tagNames(key) {
		if l.lost == nil {
			l.lost = map[string]int{}
		}
		l.lost[string(tag)]++
	}
}

// living returns the ordinal of an id in a run, false when it is not there or stale.
func (l *layer) living(rd *reader, id ID) (uint32, bool, error) {
	rd.use(l.run)
	ordinal, err := rd.ordinalOf(id)
	return ordinal, err == nil && ordinal < l.run.keys.count && !l.marks.has(ordinal), err
}

// void makes an id stale in a run, when it is there.
func (l *layer) void(rd *reader, id ID) error {
	ordinal, ok, err := l.living(rd, id)
	if err != nil || !ok {
		return err
	}
	var key []byte
	if l.run.tags.count > 0 {
		key, err = rd.keyAt(ordinal)
	}
	l.mark(ordinal, l.run.keys.count, key)
	return err
}

// eachGone calls f with the ids, in ascending order, whose entries in older runs are void.
func (r *Run) eachGone(rd *reader, f func(id ID) error) error {
	for i := range r.gone.count {
		rd.use(r)
		id, err := r.gone.at(rd, i)
		if err != nil {
			return err
		}
		if err := f(ID(id)); err != nil {
			return err
		}
	}
	return nil
}

// voidAll makes the ids that a newer run lists stale in the layer, as far as both can be read; the first error is returned, and remembered by its run.
func (l *layer) voidAll(newer *Run) (first error) {
	list, look := newReader(newer), newReader(l.run)
	defer list.done()
	defer look.done()
	err := newer.eachGone(list, func(id ID) error {
		if err := l.void(look, id); err != nil {
			l.run.fail(err)
			first = cmp.Or(first, err)
		}
		return nil
	})
	if err != nil {
		newer.fail(err)
	}
	return cmp.Or(first, err)
}

// stackUp makes layers of runs, from old to new, and marks in each what the newer ones say. After an error, which its run remembers, some marks are missing.
func stackUp(runs []*Run) (list []*layer, first error) {
	for i, r := range runs {
		for _, older := range list {
			first = cmp.Or(first, older.voidAll(r))
		}
		list = append(list, &layer{number: uint32(i), run: r})
	}
	return list, first
}

// layers is the runs of the index at one time, from old to new. It is replaced as a whole, and lives until the last reader is done with it.
type layers struct {
	list []*layer
	refs atomic.Int64
}

// newLayers holds on to the runs of the list.
func newLayers(list []*layer) *layers {
	s := &layers{list: list}
	s.refs.Store(1)
	for _, l := range list {
		l.run.acquire()
	}
	return s
}

func (s *layers) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	for _, l := range s.list {
		if err := l.run.release(); err != nil {
			l.run.fail(err)
		}
	}
}

// acquire returns the runs for reading; the caller holds Index.mu, and calls release when it is done.
func (x *Index) acquire() *layers {
	x.stack.refs.Add(1)
	return x.stack
}

// byNumber returns the layer that the cache knows by a number, nil when it is gone.
func (s *layers) byNumber(number uint32) *layer {
	for _, l := range s.list {
		if l.number == number {
			return l
		}
	}
	return nil
}

// Freeze makes the memory part the frozen part, and an empty one takes its place. It returns whether there is a frozen part to write; one that is left from
// a flush that failed stays as it is.
func (x *Index) Freeze() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.frozen == nil && (x.memory.live > 0 || len(x.memory.gone) > 0) {
		x.frozen = &layer{part: x.memory}
		x.memory = newPart(x.seed)
	}
	return x.frozen != nil
}

// Adopt takes a durable run that WriteFrozen wrote as the newest one, and drops the frozen part. The run belongs to the index from then on.
func (x *Index) Adopt(r *Run) {
	rd := newReader(r)
	defer rd.done()
	x.mu.Lock()
	if x.frozen == nil {
		x.mu.Unlock()
		panic("index: adopt: nothing is frozen that a run could hold")
	}
	l := x.layerOf(r)
	x.catchUp(l, rd, x.memory.gone)
	x.frozen = nil
	before := x.swap(append(slices.Clone(x.stack.list), l))
	x.mu.Unlock()
	before.release()
}

// catchUp marks ids in a layer that readers do not see yet.
func (x *Index) catchUp(l *layer, rd *reader, gone []ID) {
	for _, id := range gone {
		if err := l.void(rd, id); err != nil {
			l.run.fail(err)
		}
	}
}

// layerOf makes a layer of a run, under x.mu.
func (x *Index) layerOf(r *Run) *layer {
	x.watch(r)
	l := &layer{number: x.numbers, run: r}
	x.numbers++
	return l
}

// swap puts other runs in the place of those that it returns, under x.mu.
func (x *Index) swap(list []*layer) *layers {
	before := x.stack
	x.stack = newLayers(list)
	return before
}

// Replace puts a durable merged run in the place of the runs it was made of, which are as PlanMerge gave them. The index closes these: their mappings
// end when the last reader is done, and their files may be removed.
func (x *Index) Replace(old []*Run, merged *Run) {
	x.mu.RLock()
	list := x.stack.list
	x.mu.RUnlock()
	at := slices.IndexFunc(list, func(l *layer) bool { return l.run == old[0] })
	if at < 0 || len(list) < at+len(old) || list[at+len(old)-1].run != old[len(old)-1] {
		panic("index: replace: these runs do not lie side by side in the index")
	}
	newer := list[at+len(old):]
	x.mu.Lock()
	l := x.layerOf(merged)
	x.mu.Unlock()
	for _, n := range newer {
		_ = l.voidAll(n.run) // the run remembers
	}
	rd := newReader(merged)
	defer rd.done()
	x.mu.Lock()
	if x.frozen != nil {
		x.catchUp(l, rd, x.frozen.part.gone)
	}
	x.catchUp(l, rd, x.memory.gone)
	before := x.swap(slices.Concat(list[:at], []*layer{l}, newer))
	x.mu.Unlock()
	before.release()
	for _, r := range old {
		if err := r.Close(); err != nil {
			r.fail(err)
		}
	}
}

const (
	// maxRuns is how many runs a lookup of a new key may have to ask: each costs one line of its filter.
	maxRuns = 6
	// tier is how much larger a run must be than all newer ones together to be left alone: a key is merged log(tier) of the size of the index times.
	tier = 2
)

// PlanMerge returns adjacent runs that are worth a merge, from old to new, nil when there are none: those that are not larger than the newer ones together,
// so that sizes are tiers; all, when half of what they hold is void; and the newest, when there are too many. Damaged runs, and what is older, are left
// alone.
func (x *Index) PlanMerge() []*Run {
	x.mu.RLock()
	list := x.stack.list
	x.mu.RUnlock()
	runs := make([]*Run, len(list))
	var keys, gone uint64
	for i, l := range list {
		runs[i] = l.run
		keys, gone = keys+uint64(l.run.keys.count), gone+uint64(l.run.gone.count)
	}
	oldest := 0
	for i, r := range runs {
		if r.Err() != nil {
			oldest = i + 1
		}
	}
	runs = runs[oldest:]
	if len(runs) < 2 {
		return nil
	}
	if oldest == 0 && gone > keys/2 {
		return runs
	}
	var newer int64
	first := len(runs)
	for i, r := range slices.Backward(runs) {
		if i < len(runs)-1 && r.length <= tier*newer {
			first = i
		}
		newer += r.length
	}
	if first == len(runs) && len(runs) > maxRuns {
		first = maxRuns - 1
	}
	if first > len(runs)-2 {
		return nil
	}
	return runs[first:]
}

// Below says what is older than the runs of a merge.
type Below uint8

const (
	OlderRuns Below = iota // there are older runs: what these runs make void there is kept
	NoRuns                 // the oldest run is in the merge
)

// BelowOf says what is older than some runs of the index.
func (x *Index) BelowOf(runs []*Run) Below {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(runs) > 0 && len(x.stack.list) > 0 && x.stack.list[0].run == runs[0] {
		return NoRuns
	}
	return OlderRuns
}
