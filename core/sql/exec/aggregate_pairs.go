package exec

import (
	"math"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// pairState computes what depends on two numbers of a row.
type pairState struct {
	of         column.Type
	kind       string
	population bool
	parts      []pair
}

// pair is the sums of a group, of its numbers and of their products. All are counted from the first row: the numbers may be large and lie close together, as
// times do.
//
// Since a row of the group is at zero, the sum of squares is at most n times the sum of squared distances from the mean, and what their difference cancels is
// covered by the further digits of a wide number. So the order of rows and merges shows in results hardly ever.
type pair struct {
	n              float64
	firstX, firstY wide
	x, y           wide
	xx, yy, xy     wide
}

func (s *pairState) resize(n int) { s.parts = grown(s.parts, n) }
func (s *pairState) reset()       { s.parts = s.parts[:0] }
func (s *pairState) size() int64  { return int64(cap(s.parts)) * 120 }

func (s *pairState) add(ids []int32, a *arguments) {
	for i, id := range ids {
		x, y := a.x[i], a.y[i]
		if x == x && y == y {
			s.parts[id].add(x, y)
		}
	}
}

func (p *pair) add(x, y float64) {
	dx, dy := wideDecimal(x), wideDecimal(y)
	if p.n++; p.n == 1 {
		p.firstX, p.firstY = dx, dy
	}
	dx, dy = dx.minus(p.firstX), dy.minus(p.firstY)
	p.x.add(dx)
	p.y.add(dy)
	p.xx.addProduct(dx, dx)
	p.yy.addProduct(dy, dy)
	p.xy.addProduct(dx, dy)
}

func (p *pair) merge(o *pair) {
	switch {
	case o.n == 0:
		return
	case p.n == 0:
		*p = *o
		return
	}
	// Each row of o is dx and dy further from the first row of p than from that of o.
	dx, dy, n := o.firstX.minus(p.firstX), o.firstY.minus(p.firstY), wide{high: o.n}
	ndx, ndy := n.times(dx), n.times(dy)
	p.xx = p.xx.plus(o.xx).plus(dx.times(o.x.plus(o.x).plus(ndx)))
	p.yy = p.yy.plus(o.yy).plus(dy.times(o.y.plus(o.y).plus(ndy)))
	p.xy = p.xy.plus(o.xy).plus(dx.times(o.y.plus(ndy))).plus(dy.times(o.x))
	p.x, p.y = p.x.plus(o.x).plus(ndx), p.y.plus(o.y).plus(ndy)
	p.n += o.n
}

func (s *pairState) merge(ids []int32, from state) {
	o := from.(*pairState)
	for i := range o.parts {
		s.parts[ids[i]].merge(&o.parts[i])
	}
}

func (s *pairState) result(order, _ []int32) *column.Vector {
	return answers(s.of, order, s.parts, func(p *pair) (float64, bool) {
		if p.n == 0 {
			return 0, false
		}
		return s.value(p), true
	})
}

// noise is what rounding leaves of a zero, in relation to what it is the difference of: it is far above the last of the 100 bits, and far below the first 53.
const noise = 1.0 / (1 << 90)

// value computes the function; of the regressions y is the first argument, x the second.
func (s *pairState) value(p *pair) float64 {
	n := wide{high: p.n}
	spread := func(products, a, b wide) wide { return products.minus(a.times(b).over(n)) } // sum of the products of the distances from the means
	xx, yy, xy := spread(p.xx, p.x, p.x), spread(p.yy, p.y, p.y), spread(p.xy, p.x, p.y)
	most := xx.root().times(yy.root())
	if math.Abs(xy.high) < most.high*noise {
		xy = wide{}
	}
	switch s.kind {
	case "correl":
		return xy.over(most).high // 0/0 for a constant
	case "covar":
		if !s.population {
			n.high--
		}
		return xy.over(n).high
	}
	slope := xy.over(yy)
	if s.kind == "regr_slope" {
		return slope.high
	}
	meanX, meanY := p.firstX.plus(p.x.over(n)), p.firstY.plus(p.y.over(n))
	intercept := meanX.minus(slope.times(meanY)).high
	if math.Abs(intercept) < math.Abs(meanX.high)*noise {
		return 0
	}
	return intercept
}

// wide is the sum of two doubles, some 100 bits: low is below half a unit in the last place of high. Products stand in conversions: a processor that fuses them
// with the addition behind would not round them.
type wide struct{ high, low float64 }

// wideDecimal returns the shortest decimal of a number if that has at most 15 digits, otherwise the double itself.
func wideDecimal(v float64) wide {
	if v == math.Trunc(v) || !(math.Abs(v) < mostScaled) {
		return wide{high: v}
	}
	// Fifteen digits: 2^e <= |v| < 2^(e+1), and 1233/4096 is nearly log10(2).
	e := int(math.Float64bits(v)>>52&0x7ff) - 1023
	places := min(14-e*1233>>12, len(tens)-1)
	if math.Abs(v*tens[places]) >= mostScaled {
		places--
	}
	m, ok := scaled(v, int8(places))
	if !ok {
		return wide{high: v}
	}
	return wide{v, -math.FMA(v, tens[places], -float64(m)) / tens[places]}
}

// wideSum returns a + b exactly.
func wideSum(a, b float64) wide {
	sum := a + b
	c := sum - a
	return wide{sum, (a - (sum - c)) + (b - c)}
}

func (a wide) plus(b wide) wide {
	s := wideSum(a.high, b.high)
	return wideSum(s.high, s.low+(a.low+b.low))
}

// add is plus for long sums: low may grow beyond its half unit, which whatever else takes the sum puts in order.
func (a *wide) add(b wide) {
	s := wideSum(a.high, b.high)
	a.high, a.low = s.high, a.low+(s.low+b.low)
}

// addProduct adds b times c.
func (a *wide) addProduct(b, c wide) {
	p := float64(b.high * c.high)
	s := wideSum(a.high, p)
	a.high, a.low = s.high, a.low+(s.low+(math.FMA(b.high, c.high, -p)+(float64(b.high*c.low)+float64(b.low*c.high))))
}

func (a wide) minus(b wide) wide { return a.plus(wide{-b.high, -b.low}) }

func (a wide) times(b wide) wide {
	p := float64(a.high * b.high)
	rest := math.FMA(a.high, b.high, -p) + (float64(a.high*b.low) + float64(a.low*b.high))
	return wideSum(p, rest)
}

func (a wide) over(b wide) wide {
	q := a.high / b.high
	rest := math.FMA(-q, b.high, a.high) + (a.low - float64(q*b.low))
	return wideSum(q, rest/b.high)
}

// root returns the square root.
func (a wide) root() wide {
	r := math.Sqrt(a.high)
	if r == 0 {
		return wide{}
	}
	rest := math.FMA(-r, r, a.high) + a.low
	return wideSum(r, rest/(2*r))
}
