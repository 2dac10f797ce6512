package calc

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// The short way of AppendStored must give what the general one gives.
func TestAppendStoredIsShortest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(v float64) {
		t.Helper()
		if got, want := string(AppendStored(nil, v)), strconv.FormatFloat(v, 'f', -1, 64); got != want {
			t.Fatalf("%b: got %s, want %s", v, got, want)
		}
	}
	for _, v := range []float64{0, math.Copysign(0, -1), 0.1, -0.1, 0.0001, 0.00001, 0.00005, 1e15, 1e15 - 0.5, 99999999999.9999, 123456789012.3456, 1e-300, 1e300,
		math.SmallestNonzeroFloat64, math.MaxFloat64, 0.1 + 0.2, 1.0 / 3} {
		check(v)
		check(-v)
	}
	for range 200_000 {
		check(float64(r.Int64N(1e12)) / math.Pow10(r.IntN(7)))
		check(math.Nextafter(float64(r.Int64N(1e11))/1e4, math.Inf(1)))
		if v := math.Float64frombits(r.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
			check(v)
		}
	}
}
