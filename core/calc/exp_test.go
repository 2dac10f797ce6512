package calc

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

// The numbers are 1 - e^-x of the doubles nearest to x, computed with 400 digits and rounded once.
func TestDecay(t *testing.T) {
	for _, tt := range []struct{ x, want float64 }{
		{-1, 0}, {0, 0}, {1e-300, 1e-300}, {1e-17, 1e-17}, {1e-9, 9.999999995e-10}, {0.001, 0.0009995001666250085}, {0.25, 0.22119921692859512},
		{0.3465, 0.2928411807127287}, {0.3467, 0.2929825983343526}, {0.5, 0.3934693402873666}, {math.Ln2, 0.5}, {1, 0.6321205588285577}, {1.0397, 0.6464392657295809},
		{1.04, 0.6465453180412198}, {1.7, 0.8173164759472653}, {2.5, 0.9179150013761012}, {5, 0.9932620530009145}, {10, 0.9999546000702375}, {20, 0.9999999979388464},
		{36, 0.9999999999999998}, {38, 1}, {39, 1}, {math.Inf(1), 1},
	} {
		if got := decay(tt.x); got != tt.want && got != math.Nextafter(tt.want, got) {
			t.Errorf("decay(%v) = %v, want %v or a neighbour", tt.x, got, tt.want)
		}
	}
	if got := decay(math.NaN()); got == got {
		t.Errorf("decay(NaN) = %v, want NaN", got)
	}
	// Another computation of it, whose last digit depends on the processor.
	for x := 1e-6; x < 45; x *= 1.001 {
		if got, want := decay(x), -math.Expm1(-x); math.Abs(got-want) > 4.5e-16*want {
			t.Fatalf("decay(%v) = %v, math.Expm1 has %v", x, got, want)
		}
	}
}

// The numbers are e^x and ln x of the doubles nearest to x, computed with 400 digits and rounded once.
func TestExponentialAndLogarithm(t *testing.T) {
	near := func(what string, x, got, want float64) {
		t.Helper()
		if got != want && got != math.Nextafter(want, got) && !(got != got && want != want) {
			t.Errorf("%s(%v) = %v, want %v or a neighbour", what, x, got, want)
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct{ x, want float64 }{
		{0, 1}, {1e-12, 1.000000000001}, {-1e-12, 0.999999999999}, {0.34, 1.4049475905635938}, {0.35, 1.4190675485932571}, {0.5, 1.6487212707001282},
		{1, 2.718281828459045}, {-1, 0.36787944117144233}, {1.04, 2.82921701435156}, {2.5, 12.182493960703473}, {-3.75, 0.023517745856009107},
		{10, 22026.465794806718}, {-20.5, 1.2501528663867426e-09}, {100.125, 3.0460357809113723e+43}, {-300, 5.148200222412013e-131},
		{700, 1.0142320547350045e+304}, {709.78, 1.7928227943945155e+308}, {-708, 3.307553003638408e-308}, {-740, 4.2e-322}, {709.79, inf}, {-746, 0},
		{inf, inf}, {-inf, 0}, {nan, nan},
	} {
		near("Exp", tt.x, Exp(tt.x), tt.want)
	}
	for _, tt := range []struct{ x, want float64 }{
		{5e-324, -744.4400719213812}, {1e-300, -690.7755278982137}, {1e-5, -11.512925464970229}, {0.1, -2.3025850929940455}, {0.5, -0.6931471805599453},
		{0.7, -0.35667494393873245}, {0.7072, -0.3464417676587033}, {0.99, -0.01005033585350145}, {0.9999999, -1.0000000494736474e-07}, {1, 0},
		{1.0000001, 9.999999505838704e-08}, {1.4142, 0.3465640001880033}, {1.42, 0.35065687161316933}, {2, 0.6931471805599453}, {2.718281828459045, 1},
		{3, 1.0986122886681098}, {10, 2.302585092994046}, {1000, 6.907755278982137}, {123456.789, 11.723646487185881}, {1e15, 34.538776394910684},
		{1.7e308, 709.7268368932282}, {0, -inf}, {-1, nan}, {-inf, nan}, {inf, inf}, {nan, nan},
	} {
		near("Log", tt.x, Log(tt.x), tt.want)
	}
}

// Powers and logarithms that a double holds exactly are exact, up to the ends of its range.
func TestPowersAtTheEnds(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct{ x, y, want float64 }{
		{2, 1023, 0x1p1023}, {2, 1024, inf}, {-2, 1023, -0x1p1023}, {2, -1074, 0x1p-1074}, {2, -1076, 0}, {0.5, 1074, 0x1p-1074}, {10, 308, 1e308}, {10, -308, 1e-308},
		{10, -323, 1e-323}, {10, 309, inf}, {10, 1e9, inf}, {0.1, 1e9, 0}, {100, 154, 1e308}, {1e154, 2, 1e308}, {1e-200, 2, 0}, {0x1p-1074, 0.5, 0x1p-537}, {0x1p-1074, 1, 0x1p-1074},
		{9, 0.5, 3}, {3, 2, 9}, {-3, 2, 9}, {4, -1, 0.25}, {-7, 1, -7}, {-9, 0.5, nan}, {27, 1. / 3, 3}, {-8, 3, -512}, {-8, 2, 64}, {-8, 0.5, nan}, {0, -1, inf}, {1, 1e300, 1}, {7, 0, 1}, {math.MaxFloat64, 1, math.MaxFloat64},
	} {
		if got := Power(tt.x, tt.y); got != tt.want && !(got != got && tt.want != tt.want) {
			t.Errorf("Power(%v, %v) = %v, want %v", tt.x, tt.y, got, tt.want)
		}
	}
	for n := -300; n <= 300; n++ {
		x, _ := strconv.ParseFloat(fmt.Sprintf("1e%d", n), 64)
		if got := Logarithm(10, x); got != float64(n) {
			t.Errorf("Logarithm(10, %v) = %v, want %d", x, got, n)
		}
	}
}
