package calc

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestExactArithmetic(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"three tenths", Times(3, 0.1), 0.3},
		{"two decimals", Plus(1.1, 2.2), 3.3},
		{"squares", Times(1.1, 1.1), 1.21},
		{"difference", Minus(0.3, 0.1), 0.2},
		{"eight places", Plus(0.00000001, 0.00000002), 0.00000003},
		{"tiny", Plus(1e-300, 2e-300), 3e-300},
		{"far apart", Plus(1e300, 1), 1e300},
		{"large whole", Plus(1709546400000, 3600000), 1709550000000},
		{"no negative zero", 1 / Times(-1, 0), inf},
		{"infinite", Plus(inf, 1), inf},
		{"infinities", Plus(inf, -inf), nan},
		{"zero times infinity", Times(0, inf), nan},
		{"overflow", Times(1e300, 1e300), inf},
		{"underflow", Times(1e-300, 1e-300), 0},
		{"not a number", Plus(nan, 1), nan},
	} {
		if test.got != test.want && !(test.got != test.got && test.want != test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
}

// reference computes with rational numbers of the shortest texts.
func reference(a, b float64, op func(z, x, y *big.Rat) *big.Rat) float64 {
	v, _ := op(new(big.Rat), rational(a), rational(b)).Float64()
	return v
}

func rational(v float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'e', -1, 64))
	return r
}

// numbers are of the kinds that take different ways.
func numbers(r *rand.Rand) float64 {
	sign := 1 - 2*float64(r.IntN(2))
	switch r.IntN(7) {
	case 0:
		return sign * float64(r.Int64N(1000))
	case 1:
		return sign * float64(r.Int64N(1e9)) / 100
	case 2:
		return sign * float64(r.Int64N(1e9)) / 1e7
	case 3:
		return sign * r.Float64()
	case 4:
		return sign * r.ExpFloat64() * math.Pow10(r.IntN(40)-20)
	case 5:
		return sign * float64(r.Int64N(1<<53))
	}
	return sign * math.Nextafter(float64(r.Int64N(1e10))/1e4, inf1)
}

// comparable34 reports whether the sum of two numbers has at most 34 digits, which is what is promised to be exact.
func comparable34(a, b float64) bool {
	x, y := math.Abs(a), math.Abs(b)
	return x == 0 || y == 0 || x/y < 1e16 && y/x < 1e16
}

var inf1 = math.Inf(1)

func checkExact(t *testing.T, a, b float64) {
	t.Helper()
	sum, difference, product := []float64{0}, []float64{0}, []float64{0}
	PlusRun(sum, []float64{a}, []float64{b})
	MinusRun(difference, []float64{a}, []float64{b})
	TimesRun(product, []float64{a}, []float64{b})
	for _, c := range []struct {
		name string
		op   func(z, x, y *big.Rat) *big.Rat
		got  []float64
	}{
		{"+", (*big.Rat).Add, []float64{Plus(a, b), Plus(b, a), sum[0]}},
		{"-", (*big.Rat).Sub, []float64{Minus(a, b), difference[0]}},
		{"*", (*big.Rat).Mul, []float64{Times(a, b), Times(b, a), product[0]}},
	} {
		want := reference(a, b, c.op)
		for _, got := range c.got {
			if got != want {
				t.Fatalf("%v %s %v is %v, want %v", a, c.name, b, got, want)
			}
		}
	}
}

func TestExactIsThatOfRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		if a, b := numbers(r), numbers(r); comparable34(a, b) {
			checkExact(t, a, b)
		}
	}
}

// Sums of vectors are those of single numbers, whichever operand is a constant.
func TestExactRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b, got := make([]float64, 500), make([]float64, 500), make([]float64, 500)
	for i := range a {
		a[i], b[i] = numbers(r), numbers(r)
	}
	a[7], b[9], a[11] = math.NaN(), math.Inf(1), math.Inf(-1)
	check := func(what string, want func(i int) float64) {
		t.Helper()
		for i := range got {
			if w := want(i); got[i] != w && !(w != w && got[i] != got[i]) {
				t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], w)
			}
		}
	}
	PlusRun(got, a, b)
	check("a + b", func(i int) float64 { return Plus(a[i], b[i]) })
	MinusRun(got, a, b)
	check("a - b", func(i int) float64 { return Minus(a[i], b[i]) })
	TimesRun(got, a, b)
	check("a * b", func(i int) float64 { return Times(a[i], b[i]) })
	for _, c := range []float64{0, 60, -0.25, 0.1, 1e-9, 1e25, 0.12345678901234567, math.NaN(), math.Inf(1)} {
		one := []float64{c}
		PlusRun(got, a, one)
		check("a + c", func(i int) float64 { return Plus(a[i], c) })
		PlusRun(got, one, a)
		check("c + a", func(i int) float64 { return Plus(c, a[i]) })
		MinusRun(got, a, one)
		check("a - c", func(i int) float64 { return Minus(a[i], c) })
		MinusRun(got, one, a)
		check("c - a", func(i int) float64 { return Minus(c, a[i]) })
		TimesRun(got, a, one)
		check("a * c", func(i int) float64 { return Times(a[i], c) })
		TimesRun(got, one, a)
		check("c * a", func(i int) float64 { return Times(c, a[i]) })
	}
}

func FuzzExact(f *testing.F) {
	f.Add(0.1, 3.0)
	f.Add(1e300, -1e-300)
	f.Add(5e-324, 0.3)
	f.Add(123456789.123, 987654321.5)
	f.Fuzz(func(t *testing.T, a, b float64) {
		if a-a == 0 && b-b == 0 && comparable34(a, b) {
			checkExact(t, a, b)
		}
	})
}

// sumOf is the reference of ExactSum.
func sumOf(values []float64) *big.Rat {
	total := new(big.Rat)
	for _, v := range values {
		total.Add(total, rational(v))
	}
	return total
}

func TestExactSumIsThatOfRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		values := make([]float64, 1+r.IntN(40))
		extreme := r.IntN(10) == 0
		var sum, left, right ExactSum
		for i := range values {
			if values[i] = numbers(r); extreme {
				values[i] *= math.Pow10(r.IntN(500) - 250)
			}
			if i%2 == 0 {
				left.Add(values[i])
			} else {
				right.AddRun(values[i : i+1])
			}
		}
		sum.AddRun(values)
		left.Merge(&right)
		want := sumOf(values)
		mean := new(big.Rat).Quo(want, big.NewRat(int64(len(values)), 1))
		wantSum, _ := want.Float64()
		wantMean, _ := mean.Float64()
		for _, s := range []*ExactSum{&sum, &left} {
			if s.Sum() != wantSum || s.Mean() != wantMean || s.Count() != int64(len(values)) {
				t.Fatalf("%v: sum %v, mean %v of %d, want %v, %v of %d", values, s.Sum(), s.Mean(), s.Count(), wantSum, wantMean, len(values))
			}
		}
		for _, v := range values[1:] {
			sum.Remove(v)
		}
		if sum.Sum() != values[0] || sum.Count() != 1 {
			t.Fatalf("%v: after the others were removed it is %v of %d", values, sum.Sum(), sum.Count())
		}
	}
}

func TestExactSumOfMultiples(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for places := range 9 {
		var got, want ExactSum
		for range 20 {
			values := make([]float64, r.IntN(9000))
			for i := range values {
				values[i] = float64(r.Int64N(1<<32)-1<<31) / math.Pow10(places)
			}
			got.AddMultiples(values, places)
			want.AddRun(values)
		}
		if got.Sum() != want.Sum() || got.Mean() != want.Mean() || got.Count() != want.Count() {
			t.Errorf("%d places: sum %v of %d, want %v of %d", places, got.Sum(), got.Count(), want.Sum(), want.Count())
		}
	}
}

func TestExactSumOfOddThings(t *testing.T) {
	var s ExactSum
	if s.Sum() != 0 || s.Count() != 0 || s.Mean() == s.Mean() {
		t.Errorf("nothing: sum %v of %d, mean %v", s.Sum(), s.Count(), s.Mean())
	}
	s.AddRun([]float64{math.NaN(), 1.5, math.NaN()})
	if s.Sum() != 1.5 || s.Count() != 1 {
		t.Errorf("NaN is not skipped: %v of %d", s.Sum(), s.Count())
	}
	s.Add(math.Inf(1))
	if s.Sum() != math.Inf(1) || s.Count() != 2 {
		t.Errorf("with Infinity: %v of %d", s.Sum(), s.Count())
	}
	s.Add(math.Inf(-1))
	if v := s.Sum(); v == v {
		t.Errorf("Infinity and -Infinity are %v", v)
	}
	s.Remove(math.Inf(1))
	s.Remove(math.Inf(-1))
	if s.Sum() != 1.5 {
		t.Errorf("without the infinities it is %v", s.Sum())
	}

	var whole ExactSum
	whole.AddInts([]int64{math.MaxInt64, math.MaxInt64, math.MinInt64, math.MinInt64, 7})
	if whole.Sum() != 5 || whole.Count() != 5 { // 2*(2^63-1) - 2*2^63 + 7
		t.Errorf("whole numbers: %v of %d", whole.Sum(), whole.Count())
	}

	var exact ExactSum
	exact.AddDecimal(1, 400)
	exact.AddDecimal(-1, 400)
	exact.AddDecimal(12345, -2)
	exact.AddDecimal(1, math.MinInt32)
	if exact.Sum() != 123.45 {
		t.Errorf("decimals: %v", exact.Sum())
	}
	exact.AddDecimal(-1, math.MaxInt32)
	if exact.Sum() != math.Inf(-1) {
		t.Errorf("decimals out of range: %v", exact.Sum())
	}

	var many ExactSum
	run := make([]float64, 4096)
	for i := range run {
		run[i] = 99999999999.9999
	}
	for range 10 {
		many.AddRun(run)
	}
	if want := 4095999999999995.904; many.Sum() != want { // 40960 times 10^11 less 10^-4
		t.Errorf("large ones: %v, want %v", many.Sum(), want)
	}
}

func FuzzExactSum(f *testing.F) {
	f.Add(0.1, 0.2, -0.3)
	f.Add(1e308, 1.0, -1e308)
	f.Add(1.0/3, 1e22, 5e-324)
	f.Fuzz(func(t *testing.T, a, b, c float64) {
		values := []float64{a, b, c}
		var s ExactSum
		for _, v := range values {
			if v-v != 0 {
				return
			}
			s.Add(v)
		}
		total := sumOf(values)
		want, _ := total.Float64()
		mean, _ := total.Quo(total, big.NewRat(3, 1)).Float64()
		if s.Sum() != want || s.Mean() != mean {
			t.Fatalf("%v: sum %v, mean %v, want %v, %v", values, s.Sum(), s.Mean(), want, mean)
		}
	})
}

func benchmarkValues() (a, b []float64) {
	a, b = make([]float64, 4096), make([]float64, 4096)
	for i := range a {
		a[i], b[i] = float64(i*7919%100_000)/100, float64(i*104729%10_000)/10
	}
	return a, b
}

func BenchmarkExact(b *testing.B) {
	x, y := benchmarkValues()
	dst := make([]float64, len(x))
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/value")
		})
	}
	run("plus", func() { PlusRun(dst, x, y) })
	run("plus constant", func() { PlusRun(dst, x, []float64{0.1}) })
	run("times constant", func() { TimesRun(dst, x, []float64{60}) })
	run("times", func() { TimesRun(dst, x, y) })
	random := make([]float64, len(x))
	r := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = r.Float64()
	}
	run("plus long", func() { PlusRun(dst, random, x) })
	run("sum", func() { var s ExactSum; s.AddRun(x) })
	run("sum long", func() { var s ExactSum; s.AddRun(random) })
}
