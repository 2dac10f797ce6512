package api

import (
	"context"
	"iter"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/query"
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
	walk: func(ctx context.Context, m core.Metadata, q core.MetaQuery) iter.Seq2[described[core.Metric], error] {
		return func(yield func(described[core.Metric], error) bool) {
			for one, err := range m.Metrics(ctx, q) {
				if err != nil {
					yield(described[core.Metric]{}, err)
					return
				}
				if !yield(described[core.Metric]{one.Metric, one.Last, one.Inserted}, nil) {
					return
				}
			}
		}
	},
	env:   func(m *core.Metric) filter.Env { return filter.MetricEnv{Metric: m} },
	print: query.AppendMetric,
}

func (c *call) metricGet() error    { return metricMeta.get(c) }
func (c *call) metricList() error   { return metricMeta.list(c) }
func (c *call) metricPatch() error  { return metricMeta.update(c) }
func (c *call) metricDelete() error { return metricMeta.remove(c) }
func (c *call) metricRename() error { return metricMeta.rename(c) }

// metricPut creates a metric or replaces its settings; what is not sent gets its default. Data and creation time stay.
func (c *call) metricPut() error {
	name, p, err := metricMeta.patch(c)
	if err != nil {
		return err
	}
	return metricMeta.put(c, name, core.NewMetric(name, 0), p.close())
}
