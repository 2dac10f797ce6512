package query

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Run reads and yields the results of the query in the order of the answer: by entity, tags and function. It yields at least one, a placeholder when
// nothing was found; and at most one error, the last. What it yields belongs to the caller, unless the source is Transient.
func (p *Plan) Run(ctx context.Context, src Source) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		src, release := src.open()
		defer release()
		e := &execution{p, src}
		if err := e.answer(ctx, func(r *Result) bool { return yield(r, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// execution is one run of a plan.
type execution struct {
	*Plan
	Source
}

// answer emits the results, with the placeholders of concrete entities in their places. emit returns false when no more is wanted.
func (e *execution) answer(ctx context.Context, emit func(*Result) bool) error {
	if err := e.authorise(e.query.Entities.Names); err != nil {
		return err
	}
	waiting, err := e.concrete(ctx)
	if err != nil {
		return err
	}
	count, last := 0, ""
	warning, sent := e.warn(), e.request.Entities.spellings()
	absent := func(name, warning string) bool {
		r := e.placeholder(name, warning)
		if spelling, ok := sent[name]; ok {
			r.Entity = spelling
		}
		return emit(r)
	}
	if warning == "" {
		for r, err := range e.results(ctx) {
			if err != nil {
				return err
			}
			for len(waiting) > 0 && waiting[0] <= r.Entity {
				name := waiting[0]
				waiting = waiting[1:]
				if name != r.Entity && !absent(name, e.unknown(name)) {
					return nil
				}
			}
			count++
			last = r.Entity
			if !emit(e.finish(r)) || e.request.SeriesLimit > 0 && count >= e.request.SeriesLimit {
				return nil
			}
		}
	}
	for _, name := range waiting {
		w := warning
		if w == "" {
			w = e.unknown(name)
		}
		if count++; name != last && !absent(name, w) {
			return nil
		}
	}
	if count == 0 {
		r := e.placeholder(e.single(), warning)
		r.Entity = e.request.Entities.named()
		emit(r)
	}
	return nil
}

// concrete returns the entities that get a placeholder when they have no samples, in order: those named, and the members of a group. The single
// entity of a query has the placeholder of the query.
func (e *execution) concrete(ctx context.Context) ([]string, error) {
	f := e.query.Entities
	switch {
	case e.request.Group.merges(), e.evaluation != nil: // one result may stand for several
		return nil, nil
	case !blank(e.request.Entities.Entity) || f.Expression != "":
		return nil, nil
	case f.Group == "":
		return slices.Clone(f.Names), nil
	}
	return e.members(ctx, f.Group)
}

// members lists the entities of a group that the caller may read. Only groups defined by an expression cost a look at every entity.
func (e *execution) members(ctx context.Context, name string) ([]string, error) {
	var members []string
	readable := e.within()
	keep := func(entity string) {
		if e.Catalog.Member(entity, name) && readable(entity) {
			members = append(members, entity)
		}
	}
	for d, err := range alive(ctx, e.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocGroup, Key: name})) {
		if err != nil {
			return nil, err
		}
		var g core.Group
		if err := json.Unmarshal(d.Body, &g); err != nil {
			return nil, core.Wrap(core.Internal, err, "entity group '"+name+"' is stored in a form that cannot be read")
		}
		if g.Expression == "" {
			for _, entity := range slices.Sorted(slices.Values(g.Members)) {
				keep(entity)
			}
			continue
		}
		for d, err := range alive(ctx, e.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocEntity})) {
			if err != nil {
				return nil, err
			}
			keep(d.Key)
		}
	}
	return slices.Compact(members), nil
}

// warn returns what makes the whole query a placeholder: a tag expression that does not parse, or a name that nothing has.
func (e *execution) warn() string {
	if e.warning != "" || e.evaluation != nil {
		return e.warning
	}
	if name := e.single(); name != "" {
		if w := e.unknown(name); w != "" {
			return w
		}
	}
	if _, ok := e.Catalog.Metric(e.query.Metric); !ok {
		return notFound("METRIC", e.query.Metric)
	}
	for _, t := range e.query.Tags {
		if !e.Catalog.TagKnown(t.Name) {
			return notFound("TAG_KEY", t.Name)
		}
	}
	return ""
}

// single returns the only entity that the query asks for as `entity`; empty when that is a pattern, or another filter.
func (e *execution) single() string {
	if names := e.query.Entities.Names; !blank(e.request.Entities.Entity) && len(names) == 1 {
		return names[0]
	}
	return ""
}

// unknown returns the warning about an entity that does not exist.
func (e *execution) unknown(entity string) string {
	if _, ok := e.Catalog.Entity(entity); !ok {
		return notFound("ENTITY", entity)
	}
	return ""
}

func notFound(kind, name string) string {
	return "DictionaryNotFoundException: " + kind + " not found for name: '" + name + "'"
}

// placeholder is a result without samples that says what was asked for.
func (e *execution) placeholder(entity, warning string) *Result {
	r := &Result{Entity: entity, Metric: e.query.Metric, Tags: e.requestedTags(), Warning: warning}
	if a := e.request.Aggregate; a != nil {
		r.Echo = with(nil, "aggregate", a.appendJSON(nil, a.names()[0]))
	}
	r = e.finish(r)
	r.Order = nil
	return r
}

// requestedTags are the tags of the request as they were sent, the first of several values.
func (e *execution) requestedTags() core.Tags {
	var tags core.Tags
	for name, values := range e.request.Tags {
		if len(values) > 0 {
			tags = append(tags, core.Tag{Name: name, Value: values[0]})
		}
	}
	return tags.Normal()
}

// finish adds what every result of the query has.
func (e *execution) finish(r *Result) *Result {
	r.RequestID, r.Format, r.Versioned = e.request.RequestID, e.format, e.request.Versioned
	if r.Type == "" { // a forecast sets its own
		r.Type = e.kind
	}
	if r.Type == Forecast || r.Type == ForecastDeviation {
		r.ForecastName = e.query.Forecast
	}
	r.Order = e.names
	if e.request.AddMeta {
		r.Meta = e.meta(r)
	}
	return r
}

// meta is absent unless the entity or the metric exists.
func (e *execution) meta(r *Result) *Meta {
	var m Meta
	if r.Meta != nil {
		m.Place = r.Meta.Place
	}
	if metric, ok := e.Catalog.Metric(r.Metric); ok {
		m.Metric = &metric
	}
	if found, ok := e.Catalog.Entity(r.Entity); ok {
		m.Entity = &found
	}
	if m == (Meta{}) {
		return nil
	}
	return &m
}

// results loads the series, runs the stages and cuts to the limit.
func (e *execution) results(ctx context.Context) iter.Seq2[*Result, error] {
	in, stages := e.load(ctx), e.stages
	if e.evaluation != nil {
		in = e.evaluated(ctx)
	} else if p := e.parallel(); p != nil {
		in, stages = e.scanned(ctx, p), stages[1:]
	}
	for _, s := range stages {
		in = s.run(ctx, e, in)
	}
	return func(yield func(*Result, error) bool) {
		for r, err := range in {
			if err == nil {
				e.limit(&r.Samples)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (e *execution) limit(s *Samples) {
	n := s.Len()
	switch limit := e.request.Limit; {
	case limit <= 0 || n <= limit:
	case strings.EqualFold(e.request.Direction, "ASC"):
		s.cut(0, limit)
	default:
		s.cut(n-limit, n)
	}
}

// load yields every selected series that has samples in the range, in key order.
func (e *execution) load(ctx context.Context) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		if _, stored := stores[e.kind]; !stored || e.query.Range.Empty() {
			return
		}
		allowed, err := e.inserted(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		most, decimal := e.series()
		for r, err := range e.selected(ctx) {
			if err == nil && allowed != nil && !allowed[key(r)] {
				continue
			}
			if err == nil {
				r.Decimal = decimal
				err = most.add()
			}
			if err == nil && e.request.Cache && !e.dates.Contains(r.Samples.Times[0]) {
				continue
			}
			if err == nil && !e.filters.idle() {
				if err = e.filters.apply(&r.Samples); err == nil && r.Samples.Len() == 0 && r.Before == nil && r.After == nil {
					continue
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// tally counts the series of a query; the zero tally has no limit.
type tally struct{ count, limit int }

func (t *tally) add() error {
	if t.count++; t.limit > 0 && t.count > t.limit {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Series count exceeds %d", t.limit)
	}
	return nil
}

// series returns how many series the query may match, and whether their values are decimals.
func (e *execution) series() (most tally, decimal bool) {
	m, _ := e.Catalog.Metric(e.query.Metric)
	if e.request.Limit <= 0 && !m.Versioned {
		most.limit = maxSeries
	}
	return most, m.DataType == core.TypeDecimal
}

func (e *execution) scoped() core.SeriesQuery {
	q := e.query
	q.Scope = e.Scope
	return q
}

// inserted returns the keys whose newest sample lies between the insert dates; nil when the request has none.
func (e *execution) inserted(ctx context.Context) (map[string]bool, error) {
	if !e.insertTest {
		return nil, nil
	}
	q := e.scoped()
	q.Range, q.Limit, q.NewestFirst = core.AllTime, 0, false
	allowed := make(map[string]bool)
	for k, err := range alive(ctx, e.Reader.Keys(ctx, q)) {
		if err != nil {
			return nil, err
		}
		if k.Last >= e.minInsert && k.Last < e.maxInsert {
			allowed[string(k.Key.Append(nil))] = true
		}
	}
	return allowed, nil
}

func key(r *Result) string {
	return string(core.SeriesKey{Metric: r.Metric, Entity: r.Entity, Tags: r.Tags}.Append(nil))
}

// selected yields the series of the query with their samples, and with those next to the range where an interpolation wants them.
func (e *execution) selected(ctx context.Context) flow {
	q := e.scoped()
	if !e.outer || e.request.Cache {
		return e.merged(ctx, q)
	}
	return e.surrounded(ctx, q)
}

// reuses reports whether each result is done with before the next one is read: its reader says so, and no stage keeps any.
func (e *execution) reuses() bool {
	return e.Transient && !e.outer && !slices.ContainsFunc(e.stages, func(s stage) bool { return !s.streams })
}

// merged puts the blocks of each series together.
func (e *execution) merged(ctx context.Context, q core.SeriesQuery) flow {
	return func(yield func(*Result, error) bool) {
		held := e.hold()
		var buffer *Samples // nil: each result has memory of its own
		if e.reuses() && !q.NewestFirst {
			buffer = sampleBuffers.Get().(*Samples)
			defer buffer.putBack()
		}
		var current *Result
		for b, err := range alive(ctx, e.Reader.Series(ctx, q)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(b.Times) == 0 {
				continue
			}
			if current == nil || b.Key.Compare(core.SeriesKey{Metric: current.Metric, Entity: current.Entity, Tags: current.Tags}) != 0 {
				if current != nil && !yield(current, nil) {
					return
				}
				k := b.Key.Clone()
				current = &Result{Metric: k.Metric, Entity: k.Entity, Tags: k.Tags}
				if buffer != nil {
					current.Samples = buffer.emptied()
				}
				held.count = 0
			}
			if err := held.add(len(b.Times)); err != nil {
				yield(nil, err)
				return
			}
			if !q.NewestFirst {
				current.Samples.add(b)
				if buffer != nil {
					*buffer = current.Samples // it may have grown
				}
				continue
			}
			var older Samples
			older.add(b)
			current.Samples.prepend(older)
		}
		if current != nil {
			yield(current, nil)
		}
	}
}
