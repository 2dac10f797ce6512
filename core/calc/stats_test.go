package calc_test

import (
	"math"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// The worked example of the rule functions, with a NaN sample that all of them skip. More digits are from hand calculation:
// variance (13.33² + 3.33² + 16.67²)/2 = 700/3; wavg (10+40+120)/6; wtavg (1*10 + 61*20 + 121*40)/183; ema 0.25*40 + 0.75*(0.25*20 + 0.75*10).
func TestWindowStatistics(t *testing.T) {
	times := []core.Time{0, 30_000, 60_000, 120_000}
	values := []float64{10, math.NaN(), 20, 40}
	var sorter calc.Sorter
	line := calc.Fit(times, values)
	tests := []struct {
		name      string
		got, want float64
	}{
		{"sum", calc.Sum(values), 70}, {"count", float64(calc.Count(values)), 3}, {"avg", calc.Mean(values), 70. / 3}, {"variance", calc.Variance(values), 700. / 3},
		{"stdev", calc.StdDev(values), math.Sqrt(700. / 3)}, {"median", sorter.Median(values), 20}, {"percentile 60", sorter.Percentile(values, 60), 28},
		{"percentile 75", sorter.Percentile(values, 75), 40}, {"percentile 0", sorter.Percentile(values, 0), 10}, {"wavg", calc.WeightedMean(values), 170. / 6},
		{"wtavg", calc.TimeWeightedMean(times, values), 6070. / 183}, {"ema", calc.EMA(values, 0.25), 19.375}, {"median_abs_dev", sorter.MedianAbsDev(values), 10},
		{"rate per minute", 60 * calc.RatePerSecond(times, values), 15}, {"slope per minute", 60_000 * line.Slope, 15},
		{"intercept", line.Intercept(), 25. / 3}, {"line at 120 s", line.At(120_000), 115. / 3},
		{"threshold_linear_time(100)", (100 - line.At(120_000)) / (60_000 * line.Slope), 37. / 9},
	}
	for _, tt := range tests {
		if math.Abs(tt.got-tt.want) > 1e-12*math.Abs(tt.want) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestStatisticsOfFewSamples(t *testing.T) {
	none, one := []float64{math.NaN()}, []float64{5}
	at := []core.Time{1000}
	var sorter calc.Sorter
	for name, got := range map[string]float64{
		"mean": calc.Mean(none), "variance": calc.Variance(one), "stdev": calc.StdDev(nil), "median": sorter.Median(none), "mad": sorter.MedianAbsDev(nil), "wavg": calc.WeightedMean(none),
		"wtavg": calc.TimeWeightedMean(at, none), "ema": calc.EMA(none, 0.5), "rate": calc.RatePerSecond(at, one), "slope": calc.Fit(at, one).Slope, "line": calc.Fit(at, none).Value,
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s = %v, want NaN", name, got)
		}
	}
	if got := calc.Sum(none); got != 0 {
		t.Errorf("the sum of nothing = %v", got)
	}
	if got := calc.TimeWeightedMean(at, one); got != 5 {
		t.Errorf("wtavg of one = %v", got)
	}
}

// A distance of one second must survive in a slope although its times are near 1.6e12.
func TestFitKeepsPrecision(t *testing.T) {
	times := []core.Time{1620036000000, 1620036001000, 1620036002000}
	if got := calc.Fit(times, []float64{1, 2, 3}); math.Abs(got.Slope-0.001) > 1e-17 || got.Value != 1 {
		t.Errorf("Fit = %+v", got)
	}
}

func TestCounterIncrease(t *testing.T) {
	if got := calc.CounterIncrease(100, []float64{160, math.NaN(), 20, 60, 60}); got != 60+20+40 {
		t.Errorf("CounterIncrease = %v, want 120", got)
	}
}

func TestStatisticsDoNotAllocate(t *testing.T) {
	times, values := []core.Time{0, 1000, 2000}, []float64{3, 1, 2}
	var sorter calc.Sorter
	sorter.Median(values)
	if n := testing.AllocsPerRun(100, func() { sorter.Percentile(values, 95); calc.StdDev(values); calc.Fit(times, values) }); n != 0 {
		t.Errorf("statistics allocate %v times", n)
	}
}
