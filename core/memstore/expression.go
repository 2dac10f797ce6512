package memstore

import (
	"slices"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// maxGroupDepth ends groups whose expressions ask for each other in a circle: nobody is a member that deep.
const maxGroupDepth = 8

// question is one query while it runs: it keeps the first error of an expression. Callers hold Store.mu.
type question struct {
	*Store
	depth    int                      // of groups inside group expressions
	readable func(entity string) bool // that the scope has it; nil = everything
	err      error
}

func (q *question) note(err error) {
	if q.err == nil {
		q.err = err
	}
}

// compile returns the test of an expression; an empty text lets everything pass.
func (q *question) compile(c filter.Context, text string) func(filter.Env) bool {
	if text == "" {
		return func(filter.Env) bool { return true }
	}
	functions := q.functions()
	if q.readable != nil {
		functions = functions.Within(q.readable)
	}
	x, err := filter.Compiler{Functions: functions, Zone: q.Zone, Now: q.Now}.Compile(c, text)
	q.note(err)
	return func(env filter.Env) bool {
		if q.err != nil {
			return false
		}
		ok, err := x.Match(env)
		q.note(err)
		return ok
	}
}

func (q *question) functions() filter.Functions {
	return filter.Functions{
		Properties: func(entity string, search filter.PropertySearch) (values []string, _ error) {
			for _, r := range q.records(entity, search.Type) {
				values = search.Values(values, r)
			}
			return values, nil
		},
		PropertyTags: func(entity, propertyType string) (map[string]string, error) {
			tags := map[string]string{}
			for _, r := range q.records(entity, propertyType) {
				for _, tag := range r.Tags {
					tags[tag.Name] = tag.Value
				}
			}
			return tags, nil
		},
		HasProperty: func(entity, propertyType string) (bool, error) { return len(q.records(entity, propertyType)) > 0, nil },
		HasMetric:   q.hasMetric,
		MemberOf:    func(entity, group string) (bool, error) { return q.member(entity, group), nil },
		EntityTags: func(entity string) (map[string]string, error) {
			e, _ := q.entity(entity)
			return e.Tags, nil
		},
		Collection: q.collection,
	}
}

// records returns the property records of an entity and type, by key.
func (q *question) records(entity, propertyType string) []*core.PropertyRecord {
	var found []*core.PropertyRecord
	for _, r := range q.properties {
		if r.Entity == entity && r.Type == propertyType {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *core.PropertyRecord) int { return a.PropertyKey.Compare(b.PropertyKey) })
	return found
}

func (q *question) hasMetric(entity, metric string, within time.Duration) (bool, error) {
	since := core.MinTime
	if within > 0 && q.Now != nil {
		since = q.Now() - core.Time(within.Milliseconds())
	}
	for _, one := range q.series {
		if one.key.IsMeasured() && one.key.Entity == entity && one.key.Metric == metric && len(one.times(core.Range{Start: since, End: core.MaxTime + 1})) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// member holds for enabled groups only: those with an expression have the entities for which it is true, the others those they list. An
// expression that is faulty selects nobody.
func (q *question) member(entity, group string) bool {
	g := q.group(group)
	switch {
	case !g.Enabled || q.depth >= maxGroupDepth:
		return false
	case g.Expression == "":
		return slices.Contains(g.Members, entity)
	}
	inner := &question{Store: q.Store, depth: q.depth + 1}
	e, ok := q.entity(entity)
	return ok && inner.compile(filter.Entities, g.Expression)(filter.EntityEnv{Entity: &e}) && inner.err == nil
}
