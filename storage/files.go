package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// foundFiles is what openFiles found and settleFiles has to set right.
type foundFiles struct {
	manifest manifest
	none     bool        // it is damaged, and so is its copy: nothing is in use
	lost     []fileEntry // that cannot be used
}

// openFiles reads the manifest and opens the files it names. It changes nothing, as the rest of the directory may turn out to be of a later release.
func (db *DB) openFiles(report *Report) (o foundFiles, err error) {
	if err := db.fs.MkdirAll(filepath.Join(db.dir, dataDir)); err != nil {
		return o, fmt.Errorf("storage: make %s: %w", dataDir, err)
	}
	m, err := db.findManifest(report)
	switch {
	case errors.Is(err, errNoManifest):
		o.none = true
	case err != nil:
		return o, err
	}
	m.Files = db.identify(m.Files, report)
	db.flusher.manifest = m
	db.flusher.current.Store(&m)
	db.state = newState(db.opts, m)
	db.world = world{state: db.state, zone: db.opts.Zone, now: db.opts.Now}
	db.flusher.shelves = db.state.shelves(db)
	for _, e := range m.Files {
		err := db.openFile(e)
		if isLater(err) {
			return o, fmt.Errorf("storage: %w", err)
		}
		if err != nil {
			o.lost = append(o.lost, e)
			report.addDamage(err.Error())
		}
	}
	o.manifest = m
	return o, nil
}

// settleFiles sets aside, and reports, what cannot be used: the server starts without it. It removes files that the manifest does not name, and completes the state.
func (db *DB) settleFiles(o foundFiles, report *Report) error {
	m := o.manifest
	if o.none {
		if err := db.setAside(); err != nil {
			return err
		}
	}
	for _, e := range o.lost {
		if e.Kind == kindIndex {
			m.Unknown = m.NextSeries
			db.flusher.manifest.Unknown = m.Unknown
		}
		if err := db.quarantine(e); err != nil {
			report.Warnings = append(report.Warnings, err.Error())
		}
	}
	db.state.unknown = m.Unknown
	db.openIndex(m.NextSeries)
	if err := db.index.Err(); err != nil { // met while the runs were laid over each other
		report.addDamage(err.Error())
	}
	db.sweepFiles(m, report)
	db.reread(&m, report)
	db.disk.count(&m)
	report.Files = len(m.Files) - len(o.lost)
	return db.state.load(report)
}

func (db *DB) openFile(e fileEntry) error {
	for _, s := range db.flusher.shelves {
		if s.kind() != e.Kind {
			continue
		}
		path := e.path(db.dir)
		o, err := s.open(e, path)
		if isLater(err) {
			return err
		}
		if wrong := e.compare(db.fs, path); wrong != nil {
			if c, ok := o.file.(io.Closer); ok && err == nil {
				_ = c.Close() // nothing was written
			}
			err = wrong
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		s.adopt(o)
		return nil
	}
	return fmt.Errorf("%s: %w", e.path(db.dir), errKind)
}

// errKind says that a manifest, whose checksum is right, names what only a later release can have written.
var errKind = errors.New("a file of a kind that this program does not know: it was written by a later release: start that release, or restore a backup")

// compare returns why a file is not the one that e stands for, nil when it is.
func (e fileEntry) compare(fs vfs.FS, path string) error {
	size, end, err := endOf(fs, path)
	switch {
	case err != nil:
		return err
	case size != e.Size:
		return fmt.Errorf("it has %d bytes and should have %d", size, e.Size)
	case e.End != 0 && end != e.End:
		return errors.New("it is not the file that was written under this name")
	}
	return nil
}

// endOf returns the size of a file and the checksum of its last bytes, or of all when there are fewer.
func endOf(fs vfs.FS, path string) (size int64, end uint32, err error) {
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close() // read only
	if size, err = f.Size(); err != nil {
		return 0, 0, err
	}
	b := make([]byte, min(size, endBytes))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && len(b) > 0 {
		return 0, 0, err
	}
	return size, crc32.Checksum(b, castagnoli), nil
}

// identify looks whether the files are those that the manifest means. Those that somebody has exchanged for one another are each taken for what they hold;
// of a file that is none of them, openFile tells.
func (db *DB) identify(list []fileEntry, report *Report) []fileEntry {
	list = slices.Clone(list)
	var wrong []*fileEntry
	var found []fileEntry // what is there under their names, until it is known what it is
	for i := range list {
		e := &list[i]
		size, end, err := endOf(db.fs, e.path(db.dir))
		if e.End != 0 && (err != nil || size != e.Size || end != e.End) {
			wrong = append(wrong, e)
			found = append(found, fileEntry{Kind: e.Kind, Number: e.Number, Size: size, End: end})
		}
	}
	take := func(e *fileEntry, is func(f fileEntry) bool) bool {
		i := slices.IndexFunc(found, is)
		if i < 0 {
			return false
		}
		e.Number = found[i].Number
		found = slices.Delete(found, i, i+1)
		return true
	}
	var unknown []*fileEntry
	for _, e := range wrong {
		meant := e.base()
		if !take(e, func(f fileEntry) bool { return f.Kind == e.Kind && f.Size == e.Size && f.End == e.End }) {
			unknown = append(unknown, e)
			continue
		}
		report.addDamage(fmt.Sprintf("%s has been exchanged with another file: it is read as %s, which it is", e.base(), meant))
	}
	for _, e := range unknown { // one of the names that are left, so that no file is both in use and set aside
		take(e, func(f fileEntry) bool { return f.Kind == e.Kind })
	}
	return list
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
		if !info.Dir && !live[info.Name] && !marked(info.Name, live) && !strings.HasSuffix(info.Name, ".damaged") {
			err = errors.Join(err, db.fs.Remove(filepath.Join(dir, info.Name)))
		}
	}
	if err != nil {
		report.Warnings = append(report.Warnings, "files that are not in use could not be removed: "+err.Error())
	}
}

// errNoManifest says that the manifest and its copy are damaged.
var errNoManifest = errors.New("storage: no manifest can be read")

// findManifest reads the manifest, or its copy when it is damaged. When both are, there is no telling which files belong together: errNoManifest, and all are to be set aside.
func (db *DB) findManifest(report *Report) (manifest, error) {
	m, err := readManifest(db.fs, db.dir, manifestFile)
	if err == nil {
		return m, nil
	}
	if !errors.Is(err, errManifest) && !errors.Is(err, vfs.ErrNotExist) && !isLater(err) {
		return m, err
	}
	copied, copyErr := readManifest(db.fs, db.dir, manifestCopy)
	switch {
	case isLater(err) && !(copyErr == nil && db.sameBody(err)):
		return m, err // its copy may be older than it, and must not decide which files are in use
	case copyErr == nil:
		report.addDamage(fmt.Sprintf("%v: its copy was used", err))
		return copied, nil
	case errors.Is(err, vfs.ErrNotExist) && errors.Is(copyErr, vfs.ErrNotExist):
		return m, nil // a new database
	case !errors.Is(copyErr, errManifest) && !errors.Is(copyErr, vfs.ErrNotExist): // of a later release, or it may be read another time
		return m, copyErr
	}
	report.addDamage(fmt.Sprintf("%v, and so is its copy: all files are set aside", err))
	return m, errNoManifest
}

// sameBody reports whether a manifest of a later version has the body of its copy: then it is only its version that is damaged.
func (db *DB) sameBody(err error) bool {
	var later *laterManifest
	if !errors.As(err, &later) {
		return false
	}
	b, err := readAll(db.fs, filepath.Join(db.dir, manifestCopy), maxManifest)
	return err == nil && len(b) >= manifestHeader && bytes.Equal(b[manifestHeader:], later.body)
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
	for _, r := range db.runs { // of an index that was not made
		errs = append(errs, r.Close())
	}
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
