package calc

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// SmoothKind is what Smooth computes from a window.
type SmoothKind uint8

const (
	SmoothAvg SmoothKind = iota + 1
	SmoothCount
	SmoothSum
	SmoothWeighted     // weights 1 to n
	SmoothTimeWeighted // weights are the milliseconds since the first sample of the window
	SmoothExponential  // over all samples so far
)

var smoothNames = [...]string{SmoothAvg: "AVG", SmoothCount: "COUNT", SmoothSum: "SUM", SmoothWeighted: "WAVG", SmoothTimeWeighted: "WTAVG", SmoothExponential: "EMA"}

// ParseSmoothKind reads the name of a kind, any case.
func ParseSmoothKind(text string) (SmoothKind, error) {
	for kind, name := range smoothNames {
		if name != "" && strings.EqualFold(strings.TrimSpace(text), name) {
			return SmoothKind(kind), nil
		}
	}
	return 0, fmt.Errorf("unknown smoothing type %q: use AVG, COUNT, SUM, WAVG, WTAVG or EMA", text)
}

// String returns the name of the contract: WTAVG.
func (k SmoothKind) String() string { return smoothNames[k] }

// Smooth replaces each value by a function of the samples up to it. With neither Count nor Millis the window is all of them.
type Smooth struct {
	Kind   SmoothKind
	Count  int     // samples in the window; 0 = any number
	Millis float64 // length of the window: a sample exactly so old is outside; 0 = any length
	// Minimum is how many samples a window needs for a value. Incomplete stands where it has fewer; nil leaves such samples out.
	Minimum    int
	Incomplete *float64
	Factor     float64 // weight of the latest value, for SmoothExponential
	// Range makes the weight follow the time since the sample before, 1 - exp(-d/Range), for SmoothExponential; in ms, 0 = Factor is used.
	Range   float64
	Decimal bool // the values stand for decimal numbers: the results are exact
}

// Apply smooths a series. A NaN stays where it is and belongs to no window; kept lists the indexes of samples that have a place in the output.
// The work is the number of samples times the size of the window, since what was added to a sum of doubles cannot be taken away without a trace; ctx ends it.
func (s Smooth) Apply(ctx context.Context, times []core.Time, values []float64) (out Series, kept []int, err error) {
	w := window{Smooth: s}
	work := 0
	for i, v := range values {
		if work += len(w.values) + 1; work >= 1<<20 {
			if work = 0; ctx.Err() != nil {
				return Series{}, nil, ctx.Err()
			}
		}
		if math.IsNaN(v) {
			out.add(times[i], v)
			kept = append(kept, i)
			continue
		}
		w.push(times[i], v)
		switch {
		case w.seen >= s.Minimum:
			out.add(times[i], w.value())
		case s.Incomplete != nil:
			out.add(times[i], *s.Incomplete)
		default:
			continue
		}
		kept = append(kept, i)
	}
	return out, kept, nil
}

// window holds the samples that count.
type window struct {
	Smooth
	times   []core.Time
	values  []float64
	exact   ExactSum // of values, when Decimal
	seen    int      // samples in the window; for SmoothExponential all so far, which are not kept
	average float64
	last    core.Time
}

func (w *window) push(t core.Time, v float64) {
	if w.Kind == SmoothExponential {
		w.exponential(t, v)
		return
	}
	w.times, w.values = append(w.times, t), append(w.values, v)
	drop := 0
	if w.Count > 0 {
		drop = max(len(w.values)-w.Count, 0)
	}
	for w.Millis > 0 && float64(t-w.times[drop]) >= w.Millis {
		drop++
	}
	if w.Decimal {
		w.exact.Add(v)
		for _, old := range w.values[:drop] {
			w.exact.Remove(old)
		}
	}
	w.times, w.values = w.times[drop:], w.values[drop:]
	w.seen = len(w.values)
}

func (w *window) exponential(t core.Time, v float64) {
	a := w.Factor
	if w.Range > 0 {
		a = decay(float64(t-w.last) / w.Range)
	}
	if w.seen == 0 {
		a = 1
	}
	if w.Decimal {
		w.average = Plus(Times(a, v), Times(Minus(1, a), w.average))
	} else {
		w.average = float64(a*v) + float64((1-a)*w.average) // no fused multiplication: the same on all processors
	}
	w.last = t
	w.seen++
}

func (w *window) value() float64 {
	switch w.Kind {
	case SmoothCount:
		return float64(w.seen)
	case SmoothSum:
		if w.Decimal {
			return w.exact.Sum()
		}
		return Sum(w.values)
	case SmoothAvg:
		if w.Decimal {
			return w.exact.Mean()
		}
		return Sum(w.values) / float64(w.seen)
	case SmoothWeighted:
		if w.Decimal {
			return ExactWeightedMean(w.values)
		}
		return WeightedMean(w.values)
	case SmoothTimeWeighted:
		return w.timeWeighted()
	}
	return w.average
}

// timeWeighted weighs each value with the time since the first one; weights that are all 0 give the first value.
func (w *window) timeWeighted() float64 {
	var sum, weights float64
	var exact WeightedSum
	for i, v := range w.values {
		d := w.times[i] - w.times[0]
		if w.Decimal && d > 0 {
			exact.Add(v, int64(d))
		}
		sum += float64(float64(d) * v)
		weights += float64(d)
	}
	switch {
	case weights == 0:
		return w.values[0]
	case w.Decimal:
		return exact.Mean()
	}
	return sum / weights
}
