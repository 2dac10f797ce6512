package events

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

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

// checked counts blocks and messages, and lists the faults.
func checked(t testing.TB, b []byte) (blocks, messages int, faults []string) {
	t.Helper()
	for one, err := range Check(place(t, b), "/f") {
		if one != nil {
			blocks, messages = blocks+1, messages+one.Count
		}
		var damage *DamageError
		if err != nil {
			faults = append(faults, err.Error())
			if !errors.As(err, &damage) || damage.Path != "/f" || damage.Offset < 0 || damage.Offset > int64(len(b)) {
				t.Errorf("the fault %v has no place in the file", err)
			}
		}
	}
	return blocks, messages, faults
}

// ordered is sample in the order of a file: the messages of one time by entity and type.
func ordered(n int) []Record {
	list := sample(n)
	for i := range list {
		list[i].Time = core.Time(10_000_000 - i*1000)
	}
	return list
}

func TestCheckOfSoundFiles(t *testing.T) {
	for _, n := range []int{0, 1, 30, 3000} {
		blocks, messages, faults := checked(t, write(t, ordered(n)))
		if blocks != (n+blockRecords-1)/blockRecords || messages != n || faults != nil {
			t.Errorf("%d messages: %d in %d blocks, %v", n, messages, blocks, faults)
		}
	}
}

// Every byte of a file is covered: one that is wrong is found, and so is a file that is cut short.
func TestCheckFindsEveryByte(t *testing.T) {
	sound := write(t, ordered(30))
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

// What the directory says with good checksums is compared with the blocks; the order of the messages is verified within blocks and from one to the next.
func TestCheckComparesTheDirectory(t *testing.T) {
	lied := func(lie func(*Block)) []byte {
		var out bytes.Buffer
		w, err := NewWriter(&out, 2, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ordered(10) {
			if err := w.Add(&r); err != nil {
				t.Fatal(err)
			}
		}
		w.flush()
		r := sealed.Reader{Rest: w.directory}
		b := parseBlock(&r, w.offset)
		lie(&b)
		w.directory = b.append(nil)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	swapped := ordered(10)
	swapped[4], swapped[5] = swapped[5], swapped[4]
	long := ordered(2000)
	long[blockRecords].Time = long[0].Time
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"newest":     {lied(func(b *Block) { b.Newest++ }), "times"},
		"oldest":     {lied(func(b *Block) { b.Oldest-- }), "times"},
		"received":   {lied(func(b *Block) { b.Received++ }), "times"},
		"severities": {lied(func(b *Block) { b.severities ^= 1 }), "severities"},
		"entities":   {lied(func(b *Block) { b.entities[0]++ }), "entities or types"},
		"types":      {lied(func(b *Block) { b.types = b.types[1:] }), "entities or types"},
		"count":      {lied(func(b *Block) { b.Count-- }), "a block ends too"},
		"order":      {write(t, swapped), "out of order"},
		"blocks":     {write(t, long), "out of order"},
	} {
		if _, _, faults := checked(t, c.file); !strings.Contains(strings.Join(faults, "\n"), c.want) {
			t.Errorf("%s: %q do not speak of %q", name, faults, c.want)
		}
	}
	if _, _, faults := checked(t, lied(func(*Block) {})); faults != nil {
		t.Errorf("without a lie: %q", faults)
	}
}

func TestGoldenDump(t *testing.T) {
	f, err := openBytes(t, write(t, ordered(12)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := errors.Join(Dump(&out, f, func(r *Record) string { return r.Text }), f.Close()); err != nil {
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
}

// FuzzCheck feeds files to everything that reads one as a whole.
func FuzzCheck(f *testing.F) {
	f.Add(write(f, ordered(5)))
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
