package index

import (
	"bytes"
	"slices"
)

// postings lists the series of each metric, or of each entity, of a part. The lists are chains through the series, newest first: they cost eight bytes a
// series and the collector nothing. Lists that readers want in key order are sorted once, and again only for what has come since.
type postings struct {
	table  table // of names
	names  []name
	sorted map[uint32]*sortedList // by name; of long lists only
	kept   int64                  // bytes of these
}

// name is one metric or entity. Its text is that in the key of its first series.
type name struct {
	first uint32
	last  uint32 // head of the chain
	count int32  // dead ones included
	live  int32
}

// sortedList is a list in key order as of the time when last was the head of the chain.
type sortedList struct {
	last uint32
	list []uint32
}

// worthKeeping is how long a list must be for its order to be kept.
const worthKeeping = 32

// text returns the text of a name.
func (ps *postings) text(p *part, n *name) []byte {
	key := p.key(n.first)
	if ps == &p.metrics {
		return metricOf(key)
	}
	return entityOf(key)
}

// find returns the number of a name, none when no series has it.
func (ps *postings) find(p *part, text []byte) uint32 {
	hash := p.hash(text)
	for i, at := ps.table.next(hash, ps.table.start(hash)); i != none; i, at = ps.table.next(hash, at) {
		if bytes.Equal(ps.text(p, &ps.names[i]), text) {
			return i
		}
	}
	return none
}

// add ties series i into the list of its name.
func (ps *postings) add(p *part, text []byte, i uint32) link {
	at := ps.find(p, text)
	if at == none {
		at = uint32(len(ps.names))
		ps.names = append(ps.names, name{first: i, last: none})
		ps.table.add(p.hash(text), at)
	}
	n := &ps.names[at]
	l := link{at, n.last}
	n.last = i
	n.count++
	n.live++
	return l
}

func (ps *postings) link(e *record, p *part) link {
	if ps == &p.metrics {
		return e.metric
	}
	return e.entity
}

// chain appends the series of a chain that came after the series last, dead ones included.
func (ps *postings) chain(p *part, dst []uint32, n *name, last uint32) []uint32 {
	for i := n.last; i != last; i = ps.link(p.at(i), p).next {
		dst = append(dst, i)
	}
	return dst
}

// list returns the series of a name in key order, dead ones included. The list must not be changed.
func (ps *postings) list(p *part, at uint32) []uint32 {
	n := &ps.names[at]
	p.sorting.Lock()
	defer p.sorting.Unlock()
	known := ps.sorted[at]
	if known == nil {
		known = &sortedList{last: none}
	}
	if known.last == n.last {
		return known.list
	}
	skip := 0
	if ps == &p.metrics {
		skip = len(ps.text(p, n)) + 1
	}
	fresh := slices.DeleteFunc(ps.chain(p, nil, n, known.last), p.dead.has)
	p.sort(fresh, skip)
	list := p.merge(known.list, fresh)
	if len(list) >= worthKeeping {
		if ps.sorted == nil {
			ps.sorted = map[uint32]*sortedList{}
		}
		ps.kept += sortedBytes(list) - sortedBytes(known.list)
		ps.sorted[at] = &sortedList{n.last, list}
	}
	return list
}

// merge merges two lists in key order into a third, without what is dead.
func (p *part) merge(a, b []uint32) []uint32 {
	if len(a) == 0 {
		return b
	}
	merged := make([]uint32, 0, len(a)+len(b))
	for _, i := range a {
		if p.dead.has(i) {
			continue
		}
		for len(b) > 0 && bytes.Compare(p.key(b[0]), p.key(i)) < 0 {
			merged, b = append(merged, b[0]), b[1:]
		}
		merged = append(merged, i)
	}
	return append(merged, b...)
}

// inOrder returns the numbers of all names that begin with prefix in order of their texts.
func (ps *postings) inOrder(p *part, prefix []byte) []uint32 {
	var list []uint32
	for i := range ps.names {
		if bytes.HasPrefix(ps.text(p, &ps.names[i]), prefix) {
			list = append(list, uint32(i))
		}
	}
	slices.SortFunc(list, func(a, b uint32) int {
		return bytes.Compare(ps.text(p, &ps.names[a]), ps.text(p, &ps.names[b]))
	})
	return list
}

// sortedBytes is what a list that is kept takes, with its place in the map.
func sortedBytes(list []uint32) int64 {
	if list == nil {
		return 0
	}
	return int64(cap(list))*4 + 64
}

// bytes is cheap: the database asks after each append.
func (ps *postings) bytes() int64 { return ps.table.bytes() + int64(cap(ps.names))*16 + ps.kept }
