package storage

import (
	"io"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/samples"
)

// sampleShelf is the shelf of samples: its memory parts and its files are the layers of the views.
type sampleShelf struct{ db *DB }

func (s sampleShelf) kind() fileKind { return kindSamples }

// freeze begins the next generation.
func (s sampleShelf) freeze() bool {
	st := s.db.state
	old := st.active
	if old.samples.Load() == 0 {
		return false
	}
	st.active = newGeneration(old.number + 1)
	st.active.removals = st.ended.Load()
	st.older = max(st.older, core.Time(old.newest.Load())-1)
	st.removals++
	st.views.change(func(next *view) { next.active, next.frozen = st.active, old })
	return true
}

func (s sampleShelf) write(w io.Writer) error {
	v := s.db.views.acquire()
	defer s.db.views.release(v)
	out := samples.NewWriter(w, v.frozen.number, v.frozen.number)
	removals := s.db.state.ended.Load()
	sound := v.frozen.removals == removals // none of its series has ended
	var b core.Block
	for one := range v.frozen.all() {
		if !sound && s.db.dead(one.id) {
			continue
		}
		one.copyTo(&b, window{Range: core.AllTime, versions: !one.numbersAlone(), most: math.MaxInt})
		if err := out.Add(samples.ID(one.id), &b); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	s.db.flusher.facts = factsOf(out, removals)
	return nil
}

// factsOf is what is known of a file that was written when so many series had ended.
func factsOf(out *samples.Writer, removals uint64) samples.Facts {
	return samples.Facts{Numbers: out.Flags()&(samples.HasSides|samples.HasVersions) == 0, Removals: removals}
}

func (s sampleShelf) open(e fileEntry, path string) (opened, error) {
	f, err := samples.Open(s.db.fs, path)
	if err == nil { // what was written last is what is opened next; of another file nothing is known
		f.Facts, s.db.flusher.facts = s.db.flusher.facts, samples.Facts{}
		f.Pages = &s.db.pages
	}
	return opened{e, f}, err
}

func (s sampleShelf) adopt(o opened)       { adopt(&s.db.views, o) }
func (s sampleShelf) entries() []fileEntry { return entriesOf(&s.db.views) }
func (s sampleShelf) close() error         { return closeAll(&s.db.views) }

// plan picks neighbours of about the same size, or a file that has much of what is past its retention.
func (s sampleShelf) plan() (merge, bool) {
	list := s.db.views.current.Load().files // the worker alone changes them
	from, to := planTiers(list, (*samples.File).Size, s.db.opts.maxMerged())
	if from == to {
		if now := s.db.opts.Now(); now >= s.db.flusher.expiry {
			s.db.flusher.expiry = now + expiryEvery
			return s.expired()
		}
		return merge{}, false
	}
	return s.merging(list[from:to]), true
}

func (s sampleShelf) whole() (todo []merge) {
	for _, list := range groups(s.db.views.current.Load().files, (*samples.File).Size, s.db.opts) {
		if len(list) > 1 || s.db.graves.any() || s.db.expiry().any {
			todo = append(todo, s.merging(list))
		}
	}
	return todo
}

func (s sampleShelf) merging(list []*sampleFile) merge {
	m := mergeOf(&s.db.views, list)
	m.write = func(w io.Writer) error { return s.db.mergeSamples(w, list) }
	return m
}
