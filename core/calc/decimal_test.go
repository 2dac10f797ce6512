package calc

import "testing"

// TestDecimalArithmetic compares with sums in decimal notation by hand; the same in doubles is off in the last digit.
func TestDecimalArithmetic(t *testing.T) {
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"three tenths", decimalExactSum([]float64{0.1, 0.1, 0.1}), 0.3},
		{"falling exponents", decimalExactSum([]float64{100, 2.5, 0.01}), 102.51},
		{"far apart", decimalExactSum([]float64{1e300, 1, -1e300}), 1},
		{"signs", decimalExactSum([]float64{0.3, -0.1, -0.2}), 0},
		{"mean", decimalMean([]float64{0.1, 0.2, 0.3}), 0.2},
		{"a mean without end", decimalMean([]float64{1, 0, 0}), 1.0 / 3},
		{"difference", decimalDifference(0.3, 0.1), 0.2},
		{"nothing", decimalExactSum(nil), 0},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
}
