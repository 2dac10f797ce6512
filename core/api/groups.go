package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/query"
)

// groupField is the check of one field of an entity group. An expression is compiled here, so that a stored one always works.
func groupField(p *docPatch, name string, v gjson.Result) bool {
	switch name {
	case "name":
		return true // the path decides
	case "enabled":
		return p.setFlag(name, v)
	case "expression":
		if text := p.text(name, v); strings.TrimSpace(text) != "" {
			if err := filter.Check(filter.Entities, text); err != nil {
				p.fail("expression: %s", err)
			}
		}
		return p.setText(name, v)
	case "tags":
		return p.setTags(v)
	}
	return false
}

// group reads a group by its exact name; names keep their case.
func (c *call) group(name string) (core.Group, bool, error) {
	var g core.Group
	for doc, err := range c.server.Reader.Documents(c.reading(), core.DocumentQuery{Kind: core.DocGroup, Key: name}) {
		if err != nil {
			return g, false, err
		}
		if doc.Key != name {
			continue
		}
		if err := json.Unmarshal(doc.Body, &g); err != nil {
			return g, false, fmt.Errorf("read group %q: %w", name, err)
		}
		return g, true, nil
	}
	return g, false, nil
}

// groupName returns the group of the path. Unlike other names it keeps its case and may hold blanks and slashes.
func (c *call) groupName() (string, error) {
	name := c.param("group")
	if strings.TrimSpace(name) == "" || strings.ContainsAny(name, "\x00\x01") {
		return "", core.Errorf(core.Invalid, "IllegalArgumentException: Invalid entity group name '%s'", excerpt(name))
	}
	return name, nil
}

// existingGroup reads the group of the path; none is a 404.
func (c *call) existingGroup() (core.Group, error) {
	name, err := c.groupName()
	if err != nil {
		return core.Group{}, err
	}
	g, ok, err := c.group(name)
	if err == nil && !ok {
		err = notFound("entity group", name)
	}
	return g, err
}

// groupPut creates a group or replaces its settings; its members stay.
func (c *call) groupPut() error {
	name, err := c.groupName()
	if err != nil {
		return err
	}
	patch, err := c.groupPatchBody()
	if err != nil {
		return err
	}
	old, exists, err := c.group(name)
	if err != nil {
		return err
	}
	fresh := core.Group{Name: name, Enabled: true, Members: old.Members}
	if exists && old.Expression != "" && gjson.GetBytes(patch, "expression").String() == "" {
		if fresh.Members, err = c.membersOf(&old); err != nil {
			return err
		}
	}
	body, err := patched(fresh, patch)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocGroup, Key: name, Op: core.DocPut, Body: body})
}

// groupPatch changes the fields that are sent and merges tags by name; an empty expression removes it.
func (c *call) groupPatch() error {
	patch, err := c.groupPatchBody()
	if err != nil {
		return err
	}
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	if x := gjson.GetBytes(patch, "expression"); g.Expression != "" && x.Exists() && x.String() == "" {
		members, err := c.membersOf(&g)
		if err != nil {
			return err
		}
		kept := append(appendStrings([]byte(`{"members":`), members), '}')
		if patch, err = core.MergePatch(patch, kept); err != nil {
			return err
		}
	}
	return c.write(core.DocChange{Kind: core.DocGroup, Key: g.Name, Op: core.DocPatch, Body: patch})
}

// membersOf are the members of a group at this moment, sorted: what an expression has found stays when the expression goes.
func (c *call) membersOf(g *core.Group) ([]string, error) {
	if g.Expression == "" {
		return g.Members, nil
	}
	var members []string
	for e, err := range c.server.Metadata.Entities(c.reading(), core.MetaQuery{}) {
		if err != nil {
			return nil, err
		}
		if c.server.Catalog.Member(e.Name, g.Name) {
			members = append(members, e.Name)
		}
	}
	return members, nil
}

// groupPatchBody reads the fields of a PUT or PATCH of a group.
func (c *call) groupPatchBody() ([]byte, error) {
	body, err := c.json()
	if err != nil {
		return nil, err
	}
	p, err := decodePatch(body, "entity group", groupField)
	if err != nil {
		return nil, err
	}
	return p.close(), nil
}

// groupEntities lists the members of a group as the list of entities does. A disabled group without an expression still has those it lists.
func (c *call) groupEntities() error {
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	l, err := c.listing(filter.Entities)
	if err != nil {
		return err
	}
	members, err := c.membersOf(&g)
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	more := true
	for i := 0; i < len(members) && more; i++ {
		for d, err := range entityMeta.walk(c.reading(), c.server.Metadata, core.MetaQuery{Name: members[i]}) {
			if err != nil {
				return err
			}
			if more, err = entityMeta.add(c, &l, &out, d); err != nil {
				return err
			}
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// groupDelete removes a group; its members and their data stay.
func (c *call) groupDelete() error {
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocGroup, Key: g.Name, Op: core.DocDelete})
}

// groupGet shows a group with all its tags. Members have a route of their own.
func (c *call) groupGet() error {
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	body := appendTagObject(appendGroup(nil, &g), g.Tags, query.AllTags)
	body = appendText(body, "expression", g.Expression)
	return c.sendJSON(append(body, '}'))
}

// groupList lists groups by name.
func (c *call) groupList() error {
	l, err := c.listing(filter.Groups)
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	err = documents(c.reading(), c.server.Reader, core.DocGroup, func(g core.Group) (bool, error) {
		if ok, err := l.matches(filter.GroupEnv{Group: &g}); err != nil || !ok {
			return true, err
		}
		out.next()
		out.body = appendGroup(out.body, &g)
		if l.tags != nil {
			out.body = appendTagObject(out.body, g.Tags, l.tags)
		}
		out.body = append(appendText(out.body, "expression", g.Expression), '}')
		return l.more(&out), c.fits(out.body)
	})
	if err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// appendGroup writes a group as far as tags, which depend on the request, without the closing brace.
func appendGroup(dst []byte, g *core.Group) []byte {
	return appendFlag(appendString(append(dst, `{"name":`...), g.Name), "enabled", g.Enabled)
}

// groupAdd adds members; those that are there already do no harm.
func (c *call) groupAdd() error {
	return c.changeMembers(func(members, names []string) []string { return append(members, names...) })
}

// groupSet replaces the members; an empty list removes all.
func (c *call) groupSet() error {
	return c.changeMembers(func(_, names []string) []string { return names })
}

// groupRemove removes members; names that are none are ignored.
func (c *call) groupRemove() error {
	return c.changeMembers(func(members, names []string) []string {
		slices.Sort(names)
		return slices.DeleteFunc(members, func(m string) bool {
			_, gone := slices.BinarySearch(names, m)
			return gone
		})
	})
}

// changeMembers stores what change makes of the members and the names in the body, and creates the entities that do not exist.
func (c *call) changeMembers(change func(members, names []string) []string) error {
	body, err := c.json()
	if err != nil {
		return err
	}
	create, err := flagParameter(c.values, "createEntities", true)
	if err != nil {
		return err
	}
	var o object
	root := gjson.Parse(body)
	names := o.texts("entities", root)
	if root.Type == gjson.Null { // `set` would remove all members
		o.fail("an array of entity names is expected, not null")
	}
	if o.err != nil {
		return o.err
	}
	g, err := c.existingGroup()
	if err != nil {
		return err
	}
	if g.Expression != "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Cannot modify entities for entity group '%s'. Reset expression field first.", g.Name)
	}
	b := c.batch()
	for i, name := range names {
		if names[i] = lowered(trimmed(name)); names[i] == "" || !validName(names[i]) {
			return core.Errorf(core.Invalid, "IllegalArgumentException: Invalid entity name '%s'", excerpt(name))
		}
	}
	before := g.Members // sorted
	members := change(slices.Clone(before), names)
	slices.Sort(members)
	members = slices.Compact(members)
	for _, name := range members {
		if _, member := slices.BinarySearch(before, name); member {
			continue
		}
		if _, ok := c.server.Catalog.Entity(name); ok {
			continue
		}
		if !create {
			return core.Errorf(core.NotFound, "DictionaryNotFoundException: ENTITY not found for name: '%s'", name)
		}
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPatch, Body: []byte("{}")})
	}
	patch := append(appendStrings([]byte(`{"members":`), members), '}')
	b.Documents = append(b.Documents, core.DocChange{Kind: core.DocGroup, Key: g.Name, Op: core.DocPatch, Body: patch})
	return c.ingest(b)
}
