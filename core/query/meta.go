package query

import (
	"maps"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// MetaFields says what of a metric or an entity is printed beside its settings.
type MetaFields struct {
	Tags   func(name string) bool // which tags; nil = no member `tags` at all
	Insert bool                   // print Last as lastInsertDate
	Last   core.Time
}

// AllTags is MetaFields.Tags for every tag.
func AllTags(string) bool { return true }

// AppendMetric appends a metric as JSON. The Meta API and addMeta of the Data API share it, and so the order of fields.
func AppendMetric(b []byte, m *core.Metric, f MetaFields) []byte {
	o := openObject(b)
	o.text("name", m.Name)
	o.boolean("enabled", m.Enabled)
	o.text("dataType", string(m.DataType))
	o.optional("label", m.Label)
	o.optional("description", m.Description)
	o.optional("units", m.Units)
	o.boolean("persistent", m.Persistent)
	o.chosen(m.Tags, f.Tags)
	o.integer("retentionDays", int64(m.RetentionDays))
	o.integer("seriesRetentionDays", int64(m.SeriesRetentionDays))
	if m.MinValue != nil {
		o.number("minValue", *m.MinValue)
	}
	if m.MaxValue != nil {
		o.number("maxValue", *m.MaxValue)
	}
	o.optional("invalidAction", string(m.InvalidAction))
	o.boolean("versioned", m.Versioned)
	o.optional("interpolate", m.Interpolate)
	o.optional("timeZone", m.TimeZone)
	o.optional("filter", m.Filter)
	o.date("createdDate", m.Created)
	if f.Insert {
		o.date("lastInsertDate", f.Last)
	}
	return o.close()
}

// AppendEntity is AppendMetric for an entity.
func AppendEntity(b []byte, e *core.Entity, f MetaFields) []byte {
	o := openObject(b)
	o.text("name", e.Name)
	o.boolean("enabled", e.Enabled)
	o.optional("label", e.Label)
	o.optional("timeZone", e.TimeZone)
	o.chosen(e.Tags, f.Tags)
	o.optional("interpolate", e.Interpolate)
	o.date("createdDate", e.Created)
	o.date("versionDate", e.VersionDate())
	if f.Insert {
		o.date("lastInsertDate", f.Last)
	}
	return o.close()
}

// AppendTags appends a JSON object of the tags that keep accepts, by name.
func AppendTags(b []byte, tags map[string]string, keep func(name string) bool) []byte {
	var few [16]string // enough for most, so that a list of many objects sorts without allocating
	names := few[:0]
	for name := range maps.Keys(tags) {
		if keep(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendText(b, tags[name])
	}
	return append(b, '}')
}

// chosen appends the tags that are wanted.
func (o *object) chosen(tags map[string]string, keep func(name string) bool) {
	if keep != nil {
		o.name("tags")
		o.b = AppendTags(o.b, tags, keep)
	}
}
