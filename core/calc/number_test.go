package calc_test

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/calc"
)

func TestParseNumber(t *testing.T) {
	tests := []struct {
		text        string
		value       float64
		significand int64
		exponent    int32
		exact       bool
	}{
		{"0", 0, 0, 0, true}, {"4", 4, 4, 0, true}, {"-3", -3, -3, 0, true}, {"+1.5", 1.5, 15, -1, true}, {"100", 100, 1, 2, true}, {"1.50", 1.5, 15, -1, true},
		{".5", 0.5, 5, -1, true}, {"5.", 5, 5, 0, true}, {"0.00", 0, 0, 0, true}, {"1.234e10", 1.234e10, 1234, 7, true}, {"1E-3", 0.001, 1, -3, true}, {"10.01", 10.01, 1001, -2, true},
		{"100.0", 100, 1, 2, true}, {"000123", 123, 123, 0, true}, {"9223372036854775807", math.MaxInt64, math.MaxInt64, 0, true}, {"-9223372036854775808", math.MinInt64, math.MinInt64, 0, true},
		{"9223372036854775808", 9223372036854775808, 0, 0, false}, {"12345678901234567890123", 1.2345678901234568e22, 0, 0, false},
		{"1.234567890123456789012", 1.2345678901234567, 0, 0, false}, {"1000000000000000000000000000000", 1e30, 1, 30, true}, {"0." + strings.Repeat("0", 30) + "1", 1e-31, 1, -31, true},
		{"1e400", math.Inf(1), 1, 400, true}, {"-1e400", math.Inf(-1), -1, 400, true}, {"1e-400", 0, 1, -400, true}, {"0.1", 0.1, 1, -1, true}, {"1e2147483647", math.Inf(1), 1, 2147483647, true},
	}
	for _, tt := range tests {
		got, err := calc.ParseNumber(tt.text)
		want := calc.Number{Value: tt.value, Significand: tt.significand, Exponent: tt.exponent, Exact: tt.exact}
		if err != nil || got != want {
			t.Errorf("ParseNumber(%q) = %+v, %v, want %+v", tt.text, got, err, want)
		}
	}
	if got, err := calc.ParseNumber("NaN"); err != nil || !math.IsNaN(got.Value) || got.Exact {
		t.Errorf("ParseNumber(NaN) = %+v, %v", got, err)
	}
	if got, _ := calc.ParseNumber("-0"); !math.Signbit(got.Value) {
		t.Error("-0 lost its sign")
	}
	for _, text := range []string{"", "-", "+", ".", "e5", "1e", "1e+", "1.2.3", "1 ", " 1", "1,5", "0x1", "1_000", "Inf", "nan", "--1", "1e2147483648", "1e1.5", "١"} {
		if got, err := calc.ParseNumber(text); err == nil {
			t.Errorf("ParseNumber(%q) = %+v, want an error", text, got)
		}
	}
}

func TestAppendNumbers(t *testing.T) {
	tests := []struct {
		v                float64
		stored, computed string
	}{
		{4, "4", "4.0"}, {4294969199999, "4294969199999", "4294969199999.0"}, {61.0625, "61.0625", "61.0625"}, {0, "0", "0.0"}, {-1.5, "-1.5", "-1.5"}, {0.1, "0.1", "0.1"},
		{0.30000000000000004, "0.30000000000000004", "0.30000000000000004"}, {1e21, "1000000000000000000000", "1000000000000000000000.0"}, {1e-7, "0.0000001", "0.0000001"},
		{1 << 53, "9007199254740992", "9007199254740992.0"}, {-12, "-12", "-12.0"}, {math.Copysign(0, -1), "-0", "-0.0"},
	}
	for _, tt := range tests {
		if got := string(calc.AppendStored(nil, tt.v)); got != tt.stored {
			t.Errorf("AppendStored(%v) = %s, want %s", tt.v, got, tt.stored)
		}
		if got := string(calc.AppendComputed(nil, tt.v)); got != tt.computed {
			t.Errorf("AppendComputed(%v) = %s, want %s", tt.v, got, tt.computed)
		}
	}
}

func TestAppendDecimal(t *testing.T) {
	tests := []struct {
		significand int64
		exponent    int32
		want        string
	}{
		{3, -1, "0.3"}, {0, -5, "0"}, {1234, 3, "1234000"}, {-1234, -2, "-12.34"}, {1, -3, "0.001"}, {math.MinInt64, 0, "-9223372036854775808"}, {12, -2, "0.12"}, {7, 0, "7"},
	}
	for _, tt := range tests {
		if got := string(calc.AppendDecimal(nil, tt.significand, tt.exponent)); got != tt.want {
			t.Errorf("AppendDecimal(%d, %d) = %s, want %s", tt.significand, tt.exponent, got, tt.want)
		}
	}
}

func TestNumbersDoNotAllocate(t *testing.T) {
	var buf [32]byte
	n := testing.AllocsPerRun(100, func() {
		v, err := calc.ParseNumber("61.0625")
		if err != nil {
			t.Fatal(err)
		}
		calc.AppendComputed(buf[:0], v.Value)
	})
	if n != 0 {
		t.Errorf("a number there and back allocates %v times", n)
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"0", "-12.340e-5", "9223372036854775808", "00.10", "1e400", "+.5E2", "123456789012345678901234567890"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := calc.ParseNumber(text)
		if err != nil || math.IsNaN(n.Value) {
			return
		}
		if want, _ := strconv.ParseFloat(text, 64); n.Value != want {
			t.Fatalf("ParseNumber(%q) = %v, strconv reads %v", text, n.Value, want)
		}
		if finite := !math.IsInf(n.Value, 0); finite {
			if again, err := calc.ParseNumber(string(calc.AppendStored(nil, n.Value))); err != nil || again.Value != n.Value {
				t.Errorf("%v prints as %s, which reads as %v, %v", n.Value, calc.AppendStored(nil, n.Value), again.Value, err)
			}
		}
		if !n.Exact || n.Exponent > 2000 || n.Exponent < -2000 || len(text) > 100 {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			return
		}
		if got, ok := new(big.Rat).SetString(string(calc.AppendDecimal(nil, n.Significand, n.Exponent))); !ok || got.Cmp(want) != 0 {
			t.Errorf("ParseNumber(%q) = %d × 10^%d", text, n.Significand, n.Exponent)
		}
		if n.Significand != 0 && n.Significand%10 == 0 {
			t.Errorf("ParseNumber(%q): significand %d has trailing zeros", text, n.Significand)
		}
	})
}

func BenchmarkParseNumber(b *testing.B) {
	for b.Loop() {
		if _, err := calc.ParseNumber("61.0625"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendStored(b *testing.B) {
	var buf [32]byte
	for b.Loop() {
		calc.AppendStored(buf[:0], 61.0625)
	}
}
