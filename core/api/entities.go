package api

import (
	"context"
	"iter"
	"sort"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/query"
)

// entityField is the check of one field of an entity; false refuses the field by name. Clients send back whole records: what only the server
// sets is accepted and ignored.
func entityField(p *docPatch, name string, v gjson.Result) bool {
	switch name {
	case "name", "createdDate", "versionDate", "lastInsertDate", "interpolationType", "timePrecision":
		return true // the path decides, or the server; the last two are what one client sends
	case "label":
		return p.setText(name, v)
	case "enabled":
		return p.setFlag(name, v)
	case "interpolate":
		return p.setEnum(name, v, "", "LINEAR", "PREVIOUS")
	case "timeZone":
		return p.setZone(v)
	case "tags":
		return p.setTags(v)
	}
	return false
}

// entityMeta is the metadata of entities.
var entityMeta = metadata[core.Entity]{
	doc: core.DocEntity, parameter: "entity", context: filter.Entities, field: entityField, find: core.Catalog.Entity,
	walk: func(ctx context.Context, m core.Metadata, q core.MetaQuery) iter.Seq2[described[core.Entity], error] {
		return func(yield func(described[core.Entity], error) bool) {
			for one, err := range m.Entities(ctx, q) {
				if err != nil {
					yield(described[core.Entity]{}, err)
					return
				}
				if !yield(described[core.Entity]{one.Entity, one.Last, one.Inserted}, nil) {
					return
				}
			}
		}
	},
	env:   func(e *core.Entity) filter.Env { return filter.EntityEnv{Entity: e} },
	print: query.AppendEntity,
}

func (c *call) entityList() error   { return entityMeta.list(c) }
func (c *call) entityPatch() error  { return entityMeta.update(c) }
func (c *call) entityRename() error { return entityMeta.rename(c) }

// entityDelete removes an entity with its data, and from all groups.
func (c *call) entityDelete() error { return entityMeta.remove(c) }

// entityPut creates an entity or replaces its settings; what is not sent gets its default. Data and creation time stay.
func (c *call) entityPut() error {
	name, p, err := entityMeta.patch(c)
	if err != nil {
		return err
	}
	return entityMeta.put(c, name, core.NewEntity(name, 0), p.close())
}

// entityPost is entityPut with the name in the body.
func (c *call) entityPost() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	p, err := decodePatch(body, "entity", entityField)
	if err != nil {
		return err
	}
	name := lowered(gjson.Get(body, "name").String())
	if name == "" || !validName(name) {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Invalid entity name '%s'", excerpt(name))
	}
	return entityMeta.put(c, name, core.NewEntity(name, 0), p.close())
}

// entityGet shows an entity as it is, or as it was at the time of the parameter `version`.
func (c *call) entityGet() error {
	at, past, err := c.dateParameter(c.values, "version")
	if err != nil {
		return err
	}
	if !past {
		return entityMeta.get(c)
	}
	insertTime, err := c.wantsInsertTime()
	if err != nil {
		return err
	}
	name, _, err := entityMeta.existing(c)
	if err != nil {
		return err
	}
	versions := c.server.Metadata.EntityVersions(name)
	n := sort.Search(len(versions), func(i int) bool { return versions[i].VersionDate() > at })
	if n == 0 {
		return core.Errorf(core.NotFound, "ENTITY not found for name: '%s': it has no version at %s", name, dates.AppendISO(nil, at))
	}
	f := query.MetaFields{Tags: query.AllTags}
	if insertTime {
		for e, err := range c.server.Metadata.Entities(c.reading(), core.MetaQuery{Name: name}) {
			if err != nil {
				return err
			}
			f.Insert, f.Last = e.Inserted, e.Last
		}
	}
	return c.sendJSON(query.AppendEntity(nil, &versions[n-1], f))
}

// entityVersions lists the times of the versions of an entity, both bounds inclusive.
func (c *call) entityVersions() error {
	first, _, err := c.dateParameter(c.values, "minVersionDate")
	if err != nil {
		return err
	}
	last, bounded, err := c.dateParameter(c.values, "maxVersionDate")
	if err != nil {
		return err
	}
	name, _, err := entityMeta.existing(c)
	if err != nil {
		return err
	}
	var times []string
	for _, v := range c.server.Metadata.EntityVersions(name) {
		if at := v.VersionDate(); at >= first && (!bounded || at <= last) {
			times = append(times, string(dates.AppendISO(nil, at)))
		}
	}
	return c.sendJSON(appendStrings(nil, times))
}

// entityMetrics lists the metrics of an entity. Their times are those of its own series, or with useEntityInsertTime=false of all.
func (c *call) entityMetrics() error {
	l, err := c.listing(filter.Metrics)
	if err != nil {
		return err
	}
	ownTimes, err := flagParameter(c.values, "useEntityInsertTime", true)
	if err != nil {
		return err
	}
	name, _, err := entityMeta.existing(c)
	if err != nil {
		return err
	}
	own := map[string]core.Time{}
	var metrics []string
	q := core.SeriesQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{name}}, Range: core.AllTime}
	for k, err := range c.server.Reader.Keys(c.reading(), q) {
		if err != nil {
			return err
		}
		metric := strings.Clone(k.Key.Metric)
		last, seen := own[metric]
		if !seen {
			metrics = append(metrics, metric) // keys come by metric
		}
		own[metric] = max(last, k.Last)
	}
	out := list{body: []byte{'['}}
	more := true
	for i := 0; i < len(metrics) && more; i++ {
		for d, err := range metricMeta.walk(c.reading(), c.server.Metadata, core.MetaQuery{Name: metrics[i]}) {
			if err != nil {
				return err
			}
			if ownTimes {
				d.last, d.inserted = own[metrics[i]], true
			}
			if more, err = metricMeta.add(c, &l, &out, d); err != nil {
				return err
			}
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// entityGroups lists the groups that an entity belongs to.
func (c *call) entityGroups() error {
	name, _, err := entityMeta.existing(c)
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	err = documents(c.reading(), c.server.Reader, core.DocGroup, func(g core.Group) (bool, error) {
		if !c.server.Catalog.Member(name, g.Name) {
			return true, nil
		}
		out.next()
		out.body = appendString(append(out.body, `{"name":`...), g.Name)
		out.body = append(appendTagObject(out.body, g.Tags, query.AllTags), '}')
		return true, nil
	})
	if err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// entityPropertyTypes lists the types of an entity's records that are not older than minInsertDate.
func (c *call) entityPropertyTypes() error {
	since, _, err := c.dateParameter(c.values, "minInsertDate")
	if err != nil {
		return err
	}
	name, _, err := entityMeta.existing(c)
	if err != nil {
		return err
	}
	q := core.PropertyQuery{Scope: core.AllEntities, Entities: core.EntityFilter{Names: []string{name}}, Range: core.AllTime}
	q.Range.Start = max(since, core.MinTime)
	var types []string
	for r, err := range c.server.Reader.Properties(c.reading(), q) {
		if err != nil {
			return err
		}
		// Records come by type within an entity: a type that was seen is the last one of the list.
		if n := len(types); r.Type != core.EntityTagsType && (n == 0 || types[n-1] != r.Type) {
			types = append(types, strings.Clone(r.Type))
		}
	}
	return c.sendJSON(appendStrings(nil, types))
}
