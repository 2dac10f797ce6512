package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Restoring says what Restore is to do.
type Restoring struct {
	Backup string // directory that Backup filled
	Data   string // data directory to be: absent or empty
	// Damaged takes files whose bytes are not those that were written. Without it they are an error.
	Damaged  bool
	Progress func(done, total int64) // of bytes; nil: nobody asks
}

// RestoreReport is what Restore did.
type RestoreReport struct {
	Position core.Position // of the newest batch
	Files    int
	Bytes    int64
	Damaged  []string // files that were taken all the same
	Warnings []string
	Duration time.Duration
}

// restoreMark is in a data directory until all of a backup is in it: half of one must not be taken for a database.
const restoreMark = "RESTORE.unfinished"

// Restore makes a data directory of a backup. Before anything is written it is known that the manifest is sound and that all files are there with their sizes; the
// checksum of each file is verified while it is copied. After an error or a crash Open refuses the directory, and Restore can be called again.
func Restore(ctx context.Context, fs vfs.FS, r Restoring) (report RestoreReport, err error) {
	began := time.Now()
	m, err := r.examine(fs, &report)
	if err != nil {
		return report, err
	}
	locked, err := r.begin(fs)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	c := copier{fs: fs, from: r.Backup, to: r.Data, progress: r.Progress, total: report.Bytes}
	for _, e := range m.Files {
		if err := c.copy(ctx, e); err != nil {
			return report, fmt.Errorf("storage: restore: %w", err)
		}
		if len(c.damaged) > 0 && !r.Damaged {
			return report, fmt.Errorf("storage: restore: the backup is damaged: %s", c.damaged[0])
		}
	}
	report.Damaged = c.damaged
	if err := fs.SyncDir(filepath.Join(r.Data, dataDir)); err != nil {
		return report, fmt.Errorf("storage: restore: %w", err)
	}
	if err := m.write(fs, r.Data); err != nil {
		return report, err
	}
	err = fs.Remove(filepath.Join(r.Data, restoreMark))
	for _, dir := range [...]string{r.Data, filepath.Dir(r.Data)} {
		if err == nil {
			err = fs.SyncDir(dir)
		}
	}
	if err != nil {
		return report, fmt.Errorf("storage: restore: %w", err)
	}
	report.Duration = time.Since(began)
	return report, nil
}

// examine reads the manifest of the backup and looks whether its files are there.
func (r *Restoring) examine(fs vfs.FS, report *RestoreReport) (manifest, error) {
	m, used, err := manifestOf(fs, r.Backup)
	if errors.Is(err, vfs.ErrNotExist) {
		return m, fmt.Errorf("storage: restore: %s holds no backup: it has no %s", r.Backup, manifestFile)
	}
	if err != nil {
		return m, fmt.Errorf("storage: restore %s: %w", r.Backup, err)
	}
	if used != manifestFile {
		report.Warnings = append(report.Warnings, "the manifest of the backup is damaged: its copy was used")
	}
	if _, err := fs.Stat(filepath.Join(r.Backup, journalDir)); err == nil {
		return m, fmt.Errorf("storage: restore: %s is a data directory with a journal, no backup: stop its server and copy it, or make a backup of it", r.Backup)
	}
	var faults []error
	for _, e := range m.Files {
		if err := checkSize(fs, r.Backup, e); err != nil {
			faults = append(faults, err)
		}
		report.Bytes += e.Size
	}
	report.Position, report.Files = m.Position, len(m.Files)
	if len(faults) > 0 {
		return m, fmt.Errorf("storage: restore: the backup is not complete: %w", errors.Join(faults...))
	}
	return m, nil
}

// checkSize looks whether a file is there with the size that it should have.
func checkSize(fs vfs.FS, dir string, e fileEntry) error {
	info, err := fs.Stat(e.path(dir))
	if err == nil && info.Size != e.Size {
		err = fmt.Errorf("it has %d bytes and should have %d", info.Size, e.Size)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.path(dir), err)
	}
	return nil
}

// begin locks the data directory to be, empties it of what an earlier try left, and marks it as unfinished.
func (r *Restoring) begin(fs vfs.FS) (locked io.Closer, err error) {
	list, err := fs.List(r.Data)
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return nil, fmt.Errorf("storage: restore: %w", err)
	}
	mark := filepath.Join(r.Data, restoreMark)
	_, err = fs.Stat(mark)
	again := err == nil
	for _, info := range list {
		if free := info.Name == lockFile || info.Name == "lost+found" || info.Name == restoreMark; !free && !(again && ours(info.Name)) {
			return nil, fmt.Errorf("storage: restore: %s is not empty: it holds %s", r.Data, info.Name)
		}
	}
	if err := fs.MkdirAll(r.Data); err != nil {
		return nil, fmt.Errorf("storage: restore: %w", err)
	}
	if locked, err = fs.Lock(filepath.Join(r.Data, lockFile)); err != nil {
		return nil, fmt.Errorf("storage: restore: %w", err)
	}
	if err = writeFile(fs, mark, func(f vfs.File) error { return nil }); err == nil {
		err = fs.SyncDir(r.Data)
	}
	if err == nil {
		err = fs.MkdirAll(filepath.Join(r.Data, dataDir))
	}
	if err == nil {
		err = r.clear(fs, list)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("storage: restore: %w", err), locked.Close())
	}
	return locked, nil
}

// clear removes what an earlier try left.
func (r *Restoring) clear(fs vfs.FS, list []vfs.Info) error {
	var errs []error
	for _, info := range list {
		if !info.Dir && info.Name != lockFile && info.Name != restoreMark {
			errs = append(errs, fs.Remove(filepath.Join(r.Data, info.Name)))
		}
	}
	dir := filepath.Join(r.Data, dataDir)
	files, err := fs.List(dir)
	errs = append(errs, err)
	for _, info := range files {
		errs = append(errs, fs.Remove(filepath.Join(dir, info.Name)))
	}
	return errors.Join(errs...)
}

// refuseHalf is an error for a directory in which a restore did not come to its end.
func refuseHalf(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(filepath.Join(dir, restoreMark)); err == nil {
		return fmt.Errorf("storage: a restore into %s did not come to its end: run it again", dir)
	}
	return nil
}
