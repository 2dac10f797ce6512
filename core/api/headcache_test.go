package api

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// decodeWith decodes a body with a cache that knows the heads of the bodies before it.
func decodeWith(h *headCache, body string) (*core.Batch, error) {
	d := seriesDecoder{batch: &core.Batch{}, records: 100, catalog: memstore.New(), heads: h}
	h.batch++
	err := d.read(body)
	d.keys.release()
	return d.batch, err
}

// objects are series objects that a cache may get wrong: equal heads with other ends, equal keys with other heads, faults before and behind the data.
var objects = []string{
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1}]}`,
	`{"entity":"e","metric":"m","data":[{"t":2,"v":2.5},{"t": 3, "v": -4e1}]}`,
	`{"entity":"e","metric":"m","data": [ {"t":1,"v":1} ] }`,
	`{"metric":"m","entity":"E","data":[{"t":4,"v":1}]}`,
	`{"entity":"e","metric":"m","tags":{},"data":[{"v":1,"t":5}]}`,
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1}],"tags":{"a":"b"}}`,
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1}],"type":"FORECAST","forecastName":"p"}`,
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1}],"entity":"f"}`,
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1}],"data":[{"t":9,"v":9}]}`,
	`{"entity":"e","metric":"m","tags":{"data":"x"},"data":[{"t":1,"v":1}]}`,
	`{"entity":"e","metric":"m","tags":{"data":"x"},"data":[{"t":2,"v":1}]}`,
	`{"entity":"e","metric":"m","tags":{"B":"2","a":1},"data":[{"t":1,"v":12345678901234567.125,"x":"y"}]}`,
	`{"entity":"e","metric":"m","tags":{"a":"1","b":"2"},"data":[{"d":"2020-01-01T00:00:00Z","v":"7"}]}`,
	`{"entity":"e","metric":"m","tags":{"a":"1","b":"2"},"data":[{"t":1,"v":NaN},{"t":2,"x":"only"}]}`,
	`{"entity":"e","metric":"m","type":"FORECAST","data":[{"t":1,"v":1,"s":2}]}`,
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1,"version":{"source":"s"}}]}`,
	`{"entity":"e","metric":"m","data":[]}`,
	`{"entity":"e","metric":"m","data":null}`,
	`{"entity":"e","metric":"m","data":[{"t":-1,"v":1}]}`,
	`{"entity":"e","metric":"m","data":[{"t":4294969200000,"v":1}]}`,
	`{"entity":"e","metric":"m","data":[{"t":1,"v":1},3],"tags":{"a":""}}`,
	`{"entity":"e","metric":"m","data":[{"t":1}],"entity":"a b"}`,
	`{"entity":"e","metric":"m"}`,
	`{"data":[{"t":1,"v":1}],"entity":"e","metric":"m"}`,
	`{"entity":"x\"data","metric":"m","data":[{"t":1,"v":1}]}`,
	`{"x\"data":1,"entity":"e","metric":"n","data":[{"t":1,"v":1}]}`,
}

// TestHeadCacheChangesNothing reads requests of known and unknown heads, and compares with what a decoder reads that knows none.
func TestHeadCacheChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	warm := newHeadCache()
	for i := range 3000 {
		body := "["
		for n := range 1 + r.IntN(6) {
			if n > 0 {
				body += ","
			}
			body += objects[r.IntN(len(objects))]
		}
		body += "]"
		if err := scanJSON(body, 64); err != nil {
			t.Fatal(body, err)
		}
		want, wantErr := decodeWith(unteachable(), body)
		got, gotErr := decodeWith(warm, body)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("round %d, %s: error %v, want %v", i, body, gotErr, wantErr)
		}
		if gotErr != nil {
			continue // a refused batch is not looked at
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(core.Batch{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("round %d, %s: want(-) got(+)\n%s", i, body, diff)
		}
	}
	if warm.asked == warm.missed {
		t.Error("no head was ever known")
	}
}

// unteachable is a cache that is full, so that it learns nothing.
func unteachable() *headCache {
	h := newHeadCache()
	h.bytes = maxHeadBytes
	return h
}

// TestHeadCacheKeepsNoRequest changes the bytes of a request behind the cache's back.
func TestHeadCacheKeepsNoRequest(t *testing.T) {
	h := newHeadCache()
	const body = `[{"entity":"e","metric":"m","tags":{"a":"b"},"data":[{"t":1,"v":1}]}]`
	bytes := []byte(body)
	if _, err := decodeWith(h, unsafe.String(unsafe.SliceData(bytes), len(bytes))); err != nil {
		t.Fatal(err)
	}
	copy(bytes, strings.Repeat("z", len(bytes)))
	got, err := decodeWith(h, body)
	if err != nil || h.missed != 1 || h.asked != 2 {
		t.Fatalf("%v, %d of %d heads were unknown", err, h.missed, h.asked)
	}
	want := []core.SeriesKey{{Metric: "m", Entity: "e", Tags: core.Tags{{Name: "a", Value: "b"}}}}
	if diff := cmp.Diff(want, got.Keys); diff != "" {
		t.Error(diff)
	}
}

// TestHeadCacheIsBounded sends ever new series, then the same ones: a cache full of what nobody sends any more starts anew.
func TestHeadCacheIsBounded(t *testing.T) {
	h := newHeadCache()
	send := func(series int) {
		if _, err := decodeWith(h, fmt.Sprintf(`[{"entity":"e%d","metric":"m","data":[{"t":1,"v":1}]}]`, series)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxHeads + 100 {
		send(i)
	}
	if n := len(h.heads); n > maxHeads {
		t.Fatalf("%d heads, at most %d", n, maxHeads)
	}
	for range 2 * judgeAfter {
		send(1_000_000)
	}
	before := h.missed
	send(1_000_000)
	if h.missed != before || len(h.heads) > 10 {
		t.Errorf("the cache of %d heads did not start anew", len(h.heads))
	}
}
