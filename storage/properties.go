package storage

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/table"
)

// properties holds property records by entity, type and key.
type properties struct {
	*table.Table

	// Scratch of the appender.
	key, value []byte
}

func newProperties() *properties { return &properties{Table: table.New(table.Options{})} }

// appendPropertyKey is the key of a record: entity, type, and the name and the value of each tag of its key, as parts.
func appendPropertyKey(dst []byte, k *core.PropertyKey) []byte {
	dst = appendPart(appendPart(dst, k.Entity), k.Type)
	for _, tag := range k.Key {
		dst = appendPart(appendPart(dst, tag.Name), tag.Value)
	}
	return dst
}

func appendRecord(dst []byte, r *core.PropertyRecord) []byte {
	e := encoder{body: dst}
	e.count(len(r.Tags))
	last := core.Time(0)
	for _, tag := range r.Tags {
		e.text(tag.Name)
		e.text(tag.Value)
		e.varint(int64(tag.Time - last))
		last = tag.Time
	}
	return e.body
}

// recordReader decodes records that come in order, so that most have the entity and the type of the one before.
type recordReader struct {
	prefix []byte // of the key of the last record: entity and type
	entity string
	kind   string
}

// read decodes a record. What it returns shares memory with the value, not with the key.
func (rr *recordReader) read(key, value []byte) (*core.PropertyRecord, error) {
	if len(rr.prefix) == 0 || !bytes.HasPrefix(key, rr.prefix) {
		entity, rest, ok1 := cutPart(string(key))
		kind, rest, ok2 := cutPart(rest)
		if !ok1 || !ok2 {
			return nil, malformed("property key %q", key)
		}
		rr.prefix, rr.entity, rr.kind = append(rr.prefix[:0], key[:len(key)-len(rest)]...), entity, kind
	}
	r := &core.PropertyRecord{PropertyKey: core.PropertyKey{Entity: rr.entity, Type: rr.kind}}
	if rest := string(key[len(rr.prefix):]); rest != "" {
		r.Key = make(core.Tags, 0, strings.Count(rest, "\x00")/2)
		for rest != "" {
			var tag core.Tag
			var ok1, ok2 bool
			tag.Name, rest, ok1 = cutPart(rest)
			tag.Value, rest, ok2 = cutPart(rest)
			if !ok1 || !ok2 {
				return nil, malformed("property key %q", key)
			}
			r.Key = append(r.Key, tag)
		}
	}
	d := decoder{rest: shared(value)}
	r.Tags = make([]core.PropertyTag, d.count(3))
	last := core.Time(0)
	for i := range r.Tags {
		tag := &r.Tags[i]
		tag.Name, tag.Value = d.text(), d.text()
		last += d.time()
		tag.Time, r.Time = last, max(r.Time, last)
	}
	if d.err == nil && d.rest != "" {
		d.fail("%d bytes too many", len(d.rest))
	}
	return r, d.err
}

// get returns the record of a key, nil when there is none.
func (s *properties) get(key []byte) (*core.PropertyRecord, error) {
	value, ok, err := s.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	return new(recordReader).read(key, value)
}

// merge applies one update: it writes the tags it names, removes those with an empty value, and leaves the others, as well as tags that a later
// update has written.
func (s *properties) merge(p core.Property) error {
	s.key = appendPropertyKey(s.key[:0], &p.PropertyKey)
	next, err := s.get(s.key)
	if err != nil {
		return damaged(err)
	}
	old := next != nil
	if !old {
		next = &core.PropertyRecord{}
	}
	for _, tag := range p.Tags {
		i, found := slices.BinarySearchFunc(next.Tags, tag.Name, func(t core.PropertyTag, name string) int { return cmp.Compare(t.Name, name) })
		switch {
		case found && next.Tags[i].Time > p.Time:
		case found && tag.Value == "":
			next.Tags = slices.Delete(next.Tags, i, i+1)
		case found:
			next.Tags[i].Value, next.Tags[i].Time = tag.Value, p.Time
		case tag.Value != "":
			next.Tags = slices.Insert(next.Tags, i, core.PropertyTag{Tag: tag, Time: p.Time})
		}
	}
	switch {
	case len(next.Tags) > 0:
		s.value = appendRecord(s.value[:0], next)
		s.Put(s.key, s.value)
	case old:
		s.Delete(s.key)
	}
	return nil
}

// remove removes one record, if it is there.
func (s *properties) remove(k core.PropertyKey) error {
	s.key = appendPropertyKey(s.key[:0], &k)
	ok, err := s.Has(s.key)
	if err != nil {
		return damaged(err)
	}
	if ok {
		s.Delete(s.key)
	}
	return nil
}

// forget removes the records of an entity.
func (s *properties) forget(entity string) error {
	prefix := appendPart(nil, entity)
	for e, err := range s.Ascend(prefix, behindPrefix(prefix)) {
		if err != nil {
			return damaged(err)
		}
		s.Delete(e.Key)
	}
	return nil
}

// rename takes the records of an entity to another name.
func (s *properties) rename(from, to string) error {
	prefix, key := appendPart(nil, from), appendPart(nil, to)
	n := len(key)
	for e, err := range s.Ascend(prefix, behindPrefix(prefix)) {
		if err != nil {
			return damaged(err)
		}
		key = append(key[:n], e.Key[len(prefix):]...)
		s.Put(key, e.Value)
		s.Delete(e.Key)
	}
	return nil
}

// of yields the records of one entity, and of one type unless that is empty.
func (s *properties) of(entity, propertyType string) iter.Seq2[*core.PropertyRecord, error] {
	prefix := appendPart(nil, entity)
	if propertyType != "" {
		prefix = appendPart(prefix, propertyType)
	}
	return s.decoded(s.Ascend(prefix, behindPrefix(prefix)))
}

// all yields the records of every entity, and of one type unless that is empty.
func (s *properties) all(propertyType string) iter.Seq2[*core.PropertyRecord, error] {
	entries := s.Ascend(nil, nil)
	if propertyType == "" {
		return s.decoded(entries)
	}
	want := appendPart(nil, propertyType)
	return s.decoded(func(yield func(table.Entry, error) bool) {
		for e, err := range entries {
			if err == nil && !bytes.HasPrefix(e.Key[bytes.IndexByte(e.Key, partEnd)+1:], want) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	})
}

func (s *properties) decoded(entries iter.Seq2[table.Entry, error]) iter.Seq2[*core.PropertyRecord, error] {
	return func(yield func(*core.PropertyRecord, error) bool) {
		var rr recordReader
		for e, err := range entries {
			var r *core.PropertyRecord
			if err == nil {
				r, err = rr.read(e.Key, e.Value)
			}
			if err != nil {
				yield(nil, damaged(err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}
