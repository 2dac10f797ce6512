package expr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/core/calc"
)

func many(v float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(v) }

// bigExp is e^x by its series, for the argument halved so often that 60 terms are enough.
func bigExp(x *big.Float) *big.Float {
	const halvings = 20
	r := many(0).Set(x)
	r.SetMantExp(r, -halvings)
	sum, term := many(1), many(1)
	for n := 1; n < 60; n++ {
		term.Mul(term, r).Quo(term, many(float64(n)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog is the natural logarithm, by steps of Newton from that of package math.
func bigLog(x float64) *big.Float {
	y := many(math.Log(x))
	for range 4 {
		e := bigExp(y)
		y.Add(y, many(0).Quo(many(0).Sub(many(x), e), e))
	}
	return y
}

func TestLogarithmsAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 400 {
		x := math.Ldexp(0.5+r.Float64(), r.IntN(100)-50)
		ln := bigLog(x)
		neighbour(t, "ln", x, calc.Log(x), ln)
		for _, base := range []float64{2, 10, 3, 1.5, 0.1} {
			neighbour(t, "logarithm", x, calc.Logarithm(base, x), many(0).Quo(ln, bigLog(base)))
		}
		y := 40 * (r.Float64() - 0.5)
		neighbour(t, "exp", y, calc.Exp(y), bigExp(many(y)))
		neighbour(t, "power", y, calc.Power(x, y), bigExp(many(0).Mul(ln, many(y))))
		neighbour(t, "degrees", y, degrees(y), many(0).Quo(many(0).Mul(many(y), many(180)), bigPi()))
		neighbour(t, "radians", y, radians(y), many(0).Quo(many(0).Mul(many(y), bigPi()), many(180)))
	}
}

func bigPi() *big.Float {
	pi := new(big.Float).SetPrec(400).SetInt(halfPi())
	return pi.SetMantExp(pi, 1-piBits)
}
