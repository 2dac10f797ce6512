package storage

import (
	"context"
	"iter"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
)

// Metrics implements core.Metadata.
func (db *DB) Metrics(ctx context.Context, q core.MetaQuery) iter.Seq2[core.MetricInfo, error] {
	return scan(ctx, sound(selected(&db.catalog.metricNames, q, &metric{name: q.Name})), 0, func(m *metric) (core.MetricInfo, verdict, error) {
		packed := m.doc.Load()
		if packed == nil { // deleted since the list was read
			return core.MetricInfo{}, passed, nil
		}
		doc := packed.unpack(m.name)
		last, some := db.newestOfMetric(m)
		return core.MetricInfo{Metric: &doc, Last: last, Inserted: some}, taken, nil
	})
}

// Entities implements core.Metadata.
func (db *DB) Entities(ctx context.Context, q core.MetaQuery) iter.Seq2[core.EntityInfo, error] {
	return scan(ctx, sound(selected(&db.catalog.entityNames, q, &entity{name: q.Name})), 0, func(e *entity) (core.EntityInfo, verdict, error) {
		packed := e.doc.Load()
		if packed == nil {
			return core.EntityInfo{}, passed, nil
		}
		doc := packed.unpack(e.name)
		last, some := db.newestOfEntity(e)
		return core.EntityInfo{Entity: &doc, Last: last, Inserted: some}, taken, nil
	})
}

// selected yields the element that is asked for, which compares equal to one, or all.
func selected[T any](list *sorted[T], q core.MetaQuery, one *T) iter.Seq[*T] {
	if q.Name == "" {
		return list.all()
	}
	return func(yield func(*T) bool) {
		if found := list.get(one); found != nil {
			yield(found)
		}
	}
}

// EntityVersions implements core.Metadata.
func (db *DB) EntityVersions(name string) []core.Entity {
	e := db.catalog.lookupEntity(name)
	if e == nil {
		return nil
	}
	packed := e.doc.Load()
	if packed == nil {
		return nil
	}
	doc := packed.unpack(e.name)
	all, err := db.catalog.pastOf(e, &doc) // behind doc: the appender sets them in the other order
	if err != nil {
		db.opts.Log("storage: versions of entity " + name + ": " + err.Error())
	}
	return append(all, doc)
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
		st.rekey(st.index.Select(c.Key, nil), func(key *core.SeriesKey) { key.Metric = name })
	case core.DocEntity:
		st.rekey(st.index.Select("", []string{c.Key}), func(key *core.SeriesKey) { key.Entity = name })
		st.msgs.rename(c.Key, name)
		if err := st.props.rename(c.Key, name); err != nil {
			return err
		}
		return st.catalog.replaceMember(c.Key, name, now)
	}
	return nil
}

// rekey gives series another key. They keep their numbers, and with them their samples, in whatever layer.
func (st *state) rekey(ids []index.ID, change func(*core.SeriesKey)) {
	v := st.views.acquire()
	defer st.views.release(v)
	for _, id := range ids {
		key, known := st.keyOf(v, id, nil)
		if !known {
			continue
		}
		change(&key)
		canonical := key.Append(nil)
		st.index.Rename(id, string(canonical))
		if old := st.active.get(id); old != nil {
			s := st.newSeries(id, canonical) // readers hold the old one
			old.mu.Lock()
			s.head, old.head = old.head, head{}
			st.active.set(id, s)
			old.mu.Unlock()
		}
	}
	st.removals++
}

// rename makes the document known under the new name, which it returns, and unknown under the old one.
func (c *catalog) rename(change core.DocChange, now core.Time) (string, error) {
	name, err := change.NewName(func(name string) bool { return c.taken(change.Kind, name) })
	if err != nil {
		return "", err
	}
	before, err := c.body(change.Kind, change.Key)
	if err != nil {
		return "", err
	}
	body, err := change.Apply(before, now)
	if err != nil {
		return "", err
	}
	decoded, err := decodeBody(change.Kind, name, body)
	if err != nil {
		return "", err
	}
	switch change.Kind {
	case core.DocMetric:
		c.moveMetric(c.metric(change.Key), name)
	case core.DocEntity:
		if err := c.moveEntity(c.entity(change.Key), name); err != nil {
			return "", err
		}
	}
	c.publish(change.Kind, name, decoded)
	c.store(change.Kind, name, body)
	c.documents.Delete(documentKey(change.Kind, change.Key))
	return name, nil
}

// moveMetric gives a metric another name, but for its document. Whoever still holds the one with the old name finds no document in it.
func (c *catalog) moveMetric(from *metric, name string) {
	to := c.newMetric(name)
	to.newest.word.Store(from.newest.word.Load())
	c.mu.Lock()
	c.metrics.remove(from.name)
	c.mu.Unlock()
	c.metricNames.remove(from)
	from.doc.Store(nil)
	c.renamed(&to.newest, metricNewest, [2]string{from.name, name})
}

func (c *catalog) moveEntity(from *entity, name string) error {
	if err := c.movePast(from, from.name, name); err != nil {
		return err
	}
	to := c.newEntity(name)
	to.past.set(from.past.get())
	to.newest.word.Store(from.newest.word.Load())
	c.mu.Lock()
	c.entities.remove(from.name)
	c.mu.Unlock()
	c.entityNames.remove(from)
	from.doc.Store(nil)
	c.renamed(&to.newest, entityNewest, [2]string{from.name, name})
	return nil
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

func (a *after) body(kind core.DocKind, key string) ([]byte, error) {
	if body, ok := a.bodies[docName{kind, key}]; ok {
		return body, nil
	}
	return a.catalog.body(kind, key)
}

// apply makes one more change, unless it cannot be made.
func (a *after) apply(c core.DocChange) error {
	before, err := a.body(c.Kind, c.Key)
	if err != nil {
		return err
	}
	body, err := c.Apply(before, a.now)
	if err != nil {
		return err
	}
	key := c.Key
	if c.Op == core.DocRename {
		taken := func(name string) bool {
			body, err := a.body(c.Kind, name)
			return body != nil || err != nil
		}
		if key, err = c.NewName(taken); err != nil {
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
