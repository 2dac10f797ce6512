package expr

import (
	"math"
	"math/big"
	"sync"

	"github.com/tidemark-db/tidemark/core/calc"
)

// The functions of angles are computed as in the mathematical library of FreeBSD (msun, Copyright 1993 Sun Microsystems: "Permission to use, copy, modify, and
// distribute this software is freely granted, provided that this notice is preserved."), whose polynomials these are: their errors are below one unit in the last
// place. Those of package math are larger, above all where a multiple of pi must be taken off the argument. That holds as long as each product is rounded, and so
// is the same on all processors: products stand in conversions, which no processor may fuse with an addition.

// angle is what is left of an argument beyond quadrant quarter turns: high + low, at most pi/4 in magnitude.
type angle struct {
	quadrant  int // 0 to 3
	high, low float64
}

const (
	quarterPi  = 7.85398163397448278999e-01
	twoOverPi  = 6.36619772367581382433e-01
	mediumTurn = 1 << 19 // quarter turns up to which the products below are exact

	// pi/2 in pieces of 33 bits.
	halfPi1 = 1.57079632673412561417e+00
	halfPi2 = 6.07710050630396597660e-11
	halfPi3 = 2.02226624871116645580e-21
	halfPi4 = 8.47842766036889956997e-32
)

func reduce(x float64) angle {
	turns := math.RoundToEven(x * twoOverPi)
	switch {
	case math.Abs(x) <= quarterPi:
		return angle{high: x}
	case math.Abs(turns) > mediumTurn:
		return reduceLarge(x)
	}
	high, low := x-float64(turns*halfPi1), 0.0 // exact
	for _, piece := range [...]float64{turns * halfPi2, turns * halfPi3, turns * halfPi4} {
		sum, rest := twoSum(high, -piece)
		high, low = twoSum(sum, rest+low)
	}
	return angle{int(turns) & 3, high, low}
}

// twoSum returns a + b and what rounding took from it.
func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	c := sum - a
	return sum, (a - (sum - c)) + (b - c)
}

// piBits is how many bits of pi are kept behind the point: the largest double has 1024 before it, and 53 of the result may lie 64 bits below one.
const piBits = 1024 + 53 + 128

// halfPi is pi/2 times 2^piBits, by the formula of Machin.
var halfPi = sync.OnceValue(func() *big.Int {
	const spare = 32
	one := new(big.Int).Lsh(big.NewInt(1), piBits+spare)
	arctan := func(inverse int64) *big.Int {
		sum, power, square := new(big.Int), new(big.Int).Quo(one, big.NewInt(inverse)), big.NewInt(inverse*inverse)
		for n := int64(1); power.Sign() != 0; n += 2 {
			term := new(big.Int).Quo(power, big.NewInt(n))
			if n%4 == 3 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, square)
		}
		return sum
	}
	pi := new(big.Int).Sub(new(big.Int).Lsh(arctan(5), 2), arctan(239)) // a quarter of it
	return pi.Rsh(pi.Lsh(pi, 1), spare)
})

// reduceLarge divides in whole numbers.
func reduceLarge(x float64) angle {
	if x-x != 0 {
		return angle{high: nan}
	}
	fraction, exponent := math.Frexp(x)
	scaled := new(big.Int).Lsh(big.NewInt(int64(fraction*(1<<53))), uint(exponent-53+piBits))
	turns, rest := new(big.Int).DivMod(scaled, halfPi(), new(big.Int)) // 0 <= rest
	if new(big.Int).Lsh(rest, 1).Cmp(halfPi()) > 0 {
		rest.Sub(rest, halfPi())
		turns.Add(turns, big.NewInt(1))
	}
	value := new(big.Float).SetMantExp(new(big.Float).SetInt(rest), -piBits)
	high, _ := value.Float64()
	low, _ := value.Sub(value, big.NewFloat(high)).Float64()
	return angle{int(new(big.Int).And(turns, big.NewInt(3)).Int64()), high, low}
}

// The polynomials of sine and cosine.
var (
	sineTerms  = [...]float64{8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10}
	cosineLow  = [...]float64{4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05}
	cosineHigh = [...]float64{-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11}
)

// sine and cosine of an angle within pi/4.
func (a angle) sine() float64 {
	x, y := a.high, a.low
	z := x * x
	v := float64(z * x)
	r := calc.Horner(z, sineTerms[:])
	return x - ((float64(z*(float64(0.5*y)-float64(v*r))) - y) - float64(v*-1.66666666666666324348e-01))
}

func (a angle) cosine() float64 {
	x, y := a.high, a.low
	z := x * x
	r := float64(z*calc.Horner(z, cosineLow[:])) + float64(z*z*z*z*calc.Horner(z, cosineHigh[:]))
	half := float64(0.5 * z)
	w := 1 - half
	return w + (((1 - w) - half) + (float64(z*r) - float64(x*y)))
}

func sin(x float64) float64 {
	a := reduce(x)
	switch a.quadrant {
	case 0:
		return a.sine()
	case 1:
		return a.cosine()
	case 2:
		return -a.sine()
	}
	return -a.cosine()
}

func cos(x float64) float64 {
	a := reduce(x)
	a.quadrant = (a.quadrant + 1) & 3
	switch a.quadrant {
	case 1:
		return a.cosine()
	case 2:
		return -a.sine()
	case 3:
		return -a.cosine()
	}
	return a.sine()
}

func tan(x float64) float64 {
	a := reduce(x)
	return a.tangent(a.quadrant&1 == 1)
}

// cot is 1/tan(x), rounded twice as the contract has it.
func cot(x float64) float64 { return 1 / tan(x) }

// The polynomial of the tangent, terms of even and odd powers.
var (
	tangentOdd = [...]float64{1.33333333333201242699e-01, 2.18694882948595424599e-02, 3.59207910759131235356e-03, 5.88041240820264096874e-04, 7.81794442939557092300e-05,
		-1.85586374855275456654e-05}
	tangentEven = [...]float64{5.39682539762260521377e-02, 8.86323982359930005737e-03, 1.45620945432529025516e-03, 2.46463134818469906812e-04, 7.14072491382608190305e-05,
		2.59073051863633712884e-05}
)

const tangentFirst = 3.33333333333334091986e-01

// tangent of an angle within pi/4, or minus its inverse, the tangent a quarter turn on.
func (a angle) tangent(inverse bool) float64 {
	x, y := a.high, a.low
	negative, big := x < 0, math.Abs(x) >= 0.67434
	if big {
		if negative {
			x, y = -x, -y
		}
		x = (quarterPi - x) + (3.06161699786838301793e-17 - y)
		y = 0
	}
	z := x * x
	w := z * z
	r, v, s := calc.Horner(w, tangentOdd[:]), float64(z*calc.Horner(w, tangentEven[:])), float64(z*x)
	r = y + float64(z*(float64(s*(r+v))+y)) + float64(tangentFirst*s)
	w = x + r
	switch {
	case big:
		sign := 1.0
		if inverse {
			sign = -1
		}
		t := sign - float64(2*(x-(w*w/(w+sign)-r)))
		if negative {
			return -t
		}
		return t
	case !inverse:
		return w
	}
	// -1/(x+r) with half the bits first, which makes the product exact.
	z = upperHalf(w)
	v = r - (z - x)
	quotient := -1 / w
	t := upperHalf(quotient)
	return t + float64(quotient*((1+float64(t*z))+float64(t*v)))
}

func upperHalf(x float64) float64 { return math.Float64frombits(math.Float64bits(x) &^ (1<<32 - 1)) }

var (
	arcAbove = [...]float64{1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02, 7.91534994289814532176e-04,
		3.47933107596021167570e-05}
	arcBelow = [...]float64{1, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01, 7.70381505559019352791e-02}
)

// arcRatio is the rational function of arcsine and arccosine: (asin(x)-x)/x^3 of z = x^2.
func arcRatio(z float64) float64 {
	return z * calc.Horner(z, arcAbove[:]) / calc.Horner(z, arcBelow[:])
}

const (
	halfPiHigh = 1.57079632679489655800e+00
	halfPiLow  = 6.12323399573676603587e-17
)

func asin(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a <= 1):
		return nan
	case a == 1:
		return x * halfPiHigh
	case a < 0.5:
		return x + float64(x*arcRatio(x*x))
	}
	z := float64((1 - a) / 2)
	r, s := arcRatio(z), math.Sqrt(z)
	var t float64
	if a >= 0.975 {
		t = halfPiHigh - (float64(2*(s+float64(s*r))) - halfPiLow)
	} else {
		w := upperHalf(s)
		c := (z - float64(w*w)) / (s + w)
		t = quarterPi - ((float64(2*s*r) - (halfPiLow - float64(2*c))) - (quarterPi - float64(2*w)))
	}
	return math.Copysign(t, x)
}

func acos(x float64) float64 {
	switch {
	case !(math.Abs(x) <= 1):
		return nan
	case x == 1:
		return 0
	case x == -1:
		return math.Pi
	case math.Abs(x) < 0.5:
		return halfPiHigh - (x - (halfPiLow - float64(x*arcRatio(x*x))))
	case x < 0:
		z := (1 + x) / 2
		s := math.Sqrt(z)
		return math.Pi - float64(2*(s+(float64(arcRatio(z)*s)-halfPiLow)))
	}
	z := float64((1 - x) / 2)
	s := math.Sqrt(z)
	d := upperHalf(s)
	c := (z - float64(d*d)) / (s + d)
	return 2 * (d + (float64(arcRatio(z)*s) + c))
}

// Angles that arctangents are taken from, high and low part, and where the next one begins.
var arcs = [...]struct{ high, low, until float64 }{
	{0, 0, 7.0 / 16}, {4.63647609000806093515e-01, 2.26987774529616870924e-17, 11.0 / 16}, {quarterPi, 3.06161699786838301793e-17, 19.0 / 16},
	{9.82793723247329054082e-01, 1.39033110312309984516e-17, 39.0 / 16}, {halfPiHigh, halfPiLow, math.Inf(1)},
}

// The polynomial of the arctangent, terms of even and odd powers of its square.
var (
	atanOdd = [...]float64{3.33333333333329318027e-01, 1.42857142725034663711e-01, 9.09088713343650656196e-02, 6.66107313738753120669e-02, 4.97687799461593236017e-02,
		1.62858201153657823623e-02}
	atanEven = [...]float64{-1.99999999998764832476e-01, -1.11111104054623557880e-01, -7.69187620504482999495e-02, -5.83357013379057348645e-02, -3.65315727442169155270e-02}
)

func atan(x float64) float64 {
	a := math.Abs(x)
	if a != a {
		return nan
	}
	i := 0
	for i < len(arcs)-1 && a >= arcs[i].until {
		i++
	}
	t := a
	switch i {
	case 1:
		t = (float64(2*a) - 1) / (2 + a)
	case 2:
		t = (a - 1) / (a + 1)
	case 3:
		t = (a - 1.5) / (1 + float64(1.5*a))
	case 4:
		t = -1 / a
	}
	z := t * t
	w := z * z
	over := float64(t * (float64(z*calc.Horner(w, atanOdd[:])) + float64(w*calc.Horner(w, atanEven[:]))))
	if i == 0 {
		return math.Copysign(t-over, x)
	}
	return math.Copysign(arcs[i].high-((over-arcs[i].low)-t), x)
}
