package index

import (
	"bytes"
	"iter"
	"slices"
)

// Entities yields the names of the entities that have a series and begin with a prefix, in order. In runs it reads only names with the prefix; the names of
// the memory part are all looked at.
func (x *Index) Entities(prefix string) iter.Seq[string] {
	return x.names(prefix, entityNames, func(p *part) *postings { return &p.entities })
}

// Metrics yields the names of the metrics that have a series and begin with a prefix, in order, in the manner of Entities.
func (x *Index) Metrics(prefix string) iter.Seq[string] {
	return x.names(prefix, metricNames, func(p *part) *postings { return &p.metrics })
}

// nameSource gives names in ascending order, nil at the end. They are valid until the next call.
type nameSource func() []byte

// names merges the names of all layers. The list is made when the loop starts, as far as memory is concerned; names of series that are removed
// meanwhile may still come.
func (x *Index) names(prefix string, inRun func(*reader, *layer, []byte) nameSource, of func(*part) *postings) iter.Seq[string] {
	return func(yield func(string) bool) {
		x.mu.RLock()
		stack := x.acquire()
		sources := []nameSource{x.memory.namesOf(of(x.memory), prefix, nil)}
		if l := x.frozen; l != nil {
			sources = append(sources, l.part.namesOf(of(l.part), prefix, &l.marks))
		}
		x.mu.RUnlock()
		defer stack.release()
		for _, l := range stack.list {
			rd := newReader(l.run)
			defer rd.done()
			sources = append(sources, inRun(rd, l, []byte(prefix)))
		}
		union(sources, yield)
	}
}

// union yields each name of the sources once.
func union(sources []nameSource, yield func(string) bool) {
	heads := make([][]byte, len(sources))
	for i, next := range sources {
		heads[i] = next()
	}
	for {
		var low []byte
		for _, head := range heads {
			if head != nil && (low == nil || bytes.Compare(head, low) < 0) {
				low = head
			}
		}
		if low == nil {
			return
		}
		text := string(low)
		for i, next := range sources {
			if heads[i] != nil && string(heads[i]) == text {
				heads[i] = next()
			}
		}
		if !yield(text) {
			return
		}
	}
}

// namesOf lists the names of a part that have a living series, under x.mu. marks are those of a frozen part.
func (p *part) namesOf(ps *postings, prefix string, marks *marks) nameSource {
	var list [][]byte
	for _, at := range ps.inOrder(p, []byte(prefix)) {
		n := &ps.names[at]
		if n.live > 0 && (marks == nil || marks.words.Load() == nil || slices.ContainsFunc(ps.chain(p, nil, n, none), func(i uint32) bool {
			return !p.dead.has(i) && !marks.has(i)
		})) {
			list = append(list, ps.text(p, n))
		}
	}
	return func() []byte {
		if len(list) == 0 {
			return nil
		}
		first := list[0]
		list = list[1:]
		return first
	}
}

// entityNames walks the tree of the entities, and where anything is stale looks into the postings for what is not.
func entityNames(rd *reader, l *layer, prefix []byte) nameSource {
	walk := l.run.entities.from(rd, prefix)
	var list []uint32
	return func() []byte {
		for walk.next() && bytes.HasPrefix(walk.walk.text, prefix) {
			if l.marks.words.Load() == nil {
				return walk.walk.text
			}
			var err error
			if list, err = rd.postings(list[:0], walk.column(0), walk.column(1)); err != nil {
				l.run.fail(err)
			}
			if slices.ContainsFunc(list, func(i uint32) bool { return !l.marks.has(i) }) {
				return walk.walk.text
			}
		}
		if walk.err != nil {
			l.run.fail(walk.err)
		}
		return nil
	}
}

// metricNames jumps from the first key of a metric to that of the next.
func metricNames(rd *reader, l *layer, prefix []byte) nameSource {
	seek := slices.Clone(prefix)
	return func() []byte {
		for {
			p, err := rd.find(seek)
			if err != nil {
				l.run.fail(err)
				return nil
			}
			at := p.ordinal
			for at < l.run.keys.count && l.marks.has(at) {
				at++
			}
			if at >= l.run.keys.count {
				return nil
			}
			key, err := rd.keyAt(at)
			if err != nil {
				l.run.fail(err)
				return nil
			}
			metric := metricOf(key)
			if !bytes.HasPrefix(metric, prefix) {
				return nil
			}
			seek = append(append(seek[:0], metric...), 1)
			return seek[:len(metric)]
		}
	}
}
