package wasm

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Whatever the key is, a lookup reads tables and entity tags and nothing else, and writes only into the buffer.
func FuzzLookup(f *testing.F) {
	for _, key := range []string{"table\x00T\x00k", "entity\x00E\x00Tag", "table\x00T", "user\x00admin\x00hash", "", "\x00\x00", "table\x00T\x00k\x00"} {
		f.Add(key, 4)
	}
	store := memstore.New()
	err := store.Apply(f.Context(), core.Entry{Position: 1, Batch: &core.Batch{Documents: []core.DocChange{
		{Kind: core.DocTable, Key: "t", Body: []byte(`{"keys":{"k":"value"}}`)}, {Kind: core.DocUser, Key: "admin", Body: []byte(`{"hash":"secret"}`)},
		{Kind: core.DocEntity, Key: "e", Op: core.DocPatch, Body: []byte(`{"tags":{"tag":"value"}}`)}}}})
	if err != nil {
		f.Fatal(err)
	}
	options := Options{Reader: store, Catalog: store}
	if err := options.setDefaults(); err != nil {
		f.Fatal(err)
	}
	host := &Host{options: options}
	f.Fuzz(func(t *testing.T, key string, limit int) {
		if limit < 0 || limit > 1<<10 {
			return
		}
		p := &Plugin{name: "p"}
		p.start(host)
		s := &session{plugin: p, uploader: core.SystemGrants, granted: abi.Capabilities()}
		s.begin(t.Context())
		buf := make([]byte, limit)
		n := s.lookup(key, buf)
		found := strings.EqualFold(key, "table\x00t\x00k") && strings.HasPrefix(key, "table") && strings.HasSuffix(key, "k") || strings.EqualFold(key, "entity\x00e\x00tag") && strings.HasPrefix(key, "entity")
		switch {
		case found && n != int32(len("value")):
			t.Errorf("%q: %d, want 5", key, n)
		case !found && n >= 0:
			t.Errorf("%q: finds %q", key, buf)
		case n > int32(limit) && strings.Trim(string(buf), "\x00") != "":
			t.Errorf("%q: it wrote %q although the value does not fit", key, buf)
		}
	})
}
