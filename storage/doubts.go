package storage

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/storage/events"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/table"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A file of samples or of messages whose bytes the disk does not give any more is set aside: what it holds is a stretch of time. The index and the tables are
// asked about everything, so that much more would be missing without one of their files than what cannot be read of it. Such a file stays in use: a query that
// needs what cannot be read fails and names the file, everything else is served, and the file gets a mark, by which the next Open reads all of it.

// doubts are the files of the index and of tables of which something could not be read.
type doubts struct {
	mu    sync.Mutex        // a leaf
	found map[string]string // what was wrong first, by the base of the file
	marks chan string       // of files that the worker is to mark
}

// doubtExt ends the name of the mark of a file. In it is what was wrong.
const doubtExt = ".doubt"

// doubt notes that a part of a file cannot be read. It is logged once for each file.
func (db *DB) doubt(path string, err error) {
	d, base := &db.doubts, filepath.Base(path)
	d.mu.Lock()
	_, known := d.found[base]
	if !known {
		if d.found == nil {
			d.found = map[string]string{}
		}
		d.found[base] = err.Error()
	}
	d.mu.Unlock()
	if known {
		return
	}
	db.opts.Log("storage: " + err.Error() + ": queries that need it fail, all others do not; the next start reads the whole file: see tidemark check")
	select {
	case d.marks <- base:
	default: // many files at once: it is the disk, and others of them are marked
	}
}

// mark makes the next Open read all of a file.
func (db *DB) mark(base string) error {
	db.doubts.mu.Lock()
	text := db.doubts.found[base]
	db.doubts.mu.Unlock()
	path := filepath.Join(db.dir, dataDir, base+doubtExt)
	err := writeFile(db.fs, path, func(f vfs.File) error {
		_, err := f.WriteAt([]byte(text+"\n"), 0)
		return err
	})
	if err == nil {
		err = db.fs.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("mark %s: %w", base, err)
	}
	return nil
}

// list returns what was found since Open, in order of the files, for those files that are still in use.
func (d *doubts) list(m *manifest) []FileFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []FileFault
	for _, base := range slices.Sorted(maps.Keys(d.found)) {
		if slices.ContainsFunc(m.Files, func(e fileEntry) bool { return e.base() == base }) {
			list = append(list, FileFault{filepath.Join(dataDir, base), d.found[base]})
		}
	}
	return list
}

// reread reads all of the files that have a mark. A sound one loses it; what cannot be read of another one is reported, with each start, and the rest served.
func (db *DB) reread(m *manifest, report *Report) {
	for _, e := range m.Files {
		path := e.path(db.dir)
		if _, err := db.fs.Stat(path + doubtExt); err != nil {
			continue
		}
		var err error
		switch kind, _, _ := cutKind(e.Kind); kind {
		case kindIndex:
			err = index.CheckRun(db.fs, path)
		case kindTable:
			err = checkTableFile(db.fs, path)
		}
		if err == nil {
			db.opts.Log(fmt.Sprintf("storage: %s could not be read before the restart; all of it was read, and is sound", e.base()))
			err = db.fs.Remove(path + doubtExt)
			if err != nil {
				report.Warnings = append(report.Warnings, err.Error())
			}
			continue
		}
		report.addDamage(fmt.Sprintf("%s: a part cannot be read, the rest is in use: %v", path, err))
	}
}

func checkTableFile(fs vfs.FS, path string) error {
	f, err := table.OpenFile(fs, path)
	if err != nil {
		return err
	}
	return errors.Join(table.Check(f), f.Close())
}

// marked reports whether a name is the mark of a file that is live.
func marked(name string, live map[string]bool) bool {
	base, ok := strings.CutSuffix(name, doubtExt)
	return ok && live[base]
}

// unreadableFile is the base of the file that an error is about; "" when it does not say.
func unreadableFile(err error) string {
	var inSealed *events.DamageError // that of samples as well
	var inTable *table.DamageError
	var inRun *index.DamageError
	switch {
	case errors.As(err, &inSealed):
		return filepath.Base(inSealed.Path)
	case errors.As(err, &inTable):
		return filepath.Base(inTable.Path)
	case errors.As(err, &inRun):
		return filepath.Base(inRun.Path)
	}
	return ""
}
