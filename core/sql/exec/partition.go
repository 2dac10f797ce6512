package exec

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// What keeps something of every key (groups, DISTINCT) and meets the limit of the memory deals its rows out to files by a hash of their keys. Then all rows
// with a key are in one file, and the files are small enough to be worked on one after another; one that is not is dealt out again.

const (
	// partCount is how many files rows are dealt out to at once, at most: with half of the memory for each of them, the first round is enough for 16 times the
	// memory.
	partCount = 32
	// leastCount is how many they are at least, when it is known that there are few rows.
	leastCount = 4
	// partSpread is how many times as much as in a file rows take in memory, at most: a number of 9 bytes becomes a group.
	partSpread = 16
	// partLevels is how often rows are dealt out again: 32^4 times the memory are more than fits any disk, what is left after it are keys that do not part.
	partLevels = 4
	// partShare is the part of the memory that the buffers of all files take at most.
	partShare = 16
	// leastBuffer is the least buffer of a file.
	leastBuffer = 256
)

// partitions are the files of one round. It serves one goroutine.
type partitions struct {
	account
	x      *execution
	seed   maphash.Seed
	buffer int
	runs   []*run // nil: without rows
	picks  [][]int32
	part   column.Batch
	buf    []byte // what is written is put together in
}

// newPartitions begins a round, for rows that are so large in a file; 0 = nobody knows. Other keys meet in its files than in those of another round.
func (x *execution) newPartitions(size int64) (*partitions, error) {
	p := &partitions{account: account{memory: x.Memory}, x: x, seed: maphash.MakeSeed(), buffer: runBuffer}
	n := int64(partCount)
	if limit := x.Memory.Limit(); limit > 0 {
		p.buffer = int(min(max(limit/partShare/partCount, leastBuffer), runBuffer))
		if size > 0 {
			n = min(max(2*partSpread*size/limit, leastCount), partCount)
		}
	}
	p.runs, p.picks = make([]*run, n), make([][]int32, n)
	return p, p.grow(int64(p.buffer) * n)
}

// close gives all files back.
func (p *partitions) close() {
	p.release()
	for _, r := range p.runs {
		if r != nil {
			r.close()
		}
	}
}

// of returns the file of a key.
func (p *partitions) of(key []byte) int32 {
	return int32(maphash.Bytes(p.seed, key) % uint64(len(p.runs)))
}

// deal writes the rows of b, in their order: row i to file to[i]; -1 = to none.
func (p *partitions) deal(b *column.Batch, to []int32) error {
	if b.Len == 0 {
		return nil
	}
	if one := to[0]; !slices.ContainsFunc(to, func(n int32) bool { return n != one }) {
		return p.write(one, b)
	}
	for i := range p.picks {
		p.picks[i] = p.picks[i][:0]
	}
	for i, n := range to {
		if n >= 0 {
			p.picks[n] = append(p.picks[n], int32(i))
		}
	}
	for n, pick := range p.picks {
		if len(pick) == 0 {
			continue
		}
		gather(&p.part, b, pick)
		if err := p.write(int32(n), &p.part); err != nil {
			return err
		}
	}
	return nil
}

func (p *partitions) write(n int32, b *column.Batch) error {
	if n < 0 {
		return nil
	}
	if p.runs[n] == nil {
		r, err := p.x.spill.create(p.x.SpillDir, p.x.Spill)
		if err != nil {
			return err
		}
		r.buffer = p.buffer
		p.runs[n] = r
	}
	r := p.runs[n]
	r.buf = p.buf
	err := r.write(nil, b)
	p.buf, r.buf = r.buf, nil
	return err
}

// each calls visit with every file, the largest first, so that one that is too large is found early. A file is gone after its visit. Nothing can be dealt out
// any more.
func (p *partitions) each(ctx context.Context, visit func(*run) error) error {
	runs := slices.DeleteFunc(slices.Clone(p.runs), func(r *run) bool { return r == nil })
	for _, r := range runs {
		if err := r.flush(); err != nil {
			return err
		}
	}
	p.release()
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(b.size, a.size) })
	for _, r := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(r); err != nil {
			return err
		}
		r.close()
	}
	return nil
}

// giveWay writes the rows of a sorter to disk when they take more than one of so many equal parts of the memory, so that others have room.
func (s *sorter) giveWay(parts int64) error {
	limit := s.x.Memory.Limit()
	if limit <= 0 || s.x.SpillDir == "" || s.kept.n+len(s.parts) == 0 || s.taken+s.kept.taken <= limit/parts {
		return nil
	}
	return s.toDisk()
}
