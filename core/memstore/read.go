package memstore

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// Series implements core.Reader: one block a series.
func (s *Store) Series(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return each(ctx, func() ([]core.Block, error) {
		found, err := s.find(q)
		var blocks []core.Block
		for _, one := range found {
			if rows := one.rows(q); len(rows) > 0 {
				blocks = append(blocks, block(one.key, rows))
			}
		}
		return blocks, err
	})
}

// Keys implements core.Reader: the series that have a sample in the range.
func (s *Store) Keys(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.KeyInfo, error] {
	return each(ctx, func() ([]core.KeyInfo, error) {
		found, err := s.find(q)
		var keys []core.KeyInfo
		for _, one := range found {
			if len(one.times(q.Range)) > 0 {
				keys = append(keys, core.KeyInfo{Key: one.key.Clone(), Last: slices.Max(slices.Collect(maps.Keys(one.samples))), Serial: one.serial})
			}
		}
		return keys, err
	})
}

// each runs a query to its end before it yields the first result, so that no lock is held while the caller works.
func each[T any](ctx context.Context, query func() ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		results, err := query()
		if err != nil {
			yield(zero, err)
			return
		}
		for _, one := range results {
			if err := ctx.Err(); err != nil {
				yield(zero, err)
				return
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

// find returns the series that q selects, in key order, whatever samples they have.
func (s *Store) find(q core.SeriesQuery) ([]*series, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	asked := question{Store: s}
	entity := asked.entities(q.Scope, q.Entities)
	tags := asked.compile(filter.SeriesTags, q.TagExpression)
	var found []*series
	for _, one := range s.series {
		k := one.key
		var ok bool
		if k.Tags, ok = q.InStore(&k); !ok {
			continue
		}
		if (q.Metric == "" || q.Metric == k.Metric) && entity(k.Entity) && matchTags(k.Tags, q.Tags) && tags(&filter.TagsEnv{Tags: k.Tags}) &&
			(!q.ExactTags || sameNames(k.Tags, q.Tags)) {
			found = append(found, &series{key: k, serial: one.serial, samples: maps.Clone(one.samples)})
		}
	}
	slices.SortFunc(found, func(a, b *series) int { return a.key.Compare(b.key) })
	return found, asked.err
}

func (one *series) times(r core.Range) []core.Time {
	var times []core.Time
	for t := range one.samples {
		if r.Contains(t) {
			times = append(times, t)
		}
	}
	slices.Sort(times)
	return times
}

// row is one sample of an answer.
type row struct {
	time core.Time
	sample
}

// rows are the samples that q selects, with all their versions when it asks for them.
func (one *series) rows(q core.SeriesQuery) []row {
	var rows []row
	for _, t := range one.times(q.Range) {
		versions := one.samples[t]
		if !q.Versions {
			versions = versions[len(versions)-1:]
		}
		for _, v := range versions {
			rows = append(rows, row{t, v})
		}
	}
	switch {
	case q.Limit <= 0 || len(rows) <= q.Limit:
		return rows
	case q.NewestFirst:
		return rows[len(rows)-q.Limit:]
	}
	return rows[:q.Limit]
}

func block(key core.SeriesKey, rows []row) core.Block {
	b := core.Block{Key: key.Clone()}
	for i, at := range rows {
		b.Times = append(b.Times, at.time)
		b.Values = append(b.Values, at.value)
		if at.text != nil {
			b.Texts = append(b.Texts, core.TextAt{Index: uint32(i), Text: *at.text})
		}
		if at.decimal != nil {
			b.Decimals = append(b.Decimals, core.DecimalAt{Index: uint32(i), Decimal: *at.decimal})
		}
		if at.version != nil {
			v := *at.version
			v.Index = uint32(i)
			b.Versions = append(b.Versions, v)
		}
	}
	return b
}

// Messages implements core.Reader. Messages that the promised order leaves equal come in order of arrival.
func (s *Store) Messages(ctx context.Context, q core.MessageQuery) iter.Seq2[core.Message, error] {
	return each(ctx, func() ([]core.Message, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		asked := question{Store: s}
		entity := asked.entities(q.Scope, q.Entities)
		match := asked.compile(filter.Messages, q.Expression)
		var found []core.Message
		for _, m := range s.messages {
			if q.Range.Contains(m.Time) && entity(m.Entity) && (q.Type == "" || q.Type == m.Type) && (q.Source == "" || q.Source == m.Source) &&
				(len(q.Severities) == 0 || slices.Contains(q.Severities, m.Severity)) && m.Severity >= q.MinSeverity &&
				matchTags(m.Tags, q.Tags) && match(filter.MessageEnv{Message: &m}) {
				found = append(found, m.Clone())
			}
		}
		slices.SortStableFunc(found, func(a, b core.Message) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Source, b.Source))
		})
		return limit(found, q.Limit), asked.err
	})
}

func limit[T any](all []T, n int) []T {
	if n > 0 && len(all) > n {
		return all[:n]
	}
	return all
}

// Properties implements core.Reader. The reserved type yields the tags of the entities: a record each, with the time of the entity's last
// change, whatever the range; every type together leaves it out.
func (s *Store) Properties(ctx context.Context, q core.PropertyQuery) iter.Seq2[core.PropertyRecord, error] {
	return each(ctx, func() ([]core.PropertyRecord, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		asked := question{Store: s}
		entity := asked.entities(q.Scope, q.Entities)
		var found []core.PropertyRecord
		if q.Type == core.EntityTagsType {
			found = s.entityTags(q, entity)
		}
		for _, r := range s.properties {
			if (q.Type == "" || q.Type == r.Type) && q.Range.Contains(r.Time) && entity(r.Entity) && matchKey(r.Key, q) {
				found = append(found, core.PropertyRecord{PropertyKey: r.PropertyKey.Clone(), Time: r.Time, Tags: slices.Clone(r.Tags)})
			}
		}
		slices.SortFunc(found, func(a, b core.PropertyRecord) int { return a.PropertyKey.Compare(b.PropertyKey) })
		return found, asked.err
	})
}

func (s *Store) entityTags(q core.PropertyQuery, match func(string) bool) []core.PropertyRecord {
	var found []core.PropertyRecord
	for name := range s.documents[core.DocEntity] {
		e, _ := s.entity(name)
		if len(e.Tags) == 0 || len(q.Key) > 0 || !match(name) {
			continue
		}
		at := cmp.Or(e.Versioned, e.Created)
		r := core.PropertyRecord{PropertyKey: core.PropertyKey{Entity: name, Type: core.EntityTagsType}, Time: at}
		for _, tag := range core.TagsOf(e.Tags) {
			r.Tags = append(r.Tags, core.PropertyTag{Tag: tag, Time: at})
		}
		found = append(found, r)
	}
	return found
}

// AlertHistory implements core.Reader. Of equal times the row that was stored last comes first.
func (s *Store) AlertHistory(ctx context.Context, q core.AlertHistoryQuery) iter.Seq2[core.AlertRow, error] {
	return each(ctx, func() ([]core.AlertRow, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		asked := question{Store: s}
		entity := asked.entities(q.Scope, q.Entities)
		var found []core.AlertRow
		for _, r := range slices.Backward(s.history) {
			if q.Range.Contains(r.Time) && entity(r.Entity) && matchAny(q.Rules, r.Rule) && matchAny(q.Metrics, r.Metric) {
				found = append(found, cloneRow(r))
			}
		}
		slices.SortStableFunc(found, func(a, b core.AlertRow) int { return cmp.Compare(b.Time, a.Time) })
		return limit(found, q.Limit), asked.err
	})
}

// Documents implements core.Reader.
func (s *Store) Documents(ctx context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	return each(ctx, func() ([]core.Document, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		var found []core.Document
		for _, key := range slices.Sorted(maps.Keys(s.documents[q.Kind])) {
			if q.Key == "" || q.Key == key {
				found = append(found, core.Document{Kind: q.Kind, Key: key, Body: slices.Clone(s.documents[q.Kind][key])})
			}
		}
		return found, nil
	})
}
