package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// BenchmarkPermittedIngest inserts a sample of each of 1,000 series of 100 entities, over the real database: as an administrator, as users whose group
// lists these entities or describes them by an expression, and as one with twenty groups of which the last has them.
func BenchmarkPermittedIngest(b *testing.B) {
	const entities, series, restart = 100, 1000, 2000
	groups := map[string]core.Group{"tagged": {Enabled: true, Expression: "tags.site = 'north' AND name LIKE 'host-*'"}}
	var names, many []string
	for i := range entities {
		names = append(names, fmt.Sprintf("host-%02d", i))
	}
	for i := range 20 {
		name := fmt.Sprintf("list-%02d", i)
		groups[name] = core.Group{Enabled: true, Members: []string{fmt.Sprintf("other-%02d", i)}}
		many = append(many, name)
	}
	groups["list-19"] = core.Group{Enabled: true, Members: names}
	open := func() (*storage.DB, *ingest.Pipeline) {
		db, _, err := storage.Open(vfs.OS{}, b.TempDir(), storage.Options{Sync: journal.Never})
		if err != nil {
			b.Fatal(err)
		}
		pipe := ingest.New(db, db, ingest.Options{})
		setup := &core.Batch{Origin: core.SystemOrigin(0)}
		for name, g := range groups {
			body, err := json.Marshal(g)
			if err != nil {
				b.Fatal(err)
			}
			setup.Documents = append(setup.Documents, core.DocChange{Kind: core.DocGroup, Key: name, Body: body})
		}
		for _, name := range names {
			setup.Documents = append(setup.Documents, core.DocChange{Kind: core.DocEntity, Key: name, Op: core.DocPatch, Body: []byte(`{"tags":{"site":"north"}}`)})
		}
		if _, err := pipe.Ingest(b.Context(), setup); err != nil {
			b.Fatal(err)
		}
		return db, pipe
	}
	for _, one := range []struct {
		name   string
		grants core.Grants
	}{
		{"admin", core.SystemGrants},
		{"listed", core.Grants{Roles: core.DataWrite, WriteGroups: many[19:]}},
		{"expression", core.Grants{Roles: core.DataWrite, WriteGroups: []string{"tagged"}}},
		{"groups=20", core.Grants{Roles: core.DataWrite, WriteGroups: many}},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			var db *storage.DB
			var pipe *ingest.Pipeline
			for i := 0; b.Loop(); i++ {
				if i%restart == 0 { // bounds the memory, whatever b.N is
					b.StopTimer()
					if db != nil {
						db.Close(b.Context())
					}
					db, pipe = open()
					b.StartTimer()
				}
				batch := &core.Batch{Origin: core.Origin{User: "u", Door: core.DoorHTTP, Grants: one.grants}, Keys: make([]core.SeriesKey, series)}
				for n := range series {
					batch.Keys[n] = core.SeriesKey{Metric: "metric", Entity: names[n/10], Tags: core.Tags{{Name: "n", Value: "0123456789"[n%10 : n%10+1]}}}
					batch.Add(uint32(n), core.Time(1_900_000_000_000+i), float64(n))
				}
				if _, err := pipe.Ingest(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			db.Close(b.Context())
		})
	}
}
