package ingest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// document names one document.
type document struct {
	kind core.DocKind
	name string
}

// effective are the members of a metric or an entity that decide what becomes of records.
var effective = [...]string{`"enabled"`, `"persistent"`, `"versioned"`, `"dataType"`, `"filter"`, `"invalidAction"`, `"minValue"`, `"maxValue"`}

// matters reports whether a change may decide what becomes of records.
func matters(c core.DocChange) bool {
	return c.Op != core.DocPatch || slices.ContainsFunc(effective[:], func(member string) bool { return bytes.Contains(c.Body, []byte(member)) })
}

// settled applies to a stored document the changes that the batch itself carries: they take effect before the records beside them. It returns whether the document
// is there then. What cannot be applied changes nothing here, and is refused by the log.
func settled[T any](a *acceptance, kind core.DocKind, name string, stored T, known bool) (T, bool) {
	if len(a.b.Documents) == 0 {
		return stored, known
	}
	list := a.changesOf(document{kind, name})
	if !slices.ContainsFunc(list, func(i int) bool { return matters(a.b.Documents[i]) }) {
		return stored, known
	}
	var body []byte
	var err error
	if known {
		if body, err = json.Marshal(stored); err != nil {
			return stored, known
		}
	}
	for _, i := range list {
		c := a.b.Documents[i]
		c.Key = name
		if body, err = c.Apply(body, a.now); err != nil {
			return stored, known
		}
	}
	var next T
	if body == nil || json.Unmarshal(body, &next) != nil {
		return next, false
	}
	return next, true
}

// changesOf returns where in the batch the changes of a metric or an entity are.
func (a *acceptance) changesOf(d document) []int {
	if !a.indexed {
		a.indexed = true
		for i, c := range a.b.Documents {
			if name, ok := normalName(c.Key); ok && (c.Kind == core.DocMetric || c.Kind == core.DocEntity) && c.Op != core.DocRename {
				key := document{c.Kind, name}
				a.changes[key] = append(a.changes[key], i)
			}
		}
	}
	return a.changes[d]
}
