package query

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
)

// Properties is one property query as the client wrote it. The zero value of a field means absent.
type Properties struct {
	Type             string
	Entities         EntityFilter
	Dates            DateFilter
	Timezone         string
	Calendar         string // key of the workday calendar of calendar keywords; empty = the default one
	Key              map[string]string
	ExactMatch       bool
	KeyTagExpression string
	Last             bool
	Offset           *int64 // ms; negative: off
	Merge            bool
	Limit            int // <= 0: all
	AddMeta          bool
}

// PropertyPlan is a validated property query.
type PropertyPlan struct {
	request    Properties
	query      core.PropertyQuery // without scope
	expression *filter.Expr       // nil: none
	offset     core.Time          // negative: off
	now        core.Time
}

// Property is one record of an answer.
type Property struct {
	core.PropertyKey
	Tags core.Tags // those that the query sees
	Time core.Time
	Meta *core.Entity // with addMeta
}

// Validate judges the whole request before any name is looked up. The entity tags of the reserved type have no time: their query needs no dates.
func (s Properties) Validate(m dates.Moment) (*PropertyPlan, error) {
	m, err := inZone(m, s.Timezone)
	if err != nil {
		return nil, err
	}
	if !blank(s.Calendar) {
		if m.Calendar, err = m.Calendars.Find(s.Calendar); err != nil {
			return nil, err
		}
	}
	p := &PropertyPlan{request: s, now: m.Now, offset: -1}
	q := &p.query
	q.Type = strings.ToLower(s.Type)
	if q.Type == core.EntityTagsType && s.Dates.Empty() {
		q.Range = core.AllTime
	} else {
		within, err := s.Dates.Range(m)
		if err != nil {
			return nil, err
		}
		q.Range = within.Intersect(core.AllTime)
	}
	if q.Entities, err = s.Entities.Resolve(EscapesInPatterns); err != nil {
		return nil, err
	}
	if blank(s.Type) {
		return nil, invalid("Empty type")
	}
	q.Key, q.ExactKey = keyOf(s.Key), s.ExactMatch
	if !blank(s.KeyTagExpression) {
		if p.expression, err = filter.Compile(filter.Properties, s.KeyTagExpression); err != nil {
			return nil, err
		}
	}
	if s.Last {
		p.offset = 0
	}
	if s.Offset != nil && *s.Offset >= 0 {
		p.offset = core.Time(*s.Offset)
	}
	return p, nil
}

// keyOf makes a record key as inserts do: lower-case names, trimmed values, blank ones dropped.
func keyOf(m map[string]string) core.Tags {
	var key core.Tags
	for name, value := range m {
		if !blank(value) {
			key = append(key, core.Tag{Name: strings.ToLower(strings.TrimSpace(name)), Value: strings.TrimSpace(value)})
		}
	}
	return key.Normal()
}

// Run reads the records by entity and key.
func (p *PropertyPlan) Run(ctx context.Context, src Source) iter.Seq2[*Property, error] {
	return func(yield func(*Property, error) bool) {
		records := p.matched(ctx, src)
		if p.offset >= 0 && !p.request.ExactMatch {
			records = p.latest(records)
		}
		count := 0
		for r, err := range records {
			if err == nil && p.request.AddMeta {
				if e, ok := src.Catalog.Entity(r.Entity); ok {
					r.Meta = &e
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
			if count++; p.request.Limit > 0 && count >= p.request.Limit {
				return
			}
		}
	}
}

// matched yields the records that fulfil all conditions but the offset.
func (p *PropertyPlan) matched(ctx context.Context, src Source) iter.Seq2[*Property, error] {
	return func(yield func(*Property, error) bool) {
		if err := src.authorise(p.query.Entities.Names); err != nil {
			yield(nil, err)
			return
		}
		entityTags := p.query.Type == core.EntityTagsType
		if entityTags && len(p.query.Key) > 0 || !entityTags && p.query.Range.Empty() {
			return
		}
		q := p.query
		q.Scope = src.Scope
		if entityTags {
			q.Range = core.AllTime
		}
		for record, err := range alive(ctx, src.Reader.Properties(ctx, q)) {
			if err != nil {
				yield(nil, err)
				return
			}
			r := p.view(record, entityTags)
			ok := true
			if p.expression != nil {
				ok, err = p.expression.Match(&filter.PropertyEnv{Key: r.Key, Tags: r.Tags})
			}
			if (ok || err != nil) && !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// view is the record as the query sees it: without merge only the tags that the latest insert wrote. Entity tags have the time of the query.
func (p *PropertyPlan) view(record core.PropertyRecord, entityTags bool) *Property {
	r := &Property{PropertyKey: record.PropertyKey, Time: record.Time}
	for _, t := range record.Tags {
		if entityTags || p.request.Merge || t.Time == record.Time {
			r.Tags = append(r.Tags, t.Tag)
		}
	}
	if entityTags {
		r.Time = p.now
	}
	return r
}

// latest keeps the records that are at most the offset older than the newest of all: that one must be known first.
func (p *PropertyPlan) latest(in iter.Seq2[*Property, error]) iter.Seq2[*Property, error] {
	return func(yield func(*Property, error) bool) {
		var all []*Property
		var newest core.Time
		for r, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, r)
			newest = max(newest, r.Time)
		}
		for _, r := range all {
			if newest-r.Time <= p.offset && !yield(r, nil) {
				return
			}
		}
	}
}

// AppendProperty appends a record as the query shows it.
func AppendProperty(b []byte, r *Property) []byte {
	o := openObject(b)
	o.text("type", r.Type)
	o.text("entity", r.Entity)
	if r.Meta != nil {
		o.name("meta")
		o.b = append(AppendEntity(append(o.b, `{"entity":`...), r.Meta, MetaFields{Tags: AllTags}), '}')
	}
	o.tags("key", r.Key)
	o.tags("tags", r.Tags)
	o.date("date", r.Time)
	return o.close()
}

// PropertyTypes lists the types of an entity's records by name, without the reserved one.
func PropertyTypes(ctx context.Context, src Source, entity string) ([]string, error) {
	entity = strings.ToLower(entity)
	if err := src.authorise([]string{entity}); err != nil {
		return nil, err
	}
	var types []string
	q := core.PropertyQuery{Scope: src.Scope, Entities: core.EntityFilter{Names: []string{entity}}, Range: core.AllTime}
	for r, err := range alive(ctx, src.Reader.Properties(ctx, q)) {
		if err != nil {
			return nil, err
		}
		if n := len(types); r.Type != core.EntityTagsType && (n == 0 || types[n-1] != r.Type) {
			types = append(types, r.Type)
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// PropertyDelete selects records to delete. Unlike in a query the key matches exactly unless ExactMatch says false.
type PropertyDelete struct {
	Type       string
	Entity     string // name or pattern
	Dates      DateFilter
	Key        map[string]string
	ExactMatch *bool
}

// PropertyDeletePlan is a validated deletion.
type PropertyDeletePlan struct{ query core.PropertyQuery }

// Validate judges the whole request. A missing date is unbounded.
func (s PropertyDelete) Validate(m dates.Moment) (*PropertyDeletePlan, error) {
	if blank(s.Type) {
		return nil, invalid("Empty type")
	}
	if blank(s.Entity) {
		return nil, invalid("Empty entity")
	}
	within, err := s.Dates.OpenRange(m)
	if err != nil {
		return nil, err
	}
	p := &PropertyDeletePlan{core.PropertyQuery{Type: strings.ToLower(s.Type), Key: keyOf(s.Key), Range: within.Intersect(core.AllTime)}}
	p.query.ExactKey = s.ExactMatch == nil || *s.ExactMatch
	p.query.Entities, err = EntityFilter{Entity: s.Entity}.Resolve(EscapesInPatterns)
	return p, err
}

// Keys returns the keys of the records to delete; the scope of src is what the caller may write. Entity tags are never deleted this way.
func (p *PropertyDeletePlan) Keys(ctx context.Context, src Source) ([]core.PropertyKey, error) {
	if p.query.Type == core.EntityTagsType || p.query.Range.Empty() {
		return nil, nil
	}
	if err := src.authorise(p.query.Entities.Names); err != nil {
		return nil, err
	}
	q := p.query
	q.Scope = src.Scope
	var keys []core.PropertyKey
	for r, err := range alive(ctx, src.Reader.Properties(ctx, q)) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, r.PropertyKey.Clone())
	}
	return keys, nil
}
