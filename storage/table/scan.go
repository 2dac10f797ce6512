package table

import (
	"bytes"
	"errors"
	"iter"
	"slices"
)

// Entry is a key with its value. The key is valid until the next one; the value is shared with the table: it stays valid and must not be changed.
type Entry struct{ Key, Value []byte }

// Ascend yields the entries from the first whose key is not below from, up to and without to; nil stands for either end. No lock is held while the caller
// works: entries that come or go meanwhile, in the part that is not reached yet, are seen or not. Instead of a damaged block there is an error; a caller that
// goes on in spite of it gets what is behind, and for the keys of that block what older files had.
func (t *Table) Ascend(from, to []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s := scan{from: bytes.Clone(from), to: bytes.Clone(to)}
		for {
			v := t.parts.Load()
			s.sources = v.sources(bytes.Clone(s.from), s.to, t.cache)
			switch err := s.run(yield); {
			case err == nil:
				return
			case !t.outdated(v, err):
				yield(Entry{}, err)
				return
			}
		}
	}
}

// sources returns what has the entries of a range, from new to old.
func (v *view) sources(from, to []byte, c *cache) []source {
	all := append(make([]source, 0, 2+len(v.files)), newTreeSource(v.memory, from))
	if v.frozen != nil {
		all = append(all, newTreeSource(v.frozen, from))
	}
	for _, f := range slices.Backward(v.files) {
		if f.entries > 0 && bytes.Compare(f.highest, from) >= 0 && (to == nil || bytes.Compare(f.lowest, to) < 0) {
			all = append(all, &fileSource{file: f, cache: c, from: from, to: to})
		}
	}
	return all
}

// scan walks all sources in one order.
type scan struct {
	sources  []source
	from, to []byte // what is left: from moves on
}

// run yields entries. After an error it may be called again with other sources.
func (s *scan) run(yield func(Entry, error) bool) error {
	m := newMerger(s.sources)
	for {
		one, err := m.next()
		var damage *DamageError
		switch {
		case errors.As(err, &damage):
			if !yield(Entry{}, err) {
				return nil
			}
		case err != nil || one == nil || s.to != nil && bytes.Compare(one.key, s.to) >= 0:
			return err
		case !one.dead:
			s.from = append(append(s.from[:0], one.key...), 0) // the key behind it, should the sources change
			if !yield(Entry{one.key, one.value}, nil) {
				return nil
			}
		}
	}
}

// source is a layer on its way up.
type source interface {
	// next returns the next item, nil at the end. It is valid until the next call. After a DamageError it goes on behind the damage.
	next() (*item, error)
}

// merger walks sources, from new to old, in one order. Of equal keys the newest one counts.
type merger struct {
	sources []source
	items   []*item // of each source, its next one; nil at its end
	stale   []bool  // whose item has had its turn, so that its source has to move on
}

func newMerger(sources []source) *merger {
	m := &merger{sources: sources, items: make([]*item, len(sources)), stale: make([]bool, len(sources))}
	for i := range m.stale {
		m.stale[i] = true
	}
	return m
}

// next returns the item with the lowest key, nil at the end. After an error it may be called again, if the source goes on.
func (m *merger) next() (least *item, err error) {
	for i, stale := range m.stale {
		if stale {
			if m.items[i], err = m.sources[i].next(); err != nil {
				return nil, err
			}
			m.stale[i] = false
		}
	}
	turn := 0
	for i, one := range m.items {
		if one == nil {
			continue
		}
		order := -1
		if least != nil {
			order = bytes.Compare(one.key, least.key)
		}
		switch {
		case order < 0:
			least, turn = one, i
		case order == 0: // older: nobody wants it
			m.stale[i] = true
		}
	}
	if least != nil {
		m.stale[turn] = true
	}
	return least, nil
}

// treeSource reads a part in memory page by page.
type treeSource struct {
	tree *tree
	from []byte // key of the last record, or where to begin
	edge edge
	page []record
	n    int // records in page
	at   int
	item item
}

// Records that are read under the lock of a tree at a time: few at first, as most ranges are short. A writer waits for a microsecond.
const (
	firstPage = 16
	fullPage  = 128
)

func newTreeSource(t *tree, from []byte) *treeSource {
	return &treeSource{tree: t, from: from, page: make([]record, firstPage)}
}

func (s *treeSource) next() (*item, error) {
	if s.at == s.n {
		switch {
		case s.edge == behindKey && s.n < len(s.page):
			// The page was not full: the end, except for what has come since.
			return nil, nil
		case s.edge == behindKey:
			s.page = slices.Grow(s.page, fullPage)[:fullPage]
		}
		s.n = s.tree.page(s.from, s.edge, s.page)
		if s.at = 0; s.n == 0 {
			s.edge = behindKey
			return nil, nil
		}
		s.from, s.edge = s.page[s.n-1].keyBytes(), behindKey
	}
	r := s.page[s.at]
	s.at++
	s.item = item{r.keyBytes(), r.valueBytes(), r.dead()}
	return &s.item, nil
}

// fileSource reads a file block by block. No block is read that begins at or behind to.
type fileSource struct {
	file     *File
	cache    *cache // nil: none
	from, to []byte
	started  bool
	block    int // the one that cursor walks
	cursor   blockCursor
}

func (s *fileSource) next() (*item, error) {
	if !s.started {
		s.started = true
		s.block = s.file.find(s.from)
		if err := s.open(useAgain); err != nil {
			return nil, err
		}
		if ok, err := s.cursor.seek(s.from); ok || err != nil {
			return s.found(err)
		}
	} else if ok, err := s.cursor.advance(); ok || err != nil {
		return s.found(err)
	}
	for s.block+1 < len(s.file.blocks) && (s.to == nil || bytes.Compare(s.file.separator(s.block+1), s.to) < 0) {
		s.block++
		if err := s.open(useOnce); err != nil {
			return nil, err
		}
		if ok, err := s.cursor.advance(); ok || err != nil {
			return s.found(err)
		}
	}
	s.block = len(s.file.blocks)
	return nil, nil
}

func (s *fileSource) found(err error) (*item, error) {
	if err != nil {
		s.cursor = blockCursor{}
		return nil, s.file.damaged(s.file.blocks[s.block].offset, err)
	}
	return &s.cursor.item, nil
}

func (s *fileSource) open(u use) error {
	s.cursor = blockCursor{keys: s.cursor.keys[:0]} // at its end, should the block be damaged
	raw, err := s.file.block(s.block, s.cache, u)
	if err != nil {
		return err
	}
	if err := s.cursor.open(raw); err != nil {
		s.cursor.entries = nil
		return s.file.damaged(s.file.blocks[s.block].offset, err)
	}
	return nil
}
