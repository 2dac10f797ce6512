package command

import (
	"bytes"

	"github.com/tidemark-db/tidemark/core"
)

// order finds the changes of settings that may not move before the data of their batch. Without such changes it costs nothing.
type order struct {
	settings map[name]*setting
	seen     struct{ keys, messages, properties int } // records of the batch that were looked at
}

type name struct {
	kind core.DocKind
	name string
}

// setting is what the batch so far has of a metric or an entity.
type setting struct {
	data bool   // records come before the change that is looked at
	body []byte // of the last change, unless the tags of the entity were written since
}

// keeps reports whether the last change of a batch, at index i of its documents, may take effect before the records so far: these are of other metrics and entities,
// or the change was made before them already.
func (o *order) keeps(b *core.Batch, i int) bool {
	if o.settings == nil {
		o.settings = map[name]*setting{}
	}
	for _, k := range b.Keys[o.seen.keys:] {
		o.of(core.DocMetric, k.Metric).data = true
		o.of(core.DocEntity, k.Entity).data = true
	}
	for _, m := range b.Messages[o.seen.messages:] {
		o.of(core.DocEntity, m.Entity).data = true
	}
	for _, p := range b.Properties[o.seen.properties:] {
		e := o.of(core.DocEntity, p.Entity)
		e.data = true
		if p.Type == core.EntityTagsType { // a change of settings by another name
			e.body = nil
		}
	}
	o.seen.keys, o.seen.messages, o.seen.properties = len(b.Keys), len(b.Messages), len(b.Properties)
	d := b.Documents[i]
	s := o.of(d.Kind, d.Key)
	if s.data && !bytes.Equal(s.body, d.Body) {
		return false
	}
	s.body = d.Body
	return true
}

func (o *order) of(kind core.DocKind, key string) *setting {
	n := name{kind, key}
	s := o.settings[n]
	if s == nil {
		s = &setting{}
		o.settings[n] = s
	}
	return s
}
