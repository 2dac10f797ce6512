package expr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/core/calc"
)

// bigSin computes sine and cosine with 400 bits: the argument less its multiple of pi/2, halved ten times, the series, and the doubling formulas.
func bigSinCos(x float64) (sin, cos *big.Float) {
	const bits = 400
	f := func(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }
	half := new(big.Float).SetPrec(piBits).SetMantExp(new(big.Float).SetPrec(piBits).SetInt(halfPi()), -piBits)
	argument := new(big.Float).SetPrec(2000).SetFloat64(x)
	turns, _ := new(big.Float).SetPrec(2000).Quo(argument, half).Int(nil)
	argument.Sub(argument, new(big.Float).SetPrec(2000).Mul(half, new(big.Float).SetPrec(2000).SetInt(turns)))
	r := new(big.Float).SetPrec(bits).Set(argument)
	r.SetMantExp(r, -10)
	square := f(0).Mul(r, r)
	s, term := f(0).Set(r), f(0).Set(r)
	c, cterm := f(1), f(1)
	for n := 1; n < 30; n++ {
		term.Mul(term, square).Quo(term, f(float64(2*n*(2*n+1)))).Neg(term)
		s.Add(s, term)
		cterm.Mul(cterm, square).Quo(cterm, f(float64(2*n*(2*n-1)))).Neg(cterm)
		c.Add(c, cterm)
	}
	for range 10 {
		s, c = f(0).Mul(f(2), f(0).Mul(s, c)), f(0).Sub(f(0).Mul(c, c), f(0).Mul(s, s))
	}
	switch new(big.Int).And(turns, big.NewInt(3)).Int64() {
	case 1:
		s, c = c, f(0).Neg(s)
	case 2:
		s, c = f(0).Neg(s), f(0).Neg(c)
	case 3:
		s, c = f(0).Neg(c), s
	}
	return s, c
}

// neighbour fails unless got is the double nearest to want or one beside it.
func neighbour(t *testing.T, what string, x, got float64, want *big.Float) {
	t.Helper()
	w, _ := want.Float64()
	if got != w && got != math.Nextafter(w, math.Inf(1)) && got != math.Nextafter(w, math.Inf(-1)) {
		t.Errorf("%s(%v) is %v, want %v", what, x, got, w)
	}
}

func TestAnglesAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	arguments := []float64{math.Pi, math.Pi / 2, 2 * math.Pi, 355, 1e22, 1 << 30, 823549.7, 823550.5, math.MaxFloat64, 1e-300, 0.7853981633974483, 0.7853981633974484, 6381956970095103 * 0x1p797, 0.68, -0.68, 2.2}
	for range 400 {
		arguments = append(arguments, 10*r.Float64(), -1e6*r.Float64(), math.Ldexp(r.Float64(), r.IntN(1000)), math.Pi/2*float64(r.IntN(1e6)))
	}
	for _, x := range arguments {
		s, c := bigSinCos(x)
		neighbour(t, "sin", x, sin(x), s)
		neighbour(t, "cos", x, cos(x), c)
		if c.Sign() != 0 {
			neighbour(t, "tan", x, tan(x), new(big.Float).SetPrec(400).Quo(s, c))
		}
	}
}

// The inverse functions are checked by one step of Newton with many digits.
func TestArcsAreAccurate(t *testing.T) {
	f := func(v float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(v) }
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		x := 2*r.Float64() - 1
		if r.IntN(4) == 0 {
			x = math.Copysign(1-math.Pow(10, -14*r.Float64()), x)
		}
		if x == 1 || x == -1 {
			continue
		}
		// asin: y + (x - sin y)/cos y; acos: y + (cos y - x)/sin y.
		y := asin(x)
		s, c := bigSinCos(y)
		neighbour(t, "asin", x, y, f(0).Add(f(y), f(0).Quo(f(0).Sub(f(x), s), c)))
		y = acos(x)
		s, c = bigSinCos(y)
		neighbour(t, "acos", x, y, f(0).Add(f(y), f(0).Quo(f(0).Sub(c, f(x)), s)))
		// atan: y + (x - tan y) * cos^2 y.
		x = math.Tan(x * 1.57)
		y = atan(x)
		s, c = bigSinCos(y)
		step := f(0).Mul(f(0).Sub(f(0).Mul(f(x), c), s), c)
		neighbour(t, "atan", x, y, f(0).Add(f(y), step))
	}
}

func TestPowersAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		x, n := 0.5+r.Float64(), r.IntN(400)
		want := new(big.Float).SetPrec(2000).SetInt64(1)
		for range n {
			want.Mul(want, new(big.Float).SetPrec(2000).SetFloat64(x))
		}
		neighbour(t, "power", x, calc.Power(x, float64(n)), want)
		neighbour(t, "inverse power", x, calc.Power(x, -float64(n)), new(big.Float).SetPrec(2000).Quo(big.NewFloat(1), want))
	}
}
