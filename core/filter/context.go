package filter

import (
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Context is the kind of record an expression is about. It decides which variables there are.
type Context uint8

const (
	Entities   Context = iota // entity expressions of queries, groups and listings
	Metrics                   // metric listings
	Groups                    // entity group listings
	SeriesTags                // tagExpression of series
	Messages                  // message queries, statistics and functions
	Properties                // keyTagExpression; a bare name is a key, or else a tag
	Samples                   // persistence filter of a metric
	Rows                      // row filter of CSV parsers
	RawSamples                // sampleFilter of series queries
	Versions                  // versionFilter of series queries
	Windows                   // windows of rules, as functions of other rules look them up
)

// Env gives an expression the values of one record.
type Env interface {
	// Lookup returns a variable of the context by its canonical name, null when the record does not have it.
	Lookup(name string) Value
	// Tag returns a tag by its lower-case name, "" when the record does not have it.
	Tag(name string) string
}

// Cells is what an Env of context Rows adds: the cells of `row['col']`. ok is false for an unknown column, which is an error of the row.
type Cells interface {
	Cell(column string) (text string, ok bool)
}

// fieldKind says how a variable behaves where it is missing or compared.
type fieldKind uint8

const (
	textField fieldKind = iota
	dateField
	otherField
)

type field struct {
	name string // canonical
	kind fieldKind
}

// fieldOf resolves a variable from its lower-case spelling.
func (c Context) fieldOf(word string) (field, bool) {
	switch c {
	case Entities:
		return entityField(word)
	case Metrics:
		return metricField(word)
	case Groups:
		return pick(word, field{"name", textField}, field{"tags", otherField})
	case SeriesTags:
		return pick(word, field{"tags", otherField})
	case Messages:
		return pick(word, field{"type", textField}, field{"source", textField}, field{"message", textField}, field{"entity", textField},
			field{"severity", otherField}, field{"tags", otherField})
	case Properties:
		return pick(word, field{"keys", otherField}, field{"tags", otherField})
	case Samples:
		return pick(word, field{"entity", textField}, field{"value", otherField}, field{"message", textField}, field{"timestamp", otherField},
			field{"tags", otherField})
	case Rows:
		return pick(word, field{"timestamp", otherField}, field{"row", otherField})
	case RawSamples:
		return pick(word, field{"value", otherField}, field{"date", otherField})
	case Versions:
		return pick(word, field{"value", otherField}, field{"version_status", textField}, field{"version_source", textField},
			field{"version_time", otherField})
	case Windows:
		return pick(word, field{"message", textField}, field{"status", textField}, field{"entity", textField}, field{"severity", otherField},
			field{"tags", otherField})
	}
	return field{}, false
}

func entityField(word string) (field, bool) {
	if word == "id" {
		word = "name"
	}
	if word == "creationdate" {
		word = "createddate"
	}
	return pick(word, field{"name", textField}, field{"label", textField}, field{"interpolate", textField}, field{"timeZone", textField},
		field{"enabled", otherField}, field{"createdDate", dateField}, field{"versionDate", dateField}, field{"tags", otherField})
}

func metricField(word string) (field, bool) {
	switch word {
	case "creationdate":
		word = "createddate"
	case "versioning":
		word = "versioned"
	}
	return pick(word, field{"name", textField}, field{"label", textField}, field{"description", textField}, field{"units", textField},
		field{"dataType", textField}, field{"interpolate", textField}, field{"timeZone", textField}, field{"invalidAction", textField},
		field{"enabled", otherField}, field{"persistent", otherField}, field{"versioned", otherField}, field{"createdDate", dateField},
		field{"retentionDays", otherField}, field{"seriesRetentionDays", otherField}, field{"minValue", otherField},
		field{"maxValue", otherField}, field{"tags", otherField})
}

func pick(word string, fields ...field) (field, bool) {
	for _, f := range fields {
		if strings.EqualFold(f.name, word) {
			return f, true
		}
	}
	return field{}, false
}

// refuses reports whether the contract forbids a variable, rather than taking it for the empty text as it does with unknown ones.
func (c Context) refuses(word string) bool {
	switch c {
	case Metrics:
		return word == "lastinsertdate" || word == "filter" || word == "persistencefilter"
	case Entities, Groups:
		return word == "lastinsertdate"
	}
	return false
}

// subject is the variable that names the entity which functions such as memberOf ask about; "" when the record has none.
func (c Context) subject() string {
	switch c {
	case Entities:
		return "name"
	case Messages, Samples, Windows:
		return "entity"
	}
	return ""
}

// EntityEnv is the Env of an entity.
type EntityEnv struct{ *core.Entity }

// Lookup implements Env.
func (e EntityEnv) Lookup(name string) Value {
	switch name {
	case "name":
		return Text(e.Name)
	case "label":
		return Text(e.Label)
	case "interpolate":
		return Text(e.Interpolate)
	case "timeZone":
		return Text(e.TimeZone)
	case "enabled":
		return Bool(e.Enabled)
	case "createdDate":
		return Date(e.Created)
	case "versionDate":
		return Date(e.VersionDate())
	case "tags":
		return MapOf(StringMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e EntityEnv) Tag(name string) string { return e.Tags[name] }

// MetricEnv is the Env of a metric.
type MetricEnv struct{ *core.Metric }

// Lookup implements Env.
func (e MetricEnv) Lookup(name string) Value {
	switch name {
	case "name":
		return Text(e.Name)
	case "label":
		return Text(e.Label)
	case "description":
		return Text(e.Description)
	case "units":
		return Text(e.Units)
	case "dataType":
		return Text(string(e.DataType))
	case "interpolate":
		return Text(e.Interpolate)
	case "timeZone":
		return Text(e.TimeZone)
	case "invalidAction":
		return Text(string(e.InvalidAction))
	case "enabled":
		return Bool(e.Enabled)
	case "persistent":
		return Bool(e.Persistent)
	case "versioned":
		return Bool(e.Versioned)
	case "createdDate":
		return Date(e.Created)
	case "retentionDays":
		return Number(float64(e.RetentionDays))
	case "seriesRetentionDays":
		return Number(float64(e.SeriesRetentionDays))
	case "minValue":
		return optional(e.MinValue)
	case "maxValue":
		return optional(e.MaxValue)
	case "tags":
		return MapOf(StringMap(e.Tags))
	}
	return Null
}

func optional(f *float64) Value {
	if f == nil {
		return Null
	}
	return Number(*f)
}

// Tag implements Env.
func (e MetricEnv) Tag(name string) string { return e.Tags[name] }

// GroupEnv is the Env of an entity group.
type GroupEnv struct{ *core.Group }

// Lookup implements Env.
func (e GroupEnv) Lookup(name string) Value {
	switch name {
	case "name":
		return Text(e.Name)
	case "tags":
		return MapOf(StringMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e GroupEnv) Tag(name string) string { return e.Tags[name] }

// TagsEnv is the Env of a series. A pointer to one can be reused for many series.
type TagsEnv struct{ Tags core.Tags }

// Lookup implements Env.
func (e *TagsEnv) Lookup(name string) Value {
	if name == "tags" {
		return MapOf(TagMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e *TagsEnv) Tag(name string) string { return e.Tags.Value(name) }

// MessageEnv is the Env of a message.
type MessageEnv struct{ *core.Message }

// Lookup implements Env.
func (e MessageEnv) Lookup(name string) Value {
	switch name {
	case "entity":
		return Text(e.Entity)
	case "type":
		return Text(e.Type)
	case "source":
		return Text(e.Source)
	case "message":
		return Text(e.Text)
	case "severity":
		return Severity(e.Severity)
	case "tags":
		return MapOf(TagMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e MessageEnv) Tag(name string) string { return e.Tags.Value(name) }

// WindowEnv is the Env of a window of a rule: its status, its grouping tags, and the message of its last command.
type WindowEnv struct {
	Entity   string
	Message  string
	Status   core.Status
	Severity core.Severity
	Tags     core.Tags
}

// Lookup implements Env.
func (e *WindowEnv) Lookup(name string) Value {
	switch name {
	case "entity":
		return Text(e.Entity)
	case "message":
		return Text(e.Message)
	case "status":
		return Text(string(e.Status))
	case "severity":
		return Severity(e.Severity)
	case "tags":
		return MapOf(TagMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e *WindowEnv) Tag(name string) string { return e.Tags.Value(name) }

// PropertyEnv is the Env of a property record: its key, and those of its tags that the reader of the record sees.
type PropertyEnv struct{ Key, Tags core.Tags }

// Lookup implements Env.
func (e *PropertyEnv) Lookup(name string) Value {
	switch name {
	case "keys":
		return MapOf(TagMap(e.Key))
	case "tags":
		return MapOf(TagMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e *PropertyEnv) Tag(name string) string { return e.Tags.Value(name) }

// SampleEnv is the Env of one sample on its way in. A pointer to one can be reused for many samples.
type SampleEnv struct {
	Entity string
	Time   core.Time
	Value  float64
	Text   string
	Tags   core.Tags
}

// Lookup implements Env.
func (e *SampleEnv) Lookup(name string) Value {
	switch name {
	case "entity":
		return Text(e.Entity)
	case "value":
		return Number(e.Value)
	case "message":
		return Text(e.Text)
	case "timestamp":
		return Number(float64(e.Time))
	case "tags":
		return MapOf(TagMap(e.Tags))
	}
	return Null
}

// Tag implements Env.
func (e *SampleEnv) Tag(name string) string { return e.Tags.Value(name) }

// RowEnv is the Env of one row of a table. Find returns the cell of a column.
type RowEnv struct {
	Time core.Time
	Find func(column string) (text string, ok bool)
}

// Lookup implements Env.
func (e *RowEnv) Lookup(name string) Value {
	if name == "timestamp" {
		return Number(float64(e.Time))
	}
	return Null
}

// Tag implements Env: rows have no tags.
func (e *RowEnv) Tag(string) string { return "" }

// Cell implements Cells.
func (e *RowEnv) Cell(column string) (string, bool) { return e.Find(column) }
