package forecast

import (
	"context"
	"math"
)

// HoltWinters is additive exponential smoothing with level, trend and season (Winters 1960, in the component form of FPP 8.3). With m the period, for
// each value y after the first season:
//
//	level  = alpha*(y - season[t-m]) + (1-alpha)*(level + trend)
//	trend  = beta*(level - previous level) + (1-beta)*trend
//	season = gamma*(y - previous level - previous trend) + (1-gamma)*season[t-m]
//
// The fitted value is level + trend + season before y is known, the forecast h steps ahead level + h*trend + season. The first season is the start: its
// trend is the mean of the differences of the second season to it, over the distance; its line goes through its mean; its season is what is left. Level
// and trend step from value to value, the season goes by places: where a filter leaves hours of the day out, each hour keeps its own season.
type HoltWinters struct {
	// Period is the number of places in a season; 0 chooses it, 1 is none: Holt's linear trend.
	Period int
	// Alpha, Beta and Gamma are smoothing factors from 0 to 1; nil is chosen to make the one-step errors in the score tail least.
	Alpha, Beta, Gamma *float64
}

// HoltWintersFit is the result with the parameters that gave it.
type HoltWintersFit struct {
	Output             // without the first Period values
	Period             int
	Alpha, Beta, Gamma float64
}

// coarse are the factors that are tried first.
var coarse = []float64{0.02, 0.1, 0.3, 0.6, 0.9}

// Run smooths. The score tail defaults to a quarter of the input. A season longer than the input is a ShortError.
func (h HoltWinters) Run(ctx context.Context, in Input) (HoltWintersFit, error) {
	s, err := in.prepare()
	if err != nil {
		return HoltWintersFit{}, err
	}
	n := len(s.y)
	if h.Period > s.slots[n-1]-s.slots[0]+1 {
		return HoltWintersFit{}, &ShortError{Have: n, Need: h.Period, For: "hw with this period"}
	}
	if s.constant {
		m := max(h.Period, 1)
		given := func(p *float64) float64 {
			if p == nil {
				return 0
			}
			return *p
		}
		return HoltWintersFit{s.unchanging(m), m, given(h.Alpha), given(h.Beta), given(h.Gamma)}, nil
	}
	score := s.scored(n, n/4)
	m := h.Period
	if m == 0 {
		if m, err = h.season(ctx, s, score); err != nil {
			return HoltWintersFit{}, err
		}
	}
	sm := newSmoother(s.y, s.slots, m)
	factors, _, err := minimize(ctx, h.fixed(m), coarse, func(f []float64) float64 { return sm.run(f, n-score, nil) })
	if err != nil {
		return HoltWintersFit{}, err
	}
	fitted := make([]float64, n)
	sm.run(factors, n, fitted)
	skip := min(m, n)
	out := s.output(sm.forecast(s), fitted[skip:], skip)
	return HoltWintersFit{out, m, factors[0], factors[1], factors[2]}, nil
}

// fixed lists the factors that are not to be chosen. Without a season its factor has no meaning.
func (h HoltWinters) fixed(period int) []*float64 {
	gamma := h.Gamma
	if period == 1 && gamma == nil {
		gamma = new(float64)
	}
	return []*float64{h.Alpha, h.Beta, gamma}
}

// season chooses the period: for none and for each candidate the factors are fitted to what lies before the score tail, and the candidate whose
// forecast of the tail is closest wins. A longer one must be better by a part in a hundred.
func (h HoltWinters) season(ctx context.Context, s *series, score int) (int, error) {
	head := *s
	n := len(s.y) - score
	head.y, head.slots = s.y[:n], s.slots[:n]
	head.ahead, head.trail = s.slots[n:], 0
	chosen, least := 1, math.Inf(1)
	if n < 2 {
		return chosen, nil
	}
	for _, m := range append([]int{1}, seasons(s, (head.slots[n-1]-head.slots[0]+1)/2)...) {
		sm := newSmoother(head.y, head.slots, m)
		tail := max(sm.first, n-max(score, m))
		factors, _, err := minimize(ctx, h.fixed(m), coarse, func(f []float64) float64 { return sm.run(f, tail, nil) })
		if err != nil {
			return 0, err
		}
		sm.run(factors, n, nil)
		if e := meanSquare(s.y[n:], sm.forecast(&head)); s.better(e, least) {
			chosen, least = m, e
		}
	}
	return chosen, nil
}

func meanSquare(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum / float64(len(a))
}

// smoother runs the recurrences from one start with different factors.
type smoother struct {
	y     []float64
	slots []int
	m     int
	first int // the first value after the first season
	start struct {
		level, trend float64
		season       []float64 // NaN where the first season has no value
	}
	level, trend float64
	season       []float64
}

// newSmoother computes the start. There is at least one value, and the season is no longer than the series.
func newSmoother(y []float64, slots []int, m int) *smoother {
	s := &smoother{y: y, slots: slots, m: m, season: make([]float64, m)}
	for s.first < len(y) && slots[s.first] < slots[0]+m {
		s.first++
	}
	trend, pairs := 0.0, 0
	for i, j := 0, s.first; i < s.first && j < len(y); {
		switch d := slots[j] - slots[i] - m; {
		case d < 0:
			j++
		case d > 0:
			i++
		default:
			trend += (y[j] - y[i]) / float64(j-i)
			pairs++
			i, j = i+1, j+1
		}
	}
	if pairs > 0 {
		trend /= float64(pairs)
	}
	mean := 0.0
	for _, v := range y[:s.first] {
		mean += v / float64(s.first)
	}
	middle := float64(s.first-1) / 2
	s.start.season = make([]float64, m)
	for i := range s.start.season {
		s.start.season[i] = math.NaN()
	}
	for i, v := range y[:s.first] {
		s.start.season[slots[i]-slots[0]] = v - (mean + trend*(float64(i)-middle))
	}
	s.start.level, s.start.trend = mean+trend*middle, trend
	return s
}

// run smooths with the factors alpha, beta, gamma, leaves the final state in s and returns the sum of squared one-step errors from index from on. Fitted
// values go to fitted unless it is nil.
func (s *smoother) run(factors []float64, from int, fitted []float64) float64 {
	alpha, beta, gamma := factors[0], factors[1], factors[2]
	level, trend := s.start.level, s.start.trend
	copy(s.season, s.start.season)
	sum, origin := 0.0, s.slots[0]
	for i := s.first; i < len(s.y); i++ {
		y, at := s.y[i], 0
		if s.m > 1 {
			at = (s.slots[i] - origin) % s.m
		}
		season := s.season[at]
		if season != season { // a place that the first season has not: its first value tells nothing but its season
			s.season[at] = y - (level + trend)
			season = 0
			if fitted != nil {
				fitted[i] = y
			}
			level += trend
			continue
		}
		ahead := level + trend
		expected := ahead + season
		if fitted != nil {
			fitted[i] = expected
		}
		if i >= from {
			sum += (y - expected) * (y - expected)
		}
		next := alpha*(y-season) + (1-alpha)*ahead
		trend = beta*(next-level) + (1-beta)*trend
		level = next
		if s.m > 1 {
			s.season[at] = gamma*(y-ahead) + (1-gamma)*season
		}
	}
	s.level, s.trend = level, trend
	return sum
}

// forecast continues the final state to the last place ahead of in.
func (s *smoother) forecast(in *series) []float64 {
	out := make([]float64, in.steps())
	for i, slot := range in.ahead {
		h := in.trail + i
		v := s.level + float64(h+1)*s.trend
		if season := s.season[(slot-s.slots[0])%s.m]; !math.IsNaN(season) {
			v += season
		}
		out[h] = v
	}
	return out
}
