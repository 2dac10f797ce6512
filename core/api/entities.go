package api

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// entityField is the check of one field of an entity; false refuses the field by name. Clients send back whole records: what only the server
// sets is accepted and ignored.
func entityField(p *docPatch, name string, v gjson.Result) bool {
	switch name {
	case "name", "createdDate", "versionDate", "lastInsertDate":
		return true // the path decides, or the server
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
	name:  func(e *core.Entity) string { return e.Name },
	named: func(k core.SeriesKey) string { return k.Entity },
	series: func(name string) core.SeriesQuery {
		return core.SeriesQuery{Entities: core.EntityFilter{Names: []string{name}}}
	},
	env:   func(e *core.Entity) filter.Env { return filter.EntityEnv{Entity: e} },
	tags:  func(e *core.Entity) map[string]string { return e.Tags },
	print: appendEntity,
}

func (c *call) entityList() error { return entityMeta.list(c, everyName) }

// entityDelete removes an entity with its data, and from all groups.
func (c *call) entityDelete() error { return entityMeta.remove(c) }

func (c *call) entityGet() error {
	if c.values.Get("version") != "" {
		return core.Errorf(core.Unimplemented, "not implemented: entity versions")
	}
	return entityMeta.get(c)
}

// groupEntities lists the members of a group as the list of entities does.
func (c *call) groupEntities() error {
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	return entityMeta.list(c, func(name string) bool { return c.server.Catalog.Member(name, g.Name) })
}

// entityPut creates an entity or replaces its settings; what is not sent gets its default. Data and creation time stay.
func (c *call) entityPut() error {
	name, p, err := entityMeta.patch(c)
	if err != nil {
		return err
	}
	now := c.now()
	fresh := core.NewEntity(name, now)
	if old, ok := c.server.Catalog.Entity(name); ok {
		fresh.Created, fresh.Versioned = old.Created, nextVersion(&old, now)
	}
	return entityMeta.put(c, name, fresh, p.close())
}

// entityPatch changes the fields that are sent and merges tags by name.
func (c *call) entityPatch() error {
	_, p, err := entityMeta.patch(c)
	if err != nil {
		return err
	}
	name, old, err := entityMeta.existing(c)
	if err != nil {
		return err
	}
	p.name("versionDate")
	p.body = strconv.AppendInt(p.body, int64(nextVersion(&old, c.now())), 10)
	return c.write(core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPatch, Body: p.close()})
}

// nextVersion is the time of a change. Version times of an entity strictly increase.
func nextVersion(e *core.Entity, now core.Time) core.Time { return max(now, versionDate(e)+1) }

// versionDate is the time of the latest version; the first one is the creation.
func versionDate(e *core.Entity) core.Time { return max(e.Versioned, e.Created) }

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
		out.body = append(appendTagObject(out.body, g.Tags, everyTag), '}')
		return true, nil
	})
	if err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// appendEntity writes an entity as far as tags, which depend on the request, without the closing brace.
func appendEntity(dst []byte, e *core.Entity) []byte {
	dst = appendString(append(dst, `{"name":`...), e.Name)
	dst = appendFlag(dst, "enabled", e.Enabled)
	dst = appendText(dst, "label", e.Label)
	dst = appendText(dst, "interpolate", e.Interpolate)
	dst = appendText(dst, "timeZone", e.TimeZone)
	dst = appendDate(dst, "createdDate", e.Created)
	return appendDate(dst, "versionDate", versionDate(e))
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
	q := core.PropertyQuery{Scope: c.id.Grants.ReadScope(), Entities: core.EntityFilter{Names: []string{name}}, Range: core.AllTime}
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
