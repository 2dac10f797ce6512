package api

import (
	"errors"
	"math"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// source is what queries of this caller read.
func (c *call) source() query.Source {
	return query.Source{Reader: c.server.Reader, Catalog: c.server.Catalog, Scope: c.id.Grants.ReadScope()}
}

// seriesQuery answers an array of queries. All of them are judged before the first one reads.
func (c *call) seriesQuery() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	moment := c.moment()
	var plans []*query.Plan
	err = c.objects(body, func(v gjson.Result) error {
		requests, err := decodeSeriesQuery(v)
		for _, q := range requests {
			if err == nil {
				var p *query.Plan
				p, err = q.Validate(moment)
				plans = append(plans, p)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	for _, p := range plans {
		for r, err := range p.Run(c.r.Context(), c.source()) {
			if err != nil {
				return err
			}
			out.next()
			out.body = r.AppendJSON(out.body)
			if err := c.fits(out.body); err != nil {
				return err
			}
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// fits refuses an answer that is too large while it is built, not when it is complete.
func (c *call) fits(body []byte) error {
	if len(body) <= c.server.Limits.Response {
		return nil
	}
	return core.Errorf(core.TooLarge, "the answer exceeds limits.response (%d bytes): narrow the query or set a limit", c.server.Limits.Response)
}

// decodeSeriesQuery reads one element; `metrics`, which one client sends, makes a query of each.
func decodeSeriesQuery(v gjson.Result) ([]query.Series, error) {
	q := query.Series{Transformations: map[string]string{}}
	var o object
	var metrics []string
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "metrics":
			metrics = o.texts(name, v)
		case "tags":
			q.Tags = o.tagValues(name, v)
		case "aggregate":
			q.Aggregate = o.aggregate(name, v)
		case "transformationOrder":
			q.TransformationOrder = o.texts(name, v)
		case "interpolate", "group", "rate", "smooth", "downsample", "forecast", "evaluate":
			q.Transformations[name] = v.Raw
		case "join": // what old clients call a group with a period
			q.Transformations["group"] = v.Raw
		default:
			if !o.dateField(&q.Dates, name, v) && !o.entityFilter(&q.Entities, name, v) && !o.seriesFlag(&q, name, v) {
				o.seriesText(&q, name, v)
			}
		}
	})
	if o.err != nil || metrics == nil || q.Metric != "" {
		return []query.Series{q}, o.err
	}
	all := make([]query.Series, len(metrics))
	for i, metric := range metrics {
		all[i] = q
		all[i].Metric = metric
	}
	return all, nil
}

// seriesFlag reads the members that are booleans or numbers; ok is false for any other member.
func (o *object) seriesFlag(q *query.Series, name string, v gjson.Result) (ok bool) {
	switch name {
	case "exactMatch":
		q.ExactMatch = o.flag(name, v)
	case "versioned":
		q.Versioned = o.flag(name, v)
	case "cache":
		q.Cache = o.flag(name, v)
	case "addMeta":
		q.AddMeta = o.flag(name, v)
	case "limit":
		q.Limit = o.count(name, v)
	case "seriesLimit":
		q.SeriesLimit = o.count(name, v)
	default:
		return false
	}
	return true
}

// count reads a limit: one beyond the range of int32 is none in practice, and the same on every platform.
func (o *object) count(name string, v gjson.Result) int {
	return int(min(max(o.integer(name, v), math.MinInt32), math.MaxInt32))
}

// seriesText reads the members that are texts. Unknown members are ignored.
func (o *object) seriesText(q *query.Series, name string, v gjson.Result) {
	switch name {
	case "requestId":
		q.RequestID = o.text(name, v)
	case "metric":
		q.Metric = o.text(name, v)
	case "type":
		q.Type = o.text(name, v)
	case "tagExpression":
		q.TagExpression = o.text(name, v)
	case "minInsertDate":
		q.MinInsertDate = o.text(name, v)
	case "maxInsertDate":
		q.MaxInsertDate = o.text(name, v)
	case "forecastName":
		q.ForecastName = o.text(name, v)
	case "versionFilter":
		q.VersionFilter = o.text(name, v)
	case "sampleFilter":
		q.SampleFilter = o.text(name, v)
	case "direction":
		q.Direction = o.text(name, v)
	case "timeFormat":
		q.TimeFormat = o.text(name, v)
	case "timezone", "timeZone":
		q.Timezone = o.text(name, v)
	}
}

// aggregate reads the aggregation of a query; its values are judged by core/query.
func (o *object) aggregate(member string, v gjson.Result) *query.Aggregate {
	a := &query.Aggregate{}
	o.each(v, func(name string, v gjson.Result) {
		switch name {
		case "type", "types":
			a.Types = append(a.Types, o.texts(name, v)...)
		case "period", "interval":
			a.Period = o.period(name, v)
		case "interpolate":
			a.Interpolate = o.interpolation(name, v)
		case "threshold":
			a.Threshold = &query.Threshold{}
			o.each(v, func(side string, v gjson.Result) {
				switch side {
				case "min":
					a.Threshold.Min = o.number(side, v)
				case "max":
					a.Threshold.Max = o.number(side, v)
				}
			})
		case "workingMinutes":
			a.WorkingMinutes = o.workingMinutes(name, v)
		case "calendar":
			o.each(v, func(inner string, v gjson.Result) {
				if inner == "name" {
					a.Calendar = o.text(inner, v)
				}
			})
		}
	})
	return a
}

// workingMinutes reads both ends, which are required.
func (o *object) workingMinutes(name string, v gjson.Result) *query.WorkingMinutes {
	start, end := int64(-1), int64(-1)
	o.each(v, func(side string, v gjson.Result) {
		switch side {
		case "start":
			start = o.integer(side, v)
		case "end":
			end = o.integer(side, v)
		}
	})
	if start < 0 || end < 0 || start > 1440 || end > 1440 {
		o.fail("%s: start and end are required, as minutes of the day", name)
	}
	return &query.WorkingMinutes{Start: int(start), End: int(end)}
}

// period reads a period object, or its text form n-UNIT.
func (o *object) period(name string, v gjson.Result) *query.Period {
	p := &query.Period{}
	if v.Type == gjson.String {
		o.err = errors.Join(o.err, parsePeriod(p, v.Str))
		return p
	}
	counted := false
	o.each(v, func(member string, v gjson.Result) {
		switch member {
		case "count":
			if n := o.number(member, v); n != nil {
				p.Count, counted = *n, true
			}
		case "unit":
			p.Unit = o.text(member, v)
		case "align":
			p.Align = o.text(member, v)
		case "timezone", "timeZone":
			p.Timezone = o.text(member, v)
		}
	})
	if !counted || p.Unit == "" {
		o.fail("%s: count and unit are required", name)
	}
	return p
}

// parsePeriod reads the URL form, such as 1-HOUR.
func parsePeriod(p *query.Period, text string) error {
	v, err := dates.ParseInterval(text)
	if err != nil {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Wrong period syntax: %s", excerpt(text))
	}
	p.Count, p.Unit = float64(v.Count), v.Unit.String()
	return nil
}

// interpolation reads the object, or the bare name that an old client sends.
func (o *object) interpolation(name string, v gjson.Result) *query.Interpolation {
	i := &query.Interpolation{}
	if v.Type == gjson.String {
		i.Type = v.Str
		return i
	}
	o.each(v, func(member string, v gjson.Result) {
		switch member {
		case "type":
			i.Type = o.text(member, v)
		case "value":
			i.Value = o.number(member, v)
		case "extend":
			on := o.flag(member, v)
			i.Extend = &on
		}
	})
	return i
}

// number reads a number with everything the contract allows in one.
func (o *object) number(name string, v gjson.Result) *float64 {
	n, ok := command.ParseNumber(o.text(name, v))
	if !ok {
		o.fail("%s: a number is expected, not %s", name, excerpt(v.Raw))
	}
	return &n.Value
}
