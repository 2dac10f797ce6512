package storage

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/samples"
)

// state is everything that readers see. One appender at a time changes it, in the order of the journal; readers run beside it.
//
// Locks: DB.mu comes first and orders appends. Below it every lock is a leaf - those of the views, of the graves, of the index, of one series, of the
// catalog, of each sorted list and of the ring - so none of them is ever held while another is taken, nor while a reader's caller runs.
type state struct {
	index   *index.Index // nil until its runs are open
	runs    []*index.Run // of the index, until then
	unknown index.ID     // below it there may be series that the index does not know, since a run was lost
	catalog *catalog
	msgs    *messages
	props   *properties
	history *history

	views  views[generation, *samples.File]
	pages  samples.Pages // of the directories of their files
	graves graves
	ended  atomic.Uint64    // series that were removed since Open, plus one
	faulty chan *sampleFile // that the disk does not give any more; the worker sets them aside

	// What follows is the appender's.

	active   *generation // of the current view
	older    core.Time   // no layer below the active generation has a sample after it
	removals uint64      // series that were removed, and freezes: what was resolved before one may be gone
	resolved []*series   // of the batch that was applied last, by key; nil for a key without samples
	scanner  *scanner    // see stored
	faults   []error     // of older layers, met while writing; the worker reports them

	// Scratch of the appender.
	ids     []index.ID
	key     []byte
	times   []core.Time
	grouped grouped
	scratch []*series // what resolved is, unless that came with the keys
}

// newState is the state that a manifest leaves off at, without its files.
func newState(opts Options, m manifest) *state {
	st := &state{
		catalog: newCatalog(),
		msgs:    newMessages(opts, m),
		props:   newProperties(),
		history: newHistory(m.Counters.History),
		active:  newGeneration(m.Generation),
		older:   settledNone,
		faulty:  make(chan *sampleFile, 1),
	}
	st.catalog.versions = opts.Versions
	st.graves.byID = newGraves(m.Graves)
	st.views.failed = func(err error) { opts.Log("storage: a file that is not in use any more: " + err.Error()) }
	st.msgs.views.failed = st.views.failed
	st.ended.Store(1)
	st.active.removals = 1
	st.views.change(func(next *view) { next.active = st.active })
	return st
}

// shelves are where the state goes from memory.
func (st *state) shelves(db *DB) []shelf {
	return append([]shelf{newIndexShelf(db), sampleShelf{db}, messageShelf{db}}, st.tableShelves(db)...)
}

// load completes the state when its files are open.
func (st *state) load(report *Report) error {
	sortByAge(&st.views, report)
	sortByAge(&st.msgs.views, report)
	v := st.views.acquire()
	defer st.views.release(v)
	for _, f := range v.files {
		st.older = max(st.older, f.file.Range().End-1)
	}
	for _, f := range st.msgs.views.current.Load().files {
		st.msgs.older = max(st.msgs.older, f.file.Newest())
	}
	st.catalog.load(report)
	return nil
}

// counters are where the numbers of arrival have come to.
func (st *state) counters() counters {
	return counters{Messages: st.msgs.arrivals, History: st.history.arrivals}
}

// stamp puts what is kept aside of the records among them, before they are frozen.
func (st *state) stamp() {}

// fresh is about how many bytes of the state are in no file nor frozen, unwritten those that are in no file.
func (st *state) fresh() int64 {
	_, messages := st.msgs.memory()
	_, tables := st.tableBytes()
	return st.views.current.Load().active.bytes.Load() + st.index.Bytes() + messages + tables
}

func (st *state) unwritten() int64 {
	v := st.views.current.Load()
	messages, _ := st.msgs.memory()
	tables, _ := st.tableBytes()
	n := v.active.bytes.Load() + st.index.Bytes() + messages + tables
	if v.frozen != nil {
		n += v.frozen.bytes.Load()
	}
	return n
}

// apply makes the stored batch b visible. The parts take effect in one order: documents, series deletes, property deletes, samples, messages,
// properties, alerts. The caller has dropped replays and checked the documents, and laid out the keys of b; an error is a record that could not be
// applied, and the others were.
func (st *state) apply(b *core.Batch, keys *encoder) error {
	defer st.letGo()
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, c := range b.Documents {
		note(st.change(c, b.Received))
	}
	for _, d := range b.Series {
		st.deleteSamples(d)
	}
	for _, k := range b.Removed {
		if k.Type != core.EntityTagsType {
			note(st.props.remove(k))
		}
	}
	st.write(b, keys)
	for _, m := range b.Messages {
		st.catalog.ensureEntity(st.catalog.entity(m.Entity), b.Received)
		note(st.msgs.add(m, b.Received))
	}
	for _, p := range b.Properties {
		if p.Type != core.EntityTagsType {
			note(st.props.merge(p))
		} else { // keys and tags alike become tags of the entity; those that it comes with are no change of it
			note(st.catalog.patchTags(p.Entity, append(p.Key[:len(p.Key):len(p.Key)], p.Tags...), b.Received))
		}
		st.catalog.ensureEntity(st.catalog.entity(p.Entity), b.Received)
	}
	for _, c := range b.Alerts {
		note(st.history.add(c))
	}
	return errors.Join(errs...)
}

// change applies one document change. Deleting an entity or a metric deletes its data; alert history stays.
func (st *state) change(c core.DocChange, now core.Time) error {
	if c.Op == core.DocRename {
		return st.rename(c, now)
	}
	deleted, err := st.catalog.apply(c, now)
	if err != nil || !deleted {
		return err
	}
	switch c.Kind {
	case core.DocMetric:
		st.dropAll(st.index.Select(c.Key, nil))
	case core.DocEntity:
		st.dropAll(st.index.Select("", []string{c.Key}))
		st.msgs.forget(c.Key)
		if err := st.props.forget(c.Key); err != nil {
			return err
		}
		return st.catalog.replaceMember(c.Key, "", now)
	}
	return nil
}

func (st *state) dropAll(ids []index.ID) {
	sc := st.stored()
	for _, id := range ids {
		key, known := st.keyOf(sc.view, id, nil)
		last, some, err := sc.newest(id)
		st.fault(err)
		st.remove(id)
		if some && known {
			st.forgotten(&key, last)
		}
	}
}

// look returns a scanner of the current view, and what gives both back.
func (st *state) look() (*scanner, func()) {
	v := st.views.acquire()
	sc := newScanner(v, st)
	return sc, func() {
		sc.close()
		st.views.release(v)
	}
}

// stored returns the scanner that serves the appender until the batch is applied: it remembers where in the files the series before was.
func (st *state) stored() *scanner {
	if st.scanner == nil {
		st.scanner = newScanner(st.views.acquire(), st)
	}
	return st.scanner
}

// letGo gives back what stored took.
func (st *state) letGo() {
	if st.scanner != nil {
		v := st.scanner.view
		st.scanner.close()
		st.views.release(v)
		st.scanner = nil
	}
}

// fault keeps an error of reading what is stored; the write goes on without it.
func (st *state) fault(err error) {
	if err != nil && len(st.faults) < maxListed {
		st.faults = append(st.faults, err)
	}
}

// remove ends a series. What layers hold of it is not found any more, and goes with the next compaction.
func (st *state) remove(id index.ID) {
	st.index.Remove(id)
	st.ended.Add(1)
	if s := st.active.get(id); s != nil {
		st.active.set(id, nil)
		s.mu.Lock()
		s.head = head{}
		s.mu.Unlock()
	}
	st.removals++
}

// deleteSamples deletes a range of one series; a series without samples does not exist.
func (st *state) deleteSamples(d core.SeriesDelete) {
	id := st.index.Lookup(d.Key.Append(nil))
	if id == index.None {
		return
	}
	sc := st.stored()
	before, had, err := sc.newest(id)
	st.fault(err)
	st.fault(sc.open(id, window{Range: d.Range}))
	if sc.layered() {
		st.graves.add(id, grave{d.Range, st.active.number})
	}
	if s := st.active.get(id); s != nil {
		s.mu.Lock()
		s.head.delete(d.Range)
		s.mu.Unlock()
	}
	last, some, err := sc.newest(id)
	st.fault(err)
	if !some && err == nil {
		st.remove(id)
	}
	if had && (!some || last < before) {
		st.forgotten(&d.Key, before)
	}
}

// write stores the samples.
func (st *state) write(b *core.Batch, keys *encoder) {
	if b.Samples.Len() == 0 {
		return
	}
	st.lookup(keys)
	if s := &b.Samples; len(s.Texts)+len(s.Decimals)+len(s.Versions) == 0 {
		st.writeNumbers(b, keys)
		return
	}
	in := sides{batch: &b.Samples}
	for i := 0; i < b.Samples.Len(); {
		s := st.of(b, keys, b.Samples.Series[i], in.versioningOf(i))
		i = st.writeRun(s, &in, i, b.Received)
	}
}

// of returns the series of a key of the batch, made with its metric and entity when there is none.
func (st *state) of(b *core.Batch, keys *encoder, ref uint32, v versioning) *series {
	s := st.resolved[ref]
	if s == nil {
		s = st.resolve(keys, ref)
		st.catalog.ensureMetric(s.metric, v, b.Received)
		st.catalog.ensureEntity(s.entity, b.Received)
	}
	return s
}

// grouped is the samples of a batch by series: those of key r are from ends[r-1] to ends[r]. The appender's scratch.
type grouped struct {
	ends   []uint32
	times  []core.Time
	values []float64
}

// writeNumbers stores samples that are numbers alone, each series at once: a client sends ten series a line, and to change between them with each sample
// costs several times as much as to copy the columns.
func (st *state) writeNumbers(b *core.Batch, keys *encoder) {
	g, in := &st.grouped, &b.Samples
	n := in.Len()
	g.ends = slices.Grow(g.ends[:0], len(b.Keys)+1)[:len(b.Keys)+1]
	clear(g.ends)
	for _, ref := range in.Series {
		if g.ends[ref+1]++; g.ends[ref+1] == 1 {
			st.of(b, keys, ref, notVersioned) // in the order in which they come, which is that of their numbers
		}
	}
	for r := 1; r < len(g.ends); r++ {
		g.ends[r] += g.ends[r-1]
	}
	g.times, g.values = slices.Grow(g.times[:0], n)[:n], slices.Grow(g.values[:0], n)[:n]
	for i, ref := range in.Series {
		at := g.ends[ref]
		g.ends[ref]++
		v := in.Values[i]
		if in.Flags[i]&core.HasValue == 0 {
			v = math.NaN()
		}
		g.times[at], g.values[at] = in.Times[i], v
	}
	from := uint32(0)
	for ref := range b.Keys {
		if to := g.ends[ref]; from < to {
			st.writeColumns(st.resolved[ref], g.times[from:to], g.values[from:to], b.Received)
			from = to
		}
	}
}

// writeColumns stores numbers of one series.
func (st *state) writeColumns(s *series, times []core.Time, values []float64, now core.Time) {
	versioned := s.metric.doc.Load().versioned
	if slices.Min(times) <= st.older && (versioned || !st.plain(s)) {
		st.revive(s, times)
	}
	bytes := int64(sampleBytes * len(times))
	s.mu.Lock()
	if versioned {
		st.active.mixed = true
		for i, t := range times {
			w := write{time: t, value: values[i], flags: core.HasValue, version: &version{written: now}}
			s.head.put(w)
			bytes += w.bytes() - sampleBytes
		}
	} else {
		s.head.putNumbers(times, values)
	}
	s.mu.Unlock()
	last := slices.Max(times)
	st.active.note(last, int64(len(times)), bytes)
	st.written(s, last)
}

// writeRun writes sample i and those behind it that are of the same series, and returns where the next one begins.
func (st *state) writeRun(s *series, in *sides, i int, now core.Time) int {
	all, first := in.batch, i
	end, earliest, last := i, all.Times[i], all.Times[i]
	for end < all.Len() && all.Series[end] == all.Series[i] {
		earliest, last = min(earliest, all.Times[end]), max(last, all.Times[end])
		end++
	}
	versioned := s.metric.doc.Load().versioned
	if earliest <= st.older && (versioned || in.textBefore(end) || !st.plain(s)) {
		st.revive(s, all.Times[first:end])
	}
	bytes := int64(0)
	s.mu.Lock()
	for ; i < end; i++ {
		w := in.take(i, versioned, now)
		st.active.mixed = st.active.mixed || w.text != nil || w.decimal != nil || w.version != nil
		s.head.put(w)
		bytes += w.bytes()
	}
	s.mu.Unlock()
	st.active.note(last, int64(end-first), bytes)
	st.written(s, last)
	return end
}

// plain reports whether older layers hold nothing but numbers of a series: then a number simply takes the place of another.
func (st *state) plain(s *series) bool {
	if numbersAlone(st.views.current.Load()) {
		return true
	}
	st.settle(s)
	return s.plain
}

// numbersAlone reports whether the layers below the active generation are known to hold nothing but numbers, of any series. The appender asks.
func numbersAlone(v *view) bool {
	if v.frozen != nil && v.frozen.mixed {
		return false
	}
	for _, f := range v.files {
		if !f.file.Facts.Numbers {
			return false
		}
	}
	return true
}

// settle finds out what older layers hold of a series, unless that is known.
func (st *state) settle(s *series) {
	if s.settled != settledUnknown {
		return
	}
	sc := st.stored()
	s.settled, s.plain = settledNone, true
	if err := sc.open(s.id, window{Range: core.AllTime}); err != nil {
		st.fault(err)
		return
	}
	for i := range sc.count {
		src := &sc.sources[i]
		if src.series == s {
			continue
		}
		if last, some := src.last(); some {
			s.settled = max(s.settled, last)
		}
		s.plain = s.plain && src.plain()
	}
}

// revive brings what older layers hold at some times into the active generation, unless that has something there already: writes may build on it, to keep
// or extend a text, or as one more version.
func (st *state) revive(s *series, times []core.Time) {
	st.settle(s)
	st.times = st.times[:0]
	for _, t := range times {
		if t <= s.settled && !s.has(core.Range{Start: t, End: t + 1}) {
			st.times = append(st.times, t)
		}
	}
	if len(st.times) == 0 {
		return
	}
	slices.Sort(st.times)
	sc := st.stored()
	w := window{Range: core.Range{Start: st.times[0], End: st.times[len(st.times)-1] + 1}, versions: true}
	if err := sc.open(s.id, w); err != nil {
		st.fault(err)
		return
	}
	for {
		b, ok, err := sc.next(w)
		if err != nil || !ok {
			st.fault(err)
			return
		}
		s.mu.Lock()
		st.active.mixed = true
		for w := range writesOf(b) {
			if _, wanted := slices.BinarySearch(st.times, w.time); wanted {
				s.head.put(w)
			}
		}
		s.mu.Unlock()
	}
}

// writesOf yields the rows of a block as the writes that lead to them.
func writesOf(b *core.Block) iter.Seq[write] {
	return func(yield func(write) bool) {
		texts, decimals, versions := b.Texts, b.Decimals, b.Versions
		for i := range b.Times {
			w := write{time: b.Times[i], value: b.Values[i], flags: core.HasValue}
			if len(texts) > 0 && int(texts[0].Index) == i {
				w.text, texts = &texts[0].Text, texts[1:]
			}
			if len(decimals) > 0 && int(decimals[0].Index) == i {
				w.decimal, decimals = &decimals[0].Decimal, decimals[1:]
			}
			if len(versions) > 0 && int(versions[0].Index) == i {
				v := newVersion(&versions[0], 0)
				w.version, versions = &v, versions[1:]
			}
			if !yield(w) {
				return
			}
		}
	}
}

// lookup finds the ids of all keys at once, unless they come with their series. Series are made when a sample needs them.
func (st *state) lookup(keys *encoder) {
	if keys.series != nil && keys.removals == st.removals {
		st.resolved = keys.series
		return
	}
	n := len(keys.ends)
	if cap(st.ids) < n {
		st.ids, st.scratch = make([]index.ID, n), make([]*series, n)
	}
	st.ids, st.scratch = st.ids[:n], st.scratch[:n]
	st.resolved = st.scratch
	clear(st.resolved)
	st.index.LookupAll(keys.arena, keys.ends, st.ids, keys.sorted)
}

// resolve returns the series of a key, made when there is none.
func (st *state) resolve(keys *encoder, ref uint32) *series {
	id := st.ids[ref]
	if id == index.None { // a key that is in the batch twice may be known by now
		id = st.index.Lookup(keys.key(ref))
	}
	if id == index.None {
		id = st.index.Add(string(keys.key(ref)))
	}
	s := st.active.get(id)
	if s == nil {
		s = st.enter(id, keys.key(ref))
	}
	st.resolved[ref] = s
	return s
}

// enter makes a series of the active generation.
func (st *state) enter(id index.ID, canonical []byte) *series {
	s := st.newSeries(id, canonical)
	st.active.set(id, s)
	st.active.bytes.Add(seriesBytes + int64(len(canonical)))
	return s
}

// newSeries makes a series that nobody sees yet.
func (st *state) newSeries(id index.ID, canonical []byte) *series {
	s := st.active.blank()
	s.id, s.key = id, st.active.names.key(canonical)
	if old := st.views.current.Load().frozen.get(id); old != nil {
		known := old.metric.doc.Load() != nil && old.entity.doc.Load() != nil // neither was renamed, there and back
		if st.key = old.key.Append(st.key[:0]); known && bytes.Equal(st.key, canonical) {
			s.metric, s.entity, s.measured = old.metric, old.entity, old.measured
			return s
		}
	}
	s.metric, s.entity = st.catalog.metric(s.key.Metric), st.catalog.entity(s.key.Entity)
	s.measured = s.key.IsMeasured()
	return s
}

// keyOf returns the key of a series; false when it is gone. buf is scratch.
func (st *state) keyOf(v *view, id index.ID, buf []byte) (core.SeriesKey, bool) {
	canonical, ok := st.index.Key(id, buf[:0])
	if !ok {
		return core.SeriesKey{}, false
	}
	return seriesKey(v, id, canonical)
}

// seriesKey is the key whose canonical form is given: in memory that others have as well, when the series is active.
func seriesKey(v *view, id index.ID, canonical []byte) (core.SeriesKey, bool) {
	if s := v.active.get(id); s != nil {
		return s.key, true
	}
	return parseKey(string(canonical))
}

// sides walks the sparse columns beside the samples.
type sides struct {
	batch                     *core.Samples
	texts, decimals, versions int // next entry of each
	version                   version
}

// versioningOf looks ahead at sample i, which is the next one that take is asked for.
func (in *sides) versioningOf(i int) versioning {
	if v := in.batch.Versions; in.versions < len(v) && int(v[in.versions].Index) == i {
		return isVersioned
	}
	return notVersioned
}

// textBefore reports whether a sample before i, of those that are not taken yet, has a text.
func (in *sides) textBefore(i int) bool {
	t := in.batch.Texts
	return in.texts < len(t) && int(t[in.texts].Index) < i
}

// take returns sample i as a write. Samples are taken in order.
func (in *sides) take(i int, versioned bool, now core.Time) write {
	s := in.batch
	w := write{time: s.Times[i], value: s.Values[i], flags: s.Flags[i]}
	if in.texts < len(s.Texts) && int(s.Texts[in.texts].Index) == i {
		w.text = &s.Texts[in.texts].Text
		in.texts++
	}
	if in.decimals < len(s.Decimals) && int(s.Decimals[in.decimals].Index) == i {
		w.decimal = &s.Decimals[in.decimals].Decimal
		in.decimals++
	}
	has := in.versioningOf(i) == isVersioned
	if versioned {
		in.version = version{written: now}
		w.version = &in.version
	}
	if has {
		v := &s.Versions[in.versions]
		in.versions++
		if versioned {
			in.version = newVersion(v, now)
		}
	}
	return w
}
