package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// The verb takes its credentials from the environment, else from the data directory.
func TestRemoteCredentials(t *testing.T) {
	data := t.TempDir()
	const variable = "TIDEMARK_TEST_PASSWORD"
	r := remote{Data: data, PWEnv: variable}
	if _, _, err := r.credentials(); err == nil || !strings.Contains(err.Error(), variable) {
		t.Errorf("no credentials at all: %v", err)
	}
	if err := os.WriteFile(filepath.Join(data, credentialsFile), []byte("root:a:b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if user, password, err := r.credentials(); err != nil || user != "root" || password != "a:b" {
		t.Errorf("%s %s %v", user, password, err)
	}
	r.As = "eva"
	if _, _, err := r.credentials(); err == nil || !strings.Contains(err.Error(), "root") || strings.Contains(err.Error(), "a:b") {
		t.Errorf("another user than the file has: %v", err)
	}
	t.Setenv(variable, "secret1")
	if user, password, err := r.credentials(); err != nil || user != "eva" || password != "secret1" {
		t.Errorf("%s %s %v", user, password, err)
	}
	r.As = ""
	if user, _, err := r.credentials(); err != nil || user != "admin" {
		t.Errorf("%s %v", user, err)
	}
}

// BenchmarkAccess is what access costs over the real database: to know the caller, and to ask for one entity.
func BenchmarkAccess(b *testing.B) {
	db, _, err := storage.Open(vfs.OS{}, b.TempDir(), storage.Options{Sync: journal.Never})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close(b.Context())
	access := auth.NewWatch(db)
	pipe := ingest.New(access, db, ingest.Options{})
	users := auth.New(db, pipe, auth.Options{Changes: access, Clock: func() core.Time { return core.TimeOf(time.Now()) }})
	change := func(kind core.DocKind, key, body string) {
		batch := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{{Kind: kind, Key: key, Op: core.DocPatch, Body: []byte(body)}}}
		if _, err := pipe.Ingest(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 1000 {
		change(core.DocEntity, fmt.Sprint("e", i), "{}")
	}
	change(core.DocGroup, "g", `{"members":["e1","e500"]}`)
	group := auth.Group{Name: "g", Read: []string{"g"}, Write: []string{"g"}}
	if err := users.PutGroup(b.Context(), auth.System, group); err != nil {
		b.Fatal(err)
	}
	user := auth.User{Name: "eva", Enabled: true, Roles: []string{"USER"}, Groups: []string{"g"}}
	if err := users.PutUser(b.Context(), auth.System, user, "secret1"); err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/ping", nil)
	r.SetBasicAuth("eva", "secret1")
	b.Run("authenticate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := users.Authenticate(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("member", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !db.Member("e500", "g") {
				b.Fatal("no member")
			}
		}
	})
}
