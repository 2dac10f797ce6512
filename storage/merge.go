package storage

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/samples"
)

// merger writes the samples of some neighbouring files into one.
type merger struct {
	db      *DB
	inputs  []input  // from new to old
	scanner *scanner // of the files alone, for what has to be merged row by row
	expiry  *expiry
	out     *samples.Writer
	blocks  []placed   // of the series at hand
	pending core.Block // rows of the series that are not written yet
	decoder chunk.Decoder
	block   core.Block
}

// input is a file that is merged, read from front to back.
type input struct {
	file   *sampleFile
	walker *samples.Walker
	window samples.Window
	head   *samples.Entry // the next block, nil at the end
}

// placed is a block and the file that it is in.
type placed struct {
	in *input
	samples.Entry
}

// mergeSamples writes what of the files, from new to old, is still of use.
func (db *DB) mergeSamples(w io.Writer, list []*sampleFile) error {
	oldest, newest := list[len(list)-1].file.Oldest(), list[0].file.Generation()
	m := merger{db: db, expiry: db.expiry(), out: samples.NewWriter(w, oldest, newest), inputs: make([]input, len(list))}
	m.scanner = newScanner(&view{files: list}, db.state)
	defer m.scanner.close()
	removals := db.state.ended.Load()
	sound := true // no series of the files has ended
	for i, f := range list {
		sound = sound && f.file.Facts.Removals == removals
		m.inputs[i] = input{file: f, walker: f.file.Walk()}
		if err := m.inputs[i].next(); err != nil {
			return err
		}
	}
	for {
		id, err := m.gather()
		if err != nil {
			return err
		}
		if id == 0 {
			break
		}
		if !sound && db.dead(index.ID(id)) {
			continue
		}
		if err := m.series(id); err != nil {
			return fmt.Errorf("series %d: %w", id, err)
		}
	}
	if err := m.out.Close(); err != nil {
		return err
	}
	db.flusher.facts = factsOf(m.out, removals)
	return nil
}

// next goes to the next block.
func (in *input) next() (err error) {
	in.head, err = in.walker.Next()
	return err
}

// gather collects the blocks of the next series; 0 at the end.
func (m *merger) gather() (id samples.ID, err error) {
	for i := range m.inputs {
		if e := m.inputs[i].head; e != nil && (id == 0 || e.ID < id) {
			id = e.ID
		}
	}
	m.blocks = m.blocks[:0]
	for i := range m.inputs {
		in := &m.inputs[i]
		for in.head != nil && in.head.ID == id {
			m.blocks = append(m.blocks, placed{in, *in.head})
			if err := in.next(); err != nil {
				return 0, err
			}
		}
	}
	return id, nil
}

// series writes one series. Blocks are written as they are when they need not be merged with others, or are full and alone in their time; what is left is
// decoded, merged and encoded again.
func (m *merger) series(id samples.ID) error {
	kept := m.expiry.kept(index.ID(id))
	if m.buried(id) || !m.disjoint(kept) {
		return m.rows(id, kept)
	}
	alone := !slices.ContainsFunc(m.blocks, func(p placed) bool { return p.in != m.blocks[0].in })
	for i := range m.blocks {
		p := &m.blocks[i]
		if alone || p.Count >= fullEnough {
			if err := m.copy(id, p); err != nil {
				return err
			}
			continue
		}
		if err := p.in.window.Read(p.in.file.file, &p.Entry, &m.decoder, &m.block); err != nil {
			return err
		}
		if err := m.add(id, &m.block); err != nil {
			return err
		}
	}
	return m.flush(id)
}

// buried reports whether something was deleted from the series since its blocks were written.
func (m *merger) buried(id samples.ID) bool {
	for _, g := range m.db.graves.of(index.ID(id)) {
		for i := range m.blocks {
			if g.before > m.blocks[i].in.file.file.Generation() {
				return true
			}
		}
	}
	return false
}

// disjoint reports whether the blocks of the series do not overlap and lie in r, and puts them in order of time.
func (m *merger) disjoint(r core.Range) bool {
	if len(m.blocks) > 1 {
		slices.SortFunc(m.blocks, func(a, b placed) int { return cmp.Compare(a.First, b.First) })
	}
	for i := range m.blocks {
		if i > 0 && m.blocks[i].First <= m.blocks[i-1].Last || !m.blocks[i].Covered(r) {
			return false
		}
	}
	return true
}

// rows writes a series row by row.
func (m *merger) rows(id samples.ID, kept core.Range) error {
	w := window{Range: kept, versions: true}
	if err := m.scanner.open(index.ID(id), w); err != nil {
		return err
	}
	for {
		b, ok, err := m.scanner.next(w)
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

// fullEnough is the count from which on a block is not worth encoding again.
const fullEnough = chunk.MaxSamples * 3 / 4

// copy writes a block as it is, behind what is pending.
func (m *merger) copy(id samples.ID, p *placed) error {
	if err := m.flush(id); err != nil {
		return err
	}
	raw, err := p.in.window.Raw(p.in.file.file, &p.Entry)
	if err != nil {
		return err
	}
	return m.out.Copy(p.Entry, raw)
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

// flush writes what is pending.
func (m *merger) flush(id samples.ID) error {
	if len(m.pending.Times) == 0 {
		return nil
	}
	err := m.out.Add(id, &m.pending)
	resetBlock(&m.pending)
	return err
}
