package exec

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// entityMerge collects rows of the series of one entity, and merges them. Its memory is put by when there is something to merge: what is above it in the plan
// may take all the rest before it writes anything to a disk.
type entityMerge struct {
	*metricScan
	entity string
	put    account // the memory that is put by
	kept   *rows   // charged to it
	runs   []mergeRun
	disk   *sorter // merges what did not fit the memory; nil = all does
	out    column.Batch
}

const (
	mergeShare  = 8         // part of the memory of a query that one merge puts by; of a join of many tables, all of them twice that
	mergeMemory = 16 << 20  // of a query without a limit
	leastMerge  = 512 << 10 // of a query with a small limit: a batch of rows with a dozen of columns
	perRun      = 160       // bytes of a run beside its rows and the text of its tags
)

// mergeRun are the rows of one series, ascending by time.
type mergeRun struct {
	span
	tags string // as text
	key  core.Tags
}

func (m *metricScan) newMerge() *entityMerge {
	return &entityMerge{metricScan: m, put: account{memory: m.Memory}}
}

// putBy takes the memory of the merge, or less where that is not free.
func (e *entityMerge) putBy() (err error) {
	n := int64(mergeMemory)
	if limit := e.Memory.Limit(); limit > 0 {
		n = max(limit/mergeShare, leastMerge)
		if e.scans > 2 {
			n = max(2*n/int64(e.scans), leastMerge/64)
		}
	}
	for err = e.put.grow(n); err != nil && n > leastMerge/64; err = e.put.grow(n) {
		n /= 2
	}
	if err == nil {
		e.kept = &rows{account: account{memory: NewMemory(n)}}
	}
	return err
}

func (e *entityMerge) some() bool { return len(e.runs) > 0 || e.disk != nil }

func (e *entityMerge) close() {
	e.put.release()
	e.kept = nil
	e.closeDisk()
}

func (e *entityMerge) closeDisk() {
	if e.disk != nil {
		e.disk.close()
		e.disk = nil
	}
}

// add takes rows. Where there is no room it writes those before to a disk; without one it needs more memory.
func (e *entityMerge) add(p part) error { return e.addRun(p, span{0, p.batch.Len}) }

func (e *entityMerge) addRun(p part, s span) error {
	err := e.keep(p, s)
	n := s.to - s.from
	switch {
	case err == nil || e.kept == nil:
		return err
	case e.SpillDir != "" && e.kept.n > 0:
		if err := e.toDisk(); err != nil {
			return err
		}
		return e.addRun(p, s)
	case e.SpillDir != "" && n > 1:
		half := s.from + n/2
		if err := e.addRun(p, span{s.from, half}); err != nil {
			return err
		}
		return e.addRun(p, span{half, s.to})
	}
	more := e.put.taken
	if err := e.put.grow(more); err != nil {
		return err
	}
	e.kept.memory.limit += more
	return e.addRun(p, s)
}

// keep takes rows when there is room for them.
func (e *entityMerge) keep(p part, s span) error {
	if s.from == s.to {
		return nil
	}
	if e.kept == nil {
		if err := e.putBy(); err != nil {
			return err
		}
	}
	e.entity = p.series.key.Entity
	n := len(e.runs)
	if n == 0 || !e.runs[n-1].key.Equal(p.series.key.Tags) {
		tags := p.series.key.Tags.Clone()
		run := mergeRun{span: span{e.kept.n, e.kept.n}, tags: tagText(tags), key: tags}
		if err := e.kept.grow(perRun + 2*int64(len(run.tags))); err != nil {
			return err
		}
		e.runs = append(e.runs, run)
		n++
	}
	if err := e.kept.addRun(p.batch, s); err != nil {
		if last := e.runs[n-1]; last.from == last.to {
			e.runs = e.runs[:n-1]
		}
		return err
	}
	e.runs[n-1].to = e.kept.n
	return nil
}

// toDisk writes the rows so far, merged, to a file.
func (e *entityMerge) toDisk() error {
	if e.disk == nil {
		e.disk = e.newSorter([]plan.Key{{Expr: place{plan.ScanTime, column.Bigint}}, {Expr: place{plan.ScanTags, column.String}}}, 0)
	}
	w, err := e.disk.newRun()
	if err != nil {
		return err
	}
	for b := range e.merged(runRows) {
		if err := w.add(b); err != nil {
			return err
		}
	}
	e.forget()
	return w.rewind()
}

func (e *entityMerge) forget() {
	if e.kept != nil {
		e.kept.reset()
	}
	e.runs = e.runs[:0]
}

// flush yields the rows of the entity in their order. It reports whether to go on.
func (e *entityMerge) flush(ctx context.Context, yield func(part, error) bool) bool {
	if e.disk == nil {
		defer e.forget()
		for b := range e.merged(column.Size) {
			if !yield(part{batch: b}, nil) {
				return false
			}
		}
		return true
	}
	defer e.closeDisk()
	if e.kept.n > 0 {
		if err := e.toDisk(); err != nil {
			yield(part{}, err)
			return false
		}
	}
	e.put.release() // merging needs memory of its own
	e.kept = nil
	for b, err := range e.disk.rows(ctx) {
		if !yield(part{batch: b}, err) || err != nil {
			return false
		}
	}
	return true
}

// merged yields the rows in memory in their order, at most so many at a time.
func (e *entityMerge) merged(most int) iter.Seq[*column.Batch] {
	return func(yield func(*column.Batch) bool) {
		if len(e.runs) == 0 {
			return
		}
		slices.SortStableFunc(e.runs, func(a, b mergeRun) int { return strings.Compare(a.tags, b.tags) })
		all := e.kept.batch()
		pick := make([]int32, 0, most)
		for i := range e.order() {
			if pick = append(pick, int32(i)); len(pick) == most {
				gather(&e.out, all, pick)
				if !yield(&e.out) {
					return
				}
				pick = pick[:0]
			}
		}
		if len(pick) > 0 {
			gather(&e.out, all, pick)
			yield(&e.out)
		}
	}
}

// order yields the rows of the runs by time, at equal times in the order of the runs.
func (e *entityMerge) order() iter.Seq[int] {
	times := e.kept.columns[plan.ScanTime].Ints
	heads := slices.Clone(e.runs)
	return func(yield func(int) bool) {
		tree := newHeap(len(heads), func(a, b int) bool {
			ta, tb := times[heads[a].from], times[heads[b].from]
			return ta < tb || ta == tb && a < b
		})
		for tree.len() > 0 {
			h := &heads[tree.top()]
			if !yield(h.from) {
				return
			}
			if h.from++; h.from == h.to {
				tree.drop()
			} else {
				tree.fix()
			}
		}
	}
}

// heap orders numbers from 0 on by what they stand for; the least is on top.
type heap struct {
	items []int
	less  func(a, b int) bool
}

func newHeap(n int, less func(a, b int) bool) *heap {
	h := &heap{make([]int, n), less}
	for i := range h.items {
		h.items[i] = i
	}
	for i := n/2 - 1; i >= 0; i-- {
		h.sift(i)
	}
	return h
}

func (h *heap) len() int { return len(h.items) }

func (h *heap) top() int { return h.items[0] }

// fix restores the order after what the top stands for grew.
func (h *heap) fix() { h.sift(0) }

// drop removes the top.
func (h *heap) drop() {
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	h.sift(0)
}

func (h *heap) sift(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.less(h.items[child], h.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}
