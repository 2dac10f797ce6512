package index

// table is an open addressing table of indexes by hash, in one slice without pointers. It knows nothing of what the indexes stand for: equal hashes come one
// after the other, and the caller looks which is meant. Nothing is ever taken out.
type table struct {
	slots []uint64 // hash<<32 | index+1; 0 is free
	shift int      // of a hash, to its first slot
	n     int
}

// minTable is small: a database that stands still has an empty memory part.
const minTable = 64

func newTable() table { return table{slots: make([]uint64, minTable), shift: 32 - 6} }

// add puts an index in.
func (t *table) add(hash uint32, index uint32) {
	if t.n >= len(t.slots)/4*3 {
		t.grow()
	}
	t.place(uint64(hash)<<32 | uint64(index+1))
	t.n++
}

func (t *table) place(slot uint64) {
	at := int(uint32(slot>>32) >> t.shift)
	for t.slots[at] != 0 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = slot
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	t.shift--
	for _, slot := range old {
		if slot != 0 {
			t.place(slot)
		}
	}
}

// none is the index of nothing, and the end of a list.
const none = ^uint32(0)

// next returns the next index with the hash from place at on, and where to go on after it; none when there are no more. A search starts at start(hash).
func (t *table) next(hash uint32, at int) (uint32, int) {
	for {
		slot := t.slots[at]
		if slot == 0 {
			return none, at
		}
		at = (at + 1) & (len(t.slots) - 1)
		if uint32(slot>>32) == hash {
			return uint32(slot) - 1, at
		}
	}
}

func (t *table) start(hash uint32) int { return int(hash >> t.shift) }

func (t *table) bytes() int64 { return int64(len(t.slots)) * 8 }

// hashID spreads ids over a table; it is a bijection, so that equal hashes are equal ids.
func hashID(id ID) uint32 { return uint32(id) * 0x9e3779b1 }

// bitmap is a set of small numbers.
type bitmap []uint32

func (b bitmap) has(i uint32) bool {
	return int(i>>5) < len(b) && b[i>>5]>>(i&31)&1 != 0
}

func (b *bitmap) add(i uint32) {
	for int(i>>5) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i>>5] |= 1 << (i & 31)
}
