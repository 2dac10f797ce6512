package exec

import (
	"context"
	"iter"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/inorder"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// A scan with a filter reads several series at once: what passes is little. Rows of a series are collected in chunks; the series whose turn it is hands its chunks
// on as they come, those ahead of their turn wait once they hold too many.

const (
	// inFlight is how many series, from the one that is due on, may be at work or wait for their turn: enough that no processor waits for a long one.
	inFlight = 64
	// chunkRows is how many rows are handed over at once: enough to hide the cost of it.
	chunkRows = column.Size
	// spareRows is how many rows the series after the one that is due may hold together, and how many the due one may be ahead of who reads them.
	spareRows = 16 * chunkRows
)

// chunk is a run of rows of one series with memory of its own, charged until it is used.
type chunk struct {
	kept   *rows
	steady []*column.Vector // columns that are the same in every row; nil for those in kept, which follow each other there
	tags   core.Tags
	entity string
}

// batch returns the rows.
func (c *chunk) batch() *column.Batch {
	b := &column.Batch{Len: c.kept.n, Columns: c.steady}
	varying := c.kept.columns
	for i, v := range b.Columns {
		if v != nil {
			v.Len = b.Len
			continue
		}
		b.Columns[i], varying = varying[0], varying[1:]
	}
	return b
}

// parallel yields the rows of the series that a query selects, several of which are read at once, in the order of their keys.
func (m *metricScan) parallel(ctx context.Context, from core.Parallel, q core.SeriesQuery) parts {
	return func(yield func(part, error) bool) {
		l := newLine()
		var idle seriesPool
		skip, _ := m.op.Filter.(bounder)
		scan := func(ctx context.Context) error {
			return core.Scan(ctx, from, q, func(n int, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
				if !l.Enter(n) {
					return context.Canceled
				}
				s := idle.take(m)
				defer idle.give(s)
				c := &collector{line: l, n: n, series: s, skip: skip}
				l.leave(n, c.visit(ctx, key, pieces))
				return nil
			})
		}
		defer l.drain()
		shown := series{metricScan: m}
		for c, err := range inorder.Run(ctx, &l.Gate, scan, l.next) {
			if err != nil {
				yield(part{}, err)
				return
			}
			shown.key = core.SeriesKey{Metric: q.Metric, Entity: c.entity, Tags: c.tags}
			more := yield(part{&shown, c.batch()}, nil)
			c.kept.release()
			if !more {
				return
			}
		}
	}
}

// seriesPool holds what workers are done with.
type seriesPool struct {
	mu   sync.Mutex // guards idle
	idle []*series
}

func (p *seriesPool) take(m *metricScan) *series {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return s
	}
	return m.newSeries()
}

func (p *seriesPool) give(s *series) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// collector makes chunks of the rows of series n.
type collector struct {
	line   *line
	n      int
	series *series
	skip   bounder // the filter; nil = it knows no bounds
	chunk  *chunk

	varying column.Batch
}

// visit reads the series.
func (c *collector) visit(ctx context.Context, key core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
	wanted, err := c.series.enter(key)
	if err != nil || !wanted {
		return err
	}
	defer c.close()
	for p, err := range pieces {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if p.Stats != nil && c.skip != nil && outside(c.skip, c.series.op, p.Stats) {
			continue
		}
		b, err := p.Rows()
		if err != nil {
			return err
		}
		c.series.count(len(b.Times))
		for p, err := range c.series.rows(b) {
			if err == nil {
				err = c.add(p)
			}
			if err != nil {
				return err
			}
		}
	}
	return c.flush()
}

func (c *collector) add(p part) error {
	if c.chunk == nil {
		c.chunk = c.newChunk(p)
	}
	c.varying.Len, c.varying.Columns = p.batch.Len, c.varying.Columns[:0]
	for i, v := range p.batch.Columns {
		if c.chunk.steady[i] == nil {
			c.varying.Columns = append(c.varying.Columns, v)
		}
	}
	if err := c.chunk.kept.addRun(&c.varying, span{0, p.batch.Len}); err != nil {
		return err
	}
	if c.chunk.kept.n < chunkRows {
		return nil
	}
	return c.flush()
}

// newChunk begins a chunk. What does not change within the series is shared by all rows, and by the chunks: nobody changes it.
func (c *collector) newChunk(p part) *chunk {
	s := c.series
	one := &chunk{kept: &rows{account: account{memory: s.Memory}}, steady: make([]*column.Vector, len(p.batch.Columns)), tags: s.key.Tags, entity: s.key.Entity}
	for i, source := range s.op.Columns {
		v := *p.batch.Columns[i]
		switch {
		case perSeries(source):
		case source.Kind == plan.SourceText && !s.op.Needs.Text:
			v.Strings, v.Nulls = []string{""}, []bool{true}
		case source.Kind == plan.SourceInterval && len(s.intervals) == 1:
			v.Ints = []int64{1}
		default:
			continue
		}
		one.steady[i] = &v
	}
	return one
}

// flush hands the chunk on.
func (c *collector) flush() error {
	one := c.chunk
	if one == nil {
		return nil
	}
	if c.chunk = nil; c.line.push(c.n, one) {
		return nil
	}
	one.kept.release()
	return context.Canceled
}

func (c *collector) close() {
	if c.chunk != nil {
		c.chunk.kept.release()
	}
}

// line brings the chunks of series that are worked on in any order back into the order of the series.
type line struct {
	inorder.Gate // its lock guards all below

	slots [inFlight]slot // of series n at n % inFlight, for those from the due one on
	total int            // rows in all slots
}

type slot struct {
	chunks []*chunk
	rows   int
	done   bool
	err    error
}

func newLine() *line {
	l := &line{}
	l.Open(inFlight)
	return l
}

// push adds a chunk of series n when there is room for it, and reports whether it still matters.
func (l *line) push(n int, c *chunk) bool {
	l.Lock()
	defer l.Unlock()
	s := &l.slots[n%inFlight]
	for !l.Stopped && !l.room(n) {
		l.Wait()
	}
	if l.Stopped {
		return false
	}
	s.chunks = append(s.chunks, c)
	s.rows += c.kept.n
	l.total += c.kept.n
	l.Broadcast()
	return true
}

// room reports whether series n may hold another chunk. With the lock.
func (l *line) room(n int) bool {
	due := l.slots[l.Due%inFlight].rows
	if n == l.Due {
		return due < spareRows
	}
	return l.total-due < spareRows
}

// leave ends the work for series n. Its error waits for its turn: the series before it are not lost.
func (l *line) leave(n int, err error) {
	l.Lock()
	defer l.Unlock()
	s := &l.slots[n%inFlight]
	s.done, s.err = true, err
	l.Broadcast()
}

// next waits for the next chunk; some is false after the last.
func (l *line) next(ctx context.Context) (next *chunk, some bool, err error) {
	l.Lock()
	defer l.Unlock()
	for {
		s := &l.slots[l.Due%inFlight]
		switch {
		case len(s.chunks) > 0:
			c := s.chunks[0]
			s.chunks = s.chunks[1:]
			s.rows -= c.kept.n
			l.total -= c.kept.n
			l.Broadcast()
			return c, true, nil
		case s.done && s.err != nil:
			return nil, false, s.err
		case s.done:
			*s = slot{}
			l.Due++
			l.Broadcast()
		case l.Stopped:
			return nil, false, context.Cause(ctx)
		case l.Ended:
			return nil, false, l.Failure
		default:
			l.Wait()
		}
	}
}

// drain gives back the memory of chunks that nobody took. Nothing comes any more.
func (l *line) drain() {
	for i := range l.slots {
		for _, c := range l.slots[i].chunks {
			c.kept.release()
		}
		l.slots[i].chunks = nil
	}
}
