package core

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"strings"
	"time"
)

// DataType is how a metric keeps its numbers. Float and Double both keep all 64 bits; Decimal is exact.
type DataType string

const (
	TypeShort   DataType = "SHORT"
	TypeInteger DataType = "INTEGER"
	TypeLong    DataType = "LONG"
	TypeFloat   DataType = "FLOAT"
	TypeDouble  DataType = "DOUBLE"
	TypeDecimal DataType = "DECIMAL"
)

// InvalidAction is what happens to a value outside the limits of its metric.
type InvalidAction string

const (
	InvalidNone       InvalidAction = "NONE"
	InvalidDiscard    InvalidAction = "DISCARD"
	InvalidTransform  InvalidAction = "TRANSFORM"
	InvalidRaiseError InvalidAction = "RAISE_ERROR"
	InvalidSetStatus  InvalidAction = "SET_VERSION_STATUS"
)

// Metric is the document of kind DocMetric. Its JSON form is the document body, and what a merge patch applies to.
type Metric struct {
	Name                string            `json:"name"`
	Enabled             bool              `json:"enabled"`
	DataType            DataType          `json:"dataType"`
	Label               string            `json:"label,omitempty"`
	Description         string            `json:"description,omitempty"`
	Units               string            `json:"units,omitempty"`
	Persistent          bool              `json:"persistent"`
	Interpolate         string            `json:"interpolate,omitempty"` // LINEAR or PREVIOUS
	TimeZone            string            `json:"timeZone,omitempty"`
	Filter              string            `json:"filter,omitempty"`
	Versioned           bool              `json:"versioned"`
	InvalidAction       InvalidAction     `json:"invalidAction,omitempty"`
	MinValue            *float64          `json:"minValue,omitempty"`
	MaxValue            *float64          `json:"maxValue,omitempty"`
	RetentionDays       int               `json:"retentionDays,omitempty"`
	SeriesRetentionDays int               `json:"seriesRetentionDays,omitempty"`
	Tags                map[string]string `json:"tags,omitempty"`
	Created             Time              `json:"created"`
}

// NewMetric is a metric as its first sample creates it.
func NewMetric(name string, created Time) Metric {
	return Metric{Name: name, Enabled: true, DataType: TypeFloat, Persistent: true, Interpolate: "LINEAR", InvalidAction: InvalidNone,
		Created: created}
}

// Location returns the metric's zone, nil when it has none that can be resolved.
func (m Metric) Location() *time.Location { return location(m.TimeZone) }

// Entity is the document of kind DocEntity.
type Entity struct {
	Name        string            `json:"name"`
	Enabled     bool              `json:"enabled"`
	Label       string            `json:"label,omitempty"`
	Interpolate string            `json:"interpolate,omitempty"`
	TimeZone    string            `json:"timeZone,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Created     Time              `json:"created"`
	Versioned   Time              `json:"versionDate,omitempty"` // time of the last change, set by the store; 0 = none since the creation
}

// NewEntity is an entity as its first record creates it.
func NewEntity(name string, created Time) Entity {
	return Entity{Name: name, Enabled: true, Created: created}
}

// VersionDate is the time of the latest version. The first version is the creation.
func (e *Entity) VersionDate() Time { return max(e.Versioned, e.Created) }

// sameSettings reports whether e and o differ in nothing but their times.
func (e *Entity) sameSettings(o *Entity) bool {
	return e.Name == o.Name && e.Enabled == o.Enabled && e.Label == o.Label && e.Interpolate == o.Interpolate && e.TimeZone == o.TimeZone &&
		maps.Equal(e.Tags, o.Tags)
}

// MaxEntityVersions is how many versions of an entity a store keeps unless it is told otherwise: some 300 KB of an entity that changes all the time. The
// creation is always kept, of the others the latest.
const MaxEntityVersions = 1000

// Location returns the entity's zone, nil when it has none that can be resolved.
func (e Entity) Location() *time.Location { return location(e.TimeZone) }

func location(id string) *time.Location {
	if id == "" {
		return nil
	}
	loc, err := time.LoadLocation(id)
	if err != nil {
		return nil
	}
	return loc
}

// Group is the document of kind DocGroup: a named set of entities, by list or by expression.
type Group struct {
	Name       string            `json:"name"`
	Enabled    bool              `json:"enabled"`
	Expression string            `json:"expression,omitempty"`
	Members    []string          `json:"members,omitempty"` // sorted; ignored when Expression is set
	Tags       map[string]string `json:"tags,omitempty"`
}

// Table is the document of kind DocTable: a replacement table for rules and SQL. Its key is TableKey of the name.
type Table struct {
	Name        string            `json:"name"`
	Author      string            `json:"author,omitempty"`
	Description string            `json:"description,omitempty"`
	ValueFormat string            `json:"valueFormat"` // LIST, SQL, JSON, GRAPHQL, TEXT or CSV
	Keys        map[string]string `json:"keys,omitempty"`
}

// TableKey is the stored form of the name of a replacement table, which lookups use as well: lower case, `_` for blanks.
func TableKey(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "_") }

// Collection is the document of kind DocCollection: a named list for the function collection of expressions.
type Collection struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// ParserConfig is the document of kind DocParser: a named configuration of a parser plugin, which uploads refer to.
type ParserConfig struct {
	Name   string          `json:"name"`
	Plugin string          `json:"plugin"`
	Config json.RawMessage `json:"config"` // an object, for the plugin
}

// DocKind names a kind of document. Documents are everything that is kept by name and replaced as a whole.
type DocKind string

const (
	DocMetric     DocKind = "metric"
	DocEntity     DocKind = "entity"
	DocGroup      DocKind = "group"
	DocTable      DocKind = "table"
	DocCollection DocKind = "collection"
	DocUser       DocKind = "user"
	DocUserGroup  DocKind = "user-group"
	DocToken      DocKind = "token"
	DocRule       DocKind = "rule"
	DocParser     DocKind = "parser"
	DocCheckpoint DocKind = "checkpoint"
	DocOutbox     DocKind = "outbox"
	DocDeadLetter DocKind = "dead-letter"
	// DocPluginState is what a plugin remembers: key plugin 00 key, body any bytes.
	DocPluginState DocKind = "plugin-state"
	// DocStreamHead is what a later connection needs to go on with a file of nmon: key entity 00 file.
	DocStreamHead DocKind = "stream-head"
)

// DocOp is what a change does to its document.
type DocOp uint8

const (
	DocPut    DocOp = iota // Body replaces the document
	DocPatch               // Body is a JSON merge patch (RFC 7396); an absent document starts from its kind's defaults
	DocDelete              // no Body
	DocRename              // Body is {"name":"..."}: of metrics and entities only, which keep their settings, identity and data under the other name
)

// DocChange is one change of one document.
type DocChange struct {
	Kind DocKind
	Key  string
	Op   DocOp
	Body []byte
}

// Document is a stored document.
type Document struct {
	Kind DocKind
	Key  string
	Body []byte
}

// Clone returns a copy that shares no memory with c.
func (c DocChange) Clone() DocChange {
	c.Key, c.Body = strings.Clone(c.Key), append([]byte(nil), c.Body...)
	return c
}

// Apply returns the document body after the change, nil when the document is deleted. before is nil for an absent document. Of a rename it is the
// body under the other name (see NewName). now is the receive time of the batch.
func (c DocChange) Apply(before []byte, now Time) ([]byte, error) {
	body := c.Body
	switch c.Op {
	case DocDelete:
		return nil, nil
	case DocRename:
		if before == nil {
			return nil, Errorf(NotFound, "%s not found for name: '%s'", strings.ToUpper(string(c.Kind)), c.Key)
		}
		return MergePatch(before, c.Body)
	case DocPatch:
		base := before
		if base == nil {
			base = defaultBody(c.Kind, c.Key, now)
		}
		var err error
		if body, err = MergePatch(base, c.Body); err != nil {
			return nil, err
		}
	}
	switch c.Kind {
	case DocEntity:
		return c.settleEntity(before, body, now)
	case DocMetric:
		return c.settleMetric(before, body, now)
	}
	return append([]byte(nil), body...), nil
}

// settleEntity sets the times of an entity, whatever the body says: the creation is kept, and each change gets a time of its own, later than the one
// before it.
func (c DocChange) settleEntity(before, body []byte, now Time) ([]byte, error) {
	var old, next Entity
	if err := c.decode(body, &next); err != nil {
		return nil, err
	}
	next.Name = c.Key
	if before == nil {
		if next.Created == 0 {
			next.Created = now
		}
		return json.Marshal(next)
	}
	if err := c.decode(before, &old); err != nil {
		return nil, err
	}
	old.Name = c.Key
	next.Created, next.Versioned = old.Created, old.Versioned
	if !next.sameSettings(&old) {
		next.Versioned = max(now, old.VersionDate()+1)
	}
	return json.Marshal(next)
}

// settleMetric keeps the creation of a metric when it is replaced.
func (c DocChange) settleMetric(before, body []byte, now Time) ([]byte, error) {
	var old, next Metric
	if err := c.decode(body, &next); err != nil {
		return nil, err
	}
	next.Name = c.Key
	if before != nil {
		if err := c.decode(before, &old); err != nil {
			return nil, err
		}
		next.Created = old.Created
	} else if next.Created == 0 {
		next.Created = now
	}
	return json.Marshal(next)
}

func (c DocChange) decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return Wrap(Invalid, err, "malformed "+string(c.Kind)+" "+c.Key)
	}
	return nil
}

// NewName is the name that a rename gives; taken reports whether it is in use.
func (c DocChange) NewName(taken func(name string) bool) (string, error) {
	var body struct {
		Name string `json:"name"`
	}
	if c.Kind != DocMetric && c.Kind != DocEntity {
		return "", Errorf(Invalid, "a %s cannot be renamed", c.Kind)
	}
	if err := c.decode(c.Body, &body); err != nil {
		return "", err
	}
	if body.Name == "" {
		return "", Errorf(Invalid, "rename of %s %s: name is required", c.Kind, c.Key)
	}
	if taken(body.Name) {
		return "", Errorf(Invalid, "IllegalArgumentException: %s '%s' already exists", c.Kind, body.Name)
	}
	return body.Name, nil
}

func defaultBody(kind DocKind, key string, now Time) []byte {
	var doc any = struct{}{}
	switch kind {
	case DocMetric:
		doc = NewMetric(key, now)
	case DocEntity:
		doc = NewEntity(key, now)
	case DocGroup:
		doc = Group{Name: key, Enabled: true}
	}
	body, _ := json.Marshal(doc) // plain structs of strings and numbers: cannot fail
	return body
}

// MergePatch applies a JSON merge patch (RFC 7396) to a JSON object: null removes a member, objects merge, anything else replaces.
func MergePatch(doc, patch []byte) ([]byte, error) {
	var d, p any
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, Wrap(Internal, err, "stored document is not JSON")
	}
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, Wrap(Invalid, err, "patch is not JSON")
	}
	return json.Marshal(mergeValue(d, p))
}

func mergeValue(doc, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := doc.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = mergeValue(out[name], value)
	}
	return out
}

// MetricInfo is a metric with what the store knows of its data. The metric is shared with the store and must not be changed.
type MetricInfo struct {
	*Metric
	Last     Time // of its newest sample, with Inserted
	Inserted bool // it has samples
}

// EntityInfo is an entity with what the store knows of its data. The entity is shared with the store and must not be changed.
type EntityInfo struct {
	*Entity
	Last     Time // of its newest sample, with Inserted
	Inserted bool // it has samples
}

// MetaQuery selects metrics or entities.
type MetaQuery struct {
	Name string // exact; "" = all
}

// Metadata is what lists of metrics and entities read: decoded documents by name, with the time of the newest sample, which the store keeps at hand -
// nothing here looks at every series or every body. Samples of forecasts do not count. Order and completeness are promises as in Reader.
type Metadata interface {
	Metrics(ctx context.Context, q MetaQuery) iter.Seq2[MetricInfo, error]
	Entities(ctx context.Context, q MetaQuery) iter.Seq2[EntityInfo, error]
	// EntityVersions returns the versions of an entity, oldest first, the latest last; none for an unknown entity. Each has the time
	// VersionDate, and these times ascend strictly.
	EntityVersions(name string) []Entity
}
