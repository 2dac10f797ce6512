package storage

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/storage/events"
	"github.com/tidemark-db/tidemark/storage/index"
)

// What readers yield shares memory with the state, which replaces what it changes: it stays valid, except for a Block, and must not be written to.

// blockLength bounds the samples of a Block: 64 KiB of columns stay in the processor's cache while the caller works on them.
const blockLength = 4096

// found is a series that a query selects.
type found struct {
	id  index.ID
	key core.SeriesKey
}

// find yields the series that q selects, in key order, whatever samples they have. The list is made when the loop starts: series that come later
// are not in it, those that go have no samples any more.
func (db *DB) find(ctx context.Context, v *view, q core.SeriesQuery) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		entities, err := db.selection(q.Scope, q.Entities)
		if err != nil {
			yield(found{}, err)
			return
		}
		expr, err := entities.compile(filter.SeriesTags, q.TagExpression)
		if err != nil {
			yield(found{}, err)
			return
		}
		tags := newTagFilters(q.Tags)
		var env filter.TagsEnv
		faults := db.index.Faults()
		ids := db.index.Select(q.Metric, entities.withSeries())
		for n, canonical := range db.index.Keys(ids) {
			if err := cmp.Or(entities.err, ctx.Err()); err != nil {
				yield(found{}, err)
				return
			}
			id := ids[n]
			key, ok := seriesKey(v, id, canonical)
			if !ok {
				continue
			}
			if env.Tags, ok = q.InStore(&key); ok && entities.match(key.Entity) && tags.match(env.Tags) &&
				(!q.ExactTags || tags.cover(env.Tags)) && entities.test(expr, &env) {
				key.Tags = env.Tags
				if !yield(found{id, key}, nil) {
					return
				}
			}
		}
		err = entities.err
		if err == nil && db.index.Faults() > faults { // what cannot be read may be what was asked for
			err = damaged(db.index.Err())
		}
		if err != nil {
			yield(found{}, err)
		}
	}
}

// Series implements core.Reader. Blocks hold at most chunk.MaxSamples samples.
func (db *DB) Series(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return func(yield func(core.Block, error) bool) {
		v := db.views.acquire()
		defer db.views.release(v)
		sc := newScanner(v, db.state)
		defer sc.close()
		for f, err := range db.find(ctx, v, q) {
			if err != nil {
				yield(core.Block{}, err)
				return
			}
			for b, err := range sc.blocks(f.id, q) {
				if err = cmp.Or(err, ctx.Err()); err != nil {
					yield(core.Block{}, err)
					return
				}
				one := *b
				one.Key = f.key
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

// blocks yields the samples of a series that a query asks for.
func (sc *scanner) blocks(id index.ID, q core.SeriesQuery) iter.Seq2[*core.Block, error] {
	return func(yield func(*core.Block, error) bool) {
		w := window{Range: q.Range, newestFirst: q.NewestFirst, versions: q.Versions, most: blockLength}
		left := math.MaxInt
		if q.Limit > 0 {
			left = q.Limit
			w.most = min(w.most, left)
		}
		if w.Empty() {
			return
		}
		err := sc.open(id, w)
		for err == nil && left > 0 {
			var b *core.Block
			var ok bool
			if b, ok, err = sc.next(w); err != nil || !ok {
				break
			}
			b = sc.clip(b, left, w)
			left -= len(b.Times)
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// clip cuts a block to the limit.
func (sc *scanner) clip(b *core.Block, limit int, w window) *core.Block {
	n := len(b.Times)
	switch {
	case n <= limit:
		return b
	case w.newestFirst:
		return cut(&sc.clipped, b, n-limit, n)
	}
	return cut(&sc.clipped, b, 0, limit)
}

// Keys implements core.Reader: the series that have a sample in the range.
func (db *DB) Keys(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.KeyInfo, error] {
	return func(yield func(core.KeyInfo, error) bool) {
		v := db.views.acquire()
		defer db.views.release(v)
		sc := newScanner(v, db.state)
		defer sc.close()
		for f, err := range db.find(ctx, v, q) {
			info := core.KeyInfo{Key: f.key, Serial: uint64(f.id)}
			has := false
			if err == nil {
				has, err = sc.has(f.id, q.Range)
			}
			if has && err == nil {
				info.Last, has, err = sc.newest(f.id)
			}
			if err != nil {
				yield(core.KeyInfo{}, err)
				return
			}
			if has && !yield(info, nil) {
				return
			}
		}
	}
}

// scan passes the elements of a list that match to yield, at most limit of them (0 = all), until match says that it is over.
func scan[T, R any](ctx context.Context, list iter.Seq2[*T, error], limit int, match func(*T) (R, verdict, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var zero R
		n := 0
		for one, err := range list {
			var result R
			var v verdict
			if err == nil {
				result, v, err = match(one)
			}
			if err = cmp.Or(err, ctx.Err()); err != nil {
				yield(zero, err)
				return
			}
			switch v {
			case over:
				return
			case taken:
				if !yield(result, nil) {
					return
				}
				if n++; n == limit {
					return
				}
			}
		}
	}
}

// sound is a list that cannot fail.
func sound[T any](list iter.Seq[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one := range list {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// verdict is what a scan does with one element.
type verdict uint8

const (
	passed verdict = iota
	taken
	over
)

// failed is a query that ends at once.
func failed[R any](err error) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var zero R
		yield(zero, err)
	}
}

// Messages implements core.Reader. Messages that the promised order leaves equal come in order of arrival.
func (db *DB) Messages(ctx context.Context, q core.MessageQuery) iter.Seq2[core.Message, error] {
	entities, err := db.selection(q.Scope, q.Entities)
	if err != nil {
		return failed[core.Message](err)
	}
	expr, err := entities.compile(filter.Messages, q.Expression)
	if err != nil {
		return failed[core.Message](err)
	}
	if q.Range.Empty() {
		return none[core.Message]
	}
	tags := newTagFilters(q.Tags)
	live := db.msgs.live()
	want := events.Query{Range: q.Range, Entities: entities.names(), Type: q.Type, MinSeverity: q.MinSeverity, Severities: q.Severities}
	start := message{Message: core.Message{Time: q.Range.End - 1}}
	var found core.Message // and its tags, in memory that all candidates share
	return scan(ctx, db.msgs.from(&start, want), q.Limit, func(m *message) (core.Message, verdict, error) {
		if m.Time < q.Range.Start {
			return core.Message{}, over, nil
		}
		if m.received < live || q.Type != "" && q.Type != m.Type || q.Source != "" && q.Source != m.Source || m.Severity < q.MinSeverity ||
			len(q.Severities) > 0 && !slices.Contains(q.Severities, m.Severity) || !entities.match(m.Entity) {
			return core.Message{}, passed, entities.err
		}
		shared := m.unpackTags(found.Tags[:0])
		found = m.Message
		found.Tags = shared
		if !tags.match(found.Tags) || !entities.test(expr, filter.MessageEnv{Message: &found}) {
			return core.Message{}, passed, entities.err
		}
		one := found
		one.Tags = append(core.Tags(nil), found.Tags...)
		return one, taken, entities.err
	})
}

func none[R any](func(R, error) bool) {}

// Properties implements core.Reader. The reserved type yields the tags of the entities: a record each, with the time of the entity's last
// change, whatever the range; every type together leaves it out.
func (db *DB) Properties(ctx context.Context, q core.PropertyQuery) iter.Seq2[core.PropertyRecord, error] {
	entities, err := db.selection(q.Scope, q.Entities)
	if err != nil {
		return failed[core.PropertyRecord](err)
	}
	if q.Type == core.EntityTagsType {
		return db.entityTags(ctx, q, entities)
	}
	return scan(ctx, db.records(q, entities.names()), 0, func(r *core.PropertyRecord) (core.PropertyRecord, verdict, error) {
		if (q.Type == "" || q.Type == r.Type) && q.Range.Contains(r.Time) && matchKey(r.Key, q) && entities.match(r.Entity) {
			return *r, taken, entities.err
		}
		return core.PropertyRecord{}, passed, entities.err
	})
}

// records yields the records of the named entities, or all.
func (db *DB) records(q core.PropertyQuery, names []string) iter.Seq2[*core.PropertyRecord, error] {
	if names == nil {
		return db.props.all(q.Type)
	}
	return func(yield func(*core.PropertyRecord, error) bool) {
		for _, name := range names {
			for r, err := range db.props.of(name, q.Type) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

func matchKey(key core.Tags, q core.PropertyQuery) bool {
	if q.ExactKey {
		return key.Equal(q.Key)
	}
	for _, want := range q.Key {
		if value, ok := key.Get(want.Name); !ok || value != want.Value {
			return false
		}
	}
	return true
}

func (db *DB) entityTags(ctx context.Context, q core.PropertyQuery, entities *selection) iter.Seq2[core.PropertyRecord, error] {
	return scan(ctx, sound(db.catalog.entityNames.all()), 0, func(e *entity) (core.PropertyRecord, verdict, error) {
		doc := e.doc.Load()
		if doc == nil || doc.more == nil || len(q.Key) > 0 || !entities.match(e.name) {
			return core.PropertyRecord{}, passed, entities.err
		}
		tags := doc.tags()
		if len(tags) == 0 {
			return core.PropertyRecord{}, passed, nil
		}
		at := cmp.Or(doc.more.versioned, doc.created)
		r := core.PropertyRecord{PropertyKey: core.PropertyKey{Entity: e.name, Type: core.EntityTagsType}, Time: at}
		for _, tag := range tags {
			r.Tags = append(r.Tags, core.PropertyTag{Tag: tag, Time: at})
		}
		return r, taken, entities.err
	})
}

// AlertHistory implements core.Reader. Of equal times the row that was stored last comes first.
func (db *DB) AlertHistory(ctx context.Context, q core.AlertHistoryQuery) iter.Seq2[core.AlertRow, error] {
	entities, err := db.selection(q.Scope, q.Entities)
	if err != nil {
		return failed[core.AlertRow](err)
	}
	if q.Range.Empty() {
		return none[core.AlertRow]
	}
	rules, metrics := globs(q.Rules), globs(q.Metrics)
	return scan(ctx, db.history.within(q.Range), q.Limit, func(r *core.AlertRow) (core.AlertRow, verdict, error) {
		if (len(rules) == 0 || anyMatch(rules, r.Rule)) && (len(metrics) == 0 || anyMatch(metrics, r.Metric)) && entities.match(r.Entity) {
			return *r, taken, entities.err
		}
		return core.AlertRow{}, passed, entities.err
	})
}

// Documents implements core.Reader. The bodies are copies.
func (db *DB) Documents(ctx context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	list := db.catalog.ofKind(q.Kind)
	if q.Key != "" {
		list = db.catalog.only(q.Kind, q.Key)
	}
	return scan(ctx, list, 0, func(d *core.Document) (core.Document, verdict, error) {
		return core.Document{Kind: d.Kind, Key: d.Key, Body: slices.Clone(d.Body)}, taken, nil
	})
}

// Metric implements core.Catalog.
func (db *DB) Metric(name string) (core.Metric, bool) { return db.catalog.findMetric(name) }

// Entity implements core.Catalog.
func (db *DB) Entity(name string) (core.Entity, bool) { return db.catalog.findEntity(name) }

// TagKnown implements core.Catalog.
func (db *DB) TagKnown(name string) bool { return db.index.HasTag(name) }

// Member implements core.Catalog.
func (db *DB) Member(entity, group string) bool { return db.member(entity, group, 0) }
