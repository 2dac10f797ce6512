package api

import (
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

// metricMeta is the metadata of metrics.
var metricMeta = metadata[core.Metric]{
	doc: core.DocMetric, parameter: "metric", context: filter.Metrics, field: metricField, find: core.Catalog.Metric,
	name:   func(m *core.Metric) string { return m.Name },
	named:  func(k core.SeriesKey) string { return k.Metric },
	series: func(name string) core.SeriesQuery { return core.SeriesQuery{Metric: name} },
	env:    func(m *core.Metric) filter.Env { return filter.MetricEnv{Metric: m} },
	tags:   func(m *core.Metric) map[string]string { return m.Tags },
	print:  appendMetric,
}

func (c *call) metricGet() error    { return metricMeta.get(c) }
func (c *call) metricList() error   { return metricMeta.list(c, everyName) }
func (c *call) metricDelete() error { return metricMeta.remove(c) }

// metricPut creates a metric or replaces its settings; what is not sent gets its default. Data and creation time stay.
func (c *call) metricPut() error {
	name, p, err := metricMeta.patch(c)
	if err != nil {
		return err
	}
	fresh := core.NewMetric(name, c.now())
	if old, ok := c.server.Catalog.Metric(name); ok {
		fresh.Created = old.Created
	}
	return metricMeta.put(c, name, fresh, p.close())
}

// metricPatch changes the fields that are sent and merges tags by name.
func (c *call) metricPatch() error {
	_, p, err := metricMeta.patch(c)
	if err != nil {
		return err
	}
	name, _, err := metricMeta.existing(c)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocMetric, Key: name, Op: core.DocPatch, Body: p.close()})
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
