package storage

import (
	"iter"
	"slices"
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
	settled core.Time // of the newest sample, or settledUnknown
	plain   bool      // with settled: numbers alone

	mu   sync.RWMutex // guards head
	head head
}

// Values of settled that are no times.
const (
	settledUnknown core.Time = -2
	settledNone    core.Time = -1
)

// seriesBytes is what a series takes in a generation besides its samples: the struct, its place in the page, a first column and the strings.
const seriesBytes = 420

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
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.head.has(r)
}

func (s *series) newest() (core.Time, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.head.newest()
}

func (s *series) copyTo(b *core.Block, w window) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.head.copyTo(b, w)
}

// plain reports whether the series has numbers alone.
func (s *series) numbersAlone() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.head.plain()
}

// from returns the time of the first sample at or after t.
func (s *series) from(t core.Time) (core.Time, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.head.seek(t)
	if i == len(s.head.columns) {
		return 0, false
	}
	c := &s.head.columns[i]
	at, _ := slices.BinarySearch(c.times, t)
	return c.times[at], true
}
