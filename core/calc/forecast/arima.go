package forecast

import (
	"context"
	"math"
)

// ARIMA is the autoregressive model of order P for the series (D = 0) or its first differences (D = 1):
//
//	x[t] = c + a1*x[t-1] + ... + ap*x[t-p]
//
// fitted by conditional least squares (Brockwell, Davis 5.1). The fitted values are the predictions of each value from those before it; the first P+D
// values have none and stand for themselves.
type ARIMA struct {
	P int // 0 = chosen
	D int // 0 or 1, or ChooseD
}

// ChooseD makes the order of differences automatic.
const ChooseD = -1

// MaxOrder bounds ARIMA.P: the work grows with its square.
const MaxOrder = 300

// ARIMAFit is the result with the parameters that gave it. Coefficients are c, a1, ... of the series (or its differences), c in units of the input.
type ARIMAFit struct {
	Output
	P, D         int
	Coefficients []float64
}

// Run fits. What is automatic is chosen by the squared one-step errors in the score tail, a quarter of the input by default, of models fitted to what
// lies before it; a higher order must be better by a part in a hundred. Fewer than 2P+1+D numbers are a ShortError.
func (a ARIMA) Run(ctx context.Context, in Input) (ARIMAFit, error) {
	s, err := in.prepare()
	if err != nil {
		return ARIMAFit{}, err
	}
	n := len(s.y)
	if need := 2*max(a.P, 1) + 1 + max(a.D, 0); n < need && !(s.constant && a.P == 0) {
		return ARIMAFit{}, &ShortError{Have: n, Need: need, For: "arima"}
	}
	if s.constant {
		p := max(a.P, 1)
		return ARIMAFit{Output: s.unchanging(0), P: p, D: max(a.D, 0), Coefficients: append([]float64{s.original}, make([]float64, p)...)}, nil
	}
	p, d, err := a.order(ctx, s)
	if err != nil {
		return ARIMAFit{}, err
	}
	m, err := newAutoregression(ctx, s.y, p, d)
	if err != nil {
		return ARIMAFit{}, err
	}
	out := s.output(m.continued(s.steps()), m.fitted(), 0)
	c := append([]float64(nil), m.c...)
	c[0] = scale(m.constant(), s.exponent)
	return ARIMAFit{out, p, d, c}, nil
}

// order chooses what the request left open: the order by the one-step errors in the score tail, the differences by the forecast of that tail. One-step
// errors hardly tell a series that comes back to its mean from one that does not.
func (a ARIMA) order(ctx context.Context, s *series) (p, d int, err error) {
	if a.P > 0 && a.D != ChooseD {
		return a.P, a.D, nil
	}
	n := len(s.y)
	head := n - s.scored(n, n/4)
	p, d = max(a.P, 1), max(a.D, 0)
	least := math.Inf(1)
	for _, tryD := range [...]int{0, 1} {
		if a.D != ChooseD && tryD != a.D {
			continue
		}
		q, m, err := a.best(ctx, s, candidate{head, tryD})
		if err != nil {
			return 0, 0, err
		}
		if m == nil {
			continue
		}
		m.y, m.x = m.y[:head], m.x[:head-tryD]
		if e := meanSquare(s.y[head:], m.continued(n-head)); s.better(e, least) {
			p, d, least = q, tryD, e
		}
	}
	return p, d, nil
}

// candidate is a choice of differences, to be judged by models of what lies before head.
type candidate struct{ head, d int }

// best returns the order with the least one-step errors after the head, and its model; nil when the head is too short for any.
func (a ARIMA) best(ctx context.Context, s *series, c candidate) (p int, best *autoregression, err error) {
	low, high := 1, min((c.head-c.d-1)/2, a.bound(s, c.head))
	if a.P > 0 {
		low, high = a.P, a.P
	}
	if high < 1 || 2*high+1+c.d > c.head {
		return 0, nil, nil
	}
	x, mean := differences(s.y, c.d)
	g, err := regress(ctx, x[:c.head-c.d], high)
	if err != nil {
		return 0, nil, err
	}
	rank, least := g.rank(), math.Inf(1)
	for q := low; q <= high && (best == nil || q <= rank); q++ {
		m := &autoregression{y: s.y, x: x, d: c.d, mean: mean, c: g.solve(min(q, rank))}
		if e := m.error(c.head - c.d); s.better(e, least) {
			p, best, least = q, m, e
		}
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
	}
	return p, best, nil
}

// bound is the highest order tried: ten times the decimal logarithm of the length, as is customary, or one more than the longest season that shows,
// where a quarter of the head is as long.
func (a ARIMA) bound(s *series, head int) int {
	if a.P > 0 {
		return a.P
	}
	most := int(10 * math.Log10(float64(len(s.y))))
	for _, season := range seasons(s, min(head/4, MaxOrder)-1) {
		most = max(most, season+1)
	}
	return min(most, MaxOrder)
}

// autoregression is a fitted model. x are the differences of y without their mean, which would drown them.
type autoregression struct {
	y, x []float64
	d    int
	mean float64
	c    []float64
}

func differences(y []float64, d int) (x []float64, mean float64) {
	x = make([]float64, len(y)-d)
	for i := range x {
		x[i] = y[i+d]
		if d == 1 {
			x[i] -= y[i]
		}
		mean += x[i] / float64(len(x))
	}
	for i := range x {
		x[i] -= mean
	}
	return x, mean
}

// newAutoregression fits order p. Where that many columns depend on each other, as in a series without noise, the coefficients of higher lags are zero.
func newAutoregression(ctx context.Context, y []float64, p, d int) (*autoregression, error) {
	x, mean := differences(y, d)
	g, err := regress(ctx, x, p)
	if err != nil {
		return nil, err
	}
	c := make([]float64, p+1)
	copy(c, g.solve(g.rank()))
	return &autoregression{y: y, x: x, d: d, mean: mean, c: c}, nil
}

// constant returns c of the model for x with its mean.
func (m *autoregression) constant() float64 {
	rest := 1.0
	for _, a := range m.c[1:] {
		rest -= a
	}
	return m.c[0] + m.mean*rest
}

// next predicts x[t], t at least the order.
func (m *autoregression) next(x []float64, t int) float64 {
	v := m.c[0]
	for lag, a := range m.c[1:] {
		v += a * x[t-1-lag]
	}
	return v
}

// error is the mean of the squared one-step errors of x[from:].
func (m *autoregression) error(from int) float64 {
	sum := 0.0
	for t := from; t < len(m.x); t++ {
		e := m.x[t] - m.next(m.x, t)
		sum += e * e
	}
	return sum / float64(len(m.x)-from)
}

func (m *autoregression) fitted() []float64 {
	out := append([]float64(nil), m.y...)
	for t := len(m.c) - 1; t < len(m.x); t++ {
		out[t+m.d] = m.next(m.x, t) + m.mean
		if m.d == 1 {
			out[t+1] += m.y[t]
		}
	}
	return out
}

func (m *autoregression) continued(steps int) []float64 {
	n := len(m.x)
	x := append(make([]float64, 0, n+steps), m.x...)
	out := make([]float64, steps)
	last := m.y[len(m.y)-1]
	for i := range out {
		x = append(x, m.next(x, n+i))
		out[i] = x[n+i] + m.mean
		if m.d == 1 {
			out[i] += last
			last = out[i]
		}
	}
	return out
}
