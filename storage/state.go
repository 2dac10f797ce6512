package storage

import (
	"errors"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/invariant"
	"github.com/tidemark-db/tidemark/storage/index"
)

// state is everything that readers see. One appender at a time changes it, in the order of the journal; readers run beside it.
//
// Locks: DB.mu comes first and orders appends. Below it every lock is a leaf - those of the series table, of the index, of one series, of the
// catalog, of each sorted list and of the ring - so none of them is ever held while another is taken, nor while a reader's caller runs.
type state struct {
	index   *index.Index
	catalog *catalog
	msgs    *messages
	props   *properties
	history *history

	mu     sync.RWMutex // guards the slice; see all
	series []*series    // by id; a removed series stays, without samples

	removals uint64    // series that the appender has removed: what was resolved before one may be gone
	resolved []*series // of the batch that was applied last, by key; nil for a key without samples

	// Scratch of the appender.
	ids     []index.ID
	scratch []*series // what resolved is, unless that came with the keys
}

// series is one series and what its samples need to know.
type series struct {
	id     index.ID
	key    core.SeriesKey
	metric *metric
	entity *entity

	measured bool // not a forecast

	mu   sync.RWMutex // guards head
	head head
}

func newState(cacheBytes int) *state {
	return &state{
		index:   index.New(cacheBytes),
		catalog: newCatalog(),
		msgs:    &messages{sorted: sorted[message]{compare: compareMessages}},
		props:   &properties{sorted[core.PropertyRecord]{compare: compareRecords}},
		history: &history{rows: sorted[historyRow]{compare: compareRows}, events: map[string]struct{}{}},
		series:  make([]*series, 1), // id 0 is no series
	}
}

// all returns the series by id. The slice only grows and its elements are set once, so it may be read without a lock.
func (st *state) all() []*series {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.series
}

// apply makes the stored batch b visible. The parts take effect in one order: documents, series deletes, property deletes, samples, messages,
// properties, alerts. The caller has dropped replays and checked the documents, and laid out the keys of b; an error is a record that could not be
// applied, and the others were.
func (st *state) apply(b *core.Batch, keys *encoder) error {
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
			st.props.remove(&core.PropertyRecord{PropertyKey: k})
		}
	}
	st.write(b, keys)
	for _, m := range b.Messages {
		st.catalog.ensureEntity(st.catalog.entity(m.Entity), m.Entity, b.Received)
		st.msgs.add(m, b.Received)
	}
	for _, p := range b.Properties {
		if p.Type != core.EntityTagsType {
			st.props.merge(p)
		} else { // keys and tags alike become tags of the entity; those that it comes with are no change of it
			note(st.catalog.patchTags(p.Entity, append(p.Key[:len(p.Key):len(p.Key)], p.Tags...), b.Received))
		}
		st.catalog.ensureEntity(st.catalog.entity(p.Entity), p.Entity, b.Received)
	}
	for _, c := range b.Alerts {
		st.history.add(c)
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
		st.props.forget(c.Key)
		return st.catalog.replaceMember(c.Key, "", now)
	}
	return nil
}

func (st *state) dropAll(ids []index.ID) {
	for _, id := range ids {
		s := st.series[id]
		s.mu.Lock()
		last, some := s.head.newest()
		s.head = head{}
		s.mu.Unlock()
		st.remove(id)
		if some {
			s.forgotten(last)
		}
	}
}

// remove ends a series, which has no samples any more.
func (st *state) remove(id index.ID) {
	st.index.Remove(id)
	st.removals++
}

// deleteSamples deletes a range of one series; a series without samples does not exist.
func (st *state) deleteSamples(d core.SeriesDelete) {
	id := st.index.Lookup(d.Key.Append(nil))
	if id == index.None {
		return
	}
	s := st.series[id]
	s.mu.Lock()
	before, had := s.head.newest()
	s.head.delete(d.Range)
	last, some := s.head.newest()
	s.mu.Unlock()
	if !some {
		st.remove(id)
	}
	if had && (!some || last < before) {
		s.forgotten(before)
	}
}

// write stores the samples. Samples of one series that follow each other share a lock.
func (st *state) write(b *core.Batch, keys *encoder) {
	if b.Samples.Len() == 0 {
		return
	}
	st.lookup(keys)
	in := sides{batch: &b.Samples}
	for i := 0; i < b.Samples.Len(); {
		ref := b.Samples.Series[i]
		s := st.resolved[ref]
		if s == nil {
			s = st.resolve(keys, ref)
			st.catalog.ensureMetric(s.metric, s.key.Metric, in.versioningOf(i), b.Received)
			st.catalog.ensureEntity(s.entity, s.key.Entity, b.Received)
		}
		doc := s.metric.doc.Load()
		last := b.Samples.Times[i]
		s.mu.Lock()
		for ; i < b.Samples.Len() && b.Samples.Series[i] == ref; i++ {
			s.head.put(in.take(i, doc.Versioned, b.Received))
			last = max(last, b.Samples.Times[i])
		}
		s.mu.Unlock()
		s.written(last)
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
	st.index.LookupAll(keys.arena, keys.ends, st.ids)
}

// resolve returns the series of a key, made when there is none.
func (st *state) resolve(keys *encoder, ref uint32) *series {
	var s *series
	if id := st.ids[ref]; id != index.None {
		s = st.series[id]
	} else if id = st.index.Lookup(keys.key(ref)); id != index.None { // a key that is in the batch twice
		s = st.series[id]
	} else {
		s = st.create(string(keys.key(ref)))
	}
	st.resolved[ref] = s
	return s
}

func (st *state) create(canonical string) *series {
	key, _ := parseKey(canonical) // made by SeriesKey.Append, and names cannot hold separators
	s := &series{key: key, metric: st.catalog.metric(key.Metric), entity: st.catalog.entity(key.Entity)}
	_, kind, _, _ := key.Store()
	s.measured = kind == core.Measured
	// The slice comes first: who finds the id in the index finds the series.
	st.mu.Lock()
	s.id = index.ID(len(st.series))
	st.series = append(st.series, s)
	st.mu.Unlock()
	id := st.index.Add(canonical)
	if invariant.Enabled {
		invariant.Check(id == s.id, "series %q has id %d in the index and %d in the table", canonical, id, s.id)
	}
	return s
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
