package exec

import (
	"context"
	"iter"

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
			in := m.natural(ctx)
			if op.Unordered {
				in = m.parts(ctx, m.query)
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

// parts yields the rows of those series of the metric that a query selects, which is that of the metric or a part of it.
func (m *metricScan) parts(ctx context.Context, q core.SeriesQuery) parts {
	if regularized(m.op.Fill) {
		return m.sequential(m.interpolated(ctx, q, m.op))
	}
	if p, ok := m.Reader.(core.Parallel); ok && m.Workers > 1 && m.op.Filter != nil {
		return m.parallel(ctx, p, q)
	}
	return m.sequential(m.Reader.Series(ctx, q))
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
