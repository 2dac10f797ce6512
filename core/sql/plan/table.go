package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// tableKind says what the rows of a table are.
type tableKind string

const (
	seriesTable   tableKind = "series" // samples of metrics
	viewTable     tableKind = "view"   // a SELECT in parentheses
	entityTable   tableKind = "entity"
	metricTable   tableKind = "metric"
	messageTable  tableKind = "message"
	propertyTable tableKind = "property"
	alertTable    tableKind = "alert"
	historyTable  tableKind = "history"
)

// allSeries is the table of the samples of all metrics.
const allSeries = "atsd_series"

// tableKinds are the tables that exist without a metric of their name.
var tableKinds = map[string]tableKind{allSeries: seriesTable, "atsd_entity": entityTable, "atsd_metric": metricTable, "atsd_message": messageTable,
	"atsd_property": propertyTable, "atsd_alert": alertTable, "atsd_alert_history": historyTable}

// always are those that no metric can hide.
var always = map[string]bool{allSeries: true, "atsd_entity": true, "atsd_metric": true}

// table is one source of rows of a SELECT.
type table struct {
	kind  tableKind
	from  *ast.Source
	join  *ast.Join // nil of the first
	name  string    // as written; "" of views
	alias string    // as written; the name without alias

	metrics   []string       // of samples, in the natural order
	several   bool           // the metrics are chosen by WHERE
	value     column.Type    // of the column value; Null = not known
	columns   []Source       // that its operator yields
	numbers   map[Source]int // of columns, when there are many
	intervals []Interval
	filter    []ast.Expr // terms that bear on its rows alone
	outer     []ast.Expr // terms of outer queries that bear on them as well: lists of columns regard these
	view      *view      // of views

	useEntity, useTags bool // of joins: what is equal beside the time
}

// single reports whether all rows are of one metric.
func (t *table) single() bool { return t.kind == seriesTable && (!t.several || len(t.metrics) == 1) }

// metric is the name of the only metric, "" when there are several or none.
func (t *table) metric() string {
	if t.kind == seriesTable && len(t.metrics) == 1 {
		return t.metrics[0]
	}
	return ""
}

// place returns the number of a column in the table's operator, which gets the column when it has not got it yet.
func (t *table) place(s Source) (int, error) {
	if t.kind == viewTable {
		return t.view.place(s)
	}
	if s.Kind == SourceValue {
		s.Type = t.value // it was not known yet when WHERE was read
	}
	if i := t.index(s); i >= 0 {
		return i, nil
	}
	t.columns = append(t.columns, s)
	return len(t.columns) - 1, nil
}

// index returns the number of a column, -1 for none. Only a statement that names hundreds of tags needs more than a look at each.
func (t *table) index(s Source) int {
	const few = 32
	if len(t.columns) <= few {
		return slices.Index(t.columns, s)
	}
	if t.numbers == nil {
		t.numbers = map[Source]int{}
	}
	for len(t.numbers) < len(t.columns) {
		t.numbers[t.columns[len(t.numbers)]] = len(t.numbers)
	}
	if i, ok := t.numbers[s]; ok {
		return i
	}
	return -1
}

// scanColumns are the first columns of each scan.
func scanColumns() []Source {
	return []Source{ScanTime: {Kind: SourceTime, Type: column.Bigint}, ScanMetric: {Kind: SourceMetric, Type: column.String},
		ScanEntity: {Kind: SourceEntity, Type: column.String}, ScanTags: {Kind: SourceTags, Type: column.String}}
}

// find returns the column that a name without prefix means.
func (t *table) find(parts []ast.Ident) (s Source, datetime, ok bool) {
	switch t.kind {
	case viewTable:
		return t.view.find(parts)
	case seriesTable:
		return seriesColumn(parts, t.value)
	case entityTable:
		s, ok = entityColumn(parts)
	case metricTable:
		s, ok = metricColumn(parts)
	default:
		return recordColumn(t.kind, parts)
	}
	return s, false, ok
}

// seriesColumn resolves the columns of samples.
func seriesColumn(parts []ast.Ident, value column.Type) (s Source, datetime, ok bool) {
	first := lower(parts[0].Text)
	if len(parts) == 1 {
		switch first {
		case "time":
			return Source{Kind: SourceTime, Type: column.Bigint}, false, true
		case "datetime":
			return Source{Kind: SourceTime, Type: column.Bigint}, true, true
		case "value":
			return Source{Kind: SourceValue, Type: value}, false, true
		case "text":
			return Source{Kind: SourceText, Type: column.String}, false, true
		case "metric":
			return Source{Kind: SourceMetric, Type: column.String}, false, true
		case "entity":
			return Source{Kind: SourceEntity, Type: column.String}, false, true
		case "tags":
			return Source{Kind: SourceTags, Type: column.String}, false, true
		}
		return Source{}, false, false
	}
	rest := parts[1:]
	switch first {
	case "tags":
		return tagSource(SourceTag, rest), false, true
	case "entity":
		s, ok = entityField(rest)
	case "metric":
		s, ok = metricField(rest)
	}
	return s, false, ok
}

// tagSource is the column of one tag, whose name may have been written with dots.
func tagSource(kind SourceKind, parts []ast.Ident) Source {
	name := pathOf(parts)
	if kind != SourceMetricTag { // tags of metrics are found as written
		name = lower(name)
	}
	return Source{Kind: kind, Name: name, Type: column.String}
}

// field is a column that has the name of a setting.
type field struct {
	name string
	kind column.Type
}

var entityFields = []field{{"name", column.String}, {"label", column.String}, {"creationTime", column.Bigint}, {"versionTime", column.Bigint},
	{"timeZone", column.String}, {"interpolate", column.String}, {"groups", column.String}, {"enabled", column.Boolean}, {"lastInsertTime", column.Bigint}}

var metricFields = []field{{"name", column.String}, {"label", column.String}, {"timeZone", column.String}, {"interpolate", column.String},
	{"lastInsertTime", column.Bigint}, {"creationTime", column.Bigint}, {"description", column.String}, {"dataType", column.String}, {"enabled", column.Boolean},
	{"persistent", column.Boolean}, {"filter", column.String}, {"retentionIntervalDays", column.Integer}, {"versioning", column.Boolean}, {"minValue", column.Double},
	{"maxValue", column.Double}, {"invalidValueAction", column.String}, {"units", column.String}}

// recordFields are the columns of the tables of records, beside time, datetime, entity and tags.
var recordFields = map[tableKind][]field{
	messageTable:  {{"type", column.String}, {"source", column.String}, {"severity", column.String}, {"message", column.String}},
	propertyTable: {{"type", column.String}, {"key", column.String}},
	alertTable: {{"rule", column.String}, {"metric", column.String}, {"severity", column.String}, {"value", column.Double}, {"text", column.String}, {"message", column.String},
		{"openTime", column.Bigint}, {"openValue", column.Double}, {"repeatCount", column.Integer}, {"acknowledged", column.Boolean}, {"id", column.Bigint}},
	historyTable: {{"rule", column.String}, {"metric", column.String}, {"type", column.String}, {"severity", column.String}, {"value", column.Double}, {"text", column.String},
		{"condition", column.String}, {"filter", column.String}, {"window", column.String}, {"schedule", column.String}, {"repeatCount", column.Integer}, {"openTime", column.Bigint},
		{"receivedTime", column.Bigint}, {"id", column.Bigint}},
}

func fieldNamed(list []field, name string) (field, bool) {
	for _, f := range list {
		if strings.EqualFold(f.name, name) {
			return f, true
		}
	}
	return field{}, false
}

// entityColumn resolves a field or tag of an entity, in its own table with or without entity before it.
func entityColumn(parts []ast.Ident) (Source, bool) {
	switch {
	case !strings.EqualFold(parts[0].Text, "entity"):
		return entityField(parts)
	case len(parts) == 1:
		return Source{Kind: SourceEntity, Type: column.String}, true
	}
	return entityField(parts[1:])
}

func entityField(parts []ast.Ident) (Source, bool) {
	first := lower(parts[0].Text)
	switch {
	case first == "tags" && len(parts) > 1:
		return tagSource(SourceEntityTag, parts[1:]), true
	case len(parts) > 1:
		return Source{}, false
	case first == "name":
		return Source{Kind: SourceEntity, Type: column.String}, true
	case first == "tags":
		return Source{Kind: SourceEntityTags, Type: column.String}, true
	}
	f, ok := fieldNamed(entityFields, first)
	return Source{Kind: SourceEntityField, Name: f.name, Type: f.kind}, ok
}

// metricColumn resolves a field or tag of a metric, in its own table with or without metric before it.
func metricColumn(parts []ast.Ident) (Source, bool) {
	switch {
	case !strings.EqualFold(parts[0].Text, "metric"):
		return metricField(parts)
	case len(parts) == 1:
		return Source{Kind: SourceMetric, Type: column.String}, true
	}
	return metricField(parts[1:])
}

func metricField(parts []ast.Ident) (Source, bool) {
	first := lower(parts[0].Text)
	switch {
	case first == "tags" && len(parts) > 1:
		return tagSource(SourceMetricTag, parts[1:]), true
	case len(parts) > 1:
		return Source{}, false
	case first == "name":
		return Source{Kind: SourceMetric, Type: column.String}, true
	case first == "tags":
		return Source{Kind: SourceMetricTags, Type: column.String}, true
	}
	f, ok := fieldNamed(metricFields, first)
	return Source{Kind: SourceMetricField, Name: f.name, Type: f.kind}, ok
}

// recordColumn resolves the columns of messages, properties and alerts.
func recordColumn(kind tableKind, parts []ast.Ident) (s Source, datetime, ok bool) {
	first := lower(parts[0].Text)
	if len(parts) > 1 {
		switch {
		case first == "tags":
			return tagSource(SourceTag, parts[1:]), false, true
		case first == "key" && kind == propertyTable:
			return Source{Kind: SourceRecord, Name: "key." + lower(pathOf(parts[1:])), Type: column.String}, false, true
		case first == "entity":
			s, ok = entityField(parts[1:])
			return s, false, ok
		}
		return Source{}, false, false
	}
	switch first {
	case "time", "datetime":
		return Source{Kind: SourceTime, Type: column.Bigint}, first == "datetime", true
	case "entity":
		return Source{Kind: SourceEntity, Type: column.String}, false, true
	case "tags":
		return Source{Kind: SourceTags, Type: column.String}, false, true
	}
	f, ok := fieldNamed(recordFields[kind], first)
	return Source{Kind: SourceRecord, Name: f.name, Type: f.kind}, false, ok
}

// perSeries reports whether a column is the same in all rows of a series.
func (s Source) perSeries() bool {
	switch s.Kind {
	case SourceTime, SourceValue, SourceText, SourceInterval, SourceRecord, sourceViewed:
		return false
	}
	return true
}

// ofEntity reports whether a column is the same in all rows of an entity.
func (s Source) ofEntity() bool {
	switch s.Kind {
	case SourceEntity, SourceEntityField, SourceEntityTags, SourceEntityTagsJSON, SourceEntityTag:
		return true
	}
	return false
}

// ofMetric reports whether a column is the same in all rows of a metric.
func (s Source) ofMetric() bool {
	switch s.Kind {
	case SourceMetric, SourceMetricField, SourceMetricTags, SourceMetricTagsJSON, SourceMetricTag:
		return true
	}
	return false
}

// ofTags reports whether a column says something of the tags of the series alone.
func (s Source) ofTags() bool {
	switch s.Kind {
	case SourceTags, SourceTagsJSON, SourceTag:
		return true
	}
	return false
}

// valueType returns the type of the column value over metrics.
func valueType(types []core.DataType) column.Type {
	if len(types) == 0 {
		return column.Null
	}
	var whole, broken column.Type
	for _, t := range types {
		switch kind := typeOf(t); kind {
		case column.Smallint, column.Integer, column.Bigint:
			whole = max(whole, kind)
		default:
			broken = max(broken, kind)
		}
	}
	switch {
	case broken == column.Null:
		return whole
	case whole == column.Null:
		return broken
	}
	return column.Decimal
}

func typeOf(t core.DataType) column.Type {
	switch t {
	case core.TypeShort:
		return column.Smallint
	case core.TypeInteger:
		return column.Integer
	case core.TypeLong:
		return column.Bigint
	case core.TypeDouble:
		return column.Double
	case core.TypeDecimal:
		return column.Decimal
	}
	return column.Float
}

// sourceViewed is a column of a view by its number, which is the Name. It never leaves this package: rows of views are numbered already.
const sourceViewed SourceKind = 255

func viewed(i int, t column.Type) Source {
	return Source{Kind: sourceViewed, Name: strconv.Itoa(i), Type: t}
}
