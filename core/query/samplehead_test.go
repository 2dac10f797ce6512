package query_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// Times in any order, near each other and far apart, at the edges of minutes, of 1970 and of what can be stored, print as they do alone.
func TestTimesOfSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	times := []core.Time{core.MinTime, core.MinTime + 1, -60_001, -60_000, -1, 0, 1, 999, 59_999, 60_000, 99_999, 100_000, 100_001, 119_999, 120_000,
		1620036030250, 1620036059999, 1620036060000, 1620036099999, 1620036100000, core.MaxTime - 1, core.MaxTime, core.MaxTime - 60_000}
	for range 5000 {
		next := times[len(times)-1] + core.Time(r.IntN(70_000)) - 20_000
		if r.IntN(20) == 0 {
			next = core.MinTime + core.Time(r.Int64N(int64(core.MaxTime-core.MinTime)))
		}
		times = append(times, next)
	}
	for _, format := range []query.TimeFormat{query.ISO, query.Millis} {
		result := query.Result{Format: format, Samples: query.Samples{Times: times, Values: make([]float64, len(times))}}
		_, got, _ := strings.Cut(string(result.AppendJSON(nil)), `"data":[`)
		for i, text := range strings.Split(strings.TrimSuffix(got, "]}"), "},") {
			want := fmt.Sprintf(`{"t":%d,"v":0`, times[i])
			if format == query.ISO {
				want = fmt.Sprintf(`{"d":%q,"v":0`, dates.FormatISO(times[i]))
			}
			if strings.TrimSuffix(text, "}") != want {
				t.Fatalf("sample %d: %s, want %s", i, text, want)
			}
		}
	}
}
