package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

const (
	// lockPatience is how long a start waits for the lock of the data directory: a server that was killed holds it until the system has taken its memory apart.
	lockPatience = 2 * time.Second
	lockPause    = 20 * time.Millisecond // between two attempts
	lockName     = "lock"                // of the file in the data directory
)

// openStorage opens the database in the data directory, with some patience for its lock.
func openStorage(ctx context.Context, dir string, options storage.Options, log *slog.Logger) (db *storage.DB, report storage.Report, err error) {
	err = whenUnlocked(ctx, dir, log, func() (err error) {
		db, report, err = storage.Open(vfs.OS{}, dir, options)
		return err
	})
	return db, report, err
}

// whenUnlocked calls open until the data directory is not locked, for lockPatience at most. The error then says which process to look for.
func whenUnlocked(ctx context.Context, dir string, log *slog.Logger, open func() error) error {
	patience := time.NewTimer(lockPatience)
	defer patience.Stop()
	told := false
	for {
		err := open()
		if !errors.Is(err, vfs.ErrLocked) {
			return err
		}
		if !told {
			log.Info("the data directory is locked by "+holder(dir)+": waiting for it to end", "directory", dir, "at most", lockPatience)
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return fmt.Errorf("the data directory %s is in use by %s: stop it, or choose another directory with --data: %w", dir, holder(dir), err)
		case <-time.After(lockPause):
		}
	}
}

// holder names the process that holds the lock of a data directory, as well as the system tells.
func holder(dir string) string {
	path := filepath.Join(dir, lockName)
	unknown := "another process (lsof " + path + " shows which)"
	info, err := os.Stat(path)
	if err != nil {
		return unknown
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unknown
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return unknown // not Linux
	}
	pid := lockHolder(string(locks), uint64(file.Ino))
	if pid <= 0 {
		return unknown
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}

// lockHolder finds the process that holds a flock on an inode in the text of /proc/locks (proc_locks(5)), whose lines are
//
//	1: FLOCK  ADVISORY  WRITE 708 00:13:1234 0 EOF
//
// with the process after the mode, then major:minor:inode. Devices are not compared: some file systems show another one here than to stat. 0 is nobody.
func lockHolder(locks string, inode uint64) (pid int) {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" {
			continue // one that waits has an arrow in the second field
		}
		if file := f[5]; file[strings.LastIndexByte(file, ':')+1:] != strconv.FormatUint(inode, 10) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil {
			return pid
		}
	}
	return 0
}
