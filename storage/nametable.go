package storage

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// nameTable finds objects by their names. A map would hold each name a second time, and be as large as the objects of most entities are. Here a name costs a slot of eight bytes
// without pointers, some twelve with the free ones, and objects lie side by side in pages. The owner has it guarded: a call of find may go on beside others, and beside nothing else.
type nameTable[T any] struct {
	nameOf func(*T) string
	seed   maphash.Seed
	slots  []nameSlot // linear probing; the place that a hash begins at is its share of the length, so that the order of hashes is that of places
	used   int        // slots that are not free
	pages  []*[namesPerPage]T
	made   uint32 // objects, those that lost their names included
}

// nameSlot is free while ref is 0; otherwise that is the number of an object, plus one, or nameGone.
type nameSlot struct{ hash, ref uint32 }

const (
	nameGone     = 1<<32 - 1
	namesPerPage = 64 // some 3 KB
)

func newNameTable[T any](nameOf func(*T) string) nameTable[T] {
	return nameTable[T]{nameOf: nameOf, seed: maphash.MakeSeed(), slots: make([]nameSlot, 8)}
}

func (t *nameTable[T]) object(i uint32) *T { return &t.pages[i/namesPerPage][i%namesPerPage] }

// locate returns the slot of a name, or the free one where it belongs.
func (t *nameTable[T]) locate(name string) (s *nameSlot, hash uint32) {
	hash = uint32(maphash.String(t.seed, name) >> 32)
	for i := t.home(hash); ; {
		s = &t.slots[i]
		if s.ref == 0 || s.hash == hash && s.ref != nameGone && t.nameOf(t.object(s.ref-1)) == name {
			return s, hash
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

func (t *nameTable[T]) home(hash uint32) int {
	high, _ := bits.Mul64(uint64(hash)<<32, uint64(len(t.slots)))
	return int(high)
}

// find returns the object of a name, nil when there is none.
func (t *nameTable[T]) find(name string) *T {
	if s, _ := t.locate(name); s.ref != 0 {
		return t.object(s.ref - 1)
	}
	return nil
}

// next returns the object that put will put in, for its name to be set: nobody else has it.
func (t *nameTable[T]) next() *T {
	if int(t.made/namesPerPage) == len(t.pages) {
		t.pages = append(t.pages, new([namesPerPage]T))
	}
	return t.object(t.made)
}

// put puts in what next returned, in the place of an object with the same name.
func (t *nameTable[T]) put() {
	if 5*t.used >= 4*len(t.slots) {
		t.grow()
	}
	s, hash := t.locate(t.nameOf(t.object(t.made)))
	if s.ref == 0 {
		t.used++
	}
	t.made++
	*s = nameSlot{hash, t.made}
}

// remove has a name not found any more. The object stays what it is.
func (t *nameTable[T]) remove(name string) {
	if s, _ := t.locate(name); s.ref != 0 {
		s.ref = nameGone
	}
}

// grow makes the slots half as many more. No object is looked at.
func (t *nameTable[T]) grow() {
	old := t.slots
	t.slots, t.used = make([]nameSlot, len(old)+len(old)/2), 0
	for _, s := range old {
		if s.ref == 0 || s.ref == nameGone {
			continue
		}
		i := t.home(s.hash)
		for t.slots[i].ref != 0 {
			if i++; i == len(t.slots) {
				i = 0
			}
		}
		t.slots[i] = s
		t.used++
	}
}

// objects yields every object that was ever put in.
func (t *nameTable[T]) objects() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range t.made {
			if !yield(t.object(i)) {
				return
			}
		}
	}
}
