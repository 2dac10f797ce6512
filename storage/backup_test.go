package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// note is a batch with message number i, and a sample.
func note(i int) *core.Batch {
	b := sample(i, core.Default|core.HasValue)
	m := core.Message{Time: core.Time(1000 * i), Entity: "e", Type: "t", Source: "s", Text: fmt.Sprint("message ", i), Flags: core.Default}
	b.Messages = append(b.Messages, m)
	return b
}

// notes appends messages from one number up to another.
func notes(t testing.TB, db *DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := db.Append(t.Context(), note(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// texts lists all messages, oldest first.
func texts(t testing.TB, db *DB) (list []string) {
	t.Helper()
	for m, err := range db.Messages(t.Context(), core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.Clone(m.Text))
	}
	slices.Reverse(list)
	return list
}

// wanted is what texts gives after notes from 1 up to n.
func wanted(n int) (list []string) {
	for i := 1; i < n; i++ {
		list = append(list, fmt.Sprint("message ", i))
	}
	return list
}

func mustBackup(t testing.TB, db *DB) BackupReport {
	t.Helper()
	r, err := db.Backup(t.Context(), "/backup")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustCheck verifies a directory and returns what was said.
func mustCheck(t testing.TB, fs vfs.FS, dir string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Check(t.Context(), fs, dir, Checking{Out: &out}); err != nil {
		t.Errorf("check of %s: %v\n%s", dir, err, out.String())
	}
	return out.String()
}

// restored is the messages of a backup after it was restored, and the position of the next batch.
func restored(t testing.TB, fs vfs.FS, from, dir string) (list []string, next core.Position) {
	t.Helper()
	if _, err := Restore(t.Context(), fs, Restoring{Backup: from, Data: dir}); err != nil {
		t.Fatal(err)
	}
	opts := small()
	db, report, err := Open(fs, dir, opts)
	if err != nil || report.Damaged() {
		t.Fatalf("open: %v %v", err, report)
	}
	list = texts(t, db)
	r, err := db.Append(t.Context(), note(9999))
	if err = errors.Join(err, db.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return list, r.Position
}

func fileNames(t testing.TB, fs vfs.FS, dir string) (list []string) {
	t.Helper()
	infos, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		list = append(list, i.Name)
	}
	return list
}

// A backup holds what was stored when it was made; the next one copies what is new and removes what is of no use any more.
func TestBackupAndRestore(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	notes(t, db, 1, 50)
	first := mustBackup(t, db)
	if first.Position != 49 || first.Files < 2 || first.Copied != first.Files || first.CopiedBytes != first.Bytes || first.Removed != 0 || first.Damaged != nil {
		t.Errorf("first backup: %+v", first)
	}
	if out := mustCheck(t, fs, "/backup"); !strings.Contains(out, "49 messages") || !strings.Contains(out, "no journal") {
		t.Errorf("check says %q", out)
	}
	if again := mustBackup(t, db); again.Copied != 0 || again.Position != 49 || again.Files != first.Files {
		t.Errorf("nothing is new, and yet: %+v", again)
	}
	notes(t, db, 50, 80)
	second := mustBackup(t, db)
	if second.Position != 79 || second.Files <= first.Files || second.Copied != second.Files-first.Files {
		t.Errorf("second backup: %+v after %+v", second, first)
	}
	list, next := restored(t, fs, "/backup", "/copy")
	if !slices.Equal(list, wanted(80)) || next != 80 {
		t.Errorf("restored: %d messages, next position %d", len(list), next)
	}
	mustCheck(t, fs, "/copy")
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := mustBackup(t, db)
	if third.Copied == 0 || third.Removed == 0 || third.Files >= second.Files {
		t.Errorf("backup after a merge: %+v after %+v", third, second)
	}
	if got := fileNames(t, fs, "/backup/data"); len(got) != third.Files {
		t.Errorf("the backup has the files %v, %d are in use", got, third.Files)
	}
	if list, _ := restored(t, fs, "/backup", "/copy2"); !slices.Equal(list, wanted(80)) {
		t.Errorf("restored after a merge: %d messages", len(list))
	}
	mustCheck(t, fs, "/backup")
}

// Everything else comes back as well: random histories, read back from what was restored.
func TestRestoredSeries(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	g := storetest.NewGenerator(7)
	for range 60 {
		if _, err := db.Append(t.Context(), g.Next()); err != nil && core.CodeOf(err) == core.Internal {
			t.Fatal(err)
		}
	}
	mustBackup(t, db)
	if _, err := Restore(t.Context(), fs, Restoring{Backup: "/backup", Data: "/copy"}); err != nil {
		t.Fatal(err)
	}
	again, report, err := Open(fs, "/copy", small())
	if err != nil || report.Damaged() {
		t.Fatalf("open: %v %v", err, report)
	}
	defer again.Close(t.Context())
	if want, got := rowsOf(t, db), rowsOf(t, again); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d samples, %d after the restore", len(want), len(got))
	}
}

// rowsOf lists all samples.
func rowsOf(t testing.TB, db *DB) (rows []string) {
	t.Helper()
	for b, err := range db.Series(t.Context(), core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime, Versions: true}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Times {
			rows = append(rows, fmt.Sprint(b.Key, b.Times[i], b.Values[i]))
		}
	}
	return rows
}

// A backup that fails at any operation, or ends with the process or in a power cut, leaves the one before usable, and can be made again.
func TestInterruptedBackup(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := int64(0); ; n++ {
		mem := vfs.NewMem()
		fault := &vfs.FailAt{N: n, Err: vfs.ErrIO, Match: func(op vfs.Op) bool { return strings.HasPrefix(op.Path, "/backup") }}
		armed := false
		db := open(t, vfs.Fault(mem, func(op vfs.Op) error {
			if !armed {
				return nil
			}
			return fault.Inject(op)
		}), small())
		notes(t, db, 1, 20)
		mustBackup(t, db)
		notes(t, db, 20, 40)
		if err := db.Compact(t.Context()); err != nil { // other files, and those before are to go
			t.Fatal(err)
		}
		armed = true
		_, err := db.Backup(t.Context(), "/backup")
		armed = false
		if !fault.Fired() {
			if n < 20 {
				t.Errorf("only %d operations", n)
			}
			break
		}
		for how, left := range map[string]*vfs.Mem{"killed": mem.Clone(), "power cut": mem.Crash(r)} {
			if list, _ := restored(t, left, "/backup", "/copy"); !slices.Equal(list, wanted(20)) && !slices.Equal(list, wanted(40)) {
				t.Fatalf("operation %d, %v, %s: %d messages", n, err, how, len(list))
			}
		}
		if r := mustBackup(t, db); r.Position < 39 { // a merge takes a position
			t.Fatalf("operation %d: the backup after the failed one: %+v", n, r)
		}
		if list, _ := restored(t, mem, "/backup", "/copy"); !slices.Equal(list, wanted(40)) {
			t.Fatalf("operation %d: %d messages", n, len(list))
		}
	}
}

// A restore that fails leaves a directory that is no database, and that the next try makes one.
func TestInterruptedRestore(t *testing.T) {
	mem := vfs.NewMem()
	db := open(t, mem, small())
	notes(t, db, 1, 20)
	mustBackup(t, db)
	for n := int64(0); ; n++ {
		fault := &vfs.FailAt{N: n, Err: vfs.ErrIO, Match: func(op vfs.Op) bool { return op.Kind.Changes() }}
		_, err := Restore(t.Context(), vfs.Fault(mem, fault.Inject), Restoring{Backup: "/backup", Data: "/copy"})
		if !fault.Fired() {
			if err != nil || n < 10 {
				t.Errorf("after %d operations: %v", n, err)
			}
			return
		}
		_, statErr := mem.Stat("/copy/MANIFEST")
		opened, _, openErr := Open(mem.Clone(), "/copy", small())
		switch {
		case err == nil:
			t.Fatalf("operation %d failed and nobody says so", n)
		case openErr == nil: // before the first byte, or after the last
			if got := texts(t, opened); len(got) != 0 && (statErr != nil || !slices.Equal(got, wanted(20))) || len(got) == 0 && statErr == nil {
				t.Errorf("operation %d: half a backup was opened: %d messages", n, len(got))
			}
			if err := opened.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		case !strings.Contains(openErr.Error(), "run it again"):
			t.Errorf("operation %d: %v", n, openErr)
		}
		if statErr == nil && openErr == nil { // complete but for its durability: start over
			mem = mem.Clone()
			for _, name := range fileNames(t, mem, "/copy/data") {
				mustRemove(t, mem, filepath.Join("/copy/data", name))
			}
			for _, name := range []string{"data", "MANIFEST", "MANIFEST.copy"} {
				mustRemove(t, mem, filepath.Join("/copy", name))
			}
		}
	}
}

func mustRemove(t testing.TB, fs vfs.FS, path string) {
	t.Helper()
	if err := fs.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Files that a merge replaces while a backup copies them stay until its end.
func TestBackupBesideMerges(t *testing.T) {
	mem := vfs.NewMem()
	var db *DB
	var merged []string
	copying := false
	db = open(t, vfs.Fault(mem, func(op vfs.Op) error {
		if copying && op.Kind == vfs.OpCreate && strings.HasPrefix(op.Path, "/backup/data/") {
			copying = false
			notes(t, db, 40, 50)
			if err := db.Compact(context.Background()); err != nil {
				t.Errorf("compact: %v", err)
			}
			if _, err := db.Backup(context.Background(), "/other"); core.CodeOf(err) != core.Unavailable {
				t.Errorf("a second backup at the same time: %v", err)
			}
			merged = fileNames(t, mem, "/data/data")
		}
		return nil
	}), small())
	notes(t, db, 1, 20)
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	notes(t, db, 20, 40)
	copying = true
	if r := mustBackup(t, db); r.Position != 39 || r.Damaged != nil {
		t.Errorf("backup: %+v", r)
	}
	if list, _ := restored(t, mem, "/backup", "/copy"); !slices.Equal(list, wanted(40)) {
		t.Errorf("restored: %d messages", len(list))
	}
	if after := fileNames(t, mem, "/data/data"); len(after) >= len(merged) || len(after) != len(db.flusher.current.Load().Files) {
		t.Errorf("files while it ran %v, and after it %v", merged, after)
	}
	mustBackup(t, db)
	if list, _ := restored(t, mem, "/backup", "/copy2"); !slices.Equal(list, wanted(50)) {
		t.Errorf("restored: %d messages", len(list))
	}
}

func TestBackupRefusals(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	notes(t, db, 1, 5)
	file(t, fs, "/home/letter.txt", "dear")
	file(t, fs, "/bad/MANIFEST", "nonsense")
	other, _, err := Open(fs, "/second", small())
	if err != nil {
		t.Fatal(err)
	}
	notes(t, other, 1, 9)
	if _, err := other.Backup(t.Context(), "/theirs"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock, err := fs.Lock("/busy/lock")
	if err == nil {
		defer lock.Close()
	}
	for target, want := range map[string]string{
		"/data":   "is the data directory of a database",
		"/second": "is the data directory of a database",
		"/home":   "/home holds letter.txt and no backup",
		"/bad":    "cannot be read",
		"/theirs": "of another database",
		"/busy":   "is in use",
	} {
		if _, err := db.Backup(t.Context(), target); core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
	mustBackup(t, db)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Backup(ended, "/never"); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that nobody waits for: %v", err)
	}
	for from, want := range map[string]string{"/home": "holds no backup", "/bad": "damaged", "/second": "with a journal"} {
		if _, err := Restore(t.Context(), fs, Restoring{Backup: from, Data: "/copy"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("restore of %s: %v, want %q", from, err, want)
		}
	}
	for _, to := range []string{"/home", "/second", "/theirs"} {
		if _, err := Restore(t.Context(), fs, Restoring{Backup: "/backup", Data: to}); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("restore into %s: %v", to, err)
		}
	}
}

// file writes a file in a directory of its own.
func file(t testing.TB, fs vfs.FS, path, text string) {
	t.Helper()
	err := fs.MkdirAll(filepath.Dir(path))
	if err == nil {
		err = writeFile(fs, path, func(f vfs.File) error {
			_, err := f.WriteAt([]byte(text), 0)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flip changes a byte of a file.
func flip(t testing.TB, fs vfs.FS, path string, at int64) {
	t.Helper()
	f, err := fs.Open(path, vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err = f.ReadAt(b[:], at); err == nil {
		b[0] ^= 0x20
		_, err = f.WriteAt(b[:], at)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A file that went bad does not keep the others from being saved; it is told, and a restore takes it only when it is asked to.
func TestBackupOfDamage(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	notes(t, db, 1, 20)
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	bad := db.flusher.current.Load().Files[0]
	flip(t, fs, bad.path("/data"), 20)
	r := mustBackup(t, db)
	if len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0], bad.base()) {
		t.Errorf("damage: %q", r.Damaged)
	}
	if _, err := Restore(t.Context(), fs, Restoring{Backup: "/backup", Data: "/copy"}); err == nil || !strings.Contains(err.Error(), bad.base()) {
		t.Errorf("restore: %v", err)
	}
	report, err := Restore(t.Context(), fs, Restoring{Backup: "/backup", Data: "/copy", Damaged: true})
	if err != nil || len(report.Damaged) != 1 {
		t.Errorf("restore of what is damaged: %+v, %v", report, err)
	}
}

// Check finds a wrong byte wherever it is, a file that is missing or short, and says in which file.
func TestCheckFindsDamage(t *testing.T) {
	sound := vfs.NewMem()
	db, _, err := Open(sound, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	notes(t, db, 1, 200)
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := []string{"/data/MANIFEST", "/data/MANIFEST.copy"}
	for _, e := range db.flusher.current.Load().Files {
		files = append(files, e.path("/data"))
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, sound, "/data")
	if len(files) < 4 {
		t.Fatalf("only the files %v", files)
	}
	for _, path := range files {
		info, err := sound.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		harm := map[string]func(vfs.FS){"missing": func(fs vfs.FS) { mustRemove(t, fs, path) }, "short": func(fs vfs.FS) { truncate(t, fs, path, info.Size-1) }}
		for at := int64(0); at < info.Size; at += 97 {
			harm[fmt.Sprint("byte ", at)] = func(fs vfs.FS) { flip(t, fs, path, at) }
		}
		for _, what := range slices.Sorted(maps.Keys(harm)) {
			if what == "missing" && path == "/data/MANIFEST.copy" {
				continue // a crash may be the reason
			}
			fs := sound.Clone()
			harm[what](fs)
			var out bytes.Buffer
			err := Check(t.Context(), fs, "/data", Checking{Out: &out})
			if err == nil || !strings.Contains(out.String(), "damaged: ") || !strings.Contains(out.String(), filepath.Base(path)) {
				t.Errorf("%s, %s: %v\n%s", path, what, err, out.String())
			}
		}
	}
}

func truncate(t testing.TB, fs vfs.FS, path string, size int64) {
	t.Helper()
	f, err := fs.Open(path, vfs.ReadWrite)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What nobody names is a note; what contradicts the manifest is a fault.
func TestCheckComparesFiles(t *testing.T) {
	fs := vfs.NewMem()
	db, _, err := Open(fs, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	notes(t, db, 1, 10)
	if err := errors.Join(db.Flush(t.Context()), db.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	file(t, fs, "/data/data/0000000077.samples", "x")
	file(t, fs, "/data/data/0000000078.samples.damaged", "x")
	out := mustCheck(t, fs, "/data")
	for _, want := range []string{"note: data/0000000077.samples is in use by nobody", "note: data/0000000078.samples.damaged was set aside", "manifest: 5 files up to position 9",
		"9 rows", "9 messages"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	m, err := readManifest(fs, "/data", manifestFile)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*manifest){
		"samples of series 1":         func(m *manifest) { m.NextSeries = 1 },
		"given twice":                 func(m *manifest) { m.NextFile = 1 },
		"samples of series 7 are del": func(m *manifest) { m.Graves = []graveEntry{{Series: 7}} },
		"of a kind": func(m *manifest) {
			m.Files = append(slices.Clone(m.Files), fileEntry{Kind: "strange", Number: 77, Size: 1})
			m.NextFile = 79
		},
	} {
		bad, other := m, fs.Clone()
		change(&bad)
		if bad.Files[len(bad.Files)-1].Kind == "strange" {
			file(t, other, "/data/data/0000000077.strange", "x")
		}
		if err := bad.write(other, "/data"); err != nil {
			t.Fatal(err)
		}
		var found bytes.Buffer
		if err := Check(t.Context(), other, "/data", Checking{Out: &found}); err == nil || !strings.Contains(found.String(), want) {
			t.Errorf("%q: %v\n%s", want, err, found.String())
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Check(ended, fs, "/data", Checking{Out: new(bytes.Buffer)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that nobody waits for: %v", err)
	}
}

// The progress of a check goes up to the end.
func TestCheckTellsProgress(t *testing.T) {
	fs := vfs.NewMem()
	db, _, err := Open(fs, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	notes(t, db, 1, 100)
	if err := errors.Join(db.Flush(t.Context()), db.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	var last, whole int64
	err = Check(t.Context(), fs, "/data", Checking{Out: new(bytes.Buffer), Progress: func(done, total int64, what string) {
		if done < last || done > total || what == "" {
			t.Errorf("%d of %d of %q after %d", done, total, what, last)
		}
		last, whole = done, total
	}})
	if err != nil || last != whole || whole == 0 {
		t.Errorf("%v: %d of %d", err, last, whole)
	}
}

func TestUsage(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	u, err := db.Usage()
	if err != nil || u.Position != 0 || u.Bytes != 0 || u.Flush != (LastFlush{}) || u.Kinds != nil {
		t.Errorf("empty: %+v, %v", u, err)
	}
	notes(t, db, 1, 10)
	if u, err = db.Usage(); err != nil || u.Memory <= 0 || u.End != 9 || u.Series != 1 {
		t.Errorf("in memory: %+v, %v", u, err)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	file(t, fs, "/data/data/0000000078.samples.damaged", "x")
	u, err = db.Usage()
	if err != nil || u.Position != 9 || u.Flush.Files != 5 || u.Flush.Bytes != u.Bytes || u.Flush.At == 0 || u.Failure != "" || !slices.Equal(u.SetAside, []string{"data/0000000078.samples.damaged"}) {
		t.Errorf("in files: %+v, %v", u, err)
	}
	// One series; the documents of a metric and an entity, and the times of their newest samples.
	rows := map[string]uint64{"index": 1, "messages": 9, "samples": 9, "table/documents": 2, "table/newest": 2}
	var sum int64
	for _, k := range u.Kinds {
		if sum += k.Bytes; k.Rows != rows[k.Kind] || k.Files != 1 {
			t.Errorf("%+v", k)
		}
	}
	if len(u.Kinds) != len(rows) || sum != u.Bytes {
		t.Errorf("kinds: %+v", u.Kinds)
	}
}

// TestGoldenDumps writes a file of each kind as text, with all of its rows, and compares that with testdata.
func TestGoldenDumps(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	b := note(1)
	b.Add(0, 2000, 2.5)
	b.AddText(b.Ref(core.SeriesKey{Metric: "m", Entity: "f"}), 3000, "by hand")
	b.Samples.Decimals = []core.DecimalAt{{Index: 1, Decimal: core.Decimal{Significand: 250, Exponent: -2}}}
	b.Messages[0].Tags = core.Tags{{Name: "k", Value: "v"}}
	gone := &core.Batch{Origin: b.Origin, Series: []core.SeriesDelete{{Key: b.Keys[0], Range: core.Range{Start: 1500, End: 2500}}}}
	for _, one := range []*core.Batch{b, note(2)} {
		if _, err := db.Append(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	notes(t, db, 3, 4)
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	paths := []string{"/data/MANIFEST"}
	for _, e := range db.flusher.current.Load().Files {
		paths = append(paths, e.path("/data"))
	}
	var out bytes.Buffer
	for _, path := range paths {
		fmt.Fprintf(&out, "--- %s\n", filepath.Base(path))
		if err := Dump(fs, path, &out, Rows); err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("testdata", "dump_files.golden")
	if *rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("dump (-want +got):\n%s", d)
	}
	file(t, fs, "/strange", "nothing that anybody wrote")
	if err := Dump(fs, "/strange", new(bytes.Buffer), Outline); err == nil {
		t.Error("a file of no kind was dumped")
	}
	if err := Dump(fs, "/absent", new(bytes.Buffer), Outline); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A manifest that names a file elsewhere is refused, whatever its checksum.
func TestManifestLeadsNowhere(t *testing.T) {
	fs := vfs.NewMem()
	for _, kind := range []fileKind{"a/../../../etc/x", "table/../../x", `a\b`} {
		m := manifest{NextFile: 2, Files: []fileEntry{{Kind: kind, Number: 1, Size: 1}}}
		if err := errors.Join(fs.MkdirAll("/bad"), m.write(fs, "/bad")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := manifestOf(fs, "/bad"); !errors.Is(err, errManifest) {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// A full disk of the backup is said to be full, and what was there stays.
func TestBackupWithoutRoom(t *testing.T) {
	mem := vfs.NewMem()
	full := false
	db := open(t, vfs.Fault(mem, func(op vfs.Op) error {
		if full && op.Kind == vfs.OpWrite && strings.HasPrefix(op.Path, "/backup/data/") {
			return vfs.ShortWrite{N: 10, Err: vfs.ErrNoSpace}
		}
		return nil
	}), small())
	notes(t, db, 1, 20)
	mustBackup(t, db)
	notes(t, db, 20, 40)
	full = true
	if _, err := db.Backup(t.Context(), "/backup"); core.CodeOf(err) != core.NoSpace {
		t.Errorf("on a full disk: %v", err)
	}
	full = false
	if list, _ := restored(t, mem, "/backup", "/copy"); !slices.Equal(list, wanted(20)) {
		t.Errorf("the backup before: %d messages", len(list))
	}
	for _, name := range fileNames(t, mem, "/backup/data") {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left", name)
		}
	}
}

// Backups made while batches come in and files are merged are each a moment of the database: everything up to their position and nothing behind it.
func TestBackupsOfABusyDatabase(t *testing.T) {
	fs := vfs.NewMem()
	db := open(t, fs, small())
	notes(t, db, 1, 10)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	var mu sync.Mutex
	var positions []core.Position // of the messages from 10 on: a merge takes a position of its own
	busy.Go(func() {
		for i := 10; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			mu.Lock() // so that no backup comes between an append and its position
			r, err := db.Append(context.Background(), note(i))
			positions = append(positions, r.Position)
			mu.Unlock()
			if err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	})
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := db.Compact(context.Background()); err != nil {
				t.Errorf("compact: %v", err)
				return
			}
		}
	})
	var last core.Position
	for i := range 8 {
		r := mustBackup(t, db)
		if r.Position < last || r.Damaged != nil {
			t.Errorf("backup %d: %+v after position %d", i, r, last)
		}
		last = r.Position
		mu.Lock()
		held, _ := slices.BinarySearch(positions, r.Position+1)
		mu.Unlock()
		if list, _ := restored(t, fs, "/backup", fmt.Sprint("/copy", i)); !slices.Equal(list, wanted(10+held)) {
			t.Errorf("backup %d of position %d: %d messages", i, r.Position, len(list))
		}
	}
	close(stop)
	busy.Wait()
	if last < 10 {
		t.Errorf("nothing was stored beside the backups: position %d", last)
	}
	mustCheck(t, fs, "/backup")
}

// A database that is closed does not wait for a backup, which ends with an error.
func TestCloseDuringABackup(t *testing.T) {
	mem := vfs.NewMem()
	copying, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	db, _, err := Open(vfs.Fault(mem, func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.HasPrefix(op.Path, "/backup/data/") {
			once.Do(func() { close(copying) })
			<-goOn
		}
		return nil
	}), "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	notes(t, db, 1, 10)
	ended := make(chan error, 1)
	go func() {
		_, err := db.Backup(context.Background(), "/backup")
		ended <- err
	}()
	<-copying
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-ended; core.CodeOf(err) != core.Unavailable || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the backup ended with %v", err)
	}
	if _, err := db.Backup(t.Context(), "/backup"); core.CodeOf(err) != core.Unavailable {
		t.Errorf("a backup of a closed database: %v", err)
	}
}
