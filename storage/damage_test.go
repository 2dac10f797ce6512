package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// settledStore is the disk of a database all of whose state is in files, two of each kind at least, and what it shows.
func settledStore(t *testing.T) (*vfs.Mem, []string) {
	t.Helper()
	mem := vfs.NewMem()
	f := feed(t, mem, 9)
	for range 3 {
		f.append(10)
		f.flush()
	}
	lines := storetest.Lines(t.Context(), f.DB)
	if err := f.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return mem, lines
}

// storedFiles lists the files of data/ and the manifests.
func storedFiles(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	list, err := fs.List("/data/" + dataDir)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/data/" + manifestFile, "/data/" + manifestCopy}
	for _, info := range list {
		paths = append(paths, filepath.Join("/data", dataDir, info.Name))
	}
	return paths
}

// overwrite puts other bytes into a file.
func overwrite(t *testing.T, fs vfs.FS, path string, edit func(b []byte) []byte) {
	t.Helper()
	b, err := readAll(fs, path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	b = edit(b)
	f, err := fs.Open(path, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// survives opens what is left of a database and reads all of it. It must open, and be either as it was, or say what is damaged: in the report, or with an
// error of code Unavailable in the place of what cannot be read. What it shows was there before. It can be written to, and flushed.
func survives(t *testing.T, what string, left *vfs.Mem, whole []string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%s: panic: %v", what, r)
		}
	}()
	db, report, err := Open(left, "/data", crashOptions())
	if err != nil {
		t.Errorf("%s: open: %v", what, err)
		return
	}
	lines := storetest.Lines(t.Context(), db)
	told := report.Damaged() || len(report.Warnings) > 0
	for _, line := range lines {
		if _, text, isError := strings.Cut(" "+line, " error "); isError {
			if told = true; text != core.Unavailable.String() {
				t.Errorf("%s: a query fails with %s", what, text)
			}
		}
	}
	if !told && !slices.Equal(lines, whole) {
		t.Errorf("%s: not all is there, and nobody says so: %s", what, difference(lines, whole))
	}
	for _, line := range lines {
		if data := strings.HasPrefix(line, "m ") || strings.HasPrefix(line, "n ") || strings.HasPrefix(line, "message "); data && !report.Damaged() && !slices.Contains(whole, line) {
			t.Errorf("%s: shows %s, which was never there", what, line)
		}
	}
	if _, err := db.Append(t.Context(), sample(7, core.Default|core.HasValue)); err != nil && core.CodeOf(err) != core.Unavailable && core.CodeOf(err) != core.Internal {
		t.Errorf("%s: append: %v", what, err)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Errorf("%s: flush: %v", what, err)
	}
	q := core.SeriesQuery{Scope: core.AllEntities, Metric: "m", Entities: core.EntityFilter{Names: []string{"e"}}, Range: core.Range{Start: 7, End: 8}}
	found := false
	for block, err := range db.Series(t.Context(), q) {
		found = err == nil && block.Values[0] == 7 || err != nil && core.CodeOf(err) == core.Unavailable
	}
	if !found {
		t.Errorf("%s: what was appended behind the damage is not there", what)
	}
	if err := db.Close(context.Background()); err != nil {
		t.Errorf("%s: close: %v", what, err)
	}
}

// difference is the first line that one of two lists alone has at its place.
func difference(got, want []string) string {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Sprintf("got %q, want %q", got[i:min(i+1, len(got))], want[i])
		}
	}
	return fmt.Sprintf("%d lines too many", len(got)-len(want))
}

// TestBitFlips turns one bit over in one byte of 97 (or of TIDEMARK_FLIP_STEP) of each file, one at a time.
func TestBitFlips(t *testing.T) {
	mem, whole := settledStore(t)
	step := seeds(t, "TIDEMARK_FLIP_STEP", 97)
	var before, after runtime.MemStats
	flips := 0
	runtime.ReadMemStats(&before)
	for n, path := range storedFiles(t, mem) {
		info, err := mem.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := n % step; at < int(info.Size) && !t.Failed(); at += step {
			left := mem.Clone()
			overwrite(t, left, path, func(b []byte) []byte {
				b[at] ^= 1 << (at % 8)
				return b
			})
			survives(t, fmt.Sprintf("%s, byte %d of %d", filepath.Base(path), at, info.Size), left, whole)
			flips++
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(max(flips, 1)); each > 64<<20 {
		t.Errorf("%d bytes were allocated for each of %d flips", each, flips)
	}
}

// TestDamagedFiles cuts files short, empties them, removes them, and exchanges them.
func TestDamagedFiles(t *testing.T) {
	mem, whole := settledStore(t)
	paths := storedFiles(t, mem)
	for _, path := range paths {
		name := filepath.Base(path)
		left := mem.Clone()
		overwrite(t, left, path, func(b []byte) []byte { return b[:len(b)/2] })
		survives(t, name+" cut in half", left, whole)
		left = mem.Clone()
		overwrite(t, left, path, func([]byte) []byte { return nil })
		survives(t, name+" emptied", left, whole)
		left = mem.Clone()
		if err := left.Remove(path); err != nil {
			t.Fatal(err)
		}
		survives(t, name+" removed", left, whole)
	}
	for i, a := range paths {
		for _, b := range paths[i+1:] {
			if filepath.Ext(a) != filepath.Ext(b) || filepath.Dir(a) == "/data" {
				continue
			}
			left := mem.Clone()
			for _, move := range [][2]string{{a, "/data/spare"}, {b, a}, {"/data/spare", b}} {
				if err := left.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
			}
			survives(t, filepath.Base(a)+" exchanged with "+filepath.Base(b), left, whole)
		}
	}
}

// TestExchangedSamples exchanges two files of samples of one size: what they say of the same time would be overridden by the wrong one.
func TestExchangedSamples(t *testing.T) {
	mem := vfs.NewMem()
	db, _, err := Open(mem, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []float64{1, 2} {
		b := &core.Batch{}
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e"}), 1000, value)
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, path := range storedFiles(t, mem) {
		if filepath.Ext(path) == ".samples" {
			files = append(files, path)
		}
	}
	for _, move := range [][2]string{{files[0], "/data/spare"}, {files[1], files[0]}, {"/data/spare", files[1]}} {
		if err := mem.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	db, report, err := Open(mem, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	got := storetest.SeriesLines(db.Series(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}))
	if !report.Damaged() && !slices.Equal(got, []string{"m e {} 1000=2"}) {
		t.Errorf("exchanged files are not noticed, and show %v", got)
	}
}

// TestReadOnlyDisk opens a database on a disk that takes no changes: it opens and reads, or says what it cannot do.
func TestReadOnlyDisk(t *testing.T) {
	mem, _ := settledStore(t)
	readOnly := vfs.Fault(mem, func(op vfs.Op) error {
		if op.Kind.Changes() && op.Kind != vfs.OpMkdir {
			return fmt.Errorf("%s: %w", op.Path, errReadOnly)
		}
		return nil
	})
	db, _, err := Open(readOnly, "/data", crashOptions())
	if err != nil {
		if !strings.Contains(err.Error(), errReadOnly.Error()) {
			t.Errorf("%v does not say why", err)
		}
		return
	}
	if _, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue)); core.CodeOf(err) != core.Unavailable {
		t.Errorf("append: %v, want code Unavailable", err)
	}
	_ = db.Close(context.Background()) // what it cannot sync
}

var errReadOnly = fmt.Errorf("read-only file system")
