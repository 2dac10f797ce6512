package storage

import (
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
)

// newest is the time of the newest sample of a metric or an entity. The appender raises it with every write, and puts it in doubt when it deletes what
// may have been the newest; the next reader then looks at the series and settles it. So neither a write nor a list looks at more than it must. The zero
// value stands for no samples.
//
// One word holds it all, since writes come by the million:
//
//	| changes u18 | touched u1 | doubt u1 | time+1 u44 |     0 in the last part = no samples; 2^44 ms end in the year 2527
//
// Changes counts what happened while in doubt: a reader that has looked at the series publishes what it found only if the word is what it was before.
// Touched says that it is in the list of those to be saved, see touch.
type newest struct{ word atomic.Uint64 }

const (
	newestDoubt   = 1 << 44
	newestTime    = newestDoubt - 1
	newestTouched = newestDoubt << 1
	newestOne     = newestTouched << 1 // of changes
)

// raise notes a sample that is visible already. first reports whether it is the first change since the time was saved.
func (n *newest) raise(t core.Time) (first bool) {
	for {
		old := n.word.Load()
		next := max(old&newestTime, uint64(t)+1)
		if old&newestDoubt != 0 {
			next |= old&^uint64(newestTime) + newestOne
		} else if next |= old &^ uint64(newestTime); next == old {
			return false
		}
		if n.word.CompareAndSwap(old, next|newestTouched) {
			return old&newestTouched == 0
		}
	}
}

// doubt notes that a sample at t, the newest of its series, is gone.
func (n *newest) doubt(t core.Time) (first bool) {
	for {
		old := n.word.Load()
		if old&newestDoubt == 0 && uint64(t)+1 < old&newestTime {
			return false
		}
		if n.word.CompareAndSwap(old, (old|newestDoubt)+newestOne|newestTouched) {
			return old&newestTouched == 0
		}
	}
}

// get returns the time. look finds it among the series, when it is in doubt.
func (n *newest) get(look func() (core.Time, bool)) (core.Time, bool) {
	word := n.word.Load()
	if word&newestDoubt != 0 {
		t, some := look()
		settled := word &^ uint64(newestDoubt|newestTime)
		if some {
			settled |= uint64(t) + 1
		}
		n.word.CompareAndSwap(word, settled) // otherwise something happened meanwhile, and the next reader looks again
		return t, some
	}
	at := word & newestTime
	if at == 0 {
		return 0, false
	}
	return core.Time(at) - 1, true
}

// newestOf looks at measured series.
func (st *state) newestOf(ids []index.ID) (last core.Time, some bool) {
	sc, done := st.look()
	defer done()
	var buf []byte
	for _, id := range ids {
		t, ok, err := sc.newest(id)
		if err != nil || !ok {
			continue // what cannot be read is reported by those who need it
		}
		if key, known := st.keyOf(sc.view, id, buf); known && key.IsMeasured() {
			last, some = max(last, t), true
		}
	}
	return last, some
}

func (st *state) newestOfMetric(m *metric) (core.Time, bool) {
	return m.newest.get(func() (core.Time, bool) { return st.newestOf(st.index.Select(m.name, nil)) })
}

func (st *state) newestOfEntity(e *entity) (core.Time, bool) {
	return e.newest.get(func() (core.Time, bool) { return st.newestOf(st.index.Select("", []string{e.name})) })
}

// written tells the metric and the entity of a series about its samples. A forecast is not data.
func (st *state) written(s *series, t core.Time) {
	if s.measured {
		if s.metric.newest.raise(t) {
			st.catalog.touch(metricNewest, s.key.Metric, &s.metric.newest)
		}
		if s.entity.newest.raise(t) {
			st.catalog.touch(entityNewest, s.key.Entity, &s.entity.newest)
		}
	}
}

// forgotten tells the metric and the entity of a series that its newest sample, at t, is gone.
func (st *state) forgotten(key *core.SeriesKey, t core.Time) {
	if key.IsMeasured() {
		if m := st.catalog.metric(key.Metric); m.newest.doubt(t) {
			st.catalog.touch(metricNewest, key.Metric, &m.newest)
		}
		if e := st.catalog.entity(key.Entity); e.newest.doubt(t) {
			st.catalog.touch(entityNewest, key.Entity, &e.newest)
		}
	}
}

// The times of newest samples are saved in a table, so that the first lists after a start need not look at every series. They are not frozen with the rest: what
// is saved may be later than the position up to which files hold everything, as the journal behind it raises the same times again, and deletes the same samples.
// A metric or an entity without a record is in doubt.

// Kinds of saved times, the first byte of the key; the name is the rest. The value is a uvarint, time+1 or 0.
const (
	metricNewest = 'm'
	entityNewest = 'e'
)

// touched is a time that has changed since it was saved.
type touched struct {
	kind   byte
	name   string
	newest *newest // nil: nothing has the name any more
}

// touch has a time saved by the next flush.
func (c *catalog) touch(kind byte, name string, n *newest) {
	c.touched = append(c.touched, touched{kind, strings.Clone(name), n})
}

// renamed has a time saved under the second name instead of the first.
func (c *catalog) renamed(n *newest, kind byte, names [2]string) {
	c.touch(kind, names[0], nil)
	n.word.Or(newestTouched)
	c.touch(kind, names[1], n)
}

// freezeNewest takes the list of those to be saved.
func (c *catalog) freezeNewest() bool {
	c.saving = append(c.saving, c.touched...)
	c.touched = nil
	return len(c.saving) > 0
}

// writeNewest saves the times, as they are now, and writes the table.
func (c *catalog) writeNewest(w io.Writer) error {
	for _, one := range c.saving {
		key := append([]byte{one.kind}, one.name...)
		word := uint64(newestDoubt)
		if one.newest != nil {
			one.newest.word.And(^uint64(newestTouched)) // before the look: a change from now on is one for the next flush
			word = one.newest.word.Load()
		}
		if word&newestDoubt != 0 {
			c.saved.Delete(key)
		} else {
			c.saved.Put(key, binary.AppendUvarint(nil, word&newestTime))
		}
	}
	c.saving = nil
	c.saved.Freeze() // unless it is frozen, and was not written, already
	return c.saved.WriteFrozen(w)
}

// loadNewest reads the saved times. What has none is in doubt, and what cannot be read as well.
func (c *catalog) loadNewest(report *Report) {
	for m := range c.metricNames.all() {
		m.newest.word.Store(newestDoubt)
	}
	for e := range c.entityNames.all() {
		e.newest.word.Store(newestDoubt)
	}
	for e, err := range c.saved.Ascend(nil, nil) {
		if err != nil {
			report.Warnings = append(report.Warnings, "times of newest samples: "+err.Error())
			continue
		}
		name := shared(e.Key[1:])
		word, n := binary.Uvarint(e.Value)
		var into *newest
		switch e.Key[0] {
		case metricNewest:
			if m := c.lookupMetric(name); m != nil {
				into = &m.newest
			}
		case entityNewest:
			if e := c.lookupEntity(name); e != nil {
				into = &e.newest
			}
		}
		if into != nil && n > 0 && word <= newestTime {
			into.word.Store(word)
		}
	}
}
