package index

import (
	"bytes"
	"slices"
)

// Select returns the ids of the series of a metric ("" = any) and of the named entities (nil = any), in key order.
func (x *Index) Select(metric string, entities []string) (ids []ID) {
	q := query{metric: []byte(metric), all: entities == nil}
	for _, name := range entities {
		q.entities = append(q.entities, []byte(name))
	}
	slices.SortFunc(q.entities, bytes.Compare)
	q.entities = slices.CompactFunc(q.entities, bytes.Equal)
	if !q.all && len(q.entities) == 0 {
		return nil
	}
	for a := x.attempt(); a.next(); {
		if x.frozen == nil && len(a.stack.list) == 0 { // all is in one place: no keys are needed for a merge
			ids = x.memory.pickIDs(q)
			a.unlock()
			continue
		}
		var sources []source
		for _, l := range []*layer{x.frozen, {part: x.memory}} {
			if l != nil {
				if s := l.pickPart(q); len(s.list) > 0 {
					sources = append(sources, s)
				}
			}
		}
		room := 0
		if q.all && len(metric) == 0 {
			room = x.live
		}
		a.unlock()
		ids = a.stack.selectRuns(q, sources, make([]ID, 0, room))
	}
	if len(ids) == 0 {
		return nil
	}
	return ids
}

// query is what Select asks for.
type query struct {
	metric   []byte // empty: any
	all      bool   // entities
	entities [][]byte
}

func (q *query) wants(entity []byte) bool {
	_, ok := slices.BinarySearchFunc(q.entities, entity, bytes.Compare)
	return ok
}

// source gives the series of one layer that a query selects, in key order.
type source interface {
	next() bool
	id() ID
	key() []byte // valid until next
}

// selectRuns appends the ids that the runs add to those of the other sources, merged by key.
func (s *layers) selectRuns(q query, sources []source, dst []ID) []ID {
	for _, l := range s.list {
		rd := newReader(l.run)
		defer rd.done()
		spans, err := l.pickRun(rd, q)
		if err != nil {
			l.run.fail(err)
		}
		if len(spans) > 0 {
			sources = append(sources, &ordinals{rd: rd, layer: l, spans: spans})
		}
	}
	if len(sources) == 1 {
		if o, ok := sources[0].(*ordinals); ok {
			return o.appendAll(dst)
		}
		for sources[0].next() {
			dst = append(dst, sources[0].id())
		}
		return dst
	}
	sources = slices.DeleteFunc(sources, func(s source) bool { return !s.next() })
	for len(sources) > 0 {
		first, low := 0, sources[0].key()
		for i, s := range sources[1:] {
			if key := s.key(); bytes.Compare(key, low) < 0 {
				first, low = i+1, key
			}
		}
		dst = append(dst, sources[first].id())
		if !sources[first].next() {
			sources = slices.Delete(sources, first, first+1)
		}
	}
	return dst
}

// series is a source of what was found in memory. It holds no part that the writer changes.
type series struct {
	list []memorySeries
	at   int // 1 + the current one
}

type memorySeries struct {
	key []byte
	id  ID
}

func (s *series) next() bool {
	s.at++
	return s.at <= len(s.list)
}

func (s *series) id() ID      { return s.list[s.at-1].id }
func (s *series) key() []byte { return s.list[s.at-1].key }

// pickPart finds the series of a part, under x.mu.
func (l *layer) pickPart(q query) *series {
	found := l.part.pick(q)
	s := &series{list: make([]memorySeries, 0, len(found))}
	for _, i := range found {
		if !l.part.dead.has(i) && !l.marks.has(i) {
			s.list = append(s.list, memorySeries{l.part.key(i), l.part.at(i).id})
		}
	}
	return s
}

// pickIDs is pickPart of the memory part, without the keys.
func (p *part) pickIDs(q query) []ID {
	found := p.pick(q)
	ids := make([]ID, 0, len(found))
	for _, i := range found {
		if !p.dead.has(i) {
			ids = append(ids, p.at(i).id)
		}
	}
	return ids
}

// pick returns the series of a query in key order, dead ones included.
func (p *part) pick(q query) []uint32 {
	if p.n == 0 {
		return nil
	}
	metric := none
	if len(q.metric) > 0 {
		if metric = p.metrics.find(p, q.metric); metric == none {
			return nil
		}
	}
	switch {
	case !q.all:
		return p.pickEntities(q, metric)
	case metric != none:
		return p.metrics.list(p, metric)
	}
	return p.inOrder()
}

// inOrder returns all series in key order.
func (p *part) inOrder() []uint32 {
	all := make([]uint32, 0, p.live)
	for _, metric := range p.metrics.inOrder(p, nil) {
		all = append(all, p.metrics.list(p, metric)...)
	}
	return all
}

// pickEntities reads the shorter of both sides: the lists of the entities, or that of the metric.
func (p *part) pickEntities(q query, metric uint32) []uint32 {
	wanted := make([]uint32, 0, len(q.entities))
	total := 0
	for _, name := range q.entities {
		if at := p.entities.find(p, name); at != none {
			wanted = append(wanted, at)
			total += int(p.entities.names[at].count)
		}
	}
	var list []uint32
	skip := 0
	switch {
	case len(wanted) == 0:
		return nil
	case metric == none && len(wanted) == 1:
		return p.entities.list(p, wanted[0])
	case metric != none && int(p.metrics.names[metric].count) < total:
		slices.Sort(wanted)
		for _, i := range p.metrics.list(p, metric) {
			if _, ok := slices.BinarySearch(wanted, p.at(i).entity.name); ok {
				list = append(list, i)
			}
		}
		return list
	}
	for _, at := range wanted {
		for i := p.entities.names[at].last; i != none; i = p.at(i).entity.next {
			if metric == none || p.at(i).metric.name == metric {
				list = append(list, i)
			}
		}
	}
	if metric != none {
		skip = len(q.metric) + 1
	}
	p.sort(list, skip)
	return list
}

// span is ordinals from low to before high.
type span struct{ low, high uint32 }

// ordinals is a source of what was found in a run.
type ordinals struct {
	rd    *reader
	layer *layer
	spans []span
	at    uint32 // the current ordinal; of the first span that is left, after the first call of next
	now   ID
	begun bool
}

func (o *ordinals) next() bool {
	if !o.begun {
		o.begun, o.at = true, o.spans[0].low
	} else {
		o.at++
	}
	for len(o.spans) > 0 {
		if o.at >= o.spans[0].high {
			if o.spans = o.spans[1:]; len(o.spans) > 0 {
				o.at = max(o.at, o.spans[0].low)
			}
			continue
		}
		if o.layer.marks.has(o.at) {
			o.at++
			continue
		}
		var err error
		if o.now, err = o.rd.idAt(o.at); err == nil {
			return true
		}
		o.layer.run.fail(err)
		o.at = (o.at/leafSize + 1) * leafSize // what else is in the leaf cannot be read either
	}
	return false
}

// appendAll appends the ids of all, leaf by leaf: some nanoseconds each, where next takes forty.
func (o *ordinals) appendAll(dst []ID) []ID {
	room := 0
	for _, s := range o.spans {
		room += int(s.high - s.low)
	}
	dst = slices.Grow(dst, room)
	at := uint32(0)
	for _, s := range o.spans {
		for at = max(at, s.low); at < s.high; {
			end := (at/leafSize + 1) * leafSize
			if err := o.rd.openLeaf(at / leafSize); err != nil {
				o.layer.run.fail(err)
				at = end // what else is in the leaf cannot be read either
				continue
			}
			for ids := &o.rd.block.columns[0]; at < min(end, s.high); at++ {
				if !o.layer.marks.has(at) {
					dst = append(dst, ID(ids.at(int(at%leafSize))))
				}
			}
		}
	}
	return dst
}

func (o *ordinals) id() ID { return o.now }

// key returns an empty key, which sorts first, for one that cannot be read though its leaf is sound: no writer makes such a leaf.
func (o *ordinals) key() []byte {
	key, err := o.rd.keyAt(o.at)
	if err != nil {
		o.layer.run.fail(err)
	}
	return key
}

// scanBelow is how many keys of a metric are read in the time it takes to look up one of its entities.
const scanBelow = 32

// pickRun finds the series of a query in a run.
func (l *layer) pickRun(rd *reader, q query) ([]span, error) {
	all := span{0, l.run.keys.count}
	switch {
	case all.high == 0:
		return nil, nil
	case len(q.metric) > 0:
		prefix := append(slices.Clone(q.metric), 0)
		s, err := rd.prefix(prefix)
		if err != nil || s.low >= s.high || q.all {
			return one(s), err
		}
		if int64(s.high-s.low) < scanBelow*int64(len(q.entities)) {
			return rd.scan(s, q)
		}
		return rd.within(prefix, q)
	case q.all:
		return one(all), nil
	}
	var list []uint32
	for _, name := range q.entities {
		var err error
		if list, err = rd.ofEntity(list, name); err != nil {
			l.run.fail(err)
		}
	}
	if len(q.entities) > 1 {
		slices.Sort(list)
	}
	spans := make([]span, len(list))
	for i, ordinal := range list {
		spans[i] = span{ordinal, ordinal + 1}
	}
	return spans, nil
}

func one(s span) []span {
	if s.low >= s.high {
		return nil
	}
	return []span{s}
}

// prefix finds the keys that begin with a prefix which ends in a zero byte.
func (rd *reader) prefix(prefix []byte) (span, error) {
	low, err := rd.find(prefix)
	if err != nil {
		return span{}, err
	}
	last := len(prefix) - 1
	prefix[last]++
	defer func() { prefix[last]-- }()
	high, err := rd.find(prefix)
	return span{low.ordinal, high.ordinal}, err
}

// within finds the wanted entities of a metric one by one.
func (rd *reader) within(metric []byte, q query) (spans []span, first error) {
	var prefix []byte
	for _, name := range q.entities {
		prefix = append(append(append(prefix[:0], metric...), name...), 0)
		s, err := rd.prefix(prefix)
		if err != nil && first == nil {
			first = err
		}
		if err == nil && s.low < s.high {
			spans = append(spans, s)
		}
	}
	return spans, first
}

// scan reads all keys of a span for the wanted entities.
func (rd *reader) scan(s span, q query) (spans []span, first error) {
	for at := s.low; at < s.high; at++ {
		key, err := rd.keyAt(at)
		if err != nil {
			if first == nil {
				first = err
			}
			at = at | (leafSize - 1)
			continue
		}
		if q.wants(entityOf(key)) {
			spans = append(spans, span{at, at + 1})
		}
	}
	return spans, first
}
