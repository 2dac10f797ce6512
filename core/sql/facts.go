package sql

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/sql/exec"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// facts answers functions for one statement. Every answer is remembered, so that the rows of a result agree with each other.
type facts struct {
	ctx    context.Context // of the statement: expressions have none
	engine *Engine
	scope  core.Scope
	memory *exec.Memory // of the statement: answers are kept until it ends

	mu          sync.Mutex // guards the answers: expressions run on several goroutines
	tables      map[string]*core.Table
	collections map[string]*core.Collection
	groups      []string // all there are; nil = not asked yet
	memberships map[string][]string
	metrics     map[string][]string
	readable    map[string]bool
	properties  map[propertyQuestion]string
}

type propertyQuestion struct {
	entity, search string
	since          core.Time
}

func newFacts(ctx context.Context, x *session) expr.Facts {
	return &facts{ctx: ctx, engine: x.Engine, scope: x.scope, memory: x.memory, tables: map[string]*core.Table{}, collections: map[string]*core.Collection{}, memberships: map[string][]string{},
		metrics: map[string][]string{}, readable: map[string]bool{}, properties: map[propertyQuestion]string{}}
}

// document reads one document; false when there is none.
func (f *facts) document(kind core.DocKind, key string, into any) (bool, error) {
	for doc, err := range f.engine.Reader.Documents(f.ctx, core.DocumentQuery{Kind: kind, Key: key}) {
		if err != nil {
			return false, err
		}
		if err := f.memory.Grow(int64(len(doc.Body))); err != nil {
			return false, err
		}
		return true, json.Unmarshal(doc.Body, into)
	}
	return false, nil
}

// answerBytes is what an answer takes beside its texts: its key and its place.
const answerBytes = 128

// remembered returns the answer of a key, and asks once. Whoever asks charges the texts of the answer.
func remembered[K comparable, V any](f *facts, answers map[K]V, key K, ask func() (V, error)) (V, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v, ok := answers[key]; ok {
		return v, nil
	}
	v, err := ask()
	if err == nil {
		err = f.memory.Grow(answerBytes)
	}
	if err == nil {
		answers[key] = v
	}
	return v, err
}

// charge takes the memory of texts.
func (f *facts) charge(texts ...string) error {
	size := int64(0)
	for _, text := range texts {
		size += int64(len(text)) + 16
	}
	return f.memory.Grow(size)
}

// Lookup finds the value of a key of a replacement table.
func (f *facts) Lookup(table, key string) (value string, found, exists bool, err error) {
	name := core.TableKey(table)
	t, err := remembered(f, f.tables, name, func() (*core.Table, error) {
		var t core.Table
		some, err := f.document(core.DocTable, name, &t)
		if !some {
			return nil, err
		}
		return &t, err
	})
	if err != nil || t == nil {
		return "", false, false, err
	}
	value, found = t.Keys[key]
	return value, found, true, nil
}

// Collection returns the values of a named collection.
func (f *facts) Collection(name string) (values []string, exists bool, err error) {
	c, err := remembered(f, f.collections, name, func() (*core.Collection, error) {
		var c core.Collection
		some, err := f.document(core.DocCollection, name, &c)
		if !some {
			return nil, err
		}
		return &c, err
	})
	if err != nil || c == nil {
		return nil, false, err
	}
	return c.Values, true, nil
}

// Entity returns an entity that the caller may read: as it is, or its latest version at or before a time.
func (f *facts) Entity(name string, version *core.Time) (core.Entity, bool, error) {
	entity, ok := f.engine.Catalog.Entity(name)
	if !ok {
		return core.Entity{}, false, nil
	}
	if may, err := f.mayRead(name); err != nil || !may {
		return core.Entity{}, false, err
	}
	if version == nil {
		return entity, true, nil
	}
	var past core.Entity
	found := false
	for _, v := range f.engine.Metadata.EntityVersions(name) {
		if v.VersionDate() <= *version {
			past, found = v, true
		}
	}
	return past, found, nil
}

func (f *facts) mayRead(entity string) (bool, error) {
	if f.scope.All {
		return true, nil
	}
	return remembered(f, f.readable, entity, func() (bool, error) {
		return slices.ContainsFunc(f.scope.Groups, func(group string) bool { return f.engine.Catalog.Member(entity, group) }), nil
	})
}

// Groups returns the enabled groups that an entity belongs to, sorted; none of an entity that the caller may not read.
func (f *facts) Groups(entity string) ([]string, error) {
	if may, err := f.mayRead(entity); err != nil || !may {
		return nil, err
	}
	return remembered(f, f.memberships, entity, func() ([]string, error) {
		if f.groups == nil {
			all := []string{}
			for doc, err := range f.engine.Reader.Documents(f.ctx, core.DocumentQuery{Kind: core.DocGroup}) {
				if err != nil {
					return nil, err
				}
				all = append(all, doc.Key)
			}
			slices.Sort(all)
			f.groups = all
		}
		var groups []string
		for _, g := range f.groups {
			if f.engine.Catalog.Member(entity, g) {
				groups = append(groups, g)
			}
		}
		return groups, f.memory.Grow(int64(len(groups)) * 16) // the texts are those of all groups
	})
}

// Metrics returns the metrics for which an entity has series, sorted.
func (f *facts) Metrics(entity string) ([]string, error) {
	entity = strings.ToLower(entity)
	return remembered(f, f.metrics, entity, func() ([]string, error) {
		var metrics []string
		for k, err := range f.engine.Reader.Keys(f.ctx, core.SeriesQuery{Scope: f.scope, Entities: core.EntityFilter{Names: []string{entity}}, Range: core.AllTime}) {
			if err != nil {
				return nil, err
			}
			if len(metrics) == 0 || metrics[len(metrics)-1] != k.Key.Metric { // keys come by metric
				metrics = append(metrics, strings.Clone(k.Key.Metric))
			}
		}
		return metrics, f.charge(metrics...)
	})
}

// Property runs a property search: the first match of the newest record received at or after a time, "" for none. merge makes no difference: a record here is the
// union of its updates.
func (f *facts) Property(entity, search string, since core.Time, _ bool) (string, error) {
	entity = strings.ToLower(entity)
	return remembered(f, f.properties, propertyQuestion{entity, search, since}, func() (string, error) { return f.property(entity, search, since) })
}

func (f *facts) property(entity, search string, since core.Time) (string, error) {
	s, err := filter.ParsePropertySearch(search)
	if err != nil {
		return "", err
	}
	q := core.PropertyQuery{Scope: f.scope, Entities: core.EntityFilter{Names: []string{entity}}, Type: s.Type, Range: core.Range{Start: since, End: core.MaxTime + 1}}
	found, newest := "", core.Time(-1)
	for r, err := range f.engine.Reader.Properties(f.ctx, q) {
		if err != nil {
			return "", err
		}
		values := s.Values(nil, &r)
		if r.Time > newest && len(values) > 0 {
			found, newest = strings.Clone(values[0]), r.Time
		}
	}
	return found, f.charge(entity, search, found)
}
