package calc_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// TestDecimalArithmetic compares with sums in decimal notation by hand; the same in doubles is off in the last digit.
func TestDecimalArithmetic(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		kind   calc.Kind
		want   float64
	}{
		{"three tenths", []float64{0.1, 0.1, 0.1}, calc.KindSum, 0.3},
		{"falling exponents", []float64{100, 2.5, 0.01}, calc.KindSum, 102.51},
		{"far apart", []float64{1e300, 1, -1e300}, calc.KindSum, 1},
		{"signs", []float64{0.3, -0.1, -0.2}, calc.KindSum, 0},
		{"mean", []float64{0.1, 0.2, 0.3}, calc.KindAvg, 0.2},
		{"a mean without end", []float64{1, 0, 0}, calc.KindAvg, 1.0 / 3},
		{"difference", []float64{0.1, 0.3}, calc.KindDelta, 0.2},
	} {
		times := make([]core.Time, len(test.values))
		for i := range times {
			times[i] = core.Time(i)
		}
		a := calc.Aggregation{Range: core.Range{End: 1000}, Period: calc.Period{Count: 1, Unit: dates.Second}, Functions: []calc.Function{{Kind: test.kind}}, Decimal: true}
		got, err := calc.Aggregate(a, times, test.values)
		if err != nil || len(got[0].Values) != 1 || got[0].Values[0] != test.want {
			t.Errorf("%s: %v, %v, want %v", test.name, got, err, test.want)
		}
	}
	// Rows leave a window without a trace: 0.1 + 0.2, 0.2 + 0.4.
	for kind, want := range map[calc.SmoothKind][]float64{calc.SmoothSum: {0.1, 0.3, 0.6}, calc.SmoothAvg: {0.1, 0.15, 0.3}} {
		got, _, err := calc.Smooth{Kind: kind, Count: 2, Decimal: true}.Apply(context.Background(), []core.Time{0, 1, 2}, []float64{0.1, 0.2, 0.4})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want {
			if got.Values[i] != v {
				t.Errorf("%v of two: %v, want %v", kind, got.Values, want)
			}
		}
	}
	if got := (calc.Rate{Signed: true, Decimal: true}).Apply([]core.Time{0, 1}, []float64{0.1, 0.3}); got.Values[0] != 0.2 {
		t.Errorf("a rate of tenths: %v, want 0.2", got.Values)
	}
}

// The values of the contract about 0.1, 0.3, 0.9, 1.2, 4: by hand their mean is 1.3, the squares of the distances are 1.44 + 1 + 0.16 + 0.01 + 7.29 = 9.9.
func TestDecimalStatistics(t *testing.T) {
	times, values := []core.Time{1000, 2000, 3000, 4000, 5000}, []float64{0.1, 0.3, 0.9, 1.2, 4}
	for text, want := range map[string]float64{
		"VARIANCE": 2.475, "POPULATION_VARIANCE": 1.98, "STANDARD_DEVIATION": math.Sqrt(2.475), // 9.9/4, 9.9/5
		"MEDIAN": 0.9, "MEDIAN_ABS_DEV": 0.6, // of 0.8 0.6 0 0.3 3.1
		"PERCENTILE(25)": 0.2, "PERCENTILE(70)": 1.76, // ranks 1.5 and 4.2: 0.1 + 0.5*0.2, 1.2 + 0.2*2.8
		"COUNTER": 3.9, "MAX": 4, "FIRST": 0.1,
		"WAVG":  28.2 / 15,                                             // 0.1 + 0.6 + 2.7 + 4.8 + 20
		"WTAVG": 28.2 / 15, "PERCENTILE(0)": 0.1, "PERCENTILE(100)": 4, // seconds apart: the same weights
	} {
		f, err := calc.ParseFunction(text)
		if err != nil {
			t.Fatal(err)
		}
		a := calc.Aggregation{Range: core.Range{Start: 1000, End: 9000}, Functions: []calc.Function{f}, Decimal: true}
		if got, err := calc.Aggregate(a, times, values); err != nil || len(got[0].Values) != 1 || got[0].Values[0] != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 9000}, Functions: []calc.Function{{Kind: calc.KindVariance}}, Decimal: true}
	if got, err := calc.Aggregate(a, times[:1], values[:1]); err != nil || got[0].Values[0] != 0 {
		t.Errorf("variance of one: %v, %v", got, err)
	}
	for kind, want := range map[calc.SmoothKind][]float64{calc.SmoothExponential: {0.1, 0.12, 0.198}, calc.SmoothWeighted: {0.1, 0.7 / 3, 3.4 / 6}, calc.SmoothTimeWeighted: {0.1, 0.3, 0.7}} {
		got, _, err := calc.Smooth{Kind: kind, Factor: 0.1, Decimal: true}.Apply(context.Background(), times[:3], values[:3])
		if err != nil || !slices.Equal(got.Values, want) {
			t.Errorf("%v: %v, %v, want %v", kind, got.Values, err, want)
		}
	}
}

// Halfway between two samples, and at other places; what has no end is the nearest double. A step of days needs more than 64 bits for its products.
func TestDecimalInterpolation(t *testing.T) {
	times, values := []core.Time{1000, 2000, 3000, 4000, 5000}, []float64{0.1, 0.3, 0.9, 1.2, 4}
	r := calc.Regular{Range: core.Range{Start: 1000, End: 5000}, Period: calc.Period{Count: 500, Unit: dates.Millisecond}, Mode: calc.FillLinear, Decimal: true}
	got, err := r.Apply(times, values)
	if want := []float64{0.1, 0.2, 0.3, 0.6, 0.9, 1.05, 1.2, 2.6}; err != nil || !slices.Equal(got.Values, want) {
		t.Errorf("%v, %v, want %v", got.Values, err, want)
	}
	r.Range.End, r.Period.Count = 1e13, 3e12
	got, err = r.Apply([]core.Time{0, 9e12}, []float64{0, 1.2345678901234567})
	if want := []float64{0.41152263004115223, 0.8230452600823045}; err != nil || !slices.Equal(got.Values[:2], want) { // thirds, by hand
		t.Errorf("%v, %v, want %v", got.Values, err, want)
	}
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 3000}, Period: calc.Period{Count: 1, Unit: dates.Second}, Functions: []calc.Function{{Kind: calc.KindMax}},
		Fill: calc.Fill{Mode: calc.FillLinear}, Decimal: true}
	series, err := calc.Aggregate(a, []core.Time{0, 2000}, []float64{0.3, 0.9})
	if want := []float64{0.3, 0.6, 0.9}; err != nil || !slices.Equal(series[0].Values, want) {
		t.Errorf("%v, %v, want %v", series, err, want)
	}
}

// Numbers of more digits than a double has keep them where they are passed on: the greatest of those that are one double decides.
func TestDecimalDigits(t *testing.T) {
	const double = 1234567890123456.8
	digit := func(index uint32, thousandths int64) core.DecimalAt {
		return core.DecimalAt{Index: index, Decimal: core.Decimal{Significand: 1234567890123456000 + thousandths, Exponent: -3}}
	}
	times := []core.Time{1, 2, 3, 1001, 1002, 3001}
	values := []float64{double, double, 7, double, double, double}
	decimals := []core.DecimalAt{digit(0, 789), digit(1, 791), digit(3, 799), digit(5, 790)} // 4 is the shortest text of the double, ...6.8
	thousandths := func(d []core.DecimalAt) (list []int64) {
		for _, d := range d {
			list = append(list, int64(d.Index), d.Significand-1234567890123456000)
		}
		return list
	}
	functions := []calc.Function{{Kind: calc.KindMin}, {Kind: calc.KindMax}, {Kind: calc.KindFirst}, {Kind: calc.KindLast}, {Kind: calc.KindCount}}
	want := [][]int64{{1, 799, 2, 790}, {0, 791, 2, 790}, {0, 789, 1, 799, 2, 790}, {2, 790}, nil} // index of the period, thousandths
	check := func(name string, got []calc.Series, err error) {
		t.Helper()
		for i, s := range got {
			if err != nil || !slices.Equal(thousandths(s.Decimals), want[i]) {
				t.Errorf("%s, %d: %v, %v, want %v", name, i, thousandths(s.Decimals), err, want[i])
			}
		}
	}
	period := calc.Period{Count: 1, Unit: dates.Second}
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 4000}, Period: period, Functions: functions, Decimal: true}
	for size := 1; size <= len(times); size++ { // in pieces of any size
		g, err := calc.NewAggregator(a)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < len(times); from += size {
			to := min(from+size, len(times))
			var own []core.DecimalAt
			for _, d := range decimals {
				if int(d.Index) >= from && int(d.Index) < to {
					d.Index -= uint32(from)
					own = append(own, d)
				}
			}
			if err := g.AddExact(times[from:to], values[from:to], own); err != nil {
				t.Fatal(err)
			}
		}
		got, err := g.Finish()
		check(fmt.Sprintf("pieces of %d", size), got, err)
	}
	got, _, err := calc.Group(t.Context(), calc.Grouping{Range: a.Range, Period: period, Functions: functions, Decimal: true},
		[]calc.Series{{Times: times[:2], Values: values[:2], Decimals: decimals[:2]}, {Times: times[2:], Values: values[2:], Decimals: []core.DecimalAt{digit(1, 799), digit(3, 790)}}})
	check("group", got, err)
	a.Fill = calc.Fill{Mode: calc.FillPrevious}
	g, err := calc.NewAggregator(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.AddExact(times, values, decimals); err != nil {
		t.Fatal(err)
	}
	got, err = g.Finish()
	want = [][]int64{{1, 799, 2, 799, 3, 790}, {0, 791, 3, 790}, {0, 789, 1, 799, 2, 799, 3, 790}, {3, 790}, nil}
	check("filled", got, err)
	r := calc.Regular{Range: core.Range{Start: 0, End: 4001}, Period: calc.Period{Count: 1000, Unit: dates.Millisecond}, Mode: calc.FillPrevious, Decimal: true,
		Decimals: []core.DecimalAt{digit(0, 789)}}
	grid, err := r.Apply([]core.Time{1000, 2500}, []float64{double, 1})
	if got := thousandths(grid.Decimals); err != nil || !slices.Equal(got, []int64{0, 789, 1, 789}) {
		t.Errorf("on the grid: %v, %v", got, err)
	}
}
