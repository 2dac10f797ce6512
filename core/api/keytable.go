package api

import (
	"hash/maphash"
	"sync"

	"github.com/tidemark-db/tidemark/core"
)

// keyTable finds the series keys of one batch. Unlike core.Batch.Ref it makes no text of a key and keeps its memory for the next request, which is
// what counts where every sample has a series of its own. The zero value is ready.
type keyTable struct {
	slots []uint32 // open addressing, a power of two long: index into Batch.Keys plus one, 0 = free
	pool  *[]uint32
}

// slotPool holds tables of at most maxSlots; they are all free.
var slotPool = sync.Pool{New: func() any { return new([]uint32) }}

const (
	minSlots = 1 << 8
	maxSlots = 1 << 16 // 256 KB
)

// keySeed is chosen at start, so that nobody can send keys that collide.
var keySeed = maphash.MakeSeed()

// hashKey joins the hashes of the parts, so that none of them is copied.
func hashKey(k core.SeriesKey) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 / golden ratio: spreads what the parts share
	h := maphash.String(keySeed, k.Metric)
	h = h*odd + maphash.String(keySeed, k.Entity)
	for _, t := range k.Tags {
		h = h*odd + maphash.String(keySeed, t.Name)
		h = h*odd + maphash.String(keySeed, t.Value)
	}
	return h ^ h>>32
}

// ref returns the index of k in b.Keys and adds it when it is not there.
func (t *keyTable) ref(b *core.Batch, k core.SeriesKey) uint32 {
	if 2*len(b.Keys) >= len(t.slots) {
		t.grow(b.Keys)
	}
	slot := t.find(b.Keys, k)
	if *slot == 0 {
		b.Keys = append(b.Keys, k)
		*slot = uint32(len(b.Keys))
	}
	return *slot - 1
}

// inUse reports whether the table holds the keys of the batch: the first ref puts all of them in.
func (t *keyTable) inUse() bool { return t.pool != nil }

// forgetLast takes out the key that ref has added last. Its slot ends every chain that it is in.
func (t *keyTable) forgetLast(b *core.Batch) {
	last := len(b.Keys) - 1
	if t.inUse() {
		*t.find(b.Keys, b.Keys[last]) = 0
	}
	b.Keys = b.Keys[:last]
}

// find returns the slot of k, a free one when it has none.
func (t *keyTable) find(keys []core.SeriesKey, k core.SeriesKey) *uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := hashKey(k) & mask; ; i = (i + 1) & mask {
		slot := &t.slots[i]
		if *slot == 0 {
			return slot
		}
		if other := &keys[*slot-1]; other.Entity == k.Entity && other.Metric == k.Metric && other.Tags.Equal(k.Tags) {
			return slot
		}
	}
}

// grow makes room for at least twice the keys.
func (t *keyTable) grow(keys []core.SeriesKey) {
	if t.pool == nil {
		t.pool = slotPool.Get().(*[]uint32)
		if t.slots = *t.pool; 2*len(keys) < len(t.slots) {
			t.fill(keys)
			return
		}
	}
	size := max(minSlots, 4*len(t.slots))
	for size <= 2*len(keys) {
		size *= 4
	}
	t.slots = make([]uint32, size)
	t.fill(keys)
}

func (t *keyTable) fill(keys []core.SeriesKey) {
	for i, k := range keys {
		*t.find(keys, k) = uint32(i + 1)
	}
}

// release gives the memory back.
func (t *keyTable) release() {
	if t.pool == nil {
		return
	}
	if len(t.slots) <= maxSlots {
		clear(t.slots)
		*t.pool = t.slots
	}
	slotPool.Put(t.pool)
	*t = keyTable{}
}
