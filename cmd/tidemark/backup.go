package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/api"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// storageDoor shows the storage engine to the HTTP interface.
type storageDoor struct {
	db        *storage.DB
	backupDir string
}

func (s storageDoor) Usage(context.Context) (api.StorageUsage, error) {
	u, err := s.db.Usage()
	if err != nil {
		return api.StorageUsage{}, err
	}
	out := api.StorageUsage{Position: u.Position, End: u.End, Series: u.Series, Bytes: u.Bytes, Journal: api.StorageJournal{Segments: u.Segments, Bytes: u.Journal},
		UploadBytes: u.Others, MemoryBytes: u.Memory, Failure: u.Failure, Refusal: u.Refusal, SetAside: u.SetAside, BackupActive: u.Backup,
		Recovery: api.StorageRecovery{Recovery: *recoveryOf(u.Found), Files: u.Found.Files, Samples: u.Found.Samples,
			Damage: u.Found.Damage, Frames: u.Found.Unreadable, Warnings: u.Found.Warnings}}
	if u.Free >= 0 {
		out.FreeBytes = &u.Free
	}
	for _, f := range u.Faults {
		out.Faults = append(out.Faults, api.StorageFault{File: f.File, Error: f.Error})
	}
	for _, k := range u.Kinds {
		out.Files = append(out.Files, api.StorageFiles{Kind: k.Kind, Files: k.Files, Bytes: k.Bytes, Rows: k.Rows})
	}
	if f := u.Flush; f.At != 0 {
		out.LastFlush = api.Flush(f.At, f.Took)
		out.LastFlush.Files, out.LastFlush.Bytes = f.Files, f.Bytes
	}
	return out, nil
}

func (s storageDoor) Compact(ctx context.Context) error { return s.db.Compact(ctx) }

func (s storageDoor) Backup(ctx context.Context, dir string) (api.Backup, error) {
	if err := staysBelow(s.backupDir, dir); err != nil {
		return api.Backup{}, err
	}
	r, err := s.db.Backup(ctx, dir)
	if err != nil {
		return api.Backup{}, err
	}
	return backupAnswer(dir, r), nil
}

func backupAnswer(dir string, r storage.BackupReport) api.Backup {
	return api.Backup{Target: dir, Position: r.Position, Files: r.Files, Bytes: r.Bytes, Copied: r.Copied, CopiedBytes: r.CopiedBytes, Removed: r.Removed,
		Damaged: r.Damaged, Millis: r.Duration.Milliseconds()}
}

// staysBelow refuses a directory that leads out of another one through a link. What does not exist yet leads nowhere.
func staysBelow(dir, target string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return core.Errorf(core.Invalid, "backup.dir: %v: make the directory first", err)
	}
	for ; ; target = filepath.Dir(target) {
		real, err := filepath.EvalSymlinks(target)
		switch {
		case errors.Is(err, os.ErrNotExist) && target != dir:
			if _, err := os.Lstat(target); err == nil {
				return core.Errorf(core.Invalid, "%s is a link to nowhere", target)
			}
		case err != nil:
			return core.Errorf(core.Invalid, "%v", err)
		case real != root && !strings.HasPrefix(real, root+string(filepath.Separator)):
			return core.Errorf(core.Invalid, "%s leads out of backup.dir", target)
		default:
			return nil
		}
	}
}

// interrupted ends with the first Ctrl-C or SIGTERM.
func interrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// ended says in the words of a user that Ctrl-C ended something.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// operator is a verb for whoever runs the server: it asks the server, or opens the data directory when no server has it.
type operator struct {
	remote
	Config string `help:"Configuration folder, for a data directory that no server uses." default:"./tidemark.d"`
}

// offline reports whether the data directory is there and no server has it. Who names a server means that one.
func (o *operator) offline() (bool, error) {
	if o.URL == "" { // an empty variable
		o.URL = defaultURL
	}
	if o.URL != defaultURL {
		return false, nil
	}
	path := filepath.Join(o.Data, "lock")
	if _, err := os.Stat(path); err != nil {
		return false, nil // the server, which may be elsewhere, is asked
	}
	lock, err := vfs.OS{}.Lock(path)
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, lock.Close()
}

// open opens the data directory with the settings of the server.
func (o *operator) open() (*storage.DB, error) {
	c, err := loadConfig(o.Config, map[string]string{"data": o.Data}, os.Environ())
	if err != nil {
		return nil, usageError{err}
	}
	opts := storageOptions(c)
	opts.Hold = func() core.Position { return 0 } // the rules of the server go on from the journal
	db, report, err := storage.Open(vfs.OS{}, c.Data, opts)
	if err == nil && report.Damaged() {
		fmt.Fprintln(os.Stderr, "tidemark: "+report.String())
	}
	return db, err
}

// during opens the data directory for the time of a function.
func (o *operator) during(do func(ctx context.Context, db *storage.DB) error) error {
	ctx, stop := interrupted()
	defer stop()
	db, err := o.open()
	if err != nil {
		return err
	}
	return errors.Join(ended(do(ctx, db)), db.Close(context.WithoutCancel(ctx)))
}

type backupCmd struct {
	operator
	Target string `arg:"" help:"Directory: absent, empty, or with an earlier backup, to which what is new is added. A running server takes those below its setting backup.dir."`
}

// Run makes a backup and says what it holds.
func (c *backupCmd) Run() error {
	offline, err := c.offline()
	if err != nil {
		return err
	}
	var b api.Backup
	if offline {
		err = c.during(func(ctx context.Context, db *storage.DB) error {
			r, err := db.Backup(ctx, c.Target)
			b = backupAnswer(c.Target, r)
			return err
		})
	} else {
		c.Endless = true
		err = c.call(http.MethodPost, "/api/v1/admin/backup", map[string]string{"target": c.Target}, &b)
	}
	if err != nil {
		return err
	}
	fmt.Printf("backup of position %d in %s: %d files, %d bytes\ncopied %d files, %d bytes, and removed %d, in %v\n", b.Position, b.Target, b.Files, b.Bytes,
		b.Copied, b.CopiedBytes, b.Removed, time.Duration(b.Millis)*time.Millisecond)
	return damagedFiles(b.Damaged)
}

// damagedFiles is an error that lists files.
func damagedFiles(list []string) error {
	for _, line := range list {
		fmt.Fprintln(os.Stderr, "damaged: "+line)
	}
	if len(list) > 0 {
		return fmt.Errorf("%d files are damaged; they were copied as they are: see tidemark check", len(list))
	}
	return nil
}

type restoreCmd struct {
	Backup  string `arg:"" help:"Directory of the backup." type:"existingdir"`
	Data    string `arg:"" help:"Data directory to make: absent or empty." type:"path"`
	Check   bool   `help:"Verify every structure as tidemark check does, besides the checksums of the files."`
	Damaged bool   `help:"Take files whose checksums are wrong; what is damaged in them stays so."`
}

// Run makes a data directory of a backup.
func (c *restoreCmd) Run() error {
	ctx, stop := interrupted()
	defer stop()
	bar := newProgress()
	r, err := storage.Restore(ctx, vfs.OS{}, storage.Restoring{Backup: c.Backup, Data: c.Data, Damaged: c.Damaged,
		Progress: func(done, total int64) { bar.show(done, total, "") }})
	bar.end()
	if err != nil {
		return ended(err)
	}
	for _, line := range r.Warnings {
		fmt.Fprintln(os.Stderr, "warning: "+line)
	}
	fmt.Printf("restored position %d into %s: %d files, %d bytes, in %v\n", r.Position, c.Data, r.Files, r.Bytes, r.Duration.Round(time.Millisecond))
	if c.Check {
		if err := check(ctx, c.Data); err != nil {
			return err
		}
	}
	return damagedFiles(r.Damaged)
}

type compactCmd struct{ operator }

// Run has the files of the database merged and says what that saved.
func (c *compactCmd) Run() error {
	offline, err := c.offline()
	if err != nil {
		return err
	}
	var sizes struct {
		FilesBefore, FilesAfter int
		BytesBefore, BytesAfter int64
		Millis                  int64
	}
	if offline {
		err = c.during(func(ctx context.Context, db *storage.DB) error {
			began, door := time.Now(), storageDoor{db: db}
			before, err := door.Usage(ctx)
			if err == nil {
				err = db.Compact(ctx)
			}
			after, afterErr := door.Usage(ctx)
			sizes.FilesBefore, sizes.BytesBefore, sizes.FilesAfter, sizes.BytesAfter = before.FileCount(), before.Bytes, after.FileCount(), after.Bytes
			sizes.Millis = time.Since(began).Milliseconds()
			return errors.Join(err, afterErr)
		})
	} else {
		c.Endless = true
		err = c.call(http.MethodPost, "/api/v1/admin/compact", nil, &sizes)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d files, %d bytes before; %d files, %d bytes after; in %v\n", sizes.FilesBefore, sizes.BytesBefore, sizes.FilesAfter, sizes.BytesAfter,
		time.Duration(sizes.Millis)*time.Millisecond)
	return nil
}

// progress is a line on a terminal that says how far something is.
type progress struct {
	on   bool
	last time.Time
	long int // of the line that stands there
}

// progressEvery is how often the line is written: more often nobody reads it.
const progressEvery = 200 * time.Millisecond

// newProgress shows nothing when standard error is no terminal.
func newProgress() *progress {
	return &progress{on: term.IsTerminal(int(os.Stderr.Fd())), last: time.Now()}
}

func (p *progress) show(done, total int64, what string) {
	if now := time.Now(); p.on && total > 0 && now.Sub(p.last) >= progressEvery {
		p.last = now
		line := fmt.Sprintf("%3d %% of %d MiB  %s", 100*done/total, total>>20, what)
		fmt.Fprintf(os.Stderr, "\r%-*s", p.long, line)
		p.long = len(line)
	}
}

// end wipes the line.
func (p *progress) end() {
	if p.long > 0 {
		fmt.Fprintf(os.Stderr, "\r%*s\r", p.long, "")
		p.long = 0
	}
}
