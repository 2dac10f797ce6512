package storage

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/storage/table"
)

// catalog holds all documents, and those that every record asks about at hand as well: metrics and entities packed, groups and collections decoded.
type catalog struct {
	documents *table.Table // see documentKey
	versions  int          // of an entity that are kept

	metricNames sorted[metric] // those that have a document, by name
	entityNames sorted[entity]

	packing     packing // the appender's
	hotMetrics  hot[packedMetric, core.Metric]
	hotEntities hot[packedEntity, core.Entity]

	touched []touched    // what freezeNewest takes; the appender's
	saving  []touched    // what writeNewest is to save; the worker's
	saved   *table.Table // times of newest samples; the worker's

	mu          sync.RWMutex // guards the tables and the maps; values of maps are replaced, never changed
	metrics     nameTable[metric]
	entities    nameTable[entity]
	groups      map[string]*group
	collections map[string][]string

	groupsVersion atomic.Uint64 // of the map of groups: it changes after each change
	decisions     decisions
	memberships   memberships
}

// metric and entity outlive their documents as long as a series refers to them; doc is nil while there is no document. Only the appender writes
// doc, so only it may read it without loading. A rename makes another one of each.
type metric struct {
	name   string
	doc    atomic.Pointer[packedMetric]
	newest newest
}

type entity struct {
	name   string
	doc    atomic.Pointer[packedEntity]
	past   superseded // versions before the one in doc
	newest newest
}

// maxGroupDepth ends groups whose expressions ask for each other in a circle: nobody is a member that deep.
const maxGroupDepth = 8

// group is a decoded entity group. An expression is compiled once for each depth at which it is asked, since memberOf in it asks one deeper.
type group struct {
	doc     core.Group
	members map[string]bool
	exprs   [maxGroupDepth]atomic.Pointer[filter.Expr]
	faulty  atomic.Bool   // the expression does not compile: nobody is a member
	foreign atomic.Uint64 // questions that its expression asked about anything but the document of the entity
}

func newCatalog() *catalog {
	return &catalog{documents: table.New(table.Options{}), versions: core.MaxEntityVersions,
		metricNames: sorted[metric]{compare: func(a, b *metric) int { return strings.Compare(a.name, b.name) }},
		entityNames: sorted[entity]{compare: func(a, b *entity) int { return strings.Compare(a.name, b.name) }},
		hotMetrics:  hot[packedMetric, core.Metric]{seed: maphash.MakeSeed()},
		hotEntities: hot[packedEntity, core.Entity]{seed: maphash.MakeSeed()},
		saved:       table.New(table.Options{CacheBytes: 1}),
		metrics:     newNameTable(func(m *metric) string { return m.name }),
		entities:    newNameTable(func(e *entity) string { return e.name }),
		groups:      map[string]*group{}, collections: map[string][]string{}}
}

// metric returns the metric of a name, made on the first call.
func (c *catalog) metric(name string) *metric {
	m := c.lookupMetric(name)
	if m == nil { // only the appender makes one, so nobody else has made it meanwhile
		m = c.newMetric(name)
	}
	return m
}

// newMetric makes the metric of a name, in the place of the one that has it.
func (c *catalog) newMetric(name string) *metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.metrics.next()
	m.name = c.packing.texts.keep(name)
	c.metrics.put()
	return m
}

func (c *catalog) entity(name string) *entity {
	e := c.lookupEntity(name)
	if e == nil {
		e = c.newEntity(name)
	}
	return e
}

func (c *catalog) newEntity(name string) *entity {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entities.next()
	e.name = c.packing.texts.keep(name)
	c.entities.put()
	return e
}

func (c *catalog) findMetric(name string) (core.Metric, bool) {
	if m := c.lookupMetric(name); m != nil {
		if doc := m.doc.Load(); doc != nil {
			return c.unpackMetric(m, doc), true
		}
	}
	return core.Metric{Name: name}, false
}

// unpackMetric returns the document of m, which is that of a packed one.
func (c *catalog) unpackMetric(m *metric, doc *packedMetric) core.Metric {
	if doc.text == "" {
		return doc.unpack(m.name)
	}
	return *c.hotMetrics.get(m.name, doc, (*packedMetric).unpack)
}

func (c *catalog) lookupMetric(name string) *metric {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.metrics.find(name)
}

func (c *catalog) lookupEntity(name string) *entity {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entities.find(name)
}

func (c *catalog) collection(name string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.collections[name]
}

func (c *catalog) findEntity(name string) (core.Entity, bool) {
	if e := c.lookupEntity(name); e != nil {
		if doc := e.doc.Load(); doc != nil {
			if doc.more == nil {
				return doc.unpack(e.name), true
			}
			return *c.hotEntities.get(e.name, doc, (*packedEntity).unpack), true
		}
	}
	return core.Entity{Name: name}, false
}

func (c *catalog) findGroup(name string) *group {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.groups[name]
}

// ensureMetric makes the document of a metric as its first sample does: a sample with version fields makes a versioned one.
func (c *catalog) ensureMetric(m *metric, versioned versioning, now core.Time) {
	if m.doc.Load() != nil {
		return
	}
	doc := core.NewMetric(m.name, now)
	doc.Versioned = versioned == isVersioned
	body, _ := json.Marshal(doc) // plain struct: cannot fail
	m.doc.Store(c.packing.metric(&doc, sideBySide))
	c.metricNames.put(m)
	c.store(core.DocMetric, m.name, body)
}

// versioning says whether a sample carries version fields.
type versioning uint8

const (
	notVersioned versioning = iota
	isVersioned
)

func (c *catalog) ensureEntity(e *entity, now core.Time) {
	if e.doc.Load() != nil {
		return
	}
	doc := core.NewEntity(e.name, now)
	body, _ := json.Marshal(doc) // plain struct: cannot fail
	e.doc.Store(c.packing.entity(&doc, nil, sideBySide))
	c.entityNames.put(e)
	c.store(core.DocEntity, e.name, body)
}

// check reports whether all changes can be applied, one after the other, without applying one: a batch is taken whole or not at all.
func (c *catalog) check(changes []core.DocChange, now core.Time) error {
	if len(changes) == 0 {
		return nil
	}
	a := after{catalog: c, now: now, bodies: map[docName][]byte{}}
	for _, change := range changes {
		if err := a.apply(change); err != nil {
			return err
		}
	}
	return nil
}

// decodeBody returns *core.Metric, *core.Entity, *core.Group or *core.Collection, or nil for a kind that is kept as it is. The name is that of the key.
func decodeBody(kind core.DocKind, key string, body []byte) (any, error) {
	var into any
	var err error
	switch kind {
	case core.DocMetric:
		m := &core.Metric{}
		err = json.Unmarshal(body, m)
		m.Name, into = key, m
	case core.DocEntity:
		e := &core.Entity{}
		err = json.Unmarshal(body, e)
		e.Name, into = key, e
	case core.DocGroup:
		g := &core.Group{}
		err = json.Unmarshal(body, g)
		g.Name, into = key, g
	case core.DocCollection:
		into = &core.Collection{}
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return nil, core.Wrap(core.Invalid, err, "malformed "+string(kind)+" "+key)
	}
	return into, nil
}

// apply makes one change. deleted reports whether a document went away.
func (c *catalog) apply(change core.DocChange, now core.Time) (deleted bool, err error) {
	before, err := c.body(change.Kind, change.Key)
	if err != nil {
		return false, err
	}
	body, err := change.Apply(before, now)
	if err != nil {
		return false, err
	}
	key := strings.Clone(change.Key)
	if body == nil {
		if before != nil {
			c.documents.Delete(documentKey(change.Kind, key))
		}
		c.publish(change.Kind, key, nil)
		return true, nil
	}
	decoded, err := decodeBody(change.Kind, key, body)
	if err != nil {
		return false, err
	}
	c.publish(change.Kind, key, decoded)
	c.store(change.Kind, key, body)
	return false, nil
}

// publish shows the decoded form of a document to Catalog; nil when it is gone.
func (c *catalog) publish(kind core.DocKind, key string, decoded any) {
	switch kind {
	case core.DocMetric:
		m := c.metric(key)
		if doc, _ := decoded.(*core.Metric); doc != nil {
			m.doc.Store(c.packing.metric(doc, alone))
			c.metricNames.put(m)
		} else {
			m.doc.Store(nil)
			c.metricNames.remove(m)
		}
	case core.DocEntity:
		e := c.entity(key)
		doc, _ := decoded.(*core.Entity)
		if doc == nil {
			c.forgetPast(e, key)
			e.doc.Store(nil)
			c.entityNames.remove(e)
			return
		}
		if old := e.doc.Load(); old != nil && old.versionDate() != doc.VersionDate() {
			before := old.unpack(key)
			c.supersede(e, key, &before)
		}
		e.doc.Store(c.packing.entity(doc, core.TagsOf(doc.Tags), alone))
		c.entityNames.put(e)
	case core.DocGroup:
		c.mu.Lock()
		defer c.mu.Unlock()
		if doc, _ := decoded.(*core.Group); doc != nil {
			c.groups[key] = newGroup(*doc)
		} else {
			delete(c.groups, key)
		}
		c.groupsVersion.Add(1)
	case core.DocCollection:
		c.mu.Lock()
		defer c.mu.Unlock()
		if doc, _ := decoded.(*core.Collection); doc != nil {
			c.collections[key] = doc.Values
		} else {
			delete(c.collections, key)
		}
	}
}

func newGroup(doc core.Group) *group {
	g := &group{doc: doc, members: make(map[string]bool, len(doc.Members))}
	for _, m := range doc.Members {
		g.members[m] = true
	}
	return g
}

// replaceMember puts another entity in the place of one in the groups that list it; "" = none.
func (c *catalog) replaceMember(entity, by string, now core.Time) error {
	c.mu.RLock()
	var listed []*group
	for _, g := range c.groups {
		if g.members[entity] {
			listed = append(listed, g)
		}
	}
	c.mu.RUnlock()
	for _, g := range listed {
		rest := slices.DeleteFunc(slices.Clone(g.doc.Members), func(m string) bool { return m == entity })
		if i, found := slices.BinarySearch(rest, by); by != "" && !found {
			rest = slices.Insert(rest, i, by)
		}
		patch, _ := json.Marshal(map[string]any{"members": rest}) // a list of texts: cannot fail
		if _, err := c.apply(core.DocChange{Kind: core.DocGroup, Key: g.doc.Name, Op: core.DocPatch, Body: patch}, now); err != nil {
			return err
		}
	}
	return nil
}

// patchTags sets tags of an entity, or removes those with an empty value; a set that changes nothing leaves the document alone.
func (c *catalog) patchTags(entity string, tags core.Tags, now core.Time) error {
	e, _ := c.findEntity(entity)
	changes := map[string]any{}
	for _, tag := range tags {
		switch old, ok := e.Tags[tag.Name]; {
		case tag.Value == "" && ok:
			changes[tag.Name] = nil
		case tag.Value != "" && tag.Value != old:
			changes[tag.Name] = tag.Value
		}
	}
	if len(changes) == 0 {
		return nil
	}
	patch, _ := json.Marshal(map[string]any{"tags": changes}) // texts: cannot fail
	_, err := c.apply(core.DocChange{Kind: core.DocEntity, Key: entity, Op: core.DocPatch, Body: patch}, now)
	return err
}
