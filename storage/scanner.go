package storage

import (
	"errors"
	"iter"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/samples"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// scanner reads one series after the other through all layers of a view. Its buffers serve every one of them.
type scanner struct {
	view    *view
	state   *state
	decoder chunk.Decoder
	cursors []samples.Cursor // one for each file of the view
	sources []source         // the first count are in use
	count   int
	out     core.Block // rows of several sources together
	part    core.Block // a part of a block
	clipped core.Block // likewise, cut to a limit
}

// source is what one layer holds of the series that is being read, one block at a time.
type source struct {
	series  *series         // in memory, or nil
	file    *sampleFile     // otherwise
	list    []samples.Entry // blocks of the file, in order of time; from at to end are not read yet
	at, end int
	hidden  []grave // that apply to the layer
	block   core.Block
	lo, hi  int    // rows of the block that are left
	window  window // of samples that are not read yet
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// newScanner returns a scanner of a view, which the caller holds longer than the scanner.
func newScanner(v *view, st *state) *scanner {
	sc := scanners.Get().(*scanner)
	sc.view, sc.state = v, st
	if cap(sc.cursors) < len(v.files) {
		sc.cursors = make([]samples.Cursor, len(v.files))
	}
	sc.cursors = sc.cursors[:len(v.files)]
	for i := range sc.cursors {
		sc.cursors[i].Reset()
	}
	return sc
}

func (sc *scanner) close() {
	sc.view, sc.state = nil, nil
	for i := range sc.sources {
		sc.sources[i].series, sc.sources[i].file = nil, nil
	}
	scanners.Put(sc)
}

// open finds the layers that hold samples of a series in the window.
func (sc *scanner) open(id index.ID, w window) error {
	sc.count = 0
	for _, g := range [...]*generation{sc.view.active, sc.view.frozen} {
		if s := g.get(id); s != nil {
			src := sc.source(w)
			src.series, src.hidden = s, sc.buried(id, g.number, src.hidden)
		}
	}
	for i, f := range sc.view.files {
		src := sc.source(w)
		var err error
		if src.list, err = f.file.Find(&sc.cursors[i], samples.ID(id), w.Range, src.list); err != nil {
			return sc.state.unreadable(f, err)
		}
		if len(src.list) == 0 {
			sc.count--
			continue
		}
		src.file, src.at, src.end = f, 0, len(src.list)
		src.hidden = sc.buried(id, f.file.Generation(), src.hidden)
	}
	return nil
}

// source returns one more source, emptied.
func (sc *scanner) source(w window) *source {
	if sc.count == len(sc.sources) {
		sc.sources = append(sc.sources, source{})
	}
	src := &sc.sources[sc.count]
	src.series, src.file, src.list, src.hidden, src.lo, src.hi, src.window = nil, nil, src.list[:0], src.hidden[:0], 0, 0, w
	sc.count++
	return src
}

// buried sets dst to the graves of a series that apply to a generation.
func (sc *scanner) buried(id index.ID, generation uint64, dst []grave) []grave {
	dst = dst[:0]
	for _, g := range sc.state.graves.of(id) {
		if g.before > generation {
			dst = append(dst, g)
		}
	}
	return dst
}

// fill sees to it that the source has rows, unless it has no more. It reports whether it has.
func (sc *scanner) fill(src *source) (bool, error) {
	for src.lo == src.hi {
		switch {
		case src.series != nil:
			if src.window.Empty() || !src.fromMemory() {
				src.window.Range = core.Range{} // what comes in from now on may lie before what was read
				return false, nil
			}
		case src.at == src.end:
			return false, nil
		default:
			if err := sc.fromFile(src); err != nil {
				return false, sc.state.unreadable(src.file, err)
			}
		}
		src.hide()
	}
	return true, nil
}

func (src *source) fromMemory() bool {
	w, b := &src.window, &src.block
	w.most = blockLength
	src.series.copyTo(b, *w)
	b.Places = 0
	src.lo, src.hi = 0, len(b.Times)
	if src.hi == 0 {
		return false
	}
	if w.newestFirst {
		w.End = b.Times[0]
	} else {
		w.Start = b.Times[src.hi-1] + 1
	}
	return true
}

func (sc *scanner) fromFile(src *source) error {
	at, w := src.at, &src.window
	if w.newestFirst {
		src.end--
		at = src.end
	} else {
		src.at++
	}
	e := &src.list[at]
	b := &src.block
	if err := src.file.file.Read(e, &sc.decoder, b); err != nil {
		return err
	}
	if e.Flags&samples.HasVersions != 0 && !w.versions {
		latest(b)
	}
	src.lo, src.hi = 0, len(b.Times)
	if !e.Covered(w.Range) {
		src.lo, src.hi = within(b.Times, w.Range)
	}
	return nil
}

// hide takes the rows out of the block that were deleted since they were stored.
func (src *source) hide() {
	for _, g := range src.hidden {
		b := &src.block
		lo, hi := within(b.Times[src.lo:src.hi], g.Range)
		if lo == hi {
			continue
		}
		lo, hi = lo+src.lo, hi+src.lo
		cutRows(b, lo, hi)
		src.hi -= hi - lo
	}
}

// within returns the indexes of ascending times that lie in r.
func within(times []core.Time, r core.Range) (lo, hi int) {
	if r.Empty() {
		return 0, 0
	}
	lo = sort.Search(len(times), func(i int) bool { return times[i] >= r.Start })
	hi = lo + sort.Search(len(times)-lo, func(i int) bool { return times[lo+i] >= r.End })
	return lo, hi
}

// cutRows removes rows lo to hi of a block.
func cutRows(b *core.Block, lo, hi int) {
	b.Times, b.Values = slices.Delete(b.Times, lo, hi), slices.Delete(b.Values, lo, hi)
	b.Texts = cutSide(b.Texts, lo, hi, func(e *core.TextAt) *uint32 { return &e.Index })
	b.Decimals = cutSide(b.Decimals, lo, hi, func(e *core.DecimalAt) *uint32 { return &e.Index })
	b.Versions = cutSide(b.Versions, lo, hi, func(e *core.VersionAt) *uint32 { return &e.Index })
}

func cutSide[E any](list []E, lo, hi int, index func(*E) *uint32) []E {
	kept := list[:0]
	for _, e := range list {
		switch at := index(&e); {
		case int(*at) < lo:
			kept = append(kept, e)
		case int(*at) >= hi:
			*at -= uint32(hi - lo)
			kept = append(kept, e)
		}
	}
	return kept
}

// latest leaves the last of the rows of each time.
func latest(b *core.Block) {
	for i := len(b.Times) - 1; i > 0; {
		j := i
		for j > 0 && b.Times[j-1] == b.Times[i] {
			j--
		}
		if j < i {
			cutRows(b, j, i)
		}
		i = j - 1
	}
}

// next returns the next rows of the series that is open, in the direction of the window; false at the end. They are valid until the next call.
func (sc *scanner) next(w window) (b *core.Block, ok bool, err error) {
	resetBlock(&sc.out)
	for {
		best, edge, ok, err := sc.choose(w)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return &sc.out, len(sc.out.Times) > 0, nil
		}
		src := &sc.sources[best]
		lo, hi := src.run(edge, w)
		whole := sc.count == 1 || hi-lo >= blockLength/8 || w.newestFirst
		if whole && len(sc.out.Times) > 0 {
			return &sc.out, true, nil // and the run with the next call
		}
		src.take(lo, hi, w)
		sc.skip(best, src.block.Times[lo], src.block.Times[hi-1], w)
		if whole {
			return cut(&sc.part, &src.block, lo, hi), true, nil
		}
		appendRows(&sc.out, &src.block, lo, hi)
		if len(sc.out.Times) >= blockLength {
			return &sc.out, true, nil
		}
	}
}

// choose returns the source whose rows come next - of equal times the newest layer - and the edge of its run: a time that rows of another source have.
func (sc *scanner) choose(w window) (best int, edge core.Time, ok bool, err error) {
	edge = math.MaxInt64
	if w.newestFirst {
		edge = math.MinInt64
	}
	best = -1
	var first core.Time
	for i := range sc.count {
		src := &sc.sources[i]
		more, err := sc.fill(src)
		if err != nil {
			return 0, 0, false, err
		}
		if !more {
			continue
		}
		t := src.first(w)
		switch {
		case best < 0:
			best, first = i, t
		case before(t, first, w):
			edge = first
			best, first = i, t
		case before(t, edge, w):
			edge = t
		}
	}
	return best, edge, best >= 0, nil
}

func before(a, b core.Time, w window) bool {
	if w.newestFirst {
		return a > b
	}
	return a < b
}

// first is the time of the row that comes next.
func (src *source) first(w window) core.Time {
	if w.newestFirst {
		return src.block.Times[src.hi-1]
	}
	return src.block.Times[src.lo]
}

// run returns the rows of the source up to the edge: those of the edge itself, when they come first, belong to it, since the layer is the newest one that has them.
func (src *source) run(edge core.Time, w window) (lo, hi int) {
	times := src.block.Times
	if src.first(w) == edge {
		lo, hi = within(times[src.lo:src.hi], core.Range{Start: edge, End: edge + 1})
	} else if w.newestFirst {
		lo = sort.Search(src.hi-src.lo, func(i int) bool { return times[src.lo+i] > edge })
		hi = src.hi - src.lo
	} else {
		hi = sort.Search(src.hi-src.lo, func(i int) bool { return times[src.lo+i] >= edge })
	}
	return lo + src.lo, hi + src.lo
}

// take notes that rows lo to hi, which come next, are used.
func (src *source) take(lo, hi int, w window) {
	if w.newestFirst {
		src.hi = lo
	} else {
		src.lo = hi
	}
}

// skip passes over what older layers have at the times of rows that were taken: the only ones they share with them are at the ends of a run.
func (sc *scanner) skip(taken int, from, to core.Time, w window) {
	for i := range sc.count {
		src := &sc.sources[i]
		if i == taken || src.lo == src.hi {
			continue
		}
		for src.lo < src.hi {
			if t := src.first(w); t < from || t > to {
				break
			}
			if w.newestFirst {
				src.hi--
			} else {
				src.lo++
			}
		}
	}
}

// cut returns rows lo to hi of b, which is b itself or p, which then shares the columns of b.
func cut(p, b *core.Block, lo, hi int) *core.Block {
	if lo == 0 && hi == len(b.Times) {
		return b
	}
	resetBlock(p)
	p.Texts = appendSide(p.Texts, b.Texts, lo, hi, 0, func(e *core.TextAt) *uint32 { return &e.Index })
	p.Decimals = appendSide(p.Decimals, b.Decimals, lo, hi, 0, func(e *core.DecimalAt) *uint32 { return &e.Index })
	p.Versions = appendSide(p.Versions, b.Versions, lo, hi, 0, func(e *core.VersionAt) *uint32 { return &e.Index })
	p.Times, p.Values, p.Places = b.Times[lo:hi:hi], b.Values[lo:hi:hi], b.Places
	return p
}

func appendRows(dst, b *core.Block, lo, hi int) {
	base := len(dst.Times)
	dst.Times, dst.Values = append(dst.Times, b.Times[lo:hi]...), append(dst.Values, b.Values[lo:hi]...)
	dst.Texts = appendSide(dst.Texts, b.Texts, lo, hi, base, func(e *core.TextAt) *uint32 { return &e.Index })
	dst.Decimals = appendSide(dst.Decimals, b.Decimals, lo, hi, base, func(e *core.DecimalAt) *uint32 { return &e.Index })
	dst.Versions = appendSide(dst.Versions, b.Versions, lo, hi, base, func(e *core.VersionAt) *uint32 { return &e.Index })
}

// appendSide appends the entries of rows lo to hi, which become rows from base on.
func appendSide[E any](dst, list []E, lo, hi, base int, index func(*E) *uint32) []E {
	if len(list) == 0 {
		return dst
	}
	at := sort.Search(len(list), func(i int) bool { return int(*index(&list[i])) >= lo })
	for ; at < len(list) && int(*index(&list[at])) < hi; at++ {
		e := list[at]
		*index(&e) += uint32(base - lo)
		dst = append(dst, e)
	}
	return dst
}

// resetBlock empties the columns of b and keeps their memory, unless it may be that of another block.
func resetBlock(b *core.Block) {
	b.Times, b.Values, b.Texts, b.Decimals, b.Versions = b.Times[:0], b.Values[:0], b.Texts[:0], b.Decimals[:0], b.Versions[:0]
	b.Places = 0
}

// unreadable reports that a file of samples could not be read, and returns what the reader is told. A file whose bytes the disk does not give any more is set
// aside by the worker; one with a bad block serves its others.
func (st *state) unreadable(f *sampleFile, err error) error {
	if errors.Is(err, vfs.ErrFault) {
		select {
		case st.faulty <- f:
		default: // the worker has enough to do: the next reader reports it again
		}
	}
	return damaged(err)
}

// damaged says in the terms of core that what was stored cannot be read.
func damaged(err error) error {
	text := "what is stored cannot be read: run tidemark check, and restore the file that it names"
	if file := unreadableFile(err); file != "" {
		text = "what is stored in " + file + " cannot be read: run tidemark check, and restore the file"
	}
	return core.Wrap(core.Unavailable, err, text)
}

// newest returns the time of the newest sample of a series; ok is false when it has none.
func (sc *scanner) newest(id index.ID) (t core.Time, ok bool, err error) {
	w := window{Range: core.AllTime, newestFirst: true}
	if err := sc.open(id, w); err != nil {
		return 0, false, err
	}
	if !sc.buriedAny() {
		for i := range sc.count {
			if last, some := sc.sources[i].last(); some {
				t, ok = max(t, last), true
			}
		}
		return t, ok, nil
	}
	b, ok, err := sc.next(w)
	if err != nil || !ok {
		return 0, false, err
	}
	return b.Times[len(b.Times)-1], true, nil
}

// has reports whether a series has a sample in r.
func (sc *scanner) has(id index.ID, r core.Range) (bool, error) {
	w := window{Range: r}
	if err := sc.open(id, w); err != nil {
		return false, err
	}
	if !sc.buriedAny() {
		for i := range sc.count {
			if sc.sources[i].surely(r) {
				return true, nil
			}
		}
	}
	_, ok, err := sc.next(w)
	return ok, err
}

// buriedAny reports whether any layer has something hidden.
func (sc *scanner) buriedAny() bool {
	for i := range sc.count {
		if len(sc.sources[i].hidden) > 0 {
			return true
		}
	}
	return false
}

// last returns the time of the newest row that the source holds, before it is read.
func (src *source) last() (core.Time, bool) {
	if src.series != nil {
		return src.series.newest()
	}
	return src.list[src.end-1].Last, true
}

// surely reports whether the source is known to have a row in r without decoding a block.
func (src *source) surely(r core.Range) bool {
	if src.series != nil {
		return src.series.has(r)
	}
	for i := range src.list {
		if e := &src.list[i]; r.Contains(e.First) || r.Contains(e.Last) {
			return true
		}
	}
	return false
}

// layered reports whether a layer below the active generation holds anything of the series that is open.
func (sc *scanner) layered() bool {
	for i := range sc.count {
		if s := sc.sources[i].series; s == nil || s != sc.view.active.get(s.id) {
			return true
		}
	}
	return false
}

// plain reports whether the source has numbers alone.
func (src *source) plain() bool {
	if src.series != nil {
		return src.series.numbersAlone()
	}
	for i := range src.list {
		if src.list[i].Flags&(samples.HasSides|samples.HasVersions) != 0 {
			return false
		}
	}
	return true
}

// pieces yields what a series has in the range of a query, without reading what its directory may answer.
func (sc *scanner) pieces(id index.ID, r core.Range) iter.Seq2[core.Piece, error] {
	return func(yield func(core.Piece, error) bool) {
		w := window{Range: r}
		if w.Empty() {
			return
		}
		if err := sc.open(id, w); err != nil {
			yield(core.Piece{}, err)
			return
		}
		var stats core.Stats
		for {
			if src := sc.whole(r); src != nil {
				e := &src.list[src.at]
				stats = core.Stats{Count: int64(e.Stats.Count), Sum: e.Stats.Sum, Min: e.Stats.Min, Max: e.Stats.Max, First: e.Stats.First, Last: e.Stats.Last,
					FirstTime: e.Stats.FirstTime, LastTime: e.Stats.LastTime, MinTime: e.Stats.MinTime, MaxTime: e.Stats.MaxTime,
					Rows: int64(e.Count), Decimals: -1}
				before := src.at
				rows := func() (*core.Block, error) {
					if src.at == before { // otherwise it was read already
						if err := sc.fromFile(src); err != nil {
							return nil, sc.state.unreadable(src.file, err)
						}
						src.lo = src.hi
					}
					return &src.block, nil
				}
				values := func() (list []float64, err error) {
					src.block.Values, err = src.file.file.Values(&src.list[before], &sc.decoder, src.block.Values)
					if err != nil {
						err = sc.state.unreadable(src.file, err)
					}
					return src.block.Values, err
				}
				if !yield(core.Piece{Stats: &stats, Rows: rows, Values: values}, nil) {
					return
				}
				src.at = before + 1
				continue
			}
			b, ok, err := sc.next(w)
			if err != nil {
				yield(core.Piece{}, err)
				return
			}
			if !ok || !yield(core.Piece{Rows: func() (*core.Block, error) { return b, nil }}, nil) {
				return
			}
		}
	}
}

// whole returns the source whose next block is what comes next as a whole, with its stats; nil when there is none.
func (sc *scanner) whole(r core.Range) *source {
	for i := range sc.count {
		src := &sc.sources[i]
		if src.series != nil || src.lo < src.hi || src.at == src.end || len(src.hidden) > 0 {
			continue
		}
		e := &src.list[src.at]
		if e.Flags&samples.HasStats == 0 || !e.Covered(r) {
			continue
		}
		alone := true
		for j := range sc.count {
			if t, some := sc.sources[j].upcoming(); j != i && some && t <= e.Last {
				alone = false
				break
			}
		}
		if alone {
			return src
		}
	}
	return nil
}

// upcoming returns a time before which the source, which is read forwards, has no more rows.
func (src *source) upcoming() (core.Time, bool) {
	switch {
	case src.lo < src.hi:
		return src.block.Times[src.lo], true
	case src.series == nil:
		return src.list[min(src.at, len(src.list)-1)].First, src.at < src.end
	case src.window.Empty():
		return 0, false
	}
	return src.series.from(src.window.Start)
}
