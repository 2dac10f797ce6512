package api

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/tidemark-db/tidemark/core"
)

// headCache remembers what the heads of series objects say: the text from the brace of an object to its data is mostly the same from request to request,
// and to compare it costs a tenth of reading it. It belongs to one decoder at a time.
//
// An entry stands for exactly the bytes of its text, read from a brace on: what they mean does not depend on what follows, up to the end of the member
// data, behind which the object must end.
type headCache struct {
	heads map[string]*knownKey // text up to and with the colon of data
	keys  map[string]*knownKey // canonical key: heads that differ in order or blanks share one
	bytes int                  // of both

	batch  uint64 // counts the batches decoded with the cache
	asked  int    // since the cache was last made empty
	missed int
}

// knownKey is a series key that shares no memory with a request.
type knownKey struct {
	core.SeriesKey
	batch uint64 // the batch in which it was last seen,
	ref   uint32 // and its reference there
}

const (
	// dataMember ends the head. Inside of a text its quotes would be escaped.
	dataMember = `"data":`
	// maxHead bounds a head that is remembered: above it reading is not what costs.
	maxHead = 1 << 10
	// maxHeads and maxHeadBytes bound one cache to some 4 MB. There is one for each request that is decoded at the same time.
	maxHeads     = 1 << 13
	maxHeadBytes = 2 << 20
	// judgeAfter is after how many questions to a full cache it is judged.
	judgeAfter = 8 * maxHeads
)

func newHeadCache() *headCache {
	return &headCache{heads: map[string]*knownKey{}, keys: map[string]*knownKey{}}
}

// headCaches keeps the caches that no decoder has, at most maxIdleCaches of them, the last one used on top. A sync.Pool would do for memory, but it forgets
// what it holds whenever the decoder moves to another processor, and here the contents count.
var headCaches idleCaches

type idleCaches struct {
	mu   sync.Mutex
	idle []*headCache
}

const maxIdleCaches = 4

// take returns a cache for one batch.
func (c *idleCaches) take() *headCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return newHeadCache()
	}
	h := c.idle[last]
	c.idle[last] = nil
	c.idle = c.idle[:last]
	return h
}

func (c *idleCaches) giveBack(h *headCache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) < maxIdleCaches {
		c.idle = append(c.idle, h)
	}
}

// find returns the key of the series object at i, and the place of its data; nil when its head is not known.
func (h *headCache) find(body string, i int) (k *knownKey, data int) {
	head := headAt(body, i)
	if head == "" {
		return nil, 0
	}
	h.asked++
	if k = h.heads[head]; k == nil {
		h.missed++
	}
	return k, i + len(head)
}

// headAt returns the object at i up to the member data, which the library calls the same way however often it occurs: the first is meant.
func headAt(body string, i int) string {
	n := strings.Index(body[i:min(i+maxHead, len(body))], dataMember)
	if n < 0 {
		return ""
	}
	return body[i : i+n+len(dataMember)]
}

// learn remembers the head of the object at i that ends at end, whose member data, the last one, has been found to be data. A full cache learns nothing
// until it turns out that most heads are not in it; then it starts anew.
func (h *headCache) learn(object string, data string, key core.SeriesKey) {
	head := headAt(object, 0)
	if head == "" {
		return
	}
	start := nextItem(object, len(head))
	end := start + len(data)
	if end > len(object) || unsafe.StringData(object[start:]) != unsafe.StringData(data) || nextItem(object, end) != len(object)-1 {
		return
	}
	if len(h.heads) >= maxHeads || h.bytes >= maxHeadBytes {
		if h.asked < judgeAfter || 2*h.missed < h.asked {
			return
		}
		batch := h.batch
		*h = *newHeadCache()
		h.batch = batch
	}
	canonical := string(key.Append(nil))
	k := h.keys[canonical]
	if k == nil {
		k = &knownKey{SeriesKey: key.Clone()}
		h.keys[canonical] = k
		h.bytes += 2 * len(canonical)
	}
	h.heads[strings.Clone(head)] = k
	h.bytes += len(head)
}

// known reads the series object at i when its head is known. Otherwise, and when anything is wrong with it, it has done nothing: the object is to be read
// member by member, which finds the fault that comes first.
func (d *seriesDecoder) known(body string, i int) (end int, ok bool) {
	k, at := d.heads.find(body, i)
	if k == nil {
		return 0, false
	}
	for at < len(body) && isSpace(body[at]) {
		at++
	}
	if at >= len(body) || body[at] != '[' {
		return 0, false
	}
	b := d.batch
	keys, before, seen := len(b.Keys), b.Samples, k.batch
	d.ref = d.refOf(k)
	d.key, d.spread, d.head = k.SeriesKey, noRef, seriesHead{metric: k.Metric, entity: k.Entity}
	end = d.readSamples(body, at)
	for end < len(body) && isSpace(body[end]) {
		end++
	}
	if d.err == nil && b.Samples.Len() > before.Len() && end < len(body) && body[end] == '}' {
		return end + 1, true
	}
	d.err, b.Samples, k.batch = nil, before, seen
	if len(b.Keys) > keys {
		d.keys.forgetLast(b)
	}
	return 0, false
}

// refOf returns the reference of a known key. While all keys of the batch come from the cache, it alone knows them.
func (d *seriesDecoder) refOf(k *knownKey) uint32 {
	if k.batch != d.heads.batch {
		k.batch, k.ref = d.heads.batch, uint32(len(d.batch.Keys))
		if d.keys.inUse() {
			k.ref = d.keys.ref(d.batch, k.SeriesKey)
		} else {
			d.batch.Keys = append(d.batch.Keys, k.SeriesKey)
		}
	}
	return k.ref
}
