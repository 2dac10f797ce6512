package wasm_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

func TestRunUnloadsIdlePlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := wasm.New(t.Context(), wasm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		var ps [2]*wasm.Plugin
		for i, name := range []string{"busy", "idle"} {
			ps[i], err = h.AddNative(name, func(o abi.Options) abi.Instance {
				return guest.New(guest.Plugin{Manifest: plain.Manifest(), NewParser: plain.NewParser}, o)
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parse(t, ps[i], line); err != nil {
				t.Fatal(err)
			}
		}
		busy, err := ps[0].Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4*time.Minute + 59*time.Second)
		synctest.Wait()
		if !ps[1].Stats().Loaded {
			t.Error("unloaded before five minutes had passed")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ps[1].Stats().Loaded || !ps[0].Stats().Loaded {
			t.Errorf("loaded: idle %v, with an open stream %v; want false, true", ps[1].Stats().Loaded, ps[0].Stats().Loaded)
		}
		if _, err := parse(t, ps[1], line); err != nil || !ps[1].Stats().Loaded {
			t.Errorf("the next use does not load it again: %v", err)
		}
		busy.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// files lists a folder with times of change.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		list = append(list, fmt.Sprint(path, " ", info.Size(), " ", info.ModTime()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// After Warm nothing is loaded, and neither this process nor the next has to compile again.
func TestWarmFillsTheCache(t *testing.T) {
	dir := t.TempDir()
	module := wasmtest.Plugin(abi.Manifest{}).Bytes()
	var warm []string
	for life := range 2 {
		h, err := wasm.New(t.Context(), wasm.Options{CacheDir: dir, Interpreted: true})
		if err != nil {
			t.Fatal(err)
		}
		p := add(t, h, "x", module)
		if life == 0 {
			if err := h.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := p.Stats(); s.Loaded || s.Instances != 0 || s.MemoryBytes != 0 || s.Version == "" {
				t.Errorf("after Warm: %+v", s)
			}
			if warm = files(t, dir); len(warm) < 2 && !h.Interpreted() { // the code, and the mark of validation
				t.Errorf("the cache holds %v", warm)
			}
		}
		if _, err := parse(t, p, ""); err != nil {
			t.Fatal(err)
		}
		if now := files(t, dir); !slices.Equal(now, warm) {
			t.Errorf("life %d compiled again:\n%v\n%v", life, now, warm)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWarmReportsEveryFault(t *testing.T) {
	h := newHost(t, wasm.Options{})
	add(t, h, "a", []byte("no module"))
	add(t, h, "b", wasmtest.Plugin(abi.Manifest{}).Bytes())
	add(t, h, "c", replaced(abi.ExportABI, wasmtest.Const32(0x20000)))
	err := h.Warm(t.Context())
	if err == nil || !strings.Contains(err.Error(), "plugin a: ") || !strings.Contains(err.Error(), "plugin c: ") || strings.Contains(err.Error(), "plugin b: ") {
		t.Errorf("error %v", err)
	}
	if h.Plugin("b").Stats().Version == "" {
		t.Error("the good plugin was not loaded")
	}
}

// resident returns the memory of the process, as the kernel counts it.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("SKIPPED: the memory of a process is read from /proc")
	}
	var size, pages int64
	if _, err := fmt.Fscan(bytes.NewReader(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// A plugin that is loaded and unloaded again and again leaves nothing behind: not in the budget, which has room for one and a half of it, and not
// in the process.
func TestUnloadingGivesMemoryBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the memory of a process is read from /proc")
	}
	h := newHost(t, wasm.Options{Budget: int64(len(goGuest))*9 + 16<<20}) // code is counted sixfold
	p := goPlugin(t, h, "go")
	var before int64
	for round := range 20 {
		b, err := parse(t, p, line)
		checkLine(t, b, err)
		if err := h.Warm(t.Context()); err != nil { // knows the plugin, and unloads it
			t.Fatal(err)
		}
		if s := p.Stats(); s.Loaded || s.MemoryBytes != 0 {
			t.Fatalf("round %d: %+v", round, s)
		}
		if round == 4 {
			before = resident(t)
		}
	}
	if grown := resident(t) - before; grown > 16<<20 { // one load takes more than that
		t.Errorf("15 loads took %d MiB", grown>>20)
	}
}

// says is a stateful plugin that answers every chunk with one message.
func says(text string) []byte {
	out := fmt.Sprintf(`{"command":"message","entity":"e","time":6,"text":%q}`, text)
	m := wasmtest.Plugin(abi.Manifest{ABI: 1, Name: "s", Version: "1", Kinds: []abi.Kind{abi.KindParser}, Stateful: true},
		wasmtest.Func{Export: abi.KindParser.Export(), Code: wasmtest.Packed(40000, uint32(len(out)))})
	m.Data += strings.Repeat(" ", 40000-wasmtest.DataAt-len(m.Data)) + out
	return m.Bytes()
}

// A file is replaced on disk and added again under its name: the next stream is of the new plugin, the open one ends with the old one.
func TestFileReplacedOnDisk(t *testing.T) {
	h := newHost(t, wasm.Options{})
	path := filepath.Join(t.TempDir(), "x.wasm")
	put := func(text string) *wasm.Plugin {
		t.Helper()
		if err := os.WriteFile(path, says(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := h.Add("x", func() ([]byte, error) { return os.ReadFile(path) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	hear := func(s *wasm.Stream, want string) {
		t.Helper()
		b, err := s.Write(t.Context(), []byte("chunk"), 0)
		if err != nil || len(b.Messages) != 1 || b.Messages[0].Text != want {
			t.Errorf("got %+v, %v; want %s", b, err, want)
		}
	}
	begin := func() *wasm.Stream {
		t.Helper()
		s, err := h.Plugin("x").Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	old := put("old")
	first := begin()
	hear(first, "old")
	put("new")
	second := begin()
	hear(second, "new")
	hear(first, "old")
	first.Close()
	if old.Stats().Loaded {
		t.Error("the old plugin is still loaded after its last stream")
	}
	hear(second, "new")
}
