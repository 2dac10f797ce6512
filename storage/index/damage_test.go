package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write testdata from what the program gives")

// file puts bytes into a file.
func file(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
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

// sampleRun is the bytes of a run with every section, and what is in it.
func sampleRun(t testing.TB, series int) (run []byte, model map[string]ID) {
	t.Helper()
	fs := vfs.NewMem()
	x := New(0)
	defer x.Close()
	old := x.Add(keyOf("old", "e"))
	x.Freeze()
	x.Adopt(writeRun(t, fs, "1.index", x.WriteFrozen))
	x.Remove(old)
	model = map[string]ID{}
	for i := range series {
		key := keyOf(fmt.Sprint("metric-", i%7), fmt.Sprint("host-", i/7), "core", fmt.Sprint(i%3))
		model[key] = x.Add(key)
	}
	x.Freeze()
	r := writeRun(t, fs, "2.index", x.WriteFrozen)
	defer r.Close()
	run = make([]byte, r.Bytes())
	if _, err := r.m.ReadAt(run, 0); err != nil {
		t.Fatal(err)
	}
	return run, model
}

// useAll asks an index of one run everything, and checks that what it answers is of the model.
func useAll(t testing.TB, x *Index, model map[string]ID) {
	t.Helper()
	known := map[ID]string{}
	for key, id := range model {
		known[id] = key
		if got := x.Lookup([]byte(key)); got != id && got != None {
			t.Errorf("lookup of %q: %d, want %d", key, got, id)
		}
		if got, ok := x.Key(id, nil); ok && string(got) != key {
			t.Errorf("key of %d: %q, want %q", id, got, key)
		}
	}
	for _, ids := range [][]ID{x.Select("", nil), x.Select("metric-3", nil), x.Select("", []string{"host-1"}), x.Select("", []string{"host-1", "host-20"}),
		x.Select("metric-3", []string{"host-1"}), x.Select("metric-3", []string{"host-1", "host-2", "host-3", "host-4"})} {
		last := ""
		for _, id := range ids {
			if known[id] == "" || known[id] <= last {
				t.Errorf("series %d, %q, after %q", id, known[id], last)
			}
			last = known[id]
		}
	}
	for range x.Metrics("m") {
	}
	for range x.Entities("host-2") {
	}
	x.HasTag("core")
	x.Rename(model[keyOf("metric-1", "host-1", "core", "2")], keyOf("other", "host"))
	x.Remove(model[keyOf("metric-2", "host-1", "core", "0")])
}

// Wherever one bit is flipped, it is found by the check, and readers give right answers or fewer of them, and say why.
func TestFlippedBits(t *testing.T) {
	run, model := sampleRun(t, 300)
	refused, found := 0, 0
	for at := 0; at < len(run); at += 97 {
		fs := vfs.NewMem()
		b := bytes.Clone(run)
		b[at] ^= 1 << (at % 8)
		file(t, fs, "1.index", b)
		if err := CheckRun(fs, "1.index"); err == nil {
			t.Fatalf("byte %d of %d: the check finds nothing", at, len(run))
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", at, err)
		}
		r, err := OpenRun(fs, "1.index")
		if err != nil {
			refused++
			continue
		}
		told := 0
		x := Open(0, []*Run{r}, 1)
		x.OnDamage(func(*Run, error) { told++ })
		useAll(t, x, model)
		whole := len(x.Select("", nil)) == len(model)-1 // one was removed
		if err := x.Err(); (err != nil) != (told == 1) || told > 1 {
			t.Errorf("byte %d: told %d times of %v", at, told, err)
		} else if err != nil {
			found++
			if x.PlanMerge() != nil {
				t.Error("a damaged run was planned to be merged")
			}
		} else if !whole {
			t.Errorf("byte %d: series are missing and nothing is said", at)
		}
		if err := DumpRun(io.Discard, r); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: dump: %v", at, err)
		}
		x.Close()
	}
	if refused == 0 || found < 20 {
		t.Errorf("%d runs refused, damage found in %d", refused, found)
	}
}

// A run that was cut short or continued is refused.
func TestLengthOfRun(t *testing.T) {
	run, _ := sampleRun(t, 100)
	fs := vfs.NewMem()
	for _, b := range [][]byte{nil, run[:10], run[:len(run)-1], run[:len(run)/2], append(bytes.Clone(run), 0), append(bytes.Clone(run), run...)} {
		file(t, fs, "1.index", b)
		if _, err := OpenRun(fs, "1.index"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d of %d bytes: %v", len(b), len(run), err)
		}
	}
	if _, err := OpenRun(fs, "2.index"); !errors.Is(err, vfs.ErrNotExist) {
		t.Error(err)
	}
}

// reseal makes all checksums of a damaged run right where it can: those of header and footer.
func reseal(b []byte) {
	if len(b) < headerBytes+footerBytes {
		return
	}
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], castagnoli))
	foot := b[len(b)-footerBytes:]
	binary.LittleEndian.PutUint64(foot, uint64(len(b)))
	binary.LittleEndian.PutUint32(foot[footerFields:], crc32.Checksum(foot[:footerFields], castagnoli))
}

// Any bytes are refused or used without a panic, and without more memory than the file is long, whatever its lengths say.
func FuzzOpenRun(f *testing.F) {
	run, model := sampleRun(f, 60)
	f.Add(run)
	f.Add(run[:len(run)-300])
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 20 { // other footers
		b := bytes.Clone(run)
		b[len(b)-footerBytes+rnd.IntN(200)] ^= byte(1 + rnd.IntN(255))
		f.Add(b)
	}
	x := New(0)
	f.Cleanup(x.Close)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		reseal(b)
		fs := vfs.NewMem()
		file(t, fs, "1.index", b)
		r, err := OpenRun(fs, "1.index")
		if err != nil {
			return
		}
		one := &Index{cache: x.cache, seed: x.seed, memory: newPart(x.seed), next: 1000}
		list, _ := stackUp([]*Run{r})
		one.stack = newLayers(list)
		for key, id := range model {
			one.Lookup([]byte(key))
			one.Key(id, nil)
		}
		one.Select("", nil)
		one.Select("metric-3", []string{"host-1"})
		one.Select("", []string{"host-1"})
		for range one.Metrics("") {
		}
		for range one.Entities("") {
		}
		one.HasTag("core")
		one.Remove(3)
		_ = MergeRuns(io.Discard, []*Run{r}, NoRuns)
		_ = CheckRun(fs, "1.index")
		_ = DumpRun(io.Discard, r)
		one.stack.release()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Any bytes with a right checksum are decoded or refused.
func FuzzBlock(f *testing.F) {
	var w blockWriter
	for i := range 10 {
		w.add(fmt.Appendf(nil, "key-%03d", i*7), [2]uint64{uint64(i * 1000), uint64(i)})
	}
	f.Add(w.flush(nil, 2, 0)[crcBytes:], "key-021")
	f.Add([]byte{1, 0, 0, 0, 0}, "")
	f.Add([]byte{32, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 56}, "x")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		for columns := 1; columns <= 2; columns++ {
			var b block
			if b.parse(body, columns) != nil {
				continue
			}
			for c := range columns {
				for i := range b.n {
					b.columns[c].at(i)
				}
			}
			if slot, _, err := b.search([]byte(text)); err == nil && slot > b.n {
				t.Errorf("slot %d of %d", slot, b.n)
			}
			var walk walker
			walk.start(&b)
			for range b.n {
				if walk.next() != nil {
					break
				}
			}
		}
	})
}

// search agrees with a walk for texts that are there, and for those before, between and behind them.
func TestSearchBlock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	word := func() []byte {
		b := make([]byte, rnd.IntN(12))
		for i := range b {
			b[i] = "\x00ab\xff"[rnd.IntN(4)]
		}
		return b
	}
	for range 2000 {
		var words [][]byte
		for range 1 + rnd.IntN(nodeSize) {
			words = append(words, word())
		}
		slices.SortFunc(words, bytes.Compare)
		words = slices.CompactFunc(words, bytes.Equal)
		var w blockWriter
		for i, text := range words {
			w.add(text, [2]uint64{uint64(i), rnd.Uint64N(1 << 50)})
		}
		last := w.numbers[1]
		body, err := unseal(w.flush(nil, 2, 5), 5)
		if err != nil {
			t.Fatal(err)
		}
		var b block
		if err := b.parse(body, 2); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			text := word()
			want, found := slices.BinarySearchFunc(words, text, bytes.Compare)
			if slot, got, err := b.search(text); slot != want || got != found || err != nil {
				t.Fatalf("%q in %q: %d, %v, %v, want %d, %v", text, words, slot, got, err, want, found)
			}
		}
		for i := range words {
			if b.columns[0].at(i) != uint64(i) || b.columns[1].at(i) != last[i] {
				t.Fatalf("number %d is %d, %d", i, b.columns[0].at(i), b.columns[1].at(i))
			}
		}
	}
}

// The golden run was written by the release that made version 1: it is read as it is, and written byte for byte.
func TestGoldenRun(t *testing.T) {
	const path = "testdata/format1.index"
	fs := vfs.NewMem()
	x := New(0)
	defer x.Close()
	old := x.Add(keyOf("cpu", "gone"))
	x.Freeze()
	x.Adopt(writeRun(t, fs, "1.index", x.WriteFrozen))
	x.Remove(old)
	for i := range 18 {
		x.Add(keyOf("cpu", fmt.Sprintf("host-%02d", 17-i), "core", fmt.Sprint(i%2)))
	}
	x.Add(keyOf("disk", "host-03", "mount", "/", "type", "ext4"))
	x.Freeze()
	r := writeRun(t, fs, "2.index", x.WriteFrozen)
	defer r.Close()
	got := make([]byte, r.Bytes())
	if _, err := r.m.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := DumpRun(&dump, r); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		for name, b := range map[string][]byte{path: got, "testdata/format1.txt": dump.Bytes()} {
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := CheckRun(vfs.OS{}, path); err != nil {
		t.Fatal(err)
	}
	golden, err := OpenRun(vfs.OS{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	want := make([]byte, golden.Bytes())
	if _, err := golden.m.ReadAt(want, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the run is written with other bytes")
	}
	text, err := os.ReadFile("testdata/format1.txt")
	if err != nil {
		t.Fatal(err)
	}
	dump.Reset()
	if err := DumpRun(&dump, golden); err != nil || dump.String() != string(text) {
		t.Errorf("dump: %v\n%s", err, dump.String())
	}
	if sum := crc32.Checksum(want[:len(want)-footerBytes], castagnoli); golden.content != sum || binary.LittleEndian.Uint32(want[len(want)-footerBytes+184:]) != sum {
		t.Errorf("the footer has %08x for the %08x of what is before it", golden.content, sum)
	}
	// The first leaf by hand: 16 keys; ids from 4 on in 4 bits each, 19 down to 4; a whole key of 19 bytes, then one that shares 10 bytes with it.
	leaf := "\x10\x04\x04\xef\xcd\xab\x89\x67\x45\x23\x01\x00\x13cpu\x00host-00\x00core\x011\x00\x0a\x091\x00core\x010\x00"
	if got := want[headerBytes+crcBytes:][:len(leaf)]; string(got) != leaf {
		t.Errorf("the first leaf begins %x, want %x", got, leaf)
	}
	if lines := strings.Count(string(text), "\nkey "); lines != 19 {
		t.Errorf("%d keys in the golden dump, want 19", lines)
	}
}

// A run whose footer claims more than the file can hold costs nothing.
func TestHugeClaims(t *testing.T) {
	run, _ := sampleRun(t, 60)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for at := range footerFields / 4 {
		b := bytes.Clone(run)
		binary.LittleEndian.PutUint32(b[len(b)-footerBytes+4*at:], 0x7fffff00)
		reseal(b)
		fs := vfs.NewMem()
		file(t, fs, "1.index", b)
		if r, err := OpenRun(fs, "1.index"); err == nil {
			_ = MergeRuns(io.Discard, []*Run{r}, NoRuns)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		_ = CheckRun(fs, "1.index")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
		t.Errorf("%d MiB allocated for files of %d bytes", used>>20, len(run))
	}
}
