package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// TestBytes writes three entries and compares with what FORMAT.md draws, by hand.
func TestBytes(t *testing.T) {
	s := newStore(t)
	s.table.Put([]byte("zz"), nil)
	s.flush() // so that the mark below is kept
	s.table.Put([]byte("abc"), []byte("1"))
	s.table.Put([]byte("abd"), nil)
	s.table.Delete([]byte("b"))
	s.flush()
	got := readFile(t, s.fs, "2.table")

	u32 := func(b []byte, v int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) }
	u64 := func(b []byte, v int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }
	crc := func(b []byte) int { return int(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))) }
	section := func(raw string) string {
		tail := append(u32(nil, len(raw)), 0)
		tail = append(tail, raw...)
		return string(u32(nil, crc(tail))) + string(tail)
	}
	header := u32([]byte("tidetabl"), 2)
	header = u32(header, crc(header))
	block := section("\x00\x03\x02abc1" + "\x02\x01\x01d" + "\x00\x01\x00b" + "\x00\x00\x00\x00" + "\x01\x00\x00\x00")
	index := section("\x03abc" + "\x01b" + "\x01a" + string(rune(len(block))))
	at := len(header) + len(block)
	footer := u64(nil, at)
	footer = u32(u32(footer, len(index)), sectionBytes+64)
	content := crc(got[:len(got)-48])
	footer = u32(u32(u32(u64(footer, 3), 1), content), 2)
	footer = u32(footer, crc(footer))
	footer = append(footer, "tabltide"...)
	if want := string(header) + block + index; !bytes.HasPrefix(got, []byte(want)) {
		t.Errorf("file begins with\n%q instead of\n%q", got[:len(want)], want)
	}
	if !bytes.HasSuffix(got, footer) || len(got) != at+len(index)+sectionBytes+64+len(footer) {
		t.Errorf("%d bytes, ends with\n%q instead of\n%q", len(got), got[len(got)-len(footer):], footer)
	}
}

// TestVersions reads a file of version 1, which has no checksum of its content, and refuses one of a version to come with what to do about it.
func TestVersions(t *testing.T) {
	as := func(version uint32, edit func(footer []byte)) []byte {
		b := sample(t)
		crc := func(part []byte) uint32 { return crc32.Checksum(part, castagnoli) }
		binary.LittleEndian.PutUint32(b[8:], version)
		binary.LittleEndian.PutUint32(b[12:], crc(b[:12]))
		footer := b[len(b)-footerBytes:]
		binary.LittleEndian.PutUint32(footer[32:], version)
		edit(footer)
		binary.LittleEndian.PutUint32(footer[36:], crc(footer[:36]))
		return b
	}
	f, err := openBytes(t, as(1, func(footer []byte) { clear(footer[28:32]) }))
	if err != nil {
		t.Fatal(err)
	}
	want, err := openBytes(t, sample(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(f); err != nil || f.entries != want.entries || f.tombstones != want.tombstones || f.tombstones != 34 {
		t.Errorf("version 1: %v, %d entries, %d deleted", err, f.entries, f.tombstones)
	}
	var later *vfs.VersionError
	if _, err := openBytes(t, as(9, func([]byte) {})); !errors.As(err, &later) || *later != (vfs.VersionError{Path: "x.table", Found: 9, Known: 2}) {
		t.Errorf("version 9: %v", err)
	}
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	h, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	size, _ := h.Size()
	b := make([]byte, size)
	if _, err := h.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// openBytes opens a file of the given bytes.
func openBytes(t testing.TB, b []byte) (*File, error) {
	t.Helper()
	fs := vfs.NewMem()
	h, err := fs.Open("x.table", vfs.Create)
	if err == nil {
		_, err = h.WriteAt(b, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	return OpenFile(fs, "x.table")
}

// sample is a file of some blocks with tombstones and a large value.
func sample(t testing.TB) []byte {
	s := newStore(t)
	s.table.Put([]byte("zz"), nil)
	s.flush()
	for i := range 300 {
		s.table.Put(fmt.Appendf(nil, "key %04d", i), fmt.Appendf(nil, "value %d", i*i))
	}
	for i := 0; i < 300; i += 9 {
		s.table.Delete(fmt.Appendf(nil, "key %04d", i))
	}
	s.table.Put([]byte("key 0100 large"), bytes.Repeat([]byte("large"), 2000))
	s.flush()
	return readFile(t, s.fs, "2.table")
}

// TestDamage flips each byte in turn: opening or checking names the file, and no read gives a wrong value.
func TestDamage(t *testing.T) {
	good := sample(t)
	if f, err := openBytes(t, good); err != nil || Check(f) != nil {
		t.Fatalf("the sound file: %v", err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x41
		f, err := openBytes(t, bad)
		if err == nil {
			err = Check(f)
		}
		var damage *DamageError
		if !errors.As(err, &damage) && !strings.Contains(fmt.Sprint(err), "version") {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	for _, n := range []int{0, 15, 63, len(good) / 2, len(good) - 1} {
		if _, err := openBytes(t, good[:n]); err == nil {
			t.Errorf("opened the first %d bytes", n)
		}
	}
}

// TestDamagedBlock reads around a bad block and into it.
func TestDamagedBlock(t *testing.T) {
	good := sample(t)
	f, err := openBytes(t, good)
	if err != nil {
		t.Fatal(err)
	}
	at := f.blocks[1].offset
	good[at+20] ^= 1
	f, err = openBytes(t, good)
	if err != nil {
		t.Fatal(err)
	}
	table := Open(Options{}, []*File{f})
	if value, ok, err := table.Get([]byte("key 0001")); string(value) != "value 1" || !ok || err != nil {
		t.Errorf("a key of a sound block: %q, %v, %v", value, ok, err)
	}
	_, _, err = table.Get(f.separator(1))
	_, _, err2 := table.Get([]byte("key 0100 large"))
	var damage *DamageError
	if err = errors.Join(err, err2); !errors.As(err, &damage) || damage.Path != "x.table" || damage.Offset != at {
		t.Errorf("a key of the bad block: %v", err)
	}
	// A scan that goes on in spite of the damage loses the entries of the block, and nothing else.
	lost := f.blocks[1:3]
	seen, faults := 0, 0
	for e, err := range table.Ascend(nil, nil) {
		switch {
		case err != nil:
			faults++
			if !errors.As(err, &damage) || damage.Offset != at {
				t.Errorf("scan: %v", err)
			}
		case bytes.Compare(e.Key, f.separators[lost[0].key:lost[0].keyEnd]) >= 0 && bytes.Compare(e.Key, f.separators[lost[1].key:lost[1].keyEnd]) < 0:
			t.Errorf("key %q of the bad block", e.Key)
		default:
			seen++
		}
	}
	whole, _ := openBytes(t, sample(t))
	in := 0
	if err := whole.walk(1, func(one *item) error {
		if !one.dead {
			in++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if faults != 1 || seen != 267-in {
		t.Errorf("scan: %d entries and %d faults, of 267 entries, %d of them in the bad block", seen, faults, in)
	}
}

// reseal makes checksums right again, so that a fuzzer gets behind them.
func reseal(b []byte) {
	le := binary.LittleEndian
	sum := func(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }
	if len(b) < headerBytes+footerBytes {
		return
	}
	le.PutUint32(b[12:], sum(b[:12]))
	footer := b[len(b)-footerBytes:]
	le.PutUint32(footer[36:], sum(footer[:36]))
	body := b[:len(b)-footerBytes]
	index, length := le.Uint64(footer), uint64(le.Uint32(footer[8:]))
	if index > uint64(len(body)) || length > uint64(len(body))-index || length < 4 {
		return
	}
	le.PutUint32(body[index:], sum(body[index+4:index+length]))
	if filter := body[index+length:]; len(filter) > 4 {
		le.PutUint32(filter, sum(filter[4:]))
	}
	raw, err := unpack(body[index:][:length])
	if err != nil {
		return
	}
	f := &File{}
	if f.parseIndex(raw, int64(index)) != nil {
		return
	}
	for _, p := range f.blocks {
		block := body[p.offset:][:p.length]
		le.PutUint32(block, sum(block[4:]))
	}
}

func FuzzOpenFile(f *testing.F) {
	f.Add(sample(f))
	s := newStore(f)
	s.table.Put([]byte("a"), []byte("b"))
	s.flush()
	f.Add(readFile(f, s.fs, "1.table"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reseal(b)
		file, err := openBytes(t, b)
		if err != nil {
			return
		}
		sound := Check(file) == nil
		table := Open(Options{}, []*File{file})
		for e, err := range table.Ascend(nil, nil) {
			if err != nil {
				break
			}
			value, ok, err := table.Get(e.Key)
			if sound && (!ok || err != nil || !bytes.Equal(value, e.Value)) {
				t.Fatalf("key %q of a sound file: %q, %v, %v", e.Key, value, ok, err)
			}
		}
		for range table.Ascend([]byte("key 01"), []byte("key 02")) {
		}
	})
}

func TestDump(t *testing.T) {
	f, err := openBytes(t, sample(t))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	err = Dump(&text, f, func(key, value []byte) string {
		if value == nil {
			return fmt.Sprintf("%s is deleted", key)
		}
		return fmt.Sprintf("%s has %d bytes", key, len(value))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"301 entries, 34 of them deleted", "\n  key 0000 is deleted\n  key 0001 has 7 bytes\n", "\n  key 0100 large has 10000 bytes\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestWriteFails lets every write fail once: the frozen part stays, and the next attempt succeeds.
func TestWriteFails(t *testing.T) {
	s := newStore(t)
	for i := range 30000 {
		s.table.Put(fmt.Appendf(nil, "%d", i*7919%30011), fmt.Appendf(nil, "%d", i*i))
	}
	s.table.Freeze()
	for n := int64(0); ; n++ {
		fault := &vfs.FailAt{N: n, Err: vfs.ErrNoSpace, Match: func(op vfs.Op) bool { return op.Kind == vfs.OpWrite }}
		h, err := vfs.Fault(s.fs, fault.Inject).Open("failing.table", vfs.Create)
		if err != nil {
			t.Fatal(err)
		}
		err = s.table.WriteFrozen(&sink{file: h})
		h.Close()
		if !fault.Fired() {
			if err != nil || n < 2 {
				t.Fatalf("after %d writes: %v", n, err)
			}
			break
		}
		if !errors.Is(err, vfs.ErrNoSpace) || !s.table.Frozen() {
			t.Fatalf("write %d: %v", n, err)
		}
	}
	s.flush()
	if value, ok := s.get("7919"); !ok || value != "1" {
		t.Errorf("%q, %v", value, ok)
	}
}
