package calc_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// The data of the worked examples and of the check set of the series contract.
func pump(t testing.TB) ([]core.Time, []float64) {
	times := []core.Time{
		at(t, "2021-05-03T10:00:30Z"), at(t, "2021-05-03T10:01:30Z"), at(t, "2021-05-03T10:03:00Z"),
		at(t, "2021-05-03T10:04:00Z"), at(t, "2021-05-03T10:06:00Z"), at(t, "2021-05-03T10:07:00Z"),
	}
	return times, []float64{4, 10, 6, 8, 3, 9}
}

func function(t testing.TB, name string) calc.Function {
	t.Helper()
	f, err := calc.ParseFunction(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func aggregate(t testing.TB, a calc.Aggregation, names ...string) []calc.Series {
	t.Helper()
	for _, name := range names {
		a.Functions = append(a.Functions, function(t, name))
	}
	times, values := pump(t)
	got, err := calc.Aggregate(a, times, values)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func between(t testing.TB, from, to string) core.Range {
	return core.Range{Start: at(t, "2021-05-03T"+from+"Z"), End: at(t, "2021-05-03T"+to+"Z")}
}

var fiveMinutes = calc.Period{Count: 5, Unit: dates.Minute}

func TestCheckSet(t *testing.T) {
	tests := []struct {
		function string
		want     [2]float64
	}{
		{"COUNT", [2]float64{4, 2}}, {"SUM", [2]float64{28, 12}}, {"AVG", [2]float64{7, 6}}, {"MIN", [2]float64{4, 3}}, {"MAX", [2]float64{10, 9}},
		{"FIRST", [2]float64{4, 3}}, {"LAST", [2]float64{8, 9}}, {"DELTA", [2]float64{4, 1}}, {"COUNTER", [2]float64{14, 9}},
		{"PERCENTILE(25)", [2]float64{4.5, 3}}, {"MEDIAN", [2]float64{7, 6}}, {"PERCENTILE_75", [2]float64{9.5, 9}}, {"PERCENTILE ( 90 )", [2]float64{10, 9}},
		{"STANDARD_DEVIATION", [2]float64{2.581988897471611, 4.242640687119285}}, {"MEDIAN_ABS_DEV", [2]float64{2, 3}},
		{"WAVG", [2]float64{7.4, 7}}, {"WTAVG", [2]float64{7.566037735849057, 8.903225806451612}}, {"SLOPE", [2]float64{9.195402298850575e-6, 1e-4}},
		{"INTERCEPT", [2]float64{6.0344827586206895, 3}}, {"MIN_VALUE_TIME", [2]float64{1620036030000, 1620036360000}},
		{"MAX_VALUE_TIME", [2]float64{1620036090000, 1620036420000}}, {"THRESHOLD_COUNT", [2]float64{2, 1}}, {"THRESHOLD_DURATION", [2]float64{187500, 200000}},
		{"THRESHOLD_PERCENT", [2]float64{37.5, 33.333333333333336}}, {"VARIANCE", [2]float64{20. / 3, 18}}, {"POPULATION_VARIANCE", [2]float64{5, 9}},
	}
	above := &calc.Threshold{Min: math.Inf(-1), Max: 7}
	for _, tt := range tests {
		// The range ends inside the second period, whose own end counts for thresholds.
		got := aggregate(t, calc.Aggregation{Range: between(t, "10:00:00", "10:09:00"), Period: fiveMinutes, Threshold: above}, tt.function)
		want := []calc.Series{{Times: []core.Time{1620036000000, 1620036300000}, Values: tt.want[:]}}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-15, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.function, diff)
		}
	}
}

func TestTwoFunctionsAndMisalignedStart(t *testing.T) {
	got := aggregate(t, calc.Aggregation{Range: between(t, "10:00:00", "10:10:00"), Period: fiveMinutes}, "MAX", "DELTA")
	want := []calc.Series{
		{Times: []core.Time{1620036000000, 1620036300000}, Values: []float64{10, 9}},
		{Times: []core.Time{1620036000000, 1620036300000}, Values: []float64{4, 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aligned start (-want +got):\n%s", diff)
	}
	got = aggregate(t, calc.Aggregation{Range: between(t, "10:01:00", "10:10:00"), Period: fiveMinutes}, "MAX", "DELTA")
	want = []calc.Series{{Times: []core.Time{1620036300000}, Values: []float64{9}}, {Times: []core.Time{1620036300000}, Values: []float64{6}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("misaligned start (-want +got):\n%s", diff)
	}
}

func TestFill(t *testing.T) {
	none := math.NaN() // no value at this minute
	tests := []struct {
		name string
		fill calc.Fill
		from string
		want []float64 // from 10:00 or earlier on, minute by minute
	}{
		{"constant", calc.Fill{Mode: calc.FillValue, Extend: true}, "10:00:00", []float64{4, 10, 0, 6, 8, 0, 3, 9}},
		{"linear", calc.Fill{Mode: calc.FillLinear}, "10:00:00", []float64{4, 10, 8, 6, 8, 5.5, 3, 9}},
		{"previous", calc.Fill{Mode: calc.FillPrevious}, "10:00:00", []float64{4, 10, 10, 6, 8, 8, 3, 9}},
		{"next", calc.Fill{Mode: calc.FillNext}, "10:00:00", []float64{4, 10, 6, 6, 8, 3, 3, 9}},
		{"none", calc.Fill{}, "10:00:00", []float64{4, 10, none, 6, 8, none, 3, 9}},
		{"no extension", calc.Fill{Mode: calc.FillPrevious}, "09:58:00", []float64{none, none, 4, 10, 10, 6, 8, 8, 3, 9}},
		{"edges only", calc.Fill{Extend: true}, "09:58:00", []float64{4, 4, 4, 10, none, 6, 8, none, 3, 9, 9}},
		{"edges and line", calc.Fill{Mode: calc.FillLinear, Extend: true}, "09:59:00", []float64{4, 4, 10, 8, 6, 8, 5.5, 3, 9, 9}},
		{"constant edges", calc.Fill{Mode: calc.FillValue, Value: -1, Extend: true}, "09:59:00", []float64{-1, 4, 10, -1, 6, 8, -1, 3, 9, -1}},
	}
	for _, tt := range tests {
		r := between(t, tt.from, "10:08:00")
		r.End = r.Start + core.Time(len(tt.want))*60_000
		got := aggregate(t, calc.Aggregation{Range: r, Period: calc.Period{Count: 1, Unit: dates.Minute}, Fill: tt.fill}, "SUM")[0]
		var want calc.Series
		for i, v := range tt.want {
			if !math.IsNaN(v) {
				want.Times, want.Values = append(want.Times, r.Start+core.Time(i)*60_000), append(want.Values, v)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	r := core.Range{Start: 0, End: core.MaxTime}
	times, values := pump(t)
	a := calc.Aggregation{Range: r, Period: calc.Period{Count: 1, Unit: dates.Millisecond}, Functions: []calc.Function{function(t, "SUM")}, Fill: calc.Fill{Mode: calc.FillValue, Extend: true}}
	if _, err := calc.Aggregate(a, times, values); err == nil {
		t.Error("filled four trillion periods")
	}
	a.Fill.Extend = false // inside the samples the gaps are few enough, and the four trillion before them cost nothing
	a.Period.Count = 1000
	if got, err := calc.Aggregate(a, times, values); err != nil || len(got[0].Times) != 391 {
		t.Errorf("seconds between the samples: %d periods, %v, want 391", len(got[0].Times), err)
	}
}

func TestNaNAndEmptyPeriods(t *testing.T) {
	nan := math.NaN()
	times := []core.Time{0, 1000, 60_000, 180_000, 240_000, 241_000}
	values := []float64{nan, 5, nan, 7, nan, 9}
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 600_000}, Period: calc.Period{Count: 1, Unit: dates.Minute},
		Functions: []calc.Function{function(t, "COUNT"), function(t, "DELTA"), function(t, "COUNTER"), function(t, "STANDARD_DEVIATION")}}
	got, err := calc.Aggregate(a, times, values)
	if err != nil {
		t.Fatal(err)
	}
	starts := []core.Time{0, 180_000, 240_000}
	want := []calc.Series{
		{Times: starts, Values: []float64{1, 1, 1}},
		{Times: starts, Values: []float64{nan, nan, 2}}, // 180 s: the period before is empty
		{Times: starts, Values: []float64{nan, nan, 2}},
		{Times: starts, Values: []float64{0, 0, 0}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("query rules (-want +got):\n%s", diff)
	}
}

func TestWholeRangeAndAlignment(t *testing.T) {
	got := aggregate(t, calc.Aggregation{Range: between(t, "10:01:00", "10:07:00")}, "SUM", "DETAIL")
	want := []calc.Series{{Times: []core.Time{at(t, "2021-05-03T10:01:00Z")}, Values: []float64{27}}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("no period (-want +got):\n%s", diff)
	}
	first := calc.Period{Count: 5, Unit: dates.Minute, Align: calc.FirstValueTime}
	got = aggregate(t, calc.Aggregation{Range: between(t, "10:01:00", "10:10:00"), Period: first}, "SUM")
	want = []calc.Series{{Times: []core.Time{at(t, "2021-05-03T10:01:30Z"), at(t, "2021-05-03T10:06:30Z")}, Values: []float64{27, 9}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first value (-want +got):\n%s", diff)
	}
}

func TestThresholdSides(t *testing.T) {
	// 0 -> 10 over 100 s: below 2 until 20 s, above 8 from 80 s on; held to the period end at 120 s.
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 120_000}, Threshold: &calc.Threshold{Min: 2, Max: 8},
		Functions: []calc.Function{function(t, "THRESHOLD_COUNT"), function(t, "THRESHOLD_DURATION"), function(t, "THRESHOLD_PERCENT")}}
	times, values := []core.Time{0, 100_000}, []float64{0, 10}
	got, err := calc.Aggregate(a, times, values)
	if err != nil || got[0].Values[0] != 2 || got[1].Values[0] != 60_000 || got[2].Values[0] != 50 {
		t.Errorf("both sides: %v, %v", got, err)
	}
	// Only the second minute of the day counts: 60 s to 120 s, of which 40 s are above.
	a.Working = &calc.MinutesOfDay{Start: 1, End: 2}
	got, err = calc.Aggregate(a, times, values)
	if err != nil || got[0].Values[0] != 1 || got[1].Values[0] != 40_000 || math.Abs(got[2].Values[0]-100./3) > 1e-12 {
		t.Errorf("working minutes: %v, %v", got, err)
	}
	a.Working = &calc.MinutesOfDay{Start: 10, End: 20}
	if got, err = calc.Aggregate(a, times, values); err != nil || len(got[0].Times) != 0 {
		t.Errorf("outside working minutes: %v, %v", got, err)
	}
}

// A line from or to infinity is beyond every limit but at its other end; the last value holds up to 120 s.
func TestThresholdsOfInfinity(t *testing.T) {
	inf := math.Inf(1)
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 120_000}, Threshold: &calc.Threshold{Min: -inf, Max: 8}, Functions: []calc.Function{function(t, "THRESHOLD_DURATION")}}
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{0, inf}, 120_000}, {[]float64{inf, 0}, 100_000}, {[]float64{-inf, 10}, 20_000}} {
		got, err := calc.Aggregate(a, []core.Time{0, 100_000}, tt.values)
		if err != nil || got[0].Values[0] != tt.want {
			t.Errorf("%v: %v, %v, want %v", tt.values, got, err, tt.want)
		}
	}
}

// 1970-01-01 is a Thursday. A value above the limit for eight days, of which Saturday and Sunday do not count: two stretches of six days.
func TestWorkdays(t *testing.T) {
	const day = 24 * 60 * 60 * 1000
	a := calc.Aggregation{Range: core.Range{Start: 0, End: 8 * day}, Threshold: &calc.Threshold{Min: math.Inf(-1), Max: 8},
		Functions: []calc.Function{function(t, "THRESHOLD_COUNT"), function(t, "THRESHOLD_DURATION"), function(t, "THRESHOLD_PERCENT")},
		Workday: func(year int, month time.Month, day int) bool {
			weekday := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()
			return weekday != time.Saturday && weekday != time.Sunday
		}}
	times, values := []core.Time{0, 7 * day}, []float64{10, 10}
	got, err := calc.Aggregate(a, times, values)
	if err != nil || got[0].Values[0] != 2 || got[1].Values[0] != 6*day || got[2].Values[0] != 0 {
		t.Errorf("a week: %v, %v", got, err)
	}
	// With an hour of each day nothing joins: six violations of an hour.
	a.Working = &calc.MinutesOfDay{Start: 60, End: 120}
	if got, err = calc.Aggregate(a, times, values); err != nil || got[0].Values[0] != 6 || got[1].Values[0] != 6*60*60*1000 {
		t.Errorf("an hour a day: %v, %v", got, err)
	}
	// Minutes up to midnight join those of the next day that starts there.
	a.Working = &calc.MinutesOfDay{Start: 0, End: 24 * 60}
	if got, err = calc.Aggregate(a, times, values); err != nil || got[0].Values[0] != 2 {
		t.Errorf("the whole day: %v, %v", got, err)
	}
	a.Workday = func(int, time.Month, int) bool { return false }
	if got, err = calc.Aggregate(a, times, values); err != nil || len(got[0].Times) != 0 {
		t.Errorf("never: %v, %v", got, err)
	}
}

// Samples in pieces, and summaries of pieces, give what all samples at once give, to the last bit. A sum takes only the summary of what comes first in its
// period: of 10 whole pieces in an hour the first one.
func TestPiecesAndSummaries(t *testing.T) {
	times, values := make([]core.Time, 5000), make([]float64, 5000)
	for i := range times {
		times[i], values[i] = core.Time(i)*7001, 1000*math.Sin(float64(i))
	}
	for names, least := range map[string]int{"SUM": 1, "MIN_VALUE_TIME DELTA LAST": 50, "MAX COUNT": 50, "MIN FIRST MAX_VALUE_TIME": 50} {
		a := calc.Aggregation{Range: core.Range{Start: 100_000, End: 30_000_000}, Period: calc.Period{Count: 1, Unit: dates.Hour}}
		for name := range strings.FieldsSeq(names) {
			a.Functions = append(a.Functions, function(t, name))
		}
		want, err := calc.Aggregate(a, times, values)
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := calc.NewAggregator(a)
		if err != nil {
			t.Fatal(err)
		}
		taken := 0
		for i := 0; i < len(times); i += 50 {
			var s calc.Summary
			for j := i; j < i+50; j++ {
				s.Add(times[j], values[j])
			}
			ok, err := pieces.AddSummary(s)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				taken++
			} else if err := pieces.Add(times[i:i+50], values[i:i+50]); err != nil {
				t.Fatal(err)
			}
		}
		got, err := pieces.Finish()
		if err != nil || taken < least {
			t.Fatalf("%s: %d summaries taken, %v", names, taken, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-whole +pieces):\n%s", names, diff)
		}
	}
}

// TestRunsEqualSamples compares runs of samples, cut anywhere, with the same samples one at a time: to the last bit, with NaN, infinities and zeros of both
// signs among them, for functions alone and together.
func TestRunsEqualSamples(t *testing.T) {
	names := []string{"SUM", "AVG", "COUNT", "MIN", "MAX", "FIRST", "LAST", "MIN_VALUE_TIME", "MAX_VALUE_TIME"}
	of := map[string]func(s calc.Summary) float64{
		"SUM": func(s calc.Summary) float64 { return s.Sum }, "AVG": func(s calc.Summary) float64 { return s.Sum / float64(s.Count) },
		"COUNT": func(s calc.Summary) float64 { return float64(s.Count) }, "MIN": func(s calc.Summary) float64 { return s.Min },
		"MAX": func(s calc.Summary) float64 { return s.Max }, "FIRST": func(s calc.Summary) float64 { return s.First },
		"LAST": func(s calc.Summary) float64 { return s.Last }, "MIN_VALUE_TIME": func(s calc.Summary) float64 { return float64(s.MinTime) },
		"MAX_VALUE_TIME": func(s calc.Summary) float64 { return float64(s.MaxTime) },
	}
	const length = 10_000 // of a period
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		var times []core.Time
		var values []float64
		pool := []float64{0, math.Copysign(0, -1), 1.1, -2.3, 1e17}
		if seed%3 == 0 {
			pool = append(pool, math.NaN(), math.Inf(1), math.Inf(-1))
		}
		for at, n := core.Time(0), r.IntN(200); n > 0; n-- {
			at += core.Time(1 + r.IntN(int(1+seed*37)))
			v := r.NormFloat64()
			if r.IntN(4) == 0 {
				v = pool[r.IntN(len(pool))]
			}
			times, values = append(times, at), append(values, v)
		}
		within := core.Range{Start: core.Time(r.IntN(2)) * length, End: core.Time(1+r.IntN(40)) * length}
		a := calc.Aggregation{Range: within, Period: calc.Period{Count: 10, Unit: dates.Second}}
		for _, i := range r.Perm(len(names))[:1+r.IntN(3)] {
			a.Functions = append(a.Functions, function(t, names[i]))
		}
		sums := map[core.Time]*calc.Summary{}
		var starts []core.Time
		for i, at := range times {
			if start := at / length * length; within.Contains(at) && !math.IsNaN(values[i]) {
				if sums[start] == nil {
					sums[start], starts = new(calc.Summary), append(starts, start)
				}
				sums[start].Add(at, values[i])
			}
		}
		g, err := calc.NewAggregator(a)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < len(times); {
			to := min(from+1+r.IntN(60), len(times))
			if err := g.Add(times[from:to], values[from:to]); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		got, err := g.Finish()
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range a.Functions {
			if !slices.Equal(got[i].Times, starts) {
				t.Fatalf("seed %d, %s: periods %v, want %v", seed, f, got[i].Times, starts)
			}
			for j, start := range starts {
				if want := of[f.String()](*sums[start]); math.Float64bits(got[i].Values[j]) != math.Float64bits(want) && !(want != want && got[i].Values[j] != got[i].Values[j]) {
					t.Errorf("seed %d, %s at %d: %v, want %v", seed, f, start, got[i].Values[j], want)
				}
			}
		}
	}
}

func TestParseFunction(t *testing.T) {
	for text, want := range map[string]float64{"percentile(99.5)": 99.5, "PERCENTILE_999": 99.9, "PERCENTILE_995": 99.5, "PERCENTILE_95": 95, "PERCENTILE_05": 0.5,
		"PERCENTILE_01": 0.1, "PERCENTILE_5": 5, "PERCENTILE_1": 1, "median": 50, " Percentile ( 0 ) ": 0, "PERCENTILE(100)": 100} {
		if f := function(t, text); f.Kind != calc.KindPercentile || f.P != want {
			t.Errorf("ParseFunction(%q) = %+v, want %v", text, f, want)
		}
	}
	if got := function(t, "Percentile_75").String(); got != "PERCENTILE_75" {
		t.Errorf("the spelling is not kept: %s", got)
	}
	if !function(t, "threshold_count").NeedsThreshold() || function(t, "detail").NeedsThreshold() {
		t.Error("wrong need of a threshold")
	}
	for _, text := range []string{"", "SUMM", "PERCENTILE", "PERCENTILE()", "PERCENTILE(101)", "PERCENTILE(-1)", "PERCENTILE(NaN)", "PERCENTILE_33", "PERCENTILE(5", "PERCENTILE 5)"} {
		if f, err := calc.ParseFunction(text); err == nil {
			t.Errorf("ParseFunction(%q) = %+v", text, f)
		}
	}
}

func TestAggregationValidate(t *testing.T) {
	r := core.Range{Start: 0, End: 1}
	for _, a := range []calc.Aggregation{
		{Range: r},
		{Range: r, Functions: []calc.Function{function(t, "THRESHOLD_COUNT")}},
		{Range: r, Functions: []calc.Function{function(t, "SUM")}, Period: calc.Period{Count: 0, Unit: dates.Day}},
	} {
		if a.Validate() == nil {
			t.Errorf("%+v is valid", a)
		}
	}
}

func BenchmarkAggregate(b *testing.B) {
	const n = 100_000
	times, values := make([]core.Time, n), make([]float64, n)
	level, r := 0.0, rand.New(rand.NewPCG(1, 2))
	for i := range times {
		level += r.NormFloat64()
		times[i], values[i] = core.Time(i)*10_000, level
	}
	for _, name := range []string{"SUM", "AVG", "MAX", "MIN_VALUE_TIME", "LAST", "PERCENTILE(95)"} {
		b.Run(name, func(b *testing.B) {
			a := calc.Aggregation{Range: core.AllTime, Period: calc.Period{Count: 1, Unit: dates.Hour}, Functions: []calc.Function{function(b, name)}}
			for b.Loop() {
				if _, err := calc.Aggregate(a, times, values); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
		})
	}
}

func TestFillModeNames(t *testing.T) {
	for _, name := range []string{"NONE", "PREVIOUS", "NEXT", "LINEAR", "VALUE"} {
		if mode, err := calc.ParseFillMode(name); err != nil || mode.String() != name {
			t.Errorf("ParseFillMode(%q) = %v, %v", name, mode, err)
		}
	}
	if mode, err := calc.ParseFillMode("linear"); err != nil || mode != calc.FillLinear {
		t.Errorf("ParseFillMode ignores no case: %v, %v", mode, err)
	}
	if _, err := calc.ParseFillMode(""); err == nil {
		t.Error("the empty fill mode is accepted")
	}
}

func TestLeastAndGreatest(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	negativeNaN := math.Float64frombits(1<<63 | math.Float64bits(nan))
	kinds := [][]float64{{0, 1, 2.5, 1e300, inf}, {-1, -2.5, -1e300, -inf}, {zero, 0}, {nan, 1, 2}, {negativeNaN, 3, 4}, {-7, nan, 8}, {0, 3, -2, 5e-324}}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		kind := kinds[r.IntN(len(kinds))]
		values := make([]float64, 1+r.IntN(11))
		low, high := inf, -inf // min and max are NaN if one is, and tell -0 from 0
		for i := range values {
			values[i] = kind[r.IntN(len(kind))]
			low, high = min(low, values[i]), max(high, values[i])
		}
		same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }
		if got := calc.Least(values); !same(got, low) {
			t.Fatalf("the least of %v is %v, not %v", values, got, low)
		}
		if got := calc.Greatest(values); !same(got, high) {
			t.Fatalf("the greatest of %v is %v, not %v", values, got, high)
		}
	}
}
