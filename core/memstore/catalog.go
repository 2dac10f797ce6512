package memstore

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// Metric implements core.Catalog.
func (s *Store) Metric(name string) (core.Metric, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.metric(name)
}

// Entity implements core.Catalog.
func (s *Store) Entity(name string) (core.Entity, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.entity(name)
}

// TagKnown implements core.Catalog.
func (s *Store) TagKnown(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.series {
		if _, ok := one.key.Tags.Get(name); ok {
			return true
		}
	}
	return false
}

// Member implements core.Catalog.
func (s *Store) Member(entity, group string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	q := question{Store: s}
	return q.member(entity, group)
}

func (s *Store) metric(name string) (m core.Metric, ok bool) {
	ok = s.decode(core.DocMetric, name, &m)
	m.Name = name
	return m, ok
}

// entity returns an entity that has nothing but its name when there is no document.
func (s *Store) entity(name string) (e core.Entity, ok bool) {
	ok = s.decode(core.DocEntity, name, &e)
	e.Name = name
	return e, ok
}

func (s *Store) group(name string) (g core.Group) {
	s.decode(core.DocGroup, name, &g)
	return g
}

func (s *Store) decode(kind core.DocKind, key string, into any) bool {
	body, ok := s.documents[kind][key]
	return ok && json.Unmarshal(body, into) == nil
}

func (s *Store) collection(name string) []string {
	var c core.Collection
	s.decode(core.DocCollection, name, &c)
	return c.Values
}

// Metrics implements core.Metadata.
func (s *Store) Metrics(ctx context.Context, q core.MetaQuery) iter.Seq2[core.MetricInfo, error] {
	return each(ctx, func() (found []core.MetricInfo, _ error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, name := range s.names(core.DocMetric, q) {
			m, _ := s.metric(name)
			last, some := s.newest(func(k core.SeriesKey) bool { return k.Metric == name })
			found = append(found, core.MetricInfo{Metric: &m, Last: last, Inserted: some})
		}
		return found, nil
	})
}

// Entities implements core.Metadata.
func (s *Store) Entities(ctx context.Context, q core.MetaQuery) iter.Seq2[core.EntityInfo, error] {
	return each(ctx, func() (found []core.EntityInfo, _ error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, name := range s.names(core.DocEntity, q) {
			e, _ := s.entity(name)
			last, some := s.newest(func(k core.SeriesKey) bool { return k.Entity == name })
			found = append(found, core.EntityInfo{Entity: &e, Last: last, Inserted: some})
		}
		return found, nil
	})
}

// EntityVersions implements core.Metadata.
func (s *Store) EntityVersions(name string) []core.Entity {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.versions[name])
}

// names returns the keys of the documents that q selects, sorted.
func (s *Store) names(kind core.DocKind, q core.MetaQuery) []string {
	if q.Name == "" {
		return slices.Sorted(maps.Keys(s.documents[kind]))
	}
	if _, ok := s.documents[kind][q.Name]; ok {
		return []string{q.Name}
	}
	return nil
}

// newest returns the time of the newest sample of the measured series that match.
func (s *Store) newest(match func(core.SeriesKey) bool) (last core.Time, some bool) {
	for _, one := range s.series {
		if _, kind, _, _ := one.key.Store(); kind != core.Measured || !match(one.key) {
			continue
		}
		for t := range one.samples {
			last, some = max(last, t), true
		}
	}
	return last, some
}

// keepVersion notes the document of an entity as its latest version, unless it is. Of too many the creation and the latest stay.
func (s *Store) keepVersion(name string) {
	e, _ := s.entity(name)
	all := s.versions[name]
	if n := len(all); n > 0 && all[n-1].VersionDate() == e.VersionDate() {
		return
	}
	if all = append(all, e); len(all) > core.MaxEntityVersions {
		all = slices.Delete(all, 1, 2)
	}
	s.versions[name] = all
}

// rename gives a metric or an entity another name. Everything follows but alert history, which says what happened under which name.
func (s *Store) rename(c core.DocChange, body []byte, now core.Time) {
	name, err := c.NewName(func(name string) bool { return s.documents[c.Kind][name] != nil })
	if err != nil {
		return
	}
	delete(s.documents[c.Kind], c.Key)
	if c.Kind == core.DocEntity {
		s.versions[name] = s.versions[c.Key]
		delete(s.versions, c.Key)
		for i := range s.versions[name] {
			s.versions[name][i].Name = name
		}
		s.renameRecords(c.Key, name)
		s.replaceMember(c.Key, name, now)
	}
	s.put(c.Kind, name, body)
	for id, one := range maps.Clone(s.series) {
		switch {
		case c.Kind == core.DocMetric && one.key.Metric == c.Key:
			one.key.Metric = name
		case c.Kind == core.DocEntity && one.key.Entity == c.Key:
			one.key.Entity = name
		default:
			continue
		}
		delete(s.series, id)
		s.series[string(one.key.Append(nil))] = one
	}
}

// renameRecords takes the messages and properties of an entity to another name.
func (s *Store) renameRecords(from, to string) {
	for i := range s.messages {
		if s.messages[i].Entity == from {
			s.messages[i].Entity = to
		}
	}
	for id, r := range maps.Clone(s.properties) {
		if r.Entity == from {
			r.Entity = to
			delete(s.properties, id)
			s.properties[recordKey(r.PropertyKey)] = r
		}
	}
}
