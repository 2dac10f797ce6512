package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql"
)

// Files that a query left when the process died are gone after the next start, and nothing else is.
func TestSpillOfAnEarlierProcessIsRemoved(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"spill/run-1", "kept"} {
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openSQL(Config{Data: data, Memory: 512 << 20}, sql.Options{Log: slog.New(slog.DiscardHandler)})
	if _, err := os.Stat(filepath.Join(data, "spill")); !os.IsNotExist(err) {
		t.Errorf("the folder of temporary files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, "kept")); err != nil {
		t.Error(err)
	}
}

// The share of one query follows the budget within its bounds, unless it is set.
func TestMemoryOfAQuery(t *testing.T) {
	for _, tt := range []struct{ budget, set, want int64 }{
		{64 << 20, 0, 8 << 20},
		{512 << 20, 0, 32 << 20},
		{64 << 30, 0, 256 << 20},
		{512 << 20, 5 << 20, 5 << 20},
	} {
		e := openSQL(Config{Data: t.TempDir(), Memory: tt.budget, SQLMemory: tt.set}, sql.Options{Log: slog.New(slog.DiscardHandler)})
		if e.Memory != tt.want {
			t.Errorf("budget %d, setting %d: a query gets %d, want %d", tt.budget, tt.set, e.Memory, tt.want)
		}
	}
}
