package storage

import (
	"bytes"
	"iter"

	"github.com/tidemark-db/tidemark/core"
)

// documentKey is the key of a document: its kind, a byte 0, and its own key as it is. Kinds that begin with a byte 1 are the catalog's own.
func documentKey(kind core.DocKind, key string) []byte {
	b := append(make([]byte, 0, len(kind)+1+len(key)), kind...)
	return append(append(b, 0), key...)
}

// body returns a stored document, nil when there is none. It must not be changed.
func (c *catalog) body(kind core.DocKind, key string) ([]byte, error) {
	body, ok, err := c.documents.Get(documentKey(kind, key))
	switch {
	case err != nil:
		return nil, damaged(err)
	case ok && body == nil:
		return []byte{}, nil
	}
	return body, nil
}

// taken reports whether there is a document, or may be one that cannot be read.
func (c *catalog) taken(kind core.DocKind, key string) bool {
	body, err := c.body(kind, key)
	return body != nil || err != nil
}

// store puts a document in the table; its decoded form is published before.
func (c *catalog) store(kind core.DocKind, key string, body []byte) {
	c.documents.Put(documentKey(kind, key), body)
}

// ofKind yields the documents of a kind in order of their keys. The bodies must not be changed.
func (c *catalog) ofKind(kind core.DocKind) iter.Seq2[*core.Document, error] {
	return func(yield func(*core.Document, error) bool) {
		prefix := documentKey(kind, "")
		for e, err := range c.documents.Ascend(prefix, behindPrefix(prefix)) {
			if err != nil {
				yield(nil, damaged(err))
				return
			}
			if !yield(&core.Document{Kind: kind, Key: string(e.Key[len(prefix):]), Body: e.Value}, nil) {
				return
			}
		}
	}
}

// only yields the one document of a key, if it is there.
func (c *catalog) only(kind core.DocKind, key string) iter.Seq2[*core.Document, error] {
	return func(yield func(*core.Document, error) bool) {
		if body, err := c.body(kind, key); body != nil || err != nil {
			yield(&core.Document{Kind: kind, Key: key, Body: body}, err)
		}
	}
}

// load makes what is at hand from the table. What cannot be read is reported and passed over.
func (c *catalog) load(report *Report) {
	for e, err := range c.documents.Ascend(nil, nil) {
		if err == nil {
			err = c.loadDocument(e.Key, e.Value)
		}
		if err != nil {
			report.addDamage("documents: " + err.Error())
		}
	}
	c.loadNewest(report)
}

func (c *catalog) loadDocument(key, body []byte) error {
	name, rest, ok := bytes.Cut(key, []byte{0})
	if !ok {
		return malformed("document key %q", key)
	}
	kind := core.DocKind(name)
	if kind == pastKind {
		return c.loadPast(string(rest))
	}
	switch kind {
	case core.DocEntity:
		return c.loadEntity(shared(rest), body)
	case core.DocMetric:
		return c.loadMetric(shared(rest), body)
	}
	decoded, err := decodeBody(kind, string(rest), body)
	if err != nil || decoded == nil {
		return err
	}
	c.publish(kind, string(rest), decoded)
	return nil
}

// loadEntity packs an entity without making a document of it, if it can: there may be a million. The name is copied.
func (c *catalog) loadEntity(name string, body []byte) error {
	doc, tags, ok := scanEntity(shared(body), c.packing.tags)
	if c.packing.tags = tags; !ok {
		decoded, err := decodeBody(core.DocEntity, name, body)
		if err != nil {
			return err
		}
		doc = *decoded.(*core.Entity)
		tags = core.TagsOf(doc.Tags)
	}
	e := c.entity(name)
	e.doc.Store(c.packing.entity(&doc, tags, sideBySide))
	c.entityNames.put(e)
	return nil
}

func (c *catalog) loadMetric(name string, body []byte) error {
	doc, ok := scanMetric(shared(body))
	if !ok {
		decoded, err := decodeBody(core.DocMetric, name, body)
		if err != nil {
			return err
		}
		doc = *decoded.(*core.Metric)
	}
	m := c.metric(name)
	m.doc.Store(c.packing.metric(&doc, sideBySide))
	c.metricNames.put(m)
	return nil
}
