package calc_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

// The table of section 7 of the series contract: samples 10:10=4, 10:40=10, 10:55=7; outside the range 09:50=2 and 12:05=0.
func TestRegularTable(t *testing.T) {
	const minute = 60_000
	base := at(t, "2021-05-03 10:00")
	allTimes := []core.Time{base - 10*minute, base + 10*minute, base + 40*minute, base + 50*minute, base + 55*minute, base + 125*minute}
	allValues := []float64{2, 4, 10, math.NaN(), 7, 0}
	nan, gap := math.NaN(), math.Inf(1) // gap: no value at all
	tests := []struct {
		name  string
		mode  calc.FillMode
		outer bool
		edge  calc.Edge
		want  []float64
	}{
		{"LINEAR INNER", calc.FillLinear, false, calc.EdgeNone, []float64{gap, 5, 8, 9, gap, gap, gap}},
		{"LINEAR OUTER", calc.FillLinear, true, calc.EdgeNone, []float64{3, 5, 8, 9, 6.5, 5, 3.5}},
		{"PREVIOUS INNER", calc.FillPrevious, false, calc.EdgeNone, []float64{gap, 4, 4, 10, 7, gap, gap}},
		{"PREVIOUS OUTER", calc.FillPrevious, true, calc.EdgeNone, []float64{2, 4, 4, 10, 7, 7, 7}},
		{"LINEAR INNER fill true", calc.FillLinear, false, calc.EdgeNearest, []float64{4, 5, 8, 9, 7, 7, 7}},
		{"PREVIOUS INNER fill NaN", calc.FillPrevious, false, calc.EdgeValue, []float64{nan, 4, 4, 10, 7, nan, nan}},
	}
	for _, tt := range tests {
		times, values := allTimes[1:5], allValues[1:5]
		if tt.outer {
			times, values = allTimes, allValues
		}
		r := calc.Regular{Range: core.Range{Start: base, End: base + 105*minute}, Period: calc.Period{Count: 15, Unit: dates.Minute}, Mode: tt.mode, Edge: tt.edge, Value: nan}
		got, err := r.Apply(times, values)
		if err != nil {
			t.Fatal(err)
		}
		var want calc.Series
		for i, v := range tt.want {
			if !math.IsInf(v, 1) {
				want.Times, want.Values = append(want.Times, base+core.Time(i)*15*minute), append(want.Values, v)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-15, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestRegularKeepsSamplesAndLimits(t *testing.T) {
	r := calc.Regular{Range: core.Range{Start: 0, End: 3000}, Period: calc.Period{Count: 1, Unit: dates.Second}, Mode: calc.FillLinear}
	got, err := r.Apply([]core.Time{0, 1000}, []float64{1, 5})
	if diff := cmp.Diff(calc.Series{Times: []core.Time{0, 1000}, Values: []float64{1, 5}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := r.Apply(nil, nil); err != nil || len(got.Times) != 0 {
		t.Errorf("no samples: %v, %v", got, err)
	}
	r.Range.End, r.Period.Unit = core.MaxTime, dates.Millisecond
	if _, err := r.Apply([]core.Time{0}, []float64{1}); err == nil {
		t.Error("four trillion values")
	}
	r.Mode = calc.FillNext
	if _, err := r.Apply([]core.Time{0}, []float64{1}); err == nil {
		t.Error("NEXT is accepted")
	}
}

// The counter of section 10 of the series contract: 00:00=100, 00:10=160, 00:20=20, 00:40=60, here with a NaN at 00:30.
func TestRate(t *testing.T) {
	times := []core.Time{0, 10_000, 20_000, 30_000, 40_000}
	values := []float64{100, 160, 20, math.NaN(), 60}
	tests := []struct {
		name string
		rate calc.Rate
		want calc.Series
	}{
		{"per second", calc.Rate{PerMillis: 1000}, calc.Series{Times: []core.Time{10_000, 40_000}, Values: []float64{6, 2}}},
		{"signed", calc.Rate{PerMillis: 1000, Signed: true}, calc.Series{Times: []core.Time{10_000, 20_000, 40_000}, Values: []float64{6, -14, 2}}},
		{"difference", calc.Rate{}, calc.Series{Times: []core.Time{10_000, 40_000}, Values: []float64{60, 40}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.rate.Apply(times, values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := (calc.Rate{}).Apply([]core.Time{1, 2}, []float64{7, 7}); len(got.Values) != 1 || got.Values[0] != 0 {
		t.Errorf("equal values give %v, want 0", got)
	}
}
