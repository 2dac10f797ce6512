package storage

import (
	"github.com/tidemark-db/tidemark/storage/table"
)

// newTableShelf is the shelf of a table.
func newTableShelf(db *DB, name string, t *table.Table) *files[*table.File] {
	return &files[*table.File]{name: kindTable + "/" + fileKind(name), ops: fileOps[*table.File]{
		freeze: t.Freeze,
		write:  t.WriteFrozen,
		open: func(path string) (*table.File, error) {
			f, err := table.OpenFile(db.fs, path)
			if err == nil {
				f.OnDamage(func(err error) { db.doubt(path, err) })
			}
			return f, err
		},
		close:   (*table.File).Close,
		adopt:   t.Adopt,
		plan:    t.PlanMerge,
		merge:   t.Merge,
		replace: t.Replace,
	}}
}
