package exec

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// detailed joins two scans over 10:00 to 10:10 with INTERPOLATE(DETAIL, ...).
func detailed(t *testing.T, fill string, outer bool, ops ...plan.Operator) *plan.Project {
	j := joinOf(outer, ops...)
	j.Detail = readInterpolate(t, "detail, "+fill)
	columns := []int{0, len(ops)*furtherColumn + joinedEntity}
	for i := range ops {
		columns = append(columns, inputColumn(i, valueColumn))
	}
	columns[0] = len(ops)*furtherColumn + joinedTime
	return pick(j, columns...)
}

func tenMinutes(s *plan.Scan) *plan.Scan { return within(s, at("10:00"), at("10:10")+1) }

// clocks replaces the times of the first column by the minutes after ten.
func clocks(rows []string) []string {
	out := slices.Clone(rows)
	for i, row := range out {
		when, rest, _ := strings.Cut(row, " ")
		for m := range 60 {
			if when == number(float64(at("10:00"))+float64(m)*60_000) {
				out[i] = "10:" + number(float64(m/10)) + number(float64(m%10)) + " " + rest
			}
		}
	}
	return out
}

func TestDetail(t *testing.T) {
	s := example(t)
	pump := func(metric string) *plan.Scan { return tenMinutes(of("pump-1", scanOf(metric))) }
	run := func(op plan.Operator) []string { return clocks(run1(t, s, op)) }

	// [A87]
	want(t, run(detailed(t, "linear, outer", true, pump("flow"), pump("temp"))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22", "10:10 pump-1 10 23")
	// INNER looks inside only: flow has nothing after 10:05 there.
	want(t, run(detailed(t, "linear, inner", true, pump("flow"), pump("temp"))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22", "10:10 pump-1 - 23")
	want(t, run(detailed(t, "linear, inner", false, pump("flow"), pump("temp"))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22")
	// PREVIOUS goes on for one of the other table's times.
	want(t, run(detailed(t, "previous, inner", true, pump("flow"), pump("temp"))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.5", "10:05 pump-1 20 22", "10:10 pump-1 20 23")
	// What cannot be computed is filled.
	want(t, run(detailed(t, "linear, inner, value -1", true, pump("flow"), pump("temp"))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22", "10:10 pump-1 -1 23")
	want(t, run(detailed(t, "linear, inner, true", true, pump("flow"), pump("temp"))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22", "10:10 pump-1 20 23")

	// A key that only one table has stays one-sided, or shows the constant.
	level := func() *plan.Scan { return tenMinutes(scanOf("level")) }
	want(t, run(detailed(t, "linear, inner", true, level(), tenMinutes(of("pump-2", scanOf("temp"))))), "10:00 pump-1 55 -", "10:00 pump-1 100 -", "10:00 pump-2 - 30",
		"10:05 pump-1 65 -", "10:05 pump-1 90 -", "10:05 valve-9 7 -")
	want(t, run(detailed(t, "linear, inner, value 0", true, level(), tenMinutes(of("pump-2", scanOf("temp"))))), "10:00 pump-1 55 0", "10:00 pump-1 100 0", "10:00 pump-2 0 30",
		"10:05 pump-1 65 0", "10:05 pump-1 90 0", "10:05 valve-9 7 0")

	// Rows come by time, then entity; three tables.
	all := func(metric string) *plan.Scan { return tenMinutes(scanOf(metric)) }
	want(t, run(detailed(t, "linear, outer", true, all("flow"), all("temp"), all("odo"))),
		"10:00 pump-1 10 21.5 5", "10:00 pump-2 3 30 -", "10:02 pump-1 14 21.7 7", "10:04 pump-1 18 21.9 9", "10:05 pump-1 20 22 5.5", "10:05 pump-2 NaN - -",
		"10:06 pump-1 18 22.2 2", "10:09 pump-1 12 22.8 6", "10:09 pump-2 7.5 - -", "10:10 pump-1 10 23 -")
}

// With USING ENTITY every series of the other table counts.
func TestDetailUsingEntity(t *testing.T) {
	j := usingEntity(joinOf(true, tenMinutes(of("pump-1", scanOf("level"))), tenMinutes(of("pump-1", scanOf("temp")))))
	j.Detail = readInterpolate(t, "detail, linear, inner")
	got := clocks(run1(t, example(t), pick(j, coalescedOfTwo+joinedTime, inputColumn(0, plan.ScanTags), inputColumn(0, valueColumn), inputColumn(1, valueColumn))))
	want(t, got, "10:00 side=left;tank=B 55 21.5", "10:00 tank=A 100 21.5", "10:05 side=left;tank=B 65 22", "10:05 tank=A 90 22", "10:10 - - 23")
}

// Conditions on the rows of a table see those that were made: then the other side stands alone.
func TestDetailFilter(t *testing.T) {
	temp := tenMinutes(of("pump-1", scanOf("temp")))
	temp.Filter = valueAbove{valueColumn, 21.6}
	want(t, clocks(run1(t, example(t), detailed(t, "linear, outer", true, tenMinutes(of("pump-1", scanOf("flow"))), temp))),
		"10:00 pump-1 10 -", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22", "10:10 pump-1 10 23")
}

// A made row has the series columns of its series, its own time, and the text that goes on.
func TestDetailColumns(t *testing.T) {
	flow, state := tenMinutes(of("pump-1", scanOf("flow"))), tenMinutes(of("pump-1", scanOf("state")))
	n := more(state, plan.SourceInterval, "", column.Bigint)
	j := joinOf(true, flow, state)
	j.Detail = readInterpolate(t, "detail, linear, inner")
	got := run1(t, example(t), pick(j, inputColumn(0, valueColumn), inputColumn(1, plan.ScanTime), inputColumn(1, plan.ScanMetric), inputColumn(1, textColumn), furtherColumn+n))
	want(t, got, "10 - - - -", "12 @10:01 state idle 1", "14 @10:02 state idle 1", "18 @10:04 state run 1", "20 @10:05 state run 1", "- @10:10 state idle 1")
}

func TestDetailSeveralIntervals(t *testing.T) {
	two := func(metric string) *plan.Scan {
		return within(of("pump-1", scanOf(metric)), at("10:00"), at("10:03"), at("10:05"), at("10:10")+1)
	}
	want(t, clocks(run1(t, example(t), detailed(t, "linear, inner", true, two("flow"), two("temp")))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 -", "10:05 pump-1 20 22", "10:10 pump-1 - 23")
	want(t, clocks(run1(t, example(t), detailed(t, "linear, outer", true, two("flow"), two("temp")))), "10:00 pump-1 10 21.5", "10:02 pump-1 14 21.7", "10:05 pump-1 20 22", "10:10 pump-1 10 23")
}

// INTERPOLATE(DETAIL) of one table changes nothing.
func TestDetailAlone(t *testing.T) {
	s := tenMinutes(of("pump-2", scanOf("flow")))
	s.Fill = readInterpolate(t, "detail, linear, outer, value 0")
	want(t, run1(t, example(t), pick(s, plan.ScanTime, valueColumn)), "@10:00 3", "@10:05 NaN", "@10:09 7.5")
}

func TestInterpolateScanInPlan(t *testing.T) {
	// [A80]: conditions see the rows of the grid.
	flow := within(of("pump-1", scanOf("flow")), at("10:00"), at("10:12"))
	flow.Fill = readInterpolate(t, "5 minute")
	flow.Filter = function{column.Boolean, func(row func(int) column.Value) column.Value { return column.BoolValue(row(valueColumn).Float < 15) }}
	want(t, run1(t, example(t), pick(flow, plan.ScanTime, valueColumn)), "@10:00 10", "@10:10 10")
	// Series of an entity stay merged by time.
	level := within(of("pump-1", scanOf("level")), at("10:00"), at("10:05")+1)
	level.Fill = readInterpolate(t, "5 minute, linear, full")
	want(t, run1(t, example(t), pick(level, plan.ScanTime, plan.ScanTags, valueColumn)), "@10:00 side=left;tank=B 55", "@10:00 tank=A 100", "@10:05 side=left;tank=B 65", "@10:05 tank=A 90")
	// AUTO takes PREVIOUS of the metric.
	state := within(of("pump-1", scanOf("state")), at("10:02"), at("10:11")+1)
	state.Fill = readInterpolate(t, "3 minute, auto, outer, true")
	want(t, run1(t, example(t), pick(state, plan.ScanTime, textColumn)), "@10:03 idle", "@10:06 run", "@10:09 run")
	// A join of regular series.
	a, b := within(of("pump-1", scanOf("flow")), at("10:00"), at("10:12")), within(of("pump-1", scanOf("temp")), at("10:00"), at("10:12"))
	a.Fill, b.Fill = readInterpolate(t, "5 minute"), readInterpolate(t, "5 minute")
	want(t, run1(t, example(t), pick(joinOf(false, a, b), 0, inputColumn(0, valueColumn), inputColumn(1, valueColumn))), "@10:00 10 21.5", "@10:05 20 22", "@10:10 10 23")
}

func TestInterpolateView(t *testing.T) {
	s := example(t)
	inner := pick(scanOf("flow"), plan.ScanTime, plan.ScanEntity, valueColumn, textColumn)
	view := &plan.View{Query: &plan.Query{Root: inner, Env: environment(s), Columns: []plan.Column{{Type: column.Timestamp, Property: "atsd:datetime"}, {Type: column.String},
		{Type: column.Double}, {Type: column.String}}}, Time: 0, Entity: 1, Value: 2, Text: 3, Metric: -1, Tags: -1}
	view.Intervals = []plan.Interval{readInterval(t, "[10:00 10:12)")}
	view.Fill = &plan.Interpolate{Step: readInterpolate(t, "5 minute").Step, Boundary: boundaryInner, Function: "linear"}
	want(t, run1(t, s, view), "@10:00 pump-1 10 -", "@10:05 pump-1 20 -", "@10:10 pump-1 10 -", "@10:00 pump-2 3 -", "@10:05 pump-2 5.5 sensor fault")
	view.Fill.Boundary, view.Fill.Fill = boundaryOuter, ast.FillExtend
	view.Intervals = []plan.Interval{readInterval(t, "[10:05 10:10]")}
	want(t, run1(t, s, view), "@10:05 pump-1 20 -", "@10:10 pump-1 10 -", "@10:05 pump-2 5.5 sensor fault", "@10:10 pump-2 7.5 -")
	view.Filter = valueAbove{2, 8}
	want(t, run1(t, s, view), "@10:05 pump-1 20 -", "@10:10 pump-1 10 -")
}
