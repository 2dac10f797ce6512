package storage

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// openFiles reads the manifest, opens the files it names, and removes those that it does not name. A file that cannot be used is set aside and reported:
// the server starts without it.
func (db *DB) openFiles(report *Report) error {
	if err := db.fs.MkdirAll(filepath.Join(db.dir, dataDir)); err != nil {
		return fmt.Errorf("storage: make %s: %w", dataDir, err)
	}
	m, err := db.findManifest(report)
	if err != nil {
		return err
	}
	db.flusher.manifest = m
	db.flusher.current.Store(&m)
	db.state = newState(db.opts, m)
	db.world = world{state: db.state, zone: db.opts.Zone, now: db.opts.Now}
	db.flusher.shelves = db.state.shelves(db)
	var lost []fileEntry
	for _, e := range m.Files {
		if err := db.openFile(e); err != nil {
			lost = append(lost, e)
			report.addDamage(err.Error())
		}
	}
	for _, e := range lost {
		if e.Kind == kindIndex {
			m.Unknown = m.NextSeries
			db.flusher.manifest.Unknown = m.Unknown
		}
		if err := db.quarantine(e); err != nil {
			report.Warnings = append(report.Warnings, err.Error())
		}
	}
	db.state.unknown = m.Unknown
	db.openIndex(db.opts, m.NextSeries)
	if err := db.index.Err(); err != nil { // met while the runs were laid over each other
		report.addDamage(err.Error())
	}
	db.sweepFiles(m, report)
	db.disk.count(&m)
	report.Files = len(m.Files) - len(lost)
	return db.state.load(report)
}

func (db *DB) openFile(e fileEntry) error {
	for _, s := range db.flusher.shelves {
		if s.kind() != e.Kind {
			continue
		}
		path := e.path(db.dir)
		info, err := db.fs.Stat(path)
		if err == nil && info.Size != e.Size {
			err = fmt.Errorf("it has %d bytes and should have %d", info.Size, e.Size)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		o, err := s.open(e, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s.adopt(o)
		return nil
	}
	return fmt.Errorf("%s: a file of a kind that this program does not know", e.path(db.dir))
}

// sweepFiles removes what a crash left behind: files that are in no manifest. Files that were set aside stay.
func (db *DB) sweepFiles(m manifest, report *Report) {
	live := map[string]bool{}
	for _, e := range m.Files {
		live[e.base()] = true
	}
	dir := filepath.Join(db.dir, dataDir)
	list, err := db.fs.List(dir)
	for _, info := range list {
		if !info.Dir && !live[info.Name] && !strings.HasSuffix(info.Name, ".damaged") {
			err = errors.Join(err, db.fs.Remove(filepath.Join(dir, info.Name)))
		}
	}
	if err != nil {
		report.Warnings = append(report.Warnings, "files that are not in use could not be removed: "+err.Error())
	}
}

// findManifest reads the manifest, or its copy when it is damaged. When both are, there is no telling which files belong together: all are set aside.
func (db *DB) findManifest(report *Report) (manifest, error) {
	m, err := readManifest(db.fs, db.dir, manifestFile)
	if err == nil {
		return m, nil
	}
	if !errors.Is(err, errManifest) && !errors.Is(err, vfs.ErrNotExist) && !errors.Is(err, errVersion) {
		return m, err
	}
	copied, copyErr := readManifest(db.fs, db.dir, manifestCopy)
	switch {
	case copyErr == nil:
		report.addDamage(fmt.Sprintf("%v: its copy was used", err))
		return copied, nil
	case errors.Is(err, vfs.ErrNotExist) && errors.Is(copyErr, vfs.ErrNotExist):
		return m, nil // a new database
	case errors.Is(err, errVersion):
		return m, err
	case !errors.Is(copyErr, errManifest) && !errors.Is(copyErr, vfs.ErrNotExist): // of a later release, or it may be read another time
		return m, copyErr
	}
	report.addDamage(fmt.Sprintf("%v, and so is its copy: all files are set aside", err))
	return m, db.setAside()
}

// setAside moves everything but the journal out of the way.
func (db *DB) setAside() error {
	dir := filepath.Join(db.dir, dataDir)
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.%d.damaged", dir, n)
		if _, err := db.fs.Stat(aside); err == nil {
			continue
		}
		err := db.fs.Rename(dir, aside)
		for _, name := range [...]string{manifestFile, manifestCopy} {
			if e := db.fs.Rename(filepath.Join(db.dir, name), filepath.Join(aside, name)); !errors.Is(e, vfs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return errors.Join(err, db.fs.MkdirAll(dir))
	}
}

// closeFiles closes what readers have let go of.
func (db *DB) closeFiles() error {
	if db.state == nil {
		return nil
	}
	if db.index != nil {
		db.index.Close()
	}
	var errs []error
	for _, s := range db.flusher.shelves {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// entries are the graves as the manifest keeps them.
func (gs *graves) entries() []graveEntry {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	var list []graveEntry
	for id, of := range gs.byID {
		for _, g := range of {
			list = append(list, graveEntry{id, g.Start, g.End, g.before})
		}
	}
	slices.SortFunc(list, byAge)
	return list
}

// byAge orders graves: the list must not depend on the order of a map.
func byAge(a, b graveEntry) int {
	return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(a.Before, b.Before), cmp.Compare(a.Start, b.Start))
}

func newGraves(list []graveEntry) map[index.ID][]grave {
	m := make(map[index.ID][]grave, len(list))
	for _, e := range list {
		m[e.Series] = append(m[e.Series], grave{core.Range{Start: e.Start, End: e.End}, e.Before})
	}
	return m
}
