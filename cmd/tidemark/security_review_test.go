package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// taken is an ingester that remembers the documents of its last batch.
type taken struct{ documents []core.DocChange }

func (k *taken) Ingest(_ context.Context, b *core.Batch) (core.Receipt, error) {
	k.documents = b.Documents
	return core.Receipt{}, nil
}

// TestPluginsOnlyDescribe: the server writes what a plugin says of metrics with its own rights, so that it must not be settings of which data depends.
func TestPluginsOnlyDescribe(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`{"tags":{"table":"CPU"}}`, `{"tags":{"table":"CPU"}}`},
		{`{"enabled":false,"retentionDays":1,"units":"%","persistent":false}`, `{"units":"%"}`},
		{`{"enabled":false}`, ""},
	} {
		var log taken
		configs := parserConfigs{catalog: memstore.New(), ingest: &log}
		err := configs.describe(t.Context(), []core.DocChange{{Kind: core.DocMetric, Key: "cpu", Op: core.DocPatch, Body: []byte(c.sent)}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(log.documents) > 0 {
			got = string(log.documents[0].Body)
		}
		if got != c.want {
			t.Errorf("%s: the server writes %s, want %s", c.sent, got, c.want)
		}
	}
}

// TestCredentialsAreForTheOwnerAlone: a file that others can read must not become the one with the password.
func TestCredentialsAreForTheOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), credentialsFile)
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, []byte("admin:secret\n")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %o", mode)
	}
}
