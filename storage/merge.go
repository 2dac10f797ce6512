package storage

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/samples"
)

// merger writes the samples of some neighbouring files into one.
type merger struct {
	db      *DB
	view    *view // of the files alone
	scanner *scanner
	expiry  *expiry
	out     *samples.Writer
	pending core.Block // rows of the series that are not written yet
	raw     []byte
	blocks  []placed
	decoder chunk.Decoder
	block   core.Block
}

// placed is a block and the file that it is in.
type placed struct {
	file *sampleFile
	samples.Entry
}

// ids yields the series of the files in ascending order, once each.
func (m *merger) ids() iter.Seq2[samples.ID, error] {
	return func(yield func(samples.ID, error) bool) {
		next := make([]func() (*samples.Entry, error, bool), len(m.view.files))
		heads := make([]samples.ID, len(next)) // 0: at the end
		advance := func(i int, past samples.ID) error {
			for {
				e, err, ok := next[i]()
				if !ok {
					heads[i] = 0
					return nil
				}
				if err != nil {
					return err
				}
				if e.ID > past {
					heads[i] = e.ID
					return nil
				}
			}
		}
		for i, f := range m.view.files {
			pull, stop := iter.Pull2(f.file.Entries())
			defer stop()
			next[i] = pull
			if err := advance(i, 0); err != nil {
				yield(0, err)
				return
			}
		}
		for {
			var least samples.ID
			for _, id := range heads {
				if id != 0 && (least == 0 || id < least) {
					least = id
				}
			}
			if least == 0 || !yield(least, nil) {
				return
			}
			for i := range heads {
				if heads[i] == least {
					if err := advance(i, least); err != nil {
						yield(0, err)
						return
					}
				}
			}
		}
	}
}

// series writes one series: blocks that are full and alone in their time as they are, the others decoded, merged and encoded again.
func (m *merger) series(id samples.ID) error {
	resetBlock(&m.pending)
	w := window{Range: m.expiry.kept(index.ID(id)), versions: true}
	sc := m.scanner
	if err := sc.open(index.ID(id), w); err != nil {
		return err
	}
	if sc.buriedAny() || !m.disjoint(w.Range) {
		for {
			b, ok, err := sc.next(w)
			if err != nil {
				return err
			}
			if !ok {
				return m.flush(id)
			}
			if err := m.add(id, b); err != nil {
				return err
			}
		}
	}
	for i := range m.blocks {
		if err := m.move(id, &m.blocks[i]); err != nil {
			return err
		}
	}
	return m.flush(id)
}

// disjoint reports whether the blocks of the series that is open do not overlap and lie in r, and puts them in order of time.
func (m *merger) disjoint(r core.Range) bool {
	m.blocks = m.blocks[:0]
	for i := range m.scanner.count {
		src := &m.scanner.sources[i]
		for _, e := range src.list {
			m.blocks = append(m.blocks, placed{src.file, e})
		}
	}
	slices.SortFunc(m.blocks, func(a, b placed) int { return cmp.Compare(a.First, b.First) })
	for i := range m.blocks {
		if i > 0 && m.blocks[i].First <= m.blocks[i-1].Last || !m.blocks[i].Covered(r) {
			return false
		}
	}
	return true
}

// fullEnough is the count from which on a block is not worth encoding again.
const fullEnough = chunk.MaxSamples * 3 / 4

// move writes a block behind what is pending.
func (m *merger) move(id samples.ID, p *placed) (err error) {
	if p.Count < fullEnough {
		if err := p.file.file.Read(&p.Entry, &m.decoder, &m.block); err != nil {
			return err
		}
		return m.add(id, &m.block)
	}
	if err := m.flush(id); err != nil {
		return err
	}
	if m.raw, err = p.file.file.Raw(&p.Entry, m.raw[:0]); err != nil {
		return err
	}
	return m.out.Copy(p.Entry, m.raw)
}

// add puts rows behind those that are pending, and writes full blocks.
func (m *merger) add(id samples.ID, b *core.Block) error {
	appendRows(&m.pending, b, 0, len(b.Times))
	n := len(m.pending.Times)
	if n < 2*chunk.MaxSamples {
		return nil
	}
	// The last block stays, so that what comes behind it finds it: it may be of the same time.
	end := n - n%chunk.MaxSamples
	if end == n {
		end -= chunk.MaxSamples
	}
	for end > 0 && m.pending.Times[end] == m.pending.Times[end-1] {
		end--
	}
	var full core.Block
	if err := m.out.Add(id, cut(&full, &m.pending, 0, end)); err != nil {
		return err
	}
	cutRows(&m.pending, 0, end)
	return nil
}

func (m *merger) flush(id samples.ID) error {
	err := m.out.Add(id, &m.pending)
	resetBlock(&m.pending)
	return err
}
