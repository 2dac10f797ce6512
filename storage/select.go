package storage

import (
	"slices"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/glob"
)

// world is what expressions may ask about.
type world struct {
	*state
	zone *time.Location
	now  func() core.Time
}

// functions are what an expression may ask that is evaluated at some depth of groups within groups.
func (w *world) functions(depth int) filter.Functions {
	return filter.Functions{
		Properties: func(entity string, search filter.PropertySearch) (values []string, _ error) {
			for r, err := range w.props.of(entity, search.Type) {
				if err != nil {
					return nil, err
				}
				values = search.Values(values, r)
			}
			return values, nil
		},
		PropertyTags: func(entity, propertyType string) (map[string]string, error) {
			tags := map[string]string{}
			for r, err := range w.props.of(entity, propertyType) {
				if err != nil {
					return nil, err
				}
				for _, tag := range r.Tags {
					tags[tag.Name] = tag.Value
				}
			}
			return tags, nil
		},
		HasProperty: func(entity, propertyType string) (bool, error) {
			for _, err := range w.props.of(entity, propertyType) {
				return err == nil, err
			}
			return false, nil
		},
		HasMetric: w.hasMetric,
		MemberOf:  func(entity, group string) (bool, error) { return w.member(entity, group, depth), nil },
		EntityTags: func(entity string) (map[string]string, error) {
			e, _ := w.catalog.findEntity(entity)
			return e.Tags, nil
		},
		Collection: w.catalog.collection,
	}
}

func (w *world) hasMetric(entity, metric string, within time.Duration) (bool, error) {
	since := core.MinTime
	if within > 0 && w.now != nil {
		since = w.now() - core.Time(within.Milliseconds())
	}
	sc, done := w.look()
	defer done()
	for _, id := range w.index.Select(metric, []string{entity}) {
		key, known := w.keyOf(sc.view, id, nil)
		if !known || !key.IsMeasured() {
			continue
		}
		if has, err := sc.has(id, core.Range{Start: since, End: core.MaxTime + 1}); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// selection is the entity part of a query: scope, names, patterns, group, expression. It remembers its answers.
type selection struct {
	world    *world
	scope    core.Scope
	filter   core.EntityFilter
	patterns []*glob.Pattern
	expr     *filter.Expr
	scoped   func(entity string) bool // that any group of the scope has it
	known    map[string]bool          // nil: everything is selected
	err      error                    // first of an expression
}

func (w *world) selection(scope core.Scope, f core.EntityFilter) (*selection, error) {
	s := &selection{world: w, scope: scope, filter: f, patterns: globs(f.Patterns)}
	if !scope.All {
		s.scoped = w.membership(scope.Groups).ask
	}
	if !scope.All || !f.All() {
		s.known = map[string]bool{}
	}
	var err error
	s.expr, err = s.compile(filter.Entities, f.Expression)
	return s, err
}

// compile compiles an expression of a query. An empty text gives nil, which lets everything pass. Functions that take the name of an entity find nothing
// of one out of scope: otherwise the answer about entities that the caller may read would tell about those that the caller may not.
func (s *selection) compile(c filter.Context, text string) (*filter.Expr, error) {
	if text == "" {
		return nil, nil
	}
	functions := s.world.functions(0)
	if !s.scope.All {
		functions = functions.Within(s.scoped)
	}
	return filter.Compiler{Functions: functions, Zone: s.world.zone, Now: s.world.now}.Compile(c, text)
}

// names returns the entities when they are given by name, nil when they must be searched.
func (s *selection) names() []string {
	if len(s.patterns) > 0 || len(s.filter.Names) == 0 {
		return nil
	}
	names := slices.Clone(s.filter.Names)
	slices.Sort(names)
	return slices.Compact(names)
}

// withSeries is names for what is found in the index: patterns that begin with a text become the names that do, as far as they have series.
func (s *selection) withSeries() []string {
	if len(s.patterns) == 0 {
		return s.names()
	}
	names := append([]string{}, s.filter.Names...) // never nil, which stands for all
	for _, p := range s.patterns {
		prefix := p.Prefix()
		if prefix == "" {
			return nil
		}
		for name := range s.world.index.Entities(prefix) {
			if p.Match(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *selection) match(entity string) bool {
	if s.known == nil {
		return true
	}
	yes, ok := s.known[entity]
	if !ok {
		yes = s.decide(entity)
		s.known[entity] = yes
	}
	return yes
}

func (s *selection) decide(entity string) bool {
	if !s.scope.All && !s.scoped(entity) {
		return false
	}
	if len(s.filter.Names)+len(s.patterns) > 0 && !slices.Contains(s.filter.Names, entity) && !anyMatch(s.patterns, entity) {
		return false
	}
	if s.filter.Group != "" && !s.world.member(entity, s.filter.Group, 0) {
		return false
	}
	if s.expr == nil {
		return true
	}
	e, _ := s.world.catalog.findEntity(entity)
	return s.test(s.expr, filter.EntityEnv{Entity: &e})
}

// test evaluates an expression of the query; nil passes. After an error nothing matches, and the query ends with the error.
func (s *selection) test(expr *filter.Expr, env filter.Env) bool {
	if expr == nil {
		return true
	}
	yes, err := expr.Match(env)
	if err != nil && s.err == nil {
		s.err = err
	}
	return yes && s.err == nil
}

func globs(patterns []string) []*glob.Pattern {
	compiled := make([]*glob.Pattern, len(patterns))
	for i, p := range patterns {
		compiled[i] = glob.Compile(p)
	}
	return compiled
}

func anyMatch(patterns []*glob.Pattern, text string) bool {
	return slices.ContainsFunc(patterns, func(p *glob.Pattern) bool { return p.Match(text) })
}

// tagFilters are compiled tag filters: each must find its tag with a value that one of its patterns matches.
type tagFilters []tagFilter

type tagFilter struct {
	name     string
	patterns []*glob.Pattern
}

func newTagFilters(filters []core.TagFilter) tagFilters {
	compiled := make(tagFilters, len(filters))
	for i, f := range filters {
		compiled[i] = tagFilter{f.Name, globs(f.Patterns)}
	}
	return compiled
}

func (fs tagFilters) match(tags core.Tags) bool {
	for _, f := range fs {
		if value, ok := tags.Get(f.name); !ok || !anyMatch(f.patterns, value) {
			return false
		}
	}
	return true
}

// cover reports whether every tag has a filter.
func (fs tagFilters) cover(tags core.Tags) bool {
	for _, tag := range tags {
		if !slices.ContainsFunc(fs, func(f tagFilter) bool { return f.name == tag.Name }) {
			return false
		}
	}
	return true
}
