package exec

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

var value, when = expr.Input(valueColumn, column.Double), expr.Input(plan.ScanTime, column.Bigint)

// aggregate makes an aggregate function of value from its text: sum, percentile 75.
func aggregate(name string) plan.Aggregate {
	a := plan.Aggregate{Func: name, Args: []expr.Node{value}, Time: when, Type: column.Decimal}
	switch name {
	case "count(*)":
		a.Func, a.Args, a.Type = "count", nil, column.Bigint
	case "count", "min_value_time", "max_value_time":
		a.Type = column.Bigint
	case "delta", "counter", "wavg", "wtavg", "product":
		a.Type = column.Double
	case "stddev_pop":
		a.Func, a.Population = "stddev", true
	case "regr_slope", "correl", "covar", "regr_intercept":
		a.Args, a.Type = append(a.Args, when), column.Double
	}
	return a
}

// groupBy groups in by columns, with aggregates of value.
func groupBy(in plan.Operator, columns []int, functions ...string) *plan.Group {
	g := &plan.Group{In: in, PeriodKey: -1, TagsKey: -1, Whole: len(columns) == 0}
	for _, c := range columns {
		if c == plan.ScanTags {
			g.TagsKey = len(g.Keys)
		}
		of := column.String
		if c == plan.ScanTime {
			of, g.PeriodKey = column.Timestamp, len(g.Keys)
		}
		g.Keys = append(g.Keys, expr.Input(c, of))
	}
	for _, f := range functions {
		g.Aggregates = append(g.Aggregates, aggregate(f))
	}
	return g
}

// by sets the period of a group.
func by(g *plan.Group, count int64, unit dates.Unit, change ...func(*plan.Period)) *plan.Group {
	g.Period = &plan.Period{Step: dates.Interval{Count: count, Unit: unit}, Zone: plan.Zone{Location: time.UTC}, ZoneKey: -1, Interval: -1}
	if s, ok := g.In.(*plan.Scan); ok {
		g.Period.Intervals = s.Intervals
	}
	for _, f := range change {
		f(g.Period)
	}
	return g
}

// aligned, filledBy and extended are options of a period.
func aligned(a ast.Align) func(*plan.Period) { return func(p *plan.Period) { p.Align = a } }
func filledBy(f ast.Fill) func(*plan.Period) { return func(p *plan.Period) { p.Fill = f } }
func extended(p *plan.Period)                { p.Extend = true }

func valued(n float64) func(*plan.Period) {
	return func(p *plan.Period) { p.Fill, p.Number = ast.FillValue, n }
}

var periodOnly = []int{plan.ScanTime}

func TestGroupWhole(t *testing.T) {
	s := example(t)
	want(t, run1(t, s, groupBy(scanOf("flow"), nil, "count(*)", "count", "min", "max", "sum", "avg")), "7 6 3 20 62.5 10.416666666666666")
	pump := func() *plan.Scan { return of("pump-1", scanOf("flow")) }
	percentile := groupBy(pump(), nil, "percentile", "median", "percentile", "stddev", "stddev_pop", "median_abs_dev", "product", "first", "last", "delta", "counter")
	percentile.Aggregates[0].Percent = 75
	want(t, run1(t, s, percentile), "18.5 12 8 5.291502622129181 4.58257569495584 3 22400 10 8 -2 18")
	want(t, run1(t, s, groupBy(pump(), nil, "wavg", "wtavg")), "13 12.00369003690037")
	times := groupBy(scanOf("temp"), nil, "min", "max", "min_value_time", "max_value_time")
	for i, of := range []column.Type{column.Timestamp, column.Bigint} {
		times.Aggregates[i].Args, times.Aggregates[i].Type = []expr.Node{when}, of
	}
	want(t, run1(t, s, times), "@10:00 1709547000000 1709546400000 1709546400000")
	want(t, run1(t, s, groupBy(of("nobody", scanOf("flow")), nil, "count(*)", "sum")))
}

func TestSlope(t *testing.T) {
	s := example(t)
	rows := run1(t, s, groupBy(of("pump-1", scanOf("flow")), nil, "regr_slope", "correl"))
	// slope(v, minutes) = -0.2608695652173913
	var slope, r float64
	if n, err := fmt.Sscan(rows[0], &slope, &r); n != 2 || err != nil || math.Abs(slope*60000+0.2608695652173913) > 1e-12 || math.Abs(r) > 1 {
		t.Errorf("slope and correlation are %q", rows[0])
	}
}

func TestGroupByKeys(t *testing.T) {
	s := example(t)
	want(t, run1(t, s, groupBy(scanOf("flow"), []int{plan.ScanEntity}, "first", "last", "max_value_time")),
		"pump-1 10 8 1709546700000", "pump-2 3 7.5 1709546940000")
	// A whole set of tags is compared first; NULL comes first.
	want(t, run1(t, s, groupBy(scanOf("level"), []int{plan.ScanEntity, plan.ScanTags}, "count(*)")),
		"valve-9 - 1", "pump-1 side=left;tank=B 2", "pump-1 tank=A 2")
	want(t, run1(t, s, groupBy(scanOf("level"), []int{plan.ScanEntity})), "pump-1", "valve-9")
}

// Keys are ordered by type: NULL, false, true, numbers, NaN; texts by code point.
func TestOrderOfGroups(t *testing.T) {
	g := groupBy(scanOf("flow"), []int{valueColumn}, "count(*)")
	want(t, run1(t, example(t), g), "3 1", "7.5 1", "8 1", "10 1", "14 1", "20 1", "NaN 1")
	g = groupBy(scanOf("flow"), []int{textColumn}, "count(*)")
	want(t, run1(t, example(t), g), "- 6", "sensor fault 1")
	high := groupBy(scanOf("flow"), []int{valueColumn}, "count(*)")
	high.Keys[0] = function{column.Boolean, func(row func(int) column.Value) column.Value {
		if row(valueColumn).IsNaN() {
			return column.NullValue
		}
		return column.BoolValue(row(valueColumn).Float >= 10)
	}}
	want(t, run1(t, example(t), high), "- 1", "false 3", "true 3")
}

func TestCarried(t *testing.T) {
	g := groupBy(scanOf("level"), []int{plan.ScanEntity}, "sum")
	g.Carried = []expr.Node{expr.Input(plan.ScanTags, column.String), value}
	want(t, run1(t, example(t), g), "pump-1 310 side=left;tank=B 55", "valve-9 7 - 7")
}

func TestDistinctAggregates(t *testing.T) {
	g := groupBy(scanOf("level"), nil, "count", "sum", "avg")
	for i := range g.Aggregates {
		g.Aggregates[i].Distinct = true
	}
	g.Aggregates[0].Args = []expr.Node{expr.Input(plan.ScanEntity, column.String)}
	g.Aggregates[1].Args = []expr.Node{function{column.Double, func(row func(int) column.Value) column.Value {
		return column.FloatValue(column.Double, math.Trunc(row(valueColumn).Float/50)) // 2 1 1 1 0
	}}}
	g.Aggregates[2].Args = g.Aggregates[1].Args
	want(t, run1(t, example(t), g), "2 3 1")
}

// Sums, means and percentiles are exact in decimals.
func TestExactAggregates(t *testing.T) {
	var l loader
	for i, v := range []float64{1.1, 2.2, 3.3} {
		l.sample(key("m", "a"), core.Time(i+1), v)
	}
	for i, v := range []float64{0.7, 0.9, 1.6} {
		l.sample(key("n", "a"), core.Time(i+1), v)
	}
	for i, v := range []float64{0.1, 0.2} {
		l.sample(key("o", "a"), core.Time(i+1), v)
	}
	s := l.store(t)
	want(t, run1(t, s, groupBy(scanOf("m"), nil, "avg", "sum")), "2.2 6.6")
	g := groupBy(scanOf("n"), nil, "percentile")
	g.Aggregates[0].Percent = 40
	want(t, run1(t, s, g), "0.82")
	want(t, run1(t, s, groupBy(scanOf("o"), nil, "median", "sum")), "0.15 0.3")
}

// What has no usable input is NULL when it is a decimal or a bigint, NaN when it is a double.
func TestEmptyAggregates(t *testing.T) {
	g := groupBy(scanOf("state"), nil, "count(*)", "count", "sum", "avg", "min", "first", "percentile", "stddev", "max_value_time", "delta", "counter", "wavg", "correl")
	want(t, run1(t, example(t), g), "3 0 - - - - - - - NaN NaN NaN NaN")
}

// Texts are parsed; others are not usable.
func TestTextsInAggregates(t *testing.T) {
	g := groupBy(scanOf("flow"), nil, "sum", "count", "first")
	texts := function{column.String, func(row func(int) column.Value) column.Value {
		if row(valueColumn).IsNaN() {
			return column.TextValue("n/a")
		}
		return column.TextValue(column.FloatValue(column.Double, row(valueColumn).Float).Format())
	}}
	for i := range g.Aggregates {
		g.Aggregates[i].Args = []expr.Node{texts}
	}
	want(t, run1(t, example(t), g), "62.5 7 10")
}

func TestPeriod(t *testing.T) {
	s := example(t)
	flow := func() *plan.Scan { return of("pump-1", scanOf("flow")) }
	want(t, run1(t, s, by(groupBy(scanOf("odo"), periodOnly, "counter", "delta"), 5, dates.Minute)), "@10:00 4 4", "@10:05 6 -3")
	want(t, run1(t, s, by(groupBy(flow(), periodOnly, "avg"), 5, dates.Minute)), "@10:00 12", "@10:05 20", "@10:10 8")
	want(t, run1(t, s, by(groupBy(flow(), periodOnly, "avg"), 3, dates.Minute, filledBy(ast.FillLinear))), "@10:00 12", "@10:03 20", "@10:06 14", "@10:09 8")
	around := func() *plan.Scan { return within(flow(), at("09:57"), at("10:15")) }
	want(t, run1(t, s, by(groupBy(around(), periodOnly, "count"), 3, dates.Minute, valued(0), extended)),
		"@09:57 0", "@10:00 2", "@10:03 1", "@10:06 0", "@10:09 1", "@10:12 0")
	want(t, run1(t, s, by(groupBy(around(), periodOnly, "avg"), 3, dates.Minute, filledBy(ast.FillPrevious), extended)),
		"@09:57 12", "@10:00 12", "@10:03 20", "@10:06 20", "@10:09 8", "@10:12 8")
	want(t, run1(t, s, by(groupBy(around(), periodOnly, "avg"), 3, dates.Minute, extended)), "@09:57 12", "@10:00 12", "@10:03 20", "@10:09 8", "@10:12 8")
	want(t, run1(t, s, by(groupBy(flow(), periodOnly, "avg"), 3, dates.Minute, filledBy(ast.FillNext))), "@10:00 12", "@10:03 20", "@10:06 8", "@10:09 8")
	want(t, run1(t, s, by(groupBy(flow(), periodOnly, "avg"), 3, dates.Minute, valued(-1))), "@10:00 12", "@10:03 20", "@10:06 -1.0", "@10:09 8")
}

func TestPeriodAlignment(t *testing.T) {
	s := example(t)
	flow := func() *plan.Scan { return of("pump-1", scanOf("flow")) }
	want(t, run1(t, s, by(groupBy(within(flow(), at("10:01"), at("10:13")), periodOnly, "sum"), 4, dates.Minute, aligned(ast.AlignStart))), "@10:01 14", "@10:05 20", "@10:09 8")
	want(t, run1(t, s, by(groupBy(within(flow(), at("10:01"), at("10:11")+1), periodOnly, "sum"), 5, dates.Minute, aligned(ast.AlignEnd))), "@10:01 34", "@10:06 8")
	odo := scanOf("odo")
	odo.Intervals = []plan.Interval{{Range: core.Range{Start: at("10:03"), End: core.MaxTime + 1}, HasFrom: true}}
	want(t, run1(t, s, by(groupBy(odo, periodOnly, "sum"), 5, dates.Minute, aligned(ast.AlignFirst))), "@10:04 11", "@10:09 6")
	// Without a start in the query the periods begin at the first sample.
	want(t, run1(t, s, by(groupBy(scanOf("state"), periodOnly, "count(*)"), 4, dates.Minute, aligned(ast.AlignStart))), "@10:01 2", "@10:09 1")
}

func TestCalendarPeriods(t *testing.T) {
	s := example(t)
	want(t, run1(t, s, by(groupBy(scanOf("daily"), periodOnly, "sum"), 1, dates.Month)), "2024-01-01T00:00 3", "2024-02-01T00:00 7", "2024-03-01T00:00 5")
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	in := func(p *plan.Period) { p.Zone.Location = york }
	want(t, run1(t, s, by(groupBy(scanOf("daily"), periodOnly, "sum"), 1, dates.Month, in)), "2024-01-01T05:00 6", "2024-02-01T05:00 9")
}

// Examples of the contract for the first period of an interval.
func TestBaseTimes(t *testing.T) {
	for _, c := range []struct {
		count       int64
		unit        dates.Unit
		start, want string
	}{
		{45, dates.Minute, "2024-03-04T15:55:00Z", "2024-03-04T15:45:00Z"},
		{7, dates.Hour, "2024-03-04T16:00:00Z", "2024-03-04T14:00:00Z"},
		{10, dates.Hour, "2024-03-04T16:00:00Z", "2024-03-04T10:00:00Z"},
		{5, dates.Day, "2024-03-01T16:00:00Z", "2024-03-01T00:00:00Z"},
		{5, dates.Day, "2024-03-06T16:00:00Z", "2024-03-06T00:00:00Z"},
		{1, dates.Week, "2024-02-01T12:00:00Z", "2024-01-29T00:00:00Z"}, // a Thursday
		{2, dates.Week, "2024-02-01T12:00:00Z", "2024-01-29T00:00:00Z"},
		{1, dates.Quarter, "2024-06-01T00:00:00Z", "2024-04-01T00:00:00Z"},
		{1, dates.Year, "2024-06-01T00:00:00Z", "2024-01-01T00:00:00Z"},
	} {
		var l loader
		l.sample(key("m", "a"), iso(c.start), 1)
		g := by(groupBy(within(scanOf("m"), iso(c.start), core.MaxTime), periodOnly, "count(*)"), c.count, c.unit)
		g.Keys[0] = when
		g.In.(*plan.Scan).Columns[plan.ScanTime].Type = column.Bigint
		want(t, run1(t, l.store(t), g), cell(column.Constant(column.IntValue(column.Bigint, int64(iso(c.want))), 1), 0)+" 1")
	}
}

// Months are counted from the origin, so that the end of one does not shorten the next.
func TestMonthEnds(t *testing.T) {
	var l loader
	for _, day := range []string{"2023-01-31", "2023-02-28", "2023-03-30", "2023-03-31", "2023-04-30"} {
		l.sample(key("m", "a"), iso(day+"T00:00:00Z"), 1)
	}
	g := by(groupBy(within(scanOf("m"), iso("2023-01-31T00:00:00Z"), iso("2023-06-01T00:00:00Z")), periodOnly, "sum"), 1, dates.Month, aligned(ast.AlignStart))
	want(t, run1(t, l.store(t), g), "2023-01-31T00:00 1", "2023-02-28T00:00 2", "2023-03-31T00:00 1", "2023-04-30T00:00 1")
}

// Periods reach back before the row that was seen first, which need not be the earliest.
func TestEarlierRowsOfLaterSeries(t *testing.T) {
	var l loader
	l.sample(key("m", "a"), iso("2024-03-10T12:00:00Z"), 1)
	for i, day := range []string{"2024-01-03", "2024-03-09", "2024-03-10", "2024-05-01"} {
		l.sample(key("m", "b"), iso(day+"T06:00:00Z"), float64(i+2))
	}
	s := l.store(t)
	for _, change := range [][]func(*Config){nil, {split(1)}} {
		want(t, run1(t, s, by(groupBy(scanOf("m"), periodOnly, "sum"), 1, dates.Day), change...),
			"2024-01-03T00:00 2", "2024-03-09T00:00 3", "2024-03-10T00:00 5", "2024-05-01T00:00 5")
		want(t, run1(t, s, by(groupBy(scanOf("m"), periodOnly, "sum"), 1, dates.Month, filledBy(ast.FillPrevious)), change...),
			"2024-01-01T00:00 2", "2024-02-01T00:00 2", "2024-03-01T00:00 8", "2024-04-01T00:00 8", "2024-05-01T00:00 5")
		want(t, run1(t, s, by(groupBy(scanOf("m"), periodOnly, "sum"), 6, dates.Hour), change...),
			"2024-01-03T06:00 2", "2024-03-09T06:00 3", "2024-03-10T06:00 4", "2024-03-10T12:00 1", "2024-05-01T06:00 5")
		// The earliest row of all decides where periods begin that nothing else does.
		want(t, run1(t, s, by(groupBy(scanOf("m"), periodOnly, "count(*)"), 50, dates.Day, aligned(ast.AlignStart)), change...),
			"2024-01-03T06:00 1", "2024-02-22T06:00 3", "2024-04-12T06:00 1")
		// Of each group its own.
		want(t, run1(t, s, by(groupBy(scanOf("m"), []int{plan.ScanEntity, plan.ScanTime}, "count(*)"), 70, dates.Day, aligned(ast.AlignFirst)), change...),
			"a 2024-03-10T12:00 1", "b 2024-01-03T06:00 3", "b 2024-03-13T06:00 1")
	}
}

// The zone of the entity, where it has one, moves its days.
func TestZoneOfEntity(t *testing.T) {
	s := scanOf("temp")
	zone := more(s, plan.SourceEntityField, "timeZone", column.String)
	g := by(groupBy(s, []int{plan.ScanEntity, plan.ScanTime}, "count(*)"), 1, dates.Day, func(p *plan.Period) { p.Zone, p.ZoneKey = plan.Zone{Field: "entity"}, zone })
	want(t, run1(t, example(t), g), "pump-1 @05:00 3", "pump-2 @00:00 1")
}

// Periods between two intervals are not filled, and each interval has its own grid.
func TestPeriodsOfIntervals(t *testing.T) {
	s := within(of("pump-1", scanOf("flow")), at("10:00"), at("10:03"), at("10:10"), at("10:13"))
	n := more(s, plan.SourceInterval, "", column.Bigint)
	g := by(groupBy(s, periodOnly, "sum"), 1, dates.Minute, filledBy(ast.FillPrevious), func(p *plan.Period) { p.Interval = n })
	want(t, run1(t, example(t), g), "@10:00 10", "@10:01 10", "@10:02 14", "@10:11 8")
	g.Period.Interval = -1 // then the time of a row says in which it lies
	want(t, run1(t, example(t), g), "@10:00 10", "@10:01 10", "@10:02 14", "@10:11 8")
	g = by(groupBy(s, periodOnly, "sum"), 1, dates.Minute, valued(0), extended, func(p *plan.Period) { p.Interval = n })
	want(t, run1(t, example(t), g), "@10:00 10", "@10:01 0.0", "@10:02 14", "@10:10 0.0", "@10:11 8", "@10:12 0.0")
}

// Each group of the other keys is filled by itself; the order is that of all keys.
func TestFillOfGroups(t *testing.T) {
	g := by(groupBy(scanOf("flow"), []int{plan.ScanTime, plan.ScanEntity}, "avg"), 5, dates.Minute, filledBy(ast.FillPrevious))
	g.Carried = []expr.Node{expr.Input(plan.ScanEntity, column.String)}
	want(t, run1(t, example(t), g), "@10:00 pump-1 12 pump-1", "@10:00 pump-2 3 pump-2", "@10:05 pump-1 20 pump-1", "@10:05 pump-2 7.5 pump-2", "@10:10 pump-1 8 pump-1")
}

// The predecessor is the last value of the latest period that has one.
func TestDeltaOverEmptyPeriods(t *testing.T) {
	var l loader
	for i, v := range []float64{10, 20, math.NaN(), 3, 15} {
		l.sample(key("m", "a"), at("10:00")+core.Time(i*60_000), v)
	}
	s := l.store(t)
	want(t, run1(t, s, groupBy(scanOf("m"), nil, "counter", "delta")), "25 5")
	want(t, run1(t, s, by(groupBy(scanOf("m"), periodOnly, "counter", "delta"), 1, dates.Minute)),
		"@10:00 NaN NaN", "@10:01 10 10", "@10:02 NaN NaN", "@10:03 3 -17", "@10:04 12 12")
}

// Rows of several entities fall into one group, whose first and last are those by time.
func TestTimeOrderInGroups(t *testing.T) {
	var l loader
	for i, v := range []float64{1, 3, 5} {
		l.sample(key("m", "a"), core.Time(1000*(2*i+2)), v)
	}
	for i, v := range []float64{0, 2, 4, 6} {
		l.sample(key("m", "b"), core.Time(1000*(2*i+1)), v)
	}
	want(t, run1(t, l.store(t), groupBy(scanOf("m"), nil, "first", "last", "delta", "counter", "wavg")), "0 6 6 6 4")
}

func TestGroupOutOfMemory(t *testing.T) {
	var l loader
	for i := range 2000 {
		l.sample(key("m", "a"), core.Time(i+1), float64(i))
	}
	_, err := tryRun(t.Context(), l.store(t), groupBy(scanOf("m"), []int{valueColumn}, "sum"), func(c *Config) { c.Memory = NewMemory(50_000) })
	if core.CodeOf(err) != core.TooLarge || !strings.Contains(err.Error(), "sql.memory") {
		t.Errorf("error is %v, want one that names sql.memory", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tryRun(ctx, example(t), groupBy(scanOf("flow"), nil, "sum")); core.CodeOf(err) != core.Canceled {
		t.Errorf("error is %v, want that of the context", err)
	}
}
