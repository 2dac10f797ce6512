package samples

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

// mixed is a file with blocks of every kind: with and without statistics, one row, versions, sides, no numbers.
func mixed(t testing.TB) []byte {
	sides := numbers(3, 5_000, 3)
	sides.Texts = []core.TextAt{{Index: 1, Text: "läuft"}}
	sides.Decimals = []core.DecimalAt{{Index: 2, Decimal: core.Decimal{Significand: 105, Exponent: -1}}}
	versions := run{id: 4, Block: core.Block{Times: []core.Time{7, 7, 9}, Values: []float64{1, 2, math.NaN()},
		Versions: []core.VersionAt{{Index: 0, Written: 3, Source: "gui", Status: "ok"}}}}
	return write(t, numbers(1, 1_000, 100), numbers(2, 4_000, 1), sides, versions)
}

// place puts a file into a file system.
func place(t testing.TB, b []byte) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Open("/f", vfs.Create)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// checked counts blocks and rows, and lists the faults.
func checked(t testing.TB, b []byte) (blocks, rows int, faults []string) {
	t.Helper()
	for e, err := range Check(place(t, b), "/f") {
		if e != nil {
			blocks, rows = blocks+1, rows+e.Count
		}
		var damage *DamageError
		if err != nil {
			faults = append(faults, err.Error())
			if !errors.As(err, &damage) || damage.Path != "/f" || damage.Offset < 0 || damage.Offset > int64(len(b)) {
				t.Errorf("the fault %v has no place in the file", err)
			}
		}
	}
	return blocks, rows, faults
}

func TestCheckOfSoundFiles(t *testing.T) {
	many := make([]run, 300) // three directory pages
	for i := range many {
		many[i] = numbers(ID(i+1), 1_000, 2)
	}
	for name, c := range map[string]struct {
		file         []byte
		blocks, rows int
	}{
		"mixed": {mixed(t), 4, 107},
		"pages": {write(t, many...), 300, 600},
		"long":  {write(t, numbers(1, 0, 20_000)), 3, 20_000},
		"empty": {write(t), 0, 0},
	} {
		if blocks, rows, faults := checked(t, c.file); blocks != c.blocks || rows != c.rows || faults != nil {
			t.Errorf("%s: %d blocks, %d rows, %v", name, blocks, rows, faults)
		}
	}
}

// Every byte of a file is covered: one that is wrong is found, and so is a file that is cut short.
func TestCheckFindsEveryByte(t *testing.T) {
	sound := mixed(t)
	for at := range sound {
		bad := bytes.Clone(sound)
		bad[at] ^= 0x10
		if _, _, faults := checked(t, bad); len(faults) == 0 {
			t.Errorf("byte %d of %d is wrong and nobody notices", at, len(sound))
		}
		if _, _, faults := checked(t, sound[:at]); len(faults) == 0 {
			t.Errorf("cut at %d of %d and nobody notices", at, len(sound))
		}
	}
}

// A block that is damaged does not hide the others.
func TestCheckGoesOn(t *testing.T) {
	bad := mixed(t)
	bad[sealed.HeaderSize+6] ^= 1
	blocks, rows, faults := checked(t, bad)
	if blocks != 4 || rows != 107 || len(faults) != 1 || !strings.Contains(faults[0], "/f is damaged at byte 16: ") {
		t.Errorf("%d blocks, %d rows, %v", blocks, rows, faults)
	}
}

// What the directory says with good checksums is compared with the blocks.
func TestCheckComparesTheDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(*Writer)
		want string
	}{
		"sum":      {func(w *Writer) { w.entries[0].Stats.Sum++ }, "statistics"},
		"zero":     {func(w *Writer) { w.entries[0].Stats.First = math.Copysign(0, -1) }, "statistics"}, // the first value is 0
		"min time": {func(w *Writer) { w.entries[0].Stats.MinTime++ }, "statistics"},
		"times":    {func(w *Writer) { w.entries[0].Last-- }, "times 1000 to 100000"},
		"versions": {func(w *Writer) { w.entries[0].Flags |= HasVersions }, "versions"},
		"order":    {func(w *Writer) { w.entries[0].ID, w.entries[1].ID = 2, 1 }, "stands behind"},
		"rows":     {func(w *Writer) { w.total.Rows++ }, "the end of the file"},
		"blocks":   {func(w *Writer) { w.total.Blocks++ }, "the end of the file"},
		"series":   {func(w *Writer) { w.total.Series-- }, "the end of the file"},
		"range":    {func(w *Writer) { w.total.Range.End++ }, "the end of the file"},
		"age":      {func(w *Writer) { w.total.Oldest = w.total.Generation + 1 }, "the end of the file"},
		"gap":      {func(w *Writer) { w.write([]byte{0}) }, "1 bytes between"},
	} {
		var out bytes.Buffer
		w := NewWriter(&out, 3, 7)
		for _, r := range []run{numbers(1, 1_000, 100), numbers(2, 1_000, 1)} {
			if err := w.Add(r.id, &r.Block); err != nil {
				t.Fatal(err)
			}
		}
		c.lie(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, faults := checked(t, out.Bytes()); !strings.Contains(strings.Join(faults, "\n"), c.want) {
			t.Errorf("%s: %q do not speak of %q", name, faults, c.want)
		}
	}
}

// The caller may stop at any time.
func TestCheckStops(t *testing.T) {
	for range Check(place(t, mixed(t)), "/f") {
		break
	}
}

func TestGoldenDump(t *testing.T) {
	f := mustOpen(t, mixed(t))
	var out bytes.Buffer
	if err := Dump(&out, f, func(b *core.Block) string { return "  (rows)\n" }); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/dump.golden"
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
	bad := mixed(t)
	bad[sealed.HeaderSize+6] ^= 1
	out.Reset()
	if err := Dump(&out, mustOpen(t, bad), nil); err != nil || strings.Count(out.String(), "\n! ") != 1 {
		t.Errorf("dump of a damaged file: %v\n%s", err, out.String())
	}
}

// FuzzCheck feeds files to everything that reads one as a whole.
func FuzzCheck(f *testing.F) {
	f.Add(mixed(f))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := place(t, b)
		for range Check(fs, "/f") {
		}
		if one, err := Open(fs, "/f"); err == nil {
			if err := errors.Join(Dump(io.Discard, one, nil), one.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}
