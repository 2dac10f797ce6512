package exec

import (
	"bytes"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// sortedPart is rows in their order between which no other row lies: then the parts are sorted, by their first rows, and not the rows. The groups of one series
// are such rows.
type sortedPart struct {
	key  []byte // of the first row
	rows *column.Batch
	size int64 // bytes, about
}

const (
	perPart  = 256 // bytes that a part costs beside its rows and key, with a few columns
	longPart = 16  // rows: shorter parts are yielded together
)

// addPart takes rows that are in their order and between which no other rows lie; all rows of the sorter are added so. The batch belongs to the sorter from
// then on. Where there is no room for it, it goes to a file with those before it.
func (s *sorter) addPart(b *column.Batch) error {
	if err := s.by.load(b); err != nil {
		return err
	}
	p := sortedPart{key: bytes.Clone(s.by.of(0)), rows: b, size: perPart}
	p.size += int64(len(p.key))
	for _, v := range b.Columns {
		p.size += runSize(v, span{0, b.Len})
	}
	err := s.grow(p.size)
	if err != nil && s.x.SpillDir == "" {
		return err
	}
	s.parts = append(s.parts, p)
	if err != nil {
		return s.partsToDisk()
	}
	return nil
}

// partsToDisk writes the parts as a sorted run.
func (s *sorter) partsToDisk() error {
	w, err := s.newRun()
	if err != nil {
		return err
	}
	if err := s.sortParts(); err != nil {
		return err
	}
	for _, p := range s.parts {
		for b := range inSlices(p.rows, s.runRows(p.rows.Len, p.size)) {
			if err := w.add(b); err != nil {
				return err
			}
		}
	}
	s.parts = nil
	s.release()
	return w.rewind()
}

func (s *sorter) sortParts() error {
	return sortAll(s.x, s.parts, func(a, b sortedPart) int { return bytes.Compare(a.key, b.key) })
}

// fromParts yields the parts; there are no other rows.
func (s *sorter) fromParts(yield func(*column.Batch, error) bool) {
	if err := s.sortParts(); err != nil {
		yield(nil, err)
		return
	}
	short := newLooseRows()
	flush := func() bool {
		b := short.batch()
		short = newLooseRows()
		return b.Len == 0 || yield(b, nil)
	}
	for _, p := range s.parts {
		if p.rows.Len >= longPart {
			if !flush() {
				return
			}
			for b, err := range inSlices(p.rows, column.Size) {
				if !yield(b, err) {
					return
				}
			}
			continue
		}
		if err := short.add(p.rows); err != nil {
			yield(nil, err)
			return
		}
		if short.n >= column.Size && !flush() {
			return
		}
	}
	flush()
}
