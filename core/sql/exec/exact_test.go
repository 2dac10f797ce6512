package exec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/tidemark-db/tidemark/core/calc"
)

// decimalOf is the decimal of a number, by its text.
func decimalOf(v float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	return r
}

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		p, want float64
	}{
		{[]float64{10, 14, 20, 8}, 75, 18.5},
		{[]float64{10, 14, 20, 8}, 50, 12},
		{[]float64{10, 14, 20, 8}, 0, 8},
		{[]float64{10, 14, 20, 8}, 100, 20},
		{[]float64{0.7, 0.9, 1.6}, 40, 0.82},
		{[]float64{0.2, 0.1}, 50, 0.15},
		{[]float64{5}, 99.9, 5},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 12.5, 1.25},
		{[]float64{math.Inf(-1), 1, 2}, 50, 1},
	} {
		if got := percentileOf(slices.Clone(c.values), c.p); got != c.want {
			t.Errorf("percentile %v of %v is %v, want %v", c.p, c.values, got, c.want)
		}
	}
}

func TestPickRank(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for n := 1; n < 300; n += 7 {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(r.IntN(1 + n/3))
		}
		for _, shape := range [][]float64{values, slices.Sorted(slices.Values(values))} {
			sorted := slices.Sorted(slices.Values(shape))
			for k := 0; k < n; k += 3 {
				mixed := slices.Clone(shape)
				if got := pickRank(mixed, k); got != sorted[k] || got != mixed[k] {
					t.Fatalf("rank %d of %d values is %v, want %v", k, n, got, sorted[k])
				}
				if k+1 < n && slices.Min(mixed[k+1:]) != sorted[k+1] {
					t.Fatalf("a value below rank %d of %d lies behind it", k, n)
				}
			}
		}
	}
}

// Points on a line are exact in decimals.
func TestLinearAt(t *testing.T) {
	for _, c := range []struct {
		a, b calc.Point
		want float64
	}{
		{calc.Point{Time: 0, Value: 10}, calc.Point{Time: 10, Value: 20}, 14},
		{calc.Point{Time: 0, Value: 0.1}, calc.Point{Time: 10, Value: 0.2}, 0.14},
		{calc.Point{Time: 0, Value: 1.1}, calc.Point{Time: 10, Value: 3.3}, 1.98},
		{calc.Point{Time: 0, Value: -5}, calc.Point{Time: 10, Value: -5}, -5},
		{calc.Point{Time: 0, Value: 0}, calc.Point{Time: 10, Value: 1e300}, 4e299},
	} {
		if got := linearAt(c.a, c.b, 4); got != c.want {
			t.Errorf("between %v and %v lies %v, want %v", c.a, c.b, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(6, 6))
	for range 2000 {
		a, b := math.Round(r.NormFloat64()*1e6)/1e3, r.NormFloat64()*math.Pow(10, float64(r.IntN(12)-6))
		den := 1 + r.Int64N(1e9)
		num := r.Int64N(den + 1)
		d := new(big.Rat).Sub(decimalOf(b), decimalOf(a))
		want, _ := d.Add(d.Mul(d, big.NewRat(num, den)), decimalOf(a)).Float64()
		if got := mix(a, b, num, den); got != want {
			t.Fatalf("%d/%d between %v and %v is %v, want %v", num, den, a, b, got, want)
		}
	}
}

func TestDeviation(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 200 {
		var whole, parts [2]moments
		n := 2 + r.IntN(30)
		var values []float64
		for i := range n {
			v := math.Round(r.NormFloat64()*1e4) / math.Pow(10, float64(r.IntN(6)))
			if round%4 == 0 {
				v = r.NormFloat64() // of more than 15 digits
			}
			values = append(values, v)
			whole[0].add(v)
			parts[i%2].add(v)
		}
		parts[0].merge(&parts[1])
		var sum, squares big.Rat
		for _, v := range values {
			d := decimalOf(v)
			sum.Add(&sum, d)
			squares.Add(&squares, new(big.Rat).Mul(d, d))
		}
		sum.Mul(&sum, &sum)
		spread := squares.Sub(&squares, sum.Quo(&sum, big.NewRat(int64(n), 1)))
		variance, _ := spread.Quo(spread, big.NewRat(int64(n-1), 1)).Float64()
		want := math.Sqrt(variance)
		for _, got := range []float64{whole[0].deviation(false), parts[0].deviation(false)} {
			if round%4 != 0 && got != want || math.Abs(got-want) > 1e-12*want {
				t.Fatalf("deviation of %v is %v, want %v", values, got, want)
			}
		}
	}
	var one moments
	one.add(3.5)
	if one.deviation(false) != 0 || one.deviation(true) != 0 {
		t.Error("the deviation of one number is not 0")
	}
}

// A rounded sum is taken only where it tells the exact one.
func TestWholeSum(t *testing.T) {
	for _, c := range []struct {
		sum, most float64
		count     int64
		places    int8
		want      int64
		ok        bool
	}{
		{0.1 + 0.2 + 0.3, 0.3, 3, 1, 6, true},
		{201.59999999999997, 6.3, 64, 1, 2016, true},
		{1e9, 1e9, 1 << 20, 2, 0, false}, // too many of them
		{5, 5, 1, -1, 0, false},
		{math.Inf(1), math.Inf(1), 2, 0, 0, false},
		{math.NaN(), 1, 2, 0, 0, false},
	} {
		got, ok := wholeSum(c.sum, c.count, c.most, c.places)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("sum %v of %d numbers is %d %t, want %d %t", c.sum, c.count, got, ok, c.want, c.ok)
		}
	}
}
