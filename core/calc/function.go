package calc

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what an aggregate function computes from the samples of a period.
type Kind uint8

// The kinds; the comment says what is not in the name. Samples are v1..vn at t1..tn.
const (
	KindCount Kind = iota + 1
	KindSum
	KindAvg
	KindMin
	KindMax
	KindFirst
	KindLast
	KindDelta      // vn minus the last value of the previous period, else minus v1
	KindCounter    // sum of increases, where a decrease counts as a restart from zero
	KindPercentile // rank P*(n+1)/100, linear between neighbours
	KindStdDev     // n-1 in the denominator, 0 for one sample
	KindVariance
	KindPopulationVariance
	KindMedianAbsDev
	KindSlope             // least squares, per millisecond
	KindIntercept         // least squares, at the first sample
	KindWeightedAvg       // weights 1..n
	KindTimeWeightedAvg   // weights 1 + seconds since t1
	KindMinValueTime      // Unix ms of the first minimum
	KindMaxValueTime      // Unix ms of the first maximum
	KindThresholdCount    // number of violations
	KindThresholdDuration // ms in violation
	KindThresholdPercent  // share of time without
	KindDetail            // the samples themselves
)

// functionNames lists the plain spellings in the order of Kind; PERCENTILE has its own syntax.
var functionNames = [...]string{
	KindCount: "COUNT", KindSum: "SUM", KindAvg: "AVG", KindMin: "MIN", KindMax: "MAX", KindFirst: "FIRST", KindLast: "LAST", KindDelta: "DELTA",
	KindCounter: "COUNTER", KindStdDev: "STANDARD_DEVIATION", KindVariance: "VARIANCE", KindPopulationVariance: "POPULATION_VARIANCE",
	KindMedianAbsDev: "MEDIAN_ABS_DEV", KindSlope: "SLOPE", KindIntercept: "INTERCEPT", KindWeightedAvg: "WAVG", KindTimeWeightedAvg: "WTAVG",
	KindMinValueTime: "MIN_VALUE_TIME", KindMaxValueTime: "MAX_VALUE_TIME", KindThresholdCount: "THRESHOLD_COUNT",
	KindThresholdDuration: "THRESHOLD_DURATION", KindThresholdPercent: "THRESHOLD_PERCENT", KindDetail: "DETAIL",
}

// Function is an aggregate function as a query names it.
type Function struct {
	Kind Kind
	P    float64 // of a percentile, 0 to 100
	name string
}

// ParseFunction reads a function name, any case: those of the contract, MEDIAN, PERCENTILE(p) with blanks anywhere, and the older PERCENTILE_99.
func ParseFunction(text string) (Function, error) {
	name := strings.ToUpper(strings.TrimSpace(text))
	if name == "MEDIAN" {
		return Function{Kind: KindPercentile, P: 50, name: name}, nil
	}
	if rest, ok := strings.CutPrefix(name, "PERCENTILE"); ok {
		p, err := parsePercentile(rest)
		if err != nil {
			return Function{}, fmt.Errorf("aggregate function %q: %w", text, err)
		}
		return Function{Kind: KindPercentile, P: p, name: name}, nil
	}
	for kind, known := range functionNames {
		if name == known && name != "" {
			return Function{Kind: Kind(kind), name: name}, nil
		}
	}
	return Function{}, fmt.Errorf("unknown aggregate function %q", text)
}

// parsePercentile reads what follows PERCENTILE: (99.5) or one of the fixed suffixes.
func parsePercentile(text string) (float64, error) {
	switch text {
	case "_999":
		return 99.9, nil
	case "_995":
		return 99.5, nil
	case "_99", "_95", "_90", "_75", "_50", "_25", "_10", "_5", "_1":
		return strconv.ParseFloat(text[1:], 64)
	case "_05":
		return 0.5, nil
	case "_01":
		return 0.1, nil
	}
	inner, opened := strings.CutPrefix(strings.TrimSpace(text), "(")
	inner, closed := strings.CutSuffix(inner, ")")
	n, err := ParseNumber(strings.TrimSpace(inner))
	if !opened || !closed || err != nil {
		return 0, fmt.Errorf("write PERCENTILE(p) with p from 0 to 100")
	}
	if !(n.Value >= 0 && n.Value <= 100) {
		return 0, fmt.Errorf("percentile %s is not in 0 to 100", inner)
	}
	return n.Value, nil
}

// String returns the name in capitals, in the spelling that was parsed: PERCENTILE_95 stays.
func (f Function) String() string { return f.name }

// NeedsThreshold reports whether the function compares with a threshold.
func (f Function) NeedsThreshold() bool {
	return f.Kind >= KindThresholdCount && f.Kind <= KindThresholdPercent
}

// passesOn reports whether the result is one of the values.
func (f Function) passesOn() bool {
	return f.Kind == KindMin || f.Kind == KindMax || f.Kind == KindFirst || f.Kind == KindLast
}

// streams reports whether a Summary is enough to compute the function.
func (f Function) streams() bool {
	return f.Kind >= KindCount && f.Kind <= KindDelta || f.Kind == KindMinValueTime || f.Kind == KindMaxValueTime || f.Kind == KindDetail
}

// needs returns what of a Summary the function looks at and that costs a look at every value.
func (f Function) needs() need {
	switch f.Kind {
	case KindSum, KindAvg:
		return needSum
	case KindMin:
		return needMin
	case KindMax:
		return needMax
	case KindMinValueTime:
		return needMin | needTimes
	case KindMaxValueTime:
		return needMax | needTimes
	}
	return 0
}
