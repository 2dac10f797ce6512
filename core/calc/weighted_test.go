package calc_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// Weighted means are the doubles nearest to those of the decimals.
func TestWeightedMeansOfDecimals(t *testing.T) {
	// (1.01 + 2*2.11 + 3*0.1) / 6 = 5.53 / 6, and (1.01 + 61*2.11 + 181*0.1) / 243 = 147.82 / 243.
	values, times := []float64{1.01, 2.11, 0.1}, []core.Time{0, 60_000, 180_000}
	if byOrder, byTime := calc.ExactWeightedMean(values), calc.ExactSecondWeightedMean(times, values); byOrder != 0.9216666666666666 || byTime != 0.6083127572016461 {
		t.Errorf("means are %v and %v", byOrder, byTime)
	}
	r := rand.New(rand.NewPCG(41, 41))
	for round := range 3000 {
		values, times = values[:0], times[:0]
		now := core.Time(r.Int64N(2e12))
		for range 1 + r.IntN(20) {
			v := math.Round(r.NormFloat64()*1e6) / math.Pow(10, float64(r.IntN(9)))
			switch round % 4 {
			case 1:
				v = r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20)) // of 17 digits
			case 2:
				v = math.MaxFloat64 * (r.Float64() - 0.5)
			}
			values, times = append(values, v), append(times, now)
			now += core.Time(r.Int64N(1 + r.Int64N([]int64{2000, 1e6, 1e11}[round%3])))
		}
		byOrder := weightedByRats(values, func(i int) int64 { return int64(i) + 1 })
		if got := calc.ExactWeightedMean(values); got != byOrder {
			t.Fatalf("ExactWeightedMean of %v = %v, want %v", values, got, byOrder)
		}
		byTime := weightedByRats(values, func(i int) int64 { return int64(times[i]-times[0]) + 1000 })
		if got := calc.ExactSecondWeightedMean(times, values); got != byTime {
			t.Fatalf("ExactSecondWeightedMean of %v at %v = %v, want %v", values, times, got, byTime)
		}
	}
}

func weightedByRats(values []float64, weight func(i int) int64) float64 {
	sum, weights := new(big.Rat), new(big.Rat)
	for i, v := range values {
		w := new(big.Rat).SetInt64(weight(i))
		d, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'e', -1, 64))
		sum.Add(sum, d.Mul(d, w))
		weights.Add(weights, w)
	}
	mean, _ := sum.Quo(sum, weights).Float64()
	return mean
}

func TestWeightedSumAtItsEnds(t *testing.T) {
	if got := calc.ExactWeightedMean([]float64{1, math.Inf(1), 3}); !math.IsInf(got, 1) {
		t.Errorf("with Infinity: %v", got)
	}
	if got := calc.ExactWeightedMean([]float64{math.Inf(-1), math.Inf(1)}); got == got {
		t.Errorf("with both infinities: %v", got)
	}
	if got := calc.ExactSecondWeightedMean(nil, nil); got == got {
		t.Errorf("of nothing: %v", got)
	}
	var heavy calc.WeightedSum // weights of more than 64 bits
	for range 40 {
		heavy.Add(2.5, 1<<59)
		heavy.Add(3.5, 1<<59)
	}
	if got := heavy.Mean(); math.Abs(got-3) > 1e-15 {
		t.Errorf("of heavy weights: %v", got)
	}
}

func BenchmarkExactWeightedMean(b *testing.B) {
	values, times := make([]float64, 1000), make([]core.Time, 1000)
	for i := range values {
		values[i], times[i] = float64(i%77)/10, core.Time(i)*10_000
	}
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			calc.ExactWeightedMean(values)
		}
	})
	b.Run("time", func(b *testing.B) {
		for b.Loop() {
			calc.ExactSecondWeightedMean(times, values)
		}
	})
}
