package storage

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// What readers yield shares memory with the state, which replaces what it changes: it stays valid, except for a Block, and must not be written to.

// blockLength bounds the samples of a Block: 64 KiB of columns stay in the processor's cache while the caller works on them.
const blockLength = 4096

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

// find yields the series that q selects, in key order, whatever samples they have. The list is made when the loop starts: series that come later
// are not in it, those that go have no samples any more.
func (db *DB) find(ctx context.Context, q core.SeriesQuery) iter.Seq2[*series, error] {
	return func(yield func(*series, error) bool) {
		entities, err := db.selection(q.Scope, q.Entities)
		if err != nil {
			yield(nil, err)
			return
		}
		expr, err := entities.compile(filter.SeriesTags, q.TagExpression)
		if err != nil {
			yield(nil, err)
			return
		}
		tags := newTagFilters(q.Tags)
		var env filter.TagsEnv
		ids := db.index.Select(q.Metric, entities.names())
		all := db.all()
		for _, id := range ids {
			if err := cmp.Or(entities.err, ctx.Err()); err != nil {
				yield(nil, err)
				return
			}
			s, ok := all[id], false
			if env.Tags, ok = q.InStore(&s.key); ok && entities.match(s.key.Entity) && tags.match(env.Tags) &&
				(!q.ExactTags || tags.cover(env.Tags)) && entities.test(expr, &env) && !yield(s, nil) {
				return
			}
		}
		if entities.err != nil {
			yield(nil, entities.err)
		}
	}
}

// Series implements core.Reader. Blocks hold at most blockLength samples and share one set of columns.
func (db *DB) Series(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return func(yield func(core.Block, error) bool) {
		var b core.Block
		for s, err := range db.find(ctx, q) {
			if err != nil {
				yield(core.Block{}, err)
				return
			}
			b.Key = s.key
			b.Key.Tags, _ = q.InStore(&s.key)
			for range s.blocks(&b, q) {
				if err := ctx.Err(); err != nil {
					yield(core.Block{}, err)
					return
				}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

// blocks fills b with one block after the other.
func (s *series) blocks(b *core.Block, q core.SeriesQuery) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		left := q.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		w := window{Range: q.Range, newestFirst: q.NewestFirst, versions: q.Versions}
		for left > 0 {
			w.most = min(left, blockLength)
			s.copyTo(b, w)
			clip(b, left, w)
			n := len(b.Times)
			if n == 0 || !yield(struct{}{}) {
				return
			}
			left -= n
			// Times of the next block are beyond this one, whatever was written meanwhile.
			if q.NewestFirst {
				w.End = b.Times[0]
			} else {
				w.Start = b.Times[n-1] + 1
			}
		}
	}
}

// clip cuts a block to the limit: versions of one time may exceed it.
func clip(b *core.Block, limit int, w window) {
	from, to := 0, len(b.Times)
	switch {
	case to <= limit:
		return
	case w.newestFirst:
		from = to - limit
	default:
		to = limit
	}
	b.Times = append(b.Times[:0], b.Times[from:to]...)
	b.Values = append(b.Values[:0], b.Values[from:to]...)
	b.Texts = clipSide(b.Texts, from, to, func(t *core.TextAt) *uint32 { return &t.Index })
	b.Decimals = clipSide(b.Decimals, from, to, func(d *core.DecimalAt) *uint32 { return &d.Index })
	b.Versions = clipSide(b.Versions, from, to, func(v *core.VersionAt) *uint32 { return &v.Index })
}

func clipSide[E any](list []E, from, to int, index func(*E) *uint32) []E {
	kept := list[:0]
	for _, e := range list {
		if at := index(&e); int(*at) >= from && int(*at) < to {
			*at -= uint32(from)
			kept = append(kept, e)
		}
	}
	return kept
}

// Keys implements core.Reader: the series that have a sample in the range.
func (db *DB) Keys(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.KeyInfo, error] {
	return func(yield func(core.KeyInfo, error) bool) {
		for s, err := range db.find(ctx, q) {
			if err != nil {
				yield(core.KeyInfo{}, err)
				return
			}
			if !s.has(q.Range) {
				continue
			}
			last, ok := s.newest()
			info := core.KeyInfo{Key: s.key, Last: last, Serial: uint64(s.id)}
			info.Key.Tags, _ = q.InStore(&s.key)
			if ok && !yield(info, nil) {
				return
			}
		}
	}
}

// scan passes the elements of a list that match to yield, at most limit of them (0 = all), until match says that it is over.
func scan[T, R any](ctx context.Context, list iter.Seq[*T], limit int, match func(*T) (R, verdict, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var zero R
		n := 0
		for one := range list {
			result, v, err := match(one)
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
	start := message{Message: core.Message{Time: q.Range.End - 1}}
	var found core.Message // and its tags, in memory that all candidates share
	return scan(ctx, db.msgs.from(&start), q.Limit, func(m *message) (core.Message, verdict, error) {
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
func (db *DB) records(q core.PropertyQuery, names []string) iter.Seq[*core.PropertyRecord] {
	if names == nil {
		return db.props.all()
	}
	return func(yield func(*core.PropertyRecord) bool) {
		for _, name := range names {
			for r := range db.props.of(name, q.Type) {
				if !yield(r) {
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
	return scan(ctx, db.ofKind(core.DocEntity), 0, func(d *document) (core.PropertyRecord, verdict, error) {
		e, ok := db.catalog.findEntity(d.key)
		if !ok || len(e.Tags) == 0 || len(q.Key) > 0 || !entities.match(d.key) {
			return core.PropertyRecord{}, passed, entities.err
		}
		at := cmp.Or(e.Versioned, e.Created)
		r := core.PropertyRecord{PropertyKey: core.PropertyKey{Entity: d.key, Type: core.EntityTagsType}, Time: at}
		for _, tag := range core.TagsOf(e.Tags) {
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
	start := historyRow{AlertRow: core.AlertRow{Time: q.Range.End - 1}, arrival: math.MaxUint64}
	return scan(ctx, db.history.rows.from(&start), q.Limit, func(r *historyRow) (core.AlertRow, verdict, error) {
		if r.Time < q.Range.Start {
			return core.AlertRow{}, over, nil
		}
		if (len(rules) == 0 || anyMatch(rules, r.Rule)) && (len(metrics) == 0 || anyMatch(metrics, r.Metric)) && entities.match(r.Entity) {
			return r.AlertRow, taken, entities.err
		}
		return core.AlertRow{}, passed, entities.err
	})
}

// Documents implements core.Reader. The bodies are copies.
func (db *DB) Documents(ctx context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	list := db.ofKind(q.Kind)
	if q.Key != "" {
		list = func(yield func(*document) bool) {
			if d := db.catalog.documents.get(&document{kind: q.Kind, key: q.Key}); d != nil {
				yield(d)
			}
		}
	}
	return scan(ctx, list, 0, func(d *document) (core.Document, verdict, error) {
		return core.Document{Kind: d.kind, Key: d.key, Body: slices.Clone(d.body)}, taken, nil
	})
}

func (db *DB) ofKind(kind core.DocKind) iter.Seq[*document] {
	return func(yield func(*document) bool) {
		for d := range db.catalog.documents.from(&document{kind: kind}) {
			if d.kind != kind || !yield(d) {
				return
			}
		}
	}
}

// Metric implements core.Catalog.
func (db *DB) Metric(name string) (core.Metric, bool) { return db.catalog.findMetric(name) }

// Entity implements core.Catalog.
func (db *DB) Entity(name string) (core.Entity, bool) { return db.catalog.findEntity(name) }

// TagKnown implements core.Catalog.
func (db *DB) TagKnown(name string) bool { return db.index.HasTag(name) }

// Member implements core.Catalog.
func (db *DB) Member(entity, group string) bool { return db.member(entity, group, 0) }
