package api

import (
	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core/query"
)

// transformations adds those of a series query. What they hold is judged by core/query.
func (f fields) transformations(q *query.Series) fields {
	f["interpolate"] = into(&q.Interpolate, (*object).regularize)
	f["group"] = into(&q.Group, (*object).group)
	f["join"] = f["group"] // the name of old clients, who call the period interval
	f["rate"] = into(&q.Rate, (*object).rate)
	f["aggregate"] = into(&q.Aggregate, (*object).aggregate)
	f["smooth"] = into(&q.Smooth, (*object).smooth)
	f["downsample"] = into(&q.Downsample, (*object).downsample)
	f["evaluate"] = into(&q.Evaluate, (*object).evaluate)
	f["transformationOrder"] = into(&q.TransformationOrder, (*object).texts)
	f["name"] = into(&q.Name, (*object).text)
	f["series"] = into(&q.Inputs, (*object).inputs)
	return f
}

func (o *object) regularize(_ string, v gjson.Result) *query.Regularize {
	r := &query.Regularize{}
	o.read(v, fields{
		"period":   into(&r.Period, (*object).period),
		"function": into(&r.Function, (*object).text),
		"boundary": into(&r.Boundary, (*object).text),
		"fill":     into(&r.Fill, (*object).text),
	})
	return r
}

func (o *object) group(_ string, v gjson.Result) *query.Group {
	g := &query.Group{}
	types := func(o *object, name string, v gjson.Result) { g.Types = append(g.Types, o.texts(name, v)...) }
	period := into(&g.Period, (*object).period)
	o.read(v, fields{
		"type": types, "types": types,
		"groupByEntityAndTags": optional(&g.By, (*object).texts),
		"period":               period, "interval": period,
		"interpolate": into(&g.Interpolate, (*object).interpolation),
		"truncate":    optional(&g.Truncate, (*object).flag),
		"place":       into(&g.Place, (*object).place),
		"order":       optional(&g.Order, (*object).count),
	})
	return g
}

func (o *object) place(_ string, v gjson.Result) *query.Place {
	p := &query.Place{}
	o.read(v, fields{
		"count":            into(&p.Count, (*object).number),
		"constraint":       into(&p.Constraint, (*object).text),
		"minimize":         into(&p.Minimize, (*object).text),
		"method":           into(&p.Method, (*object).text),
		"entities":         into(&p.Bins.Entities, (*object).texts),
		"entityGroup":      into(&p.Bins.Group, (*object).text),
		"entityExpression": into(&p.Bins.Expression, (*object).text),
	})
	return p
}

func (o *object) rate(_ string, v gjson.Result) *query.Rate {
	r := &query.Rate{}
	period := into(&r.Period, (*object).period)
	o.read(v, fields{
		"period": period, "interval": period,
		"counter": optional(&r.Counter, (*object).flag),
		"order":   optional(&r.Order, (*object).count),
	})
	return r
}

func (o *object) smooth(_ string, v gjson.Result) *query.Smooth {
	s := &query.Smooth{}
	o.read(v, fields{
		"type":            into(&s.Type, (*object).text),
		"count":           into(&s.Count, (*object).number),
		"interval":        into(&s.Interval, (*object).period),
		"minimumCount":    into(&s.MinimumCount, (*object).number),
		"incompleteValue": into(&s.IncompleteValue, (*object).text),
		"factor":          into(&s.Factor, (*object).number),
		"range":           into(&s.Range, (*object).number),
		"order":           optional(&s.Order, (*object).count),
	})
	return s
}

func (o *object) downsample(_ string, v gjson.Result) *query.Downsample {
	d := &query.Downsample{}
	o.read(v, fields{
		"algorithm":  into(&d.Algorithm, (*object).text),
		"difference": into(&d.Difference, (*object).number),
		"ratio":      into(&d.Ratio, (*object).number),
		"gap":        into(&d.Gap, (*object).period),
		"order":      optional(&d.Order, (*object).count),
	})
	return d
}

func (o *object) evaluate(_ string, v gjson.Result) *query.Evaluate {
	e := &query.Evaluate{}
	o.read(v, fields{
		"mode":       into(&e.Mode, (*object).text),
		"libs":       into(&e.Libs, (*object).texts),
		"expression": into(&e.Expression, (*object).text),
		"script":     into(&e.Script, (*object).text),
		"order":      optional(&e.Order, (*object).count),
	}.timezone(&e.Timezone))
	return e
}

// inputs reads the named series of an evaluation: filters alone, everything else is that of the query around them.
func (o *object) inputs(name string, v gjson.Result) []query.Series {
	if !v.IsArray() {
		o.fail("%s: an array is expected, not %s", name, excerpt(v.Raw))
		return nil
	}
	var inputs []query.Series
	v.ForEach(func(_, v gjson.Result) bool {
		var q query.Series
		o.read(v, fields{
			"name":          into(&q.Name, (*object).text),
			"metric":        into(&q.Metric, (*object).text),
			"type":          into(&q.Type, (*object).text),
			"tags":          into(&q.Tags, (*object).tagValues),
			"tagExpression": into(&q.TagExpression, (*object).text),
			"exactMatch":    into(&q.ExactMatch, (*object).flag),
		}.entities(&q.Entities))
		inputs = append(inputs, q)
		return o.err == nil
	})
	return inputs
}
