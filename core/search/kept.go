package search

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
)

// kept holds the hits that a page can still need. How relevant a hit is depends on how many other documents match each term, which is known at the end. But
// hits of equal boosts are equally relevant in any case, so that of those the first ones are enough: as many as the page reaches.
type kept struct {
	by    map[string]*equals // by boosts
	count int                // hits in all of them
}

// equals are hits of equal boosts.
type equals struct {
	boost []uint8 // by leaf
	first firsts
}

// firsts are the hits with the lowest serials. As many as are wanted are a heap with the highest serial on top, fewer are in no order.
type firsts []Hit

func (f firsts) Len() int           { return len(f) }
func (f firsts) Less(i, j int) bool { return f[i].Serial > f[j].Serial }
func (f firsts) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *firsts) Push(x any)        { *f = append(*f, x.(Hit)) }

func (f *firsts) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// add keeps a hit if it is one of the first n of its boosts, and reports whether one more than before is kept.
func (k *kept) add(boost []uint8, d Document, n int) bool {
	e := k.by[string(boost)]
	if e == nil {
		if k.by == nil {
			k.by = map[string]*equals{}
		}
		e = &equals{boost: bytes.Clone(boost)}
		k.by[string(boost)] = e
	}
	switch {
	case len(e.first) < n:
		e.first = append(e.first, Hit{Document: d})
		if len(e.first) == n {
			heap.Init(&e.first)
		}
		k.count++
		return true
	case n > 0 && d.Serial < e.first[0].Serial:
		e.first[0] = Hit{Document: d}
		heap.Fix(&e.first, 0)
	}
	return false
}

// hits returns all that are kept, the most relevant first.
func (k *kept) hits(relevance func(boost []uint8) float64) []Hit {
	all := make([]Hit, 0, k.count)
	for _, e := range k.by {
		r := relevance(e.boost)
		for _, h := range e.first {
			h.Relevance = r
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), cmp.Compare(a.Serial, b.Serial), a.Key.Compare(b.Key))
	})
	return all
}
