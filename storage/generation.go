package storage

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
)

// generation holds in memory the samples that came between two freezes, by the number of their series. The appender adds to the active one; the frozen
// one, which is on its way to a file, is never changed. Series that got no samples in its time are not in it.
type generation struct {
	number uint64 // of generations, ascending: what an older one says about a time, a newer one overrides

	pages   atomic.Pointer[[]atomic.Pointer[seriesPage]] // by id / seriesPerPage; the slice is replaced when it grows
	bytes   atomic.Int64                                 // of memory, estimated
	samples atomic.Int64                                 // that were put, those that replaced others included
	newest  atomic.Int64                                 // core.Time of the newest sample that was ever put, plus one

	removals uint64 // series that had ended when it began
	mixed    bool   // something but numbers alone was put, or several versions; the appender's

	// Of the appender: a fleet of a million is as many small objects as the collector has to visit, unless they share a few large ones.
	slab  []series // that are not in use yet
	names keyMemory
}

// seriesPerPage: ids that are in use at the same time lie close together, since they were given in the order of arrival.
const seriesPerPage = 256

type seriesPage [seriesPerPage]atomic.Pointer[series]

// series is one series in one generation, and what its samples need to know.
type series struct {
	id     index.ID
	key    core.SeriesKey
	metric *metric
	entity *entity

	measured bool // not a forecast

	// What older layers hold; the appender's.
	plain   bool      // with settled: numbers alone
	settled core.Time // of the newest sample, or settledUnknown

	mu    sync.Mutex // guards head
	head  head
	first single
}

// seriesPerSlab: some 13 KB.
const seriesPerSlab = 64

// blank returns a series of g that nobody sees yet. Only the appender may call it.
func (g *generation) blank() *series {
	if len(g.slab) == 0 {
		g.slab = make([]series, seriesPerSlab)
	}
	s := &g.slab[0]
	g.slab = g.slab[1:]
	s.settled, s.head.small = settledUnknown, &s.first
	return s
}

// keyMemory keeps the texts and tags of keys side by side.
type keyMemory struct {
	text strings.Builder
	tags core.Tags // not in use yet
}

// Sizes of what the keys of a generation share. They live as long as one of these keys does, so they are no larger than it takes to not count.
const (
	textChunk = 4 << 10
	tagChunk  = 64
)

// key returns the key whose canonical form is given, which is made by SeriesKey.Append, and names cannot hold separators.
func (n *keyMemory) key(canonical []byte) core.SeriesKey {
	if n.text.Cap()-n.text.Len() < len(canonical) {
		n.text = strings.Builder{}
		n.text.Grow(max(textChunk, len(canonical)))
	}
	start := n.text.Len()
	n.text.Write(canonical)
	k, _ := parseKeyIn(n.text.String()[start:], n.room)
	return k
}

// room returns an empty list of tags with room for count.
func (n *keyMemory) room(count int) core.Tags {
	if count > len(n.tags) {
		n.tags = make(core.Tags, max(tagChunk, count))
	}
	t := n.tags[:0:count]
	n.tags = n.tags[count:]
	return t
}

// Values of settled that are no times.
const (
	settledUnknown core.Time = -2
	settledNone    core.Time = -1
)

// seriesBytes is what a series takes in a generation besides its samples and the text of its key: the struct, its place in the page, and a tag or two.
const seriesBytes = 260

func newGeneration(number uint64) *generation {
	g := &generation{number: number}
	g.pages.Store(new([]atomic.Pointer[seriesPage]))
	return g
}

// get returns a series, nil when it is not in g. A nil generation is empty.
func (g *generation) get(id index.ID) *series {
	if g == nil {
		return nil
	}
	pages := *g.pages.Load()
	i := int(id / seriesPerPage)
	if i >= len(pages) {
		return nil
	}
	page := pages[i].Load()
	if page == nil {
		return nil
	}
	return page[id%seriesPerPage].Load()
}

// set puts a series in, or with nil takes it out. Only the appender may call it.
func (g *generation) set(id index.ID, s *series) {
	pages := *g.pages.Load()
	i := int(id / seriesPerPage)
	if i >= len(pages) {
		larger := make([]atomic.Pointer[seriesPage], max(i+1, 2*len(pages)))
		for at := range pages {
			larger[at].Store(pages[at].Load())
		}
		g.pages.Store(&larger)
		pages = larger
	}
	page := pages[i].Load()
	if page == nil {
		page = new(seriesPage)
		pages[i].Store(page)
		g.bytes.Add(8 * seriesPerPage)
	}
	page[id%seriesPerPage].Store(s)
}

// all yields the series in order of id.
func (g *generation) all() iter.Seq[*series] {
	return func(yield func(*series) bool) {
		pages := *g.pages.Load()
		for i := range pages {
			page := pages[i].Load()
			if page == nil {
				continue
			}
			for at := range page {
				if s := page[at].Load(); s != nil && !yield(s) {
					return
				}
			}
		}
	}
}

// note counts samples that were put, up to the time newest.
func (g *generation) note(newest core.Time, samples, bytes int64) {
	g.samples.Add(samples)
	g.bytes.Add(bytes)
	if t := int64(newest) + 1; t > g.newest.Load() { // one appender: no race
		g.newest.Store(t)
	}
}

// sampleBytes is a time and a value.
const sampleBytes = 16

// bytes estimates what a write takes in memory.
func (w *write) bytes() int64 {
	n := int64(sampleBytes)
	if w.text != nil {
		n += 40 + int64(len(*w.text))
	}
	if w.decimal != nil {
		n += 24
	}
	if w.version != nil {
		n += 120 + int64(len(w.version.source)+len(w.version.status))
	}
	return n
}

func (s *series) has(r core.Range) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.has(r)
}

func (s *series) newest() (core.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.newest()
}

func (s *series) copyTo(b *core.Block, w window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head.copyTo(b, w)
}

// plain reports whether the series has numbers alone.
func (s *series) numbersAlone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.plain()
}

// from returns the time of the first sample at or after t.
func (s *series) from(t core.Time) (core.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.head.seek(t)
	if i == len(s.head.columns) {
		return 0, false
	}
	c := &s.head.columns[i]
	at, _ := slices.BinarySearch(c.times, t)
	return c.times[at], true
}
