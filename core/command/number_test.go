package command

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

func TestParseNumber(t *testing.T) {
	exact := func(v float64) Number { return Number{Value: v} }
	inexact := func(v float64, s int64, e int32) Number {
		return Number{Value: v, Decimal: core.Decimal{Significand: s, Exponent: e}, Inexact: true}
	}
	over := func(v float64) Number { return Number{Value: v, Decimal: Overflow, Inexact: true} }
	for text, want := range map[string]Number{
		"0": exact(0), "-0": exact(0), "+0.0e99": exact(0), "1": exact(1), "-1.5": exact(-1.5), "+2": exact(2), ".5": exact(0.5), "5.": exact(5),
		"0.1": exact(0.1), "1.234e10": exact(12340000000), "1E-3": exact(0.001), "1e+22": exact(1e22), "1e23": exact(1e23), "5e-324": exact(5e-324),
		"100": exact(100), "1e-2147483647": exact(0), "9007199254740993": inexact(9007199254740992, 9007199254740993, 0),
		"0.12345678901234567890":  inexact(0.12345678901234568, 1234567890123456789, -19),
		"9223372036854775807":     inexact(9223372036854775807, math.MaxInt64, 0),
		"-9223372036854775809":    over(-9223372036854775808),
		"1.234567890123456789012": over(1.2345678901234567), "10000000000000000000000000": exact(1e25),
		"18446744073709551616": over(18446744073709551616), strings.Repeat("1", 40): over(1.1111111111111112e39),
		"-9.223372036854775808":  inexact(-9.223372036854775808, math.MinInt64, -18),
		"1.7976931348623157e308": exact(math.MaxFloat64), "4e-400": inexact(0, 4, -400),
	} {
		got, ok := ParseNumber(text)
		if !ok || got != want {
			t.Errorf("%s: got %+v %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", ".", "+.", "e5", "1e", "1e+", "1e+-5", "1e--5", "1e2147483648", "1e309", "-1e309", "nan", "NAN", "inf", "1,5", "0x1", "1 ",
		"--1", "1.2.3", "1e1.5"} {
		if n, ok := ParseNumber(text); ok {
			t.Errorf("%q: got %+v, want it refused", text, n)
		}
	}
	if n, ok := ParseNumber("NaN"); !ok || !math.IsNaN(n.Value) {
		t.Errorf("NaN: got %+v %v", n, ok)
	}
}

// FuzzParseNumber compares with strconv and arbitrary-precision rationals.
func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"1", "-1.50", "0.1e-7", "123456789012345678901234567890", "9007199254740993", "1e-310", ".5e3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := ParseNumber(text)
		if !ok || math.IsNaN(n.Value) {
			return
		}
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || want != n.Value {
			t.Fatalf("%s: got %v, want %v (%v)", text, n.Value, want, err)
		}
		d, _ := calc.ParseNumber(text)
		if len(text) > 100 || !d.Exact || d.Exponent > -minExponent || d.Exponent < minExponent {
			return // big.Rat would take pages, too
		}
		sent, _ := new(big.Rat).SetString(text)
		kept, _ := new(big.Rat).SetString(strconv.FormatFloat(n.Value, 'e', -1, 64))
		if n.Inexact && n.Decimal != Overflow {
			kept, _ = new(big.Rat).SetString(strconv.FormatInt(n.Decimal.Significand, 10) + "e" + strconv.Itoa(int(n.Decimal.Exponent)))
		}
		if n.Decimal != Overflow && sent.Cmp(kept) != 0 {
			t.Fatalf("%s: kept as %v", text, kept)
		}
	})
}
