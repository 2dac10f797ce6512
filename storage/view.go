package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/samples"
)

// layers is what readers of samples or of messages see: a part in memory that is added to, one that is on its way to a file, and files. Each overrides
// those below it. A value is replaced, never changed; whoever reads holds it, and with it the files.
type layers[P any, F io.Closer] struct {
	active *P
	frozen *P         // nil: none
	files  []*held[F] // from new to old

	refs atomic.Int64 // readers, and one for being current
}

// view is the layers of samples.
type (
	view       = layers[generation, *samples.File]
	sampleFile = held[*samples.File]
)

// held is a file and those who hold it. The last one closes it, and removes it when it was replaced.
type held[F io.Closer] struct {
	file  F
	entry fileEntry

	spoiled bool // a part cannot be read, so it is not merged; the worker's
	refs    atomic.Int64
	discard func() error // not nil: the file is of no use any more, this removes it; set before the last layers with the file go
}

func (f *held[F]) release() error {
	if f.refs.Add(-1) > 0 {
		return nil
	}
	err := f.file.Close()
	if f.discard != nil {
		err = errors.Join(err, f.discard())
	}
	return err
}

// views holds the current layers. Changes are made one at a time.
type views[P any, F io.Closer] struct {
	mu      sync.Mutex // a leaf; held while layers are made from those before
	current atomic.Pointer[layers[P, F]]
	live    atomic.Int64    // layers that somebody holds, the current ones included
	failed  func(err error) // told of files that could not be closed or removed; set before there are any
}

// acquire returns the current layers, to be given back with release.
func (vs *views[P, F]) acquire() *layers[P, F] {
	for {
		v := vs.current.Load()
		n := v.refs.Load()
		if n > 0 && v.refs.CompareAndSwap(n, n+1) {
			return v
		}
	}
}

func (vs *views[P, F]) release(v *layers[P, F]) {
	if v.refs.Add(-1) > 0 {
		return
	}
	vs.live.Add(-1)
	for _, f := range v.files {
		if err := f.release(); err != nil {
			vs.failed(err)
		}
	}
}

// change replaces the current layers by what edit makes of a copy of them.
func (vs *views[P, F]) change(edit func(next *layers[P, F])) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	next := &layers[P, F]{}
	old := vs.current.Load()
	if old != nil {
		next.active, next.frozen, next.files = old.active, old.frozen, old.files
	}
	edit(next)
	for _, f := range next.files {
		f.refs.Add(1)
	}
	next.refs.Store(1)
	vs.live.Add(1)
	vs.current.Store(next)
	if old != nil {
		vs.release(old)
	}
}

// aged is a file that knows the generation of what is in it.
type aged interface {
	io.Closer
	Generation() uint64
}

// sortByAge puts files from new to old by what is in them, when they are not so by their names: somebody has exchanged them, and the older one would override
// the newer one.
func sortByAge[P any, F aged](vs *views[P, F], report *Report) {
	newerFirst := func(a, b *held[F]) int { return cmp.Compare(b.file.Generation(), a.file.Generation()) }
	if slices.IsSortedFunc(vs.current.Load().files, newerFirst) {
		return
	}
	vs.change(func(next *layers[P, F]) {
		next.files = slices.Clone(next.files)
		slices.SortStableFunc(next.files, newerFirst)
		for _, f := range next.files {
			report.addDamage(fmt.Sprintf("%s has been exchanged with another file: their order was restored by what is in them", f.entry.base()))
		}
	})
}

// grave is a range of a series that was deleted from all generations before one.
type grave struct {
	core.Range
	before uint64 // generation
}

// graves are the deletions that files do not show yet. They go when no file is left that they apply to.
type graves struct {
	mu   sync.RWMutex // a leaf
	byID map[index.ID][]grave
}

func (gs *graves) add(id index.ID, g grave) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.byID == nil {
		gs.byID = map[index.ID][]grave{}
	}
	// The list is replaced, not changed: readers hold it without the lock. A grave that a later one contains is of no use.
	list := make([]grave, 0, len(gs.byID[id])+1)
	for _, one := range gs.byID[id] {
		if one.Start < g.Start || one.End > g.End {
			list = append(list, one)
		}
	}
	gs.byID[id] = append(list, g)
}

func (gs *graves) any() bool {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return len(gs.byID) > 0
}

// of returns the graves of a series. The list must not be changed.
func (gs *graves) of(id index.ID) []grave {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return gs.byID[id]
}

// prune drops the graves that apply to no generation from oldest on.
func (gs *graves) prune(oldest uint64, dead func(index.ID) bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for id, list := range gs.byID {
		var kept []grave
		for _, g := range list {
			if g.before > oldest && !dead(id) {
				kept = append(kept, g)
			}
		}
		if len(kept) == 0 {
			delete(gs.byID, id)
		} else {
			gs.byID[id] = kept
		}
	}
}
