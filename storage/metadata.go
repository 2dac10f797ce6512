package storage

import (
	"context"
	"iter"

	"github.com/tidemark-db/tidemark/core"
)

// Metrics implements core.Metadata.
func (db *DB) Metrics(ctx context.Context, q core.MetaQuery) iter.Seq2[core.MetricInfo, error] {
	return scan(ctx, db.named(core.DocMetric, q), 0, func(d *document) (core.MetricInfo, verdict, error) {
		doc := d.metric.doc.Load()
		if doc == nil { // deleted since the list was read
			return core.MetricInfo{}, passed, nil
		}
		last, some := db.newestOfMetric(d.metric, doc.Name)
		return core.MetricInfo{Metric: doc, Last: last, Inserted: some}, taken, nil
	})
}

// Entities implements core.Metadata.
func (db *DB) Entities(ctx context.Context, q core.MetaQuery) iter.Seq2[core.EntityInfo, error] {
	return scan(ctx, db.named(core.DocEntity, q), 0, func(d *document) (core.EntityInfo, verdict, error) {
		doc := d.entity.doc.Load()
		if doc == nil {
			return core.EntityInfo{}, passed, nil
		}
		last, some := db.newestOfEntity(d.entity, doc.Name)
		return core.EntityInfo{Entity: doc, Last: last, Inserted: some}, taken, nil
	})
}

// named yields the document of a name, or all of a kind.
func (db *DB) named(kind core.DocKind, q core.MetaQuery) iter.Seq[*document] {
	if q.Name == "" {
		return db.ofKind(kind)
	}
	return func(yield func(*document) bool) {
		if d := db.catalog.documents.get(&document{kind: kind, key: q.Name}); d != nil {
			yield(d)
		}
	}
}

// EntityVersions implements core.Metadata.
func (db *DB) EntityVersions(name string) []core.Entity {
	e := db.catalog.lookupEntity(name)
	if e == nil {
		return nil
	}
	doc, past := e.doc.Load(), e.past.Load() // in this order: the appender sets them in the other
	if doc == nil {
		return nil
	}
	var all []core.Entity
	if past != nil {
		for _, v := range *past {
			if v.VersionDate() < doc.VersionDate() {
				v.Name = doc.Name
				all = append(all, v)
			}
		}
	}
	return append(all, *doc)
}

// supersede keeps the version of an entity that a change replaces. Of many, the creation and the latest stay.
func (e *entity) supersede(old *core.Entity, most int) {
	var past []core.Entity
	if p := e.past.Load(); p != nil {
		past = *p
	}
	next := make([]core.Entity, 0, len(past)+1) // readers hold the old one
	drop := max(0, len(past)+2-most)            // the replaced version and the current one count
	next = append(next, past[:min(1, len(past))]...)
	if len(past) > 0 {
		next = append(next, past[min(1+drop, len(past)):]...)
	}
	if len(past) == 0 || 1+drop <= len(past) {
		next = append(next, *old)
	}
	e.past.Store(&next)
}

// rename gives a metric or an entity another name: its settings, versions, series, messages, properties and memberships follow. Alert history stays:
// it says what happened under which name. The check has seen that the old name exists and the other is free.
func (st *state) rename(c core.DocChange, now core.Time) error {
	name, err := st.catalog.rename(c, now)
	if err != nil {
		return err
	}
	switch c.Kind {
	case core.DocMetric:
		for _, id := range st.index.Select(c.Key, nil) {
			key := st.series[id].key
			key.Metric = name
			st.move(st.series[id], key)
		}
	case core.DocEntity:
		for _, id := range st.index.Select("", []string{c.Key}) {
			key := st.series[id].key
			key.Entity = name
			st.move(st.series[id], key)
		}
		st.msgs.rename(c.Key, name)
		st.props.rename(c.Key, name)
		return st.catalog.replaceMember(c.Key, name, now)
	}
	return nil
}

// move gives the samples of a series to one with another key. A query that runs meanwhile takes the old one for deleted.
func (st *state) move(s *series, key core.SeriesKey) {
	to := st.create(string(key.Append(nil)))
	s.mu.Lock()
	samples := s.head
	s.head = head{}
	s.mu.Unlock()
	to.mu.Lock()
	to.head = samples
	to.mu.Unlock()
	st.remove(s.id)
}

// rename takes the messages of an entity to another name.
func (s *messages) rename(from, to string) {
	for one := range s.all() {
		if one.Entity != from {
			continue
		}
		moved := *one
		moved.Entity = to
		s.remove(one)
		s.put(&moved)
	}
}

// rename takes the records of an entity to another name.
func (s *properties) rename(from, to string) {
	for one := range s.of(from, "") {
		moved := *one
		moved.Entity = to
		s.remove(one)
		s.put(&moved)
	}
}

// rename makes the document known under the new name, which it returns, and unknown under the old one.
func (c *catalog) rename(change core.DocChange, now core.Time) (string, error) {
	name, err := change.NewName(func(name string) bool { return c.body(change.Kind, name) != nil })
	if err != nil {
		return "", err
	}
	body, err := change.Apply(c.body(change.Kind, change.Key), now)
	if err != nil {
		return "", err
	}
	decoded, err := decodeBody(change.Kind, name, body)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	switch change.Kind {
	case core.DocMetric:
		c.metrics[name] = c.metrics[change.Key]
		delete(c.metrics, change.Key)
	case core.DocEntity:
		c.entities[name] = c.entities[change.Key]
		delete(c.entities, change.Key)
	}
	c.mu.Unlock()
	c.publish(change.Kind, name, decoded)
	c.store(change.Kind, name, body)
	c.documents.remove(&document{kind: change.Kind, key: change.Key})
	return name, nil
}

// after looks at documents as they are after some changes that are not made yet.
type after struct {
	catalog *catalog
	now     core.Time
	bodies  map[docName][]byte
}

type docName struct {
	kind core.DocKind
	key  string
}

func (a *after) body(kind core.DocKind, key string) []byte {
	if body, ok := a.bodies[docName{kind, key}]; ok {
		return body
	}
	return a.catalog.body(kind, key)
}

// apply makes one more change, unless it cannot be made.
func (a *after) apply(c core.DocChange) error {
	body, err := c.Apply(a.body(c.Kind, c.Key), a.now)
	if err != nil {
		return err
	}
	key := c.Key
	if c.Op == core.DocRename {
		if key, err = c.NewName(func(name string) bool { return a.body(c.Kind, name) != nil }); err != nil {
			return err
		}
		a.bodies[docName{c.Kind, c.Key}] = nil
	}
	if body != nil {
		if _, err := decodeBody(c.Kind, key, body); err != nil {
			return err
		}
	}
	a.bodies[docName{c.Kind, key}] = body
	return nil
}
