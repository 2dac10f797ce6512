package table

import "sync"

// cache keeps the blocks that were used last, unpacked. A lock for all is enough: it is held for some map operations.
type cache struct {
	limit int

	mu     sync.Mutex
	bytes  int
	blocks map[blockID]*cached
	ring   cached // the ring's anchor: next is the block used last, before the one used first
}

type blockID struct {
	file  *File
	block int
}

type cached struct {
	id           blockID
	raw          []byte
	next, before *cached
}

// cachedBytes estimates what a block takes beside its bytes.
const cachedBytes = 128

func newCache(limit int) *cache {
	c := &cache{limit: limit, blocks: map[blockID]*cached{}}
	c.ring.next, c.ring.before = &c.ring, &c.ring
	return c
}

func (c *cache) get(id blockID) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.blocks[id]
	if one == nil {
		return nil
	}
	one.unlink()
	c.link(one)
	return one.raw
}

// put keeps a block, unless it would take the place of many.
func (c *cache) put(id blockID, raw []byte) {
	if len(raw) > c.limit/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks[id] != nil { // another reader was faster
		return
	}
	one := &cached{id: id, raw: raw}
	c.blocks[id] = one
	c.link(one)
	for c.bytes += len(raw) + cachedBytes; c.bytes > c.limit; {
		c.drop(c.ring.before)
	}
}

// forget drops the blocks of a file. One that a reader puts back later is found by nobody, and goes with time.
func (c *cache) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := c.ring.next; one != &c.ring; {
		next := one.next
		if one.id.file == f {
			c.drop(one)
		}
		one = next
	}
}

func (c *cache) drop(one *cached) {
	one.unlink()
	delete(c.blocks, one.id)
	c.bytes -= len(one.raw) + cachedBytes
}

func (c *cache) link(one *cached) {
	one.next, one.before = c.ring.next, &c.ring
	one.next.before, one.before.next = one, one
}

func (c *cached) unlink() { c.next.before, c.before.next = c.before, c.next }

func (c *cache) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.bytes)
}
