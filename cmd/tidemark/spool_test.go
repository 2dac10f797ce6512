package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

func mustOpenSpool(t *testing.T, fs vfs.FS, dir string) *spool {
	t.Helper()
	s := newSpool(fs, dir)
	err := s.tidy()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readSpool(t *testing.T, s *spool, name string) string {
	t.Helper()
	f, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s := mustOpenSpool(t, vfs.OS{}, dir)
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("list %v, error %v", list, err)
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("a spool without files has a folder")
	}
	large := strings.Repeat("x", spoolBlock+1)
	for _, text := range []string{"one", large, ""} { // each in the place of the one before
		if n, err := s.Put("a.body", strings.NewReader(text)); err != nil || n != int64(len(text)) {
			t.Fatalf("%d bytes, error %v", n, err)
		}
		if got := readSpool(t, s, "a.body"); got != text {
			t.Errorf("%d bytes, want %d", len(got), len(text))
		}
	}
	if _, err := s.Put("c.json", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	if n := s.bytes(); n != 2 {
		t.Errorf("an empty file and one of two bytes take %d", n)
	}
	if err := s.Remove("c.json"); err != nil {
		t.Fatal(err)
	}
	cut := io.MultiReader(strings.NewReader("x"), readerOf{io.ErrUnexpectedEOF})
	if _, err := s.Put("b.body", cut); err != io.ErrUnexpectedEOF {
		t.Errorf("a body that is cut off: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "c.body.tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s = mustOpenSpool(t, vfs.OS{}, dir)
	if list, err := s.List(); len(list) != 1 || list["a.body"] != 0 || err != nil {
		t.Errorf("list %v, error %v", list, err)
	}
	for range 2 {
		if err := s.Remove("a.body"); err != nil {
			t.Error(err)
		}
	}
	if files, err := os.ReadDir(s.dir); len(files) != 0 || err != nil {
		t.Errorf("files %v, error %v", files, err)
	}
}

type readerOf struct{ err error }

func (r readerOf) Read([]byte) (int, error) { return 0, r.err }

// What Put has acknowledged survives a power cut, whatever else is lost; what it has not is whole or absent.
func TestSpoolSurvivesPowerCuts(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	m := vfs.NewMem()
	m.Record()
	if err := m.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	s := mustOpenSpool(t, m, "/data")
	if _, err := s.Put("a", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	done := m.Ops()
	random := rand.New(rand.NewPCG(1, 2))
	for n := range done + 1 {
		for range 5 {
			after := mustOpenSpool(t, m.Prefix(n).Crash(random), "/data")
			list, err := after.List()
			if err != nil {
				t.Fatal(err)
			}
			switch size, there := list["a"]; {
			case there && (size != int64(len(text)) || readSpool(t, after, "a") != text):
				t.Errorf("after %d operations of %d: %d bytes of %d", n, done, size, len(text))
			case !there && n == done:
				t.Error("an acknowledged file is gone")
			}
		}
	}
}

// Every fault of the disk is an error that does not show paths, and leaves no file.
func TestSpoolFaults(t *testing.T) {
	for n := range 20 {
		m := vfs.NewMem()
		if err := m.MkdirAll("/data"); err != nil {
			t.Fatal(err)
		}
		for _, fault := range []error{vfs.ErrNoSpace, vfs.ErrIO} {
			left := n
			fs := vfs.Fault(m, func(vfs.Op) error {
				if left--; left == -1 {
					return fault
				}
				return nil
			})
			s := &spool{fs, "/data/uploads"}
			_, err := s.Put("a", strings.NewReader("text"))
			if err == nil {
				continue // the fault was not met, or the folder was looked for anew
			}
			var e *core.Error
			if !errors.As(err, &e) || strings.Contains(e.Text, "/data") || (e.Code == core.NoSpace) != (fault == vfs.ErrNoSpace) {
				t.Errorf("fault %d %v: %v", n, fault, err)
			}
			list, err := (&spool{m, "/data/uploads"}).List()
			if err != nil || len(list) > 1 {
				t.Errorf("fault %d: list %v, error %v", n, list, err)
			}
		}
	}
	m := vfs.NewMem()
	m.SetLimit(1000)
	if err := m.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	_, err := mustOpenSpool(t, m, "/data").Put("a", strings.NewReader(strings.Repeat("x", 600)))
	if core.CodeOf(err) != core.NoSpace || !strings.Contains(err.Error(), "may take half") {
		t.Error(err)
	}
}
