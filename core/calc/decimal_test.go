package calc_test

import (
	"context"
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
