package exec

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// The natural order of rows is that of metrics, entities, times and, at equal times, of the text of the tags, no tags first; the reader gives one series after
// the other. Most entities have one series, whose rows pass. The rows of an entity with several are collected and merged; when they are many, those read so far
// are dropped, and the entity is read again in slices of time, a small one first: a few rows are there soon, and all of them need no more memory than one
// slice.
//
// A cursor for each series, the other way, would hold a block of each: ten thousand series, which an entity may have, of 64 KiB. A slice decodes one block
// after the other, those at its edges once more in the next one.

const (
	collected  = 2 * column.Size   // rows of an entity that are merged without slices
	firstSlice = column.Size       // rows of the first slice, about
	fullSlice  = 128 * column.Size // most rows of a slice, where there is memory
	quicken    = 8                 // how many times as long as the one before a slice may be

	askedAlone   = 8 // entities whose keys are asked for one by one
	fewEntities  = 4 // that are asked for at once after one that was read in slices: the next may be like it
	manyEntities = 1024
)

// natural yields the rows of the metric in the natural order.
func (m *metricScan) natural(ctx context.Context) parts {
	return func(yield func(part, error) bool) {
		o := &ordering{metricScan: m, ahead: m.lookAhead(ctx), merge: m.newMerge(), yield: yield}
		defer o.ahead.stop()
		defer o.merge.close()
		o.run(ctx)
	}
}

// ordering is the rows of a metric on their way into the natural order.
type ordering struct {
	*metricScan
	ahead *lookAhead
	merge *entityMerge
	yield func(part, error) bool
}

// fail ends the rows.
func (o *ordering) fail(err error) bool {
	o.yield(part{}, err)
	return false
}

// run reads all entities at once until one of them is to be read in slices, then those after it by their names.
func (o *ordering) run(ctx context.Context) {
	q, n := o.query, 0
	for {
		large, more := o.stream(ctx, q)
		switch {
		case !more || large == "" && n == 0:
			return
		case large != "":
			if !o.slices(ctx, large) {
				return
			}
			n = fewEntities
		default:
			large = q.Entities.Names[len(q.Entities.Names)-1]
			n = min(4*n, manyEntities)
		}
		names, err := o.ahead.after(large, n)
		if err != nil {
			o.fail(err)
			return
		}
		if len(names) == 0 {
			return
		}
		q.Entities.Names, q.Entities.Patterns = names, nil
	}
}

// stream yields the rows of a query up to an entity that is to be read in slices, "" when there is none. It reports whether to go on.
func (o *ordering) stream(ctx context.Context, q core.SeriesQuery) (large string, more bool) {
	merge, whole := o.merge, regularized(o.op.Fill)
	for p, err := range o.parts(ctx, q) {
		if err != nil {
			return "", o.fail(err)
		}
		entity := p.series.key.Entity
		if merge.some() && merge.entity != entity && !merge.flush(ctx, o.yield) {
			return "", false
		}
		several, err := o.ahead.several(entity)
		switch {
		case err != nil:
		case !several:
			if !o.yield(p, nil) {
				return "", false
			}
		case whole:
			err = merge.add(p)
		default:
			if err = merge.keep(p, span{0, p.batch.Len}); err != nil || merge.kept.n > collected {
				merge.forget()
				return strings.Clone(entity), true
			}
		}
		if err != nil {
			return "", o.fail(err)
		}
	}
	return "", merge.flush(ctx, o.yield)
}

// slices yields the rows of an entity, so much of its time at once as the memory allows. It reports whether to go on.
func (o *ordering) slices(ctx context.Context, entity string) bool {
	q := o.query
	q.Entities.Names, q.Entities.Patterns = []string{entity}, nil
	end, length := q.Range.End, core.Time(1)
	for {
		d, err := o.density(ctx, q)
		if err != nil {
			return o.fail(err)
		}
		if !d.some {
			return true
		}
		q.Range.Start = d.first
		length = max(length, d.length(firstSlice))
		for n := 1; n > 0; {
			if q.Range.Start >= end {
				return true
			}
			q.Range.End = end
			if length < end-q.Range.Start {
				q.Range.End = q.Range.Start + length
			}
			fits, err := o.collect(ctx, q, length > 1)
			if err != nil {
				return o.fail(err)
			}
			if !fits {
				length = max(length/quicken, 1)
				continue
			}
			n = o.merge.held()
			length = o.merge.next(length)
			if !o.merge.flush(ctx, o.yield) {
				return false
			}
			q.Range.Start = q.Range.End
		}
		q.Range.End = end // nothing was there: the next sample may be far
	}
}

// collect takes the rows of a slice. Those of one that is divisible must fit the memory.
func (o *ordering) collect(ctx context.Context, q core.SeriesQuery, divisible bool) (fits bool, err error) {
	for p, err := range o.parts(ctx, q) {
		if err != nil {
			return false, err
		}
		if !divisible {
			err = o.merge.add(p)
		} else if o.merge.keep(p, span{0, p.batch.Len}) != nil {
			o.merge.forget()
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// held is how many rows the merge has.
func (e *entityMerge) held() int {
	switch {
	case e.disk != nil:
		return fullSlice
	case e.kept == nil:
		return 0
	}
	return e.kept.n
}

// next returns how long the slice after one of a length should be, so that it takes half of the memory.
func (e *entityMerge) next(length core.Time) core.Time {
	n, most := e.held(), float64(fullSlice)
	if n == 0 {
		return min(quicken*length, core.MaxTime)
	}
	if e.disk == nil {
		most = min(most, float64(e.kept.memory.limit)/2/float64(e.kept.taken)*float64(n))
	}
	factor := min(max(most/float64(n), 1.0/quicken), quicken)
	return core.Time(min(max(float64(length)*factor, 1), float64(core.MaxTime)))
}

// density is how densely the samples of an entity begin.
type density struct {
	first core.Time
	some  bool    // there is a sample
	rate  float64 // samples of all series in a millisecond
}

// length returns how long about so many rows take.
func (d *density) length(rows int) core.Time {
	return core.Time(min(max(float64(rows)/d.rate, 1), float64(core.MaxTime)))
}

// add takes a run of samples that a series begins with.
func (d *density) add(first, last core.Time, n int) {
	if n == 0 {
		return
	}
	if !d.some || first < d.first {
		d.first = first
	}
	d.some = true
	if last > first {
		d.rate += float64(n-1) / float64(last-first)
	}
}

// probed is how many samples of a series tell how dense they are, where a reader says nothing of that.
const probed = 16

// density looks at what the series of a query begin with.
func (m *metricScan) density(ctx context.Context, q core.SeriesQuery) (d density, err error) {
	from, ok := m.Reader.(core.Parallel)
	if !ok {
		q.Limit = probed
		for b, err := range m.Reader.Series(ctx, q) {
			if err != nil {
				return d, err
			}
			d.addBlock(&b)
		}
		return d, nil
	}
	var mu sync.Mutex // guards d
	err = core.Scan(ctx, from, q, func(_ int, _ core.SeriesKey, pieces iter.Seq2[core.Piece, error]) error {
		for p, err := range pieces {
			if err != nil {
				return err
			}
			// The times of statistics are those of numbers.
			if s := p.Stats; s != nil && s.Count > 0 && s.Count == s.Rows {
				mu.Lock()
				d.add(s.FirstTime, s.LastTime, int(s.Count))
				mu.Unlock()
				return nil
			}
			b, err := p.Rows()
			if err != nil {
				return err
			}
			mu.Lock()
			d.addBlock(b)
			mu.Unlock()
			return nil
		}
		return nil
	})
	return d, err
}

func (d *density) addBlock(b *core.Block) {
	if n := len(b.Times); n > 0 {
		d.add(b.Times[0], b.Times[n-1], n)
	}
}

// lookAhead walks the keys of a metric beside its samples. The first entities are asked for one by one: to begin a walk takes time where there are many series,
// and often few rows are wanted.
type lookAhead struct {
	one    func(entity string) iter.Seq2[core.KeyInfo, error] // the keys of an entity
	ones   int                                                // entities that were asked for so
	next   func() (core.KeyInfo, error, bool)
	stop   func()
	begun  bool           // the first key was read
	more   bool           // there is a key that was read last,
	entity string         // of this entity
	listed []listedEntity // entities that were found and may be asked for yet, ascending
}

// listedEntity is an entity, and whether it has more than one series.
type listedEntity struct {
	name    string
	several bool
}

func (m *metricScan) lookAhead(ctx context.Context) *lookAhead {
	next, stop := iter.Pull2(m.Reader.Keys(ctx, m.keyQuery()))
	one := func(entity string) iter.Seq2[core.KeyInfo, error] {
		q := m.keyQuery()
		q.Entities.Names, q.Entities.Patterns = []string{entity}, nil
		return m.Reader.Keys(ctx, q)
	}
	return &lookAhead{one: one, next: next, stop: stop, more: true}
}

// severalOf asks for the keys of an entity alone.
func (a *lookAhead) severalOf(entity string) (several bool, err error) {
	n := 0
	for _, err := range a.one(entity) {
		if err != nil {
			return false, err
		}
		if n++; n > 1 {
			break
		}
	}
	return n > 1, nil
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
	for {
		for len(a.listed) > 0 && a.listed[0].name < entity {
			a.listed = a.listed[1:]
		}
		if len(a.listed) > 0 {
			return a.listed[0].name == entity && a.listed[0].several, nil
		}
		if !a.begun && a.ones < askedAlone {
			several, err := a.severalOf(entity)
			if err == nil {
				a.ones++
				a.listed = append(a.listed, listedEntity{entity, several})
			}
			return several, err
		}
		if more, err := a.list(entity); err != nil || !more {
			return false, err
		}
	}
}

// after returns the names of up to n entities that follow one.
func (a *lookAhead) after(entity string, n int) ([]string, error) {
	for len(a.listed) > 0 && a.listed[0].name <= entity {
		a.listed = a.listed[1:]
	}
	for len(a.listed) < n {
		last := entity + "\x00" // what follows first
		if len(a.listed) > 0 {
			last = a.listed[len(a.listed)-1].name + "\x00"
		}
		if more, err := a.list(last); err != nil {
			return nil, err
		} else if !more {
			break
		}
	}
	names := make([]string, min(n, len(a.listed)))
	for i := range names {
		names[i] = a.listed[i].name
	}
	return names, nil
}

// list finds the first entity from a text on; false when there is none.
func (a *lookAhead) list(from string) (bool, error) {
	for a.more && (!a.begun || a.entity < from) {
		if err := a.step(); err != nil {
			return false, err
		}
	}
	if !a.more {
		return false, nil
	}
	one := listedEntity{name: a.entity}
	if err := a.step(); err != nil {
		return false, err
	}
	one.several = a.more && a.entity == one.name
	a.listed = append(a.listed, one)
	return true, nil
}

func (a *lookAhead) step() error {
	k, err, more := a.next()
	a.begun = true
	if a.more = more && err == nil; a.more && a.entity != k.Key.Entity {
		a.entity = strings.Clone(k.Key.Entity)
	}
	return err
}
