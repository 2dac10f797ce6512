package api

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// metricField is the check of one field of a metric; false refuses the field by name.
func metricField(p *docPatch, name string, v gjson.Result) bool {
	switch name {
	case "name", "createdDate", "lastInsertDate", "interpolationType", "timePrecision":
		return true // the path decides, the server decides, or an old client sends it
	case "label", "description", "units", "filter":
		return p.setText(name, v)
	case "enabled", "persistent", "versioned":
		return p.setFlag(name, v)
	case "dataType":
		return p.setEnum(name, v, "FLOAT", "SHORT", "INTEGER", "LONG", "FLOAT", "DOUBLE", "DECIMAL")
	case "interpolate":
		return p.setEnum(name, v, "LINEAR", "LINEAR", "PREVIOUS")
	case "invalidAction":
		return p.setEnum(name, v, "NONE", "NONE", "DISCARD", "TRANSFORM", "RAISE_ERROR", "SET_VERSION_STATUS")
	case "timeZone":
		return p.setZone(v)
	case "retentionDays", "seriesRetentionDays":
		return p.setDays(name, v)
	case "minValue", "maxValue":
		return p.setNumber(name, v)
	case "tags":
		return p.setTags(v)
	}
	return false
}

// metricPut creates a metric or replaces its settings; what is not sent gets its default. Data and creation time stay.
func (c *call) metricPut() error {
	name, patch, err := c.metricPatchBody()
	if err != nil {
		return err
	}
	fresh := core.NewMetric(name, c.now())
	if old, ok := c.server.Catalog.Metric(name); ok {
		fresh.Created = old.Created
	}
	base, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	body, err := core.MergePatch(base, patch)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocMetric, Key: name, Op: core.DocPut, Body: body})
}

// metricPatch changes the fields that are sent and merges tags by name.
func (c *call) metricPatch() error {
	name, patch, err := c.metricPatchBody()
	if err != nil {
		return err
	}
	if _, ok := c.server.Catalog.Metric(name); !ok {
		return notFound("metric", name)
	}
	return c.write(core.DocChange{Kind: core.DocMetric, Key: name, Op: core.DocPatch, Body: patch})
}

func (c *call) metricPatchBody() (name string, patch []byte, err error) {
	if name, err = c.pathName("metric"); err != nil {
		return "", nil, err
	}
	body, err := c.json()
	if err != nil {
		return "", nil, err
	}
	p, err := decodePatch(body, "metric", metricField)
	if err != nil {
		return "", nil, err
	}
	return name, p.close(), nil
}

// metricDelete removes a metric with its data.
func (c *call) metricDelete() error {
	name, err := c.pathName("metric")
	if err != nil {
		return err
	}
	if _, ok := c.server.Catalog.Metric(name); !ok {
		return notFound("metric", name)
	}
	return c.write(core.DocChange{Kind: core.DocMetric, Key: name, Op: core.DocDelete})
}

// metricGet shows one metric with all its tags, an empty object when it has none.
func (c *call) metricGet() error {
	name, err := c.pathName("metric")
	if err != nil {
		return err
	}
	m, ok := c.server.Catalog.Metric(name)
	if !ok {
		return notFound("metric", name)
	}
	l, err := c.listing(filter.Metrics)
	if err != nil {
		return err
	}
	body := appendMetric(nil, &m)
	body = appendTagObject(body, m.Tags, everyTag)
	if l.insertTime {
		last, err := c.lastInserts(core.SeriesQuery{Metric: name}, func(k core.SeriesKey) string { return k.Metric })
		if err != nil {
			return err
		}
		if t, ok := last[name]; ok {
			body = appendDate(body, "lastInsertDate", t)
		}
	}
	return c.sendJSON(append(body, '}'))
}

// metricList lists metrics by name.
func (c *call) metricList() error {
	l, err := c.listing(filter.Metrics)
	if err != nil {
		return err
	}
	var last map[string]core.Time
	if l.wantsInsertTimes() {
		if last, err = c.lastInserts(core.SeriesQuery{}, func(k core.SeriesKey) string { return k.Metric }); err != nil {
			return err
		}
	}
	out := list{body: []byte{'['}}
	err = documents(c.r.Context(), c.server.Reader, core.DocMetric, func(m core.Metric) (bool, error) {
		t, known := last[m.Name]
		if ok, err := l.matches(filter.MetricEnv{Metric: &m}); err != nil || !ok || !l.inserted(t, known) {
			return true, err
		}
		out.next()
		out.body = appendMetric(out.body, &m)
		if l.tags != nil {
			out.body = appendTagObject(out.body, m.Tags, l.keeps)
		}
		if l.insertTime && known {
			out.body = appendDate(out.body, "lastInsertDate", t)
		}
		out.body = append(out.body, '}')
		return l.limit <= 0 || out.n < l.limit, nil
	})
	if err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// matches evaluates the expression of the listing on one object.
func (l *listing) matches(env filter.Env) (bool, error) {
	if l.expression == nil {
		return true, nil
	}
	ok, err := l.expression.Match(env)
	if err != nil {
		return false, core.Wrap(core.Invalid, err, "IllegalArgumentException: expression cannot be evaluated")
	}
	return ok, nil
}

// appendMetric writes a metric as far as tags, which depend on the request, without the closing brace.
func appendMetric(dst []byte, m *core.Metric) []byte {
	dst = appendString(append(dst, `{"name":`...), m.Name)
	dst = appendFlag(dst, "enabled", m.Enabled)
	dst = appendText(dst, "dataType", string(m.DataType))
	dst = appendText(dst, "label", m.Label)
	dst = appendText(dst, "description", m.Description)
	dst = appendText(dst, "units", m.Units)
	dst = appendFlag(dst, "persistent", m.Persistent)
	dst = appendInt(dst, "retentionDays", int64(m.RetentionDays))
	dst = appendInt(dst, "seriesRetentionDays", int64(m.SeriesRetentionDays))
	dst = appendFloat(dst, "minValue", m.MinValue)
	dst = appendFloat(dst, "maxValue", m.MaxValue)
	dst = appendText(dst, "invalidAction", string(m.InvalidAction))
	dst = appendFlag(dst, "versioned", m.Versioned)
	dst = appendText(dst, "interpolate", m.Interpolate)
	dst = appendText(dst, "timeZone", m.TimeZone)
	dst = appendText(dst, "filter", m.Filter)
	return appendDate(dst, "createdDate", m.Created)
}
