package calc_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/dates"
)

var (
	tenSeconds    = calc.Period{Count: 10, Unit: dates.Second}
	twentySeconds = calc.Period{Count: 20, Unit: dates.Second}
)

// The members of section 9 of the series contract and its table.
func TestGroupTable(t *testing.T) {
	members := []calc.Series{
		{Times: []core.Time{0, 10_000, 30_000}, Values: []float64{5, 7, 9}},
		{Times: []core.Time{10_000, 20_000}, Values: []float64{20, 24}},
	}
	gap := math.NaN()
	for _, tt := range []struct {
		name string
		g    calc.Grouping
		want []float64
	}{
		{"plain", calc.Grouping{}, []float64{5, 27, 24, 9}},
		{"LINEAR", calc.Grouping{Fill: calc.Fill{Mode: calc.FillLinear}}, []float64{5, 27, 32, 9}},
		{"NONE + extend", calc.Grouping{Fill: calc.Fill{Extend: true}}, []float64{25, 27, 24, 33}},
		{"LINEAR + extend", calc.Grouping{Fill: calc.Fill{Mode: calc.FillLinear, Extend: true}}, []float64{25, 27, 32, 33}},
		{"truncate", calc.Grouping{Truncate: true}, []float64{gap, 27, 24, gap}},
		{"truncate after extend", calc.Grouping{Truncate: true, Fill: calc.Fill{Extend: true}}, []float64{25, 27, 24, 33}},
		{"period 20 SECOND", calc.Grouping{Period: twentySeconds}, []float64{32, gap, 33, gap}},
	} {
		tt.g.Range, tt.g.Functions = core.Range{End: 60_000}, []calc.Function{function(t, "SUM")}
		got, grid, err := calc.Group(t.Context(), tt.g, members)
		if err != nil {
			t.Fatal(err)
		}
		var want calc.Series
		for i, v := range tt.want {
			if !math.IsNaN(v) {
				want.Times, want.Values = append(want.Times, core.Time(i)*10_000), append(want.Values, v)
			}
		}
		if diff := cmp.Diff([]calc.Series{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if (grid != nil) != (tt.g.Period.Unit != nil) {
			t.Errorf("%s: grid %v", tt.name, grid)
		}
	}
}

// Random members against the definition, value by value.
func TestGroupEqualsDefinition(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		g := calc.Grouping{Range: core.Range{Start: 0, End: 100_000}, Functions: []calc.Function{function(t, "SUM"), function(t, "COUNT"), function(t, "MAX"), function(t, "LAST")}}
		if rnd.IntN(2) == 0 {
			g.Period = tenSeconds
		}
		if rnd.IntN(2) == 0 {
			g.Fill = calc.Fill{Mode: calc.FillMode(rnd.IntN(5)), Value: 3, Extend: rnd.IntN(2) == 0}
		}
		g.Truncate = rnd.IntN(4) == 0
		members := make([]calc.Series, 1+rnd.IntN(4))
		for i := range members {
			for at := core.Time(rnd.IntN(20_000)); at < 110_000; at += core.Time(1000 * (1 + rnd.IntN(40))) {
				v := float64(rnd.IntN(100))
				if rnd.IntN(8) == 0 {
					v = math.NaN()
				}
				members[i].Times, members[i].Values = append(members[i].Times, at/1000*1000), append(members[i].Values, v)
			}
		}
		got, _, err := calc.Group(t.Context(), g, members)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naiveGroup(g, members), got, cmpopts.EquateApprox(1e-12, 0), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d, %+v, members %v (-want +got):\n%s", seed, g, members, diff)
		}
	}
}

// cell is what one member has at a slot: samples in their order.
type cell []float64

// naiveGroup computes SUM, COUNT, MAX and LAST with tables: one row a member, one cell a slot.
func naiveGroup(g calc.Grouping, members []calc.Series) []calc.Series {
	slotOf := func(at core.Time) core.Time {
		if g.Period.Unit == nil {
			return at
		}
		return at / 10_000 * 10_000
	}
	type sample struct {
		at     core.Time
		member int
		v      float64
	}
	slots, rows := map[core.Time]bool{}, []map[core.Time]cell{}
	pool := map[core.Time][]sample{}
	for i, m := range members {
		row := map[core.Time]cell{}
		for j, at := range m.Times {
			if v := m.Values[j]; g.Range.Contains(at) && !math.IsNaN(v) {
				row[slotOf(at)] = append(row[slotOf(at)], v)
				slots[slotOf(at)] = true
				pool[slotOf(at)] = append(pool[slotOf(at)], sample{at, i, v})
			}
		}
		if len(row) > 0 {
			rows = append(rows, row)
		} else {
			rows = append(rows, nil)
		}
	}
	if g.Period.Unit != nil && len(slots) > 0 {
		for at := core.Time(0); at < 100_000; at += 10_000 {
			slots[at] = true
		}
	}
	from, to := core.Time(math.MinInt64), core.Time(math.MaxInt64)
	for i, row := range rows {
		if row == nil {
			continue
		}
		own := slices.Sorted(maps.Keys(row))
		if g.Truncate && !g.Fill.Extend {
			from, to = max(from, own[0]), min(to, own[len(own)-1])
		}
		for at := range slots {
			if row[at] != nil {
				continue
			}
			if v, ok := naiveFill(g.Fill, row, own, at); ok {
				pool[at] = append(pool[at], sample{at, i, v})
			}
		}
	}
	out := make([]calc.Series, 4)
	for _, at := range slices.Sorted(maps.Keys(pool)) {
		if at < from || at > to {
			continue
		}
		list := pool[at]
		slices.SortStableFunc(list, func(a, b sample) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.member - b.member
		})
		sum, most := 0.0, math.Inf(-1)
		for _, s := range list {
			sum, most = sum+s.v, math.Max(most, s.v)
		}
		for i, v := range []float64{sum, float64(len(list)), most, list[len(list)-1].v} {
			out[i].Times, out[i].Values = append(out[i].Times, at), append(out[i].Values, v)
		}
	}
	return out
}

func naiveFill(f calc.Fill, row map[core.Time]cell, own []core.Time, at core.Time) (float64, bool) {
	i, _ := slices.BinarySearch(own, at)
	inner := i > 0 && i < len(own)
	switch {
	case f.Mode == calc.FillValue:
		return f.Value, inner || f.Extend
	case i == 0:
		return row[own[0]][0], f.Extend
	case i == len(own):
		last := row[own[i-1]]
		return last[len(last)-1], f.Extend
	}
	before, after := row[own[i-1]], row[own[i]]
	a, b := before[len(before)-1], after[0]
	switch f.Mode {
	case calc.FillPrevious:
		return a, true
	case calc.FillNext:
		return b, true
	case calc.FillLinear:
		return a + (b-a)*float64(at-own[i-1])/float64(own[i]-own[i-1]), true
	}
	return 0, false
}

func TestGroupEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := calc.Grouping{Range: core.Range{End: 10}, Functions: []calc.Function{function(t, "SUM")}}
	if _, _, err := calc.Group(ctx, g, []calc.Series{{Times: []core.Time{1}, Values: []float64{1}}}); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

func TestGroupBounds(t *testing.T) {
	g := calc.Grouping{Range: core.Range{End: core.MaxTime}, Functions: []calc.Function{function(t, "SUM")}, Period: calc.Period{Count: 1, Unit: dates.Millisecond}, Fill: calc.Fill{Extend: true}}
	if _, _, err := calc.Group(t.Context(), g, []calc.Series{{Times: []core.Time{1}, Values: []float64{1}}}); err == nil {
		t.Error("four trillion periods")
	}
	g.Period.Count = -1
	if _, _, err := calc.Group(t.Context(), g, nil); err == nil {
		t.Error("a period of -1 ms")
	}
	g = calc.Grouping{Range: core.Range{End: 10}, Functions: g.Functions}
	for _, members := range [][]calc.Series{nil, {{}}, {{Times: []core.Time{1, 50}, Values: []float64{math.NaN(), 1}}}} {
		if got, grid, err := calc.Group(t.Context(), g, members); err != nil || grid != nil || len(got) != 1 || len(got[0].Times) > 0 {
			t.Errorf("%v: %v %v %v", members, got, grid, err)
		}
	}
}

// 0.1 + 0.2 is 0.3 when the values stand for decimal numbers.
func TestDecimalGroupSmoothRate(t *testing.T) {
	g := calc.Grouping{Range: core.Range{End: 10}, Functions: []calc.Function{function(t, "SUM")}, Decimal: true}
	got, _, err := calc.Group(t.Context(), g, []calc.Series{{Times: []core.Time{1}, Values: []float64{0.1}}, {Times: []core.Time{1}, Values: []float64{0.2}}})
	if err != nil || got[0].Values[0] != 0.3 {
		t.Errorf("group: %v, %v", got, err)
	}
	smooth, _, err := calc.Smooth{Kind: calc.SmoothSum, Decimal: true}.Apply(t.Context(), []core.Time{1, 2}, []float64{0.1, 0.2})
	if err != nil || smooth.Values[1] != 0.3 {
		t.Errorf("smooth: %v, %v", smooth, err)
	}
	if rate := (calc.Rate{Decimal: true}).Apply([]core.Time{1, 2}, []float64{0.1, 0.3}); rate.Values[0] != 0.2 {
		t.Errorf("rate: %v", rate)
	}
}

func TestGridAfterAndConsecutive(t *testing.T) {
	grid, err := calc.Period{Count: 1, Unit: dates.Month}.Grid(between(t, "00:00:00", "12:00:00"), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for at := range grid.After(core.Time(1620036000000)) { // 2021-05-03
		if got = append(got, dates.FormatISO(at)); len(got) == 3 {
			break
		}
	}
	if diff := cmp.Diff([]string{"2021-06-01T00:00:00.000Z", "2021-07-01T00:00:00.000Z", "2021-08-01T00:00:00.000Z"}, got); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	grid, _ = tenSeconds.Grid(core.Range{End: 60_000}, 0)
	for _, tt := range []struct {
		times []core.Time
		want  bool
	}{
		{nil, true}, {[]core.Time{10_000}, true}, {[]core.Time{10_000, 20_000, 30_000}, true}, {[]core.Time{50_000, 60_000, 70_000}, true},
		{[]core.Time{10_000, 30_000}, false}, {[]core.Time{10_001, 20_001}, false}, {[]core.Time{10_000, 20_000, 20_001}, false},
	} {
		if got := grid.Consecutive(tt.times); got != tt.want {
			t.Errorf("Consecutive(%v) = %v", tt.times, got)
		}
	}
	if last := fmt.Sprint(slices.Collect(func(yield func(core.Time) bool) {
		for at := range grid.After(core.Time(15_000)) {
			yield(at)
			return
		}
	})); last != "[20000]" {
		t.Errorf("after 15 s: %s", last)
	}
}

func BenchmarkGroup(b *testing.B) {
	members := make([]calc.Series, 100)
	for i := range members {
		for j := range 1000 {
			members[i].Times, members[i].Values = append(members[i].Times, core.Time(j*1000+i)), append(members[i].Values, float64(j))
		}
	}
	g := calc.Grouping{Range: core.Range{End: 2_000_000}, Functions: []calc.Function{function(b, "SUM")}, Period: tenSeconds}
	for b.Loop() {
		if _, _, err := calc.Group(b.Context(), g, members); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/sample")
}
