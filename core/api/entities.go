package api

import (
	"encoding/json"
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

// entityPut creates an entity or replaces its settings; what is not sent gets its default. Data and creation time stay.
func (c *call) entityPut() error {
	name, p, err := c.entityPatchBody()
	if err != nil {
		return err
	}
	now := c.now()
	fresh := core.NewEntity(name, now)
	if old, ok := c.server.Catalog.Entity(name); ok {
		fresh.Created, fresh.Versioned = old.Created, nextVersion(&old, now)
	}
	base, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	body, err := core.MergePatch(base, p.close())
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPut, Body: body})
}

// entityPatch changes the fields that are sent and merges tags by name.
func (c *call) entityPatch() error {
	name, p, err := c.entityPatchBody()
	if err != nil {
		return err
	}
	old, ok := c.server.Catalog.Entity(name)
	if !ok {
		return notFound("entity", name)
	}
	p.name("versionDate")
	p.body = strconv.AppendInt(p.body, int64(nextVersion(&old, c.now())), 10)
	return c.write(core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPatch, Body: p.close()})
}

// nextVersion is the time of a change. Version times of an entity strictly increase.
func nextVersion(e *core.Entity, now core.Time) core.Time { return max(now, versionDate(e)+1) }

// versionDate is the time of the latest version; the first one is the creation.
func versionDate(e *core.Entity) core.Time { return max(e.Versioned, e.Created) }

func (c *call) entityPatchBody() (string, *docPatch, error) {
	name, err := c.pathName("entity")
	if err != nil {
		return "", nil, err
	}
	body, err := c.json()
	if err != nil {
		return "", nil, err
	}
	p, err := decodePatch(body, "entity", entityField)
	return name, p, err
}

// entityDelete removes an entity with its data, and from all groups.
func (c *call) entityDelete() error {
	name, err := c.pathName("entity")
	if err != nil {
		return err
	}
	if _, ok := c.server.Catalog.Entity(name); !ok {
		return notFound("entity", name)
	}
	return c.write(core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocDelete})
}

// entityGet shows one entity with all its tags, an empty object when it has none.
func (c *call) entityGet() error {
	name, err := c.pathName("entity")
	if err != nil {
		return err
	}
	if c.query().Get("version") != "" {
		return core.Errorf(core.Unimplemented, "not implemented: entity versions")
	}
	e, ok := c.server.Catalog.Entity(name)
	if !ok {
		return notFound("entity", name)
	}
	l, err := c.listing(filter.Entities)
	if err != nil {
		return err
	}
	body := appendTagObject(appendEntity(nil, &e), e.Tags, everyTag)
	if l.insertTime {
		one := core.SeriesQuery{Entities: core.EntityFilter{Names: []string{name}}}
		last, err := c.lastInserts(one, func(k core.SeriesKey) string { return k.Entity })
		if err != nil {
			return err
		}
		if t, ok := last[name]; ok {
			body = appendDate(body, "lastInsertDate", t)
		}
	}
	return c.sendJSON(append(body, '}'))
}

// entityList lists entities by name.
func (c *call) entityList() error {
	return c.listEntities(func(*core.Entity) bool { return true })
}

// groupEntities lists the members of a group as the list of entities does.
func (c *call) groupEntities() error {
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	return c.listEntities(func(e *core.Entity) bool { return c.server.Catalog.Member(e.Name, g.Name) })
}

// listEntities answers with the entities that include accepts and the listing parameters let pass. The limit counts what passed.
func (c *call) listEntities(include func(*core.Entity) bool) error {
	l, err := c.listing(filter.Entities)
	if err != nil {
		return err
	}
	var last map[string]core.Time
	if l.wantsInsertTimes() {
		if last, err = c.lastInserts(core.SeriesQuery{}, func(k core.SeriesKey) string { return k.Entity }); err != nil {
			return err
		}
	}
	out := list{body: []byte{'['}}
	err = documents(c.r.Context(), c.server.Reader, core.DocEntity, func(e core.Entity) (bool, error) {
		t, known := last[e.Name]
		if !include(&e) || !l.inserted(t, known) {
			return true, nil
		}
		if ok, err := l.matches(filter.EntityEnv{Entity: &e}); err != nil || !ok {
			return true, err
		}
		out.next()
		out.body = appendEntity(out.body, &e)
		if l.tags != nil {
			out.body = appendTagObject(out.body, e.Tags, l.keeps)
		}
		if l.insertTime && known {
			out.body = appendDate(out.body, "lastInsertDate", t)
		}
		out.body = append(out.body, '}')
		return l.limit <= 0 || out.n < l.limit, nil
	})
	if err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// entityGroups lists the groups that an entity belongs to.
func (c *call) entityGroups() error {
	name, err := c.pathName("entity")
	if err != nil {
		return err
	}
	if _, ok := c.server.Catalog.Entity(name); !ok {
		return notFound("entity", name)
	}
	out := list{body: []byte{'['}}
	err = documents(c.r.Context(), c.server.Reader, core.DocGroup, func(g core.Group) (bool, error) {
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
	since, _, err := c.dateParameter(c.query(), "minInsertDate")
	if err != nil {
		return err
	}
	name, err := c.pathName("entity")
	if err != nil {
		return err
	}
	if _, ok := c.server.Catalog.Entity(name); !ok {
		return notFound("entity", name)
	}
	q := core.PropertyQuery{Scope: c.id.Grants.ReadScope(), Entities: core.EntityFilter{Names: []string{name}}, Range: core.AllTime}
	q.Range.Start = max(since, core.MinTime)
	var types []string
	for r, err := range c.server.Reader.Properties(c.r.Context(), q) {
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
