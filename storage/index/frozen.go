package index

import (
	"errors"
	"io"
	"slices"
)

// WriteFrozen writes the frozen part as a run, front to back. It runs beside the writer and readers; what they remove meanwhile is in the run, and made void
// when it is adopted.
func (x *Index) WriteFrozen(w io.Writer) error {
	x.mu.RLock()
	l := x.frozen
	x.mu.RUnlock()
	if l == nil {
		return errors.New("index: write: nothing is frozen")
	}
	return l.part.write(w)
}

// write writes a part that is not changed any more. It takes twelve bytes of memory a series for a while.
func (p *part) write(w io.Writer) error {
	rw := newRunWriter(w, p.live)
	ordinalOf := make([]uint32, p.n)
	for i := range ordinalOf {
		ordinalOf[i] = none
	}
	ids := make([]uint64, 0, p.live) // id<<32 | ordinal
	for _, i := range p.inOrder() {
		if p.dead.has(i) {
			continue
		}
		ordinalOf[i] = uint32(len(ids))
		id := p.at(i).id
		ids = append(ids, uint64(id)<<32|uint64(len(ids)))
		if err := rw.key(p.key(i), id); err != nil {
			return err
		}
	}
	slices.Sort(ids)
	rw.endKeys(func(yield func(ID, uint32) bool) {
		for _, one := range ids {
			if !yield(ID(one>>32), uint32(one)) {
				return
			}
		}
	})
	var list []uint32
	for _, at := range p.entities.inOrder(p, nil) {
		list = list[:0]
		n := &p.entities.names[at]
		for i := n.last; i != none; i = p.at(i).entity.next {
			if ordinalOf[i] != none {
				list = append(list, ordinalOf[i])
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		if err := rw.entity(p.entities.text(p, n), list); err != nil {
			return err
		}
	}
	gone := slices.Clone(p.gone)
	slices.Sort(gone)
	return rw.finish(gone)
}
