package exec

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// fractionOf is the decimal of a number of at most 15 digits, otherwise the double.
func fractionOf(v float64) *big.Rat {
	if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 14, 64), 64); err == nil && short == v {
		return decimalOf(v)
	}
	return new(big.Rat).SetFloat64(v)
}

// pairsByRats computes the functions of pairs in fractions; NaN where they divide by zero.
func pairsByRats(x, y []float64) map[string]float64 {
	n := big.NewRat(int64(len(x)), 1)
	sum := func(of func(i int) *big.Rat) *big.Rat {
		s := new(big.Rat)
		for i := range x {
			s.Add(s, of(i))
		}
		return s
	}
	mul := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
	quotient := func(a, b *big.Rat) *big.Rat {
		if b.Sign() == 0 {
			return nil
		}
		return new(big.Rat).Quo(a, b)
	}
	float := func(r *big.Rat) float64 {
		if r == nil {
			return nan
		}
		f, _ := r.Float64()
		return f
	}
	var dx, dy []*big.Rat
	for i := range x {
		dx, dy = append(dx, fractionOf(x[i])), append(dy, fractionOf(y[i]))
	}
	sx, sy := sum(func(i int) *big.Rat { return dx[i] }), sum(func(i int) *big.Rat { return dy[i] })
	spread := func(a, b []*big.Rat, sa, sb *big.Rat) *big.Rat {
		s := sum(func(i int) *big.Rat { return mul(a[i], b[i]) })
		return s.Sub(s, quotient(mul(sa, sb), n))
	}
	xx, yy, xy := spread(dx, dx, sx, sx), spread(dy, dy, sy, sy), spread(dx, dy, sx, sy)
	out := map[string]float64{"covar": float(quotient(xy, new(big.Rat).Sub(n, big.NewRat(1, 1)))), "covar population": float(quotient(xy, n)), "correl": nan}
	slope := quotient(xy, yy)
	out["regr_slope"], out["regr_intercept"] = float(slope), nan
	if slope != nil {
		out["regr_intercept"] = float(new(big.Rat).Sub(quotient(sx, n), mul(slope, quotient(sy, n))))
	}
	if square := mul(xx, yy); square.Sign() > 0 {
		root := new(big.Float).SetPrec(300).SetRat(square)
		r := new(big.Float).SetPrec(300).SetRat(xy)
		out["correl"], _ = r.Quo(r, root.Sqrt(root)).Float64()
	}
	return out
}

// The functions of pairs are those of the exact numbers, however large they are beside their distances and however they are dealt out and merged.
func TestPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 31))
	// What is added to numbers around zero, and how many places these have; those of -1 have all the digits of a double.
	for _, c := range []struct {
		offset float64
		places int
	}{{0, 2}, {0, 6}, {28_492_440, 0}, {28_492_440, 3}, {1_709_546_400_000, 0}, {1 << 51, 0}, {-5e9, 1}, {0, -1}, {28_492_440, -1}} {
		for round := range 300 {
			number := func(offset float64) float64 {
				if v := r.NormFloat64() * 10; c.places < 0 {
					return offset + v
				} else {
					scale := math.Pow(10, float64(c.places))
					return math.Round(offset*scale+v*scale) / scale
				}
			}
			var x, y []float64
			groups := make([]pair, 1+r.IntN(5))
			outlier := number(c.offset) + 1000
			for i := range 1 + r.IntN(40) {
				a, b := number(0), number(c.offset)
				switch {
				case round%3 == 1 && i == 0:
					b = outlier // the first row, which all are counted from, is far away
				case round%3 == 2:
					a = b // a line
				}
				x, y = append(x, a), append(y, b)
				groups[r.IntN(len(groups))].add(a, b)
			}
			for len(groups) > 1 {
				last := groups[len(groups)-1]
				groups = groups[:len(groups)-1]
				groups[r.IntN(len(groups))].merge(&last)
			}
			for name, want := range pairsByRats(x, y) {
				s := pairState{kind: name}
				if name == "covar population" {
					s.kind, s.population = "covar", true
				}
				got := s.value(&groups[0])
				near := 2.3e-16 * math.Abs(want) // the nearest double or a neighbour
				if !(math.Abs(got-want) <= near) && !(got != got && want != want) {
					t.Fatalf("offset %v, %d places: %s of %v and %v is %v, want %v", c.offset, c.places, name, x, y, got, want)
				}
			}
		}
	}
}

// A constant has no slope; infinite numbers have none either.
func TestPairsWithoutResult(t *testing.T) {
	for _, list := range [][][2]float64{{{1.1, 0.1}}, {{1.1, 0.1}, {2.2, 0.1}, {3.3, 0.1}}, {{1, 2}, {2, math.Inf(1)}, {3, 5}}, {{1, math.Inf(-1)}}} {
		var p, q pair
		for i, v := range list {
			if i%2 == 0 {
				p.add(v[0], v[1])
			} else {
				q.add(v[0], v[1])
			}
		}
		p.merge(&q)
		for _, kind := range []string{"correl", "regr_slope", "regr_intercept"} {
			if got := (&pairState{kind: kind}).value(&p); got == got {
				t.Errorf("%s of %v is %v", kind, list, got)
			}
		}
	}
}

func TestWideDecimal(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 32))
	check := func(v float64) {
		w := wideDecimal(v)
		sum := new(big.Float).SetPrec(400).SetFloat64(w.high)
		sum.Add(sum, big.NewFloat(w.low))
		want := new(big.Float).SetPrec(400).SetRat(decimalOf(v))
		difference, _ := sum.Sub(sum, want).Float64()
		if w.high != v || math.Abs(difference) > 1e-30*math.Abs(v) {
			t.Errorf("%v is %v, %v away", v, w, difference)
		}
	}
	for _, v := range []float64{0, 0.1, -0.3, 1.01, 999999999999.999, 99999999999999.9, -123456789012345, 1e-7, 1e-20, 0.999999999999999, 9.99999999999999} {
		check(v)
	}
	for range 5000 {
		check(math.Round(r.NormFloat64()*1e6) / math.Pow(10, float64(r.IntN(15))))
	}
	for _, v := range []float64{1 << 60, math.Pi, 1<<51 + 0.5, 2e15 + 0.5, 1e15 + 0.5, 5e-324, math.MaxFloat64, math.Inf(1)} { // as they are
		if w := wideDecimal(v); w != (wide{high: v}) {
			t.Errorf("%v is %v", v, w)
		}
	}
}

func BenchmarkPairs(b *testing.B) {
	for _, digits := range []string{"short", "long"} {
		b.Run(digits, func(b *testing.B) {
			const n = 10_000
			a := arguments{n: n, x: make([]float64, n), y: make([]float64, n)}
			for i := range n {
				a.x[i], a.y[i] = float64(i%1000)/10, float64(i)*60_000+1.7e12
				if digits == "long" {
					a.x[i] /= 7
				}
			}
			ids := make([]int32, n)
			for b.Loop() {
				s := pairState{kind: "regr_slope", of: column.Double}
				s.resize(1)
				s.add(ids, &a)
				if v := s.result([]int32{0}, nil); v.Len != 1 {
					b.Fatal(fmt.Sprint(v))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
