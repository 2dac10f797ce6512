package api

import (
	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// moment is the one instant that all queries of a request share, in the server zone.
func (c *call) moment() dates.Moment { return dates.Moment{Now: c.now(), Zone: c.server.Zone} }

// dateField reads a member of the date filter; ok is false for any other member.
func (o *object) dateField(f *query.DateFilter, name string, v gjson.Result) (ok bool) {
	switch name {
	case "startDate":
		f.StartDate = o.text(name, v)
	case "endDate":
		f.EndDate = o.text(name, v)
	case "interval":
		f.Interval = o.interval(name, v)
	case "startTime":
		f.StartTime = o.millis(name, v)
	case "endTime":
		f.EndTime = o.millis(name, v)
	default:
		return false
	}
	return true
}

// millis reads Unix milliseconds, the date form of older clients.
func (o *object) millis(name string, v gjson.Result) *core.Time {
	t := core.Time(o.integer(name, v))
	return &t
}

// interval reads {"count":n,"unit":"UNIT"}, or the text form n-UNIT of older clients, and gives the text form.
func (o *object) interval(name string, v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	count, unit := "", ""
	o.each(v, func(member string, v gjson.Result) {
		switch member {
		case "count":
			count = o.text(name+".count", v)
		case "unit":
			unit = o.text(name+".unit", v)
		}
	})
	if o.err == nil && (count == "" || unit == "") {
		o.fail("%s: count and unit are required", name)
	}
	return count + "-" + unit
}

// entityFilter reads a member of the entity filter; ok is false for any other member.
func (o *object) entityFilter(f *query.EntityFilter, name string, v gjson.Result) (ok bool) {
	switch name {
	case "entity":
		f.Entity = o.text(name, v)
	case "entities":
		f.Entities = o.texts(name, v)
	case "entityGroup":
		f.Group = o.text(name, v)
	case "entityExpression":
		f.Expression = o.text(name, v)
	default:
		return false
	}
	return true
}

// tagValues reads name -> value or array of values. A null value is no condition.
func (o *object) tagValues(member string, v gjson.Result) map[string][]string {
	tags := map[string][]string{}
	o.each(v, func(name string, v gjson.Result) { tags[name] = o.texts(member+"."+name, v) })
	return tags
}
