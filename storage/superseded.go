package storage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
)

// superseded says which versions of an entity are stored, besides the current one: number 0, the creation, and those from low, at least 1, to before
// high. The versions are records of the table of documents, so that they take no memory. One word holds both numbers, so that a reader finds them together; 0
// stands for no versions.
type superseded struct{ word atomic.Uint64 }

func (p *superseded) get() (low, high uint32) {
	word := p.word.Load()
	return uint32(word >> 32), uint32(word)
}

func (p *superseded) set(low, high uint32) { p.word.Store(uint64(low)<<32 | uint64(high)) }

// pastKind is the kind of the records that are versions. Their key is the name of the entity as a part, and the number in four bytes, big-endian.
const pastKind core.DocKind = "\x01past"

func pastKey(name string, number uint32) []byte {
	key := appendPart(documentKey(pastKind, ""), name)
	return binary.BigEndian.AppendUint32(key, number)
}

// supersede keeps the version of an entity that a change replaces. Of many, the creation and the latest stay.
func (c *catalog) supersede(e *entity, name string, old *core.Entity) {
	body, _ := json.Marshal(old) // plain struct: cannot fail
	low, high := e.past.get()
	if high == 0 {
		c.documents.Put(pastKey(name, 0), body)
		e.past.set(1, 1)
		return
	}
	stored := 1 + int(high-low)
	drop := max(0, stored+2-c.versions) // the replaced version and the current one count
	for range min(drop, stored-1) {
		c.documents.Delete(pastKey(name, low))
		low++
	}
	if drop < stored {
		c.documents.Put(pastKey(name, high), body)
		high++
	}
	e.past.set(low, high)
}

// numbers yields the numbers of the stored versions.
func (p *superseded) numbers(yield func(uint32) bool) {
	low, high := p.get()
	if high == 0 || !yield(0) {
		return
	}
	for ; low < high; low++ {
		if !yield(low) {
			return
		}
	}
}

// forgetPast removes the versions of an entity that is gone.
func (c *catalog) forgetPast(e *entity, name string) {
	for number := range e.past.numbers {
		c.documents.Delete(pastKey(name, number))
	}
	e.past.set(0, 0)
}

// movePast takes the versions of an entity to another name.
func (c *catalog) movePast(e *entity, from, to string) error {
	for number := range e.past.numbers {
		body, ok, err := c.documents.Get(pastKey(from, number))
		if err != nil {
			return damaged(err)
		}
		if ok {
			c.documents.Put(pastKey(to, number), body)
		}
	}
	for number := range e.past.numbers {
		c.documents.Delete(pastKey(from, number))
	}
	return nil
}

// loadPast notes a version that is stored. They come in order.
func (c *catalog) loadPast(key string) error {
	name, number, ok := cutPart(key)
	if !ok || len(number) != 4 {
		return malformed("key of a version %q", key)
	}
	e, n := c.entity(name), binary.BigEndian.Uint32([]byte(number))
	switch low, high := e.past.get(); {
	case n == 0:
		e.past.set(1, 1)
	case low == high:
		e.past.set(n, n+1)
	default:
		e.past.set(low, n+1)
	}
	return nil
}

// pastOf returns the stored versions that are older than doc, oldest first.
func (c *catalog) pastOf(e *entity, doc *core.Entity) (all []core.Entity, err error) {
	for number := range e.past.numbers {
		body, ok, err := c.documents.Get(pastKey(doc.Name, number))
		if err != nil {
			return all, damaged(err)
		}
		var v core.Entity
		if !ok { // dropped since the numbers were read
			continue
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return all, errors.Join(malformed("version %d of entity %s", number, doc.Name), err)
		}
		if v.VersionDate() < doc.VersionDate() {
			v.Name = doc.Name
			all = append(all, v)
		}
	}
	return all, nil
}
