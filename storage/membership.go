package storage

import (
	"encoding/binary"
	"maps"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// member holds for enabled groups only: those with an expression have the entities for which it is true, the others those they list. An
// expression that is faulty selects nobody.
func (w *world) member(entity, group string, depth int) bool {
	g := w.catalog.findGroup(group)
	if g == nil || !g.doc.Enabled || depth >= maxGroupDepth {
		return false
	}
	if g.doc.Expression == "" {
		return g.members[entity]
	}
	return w.expressed(g, entity, depth)
}

// expressed evaluates the expression of a group for an entity, or remembers what it gave.
func (w *world) expressed(g *group, name string, depth int) bool {
	e := w.catalog.lookupEntity(name)
	if e == nil || g.faulty.Load() {
		return false
	}
	doc := e.doc.Load()
	if doc == nil {
		return false
	}
	if yes, known := w.catalog.decisions.get(g, e, doc); known {
		return yes
	}
	expr := w.expression(g, depth)
	if expr == nil {
		return false
	}
	before := g.foreign.Load()
	match, err := expr.Match(filter.EntityEnv{Entity: w.catalog.hotEntities.get(e.name, doc, (*packedEntity).unpack)})
	match = match && err == nil
	if g.foreign.Load() == before {
		w.catalog.decisions.put(g, e, decision{doc, match})
	}
	return match
}

// expression compiles the expression of a group for a depth, nil when it is faulty. Its functions and its clock count the questions that it asks about
// anything but the entity.
func (w *world) expression(g *group, depth int) *filter.Expr {
	if expr := g.exprs[depth].Load(); expr != nil {
		return expr
	}
	k := filter.Compiler{Functions: counted(w.functions(depth+1), g), Zone: w.zone}
	if w.now != nil {
		k.Now = func() core.Time {
			g.foreign.Add(1)
			return w.now()
		}
	}
	expr, err := k.Compile(filter.Entities, g.doc.Expression)
	if err != nil {
		g.faulty.Store(true)
		return nil
	}
	g.exprs[depth].Store(expr)
	return expr
}

// counted returns functions that count their calls in the group whose expression they are for.
func counted(f filter.Functions, g *group) filter.Functions {
	note := func() { g.foreign.Add(1) }
	return filter.Functions{
		Properties: func(entity string, s filter.PropertySearch) ([]string, error) {
			note()
			return f.Properties(entity, s)
		},
		PropertyTags: func(entity, propertyType string) (map[string]string, error) {
			note()
			return f.PropertyTags(entity, propertyType)
		},
		HasProperty: func(entity, propertyType string) (bool, error) {
			note()
			return f.HasProperty(entity, propertyType)
		},
		HasMetric: func(entity, metric string, within time.Duration) (bool, error) {
			note()
			return f.HasMetric(entity, metric, within)
		},
		MemberOf: func(entity, group string) (bool, error) {
			note()
			return f.MemberOf(entity, group)
		},
		EntityTags: func(entity string) (map[string]string, error) {
			note()
			return f.EntityTags(entity)
		},
		Collection: func(name string) []string {
			note()
			return f.Collection(name)
		},
	}
}

// decisions remember what expressions of groups gave for entities. One that asked for nothing but the entity's own document gives the same as long as the
// group and that document are the same, which are replaced and never changed: so nothing has to be forgotten when they change.
type decisions struct {
	mu    sync.RWMutex
	known map[decided]decision
}

type decided struct {
	group  *group
	entity *entity
}

type decision struct {
	doc *packedEntity
	yes bool
}

// maxDecisions bounds the decisions of all groups together to some 6 MB.
const maxDecisions = 1 << 17

// get returns the decision on an entity whose document is doc.
func (d *decisions) get(g *group, e *entity, doc *packedEntity) (yes, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	one, ok := d.known[decided{g, e}]
	return one.yes, ok && one.doc == doc
}

func (d *decisions) put(g *group, e *entity, one decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxDecisions {
		d.known = map[decided]decision{} // what is in use comes back with the next questions
	}
	d.known[decided{g, e}] = one
}

// membership answers for several groups together, as they were when it was made.
type membership struct {
	world     *world
	version   uint64            // of the groups
	listed    []map[string]bool // members of groups that list them; as few maps as can be
	expressed []*group
	ask       func(entity string) bool // m.any, made once
}

const (
	// maxMemberships is how many combinations of groups are remembered: users share theirs by way of user groups.
	maxMemberships = 64
	// maxUnited bounds the names that the lists of a combination have together to be united in one map, of some 3 MB then.
	maxUnited = 1 << 16
)

// memberships are remembered until a group changes.
type memberships struct {
	mu    sync.RWMutex
	known map[string]*membership // by the names of the groups, each after its length
}

// AnyMember returns the question whether an entity is a member of any of the groups as they are now. However many list their members, it costs one
// look. The answers of a group with an expression are those of Member.
func (db *DB) AnyMember(groups []string) func(entity string) bool {
	return db.membership(groups).ask
}

func (w *world) membership(groups []string) *membership {
	var few [256]byte // so that the usual case allocates nothing
	key := few[:0]
	for _, name := range groups {
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
	}
	version, all := w.catalog.groupsVersion.Load(), &w.catalog.memberships
	all.mu.RLock()
	m := all.known[string(key)]
	all.mu.RUnlock()
	if m != nil && m.version == version {
		return m
	}
	m = w.newMembership(groups)
	m.version = version // from before the groups were read: a change meanwhile makes it old at once
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.known == nil || len(all.known) >= maxMemberships {
		all.known = map[string]*membership{}
	}
	all.known[string(key)] = m
	return m
}

func (w *world) newMembership(groups []string) *membership {
	m := &membership{world: w}
	m.ask = m.any
	names := 0
	for _, name := range groups {
		switch g := w.catalog.findGroup(name); {
		case g == nil || !g.doc.Enabled:
		case g.doc.Expression != "":
			m.expressed = append(m.expressed, g)
		default:
			m.listed = append(m.listed, g.members)
			names += len(g.members)
		}
	}
	if len(m.listed) > 1 && names <= maxUnited {
		united := make(map[string]bool, names)
		for _, members := range m.listed {
			maps.Copy(united, members)
		}
		m.listed = []map[string]bool{united}
	}
	return m
}

func (m *membership) any(entity string) bool {
	for _, members := range m.listed {
		if members[entity] {
			return true
		}
	}
	for _, g := range m.expressed {
		if m.world.expressed(g, entity, 0) {
			return true
		}
	}
	return false
}
