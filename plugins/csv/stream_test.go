package csv

import (
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// In a stream, rows without a time have that of their arrival, unless the request gives one.
func TestRowsWithoutTimeHaveThatOfTheirArrival(t *testing.T) {
	for params, want := range map[string][]int64{"": {2000, 3000}, "500": {500, 500}} {
		now := int64(1000)
		in := guest.New(Plugin(), abi.Options{NowMs: func() int64 { return now }})
		request := `{"kind":"parser","received":1000,"config":{"defaultEntity":"e"},"params":{"time":"` + params + `"}}`
		if in.Init(nil) != abi.OK || in.Open([]byte(request)) != abi.OK {
			t.Fatal(in.LastError())
		}
		var got []int64
		for _, chunk := range []string{"level\n5\n", "6\n"} {
			now += 1000
			out, code := in.Call(abi.KindParser, []byte(chunk), 0)
			if code != abi.OK {
				t.Fatal(in.LastError())
			}
			var b abi.Batch
			if err := b.Decode(string(out), abi.Limits{}); err != nil {
				t.Fatal(err)
			}
			for _, s := range b.Samples {
				got = append(got, s.Time)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("time=%s: times %v, want %v", params, got, want)
		}
	}
}
