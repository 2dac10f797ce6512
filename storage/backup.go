package storage

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A backup is a directory that looks like a data directory without a journal: the manifest and the files that it names. Files never change, so the next
// backup into the same directory copies only what is new.

// BackupReport is what a backup did.
type BackupReport struct {
	Position    core.Position // the backup holds everything up to it
	Files       int           // in the backup
	Bytes       int64         // of them
	Copied      int           // files that were not there yet
	CopiedBytes int64
	Removed     int      // files of the backup before that are of no use any more
	Damaged     []string // files whose bytes are not those that were written: they were copied as they are
	Duration    time.Duration
}

// Backup copies the database as it is now to the directory target, which is empty, absent, or holds an earlier backup of this database. Reads and writes go on
// beside it. The backup that was there stays whole until the new one is; who is interrupted starts again. There is one backup at a time.
func (db *DB) Backup(ctx context.Context, target string) (report BackupReport, err error) {
	began := time.Now()
	if !db.flusher.pins.take() {
		return report, core.Errorf(core.Unavailable, "a backup is running: wait for its end")
	}
	defer func() { err = errors.Join(err, db.unpin()) }()
	t, err := openTarget(db.fs, target)
	if err != nil {
		return report, backupError(err)
	}
	defer func() { err = errors.Join(err, t.lock.Close()) }()
	m, err := db.settle(ctx)
	if err != nil {
		return report, backupError(err)
	}
	c := copier{fs: db.fs, from: db.dir, to: target, stop: db.flusher.stop}
	if err := t.fill(ctx, &c, m); err != nil {
		return report, backupError(err)
	}
	report = BackupReport{Position: m.Position, Files: len(m.Files), Copied: c.files, CopiedBytes: c.bytes, Damaged: c.damaged}
	for _, e := range m.Files {
		report.Bytes += e.Size
	}
	if report.Removed, err = t.sweep(m); err != nil {
		err = fmt.Errorf("storage: the backup is complete, but files of the one before could not be removed: %w", err)
	}
	report.Duration = time.Since(began)
	return report, err
}

// settle writes what is in memory to files and returns the manifest of all of them.
func (db *DB) settle(ctx context.Context) (m manifest, err error) {
	err = db.ask(ctx, func(ctx context.Context) error {
		f := &db.flusher
		if f.pending != nil { // what an earlier try left
			if err := db.flush(ctx); err != nil {
				return err
			}
		}
		if err := db.flush(ctx); err != nil {
			return err
		}
		m = f.manifest
		m.Files = nil // one that could not be opened is still in the manifest
		for _, s := range f.shelves {
			m.Files = append(m.Files, s.entries()...)
		}
		return nil
	})
	return m, err
}

// backupError tells an administrator what went wrong: he may know paths and the words of the system.
func backupError(err error) error {
	var known *core.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, vfs.ErrNoSpace):
		return core.Wrap(core.NoSpace, err, "no room for the backup: the one before is still whole")
	}
	return core.Wrap(core.Unavailable, err, "the backup failed: "+err.Error())
}

// pins hold files back that a backup copies: what is replaced meanwhile is removed at its end.
type pins struct {
	mu   sync.Mutex // a leaf
	held bool
	late []fileEntry
}

// take begins to hold back; false when somebody does.
func (p *pins) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return false
	}
	p.held = true
	return true
}

// defers reports whether the removal of a file is put off.
func (p *pins) defers(e fileEntry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.late = append(p.late, e)
	}
	return p.held
}

func (p *pins) give() (late []fileEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late = p.late
	p.held, p.late = false, nil
	return late
}

func (db *DB) unpin() error {
	var errs []error
	for _, e := range db.flusher.pins.give() {
		errs = append(errs, db.removeIfThere(e.path(db.dir)))
	}
	return errors.Join(errs...)
}

// target is the directory that a backup goes to.
type target struct {
	fs   vfs.FS
	dir  string
	lock io.Closer
	old  manifest // of the backup before
}

// openTarget locks a directory that can take a backup.
func openTarget(fs vfs.FS, dir string) (*target, error) {
	list, err := fs.List(dir)
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return nil, err
	}
	t := &target{fs: fs, dir: dir}
	var used string
	t.old, used, err = manifestOf(fs, dir)
	switch {
	case slices.ContainsFunc(list, func(i vfs.Info) bool { return i.Name == journalDir }):
		return nil, core.Errorf(core.Invalid, "%s is the data directory of a database: choose another directory", dir)
	case err != nil && !errors.Is(err, vfs.ErrNotExist):
		return nil, core.Errorf(core.Invalid, "%s holds a backup that cannot be read (%v): remove it, or choose another directory", dir, err)
	case used == "":
		for _, info := range list {
			if !ours(info.Name) {
				return nil, core.Errorf(core.Invalid, "%s holds %s and no backup: choose an empty directory", dir, info.Name)
			}
		}
	}
	if err := fs.MkdirAll(filepath.Join(dir, dataDir)); err != nil {
		return nil, err
	}
	t.lock, err = fs.Lock(filepath.Join(dir, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, core.Errorf(core.Invalid, "%s is in use: another backup or a server has it", dir)
	}
	return t, err
}

// ours reports whether a name in a directory may be what an interrupted backup or restore left, or what a new file system comes with.
func ours(name string) bool {
	switch strings.TrimSuffix(name, ".tmp") {
	case lockFile, dataDir, manifestFile, manifestCopy, "lost+found":
		return true
	}
	return false
}

// fill copies the files of m that are not there, and then puts m in the place of the manifest before.
func (t *target) fill(ctx context.Context, c *copier, m manifest) error {
	missing, err := t.missing(m)
	if err != nil {
		return err
	}
	for _, e := range missing {
		c.total += e.Size
	}
	for _, e := range missing {
		if err := c.copy(ctx, e); err != nil {
			return err
		}
	}
	if err := t.fs.SyncDir(filepath.Join(t.dir, dataDir)); err != nil {
		return err
	}
	if err := m.write(t.fs, t.dir); err != nil {
		return err
	}
	return t.fs.SyncDir(filepath.Dir(t.dir)) // the directory may be new
}

// missing returns the files of m that have to be copied. What an interrupted backup left is read, as nobody vouches for it.
func (t *target) missing(m manifest) (list []fileEntry, err error) {
	before := map[string]fileEntry{}
	for _, e := range t.old.Files {
		before[e.base()] = e
	}
	for _, e := range m.Files {
		old, named := before[e.base()]
		if named && old != e {
			return nil, core.Errorf(core.Invalid, "%s holds a backup of another database, or of another life of this one: choose an empty directory", t.dir)
		}
		info, err := t.fs.Stat(e.path(t.dir))
		there := err == nil && info.Size == e.Size
		if there && !named {
			sum, err := sumOf(t.fs, e.path(t.dir))
			if err != nil {
				return nil, err
			}
			there = sum == e.Sum
		}
		if !there {
			list = append(list, e)
		}
	}
	return list, nil
}

// sweep removes the files that the new manifest does not name. Only names that a database gives are touched.
func (t *target) sweep(m manifest) (removed int, err error) {
	live := map[string]bool{}
	for _, e := range m.Files {
		live[e.base()] = true
	}
	dir := filepath.Join(t.dir, dataDir)
	list, err := t.fs.List(dir)
	for _, info := range list {
		if number, _, _ := strings.Cut(info.Name, "."); info.Dir || live[info.Name] || len(number) != 10 || strings.Trim(number, "0123456789") != "" {
			continue
		}
		err = errors.Join(err, t.fs.Remove(filepath.Join(dir, info.Name)))
		removed++
	}
	return removed, err
}

// copier copies files of one data directory to another.
type copier struct {
	fs       vfs.FS
	from, to string
	stop     <-chan struct{}         // closed when the database is; may be nil
	progress func(done, total int64) // nil: nobody asks
	total    int64

	files   int
	bytes   int64
	damaged []string
}

// copyUnit is how much is read at a time: a copy that is to end does not go on for long.
const copyUnit = 1 << 20

// copy copies a file, makes it durable but for its name, and compares it with its checksum.
func (c *copier) copy(ctx context.Context, e fileEntry) error {
	path := e.path(c.to)
	var size int64
	var sum uint32
	err := writeFile(c.fs, path+".tmp", func(f vfs.File) error {
		out := &appender{f: f}
		err := eachPart(c.fs, e.path(c.from), func(part []byte) error {
			select {
			case <-c.stop:
				return core.Errorf(core.Unavailable, "the database is closed")
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			if _, err := out.Write(part); err != nil {
				return err
			}
			if c.bytes += int64(len(part)); c.progress != nil {
				c.progress(c.bytes, c.total)
			}
			return nil
		})
		size, sum = out.at, out.sum
		return err
	})
	if err == nil {
		err = c.fs.Rename(path+".tmp", path)
	}
	if err != nil {
		if removeErr := c.fs.Remove(path + ".tmp"); !errors.Is(removeErr, vfs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
		return fmt.Errorf("copy %s: %w", e.path(c.from), err)
	}
	c.files++
	if size != e.Size || sum != e.Sum {
		c.damaged = append(c.damaged, fmt.Sprintf("%s: %d bytes with the checksum %08x, and %d with %08x were written", e.path(c.from), size, sum, e.Size, e.Sum))
	}
	return nil
}

// eachPart reads a file from front to back. A part is valid until the next one.
func eachPart(fs vfs.FS, path string, visit func(part []byte) error) error {
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return err
	}
	defer f.Close() // read only
	buf := make([]byte, copyUnit)
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		if at += int64(n); n > 0 {
			if err := visit(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sumOf is the CRC-32C of a file.
func sumOf(fs vfs.FS, path string) (sum uint32, err error) {
	err = eachPart(fs, path, func(part []byte) error {
		sum = crc32.Update(sum, castagnoli, part)
		return nil
	})
	return sum, err
}
