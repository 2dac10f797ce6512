package forecast

import (
	"context"
	"math"
	"sort"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

// Baseline takes for a time t the function of the input at t-period, t-2*period and so on. It works on times, since a period of days follows the
// calendar.
type Baseline struct {
	Function calc.Function
	// Back returns the time n periods before t, n at least 1.
	Back func(t core.Time, n int64) core.Time
}

// BaselineInput holds what was measured, times ascending, and the wanted times ahead. NaN values count as absent.
type BaselineInput struct {
	Times  []core.Time
	Values []float64
	Ahead  []core.Time
}

// Run returns the forecast and the values at the times of the input. Times without any earlier one are left out.
func (b Baseline) Run(ctx context.Context, in BaselineInput) (forecast, fitted calc.Series, err error) {
	if forecast, err = b.at(ctx, in, in.Ahead); err != nil {
		return forecast, fitted, err
	}
	fitted, err = b.at(ctx, in, in.Times)
	return forecast, fitted, err
}

func (b Baseline) at(ctx context.Context, in BaselineInput, times []core.Time) (calc.Series, error) {
	var out calc.Series
	for _, t := range times {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		v, ok, err := b.value(in, t)
		if err != nil {
			return out, err
		}
		if ok {
			out.Times, out.Values = append(out.Times, t), append(out.Values, v)
		}
	}
	return out, nil
}

// value computes the function at t; ok is false when no earlier value counts.
func (b Baseline) value(in BaselineInput, t core.Time) (v float64, ok bool, err error) {
	var times []core.Time
	var values []float64
	end := len(in.Times)
	for n := int64(1); end > 0; n++ {
		past := b.Back(t, n)
		if past >= t || past < in.Times[0] {
			break
		}
		end = sort.Search(end, func(i int) bool { return in.Times[i] >= past })
		if end < len(in.Times) && in.Times[end] == past && !math.IsNaN(in.Values[end]) {
			times, values = append(times, past), append(values, in.Values[end])
		}
	}
	if len(times) == 0 {
		return 0, false, nil
	}
	same := true
	for i, j := 0, len(times)-1; i < j; i, j = i+1, j-1 {
		times[i], times[j] = times[j], times[i]
		values[i], values[j] = values[j], values[i]
	}
	for _, v := range values {
		same = same && v == values[0]
	}
	if same && locates(b.Function.Kind) {
		return values[0], true, nil // the mean of equal numbers is that number, not nearly that number
	}
	r := core.Range{Start: times[0], End: times[len(times)-1] + 1}
	series, err := calc.Aggregate(calc.Aggregation{Range: r, Functions: []calc.Function{b.Function}}, times, values)
	if err != nil || len(series[0].Values) == 0 || math.IsNaN(series[0].Values[0]) {
		return 0, false, err
	}
	return series[0].Values[0], true, nil
}

// locates reports whether a function of equal numbers is that number.
func locates(k calc.Kind) bool {
	switch k {
	case calc.KindAvg, calc.KindMin, calc.KindMax, calc.KindFirst, calc.KindLast, calc.KindPercentile, calc.KindWeightedAvg, calc.KindTimeWeightedAvg:
		return true
	}
	return false
}
