package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/api"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// listUser may read metadata. The hash has the cheapest parameters: it is of the password secret1.
const (
	listUser     = "lister"
	listPassword = "secret1"
	listHash     = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$jwa6z+xHc59xG2TbrSr5cJkKfN7Ti+/r3jn5fQfAHq0"
)

// entityServer serves a database with n entities that have five tags and a series of two metrics each.
func entityServer(b *testing.B, n int) *httptest.Server {
	b.Helper()
	db, _, err := storage.Open(vfs.OS{}, b.TempDir(), storage.Options{Sync: journal.Never})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close(context.Background()) })
	pipe := ingest.New(db, db, ingest.Options{})
	user, err := json.Marshal(auth.User{Name: listUser, Enabled: true, Roles: []string{"API_META_READ"}, Hash: listHash})
	if err != nil {
		b.Fatal(err)
	}
	batch := &core.Batch{Documents: []core.DocChange{{Kind: core.DocUser, Key: listUser, Body: user}}}
	for i := range n {
		name := fmt.Sprintf("pump-%06d", i)
		for m := range 2 {
			ref := batch.Ref(core.SeriesKey{Metric: fmt.Sprintf("m%d", m), Entity: name})
			batch.Add(ref, core.Time(1_900_000_000_000+i), float64(i))
		}
		body := fmt.Appendf(nil, `{"label":"Pump %d","tags":{"site":"s%d","rack":"r%d","kind":"pump","owner":"plant-operations","model":"x%d"}}`,
			i, i%10, i%1000, i%7)
		batch.Documents = append(batch.Documents, core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPatch, Body: body})
		if i%1000 == 999 || i == n-1 {
			batch.Origin = core.SystemOrigin(0)
			if _, err := pipe.Ingest(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			batch = &core.Batch{}
		}
	}
	users := auth.New(db, pipe, auth.Options{Clock: func() core.Time { return 1_900_000_000_000 }})
	server := httptest.NewServer(api.New(api.Deps{Ingest: pipe, Reader: db, Catalog: db, Metadata: db, Users: users,
		Clock: func() core.Time { return 1_900_000_000_000 }}))
	b.Cleanup(server.Close)
	return server
}

// BenchmarkListEntities100k lists 100,000 entities over HTTP, without compression as clients in the same house do, and with it. 200 ms is the target.
func BenchmarkListEntities100k(b *testing.B) {
	const n = 100_000
	server := entityServer(b, n)
	for _, one := range []struct {
		name, query, encoding string
		min                   int // bytes
	}{
		{"plain", "limit=0", "identity", 100 * n},
		{"tags", "limit=0&tags=*", "identity", 200 * n},
		{"gzip", "limit=0&tags=*", "gzip", n},
		{"expression", "expression=" + url.QueryEscape("name LIKE 'pump-*5' AND lower(tags.site) = 's5'"), "identity", 10 * n},
		{"hasMetric", "expression=" + url.QueryEscape("hasMetric('m1')"), "identity", 100 * n},
		{"inserted", "minInsertDate=2099-01-01T00:00:00Z", "identity", 2},
	} {
		b.Run(one.name, func(b *testing.B) {
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/api/v1/entities?"+one.query, http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				r.SetBasicAuth(listUser, listPassword)
				r.Header.Set("Accept-Encoding", one.encoding)
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				size, err := io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != http.StatusOK || size < int64(one.min) {
					b.Fatalf("status %d, %d bytes, %v", answer.StatusCode, size, err)
				}
				b.ReportMetric(float64(size), "bytes")
			}
		})
	}
}
