package storage

import (
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
//	| changes u19 | doubt u1 | time+1 u44 |     0 in the last part = no samples; 2^44 ms end in the year 2527
//
// Changes counts what happened while in doubt: a reader that has looked at the series publishes what it found only if the word is what it was before.
type newest struct{ word atomic.Uint64 }

const (
	newestDoubt = 1 << 44
	newestTime  = newestDoubt - 1
	newestOne   = newestDoubt << 1 // of changes
)

// raise notes a sample that is visible already.
func (n *newest) raise(t core.Time) {
	for {
		old := n.word.Load()
		next := max(old&newestTime, uint64(t)+1)
		if old&newestDoubt != 0 {
			next |= old&^uint64(newestTime) + newestOne
		} else if next |= old &^ uint64(newestTime); next == old {
			return
		}
		if n.word.CompareAndSwap(old, next) {
			return
		}
	}
}

// doubt notes that a sample at t, the newest of its series, is gone.
func (n *newest) doubt(t core.Time) {
	for {
		old := n.word.Load()
		if old&newestDoubt == 0 && uint64(t)+1 < old&newestTime {
			return
		}
		if n.word.CompareAndSwap(old, (old|newestDoubt)+newestOne) {
			return
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
	all := st.all()
	for _, id := range ids {
		s := all[id]
		if t, ok := s.newest(); ok && s.measured {
			last, some = max(last, t), true
		}
	}
	return last, some
}

func (st *state) newestOfMetric(m *metric, name string) (core.Time, bool) {
	return m.newest.get(func() (core.Time, bool) { return st.newestOf(st.index.Select(name, nil)) })
}

func (st *state) newestOfEntity(e *entity, name string) (core.Time, bool) {
	return e.newest.get(func() (core.Time, bool) { return st.newestOf(st.index.Select("", []string{name})) })
}

// written and forgotten tell the metric and the entity of a series about its samples. A forecast is not data.
func (s *series) written(t core.Time) {
	if s.measured {
		s.metric.newest.raise(t)
		s.entity.newest.raise(t)
	}
}

func (s *series) forgotten(t core.Time) {
	if s.measured {
		s.metric.newest.doubt(t)
		s.entity.newest.doubt(t)
	}
}
