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

// part is a run of rows of one series. It is valid until the next one.
type part struct {
	series *series
	batch  *column.Batch
}

// parts are the rows of the series of a metric, in the order of their keys, each series in order of time.
type parts = iter.Seq2[part, error]

// scan yields the samples of series.
func (x *execution) scan(ctx context.Context, op *plan.Scan) stream {
	return func(yield func(*column.Batch, error) bool) {
		if len(op.Intervals) == 0 {
			return
		}
		for _, metric := range op.Metrics {
			m, err := x.metric(ctx, op, metric)
			if err != nil {
				m.memory.release()
				yield(nil, err)
				return
			}
			in := m.parts(ctx)
			if !op.Unordered {
				in = m.natural(ctx, in)
			}
			more := true
			for p, err := range in {
				if more = yield(p.batch, err) && err == nil; !more {
					break
				}
			}
			m.memory.release()
			if !more {
				return
			}
		}
	}
}

// metricScan is the scan of one metric.
type metricScan struct {
	*execution
	ctx    context.Context // of the query: a column may have to ask the store
	op     *plan.Scan
	query  core.SeriesQuery
	metric core.Metric
	last   column.Value         // the time of the newest sample of the metric, when a column asks for it
	lasts  map[string]core.Time // likewise of each series, by canonical key
	memory account
}

func (x *execution) metric(ctx context.Context, op *plan.Scan, name string) (*metricScan, error) {
	m := &metricScan{execution: x, ctx: ctx, op: op, memory: account{memory: x.Memory}}
	m.query = core.SeriesQuery{Scope: op.Scope, Metric: name, Entities: op.Entities, Tags: op.Tags, Range: hull(op.Intervals)}
	var ok bool
	if m.metric, ok = x.Catalog.Metric(name); !ok {
		m.metric = core.Metric{Name: name}
	}
	for _, c := range op.Columns {
		switch {
		case c.Kind == plan.SourceLastTime && m.lasts == nil:
			if err := m.findLasts(ctx); err != nil {
				return m, err
			}
		case c.Kind == plan.SourceMetricField && c.Name == "lastInsertTime":
			for info, err := range x.Metadata.Metrics(ctx, core.MetaQuery{Name: name}) {
				if err != nil {
					return m, err
				}
				m.last = newest(info.Last, info.Inserted)
			}
		}
	}
	return m, nil
}

// findLasts finds the time of the newest sample of every series, whatever the query selects of it.
func (m *metricScan) findLasts(ctx context.Context) error {
	m.lasts = map[string]core.Time{}
	q := m.query
	q.Range = core.AllTime
	for k, err := range m.Reader.Keys(ctx, q) {
		if err != nil {
			return err
		}
		key := string(k.Key.Append(nil))
		if err := m.memory.grow(int64(len(key)) + 64); err != nil {
			return err
		}
		m.lasts[key] = k.Last
	}
	return nil
}

// hull is the range from the start of the first interval to the end of the last.
func hull(intervals []plan.Interval) core.Range {
	if len(intervals) == 0 {
		return core.Range{}
	}
	return core.Range{Start: intervals[0].Start, End: intervals[len(intervals)-1].End}
}

// parts yields the rows of the series of the metric.
func (m *metricScan) parts(ctx context.Context) parts {
	if regularized(m.op.Fill) {
		return m.sequential(m.interpolated(ctx, m.query, m.op))
	}
	if p, ok := m.Reader.(core.Parallel); ok && m.Workers > 1 && m.op.Filter != nil {
		return m.parallel(ctx, p)
	}
	return m.sequential(m.Reader.Series(ctx, m.query))
}

// sequential yields the rows of blocks that come one series after the other.
func (m *metricScan) sequential(blocks iter.Seq2[core.Block, error]) parts {
	return func(yield func(part, error) bool) {
		s := m.newSeries()
		known := false
		wanted := false
		for b, err := range blocks {
			if err == nil && (!known || s.key.Compare(b.Key) != 0) {
				known = true
				wanted, err = s.enter(b.Key)
			}
			if err != nil {
				yield(part{}, err)
				return
			}
			if !wanted {
				continue
			}
			m.count(len(b.Times))
			for p, err := range s.rows(&b) {
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}

// count notes that n samples were read.
func (x *execution) count(n int) {
	if x.Fetched != nil {
		x.Fetched.Add(int64(n))
	}
}

// natural merges the series of an entity by time, and at equal times by the text of their tags, no tags first. Most entities have one series, whose rows pass.
func (m *metricScan) natural(ctx context.Context, in parts) parts {
	return func(yield func(part, error) bool) {
		ahead := m.lookAhead(ctx)
		defer ahead.stop()
		merge := m.newMerge()
		defer merge.close()
		for p, err := range in {
			if err == nil && merge.some() && merge.entity != p.series.key.Entity && !merge.flush(ctx, yield) {
				return
			}
			several := false
			if err == nil {
				several, err = ahead.several(p.series.key.Entity)
			}
			if err == nil && several {
				err = merge.add(p)
			} else if err == nil && !yield(p, nil) {
				return
			}
			if err != nil {
				yield(part{}, err)
				return
			}
		}
		merge.flush(ctx, yield)
	}
}

// lookAhead walks the keys of a metric beside its samples.
type lookAhead struct {
	next   func() (core.KeyInfo, error, bool)
	stop   func()
	entity string // of the key that was read last
	more   bool   // there was one
	asked  string // entity of the last answer
	some   bool   // there was a question
	answer bool
}

func (m *metricScan) lookAhead(ctx context.Context) *lookAhead {
	next, stop := iter.Pull2(m.Reader.Keys(ctx, m.keyQuery()))
	return &lookAhead{next: next, stop: stop, more: true}
}

// keyQuery selects the series that may yield rows.
func (m *metricScan) keyQuery() core.SeriesQuery {
	q := m.query
	if regularized(m.op.Fill) {
		q.Range = core.AllTime // rows may be made of samples outside of it
	}
	return q
}

// several reports whether an entity has more than one series. Entities are asked for in ascending order.
func (a *lookAhead) several(entity string) (bool, error) {
	if a.some && a.asked == entity {
		return a.answer, nil
	}
	for a.more && (!a.some || a.entity < entity) {
		a.some = true
		if err := a.step(); err != nil {
			return false, err
		}
	}
	a.some, a.asked, a.answer = true, entity, false
	if !a.more || a.entity != entity {
		return false, nil
	}
	if err := a.step(); err != nil {
		return false, err
	}
	a.answer = a.more && a.entity == entity
	return a.answer, nil
}

func (a *lookAhead) step() error {
	k, err, more := a.next()
	if a.more = more && err == nil; a.more {
		a.entity = strings.Clone(k.Key.Entity)
	}
	return err
}

// anySeveral reports whether an entity has more than one series.
func (m *metricScan) anySeveral(ctx context.Context) (bool, error) {
	before, some := "", false
	for k, err := range m.Reader.Keys(ctx, m.keyQuery()) {
		if err != nil || some && k.Key.Entity == before {
			return err == nil, err
		}
		before, some = strings.Clone(k.Key.Entity), true
	}
	return false, nil
}

// entityMerge collects the rows of the series of one entity.
type entityMerge struct {
	*metricScan
	entity string
	kept   *rows
	runs   []mergeRun
	disk   *sorter // merges what did not fit the memory; nil = all does
	out    column.Batch
}

// mergeRun are the rows of one series, ascending by time.
type mergeRun struct {
	span
	tags string // as text
	key  core.Tags
}

func (m *metricScan) newMerge() *entityMerge { return &entityMerge{metricScan: m, kept: m.newRows()} }

func (e *entityMerge) some() bool { return len(e.runs) > 0 || e.disk != nil }

func (e *entityMerge) close() {
	e.kept.release()
	if e.disk != nil {
		e.disk.close()
		e.disk = nil
	}
}

func (e *entityMerge) add(p part) error {
	if p.batch.Len == 0 {
		return nil
	}
	e.entity = p.series.key.Entity
	err := e.kept.add(p.batch)
	if err != nil && e.SpillDir != "" && e.kept.n > 0 {
		if err = e.toDisk(); err == nil {
			err = e.kept.add(p.batch)
		}
	}
	if err != nil {
		return err
	}
	n := len(e.runs)
	if n == 0 || !e.runs[n-1].key.Equal(p.series.key.Tags) {
		from := e.kept.n - p.batch.Len
		tags := p.series.key.Tags.Clone()
		e.runs = append(e.runs, mergeRun{span: span{from, from}, tags: tagText(tags), key: tags})
		n++
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
	e.kept.reset()
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
	defer e.close()
	if e.kept.n > 0 {
		if err := e.toDisk(); err != nil {
			yield(part{}, err)
			return false
		}
	}
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
