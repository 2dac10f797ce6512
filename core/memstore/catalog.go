package memstore

import (
	"encoding/json"

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
