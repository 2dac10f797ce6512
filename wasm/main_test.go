package wasm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/wasm/wasmtest"
)

// goGuest is the plugin of wasmtest/testdata/guest, built once.
var goGuest []byte

// cacheDir is shared by all tests, and by runs, since compiling a Go plugin takes seconds.
var cacheDir string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tidemark-guest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if goGuest, err = wasmtest.BuildInto(dir, "wasmtest/testdata/guest"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = dir
	}
	cacheDir = filepath.Join(base, "tidemark-test", "wasm")
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
