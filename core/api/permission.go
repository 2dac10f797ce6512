package api

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/query"
)

// readable reports whether the caller may read an entity.
func (c *call) readable(entity string) bool {
	g := &c.id.Grants
	return g.ReadAll || query.MemberOfAny(c.server.Catalog, g.ReadGroups)(entity)
}

// writable reports whether the caller may write an entity; one that does not exist needs the permission for all.
func (c *call) writable(entity string) bool {
	g := &c.id.Grants
	return g.WriteAll || query.MemberOfAny(c.server.Catalog, g.WriteGroups)(entity)
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
