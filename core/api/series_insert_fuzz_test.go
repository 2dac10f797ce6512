package api

import (
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// FuzzSeriesInsert decodes bodies, versions and forecasts included. What is accepted must be a batch that every store takes: columns of one length,
// side columns ascending, references in the key table, keys that can be taken apart again.
func FuzzSeriesInsert(f *testing.F) {
	for _, seed := range []string{
		`[{"entity":"e","metric":"m","tags":{"a":"b"},"data":[{"t":1,"v":1.5,"x":"y","version":{"source":"s","status":"t"}},{"d":"2030-01-01T00:00:00Z","v":"NaN"}]}]`,
		`[{"entity":"e","metric":"m","data":[{"t":1,"v":12345678901234567891,"version":{}},{"t":1,"x":"","version":null},{"t":2,"v":null,"version":{"status":1}}]}]`,
		`[{"entity":"e","metric":"m","type":"FORECAST","forecastName":"p","data":[{"t":1,"v":0.1234567890123456789,"s":1},{"t":2,"v":2,"s":null}]}]`,
		`[{"data":[{"s":1,"v":1,"t":1}],"type":"forecast","metric":"m","entity":"e"},{"entity":"e","metric":"m","data":[{"t":1,"v":2}]}]`,
		`[{"entity":"e","metric":"m","tags":{"\u0002":"f"},"data":[{"t":1,"v":1}]}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if scanJSON(body, 64) != nil {
			return
		}
		d := seriesDecoder{batch: &core.Batch{}, records: 1000, catalog: memstore.New()}
		err := d.decode(body)
		d.keys.release()
		if err != nil {
			return
		}
		b := d.batch
		s := &b.Samples
		n := s.Len()
		if len(s.Series) != n || len(s.Values) != n || len(s.Flags) != n {
			t.Fatalf("columns of %d, %d, %d and %d", n, len(s.Series), len(s.Values), len(s.Flags))
		}
		for _, ref := range s.Series {
			if int(ref) >= len(b.Keys) {
				t.Fatalf("reference %d of %d keys", ref, len(b.Keys))
			}
		}
		ascends(t, n, len(s.Texts), func(i int) uint32 { return s.Texts[i].Index })
		ascends(t, n, len(s.Decimals), func(i int) uint32 { return s.Decimals[i].Index })
		ascends(t, n, len(s.Versions), func(i int) uint32 { return s.Versions[i].Index })
		for _, k := range b.Keys {
			back, err := core.ParseSeriesKey(k.Append(nil))
			if err != nil || back.Compare(k) != 0 {
				t.Fatalf("key %q comes back as %q: %v", k, back, err)
			}
			if _, _, _, ok := k.Store(); !ok {
				t.Fatalf("key %q is of no store", k)
			}
		}
	})
}

func ascends(t *testing.T, samples, n int, index func(int) uint32) {
	t.Helper()
	for i := range n {
		if at := index(i); int(at) >= samples || i > 0 && at <= index(i-1) {
			t.Fatalf("side column entry %d at sample %d of %d", i, at, samples)
		}
	}
}
