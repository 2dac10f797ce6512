package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

var kind = Kind{Name: "tests", Magic: "tidetest", Version: 3, TailSize: 8}

// file is a header, a directory of 5 bytes and a tail of 8, both twice: 16 + 10 + 16 bytes.
func file() []byte {
	b := kind.AppendHeader(nil)
	b = append(b, "entryentry"...)
	return append(b, "the tailthe tail"...)
}

func open(t *testing.T, b []byte) (*File, error) {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Open("/f", vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return kind.Open(fs, "/f")
}

func expect(want string) func([]byte) error {
	return func(b []byte) error {
		if string(b) != want {
			return fmt.Errorf("%q", b)
		}
		return nil
	}
}

var ends = Ends{Tail: expect("the tail"), Directory: func() (int64, int64) { return HeaderSize, 5 }, Content: expect("entry")}

// One bad byte costs nothing but a line of Check; both copies bad is damage that says where.
func TestEndsStandTwice(t *testing.T) {
	for at := range file() {
		b := file()
		b[at] ^= 1
		f, err := open(t, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.ReadEnds(ends); err != nil {
			t.Errorf("byte %d: %v", at, err)
		}
		told := 0
		f.Check(ends, func(error) { told++ })
		if told != 1 {
			t.Errorf("byte %d: %d faults are told, want 1", at, told)
		}
	}
	for copies, at := range map[[2]int]int64{{HeaderSize, HeaderSize + 5}: HeaderSize, {26, 34}: 34} {
		b := file()
		b[copies[0]] ^= 1
		b[copies[1]] ^= 1
		f, err := open(t, b)
		if err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if err := f.ReadEnds(ends); !errors.As(err, &damage) || damage.Offset != at || damage.Path != "/f" {
			t.Errorf("bytes %v: %v", copies, err)
		}
	}
}

func TestTooShort(t *testing.T) {
	var damage *DamageError
	if _, err := open(t, file()[:31]); !errors.As(err, &damage) {
		t.Errorf("a file of 31 bytes: %v", err)
	}
	if _, err := open(t, file()[:32]); err != nil {
		t.Errorf("a file of 32 bytes: %v", err)
	}
}

func TestHeader(t *testing.T) {
	if want := []byte("tidetest\x03\x00\x00\x00\x00\x00\x00\x00"); !bytes.Equal(kind.AppendHeader(nil), want) {
		t.Errorf("header %q", kind.AppendHeader(nil))
	}
}

// A reader gives what was written, and zeroes behind the end.
func TestReader(t *testing.T) {
	b := binary.AppendVarint(binary.AppendUvarint(nil, 300), -5)
	b = append(b, 7)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, 8), 9)
	r := Reader{Rest: append(b, "xy"...)}
	if u, v, a, c, d := r.Uvarint(), r.Varint(), r.U8(), r.U32(), r.U64(); u != 300 || v != -5 || a != 7 || c != 8 || d != 9 || r.Failed {
		t.Errorf("read %d %d %d %d %d, failed %t", u, v, a, c, d, r.Failed)
	}
	if got := string(r.Take(2)); got != "xy" || r.Failed {
		t.Errorf("read %q", got)
	}
	for name, read := range map[string]func(*Reader) uint64{
		"Uvarint": (*Reader).Uvarint, "Varint": func(r *Reader) uint64 { return uint64(r.Varint()) }, "U8": func(r *Reader) uint64 { return uint64(r.U8()) },
		"U32": func(r *Reader) uint64 { return uint64(r.U32()) }, "U64": (*Reader).U64, "Take": func(r *Reader) uint64 { return uint64(len(r.Take(1))) },
	} {
		r := Reader{Rest: nil}
		if v := read(&r); v != 0 || !r.Failed {
			t.Errorf("%s behind the end: %d, failed %t", name, v, r.Failed)
		}
	}
}
