package storage

import (
	"fmt"
	"io"
	"math"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
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
	st.older = max(st.older, core.Time(old.newest.Load())-1)
	st.removals++
	st.views.change(func(next *view) { next.active, next.frozen = st.active, old })
	return true
}

func (s sampleShelf) write(w io.Writer) error {
	v := s.db.views.acquire()
	defer s.db.views.release(v)
	out := samples.NewWriter(w, v.frozen.number, v.frozen.number)
	var b core.Block
	for one := range v.frozen.all() {
		if s.db.dead(one.id) {
			continue
		}
		one.copyTo(&b, window{Range: core.AllTime, versions: !one.numbersAlone(), most: math.MaxInt})
		if err := out.Add(samples.ID(one.id), &b); err != nil {
			return err
		}
	}
	return out.Close()
}

func (s sampleShelf) open(e fileEntry, path string) (opened, error) {
	f, err := samples.Open(s.db.fs, path)
	return opened{e, f}, err
}

func (s sampleShelf) adopt(o opened)       { adopt(&s.db.views, o) }
func (s sampleShelf) entries() []fileEntry { return entriesOf(&s.db.views) }
func (s sampleShelf) close() error         { return closeAll(&s.db.views) }

// plan picks neighbours of about the same size, or a file that has much of what is past its retention.
func (s sampleShelf) plan() (merge, bool) {
	list := s.db.views.current.Load().files // the worker alone changes them
	from, to := planTiers(list, func(f *samples.File) int64 { return f.Size() })
	if from == to {
		if now := s.db.opts.Now(); now >= s.db.flusher.expiry {
			s.db.flusher.expiry = now + expiryEvery
			return s.expired()
		}
		return merge{}, false
	}
	return s.merging(list[from:to]), true
}

func (s sampleShelf) whole() (merge, bool) {
	list := s.db.views.current.Load().files
	if len(list) == 0 || len(list) == 1 && !s.db.graves.any() && !s.db.expiry().any {
		return merge{}, false
	}
	return s.merging(list), true
}

func (s sampleShelf) merging(list []*sampleFile) merge {
	m := mergeOf(&s.db.views, list)
	m.write = func(w io.Writer) error { return s.db.mergeSamples(w, list) }
	return m
}

// mergeSamples writes what of the files, from new to old, is still of use.
func (db *DB) mergeSamples(w io.Writer, list []*sampleFile) error {
	oldest, newest := list[len(list)-1].file.Oldest(), list[0].file.Generation()
	m := merger{db: db, expiry: db.expiry(), out: samples.NewWriter(w, oldest, newest), view: &view{files: list}}
	m.scanner = newScanner(m.view, db.state)
	defer m.scanner.close()
	for id, err := range m.ids() {
		if err != nil {
			return err
		}
		if db.dead(index.ID(id)) {
			continue
		}
		if err := m.series(id); err != nil {
			return fmt.Errorf("series %d: %w", id, err)
		}
	}
	return m.out.Close()
}
