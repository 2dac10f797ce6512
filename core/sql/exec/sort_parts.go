package exec

import (
	"bytes"
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// sortedPart is rows in their order between which no other row lies: then the parts are sorted, by their first rows, and not the rows. The groups of one series
// are such rows.
type sortedPart struct {
	key  []byte // of the first row
	rows *column.Batch
	size int64 // bytes that were taken for it
}

const (
	perPart  = 256 // bytes that a part costs beside its rows and key, with a few columns
	longPart = 16  // rows: shorter parts are yielded together
)

// addPart takes rows that are in their order and between which no other rows lie; all rows of the sorter are added so. The batch belongs to the sorter from
// then on.
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
	if err == nil || s.x.SpillDir == "" {
		s.parts = append(s.parts, p)
		return err
	}
	if len(s.parts) > 0 {
		if err := s.partsToDisk(); err != nil {
			return err
		}
		err = s.grow(p.size)
	}
	s.parts = append(s.parts, p)
	if err == nil {
		return nil
	}
	s.parts[0].size = 0
	return s.partsToDisk()
}

// partsToDisk writes the parts as a sorted run.
func (s *sorter) partsToDisk() error {
	w, err := s.newRun()
	if err != nil {
		return err
	}
	parts := s.sortParts()
	s.parts = nil
	for _, p := range parts {
		most := min(max(runBytes*int64(p.rows.Len)/max(p.size, 1), 1), runRows)
		for b := range inSlices(p.rows, int(most)) {
			if err := w.add(b); err != nil {
				return err
			}
		}
		s.shrink(p.size)
	}
	return w.rewind()
}

func (s *sorter) sortParts() []sortedPart {
	slices.SortFunc(s.parts, func(a, b sortedPart) int { return bytes.Compare(a.key, b.key) })
	return s.parts
}

// fromParts yields the parts; there are no other rows.
func (s *sorter) fromParts(yield func(*column.Batch, error) bool) {
	short := &rows{account: account{memory: NewMemory(0)}}
	flush := func() bool {
		if short.n == 0 {
			return true
		}
		b := short.batch()
		short = &rows{account: account{memory: NewMemory(0)}}
		return yield(b, nil)
	}
	for _, p := range s.sortParts() {
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
