package storage

import (
	"sort"
	"sync"

	"github.com/tidemark-db/tidemark/core"
)

// ring keeps the newest batches in memory, decoded, up to a number of bytes. It is where Tail reads from, and the only place of what is not to be
// stored.
type ring struct {
	limit int

	mu      sync.RWMutex
	entries []core.Entry // ascending by position; the oldest are cut off the front
	sizes   []int
	bytes   int
	floor   core.Position // of the newest batch that is not in the ring any more: everything above is here
	end     core.Position // of the newest batch
	changed chan struct{} // closed and replaced when end moves; nil while nobody waits
}

// add puts in the newest batch and drops the oldest ones above the limit. The newest always stays: a reader that keeps up misses nothing.
func (r *ring) add(e core.Entry) {
	size := sizeOf(e.Batch)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries, r.sizes = append(r.entries, e), append(r.sizes, size)
	r.bytes += size
	r.end = e.Position
	for r.bytes > r.limit && len(r.entries) > 1 {
		r.floor = r.entries[0].Position
		r.bytes -= r.sizes[0]
		r.entries[0] = core.Entry{}
		r.entries, r.sizes = r.entries[1:], r.sizes[1:]
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// tailPage is how many batches a reader takes at a time.
const tailPage = 64

// after copies batches above p to dst and returns how many. When some of them are not here any more, floor is their last position and nothing is copied.
func (r *ring) after(p core.Position, dst []core.Entry) (n int, floor core.Position) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p < r.floor {
		return 0, r.floor
	}
	i := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].Position > p })
	return copy(dst, r.entries[i:]), 0
}

// newest returns the position of the newest batch, and when that is not above p, a channel that is closed when it may be.
func (r *ring) newest(p core.Position) (core.Position, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end > p {
		return r.end, nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.end, r.changed
}

// sizeOf estimates the memory of a batch in bytes: structs, columns, and the texts that only it holds. Series keys are shared with the index.
func sizeOf(b *core.Batch) int {
	const batch, key, sample, sideEntry, record, tag = 320, 56, 21, 40, 160, 32
	n := batch + key*len(b.Keys) + sample*b.Samples.Len() + sideEntry*(len(b.Samples.Texts)+len(b.Samples.Decimals)+len(b.Samples.Versions))
	for _, t := range b.Samples.Texts {
		n += len(t.Text)
	}
	for _, m := range b.Messages {
		n += record + len(m.Entity) + len(m.Type) + len(m.Source) + len(m.Text) + tagBytes(m.Tags)
	}
	for _, p := range b.Properties {
		n += record + len(p.Entity) + len(p.Type) + tagBytes(p.Key) + tagBytes(p.Tags)
	}
	for _, d := range b.Documents {
		n += record + len(d.Key) + len(d.Body)
	}
	return n + record*(len(b.Series)+len(b.Removed)) + 4*record*len(b.Alerts)
}

func tagBytes(t core.Tags) int {
	const header = 32
	n := header * len(t)
	for _, tag := range t {
		n += len(tag.Name) + len(tag.Value)
	}
	return n
}
