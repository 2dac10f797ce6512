package chunk_test

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
)

// Short streams were once modelled like long ones. What was written then decodes as it always did.
func TestShortColumnsWithModels(t *testing.T) {
	var d chunk.Decoder
	want := []float64{1, math.NaN(), 2.5, math.Copysign(0, -1), 2.5, math.Inf(1)}
	got, err := d.Values(nil, unhex(t, "32814514000f0102030002010140020000000000f87f0000000000000000010000000000f07f"), 6)
	if err != nil {
		t.Fatal(err)
	}
	checkBits(t, want, got)
	times, err := d.Times(nil, unhex(t, "10050a000102"), 5)
	if err != nil || !slices.Equal(times, []core.Time{5, 5, 6, 6, 6}) {
		t.Errorf("%v, %v", times, err)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every count of values below the one from which streams are modelled, and some above, comes back bit for bit: numbers of few digits, any bits, extremes of
// either sign beside each other, and times that end at the last one there is.
func TestFewComeBack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	shapes := map[string]func(i int) float64{
		"equal":    func(int) float64 { return 21.5 },
		"percent":  func(int) float64 { return float64(random.IntN(10_000)) / 100 },
		"counter":  func(i int) float64 { return 1e12 + float64(i*4096) },
		"any bits": func(int) float64 { return math.Float64frombits(random.Uint64()) },
		"extremes": func(i int) float64 { return math.Copysign(math.MaxFloat64, float64(i%2)-0.5) },
		"integers": func(i int) float64 { return math.Copysign(1<<53, float64(i%2)-0.5) },
		"not a few": func(i int) float64 {
			return [...]float64{math.NaN(), math.Inf(-1), 1, math.Copysign(0, -1)}[random.IntN(4)]
		},
	}
	var e chunk.Encoder
	var d chunk.Decoder
	for name, next := range shapes {
		for n := 1; n < 20; n++ {
			values := fill(n, next)
			got, err := d.Values(nil, e.AppendValues(nil, values), n)
			if err != nil {
				t.Fatalf("%s, %d values: %v", name, n, err)
			}
			checkBits(t, values, got)
		}
	}
	for n := 1; n < 20; n++ {
		for range 20 {
			times := make([]core.Time, n)
			for i := range times {
				times[i] = core.Time(random.Int64() - random.Int64())
			}
			times[0], times[n-1] = math.MinInt64, core.Time(math.MaxInt64)
			slices.Sort(times)
			got, err := d.Times(nil, e.AppendTimes(nil, times), n)
			if err != nil || !slices.Equal(got, times) {
				t.Fatalf("%v became %v: %v", times, got, err)
			}
		}
	}
}

// A few decimals take no more bytes than their digits ask for: ten percentages of two digits are fourteen bits each, and six bytes around them.
func TestFewAreSmall(t *testing.T) {
	var e chunk.Encoder
	values := []float64{83.01, 15.55, 58.1, 0.07, 99.53, 87.38, 4.04, 42.05, 71.99, 30}
	if n := len(e.AppendValues(nil, values)); n > 6+(10*14+7)/8 {
		t.Errorf("%d bytes", n)
	}
	if n := len(e.AppendValues(nil, values[:1])); n > 7 {
		t.Errorf("one value takes %d bytes", n)
	}
}
