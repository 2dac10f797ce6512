package api

import (
	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// source is what queries of this caller read.
func (c *call) source() query.Source {
	return query.Source{Reader: c.server.Reader, Catalog: c.server.Catalog, Scope: c.id.Grants.ReadScope(),
		Samples: c.server.Limits.Samples, ForecastSamples: c.server.Limits.Forecast, Budget: &c.server.queries}
}

// seriesQuery answers an array of queries.
func (c *call) seriesQuery() error {
	p, err := plans(c, decodeSeriesQuery)
	if err != nil {
		return err
	}
	return answer(c, p, appendSeries)
}

// seriesQueries is the form of older clients: the queries are a member of an object, or the body itself, and the series are a member of the answer.
func (c *call) seriesQueries() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	queries := gjson.Parse(body)
	if !queries.IsArray() {
		queries = queries.Get("queries")
	}
	if !queries.IsArray() {
		return core.Errorf(core.Invalid, "IllegalArgumentException: queries: an array is required")
	}
	p, err := plansIn(c, queries.Raw, decodeSeriesQuery)
	if err != nil {
		return err
	}
	return answerIn(c, p, appendSeries, `{"series":[]}`)
}

func appendSeries(dst []byte, r *query.Result) []byte { return r.AppendJSON(dst) }

// fits refuses an answer that is too large while it is built, not when it is complete. Large ones count against limits.bodies as requests do, until they are
// sent: what one of them may take, a few at once may not.
func (c *call) fits(body []byte) error {
	limits, size := &c.server.Limits, int64(len(body))
	if size > int64(limits.Response) {
		return core.Errorf(core.TooLarge, "the answer exceeds limits.response (%d bytes): narrow the query or set a limit", limits.Response)
	}
	const small = 1 << 20
	if size <= small {
		return nil
	}
	total := c.held - c.answer + size
	if total > limits.Bodies {
		return core.Errorf(core.TooLarge, "the answer exceeds limits.bodies (%d bytes): narrow the query or set a limit", limits.Bodies)
	}
	if err := c.hold(total); err != nil {
		return err
	}
	c.answer = size
	return nil
}

// decodeSeriesQuery reads one element; `metrics`, which one client sends, makes a query of each.
func decodeSeriesQuery(v gjson.Result) ([]query.Series, error) {
	var q query.Series
	var o object
	var metrics []string
	f := fields{
		"metric":        into(&q.Metric, (*object).text),
		"metrics":       into(&metrics, (*object).texts),
		"type":          into(&q.Type, (*object).text),
		"tags":          into(&q.Tags, (*object).tagValues),
		"tagExpression": into(&q.TagExpression, (*object).text),
		"exactMatch":    into(&q.ExactMatch, (*object).flag),
		"minInsertDate": into(&q.MinInsertDate, (*object).text),
		"maxInsertDate": into(&q.MaxInsertDate, (*object).text),
		"forecastName":  into(&q.ForecastName, (*object).text),
		"versioned":     into(&q.Versioned, (*object).flag),
		"versionFilter": into(&q.VersionFilter, (*object).text),
		"sampleFilter":  into(&q.SampleFilter, (*object).text),
		"cache":         into(&q.Cache, (*object).flag),
		"limit":         into(&q.Limit, (*object).count),
		"seriesLimit":   into(&q.SeriesLimit, (*object).count),
		"direction":     into(&q.Direction, (*object).text),
		"requestId":     into(&q.RequestID, (*object).text),
		"timeFormat":    into(&q.TimeFormat, (*object).text),
		"addMeta":       into(&q.AddMeta, (*object).flag),
	}
	f["forecast"] = into(&q.Forecast, (*object).forecast)
	o.read(v, f.transformations(&q).timezone(&q.Timezone).dates(&q.Dates).entities(&q.Entities))
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

// aggregate reads the aggregation of a query; its values are judged by core/query.
func (o *object) aggregate(_ string, v gjson.Result) *query.Aggregate {
	a := &query.Aggregate{}
	types := func(o *object, name string, v gjson.Result) { a.Types = append(a.Types, o.texts(name, v)...) }
	period := into(&a.Period, (*object).period)
	o.read(v, fields{
		"type": types, "types": types,
		"period": period, "interval": period,
		"order":          optional(&a.Order, (*object).count),
		"interpolate":    into(&a.Interpolate, (*object).interpolation),
		"threshold":      into(&a.Threshold, (*object).threshold),
		"workingMinutes": into(&a.WorkingMinutes, (*object).workingMinutes),
		"calendar":       into(&a.Calendar, (*object).calendar),
	})
	return a
}

// calendar reads the key of a workday calendar, or the object with it as its name.
func (o *object) calendar(name string, v gjson.Result) (key string) {
	if !v.IsObject() {
		return o.text(name, v)
	}
	o.read(v, fields{"name": into(&key, (*object).text)})
	return key
}

func (o *object) threshold(_ string, v gjson.Result) *query.Threshold {
	t := &query.Threshold{}
	o.read(v, fields{"min": into(&t.Min, (*object).number), "max": into(&t.Max, (*object).number)})
	return t
}

// workingMinutes reads both ends, which are required.
func (o *object) workingMinutes(name string, v gjson.Result) *query.WorkingMinutes {
	start, end := int64(-1), int64(-1)
	o.read(v, fields{"start": into(&start, (*object).integer), "end": into(&end, (*object).integer)})
	if start < 0 || end < 0 || start > 1440 || end > 1440 {
		o.fail("%s: start and end are required, as minutes of the day", name)
	}
	return &query.WorkingMinutes{Start: int(start), End: int(end)}
}

// period reads a period object, or its text form n-UNIT.
func (o *object) period(name string, v gjson.Result) *query.Period {
	p := &query.Period{}
	if v.Type == gjson.String {
		if err := parsePeriod(p, v.Str); o.err == nil {
			o.err = err
		}
		return p
	}
	var count *float64
	o.read(v, fields{
		"count": into(&count, (*object).number),
		"unit":  into(&p.Unit, (*object).text),
		"align": into(&p.Align, (*object).text),
	}.timezone(&p.Timezone))
	if count == nil || p.Unit == "" {
		o.fail("%s: count and unit are required", name)
		return p
	}
	p.Count = *count
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
func (o *object) interpolation(_ string, v gjson.Result) *query.Interpolation {
	i := &query.Interpolation{}
	if v.Type == gjson.String {
		i.Type = v.Str
		return i
	}
	o.read(v, fields{
		"type":   into(&i.Type, (*object).text),
		"value":  into(&i.Value, (*object).number),
		"extend": optional(&i.Extend, (*object).flag),
	})
	return i
}

// number reads a number with everything the contract allows in one.
func (o *object) number(name string, v gjson.Result) *float64 {
	n, ok := command.ParseNumber(textValue(v))
	if !ok {
		o.fail("%s: a number is expected, not %s", name, excerpt(v.Raw))
	}
	return &n.Value
}
