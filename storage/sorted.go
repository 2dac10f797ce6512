package storage

import (
	"iter"
	"slices"
	"sort"
	"sync"
)

// sortedBlock bounds the elements of one block of a sorted list: an insert moves at most 4 KiB of pointers, and a million elements are some 3,000
// blocks.
const sortedBlock = 512

// sorted is an ordered list of immutable elements, in blocks, so that inserts anywhere are cheap. A stored element is replaced, never changed:
// readers keep pointers to elements after they have let go of the lock.
type sorted[T any] struct {
	mu      sync.RWMutex
	compare func(a, b *T) int // total: 0 only for what is the same element
	blocks  [][]*T
	length  int
}

// locate returns the place of the first element that does not come before x, and whether it is x. Callers hold mu.
func (s *sorted[T]) locate(x *T) (block, at int, found bool) {
	block = sort.Search(len(s.blocks), func(i int) bool {
		b := s.blocks[i]
		return s.compare(b[len(b)-1], x) >= 0
	})
	if block == len(s.blocks) {
		return block, 0, false
	}
	at, found = slices.BinarySearchFunc(s.blocks[block], x, s.compare)
	return block, at, found
}

// get returns the element that compares equal to x, nil when there is none.
func (s *sorted[T]) get(x *T) *T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if block, at, found := s.locate(x); found {
		return s.blocks[block][at]
	}
	return nil
}

// put stores x in the place of the element that compares equal, or as one more.
func (s *sorted[T]) put(x *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, at, found := len(s.blocks), 0, false
	if !s.behindAll(x) { // what a start reads comes in order
		block, at, found = s.locate(x)
	}
	if found {
		s.blocks[block][at] = x
		return
	}
	s.length++
	if block == len(s.blocks) {
		if block == 0 || len(s.blocks[block-1]) == sortedBlock {
			s.blocks = append(s.blocks, append(make([]*T, 0, sortedBlock), x))
			return
		}
		block--
		at = len(s.blocks[block])
	}
	if b := s.blocks[block]; len(b) == sortedBlock {
		upper := append(make([]*T, 0, sortedBlock), b[sortedBlock/2:]...)
		clear(b[sortedBlock/2:])
		s.blocks[block] = b[:sortedBlock/2]
		s.blocks = slices.Insert(s.blocks, block+1, upper)
		if at > sortedBlock/2 {
			block, at = block+1, at-sortedBlock/2
		}
	}
	s.blocks[block] = slices.Insert(s.blocks[block], at, x)
}

// behindAll reports whether x comes behind every element. Callers hold mu.
func (s *sorted[T]) behindAll(x *T) bool {
	if len(s.blocks) == 0 {
		return true
	}
	last := s.blocks[len(s.blocks)-1]
	return s.compare(last[len(last)-1], x) < 0
}

// remove takes out the element that compares equal to x.
func (s *sorted[T]) remove(x *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if block, at, found := s.locate(x); found {
		s.delete(block, at)
	}
}

// removeExactly takes out x itself, and nothing when another element has taken its place meanwhile.
func (s *sorted[T]) removeExactly(x *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if block, at, found := s.locate(x); found && s.blocks[block][at] == x {
		s.delete(block, at)
	}
}

// delete takes out the element at a place. Callers hold mu.
func (s *sorted[T]) delete(block, at int) {
	s.length--
	if s.blocks[block] = slices.Delete(s.blocks[block], at, at+1); len(s.blocks[block]) == 0 {
		s.blocks = slices.Delete(s.blocks, block, block+1)
	}
}

// page is how many elements a scan takes under the lock at a time: a writer waits for some microseconds at most.
const page = 256

// from yields the elements from the first that does not come before x, in order. No lock is held while the caller works: an element that comes or
// goes meanwhile, in the part that is not reached yet, is seen or not seen accordingly.
func (s *sorted[T]) from(x *T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		var buf [page]*T
		for n := s.read(x, itself, buf[:]); n > 0; n = s.read(x, behind, buf[:]) {
			for _, one := range buf[:n] {
				if !yield(one) {
					return
				}
			}
			x = buf[n-1]
		}
	}
}

// all yields every element.
func (s *sorted[T]) all() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		s.mu.RLock()
		var first *T
		if len(s.blocks) > 0 {
			first = s.blocks[0][0]
		}
		s.mu.RUnlock()
		if first != nil {
			s.from(first)(yield)
		}
	}
}

// edge says whether a read starts at the given element or behind it.
type edge uint8

const (
	itself edge = iota
	behind
)

// read copies elements to dst and returns how many.
func (s *sorted[T]) read(x *T, start edge, dst []*T) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	block, at, found := s.locate(x)
	if found && start == behind {
		at++
	}
	n := 0
	for ; block < len(s.blocks) && n < len(dst); block++ {
		n += copy(dst[n:], s.blocks[block][at:])
		at = 0
	}
	return n
}

// len returns the number of elements.
func (s *sorted[T]) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.length
}
