package core

import (
	"encoding/json"
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
	Versioned   Time              `json:"versionDate,omitempty"` // time of the last change of the document
}

// NewEntity is an entity as its first record creates it.
func NewEntity(name string, created Time) Entity {
	return Entity{Name: name, Enabled: true, Created: created}
}

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

// DocKind names a kind of document. Documents are everything that is kept by name and replaced as a whole.
type DocKind string

const (
	DocMetric     DocKind = "metric"
	DocEntity     DocKind = "entity"
	DocGroup      DocKind = "group"
	DocTable      DocKind = "table"
	DocUser       DocKind = "user"
	DocUserGroup  DocKind = "user-group"
	DocToken      DocKind = "token"
	DocRule       DocKind = "rule"
	DocParser     DocKind = "parser"
	DocCheckpoint DocKind = "checkpoint"
	DocOutbox     DocKind = "outbox"
	DocDeadLetter DocKind = "dead-letter"
)

// DocOp is what a change does to its document.
type DocOp uint8

const (
	DocPut    DocOp = iota // Body replaces the document
	DocPatch               // Body is a JSON merge patch (RFC 7396); an absent document starts from its kind's defaults
	DocDelete              // no Body
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

// Apply returns the document body after the change, nil when the document is deleted. before is nil for an absent document.
func (c DocChange) Apply(before []byte, now Time) ([]byte, error) {
	switch c.Op {
	case DocDelete:
		return nil, nil
	case DocPut:
		return append([]byte(nil), c.Body...), nil
	}
	if before == nil {
		before = defaultBody(c.Kind, c.Key, now)
	}
	return MergePatch(before, c.Body)
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
