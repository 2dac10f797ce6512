package exec

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// A group directly over a scan, whose keys do not change within a series but for the period, reads several series at once. Each worker has a grouping of its
// own. Samples of a series that lie in one period are not looked at one by one: they go to the states as a run, or, where the reader knows enough of them, not at
// all.
//
// When groups are many or keep values, and no two series share one, the groups of a series are finished, filled and given to a sort before the next series: then
// little is kept. Otherwise the groups of the workers are merged.

// runState is what a state may do beside: take many samples of one group at once.
type runState interface {
	// addRun takes samples of a group, times ascending.
	addRun(id int32, r *sampleRun)
}

// statsState is what a state may do beside: take samples of which only the statistics are known, none of which is NaN. It reports whether it can; then all of
// them are taken, or put is false and none is.
type statsState interface {
	addStats(id int32, s *statsRun) bool
}

type sampleRun struct {
	times  []core.Time
	values []float64
	rank   int32
	places int8 // as those of a block
}

type statsRun struct {
	*core.Stats
	rank int32
	put  bool
}

// seriesGroups is the grouping of the series of a scan.
type seriesGroups struct {
	*grouping
	scan    *plan.Scan
	metrics []metricSeries
	plain   bool // all aggregates are of the value itself
	alone   bool // no two series share a group
	inParts bool // with alone: between the groups of a series there are none of others
	skip    bounder
	// With plain: the filter, nil for none, and whether numbers are counted within it, whatever their times.
	within *valueRange
	counts bool

	mu   sync.Mutex // guards the rest
	idle []*groupWorker
	all  []*groupWorker
	out  *sorter // of finished groups, when alone
}

// bounder is a condition that knows between which numbers a column has to lie for it to be true.
type bounder interface {
	Bounds(column int) (low, high float64, ok bool)
}

// groupWorker does the work of one goroutine.
type groupWorker struct {
	*grouping
	metric *metricScan
	series *series
	starts column.Vector
	run    sampleRun
	passed sampleRun // memory for samples that a filter kept
	grid   *grid     // of the series at hand, found last; nil = none was
	gridAt int32
	id     int32 // without periods, of the series at hand; -1 = not known yet
}

// scanSeries groups the samples of a scan, if it is one that this file is about. It reports whether it did.
func (g *grouping) scanSeries(ctx context.Context) (taken bool, err error) {
	scan, from := g.splittable()
	if from == nil {
		return false, nil
	}
	s := &seriesGroups{grouping: g, scan: scan, within: rangeOf(scan)}
	s.plain = (scan.Filter == nil || s.within != nil) && g.plainAggregates(scan)
	s.counts = s.plain && s.within != nil && g.periods == nil && g.countsAlone()
	s.skip, _ = scan.Filter.(bounder)
	defer s.close()
	for _, name := range scan.Metrics {
		m, err := g.x.metric(ctx, scan, name)
		s.metrics = append(s.metrics, metricSeries{metricScan: m})
		if err == nil {
			s.metrics[len(s.metrics)-1].series, err = from.Select(ctx, m.query)
		}
		if err != nil {
			return true, err
		}
	}
	s.alone = (g.periods != nil || g.states.keepValues() || g.states.roundInOrder()) && s.identified()
	if !s.alone && g.states.roundInOrder() {
		return false, nil // the result would depend on which worker read what
	}
	return true, s.read(ctx)
}

// metricSeries is the series of a metric.
type metricSeries struct {
	*metricScan
	series core.Selection // nil: there was an error
}

// read visits the series of all metrics.
func (s *seriesGroups) read(ctx context.Context) error {
	if s.alone {
		s.out = s.x.newSorter(s.sortKeys(), 0)
		s.inParts = !s.fills() && (s.periods == nil || s.order[len(s.order)-1] == s.plan.PeriodKey)
	}
	rank := 0
	for _, m := range s.metrics {
		first, most := rank, 0
		err := m.series.Scan(ctx, func(n int, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
			w, err := s.worker(m.metricScan)
			if err != nil {
				return err
			}
			w.rank = int32(first + n)
			if err := w.visit(ctx, s, key, pieces); err != nil {
				return err
			}
			return s.release(ctx, w, n, &most)
		})
		if err != nil {
			return err
		}
		rank += most + 1
	}
	return s.finish()
}

// splittable returns the scan below the group and the reader that can read several of its series at once; nil when it has to be read in order.
func (g *grouping) splittable() (*plan.Scan, core.Parallel) {
	scan, ok := g.plan.In.(*plan.Scan)
	if !ok || regularized(scan.Fill) || len(scan.Intervals) == 0 || g.periods != nil && g.periods.needsFirst() {
		return nil, nil
	}
	for i, key := range g.plan.Keys {
		if i == g.plan.PeriodKey && g.periods != nil {
			if c := expr.Columns(key); len(c) != 1 || c[0] != plan.ScanTime {
				return nil, nil
			}
			continue
		}
		if !steadyIn(scan, key, perSeries) {
			return nil, nil
		}
	}
	for _, carried := range g.plan.Carried {
		if !steadyIn(scan, carried, perEntity) {
			return nil, nil
		}
	}
	for _, a := range g.plan.Aggregates {
		if a.Distinct {
			return nil, nil
		}
	}
	from, _ := g.x.Reader.(core.Parallel)
	return scan, from
}

// perSeries reports whether a column is the same in all rows of a series.
func perSeries(c plan.Source) bool {
	switch c.Kind {
	case plan.SourceTime, plan.SourceValue, plan.SourceText, plan.SourceInterval:
		return false
	}
	return true
}

// perEntity reports whether a column is the same in all rows of an entity and metric.
func perEntity(c plan.Source) bool {
	switch c.Kind {
	case plan.SourceTags, plan.SourceTagsJSON, plan.SourceTag, plan.SourceLastTime:
		return false
	}
	return perSeries(c)
}

func steadyIn(scan *plan.Scan, node expr.Node, steady func(plan.Source) bool) bool {
	for _, c := range expr.Columns(node) {
		if !steady(scan.Columns[c]) {
			return false
		}
	}
	return true
}

// plainAggregates reports whether all aggregates are of the value itself, or count rows.
func (g *grouping) plainAggregates(scan *plan.Scan) bool {
	for i, a := range g.plan.Aggregates {
		if _, ok := g.states.states[i].(runState); !ok {
			return false
		}
		if len(a.Args) == 0 {
			continue
		}
		at, ok := g.x.inputOf(a.Args[0])
		if !ok || scan.Columns[at].Kind != plan.SourceValue || len(a.Args) > 1 {
			return false
		}
		if a.Time != nil {
			if at, ok := g.x.inputOf(a.Time); !ok || at != plan.ScanTime {
				return false
			}
		}
	}
	return true
}

// inputOf returns the column that an expression is.
func (x *execution) inputOf(node expr.Node) (int, bool) {
	c := expr.Columns(node)
	if len(c) != 1 || !x.isColumn(node, c[0]) {
		return 0, false
	}
	return c[0], true
}

// identified reports whether the keys tell any two series apart.
func (s *seriesGroups) identified() bool {
	var metric, entity, tags bool
	for _, key := range s.plan.Keys {
		at, ok := s.x.inputOf(key)
		if !ok {
			continue
		}
		switch s.scan.Columns[at].Kind {
		case plan.SourceMetric:
			metric = true
		case plan.SourceEntity:
			entity = true
		case plan.SourceTags, plan.SourceTagsJSON:
			tags = true
		}
	}
	if !entity || !metric && len(s.metrics) > 1 {
		return false
	}
	return tags || !slices.ContainsFunc(s.metrics, func(m metricSeries) bool { return anySeveral(m.series.Keys()) })
}

// anySeveral reports whether an entity has more than one of the series of a metric.
func anySeveral(keys iter.Seq[core.SeriesKey]) bool {
	before, some := "", false
	for k := range keys {
		if some && k.Entity == before {
			return true
		}
		before, some = k.Entity, true
	}
	return false
}

// sortKeys are the keys of the finished groups.
func (g *grouping) sortKeys() []plan.Key {
	var keys []plan.Key
	for _, k := range g.order {
		keys = append(keys, plan.Key{Expr: place{k, g.plan.Keys[k].Type()}})
	}
	return keys
}

// worker returns a worker that nobody uses, for series of a metric.
func (s *seriesGroups) worker(m *metricScan) (*groupWorker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.idle {
		if w.metric == m {
			s.idle = slices.Delete(s.idle, i, i+1)
			return w, nil
		}
	}
	if n := len(s.idle); n > 0 {
		w := s.idle[n-1]
		s.idle = s.idle[:n-1]
		w.metric, w.series = m, m.newSeries()
		return w, nil
	}
	p := *s.plan
	p.Keys, p.Carried, p.Aggregates = cloned(p.Keys), cloned(p.Carried), slices.Clone(p.Aggregates)
	for i := range p.Aggregates {
		a := &p.Aggregates[i]
		a.Args = cloned(a.Args)
		if a.Time != nil {
			a.Time = a.Time.Clone()
		}
	}
	g, err := s.x.newGrouping(&p)
	if err != nil {
		return nil, err
	}
	w := &groupWorker{grouping: g, metric: m, series: m.newSeries()}
	if !s.alone {
		g.ranks = []int32{}
	}
	// The periods of AlignEnd are left out, as samples may lie in none of them.
	g.ascending = s.alone && s.plain && g.periods != nil && len(s.scan.Intervals) == 1 && p.Period.Align != ast.AlignEnd
	s.all = append(s.all, w)
	return w, nil
}

// release takes a worker back after series n of its metric.
func (s *seriesGroups) release(ctx context.Context, w *groupWorker, n int, most *int) error {
	var finished *column.Batch
	if s.alone && len(w.names) > 0 {
		var err error
		if finished, err = w.rows(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*most = max(*most, n)
	if finished != nil {
		add := s.out.add
		if s.inParts {
			add = s.out.addPart
		}
		if err := add(finished); err != nil {
			return err
		}
		if err := s.out.giveWay(2); err != nil {
			return err
		}
		w.reset()
	}
	s.idle = append(s.idle, w)
	return nil
}

// close gives back what was taken for the reading.
func (s *seriesGroups) close() {
	for _, m := range s.metrics {
		m.memory.release()
		if m.series != nil {
			m.series.Close()
		}
	}
	for _, w := range s.all {
		s.workers.add(w.usage())
		w.grouping.close()
	}
	if s.out != nil && s.finished == nil {
		s.workers.add(usage{bytes: s.out.taken + s.out.kept.taken, several: s.out.kept.n+len(s.out.parts)+len(s.out.runs) > 0})
		s.out.close()
	}
}

// finish brings the groups of all workers together.
func (s *seriesGroups) finish() error {
	if s.alone {
		s.finished = s.out
		return nil
	}
	s.ranks = []int32{}
	for _, w := range s.all {
		if err := s.merge(w.grouping); err != nil {
			return err
		}
		w.grouping.close()
	}
	return nil
}

// visit takes the samples of one series.
func (w *groupWorker) visit(ctx context.Context, s *seriesGroups, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
	wanted, err := w.series.enter(key)
	if err != nil || !wanted {
		return err
	}
	if err := w.prepare(); err != nil {
		return err
	}
	for i := range w.states.args {
		w.states.args[i].rank = w.rank // of rows that are added one by one
	}
	for p, err := range pieces {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if s.excluded(p.Stats) {
			continue
		}
		if err := w.addPiece(s, &p); err != nil {
			return err
		}
	}
	return nil
}

// addPiece takes a piece of the series with as little reading as will do.
func (w *groupWorker) addPiece(s *seriesGroups, p *core.Piece) error {
	if s.plain && p.Stats != nil && (s.within == nil || s.within.covers(p.Stats)) {
		if taken, err := w.addStats(s, p.Stats); taken || err != nil {
			return err
		}
	}
	if taken, err := w.addCount(s, p); taken || err != nil {
		return err
	}
	b, err := p.Rows()
	if err != nil {
		return err
	}
	w.x.count(len(b.Times))
	return w.addBlock(s, b)
}

// excluded reports whether no row of a piece can pass the filter.
func (s *seriesGroups) excluded(stats *core.Stats) bool {
	return stats != nil && s.skip != nil && outside(s.skip, s.scan, stats)
}

// outside reports whether all numbers lie where a condition is not true.
func outside(condition bounder, scan *plan.Scan, stats *core.Stats) bool {
	for i, c := range scan.Columns {
		if c.Kind == plan.SourceValue {
			low, high, ok := condition.Bounds(i)
			return ok && (stats.Count == 0 || stats.Max < low || stats.Min > high)
		}
	}
	return false
}

// prepare evaluates the keys of the series that was entered.
func (w *groupWorker) prepare() error {
	one := w.series.one()
	w.series.resize(1)
	if err := w.x.eval(w.plan.Keys, one, w.keys); err != nil {
		return err
	}
	if err := w.x.eval(w.plan.Carried, one, w.carried); err != nil {
		return err
	}
	w.first.Len = 1
	w.first.Columns = append(append(w.first.Columns[:0], w.keys...), w.carried...)
	if w.periods != nil {
		at := w.plan.PeriodKey
		w.starts = column.Vector{Type: w.plan.Keys[at].Type(), Len: 1, Ints: []int64{0}}
		w.keys[at], w.first.Columns[at] = &w.starts, &w.starts
	}
	w.id, w.grid = -1, nil
	return nil
}

// addBlock takes a block of the series.
func (w *groupWorker) addBlock(s *seriesGroups, b *core.Block) error {
	if !s.plain || len(b.Decimals) > 0 {
		for p, err := range w.series.rows(b) {
			switch {
			case err != nil:
			case w.ascending:
				err = w.addAscending(p.batch)
			default:
				err = w.add(p.batch)
			}
			if err != nil {
				return err
			}
		}
		return w.prepare() // the keys of a batch took the place of those of the series
	}
	w.run.places = b.Places
	for n := firstAfter(s.scan.Intervals, b.Times); n < len(s.scan.Intervals); n++ {
		in := s.scan.Intervals[n]
		lo := calc.Before(b.Times, in.Start)
		if lo == len(b.Times) {
			break
		}
		hi := lo + calc.Before(b.Times[lo:], in.End)
		times, values := b.Times[lo:hi], b.Values[lo:hi]
		if s.within != nil {
			times, values = s.within.keep(&w.passed, times, values)
		}
		if err := w.addRuns(times, values, int32(n)); err != nil {
			return err
		}
	}
	return nil
}

// addRuns takes samples of one interval, period by period.
func (w *groupWorker) addRuns(times []core.Time, values []float64, interval int32) error {
	w.run.rank = w.rank
	for len(times) > 0 {
		n := len(times)
		id, end, err := w.enterAt(times[0], interval)
		if err != nil {
			return err
		}
		if w.periods != nil {
			n = max(calc.Before(times, end), 1)
		}
		if id >= 0 {
			w.run.times, w.run.values = times[:n], values[:n]
			for _, s := range w.states.states {
				s.(runState).addRun(id, &w.run)
			}
		}
		times, values = times[n:], values[n:]
	}
	return w.states.charge()
}

// addAscending takes rows of the series that go to the states one by one.
func (w *groupWorker) addAscending(b *column.Batch) error {
	w.ids = grown(w.ids[:0], b.Len)
	dropped := false
	times := b.Columns[plan.ScanTime].Ints
	for i := 0; i < b.Len; {
		id, end, err := w.enterAt(core.Time(times[i]), 0)
		if err != nil {
			return err
		}
		dropped = dropped || id < 0
		for first := i; i < b.Len && (i == first || times[i] < int64(end)); i++ {
			w.ids[i] = id
		}
	}
	return w.addAssigned(b, dropped)
}

// enterAt returns the group of a sample, which is made if need be, and the end of its period; -1 when it lies in none.
func (w *groupWorker) enterAt(t core.Time, interval int32) (id int32, end core.Time, err error) {
	if w.periods == nil {
		if w.id < 0 {
			if w.id, err = w.groupOf(w.keyOf(0), 0); err == nil {
				err = w.states.resize(len(w.names))
			}
		}
		return w.id, 0, err
	}
	lines, n, err := w.lines(t, interval)
	if err != nil {
		return -1, 0, err
	}
	start, ok := lines.start(t)
	if !ok {
		return -1, lines.base, nil
	}
	if w.ascending {
		id, err = w.enterNext(groupPlace{interval: interval, grid: n, start: start})
		return id, lines.after(start), err
	}
	w.starts.Ints[0] = int64(start)
	walk := periodWalk{grouping: w.grouping}
	id, err = walk.enter(&w.starts, 0, groupPlace{interval: interval, grid: n, start: start})
	if err == nil {
		err = w.states.resize(len(w.names))
	}
	return id, lines.after(start), err
}

// enterNext returns the group of a period that is the last one so far or follows it.
func (w *groupWorker) enterNext(place groupPlace) (int32, error) {
	n := len(w.places)
	if n > 0 && w.places[n-1].start == place.start {
		return int32(n - 1), nil
	}
	if err := w.grow(mapEntry); err != nil {
		return 0, err
	}
	w.names, w.places = append(w.names, ""), append(w.places, place)
	return int32(n), w.states.resize(n + 1)
}

// lines returns the grid of the series in an interval, in which t lies.
func (w *groupWorker) lines(t core.Time, interval int32) (*grid, int32, error) {
	if w.ascending && w.grid != nil {
		return w.grid, w.gridAt, nil // there is one interval
	}
	zone := ""
	if v := w.zones(&w.series.batch); v != nil && !v.IsNull(0) {
		zone = v.Strings[v.Index(0)]
	}
	n, err := w.periods.find(zone, interval, w.baseKey(0), t)
	if err != nil {
		return nil, 0, err
	}
	w.grid, w.gridAt = w.periods.grids[n], n
	return w.grid, n, nil
}

// addStats takes a piece without looking at its samples, if it lies in one interval and period, every aggregate can do with the statistics, and it holds no NaN
// or the filter takes none.
func (w *groupWorker) addStats(s *seriesGroups, stats *core.Stats) (taken bool, err error) {
	if stats.Count == 0 || stats.Rows != stats.Count && s.within == nil {
		return false, nil
	}
	interval, ok := w.intervalOf(stats)
	if !ok {
		return false, nil
	}
	if w.periods != nil {
		lines, _, err := w.lines(stats.FirstTime, interval)
		if err != nil {
			return false, err
		}
		first, ok1 := lines.start(stats.FirstTime)
		last, ok2 := lines.start(stats.LastTime)
		if !ok1 || !ok2 || first != last {
			return false, nil
		}
	}
	run := statsRun{Stats: stats, rank: w.rank}
	for _, s := range w.states.states {
		if s, ok := s.(statsState); !ok || !s.addStats(-1, &run) {
			return false, nil
		}
	}
	id, _, err := w.enterAt(stats.FirstTime, interval)
	if err != nil {
		return false, err
	}
	run.put = true
	for _, s := range w.states.states {
		s.(statsState).addStats(id, &run)
	}
	return true, nil
}
