package storage

import (
	"io"

	"github.com/tidemark-db/tidemark/storage/index"
)

// newIndexShelf is the shelf of the index, which closes its runs itself when their last reader is done. The index is made when all its runs are open.
func newIndexShelf(db *DB) shelf {
	return &files[*index.Run]{name: kindIndex, ops: fileOps[*index.Run]{
		freeze: func() bool { return db.index.Freeze() },
		write:  func(w io.Writer) error { return db.index.WriteFrozen(w) },
		open:   func(path string) (*index.Run, error) { return index.OpenRun(db.fs, path) },
		close:  func(*index.Run) error { return nil },
		adopt: func(r *index.Run) {
			if db.index == nil {
				db.runs = append(db.runs, r)
			} else {
				db.index.Adopt(r)
			}
		},
		plan:    func() []*index.Run { return db.index.PlanMerge() },
		merge:   func(w io.Writer, old []*index.Run) error { return index.MergeRuns(w, old, db.index.BelowOf(old)) },
		replace: func(old []*index.Run, merged *index.Run) { db.index.Replace(old, merged) },
	}}
}

// dead reports whether a series is known to be gone, so that its samples can go. While a part of the index cannot be read, a series that is not found may
// be there, and the part may come back from a backup.
func (st *state) dead(id index.ID) bool {
	return !st.index.Alive(id) && id >= st.unknown && st.index.Err() == nil
}

// openIndex makes the index of the runs that were opened.
func (db *DB) openIndex(next index.ID) {
	db.index = index.Open(db.opts.CacheBytes, db.runs, next)
	db.runs = nil
	db.index.OnDamage(func(r *index.Run, err error) { db.doubt(r.Path(), err) })
}
