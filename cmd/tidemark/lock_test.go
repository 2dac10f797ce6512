package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A lock that goes away in time is waited for, and told once.
func TestStartWaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		lock, err := fs.Lock("/data/" + lockName)
		if err != nil {
			if err = fs.MkdirAll("/data"); err == nil {
				lock, err = fs.Lock("/data/" + lockName)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(lockPatience/2, func() { lock.Close() })
		var logged strings.Builder
		begin := time.Now()
		err = whenUnlocked(t.Context(), "/data", slog.New(slog.NewTextHandler(&logged, nil)), func() error {
			db, _, err := storage.Open(fs, "/data", storage.Options{})
			if err != nil {
				return err
			}
			return db.Close(context.Background())
		})
		if err != nil || time.Since(begin) < lockPatience/2 || time.Since(begin) > lockPatience {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if n := strings.Count(logged.String(), "locked by another process"); n != 1 {
			t.Errorf("told %d times: %s", n, &logged)
		}
	})
}

// A lock that stays ends the start, with a message that names the process; any other fault ends it at once.
func TestStartGivesUpOnTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		log := slog.New(slog.DiscardHandler)
		err := whenUnlocked(t.Context(), "/nowhere", log, func() error { return fmt.Errorf("storage: %w", vfs.ErrLocked) })
		if !errors.Is(err, vfs.ErrLocked) || time.Since(begin) != lockPatience {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		for _, part := range []string{"/nowhere is in use by another process (lsof /nowhere/lock shows which)", "--data"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %s", err, part)
			}
		}
		begin = time.Now()
		if err := whenUnlocked(t.Context(), "/nowhere", log, func() error { return io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF || !time.Now().Equal(begin) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := whenUnlocked(ctx, "/nowhere", log, func() error { return vfs.ErrLocked }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestLockHolder(t *testing.T) {
	const locks = `1: FLOCK  ADVISORY  WRITE 708 00:13:1234 0 EOF
1: -> FLOCK  ADVISORY  WRITE 709 00:13:1235 0 EOF
2: POSIX  ADVISORY  WRITE 710 00:13:1235 0 EOF
3: FLOCK  ADVISORY  WRITE 711 08:01:1235 0 EOF
short
`
	for inode, want := range map[uint64]int{1234: 708, 1235: 711, 123: 0, 34: 0} {
		if got := lockHolder(locks, inode); got != want {
			t.Errorf("inode %d: process %d, want %d", inode, got, want)
		}
	}
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("this system has no /proc/locks")
	}
	dir := t.TempDir()
	lock, err := vfs.OS{}.Lock(filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if got, want := holder(dir), fmt.Sprintf("process %d (", os.Getpid()); !strings.HasPrefix(got, want) && !strings.HasPrefix(got, "another process") {
		t.Errorf("%s, want %s", got, want)
	}
}
