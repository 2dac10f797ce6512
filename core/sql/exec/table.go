package exec

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// record is a row of a table that does not hold samples.
type record interface {
	// time, entity and tags of the record; entity "" for none.
	of() (t core.Time, entity string, tags core.Tags)
	// field returns what a column of its own kind says.
	field(c plan.Source) column.Value
}

// records are read one after the other.
type records = iter.Seq2[record, error]

// table yields the rows of a table that does not hold samples.
func (x *execution) table(ctx context.Context, op *plan.Table) stream {
	return x.filter(op.Filter, x.recorded(op, x.records(ctx, op)))
}

// records returns the reader of a table. Entities and metrics come by name, the others in the order of the reader: messages and history newest first,
// properties by entity, type and key, alerts by entity, metric and id.
func (x *execution) records(ctx context.Context, op *plan.Table) records {
	entities := core.EntityFilter{Names: op.Names}
	if op.Names != nil && len(op.Names) == 0 {
		return func(func(record, error) bool) {}
	}
	within := op.Range
	if within == (core.Range{}) {
		within = core.AllTime
	}
	kind := ""
	if len(op.Types) == 1 {
		kind = op.Types[0]
	}
	switch op.Kind {
	case "entity":
		return x.entities(ctx, op)
	case "metric":
		return x.metrics(ctx, op)
	case "message":
		q := core.MessageQuery{Scope: op.Scope, Entities: entities, Type: kind, Range: within}
		return adapted(x.Reader.Messages(ctx, q), func(m core.Message) (record, bool) { return messageRecord{m}, typed(op, m.Type) })
	case "property":
		q := core.PropertyQuery{Scope: op.Scope, Entities: entities, Type: kind, Range: within}
		return adapted(x.Reader.Properties(ctx, q), func(p core.PropertyRecord) (record, bool) { return propertyRecord{p}, typed(op, p.Type) })
	case "history":
		q := core.AlertHistoryQuery{Scope: op.Scope, Entities: entities, Range: within}
		return adapted(x.Reader.AlertHistory(ctx, q), func(r core.AlertRow) (record, bool) { return historyRecord{r}, true })
	case "alert":
		return x.alerts(ctx, core.AlertFilter{Scope: op.Scope, Entities: entities, Range: core.AllTime})
	}
	return func(yield func(record, error) bool) {
		yield(nil, core.Errorf(core.Internal, "sql: table %q cannot be read", op.Kind))
	}
}

// typed reports whether a type is one of those that are wanted.
func typed(op *plan.Table, kind string) bool {
	return op.Types == nil || slices.Contains(op.Types, kind)
}

// adapted yields records of what a reader yields.
func adapted[T any](in iter.Seq2[T, error], make func(T) (record, bool)) records {
	return func(yield func(record, error) bool) {
		for one, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			if r, wanted := make(one); wanted && !yield(r, nil) {
				return
			}
		}
	}
}

// metaQueries returns the questions that find the documents of some names; nil = all.
func metaQueries(names []string) []core.MetaQuery {
	if names == nil {
		return []core.MetaQuery{{}}
	}
	var list []core.MetaQuery
	for _, name := range slices.Sorted(slices.Values(names)) {
		list = append(list, core.MetaQuery{Name: name})
	}
	return slices.Compact(list)
}

// entities yields those that the caller may read.
func (x *execution) entities(ctx context.Context, op *plan.Table) records {
	return func(yield func(record, error) bool) {
		for _, q := range metaQueries(op.Names) {
			for info, err := range x.Metadata.Entities(ctx, q) {
				if err != nil {
					yield(nil, err)
					return
				}
				e, readable, err := x.env.Facts.Entity(info.Name, x.env.Version)
				if err != nil {
					yield(nil, err)
					return
				}
				if readable && !yield(&entityRecord{Entity: e, last: newest(info.Last, info.Inserted)}, nil) {
					return
				}
			}
		}
	}
}

func (x *execution) metrics(ctx context.Context, op *plan.Table) records {
	return func(yield func(record, error) bool) {
		for _, q := range metaQueries(op.Names) {
			for info, err := range x.Metadata.Metrics(ctx, q) {
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(&metricRecord{info}, nil) {
					return
				}
			}
		}
	}
}

func (x *execution) alerts(ctx context.Context, f core.AlertFilter) records {
	return func(yield func(record, error) bool) {
		if x.Alerts == nil {
			return
		}
		list, err := x.Alerts.Query(ctx, f)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, a := range list {
			if !yield(alertRecord{a}, nil) {
				return
			}
		}
	}
}

// recorded turns records into batches.
func (x *execution) recorded(op *plan.Table, in records) stream {
	return func(yield func(*column.Batch, error) bool) {
		w := recordWriter{execution: x, columns: op.Columns}
		w.reset()
		for r, err := range in {
			if err == nil {
				err = w.add(r)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if w.n == column.Size {
				if !yield(w.batch(), nil) {
					return
				}
				w.reset()
			}
		}
		if w.n > 0 {
			yield(w.batch(), nil)
		}
	}
}

// recordWriter collects records in a batch.
type recordWriter struct {
	*execution
	columns []plan.Source
	builder []*column.Builder
	n       int
	entity  core.Entity // of the record before
	found   bool
}

func (w *recordWriter) reset() {
	w.n, w.builder = 0, w.builder[:0]
	for _, c := range w.columns {
		w.builder = append(w.builder, column.NewBuilder(c.Type))
	}
}

func (w *recordWriter) batch() *column.Batch {
	b := &column.Batch{Len: w.n}
	for _, c := range w.builder {
		b.Columns = append(b.Columns, c.Vector())
	}
	return b
}

func (w *recordWriter) add(r record) error {
	t, entity, tags := r.of()
	for i, c := range w.columns {
		v, err := w.value(r, c, core.SeriesKey{Entity: entity, Tags: tags}, t)
		if err != nil {
			return err
		}
		w.builder[i].Append(v)
	}
	w.n++
	return nil
}

// value returns a column of a record; key holds its entity and tags.
func (w *recordWriter) value(r record, c plan.Source, key core.SeriesKey, t core.Time) (column.Value, error) {
	switch c.Kind {
	case plan.SourceTime:
		return column.IntValue(c.Type, int64(t)), nil
	case plan.SourceTags:
		return textOrNull(tagText(key.Tags)), nil
	case plan.SourceTagsJSON:
		return tagJSON(key.Tags)
	case plan.SourceTag:
		return tagValue(key.Tags, c.Name), nil
	case plan.SourceEntity:
		return textOrNull(key.Entity), nil
	case plan.SourceEntityField, plan.SourceEntityTags, plan.SourceEntityTagsJSON, plan.SourceEntityTag:
		return w.ofEntity(r, c, key.Entity)
	}
	return r.field(c), nil
}

// ofEntity returns a column of the entity of a record.
func (w *recordWriter) ofEntity(r record, c plan.Source, name string) (column.Value, error) {
	last := column.NullValue
	if e, ok := r.(*entityRecord); ok {
		w.entity, w.found, last = e.Entity, true, e.last
	} else if w.entity.Name != name {
		var err error
		if w.entity, w.found, err = w.env.Facts.Entity(name, w.env.Version); err != nil {
			return column.NullValue, err
		}
		w.entity.Name = name
	}
	if !w.found {
		return column.NullValue, nil
	}
	switch c.Kind {
	case plan.SourceEntityTags:
		return textOrNull(tagText(core.TagsOf(w.entity.Tags))), nil
	case plan.SourceEntityTagsJSON:
		return tagJSON(core.TagsOf(w.entity.Tags))
	case plan.SourceEntityTag:
		return mapValue(w.entity.Tags, c.Name), nil
	}
	if c.Name == "lastInsertTime" {
		return last, nil
	}
	return w.entityField(&w.entity, c.Name)
}

// newest is the time of the newest sample, NULL when there is none.
func newest(last core.Time, inserted bool) column.Value {
	if !inserted {
		return column.NullValue
	}
	return column.IntValue(column.Bigint, int64(last))
}

// instantOrNull is NULL for 0: what did not happen.
func instantOrNull(t core.Time) column.Value {
	if t == 0 {
		return column.NullValue
	}
	return column.IntValue(column.Bigint, int64(t))
}

type entityRecord struct {
	core.Entity
	last column.Value
}

func (r *entityRecord) of() (core.Time, string, core.Tags) {
	return 0, r.Name, core.TagsOf(r.Tags)
}

func (r *entityRecord) field(plan.Source) column.Value { return column.NullValue }

type metricRecord struct{ core.MetricInfo }

func (r *metricRecord) of() (core.Time, string, core.Tags) { return r.Last, "", core.TagsOf(r.Tags) }

func (r *metricRecord) field(c plan.Source) column.Value {
	switch c.Kind {
	case plan.SourceMetric:
		return column.TextValue(r.Name)
	case plan.SourceMetricField:
		return metricField(r.Metric, newest(r.Last, r.Inserted), c.Name)
	case plan.SourceMetricTags:
		return textOrNull(tagText(core.TagsOf(r.Tags)))
	case plan.SourceMetricTagsJSON:
		v, _ := tagJSON(core.TagsOf(r.Tags)) // texts can be written
		return v
	case plan.SourceMetricTag:
		return mapValue(r.Tags, c.Name)
	}
	return column.NullValue
}

type messageRecord struct{ core.Message }

func (r messageRecord) of() (core.Time, string, core.Tags) { return r.Time, r.Entity, r.Tags }

func (r messageRecord) field(c plan.Source) column.Value {
	switch c.Name {
	case "type":
		return column.TextValue(r.Type)
	case "source":
		return column.TextValue(r.Source)
	case "severity":
		return column.TextValue(r.Severity.String())
	case "message", "text":
		return textOrNull(r.Text)
	}
	return column.NullValue
}

type propertyRecord struct{ core.PropertyRecord }

func (r propertyRecord) of() (core.Time, string, core.Tags) {
	tags := make(core.Tags, len(r.Tags))
	for i, t := range r.Tags {
		tags[i] = t.Tag
	}
	return r.Time, r.Entity, tags
}

func (r propertyRecord) field(c plan.Source) column.Value {
	switch c.Name {
	case "type":
		return column.TextValue(r.Type)
	case "key":
		return textOrNull(tagText(r.Key))
	}
	if name, ok := strings.CutPrefix(c.Name, "key."); ok {
		return tagValue(r.Key, name)
	}
	return column.NullValue
}

type alertRecord struct{ core.Alert }

func (r alertRecord) of() (core.Time, string, core.Tags) { return r.LastEvent, r.Entity, r.Tags }

func (r alertRecord) field(c plan.Source) column.Value {
	switch c.Name {
	case "rule":
		return column.TextValue(r.Rule)
	case "metric":
		return textOrNull(r.Metric)
	case "severity":
		return column.TextValue(r.Severity.String())
	case "value":
		return column.FloatValue(c.Type, r.Value)
	case "text":
		return textOrNull(r.TextValue)
	case "message":
		return textOrNull(r.Message)
	case "openTime":
		return instantOrNull(r.OpenTime)
	case "openValue":
		return column.FloatValue(c.Type, r.OpenValue)
	case "repeatCount":
		return column.IntValue(c.Type, int64(r.RepeatCount))
	case "acknowledged":
		return column.BoolValue(r.Acknowledged)
	case "id":
		return column.IntValue(c.Type, int64(r.ID))
	}
	return column.NullValue
}

type historyRecord struct{ core.AlertRow }

func (r historyRecord) of() (core.Time, string, core.Tags) { return r.Time, r.Entity, r.Tags }

func (r historyRecord) field(c plan.Source) column.Value {
	switch c.Name {
	case "rule":
		return column.TextValue(r.Rule)
	case "metric":
		return textOrNull(r.Metric)
	case "type":
		return column.TextValue(string(r.Type))
	case "severity":
		return column.TextValue(r.Severity.String())
	case "value":
		return column.FloatValue(c.Type, r.Value)
	case "text":
		return textOrNull(r.Text)
	case "condition":
		return textOrNull(r.Condition)
	case "filter":
		return textOrNull(r.Filter)
	case "window":
		return textOrNull(r.Window)
	case "schedule":
		return textOrNull(r.Schedule)
	case "repeatCount":
		return column.IntValue(c.Type, int64(r.RepeatCount))
	case "openTime":
		return instantOrNull(r.OpenTime)
	case "receivedTime":
		return instantOrNull(r.Received)
	case "id":
		return column.IntValue(c.Type, int64(r.AlertID))
	}
	return column.NullValue
}
