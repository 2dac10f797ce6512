package storage

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// TestCutUnderQuery cuts each kind of file short while it is mapped, which makes reading it a SIGBUS: the query fails or does without, and the process lives.
// A file of samples or of messages is set aside, and the next query works without it.
func TestCutUnderQuery(t *testing.T) {
	for _, kind := range []string{".samples", ".messages", ".index", ".table"} {
		t.Run(kind[1:], func(t *testing.T) { cutUnderQuery(t, kind) })
	}
}

func cutUnderQuery(t *testing.T, kind string) {
	dir := t.TempDir()
	opts := small()
	opts.Reserve = -1
	setAside := kind == ".samples" || kind == ".messages"
	query := readSeries
	if kind == ".messages" {
		query = readMessages
	}
	db, _, err := Open(vfs.OS{}, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(context.Background()); err != nil && setAside {
			t.Errorf("close: %v", err)
		}
	}()
	g := storetest.NewGenerator(1)
	for range 30 {
		_, _ = db.Append(t.Context(), g.Next()) // some are refused
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, dataDir, "*"+kind))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", kind, err)
	}
	before := storetest.Lines(t.Context(), db)
	for _, path := range files {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	lines := storetest.Lines(t.Context(), db)
	failed := slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, "error "+core.Unavailable.String()) })
	if !failed && !slices.Equal(lines, before) { // small tables are in memory
		t.Errorf("a query shows less and does not fail")
	}
	if !setAside {
		return
	}
	if !failed {
		t.Error("a query reads a file that is empty")
	}
	for deadline := time.Now().Add(10 * time.Second); query(t.Context(), db) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the file is not set aside")
		}
		if err := db.ask(t.Context(), func(context.Context) error { return nil }); err != nil { // the worker has a turn
			t.Fatal(err)
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, dataDir, "*"+kind+".damaged")); len(aside) != len(files) {
		t.Errorf("%d files were cut, %d are set aside", len(files), len(aside))
	}
	if _, err := db.Append(t.Context(), sample(3, core.Default|core.HasValue)); err != nil || !has(t, db, 3) {
		t.Errorf("append behind the fault: %v", err)
	}
}

// TestFullTmpfs fills a disk of a few megabytes: writes are refused, reads go on, and when the disk is larger writes come back without a restart. It needs
// to be root, for the mount.
func TestFullTmpfs(t *testing.T) {
	dir := t.TempDir()
	mount := func(options string) error {
		out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput()
		if err != nil {
			return errors.New(strings.TrimSpace(string(out)) + ": " + err.Error())
		}
		return nil
	}
	if err := mount("size=6m"); err != nil {
		t.Skipf("NOT TESTED: a full disk needs a mount: %v", err)
	}
	defer func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s: %v", out, err)
		}
	}()
	opts := small()
	opts.FlushBytes, opts.DiskLow, opts.Reserve = 128<<10, 1, 512<<10
	db, _, err := Open(vfs.OS{}, filepath.Join(dir, "data"), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	reserve := filepath.Join(dir, "data", reserveFile)
	if err := writeFile(db.fs, reserve, func(f vfs.File) error { return vfs.Preallocate(f, opts.Reserve) }); err != nil {
		t.Fatal(err)
	}
	last, refused := 0, 0
	for i := 1; refused < 3; i++ {
		_, err := db.Append(t.Context(), noise(i))
		if err == nil {
			last = i
			continue
		}
		if refused++; core.CodeOf(err) != core.NoSpace && core.CodeOf(err) != core.Unavailable {
			t.Fatalf("append %d to a full disk: %v", i, err)
		}
		if i > 100_000 {
			t.Fatal("a full disk takes everything")
		}
	}
	if !has(t, db, 1) || !has(t, db, last) {
		t.Error("reading stopped on a full disk")
	}
	_ = db.ask(t.Context(), func(ctx context.Context) error { db.work(ctx, true); return nil })
	if _, err := os.Stat(reserve); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the reserve is still there on a full disk: %v", err)
	}
	if err := mount("remount,size=64m"); err != nil {
		t.Fatal(err)
	}
	db.disk.checked.Store(0)
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err := db.Append(t.Context(), noise(last+10))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("append when there is room: %v", err)
		}
		_ = db.Flush(t.Context())
		db.disk.checked.Store(0)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Errorf("flush when there is room: %v", err)
	}
	for i := 1; i <= last; i += max(1, last/50) {
		if !has(t, db, i) {
			t.Fatalf("sample %d was acknowledged and is gone", i)
		}
	}
}
