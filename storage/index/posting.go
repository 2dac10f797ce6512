package index

import (
	"iter"
	"slices"
	"sync"
)

// posting lists the series of one metric or entity. Readers bring it into key order when they need it, so that a burst of new series costs one sort.
type posting struct {
	mu     sync.Mutex // inside Index.mu, which readers hold shared
	ids    []ID
	sorted int // ids[:sorted] are in key order
	dead   int // removed ids that are still in the list
}

func postingOf(m map[string]*posting, name string) *posting {
	p := m[name]
	if p == nil {
		p = &posting{}
		m[name] = p
	}
	return p
}

// add runs under Index.mu held alone.
func (p *posting) add(id ID) { p.ids = append(p.ids, id) }

// size counts the removed ids too.
func (p *posting) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ids)
}

// dropFrom counts one removed id, and sweeps the list when half of it is dead.
func (x *Index) dropFrom(m map[string]*posting, name string) {
	p := m[name]
	if p.dead++; 2*p.dead <= len(p.ids) {
		return
	}
	before := p.sorted
	kept := p.ids[:0]
	for i, id := range p.ids {
		if x.alive[id] {
			kept = append(kept, id)
		} else if i < before {
			p.sorted--
		}
	}
	p.ids, p.dead = kept, 0
	if len(kept) == 0 {
		delete(m, name)
	}
}

// list appends the living ids in key order.
func (p *posting) list(x *Index, dst []ID) []ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sorted < len(p.ids) {
		p.ids = slices.DeleteFunc(p.ids, func(id ID) bool { return !x.alive[id] })
		p.dead = 0
		x.sort(p.ids)
		p.sorted = len(p.ids)
	}
	return x.living(dst, p.ids)
}

func (x *Index) living(dst, ids []ID) []ID {
	for _, id := range ids {
		if x.alive[id] {
			dst = append(dst, id)
		}
	}
	return dst
}

// Select returns the ids of the series of a metric ("" = any) and of the named entities (nil = any), in key order.
func (x *Index) Select(metric string, entities []string) []ID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch {
	case entities != nil:
		return x.selectEntities(metric, entities)
	case metric != "":
		return x.ofMetric(metric)
	}
	ids := make([]ID, 0, x.live)
	for id := range x.inOrder() {
		ids = append(ids, id)
	}
	return ids
}

func (x *Index) ofMetric(metric string) []ID {
	p := x.metrics[metric]
	if p == nil {
		return nil
	}
	return p.list(x, make([]ID, 0, p.size()))
}

// selectEntities reads the shorter of both sides: the postings of the entities, or that of the metric.
func (x *Index) selectEntities(metric string, entities []string) []ID {
	if len(entities) == 1 {
		return x.selectEntity(metric, entities[0])
	}
	wanted := make(map[string]bool, len(entities))
	total := 0
	for _, name := range entities {
		if p := x.entities[name]; p != nil && !wanted[name] {
			wanted[name] = true
			total += p.size()
		}
	}
	if metric != "" {
		if p := x.metrics[metric]; p == nil {
			return nil
		} else if p.size() <= total {
			return slices.DeleteFunc(x.ofMetric(metric), func(id ID) bool { return !wanted[entityOf(x.keys[id])] })
		}
	}
	var ids []ID
	for name := range wanted {
		ids = x.entities[name].list(x, ids)
	}
	if metric != "" {
		ids = slices.DeleteFunc(ids, func(id ID) bool { return metricOf(x.keys[id]) != metric })
	}
	x.sort(ids)
	return ids
}

// selectEntity is selectEntities for one name, which functions of expressions ask for by the hundred thousand.
func (x *Index) selectEntity(metric, entity string) []ID {
	p := x.entities[entity]
	if p == nil {
		return nil
	}
	if metric == "" {
		return p.list(x, make([]ID, 0, p.size()))
	}
	m := x.metrics[metric]
	switch {
	case m == nil:
		return nil
	case m.size() < p.size():
		return slices.DeleteFunc(m.list(x, nil), func(id ID) bool { return entityOf(x.keys[id]) != entity })
	}
	return slices.DeleteFunc(p.list(x, make([]ID, 0, p.size())), func(id ID) bool { return metricOf(x.keys[id]) != metric })
}

// inOrder merges the run with the unsorted part, without changing either.
func (x *Index) inOrder() iter.Seq[ID] {
	added := make([]ID, 0, len(x.fresh))
	for _, id := range x.fresh {
		added = append(added, id)
	}
	x.sort(added)
	return func(yield func(ID) bool) {
		for _, id := range x.run {
			if !x.alive[id] {
				continue
			}
			for len(added) > 0 && x.keys[added[0]] < x.keys[id] {
				if !yield(added[0]) {
					return
				}
				added = added[1:]
			}
			if !yield(id) {
				return
			}
		}
		for _, id := range added {
			if !yield(id) {
				return
			}
		}
	}
}
