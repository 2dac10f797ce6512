package api

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

// propertiesInsert stores an array of property records, all or none.
func (c *call) propertiesInsert() error {
	now := c.now()
	return c.insert(func(b *core.Batch, v gjson.Result) error {
		p, err := decodeProperty(v, now)
		b.Properties = append(b.Properties, p)
		return err
	})
}

// decodeProperty reads one record. Unlike elsewhere an unknown field is refused: clients rely on that to find misspelt ones.
func decodeProperty(v gjson.Result, now core.Time) (core.Property, error) {
	p := core.Property{Time: now, Flags: core.Default}
	var o object
	var date, stamp gjson.Result
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "type":
			p.Type = lowered(trimmed(o.text(name, v)))
		case "entity":
			p.Entity = lowered(trimmed(o.text(name, v)))
		case "key":
			p.Key = o.pairs(name, v, dropEmpty)
		case "tags":
			p.Tags = o.pairs(name, v, keepEmpty)
		case "date":
			date = v
		case "timestamp":
			stamp = v
		case "persist":
			if !o.flag(name, v) {
				p.Flags &^= core.Stored
			}
		default:
			o.fail("Unrecognized field \"%s\"", excerpt(name))
		}
	})
	if o.err != nil {
		return p, o.err
	}
	switch {
	case p.Type == "":
		o.fail("Empty type")
	case p.Entity == "":
		o.fail("Empty entity")
	case !validName(p.Entity):
		o.fail("Invalid entity name '%s'", excerpt(p.Entity))
	case !validName(p.Type):
		o.fail("Invalid property type '%s'", excerpt(p.Type))
	case !hasValue(p.Tags) && (p.Type != core.EntityTagsType || len(p.Key) == 0):
		o.fail("No tags: at least one tag must have a value")
	default:
		o.err = recordTime(&p.Time, date, stamp, "Invalid date format")
	}
	return p, o.err
}

// hasValue reports whether any tag would be stored: the others only remove stored ones.
func hasValue(tags core.Tags) bool {
	return slices.ContainsFunc(tags, func(t core.Tag) bool { return t.Value != "" })
}

// emptyPairs says what becomes of a pair whose value is null, empty or blank.
type emptyPairs uint8

const (
	dropEmpty emptyPairs = iota
	keepEmpty            // with an empty value, which removes a stored tag
)

// pairs reads keys or tags of a property.
func (o *object) pairs(member string, v gjson.Result, empty emptyPairs) core.Tags {
	var tags core.Tags
	if !v.IsObject() {
		o.fail("%s: an object is expected, not %s", member, excerpt(v.Raw))
		return nil
	}
	v.ForEach(func(key, v gjson.Result) bool {
		value := ""
		if v.Type != gjson.Null {
			value = trimmed(o.text(member+"."+key.Str, v))
		}
		name := lowered(trimmed(key.Str))
		if name == "" || !validName(name) {
			o.fail("Invalid %s name '%s'", member, excerpt(key.Str))
		}
		if value != "" || empty == keepEmpty {
			tags = append(tags, core.Tag{Name: name, Value: value})
		}
		return o.err == nil
	})
	return tags.Normal()
}

// propertiesDelete deletes records and tells how many.
func (c *call) propertiesDelete() error {
	plans, err := plans(c, decodePropertyDelete)
	if err != nil {
		return err
	}
	b := c.batch()
	chosen := map[string]bool{} // each record is deleted, and counted, once
	for _, p := range plans {
		keys, err := p.Keys(c.reading(), c.target())
		if err != nil {
			return err
		}
		for _, k := range keys {
			id := string(core.SeriesKey{Metric: k.Type, Entity: k.Entity, Tags: k.Key}.Append(nil))
			if !chosen[id] {
				chosen[id] = true
				b.Removed = append(b.Removed, k)
			}
		}
	}
	n := len(b.Removed)
	receipt, err := c.submit(b)
	if err != nil {
		return err
	}
	c.durability(receipt.Durability)
	return c.sendJSON(appendCount([]byte(`{"deleted":`), n))
}

// target is what deletes of this caller look at: the entities that he may write.
func (c *call) target() query.Source {
	g := &c.id.Grants
	return query.Source{Reader: c.server.Reader, Catalog: c.server.Catalog, Scope: core.Scope{All: g.WriteAll, Groups: g.WriteGroups}}
}

// decodePropertyDelete reads one element; its values are judged by core/query.
func decodePropertyDelete(v gjson.Result) ([]query.PropertyDelete, error) {
	var q query.PropertyDelete
	var o object
	looseDate := func(o *object, name string, v gjson.Result) { o.looseDate(&q.Dates, name, v) }
	o.read(v, fields{
		"type":       into(&q.Type, (*object).text),
		"entity":     into(&q.Entity, (*object).text),
		"key":        into(&q.Key, (*object).keyFilter),
		"exactMatch": optional(&q.ExactMatch, (*object).flag),
		"startDate":  looseDate, "endDate": looseDate, "startTime": looseDate, "endTime": looseDate,
	})
	return []query.PropertyDelete{q}, o.err
}

// keyFilter reads the key of a query or delete. A null value is no condition.
func (o *object) keyFilter(member string, v gjson.Result) map[string]string {
	key := map[string]string{}
	o.each(v, func(name string, v gjson.Result) { key[name] = o.text(member+"."+name, v) })
	return key
}

// looseDate takes what clients of the delete send as a date: text under either name, or milliseconds.
func (o *object) looseDate(f *query.DateFilter, name string, v gjson.Result) {
	start := strings.HasPrefix(name, "start")
	switch {
	case v.Type == gjson.Number && start:
		optional(&f.StartTime, (*object).millis)(o, name, v)
	case v.Type == gjson.Number:
		optional(&f.EndTime, (*object).millis)(o, name, v)
	case start:
		f.StartDate = o.text(name, v)
	default:
		f.EndDate = o.text(name, v)
	}
}

// propertiesQuery answers with one flat array of records, query by query.
func (c *call) propertiesQuery() error {
	p, err := plans(c, decodePropertyQuery)
	if err != nil {
		return err
	}
	return answer(c, p, query.AppendProperty)
}

// decodePropertyQuery reads one query; its values are judged by core/query.
func decodePropertyQuery(v gjson.Result) ([]query.Properties, error) {
	var q query.Properties
	var o object
	expression := into(&q.KeyTagExpression, (*object).text)
	o.read(v, fields{
		"type":             into(&q.Type, (*object).text),
		"key":              into(&q.Key, (*object).keyFilter),
		"exactMatch":       into(&q.ExactMatch, (*object).flag),
		"keyTagExpression": expression, "keyExpression": expression,
		"last":    into(&q.Last, (*object).flag),
		"offset":  optional(&q.Offset, (*object).integer),
		"merge":   into(&q.Merge, (*object).flag),
		"limit":   into(&q.Limit, (*object).count),
		"addMeta": into(&q.AddMeta, (*object).flag),

		"workdayCalendar": into(&q.Calendar, (*object).text),
	}.timezone(&q.Timezone).dates(&q.Dates).entities(&q.Entities))
	return []query.Properties{q}, o.err
}

// propertyTypes lists the types of an entity, sorted.
func (c *call) propertyTypes() error {
	name, err := c.pathName("entity")
	if err != nil {
		return err
	}
	types, err := query.PropertyTypes(c.reading(), c.source(), name)
	if err != nil {
		return err
	}
	return c.sendJSON(appendStrings(nil, types))
}

// propertiesGet lists the records of an entity and type, of any time, as a query without options does.
func (c *call) propertiesGet() error {
	entity, err := c.pathName("entity")
	if err != nil {
		return err
	}
	kind, err := c.pathName("type")
	if err != nil {
		return err
	}
	start, end := core.AllTime.Start, core.AllTime.End
	q := query.Properties{Type: kind, Dates: query.DateFilter{StartTime: &start, EndTime: &end}}
	q.Entities.Entity = query.Quote(entity, query.EscapesInPatterns)
	p, err := q.Validate(c.moment())
	if err != nil {
		return err
	}
	return answer(c, []*query.PropertyPlan{p}, query.AppendProperty)
}
