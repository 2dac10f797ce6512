package api

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// readable reports whether the caller may read an entity.
func (c *call) readable(entity string) bool {
	g := &c.id.Grants
	return g.ReadAll || c.inAny(entity, g.ReadGroups)
}

// writable reports whether the caller may write an entity; one that does not exist needs the permission for all.
func (c *call) writable(entity string) bool {
	g := &c.id.Grants
	return g.WriteAll || c.inAny(entity, g.WriteGroups)
}

// inAny asks the catalog, which knows groups by expression as well; a disabled group has no members.
func (c *call) inAny(entity string, groups []string) bool {
	return slices.ContainsFunc(groups, func(group string) bool { return c.server.Catalog.Member(entity, group) })
}

// mayRead refuses a query that names an existing entity which the caller may not read. Patterns, groups and expressions are not
// refused: the scope of the query drops what is not readable.
func (c *call) mayRead(f core.EntityFilter) error {
	if c.id.Grants.ReadAll {
		return nil
	}
	for _, name := range f.Names {
		if _, exists := c.server.Catalog.Entity(name); exists && !c.readable(name) {
			return auth.Denied()
		}
	}
	return nil
}
