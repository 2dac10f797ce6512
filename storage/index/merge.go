package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// MergeRuns writes one run of several, from old to new, front to back. Series that newer runs make void are left out. It reads each run three times, by key,
// by id and by entity, and takes six bytes of memory for each of their keys. Damage ends it with an error, which the run remembers.
func MergeRuns(w io.Writer, runs []*Run, below Below) error {
	m := merge{sources: make([]*mergeSource, len(runs))}
	list, err := stackUp(runs)
	if err != nil {
		return err
	}
	total := 0
	for i, l := range list {
		total += l.run.Len()
		m.sources[i] = &mergeSource{layer: l, rd: newReader(l.run)}
		defer m.sources[i].rd.done()
	}
	if total > math.MaxInt32 {
		return fmt.Errorf("index: merge: %d keys are more than a run can hold", total)
	}
	m.rw = newRunWriter(w, total)
	if err := inTurn(m.mergeKeys, m.mergeIDs, m.mergeEntities); err != nil {
		return err
	}
	var gone []ID
	if below == OlderRuns {
		if gone, err = m.mergeGone(); err != nil {
			return err
		}
	}
	return m.rw.finish(gone)
}

type merge struct {
	rw      *runWriter
	sources []*mergeSource
}

// mergeSource is one run of a merge.
type mergeSource struct {
	*layer
	rd    *reader
	to    []uint32 // by ordinal: the ordinal in the merged run, none when the series is left out
	at    uint32   // the ordinal, or the place in the order of ids, that is next
	key   []byte   // of at
	id    ID
	names *names
}

// inTurn calls functions until one fails.
func inTurn(list ...func() error) error {
	for _, f := range list {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// nextKey goes to the next series that is kept; false at the end.
func (s *mergeSource) nextKey() (bool, error) {
	for ; s.at < s.run.keys.count && s.marks.has(s.at); s.at++ {
		s.to[s.at] = none
	}
	if s.at == s.run.keys.count {
		return false, nil
	}
	var err error
	if s.id, err = s.rd.idAt(s.at); err == nil {
		s.key, err = s.rd.keyAt(s.at)
	}
	if err != nil {
		s.run.fail(err)
	}
	return err == nil, err
}

// mergeKeys writes the keys in order. Should two runs hold one key, which can be when a key could not be read once, the newer one counts.
func (m *merge) mergeKeys() error {
	var heads []*mergeSource
	for _, s := range m.sources {
		s.to = make([]uint32, s.run.keys.count)
		more, err := s.nextKey()
		if err != nil {
			return err
		}
		if more {
			heads = append(heads, s)
		}
	}
	for len(heads) > 0 {
		at, twice := lowest(heads)
		s := heads[at]
		if twice {
			s.to[s.at] = none
		} else {
			s.to[s.at] = m.rw.tree.count
			if err := m.rw.key(s.key, s.id); err != nil {
				return err
			}
		}
		s.at++
		if more, err := s.nextKey(); err != nil {
			return err
		} else if !more {
			heads = slices.Delete(heads, at, at+1)
		}
	}
	return nil
}

// lowest returns the oldest of the sources with the lowest key, and whether a newer one has the same key.
func lowest(heads []*mergeSource) (at int, twice bool) {
	for i := 1; i < len(heads); i++ {
		switch bytes.Compare(heads[i].key, heads[at].key) {
		case -1:
			at, twice = i, false
		case 0:
			twice = true
		}
	}
	return at, twice
}

// nextID goes to the next id in ascending order that is kept; false at the end.
func (s *mergeSource) nextID() (bool, error) {
	r := s.run
	for ; s.at < r.ordinals.count; s.at++ {
		id := uint64(r.low) + uint64(s.at)
		var err error
		if r.ids.count > 0 {
			if id, err = r.ids.at(s.rd, s.at); err != nil {
				return false, err
			}
		}
		ordinal, err := r.ordinals.at(s.rd, s.at)
		if err != nil {
			return false, err
		}
		if ordinal < uint64(len(s.to)) && s.to[ordinal] != none {
			s.id = ID(id)
			return true, nil
		}
	}
	return false, nil
}

// mergeIDs writes the ids in ascending order.
func (m *merge) mergeIDs() error {
	var failed error
	m.rw.endKeys(func(yield func(ID, uint32) bool) {
		if failed == nil {
			failed = m.eachID(yield)
		}
	})
	return failed
}

func (m *merge) eachID(yield func(ID, uint32) bool) error {
	var heads []*mergeSource
	for _, s := range m.sources {
		s.at = 0
		more, err := s.nextID()
		if err != nil {
			s.run.fail(err)
			return err
		}
		if more {
			heads = append(heads, s)
		}
	}
	for len(heads) > 0 {
		first := 0
		for i, s := range heads {
			if s.id < heads[first].id {
				first = i
			}
		}
		s := heads[first]
		ordinal, err := s.run.ordinals.at(s.rd, s.at)
		if err == nil && !yield(s.id, s.to[ordinal]) {
			return nil
		}
		s.at++
		more := false
		if err == nil {
			more, err = s.nextID()
		}
		if err != nil {
			s.run.fail(err)
			return err
		}
		if !more {
			heads = slices.Delete(heads, first, first+1)
		}
	}
	return nil
}

// mergeEntities writes the entities in order of their names, with what is kept of their postings.
func (m *merge) mergeEntities() error {
	var heads []*mergeSource
	for _, s := range m.sources {
		s.names = s.run.entities.from(s.rd, nil)
		if s.names.next() {
			heads = append(heads, s)
		} else if err := s.names.err; err != nil {
			s.run.fail(err)
			return err
		}
	}
	var name []byte
	var list, merged []uint32
	for len(heads) > 0 {
		name = append(name[:0], slices.MinFunc(heads, func(a, b *mergeSource) int {
			return bytes.Compare(a.names.walk.text, b.names.walk.text)
		}).names.walk.text...)
		merged = merged[:0]
		var failed error
		heads = slices.DeleteFunc(heads, func(s *mergeSource) bool {
			if failed != nil || !bytes.Equal(s.names.walk.text, name) {
				return false
			}
			var err error
			if list, err = s.rd.postings(list[:0], s.names.column(0), s.names.column(1)); err == nil {
				for _, ordinal := range list {
					if s.to[ordinal] != none {
						merged = append(merged, s.to[ordinal])
					}
				}
			}
			more := err == nil && s.names.next()
			if err = errors.Join(err, s.names.err); err != nil {
				s.run.fail(err)
				failed = err
			}
			return !more
		})
		if failed != nil {
			return failed
		}
		if len(merged) == 0 {
			continue
		}
		slices.Sort(merged)
		if err := m.rw.entity(name, merged); err != nil {
			return err
		}
	}
	return nil
}

// mergeGone returns what the runs make void in older ones.
func (m *merge) mergeGone() ([]ID, error) {
	var gone []ID
	for _, s := range m.sources {
		err := s.run.eachGone(s.rd, func(id ID) error {
			gone = append(gone, id)
			return nil
		})
		if err != nil {
			s.run.fail(err)
			return nil, err
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone), nil
}
