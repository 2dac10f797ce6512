package storage

import (
	"github.com/tidemark-db/tidemark/storage/table"
)

// newTableShelf is the shelf of a table.
func newTableShelf(db *DB, name string, t *table.Table) *files[*table.File] {
	return &files[*table.File]{name: kindTable + "/" + fileKind(name), ops: fileOps[*table.File]{
		freeze:  t.Freeze,
		write:   t.WriteFrozen,
		open:    func(path string) (*table.File, error) { return table.OpenFile(db.fs, path) },
		close:   (*table.File).Close,
		adopt:   t.Adopt,
		plan:    t.PlanMerge,
		merge:   t.Merge,
		replace: t.Replace,
	}}
}
