package filter

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Source answers the functions of expressions from the contracts of the store. It is for one request and one goroutine: it remembers the
// collections and the metrics it has read.
type Source struct {
	Reader  core.Reader
	Catalog core.Catalog
	Now     func() core.Time

	collections map[string][]string
	metrics     map[inserted]*holders
}

// inserted is a question of hasMetric, whichever entity it is about.
type inserted struct {
	metric string
	within time.Duration
}

// holders are the entities for which the answer to a question is yes.
type holders struct {
	asked    int
	entities map[string]bool // nil until it is worth finding all of them
}

// askAll is how many entities are looked up one by one, before all that have a metric are found at once.
const askAll = 256

// Functions returns the functions. They see everything, as expressions of the store do: what an expression selects is bounded elsewhere. The context is
// that of the request that evaluates.
func (s *Source) Functions(ctx context.Context) Functions {
	return Functions{
		Properties: func(entity string, search PropertySearch) (values []string, err error) {
			err = s.records(ctx, entity, search.Type, func(r *core.PropertyRecord) bool {
				values = search.Values(values, r)
				return true
			})
			return values, err
		},
		PropertyTags: func(entity, propertyType string) (map[string]string, error) {
			tags := map[string]string{}
			err := s.records(ctx, entity, propertyType, func(r *core.PropertyRecord) bool {
				for _, tag := range r.Tags {
					tags[tag.Name] = tag.Value
				}
				return true
			})
			return tags, err
		},
		HasProperty: func(entity, propertyType string) (has bool, err error) {
			err = s.records(ctx, entity, propertyType, func(*core.PropertyRecord) bool {
				has = true
				return false
			})
			return has, err
		},
		HasMetric: func(entity, metric string, within time.Duration) (bool, error) {
			return s.hasMetric(ctx, entity, metric, within)
		},
		MemberOf: func(entity, group string) (bool, error) { return s.Catalog.Member(entity, group), nil },
		EntityTags: func(entity string) (map[string]string, error) {
			e, _ := s.Catalog.Entity(entity)
			return e.Tags, nil
		},
		Collection: func(name string) []string { return s.collection(ctx, name) },
	}
}

func (s *Source) records(ctx context.Context, entity, propertyType string, f func(*core.PropertyRecord) bool) error {
	q := core.PropertyQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{entity}}, Type: propertyType, Range: core.AllTime}
	for r, err := range s.Reader.Properties(ctx, q) {
		if err != nil || !f(&r) {
			return err
		}
	}
	return nil
}

// hasMetric looks up an entity. An expression over a list asks the same of one entity after the other: then it finds the entities that have the metric once,
// and answers from that.
func (s *Source) hasMetric(ctx context.Context, entity, metric string, within time.Duration) (bool, error) {
	h := s.metrics[inserted{metric, within}]
	if h == nil {
		if s.metrics == nil {
			s.metrics = map[inserted]*holders{}
		}
		h = &holders{}
		s.metrics[inserted{metric, within}] = h
	}
	if h.entities != nil {
		return h.entities[entity], nil
	}
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: metric, Range: core.AllTime}
	if within > 0 {
		q.Range.Start = max(q.Range.Start, s.Now()-core.Time(within.Milliseconds()))
	}
	if h.asked++; h.asked <= askAll {
		q.Entities.Names = []string{entity}
		for _, err := range s.Reader.Keys(ctx, q) {
			return err == nil, err
		}
		return false, nil
	}
	all := map[string]bool{}
	for info, err := range s.Reader.Keys(ctx, q) {
		if err != nil {
			return false, err
		}
		all[info.Key.Entity] = true
	}
	h.entities = all
	return all[entity], nil
}

// collection is empty when there is none of the name, or none that can be read.
func (s *Source) collection(ctx context.Context, name string) []string {
	values, ok := s.collections[name]
	if ok {
		return values
	}
	for doc, err := range s.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocCollection, Key: name}) {
		var c core.Collection
		if err == nil && json.Unmarshal(doc.Body, &c) == nil {
			values = c.Values
		}
	}
	if s.collections == nil {
		s.collections = map[string][]string{}
	}
	s.collections[name] = values
	return values
}
