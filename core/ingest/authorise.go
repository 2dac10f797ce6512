package ingest

import (
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// errForbidden is the answer of the contract to a missing role and to a missing entity permission alike.
var errForbidden = core.Errorf(core.Forbidden, "code 15")

// rolesOf returns the roles that the records of a batch need. It looks at the batch as it was sent: what settings drop or turn into something else
// needs the same rights.
func rolesOf(b *core.Batch) core.Roles {
	var needs core.Roles
	if b.Samples.Len()+len(b.Messages)+len(b.Properties)+len(b.Series)+len(b.Removed)+len(b.Alerts) > 0 {
		needs |= core.DataWrite
	}
	for _, d := range b.Documents {
		needs |= documentRoles(d.Kind)
	}
	return needs
}

// documentRoles returns the roles for a change of one kind of document. Kinds that carry rights or state of the server are for administrators: a layer
// that lets users change their own, such as their password, checks that itself and writes as the system.
func documentRoles(kind core.DocKind) core.Roles {
	switch kind {
	case core.DocMetric, core.DocEntity, core.DocTable: // a collection is for administrators, as its form is
		return core.MetaWrite
	case core.DocGroup:
		return core.MetaWrite | core.EntityGroupAdmin
	case core.DocRule, core.DocParser:
		return core.Editor
	}
	return core.Admin
}

// authorise checks roles first, then the write permission on each entity that the batch writes data of. An entity that does not exist is in no group, so
// that only the permission for all entities lets it be created.
func (a *acceptance) authorise(needs core.Roles) error {
	grants := &a.b.Origin.Grants
	if !grants.Roles.Has(needs) {
		return errForbidden
	}
	if grants.WriteAll || len(a.entities) == 0 {
		return nil
	}
	writable := a.memberOfAny(grants.WriteGroups)
	for i := range a.entities {
		if e := &a.entities[i]; !e.known || !writable(e.name) {
			return errForbidden
		}
	}
	return nil
}

// grouped is what a catalog may know besides: to answer for several groups at once costs it less than one answer for each.
type grouped interface {
	// AnyMember returns the question whether an entity is in any of the groups as they are now.
	AnyMember(groups []string) func(entity string) bool
}

// memberOfAny returns the question whether an entity is in any of the groups.
func (a *acceptance) memberOfAny(groups []string) func(entity string) bool {
	if c, ok := a.catalog.(grouped); ok {
		return c.AnyMember(groups)
	}
	return func(entity string) bool {
		return slices.ContainsFunc(groups, func(group string) bool { return a.catalog.Member(entity, group) })
	}
}
