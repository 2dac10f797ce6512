package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core/calc"
)

// numberFunctions is section 2.5.10 of the rule contract.
func numberFunctions() []function {
	one := []any{sig[func(float64) float64]()}
	two := []any{sig[func(float64, float64) float64]()}
	fs := []function{
		{name: "round", types: []any{sig[func(float64) float64](), sig[func(float64, int) float64]()}, call: func(_ *evaluation, a []any) (any, error) {
			x, err := numberOf(a[0])
			if err != nil || len(a) == 1 {
				return math.Round(x), err
			}
			d, err := intOf(a[1])
			return roundTo(x, d), err
		}},
		{name: "mod", types: two, call: arithmetic2(math.Mod)},
		{name: "pow", types: two, call: arithmetic2(calc.Power)},
		{name: "formatNumber", types: []any{sig[func(any, string) string]()}, call: func(_ *evaluation, a []any) (any, error) {
			x, err := numberOf(a[0])
			if err != nil {
				return nil, err
			}
			return formatPattern(x, textOf(a[1]))
		}},
		{name: "formatPrecision", types: []any{sig[func(any, int) string]()}, call: formatPrecision},
		{name: "formatBytes", types: []any{sig[func(any, bool) string]()}, call: func(_ *evaluation, a []any) (any, error) {
			return formatBytes(a[0], a[1] == true), nil
		}},
		{name: "toNumber", types: []any{sig[func(any) float64](), sig[func(any, float64) float64]()}, call: func(_ *evaluation, a []any) (any, error) {
			return toNumber(a[0], fallback(a)), nil
		}},
		{name: "toLong", types: []any{sig[func(any) int](), sig[func(any, int) int]()}, call: func(_ *evaluation, a []any) (any, error) {
			return intOf(toNumber(a[0], fallback(a)))
		}},
		{name: "toBoolean", types: []any{sig[func(any) bool]()}, call: func(_ *evaluation, a []any) (any, error) {
			switch strings.ToLower(textOf(a[0])) {
			case "true", "yes", "on", "1":
				return true, nil
			}
			return false, nil
		}},
		{name: "trim_zero", types: []any{sig[func(any) string]()}, call: func(_ *evaluation, a []any) (any, error) {
			return numberText(toNumber(a[0], math.NaN())), nil
		}},
		{name: "check_range", types: []any{sig[func(any, float64, float64, float64) float64]()}, call: checkRange},
		{name: "between", types: []any{sig[func(any, any, any) bool]()}, call: between},
	}
	for name, f := range map[string]func(float64) float64{"sqrt": math.Sqrt, "cbrt": math.Cbrt, "exp": calc.Exp, "log": calc.Log, "log10": log10,
		"signum": signum} {
		fs = append(fs, function{name: name, types: one, call: arithmetic(f)})
	}
	return fs
}

func arithmetic(f func(float64) float64) func(*evaluation, []any) (any, error) {
	return func(_ *evaluation, a []any) (any, error) {
		x, err := numberOf(a[0])
		return f(x), err
	}
}

func arithmetic2(f func(x, y float64) float64) func(*evaluation, []any) (any, error) {
	return func(_ *evaluation, a []any) (any, error) {
		x, err := numberOf(a[0])
		if err != nil {
			return nil, err
		}
		y, err := numberOf(a[1])
		return f(x, y), err
	}
}

func log10(x float64) float64 { return calc.Logarithm(10, x) }

func signum(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

// roundTo rounds half away from zero to d decimals; d below zero rounds left of the point.
func roundTo(x float64, d int) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || d > 15 {
		return x
	}
	scale := math.Pow10(d)
	if r := math.Round(x*scale) / scale; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return x
}

func fallback(a []any) float64 {
	f, ok := floatOf(arg(a, 1))
	if !ok {
		return math.NaN()
	}
	return f
}

func toNumber(v any, otherwise float64) float64 {
	if s, ok := v.(string); ok {
		if f, ok := parseNumber(s); ok {
			return f
		}
		return otherwise
	}
	if f, ok := floatOf(v); ok {
		return f
	}
	return otherwise
}

func checkRange(_ *evaluation, a []any) (any, error) {
	low, err1 := numberOf(a[1])
	high, err2 := numberOf(a[2])
	d, err3 := numberOf(a[3])
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	x := toNumber(a[0], math.NaN())
	switch {
	case math.IsNaN(x):
		return d, nil
	case x < low || x > high:
		return nil, fmt.Errorf("%v is not between %v and %v", x, low, high)
	}
	return x, nil
}

// between includes both ends; texts compare by bytes.
func between(_ *evaluation, a []any) (any, error) {
	if s, ok := a[0].(string); ok {
		return s >= textOf(a[1]) && s <= textOf(a[2]), nil
	}
	x, ok1 := floatOf(a[0])
	low, ok2 := floatOf(a[1])
	high, ok3 := floatOf(a[2])
	if !ok1 || !ok2 || !ok3 {
		return false, nil
	}
	return x >= low && x <= high, nil
}

// formatPattern knows `#`, `0`, `,` and `.` between a literal prefix and suffix, and rounds half to even.
func formatPattern(x float64, pattern string) (string, error) {
	start := strings.IndexAny(pattern, "#0")
	if start < 0 {
		return "", fmt.Errorf("number pattern %q has neither # nor 0", pattern)
	}
	end := strings.LastIndexAny(pattern, "#0") + 1
	if start > 0 && pattern[start-1] == '.' {
		start--
	}
	prefix, digits, suffix := pattern[:start], pattern[start:end], pattern[end:]
	whole, fraction, _ := strings.Cut(digits, ".")
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return numberText(x), nil
	}
	const mostDecimals = 340 // more than a float64 has
	if len(fraction) > mostDecimals || len(whole) > mostDecimals {
		return "", fmt.Errorf("number pattern %q is too long", pattern)
	}
	if strings.HasSuffix(suffix, "%") {
		x *= 100
	}
	text := strconv.FormatFloat(math.Abs(x), 'f', len(fraction), 64)
	left, right, _ := strings.Cut(text, ".")
	for len(right) > strings.Count(fraction, "0") && strings.HasSuffix(right, "0") {
		right = right[:len(right)-1]
	}
	if left == "0" && !strings.Contains(whole, "0") && right != "" {
		left = ""
	}
	for len(left) < strings.Count(whole, "0") {
		left = "0" + left
	}
	if i := strings.LastIndexByte(whole, ','); i >= 0 {
		left = groupDigits(left, len(whole)-1-i)
	}
	out := left
	if right != "" {
		out += "." + right
	}
	if x < 0 && strings.ContainsAny(out, "123456789") {
		out = "-" + out
	}
	return prefix + out + suffix, nil
}

func groupDigits(s string, size int) string {
	if size <= 0 {
		return s
	}
	for i := len(s) - size; i > 0; i -= size {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func formatPrecision(_ *evaluation, a []any) (any, error) {
	x, err := numberOf(a[0])
	if err != nil {
		return nil, err
	}
	n, err := intOf(a[1])
	if err != nil || n < 1 || n > 100 {
		return nil, fmt.Errorf("formatPrecision: digits must be 1 to 100")
	}
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return numberText(x), nil
	}
	decimals := n - 1 - exponentOf(x)
	return strconv.FormatFloat(roundTo(x, decimals), 'f', max(0, decimals), 64), nil
}

// exponentOf is the power of ten of the first digit of x; x is finite and not 0.
func exponentOf(x float64) int {
	text := strconv.FormatFloat(x, 'e', -1, 64)
	n, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:]) // it is one: strconv wrote it
	return n
}

func formatBytes(v any, si bool) string {
	x := toNumber(v, math.NaN())
	if math.IsNaN(x) {
		return textOf(v)
	}
	step, units := 1024.0, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if si {
		step, units = 1000.0, []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	}
	if math.Abs(x) < step {
		return strconv.FormatFloat(x, 'f', 0, 64) + " B"
	}
	i := 0
	for math.Abs(x) >= step && i < len(units)-1 {
		x /= step
		i++
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + units[i]
}
