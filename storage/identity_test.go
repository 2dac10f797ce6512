package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// laterVersion gives the bytes of a file the version 7, as a later release would write them: where it stands and with the checksums that go with it.
func laterVersion(name string, b []byte) []byte {
	le := binary.LittleEndian
	sealHeader := func(at, crc int) {
		le.PutUint32(b[at+8:], 7)
		le.PutUint32(b[at+crc:], crc32.Checksum(b[at:at+crc], castagnoli))
	}
	sealTail := func(size int) {
		le.PutUint32(b[8:], 7)
		for _, tail := range [][]byte{b[len(b)-2*size : len(b)-size], b[len(b)-size:]} {
			le.PutUint32(tail[size-8:], 7)
			le.PutUint32(tail[size-4:], crc32.Checksum(tail[:size-4], castagnoli))
		}
	}
	switch filepath.Ext(name) {
	case ".samples":
		sealTail(80)
	case ".messages":
		sealTail(64)
	case ".index", ".table":
		sealHeader(0, 12)
	case ".seg":
		sealHeader(0, 40)
		sealHeader(4096, 40)
	default: // the manifest
		le.PutUint32(b[8:], 7)
	}
	return b
}

// TestLaterVersions has one file of each kind written by a later release: the server does not start, says which file it is and what to do, and changes nothing.
func TestLaterVersions(t *testing.T) {
	mem, _ := settledStore(t)
	list, err := mem.List("/data/" + journalDir)
	if err != nil {
		t.Fatal(err)
	}
	paths := storedFiles(t, mem)
	for _, info := range list {
		paths = append(paths, filepath.Join("/data", journalDir, info.Name))
	}
	tested := map[string]int{}
	for _, path := range paths {
		kind := filepath.Ext(path)
		if kind == ".copy" || kind == ".spare" { // a copy alone is damage, see TestManifestVersions; a spare is nothing
			continue
		}
		left := mem.Clone()
		overwrite(t, left, path, func(b []byte) []byte { return laterVersion(path, b) })
		if kind == "" {
			overwrite(t, left, path+".copy", func(b []byte) []byte { return laterVersion(path, b) })
		}
		before := onDisk(t, left)
		_, _, err := Open(left, "/data", crashOptions())
		var later *vfs.VersionError
		if !errors.As(err, &later) || later.Path != path || later.Found != 7 || later.Known >= 7 || later.Known == 0 {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want := fmt.Sprintf("%s has format version 7, and this program knows formats up to version %d: it was written by a later release: start that release, or restore a backup",
			path, later.Known)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
		if after := onDisk(t, left); !slices.Equal(before, after) {
			t.Errorf("%s: the directory was %v and is %v", path, before, after)
		}
		var out bytes.Buffer
		if err := Check(t.Context(), left, "/data", Checking{Out: &out}); err == nil || !strings.Contains(out.String()+err.Error(), "a later release") {
			t.Errorf("%s: check says %v:\n%s", path, err, out.String())
		}
		tested[kind]++
	}
	for _, kind := range []string{"", ".samples", ".messages", ".index", ".table", ".seg"} {
		if tested[kind] == 0 {
			t.Errorf("no file of kind %q among %v", kind, paths)
		}
	}
}

// onDisk lists the files of a data directory with their checksums, but for the lock.
func onDisk(t *testing.T, fs vfs.FS) (lines []string) {
	t.Helper()
	for _, dir := range []string{"/data", "/data/" + dataDir, "/data/" + journalDir} {
		list, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			if info.Dir || info.Name == lockFile {
				continue
			}
			sum, err := sumOf(fs, filepath.Join(dir, info.Name))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s/%s %d %08x", dir, info.Name, info.Size, sum))
		}
	}
	return lines
}

// TestManifestVersions tells a manifest of a later release from one whose version is damaged: by its copy.
func TestManifestVersions(t *testing.T) {
	mem, whole := settledStore(t)
	main, copied := "/data/"+manifestFile, "/data/"+manifestCopy
	later := func(b []byte) []byte { return laterVersion(manifestFile, b) }
	earlier := func(b []byte) []byte { // the copy that a crash left: one file less
		m, err := readManifest(mem, "/data", manifestCopy)
		if err != nil {
			t.Fatal(err)
		}
		m.Files = m.Files[:len(m.Files)-1]
		other := vfs.NewMem()
		if err := other.MkdirAll("/data"); err != nil {
			t.Fatal(err)
		}
		if err := m.write(other, "/data"); err != nil {
			t.Fatal(err)
		}
		b, err = readAll(other, copied, maxManifest)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	broken := func(b []byte) []byte { return b[:len(b)-1] }
	for _, one := range []struct {
		name       string
		main, copy func([]byte) []byte
		refused    bool
	}{
		{"version damaged, copy sound", later, nil, false},
		{"later, copy of the release before", later, earlier, true},
		{"later, copy damaged", later, broken, true},
		{"damaged, copy later", broken, later, true},
		{"sound, copy later", nil, later, false},
	} {
		left := mem.Clone()
		if one.main != nil {
			overwrite(t, left, main, one.main)
		}
		if one.copy != nil {
			overwrite(t, left, copied, one.copy)
		}
		if !one.refused {
			survives(t, one.name, left, whole)
			continue
		}
		var version *vfs.VersionError
		if _, _, err := Open(left, "/data", crashOptions()); !errors.As(err, &version) || version.Found != 7 {
			t.Errorf("%s: %v", one.name, err)
		}
	}
}

// twins is a database with two files of each kind whose shapes are alike: of one size, with footers that say the same of it.
func twins(t *testing.T) (mem *vfs.Mem, lines []string) {
	t.Helper()
	mem = vfs.NewMem()
	db, _, err := Open(mem, "/data", small())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{"a", "b"} {
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e" + one}), 1000, float64(one[0]))
		b.Messages = []core.Message{{Time: 1000, Entity: "e", Type: "t", Text: one, Flags: core.Default}}
		b.Properties = []core.Property{{PropertyKey: core.PropertyKey{Entity: "p" + one, Type: "t"}, Time: 1000, Tags: core.Tags{{Name: "x", Value: one}}, Flags: core.Default}}
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lines = storetest.Lines(t.Context(), db)
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return mem, lines
}

// ofKind lists the files whose names end alike.
func ofKind(t *testing.T, fs vfs.FS, end string) (paths []string) {
	t.Helper()
	for _, path := range storedFiles(t, fs) {
		if strings.HasSuffix(path, end) {
			paths = append(paths, path)
		}
	}
	return paths
}

// swap exchanges two files.
func swap(t *testing.T, fs vfs.FS, a, b string) {
	t.Helper()
	for _, move := range [][2]string{{a, "/data/between"}, {b, a}, {"/data/between", b}} {
		if err := fs.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExchangedTwins exchanges two files of one kind and size: it is told, each is read as what it is, and stays so.
func TestExchangedTwins(t *testing.T) {
	for _, end := range []string{".samples", ".messages", ".index", ".properties.table"} {
		mem, want := twins(t)
		paths := ofKind(t, mem, end)
		if len(paths) != 2 {
			t.Fatalf("files %v", paths)
		}
		first, _ := mem.Stat(paths[0])
		if second, _ := mem.Stat(paths[1]); first.Size != second.Size {
			t.Errorf("%s of %d and %d bytes are no twins", end, first.Size, second.Size)
		}
		swap(t, mem, paths[0], paths[1])
		for n := range 2 {
			db, report, err := Open(mem, "/data", small())
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(report.Damage, "\n")
			if n == 0 && (len(report.Damage) != 2 || !strings.Contains(text, filepath.Base(paths[0])+" has been exchanged") || !strings.Contains(text, filepath.Base(paths[1])+" has been exchanged")) ||
				n == 1 && report.Damaged() {
				t.Errorf("%s, opened for the %d. time: %q", end, n+1, report.Damage)
			}
			if got := storetest.Lines(t.Context(), db); !slices.Equal(got, want) {
				t.Errorf("%s: %s", end, difference(got, want))
			}
			if _, err := db.Append(t.Context(), sample(1, core.Default|core.HasValue)); err != nil { // so that the manifest is written
				t.Fatal(err)
			}
			if err := db.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			want = storetest.Lines(t.Context(), db)
			if err := db.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := Check(t.Context(), mem, "/data", Checking{Out: &out}); err != nil {
			t.Errorf("%s: check: %v\n%s", end, err, out.String())
		}
	}
}

// TestForeignTwin puts the copy of one file in the place of another of the same kind and size: it is set aside, and the other one stays in use.
func TestForeignTwin(t *testing.T) {
	for _, end := range []string{".samples", ".messages", ".index", ".properties.table"} {
		for at := range 2 {
			mem, want := twins(t)
			paths := ofKind(t, mem, end)
			b, err := readAll(mem, paths[1-at], 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, mem, paths[at], func([]byte) []byte { return b })
			db, report, err := Open(mem, "/data", small())
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(report.Damage, "\n"); !strings.Contains(text, paths[at]+": it is not the file that was written under this name") {
				t.Errorf("%s: %q", paths[at], text)
			}
			usage, err := db.Usage()
			if aside := []string{filepath.Join(dataDir, filepath.Base(paths[at])+".damaged")}; err != nil || !slices.Equal(usage.SetAside, aside) {
				t.Errorf("set aside: %v, %v, want %v", usage.SetAside, err, aside)
			}
			if got := storetest.Lines(t.Context(), db); slices.Equal(got, want) {
				t.Errorf("%s: nothing is missing", paths[at])
			}
			if err := db.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestManifestWithoutIdentity opens a database whose manifest keeps no identities, as the first ones did, and one that names a kind of file that is unknown.
func TestManifestWithoutIdentity(t *testing.T) {
	mem, want := twins(t)
	m, _, err := manifestOf(mem, "/data")
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Files {
		if m.Files[i].End == 0 {
			t.Errorf("%s has no identity", m.Files[i].base())
		}
		m.Files[i].End = 0
	}
	if err := m.write(mem, "/data"); err != nil {
		t.Fatal(err)
	}
	unknown := mem.Clone()
	db, report, err := Open(mem, "/data", small())
	if err != nil || report.Damaged() {
		t.Fatalf("%v %v", err, report)
	}
	if got := storetest.Lines(t.Context(), db); !slices.Equal(got, want) {
		t.Error(difference(got, want))
	}
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.Files = append(m.Files, fileEntry{Kind: "spans", Number: 999, Size: 1})
	if err := m.write(unknown, "/data"); err != nil {
		t.Fatal(err)
	}
	before := onDisk(t, unknown)
	if _, _, err := Open(unknown, "/data", small()); err == nil || !strings.Contains(err.Error(), "0000000999.spans") || !strings.Contains(err.Error(), "a later release") {
		t.Errorf("a file of an unknown kind: %v", err)
	}
	if after := onDisk(t, unknown); !slices.Equal(before, after) {
		t.Errorf("the directory was %v and is %v", before, after)
	}
}
