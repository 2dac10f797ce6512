package calc_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// The samples of section 13 of the series contract.
func TestSmoothTable(t *testing.T) {
	times, values := []core.Time{0, 10_000, 20_000, 30_000}, []float64{10, 20, math.NaN(), 40}
	for _, tt := range []struct {
		name string
		s    calc.Smooth
		want []float64
		kept []int
	}{
		{"AVG count 2", calc.Smooth{Kind: calc.SmoothAvg, Count: 2}, []float64{10, 15, math.NaN(), 30}, []int{0, 1, 2, 3}},
		{"AVG 25 s", calc.Smooth{Kind: calc.SmoothAvg, Millis: 25_000}, []float64{10, 15, math.NaN(), 30}, []int{0, 1, 2, 3}},
		{"EMA", calc.Smooth{Kind: calc.SmoothExponential, Factor: 0.5}, []float64{10, 15, math.NaN(), 27.5}, []int{0, 1, 2, 3}},
		{"minimum 2", calc.Smooth{Kind: calc.SmoothAvg, Count: 2, Minimum: 2}, []float64{15, math.NaN(), 30}, []int{1, 2, 3}},
	} {
		got, kept, err := tt.s.Apply(t.Context(), times, values)
		if diff := cmp.Diff(tt.want, got.Values, cmpopts.EquateNaNs()); err != nil || diff != "" || !slices.Equal(kept, tt.kept) {
			t.Errorf("%s: kept %v, %v (-want +got):\n%s", tt.name, kept, err, diff)
		}
	}
}

// Random series against the definition of each window.
func TestSmoothEqualsDefinition(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s := calc.Smooth{Kind: calc.SmoothKind(1 + rnd.IntN(5)), Minimum: rnd.IntN(4)}
		switch rnd.IntN(3) {
		case 0:
			s.Count = 1 + rnd.IntN(5)
		case 1:
			s.Millis = float64(1 + rnd.IntN(60))
		}
		var times []core.Time
		var values []float64
		at := core.Time(0)
		for range rnd.IntN(40) {
			at += core.Time(1 + rnd.IntN(20))
			v := rnd.NormFloat64()
			if rnd.IntN(6) == 0 {
				v = math.NaN()
			}
			times, values = append(times, at), append(values, v)
		}
		var want calc.Series
		for i := range values {
			if v, ok := naiveSmooth(s, times[:i+1], values[:i+1]); ok {
				want.Times, want.Values = append(want.Times, times[i]), append(want.Values, v)
			}
		}
		got, _, err := s.Apply(t.Context(), times, values)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-12, 1e-12)); err != nil || diff != "" {
			t.Fatalf("seed %d, %+v: %v (-want +got):\n%s", seed, s, err, diff)
		}
	}
}

// naiveSmooth computes the value at the last of the samples.
func naiveSmooth(s calc.Smooth, times []core.Time, values []float64) (float64, bool) {
	last := len(values) - 1
	if math.IsNaN(values[last]) {
		return math.NaN(), true
	}
	var t, v []float64
	for i := last; i >= 0 && (s.Count == 0 || len(v) < s.Count); i-- {
		if s.Millis > 0 && float64(times[i]) <= float64(times[last])-s.Millis {
			break
		}
		if !math.IsNaN(values[i]) {
			t, v = append(t, float64(times[i])), append(v, values[i])
		}
	}
	slices.Reverse(t)
	slices.Reverse(v)
	n, sum, weighted, weights, timed, timeWeights := float64(len(v)), 0.0, 0.0, 0.0, 0.0, 0.0
	for i := range v {
		w := float64(i + 1)
		sum, weighted, weights = sum+v[i], weighted+w*v[i], weights+w
		timed, timeWeights = timed+(t[i]-t[0])*v[i], timeWeights+t[i]-t[0]
	}
	if len(v) < s.Minimum {
		return 0, false
	}
	switch s.Kind {
	case calc.SmoothAvg:
		return sum / n, true
	case calc.SmoothCount:
		return n, true
	case calc.SmoothSum:
		return sum, true
	case calc.SmoothWeighted:
		return weighted / weights, true
	}
	if len(v) == 1 {
		return v[0], true
	}
	return timed / timeWeights, true
}

func TestExponentialOfIrregularSeries(t *testing.T) {
	// A sample that comes ln 2 ranges after the one before weighs one half.
	s := calc.Smooth{Kind: calc.SmoothExponential, Range: 1000 / math.Ln2}
	got, _, err := s.Apply(t.Context(), []core.Time{5, 1005, 3005}, []float64{0, 8, 8})
	if want := []float64{0, 4, 7}; err != nil || cmp.Diff(want, got.Values, cmpopts.EquateApprox(1e-12, 0)) != "" {
		t.Errorf("%v, %v; want %v", got.Values, err, want)
	}
}

func TestSmoothEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	times, values := make([]core.Time, 3000), make([]float64, 3000)
	for i := range times {
		times[i] = core.Time(i)
	}
	if _, _, err := (calc.Smooth{Kind: calc.SmoothAvg}).Apply(ctx, times, values); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

func TestDownsample(t *testing.T) {
	hours := func(n int) (times []core.Time) {
		for i := range n {
			times = append(times, core.Time(i+1)*3_600_000)
		}
		return times
	}
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		d      calc.Downsample
		values []float64
		want   []int
	}{
		{"the contract", calc.Downsample{}, []float64{5, 5, 5, 6, 6, 6}, []int{0, 2, 3, 5}},
		{"gap", calc.Downsample{Gap: func(last, t core.Time) bool { return t-last > 3_600_000 }}, []float64{5, 5, 5, 6, 6, 6}, []int{0, 2, 3, 5}},
		{"NaN", calc.Downsample{}, []float64{5, 5, 5, nan, 5, 5, 5}, []int{0, 2, 3, 4, 6}},
		{"line", calc.Downsample{Linear: true}, []float64{1, 2, 3, 4, 3, 2, 1}, []int{0, 3, 6}},
		{"difference", calc.Downsample{Difference: 1}, []float64{1, 2, 1, 2, 5}, []int{0, 3, 4}},
		{"ratio", calc.Downsample{Ratio: 1.5}, []float64{2, 3, 2, 4, 4}, []int{0, 2, 3, 4}},
		{"needed", calc.Downsample{Needed: func(i int) bool { return i == 1 }}, []float64{5, 5, 5, 5}, []int{0, 1, 3}},
		{"one", calc.Downsample{}, []float64{5}, []int{0}}, {"none", calc.Downsample{}, nil, nil},
	} {
		if got := tt.d.Keep(hours(len(tt.values)), tt.values); !slices.Equal(got, tt.want) {
			t.Errorf("%s: kept %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What a line through the kept samples says about a dropped one is within the tolerance, when the neighbours are those it was judged by.
func TestDownsampleKeepsShape(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		d := calc.Downsample{Difference: rnd.Float64()}
		var times []core.Time
		var values []float64
		for i := range 1 + rnd.IntN(50) {
			times, values = append(times, core.Time(i)), append(values, math.Round(rnd.NormFloat64()))
		}
		kept := d.Keep(times, values)
		if kept[0] != 0 || kept[len(kept)-1] != len(values)-1 || !slices.IsSorted(kept) {
			t.Fatalf("seed %d: kept %v of %d", seed, kept, len(values))
		}
		at := 0
		for i, v := range values {
			if at+1 < len(kept) && kept[at+1] <= i {
				at++
			}
			if math.Abs(v-values[kept[at]]) > d.Difference {
				t.Fatalf("seed %d: sample %d with %v was dropped after %v", seed, i, v, values[kept[at]])
			}
		}
	}
}
