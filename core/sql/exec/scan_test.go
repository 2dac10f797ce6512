package exec

import (
	"sync/atomic"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

func TestRow(t *testing.T) {
	one := &plan.Project{In: &plan.Row{}, Exprs: []expr.Node{function{column.Bigint, func(func(int) column.Value) column.Value { return column.IntValue(column.Bigint, 1) }}}}
	want(t, run1(t, example(t), one), "1")
}

func TestScanRows(t *testing.T) {
	s := example(t)
	want(t, run1(t, s, of("pump-2", scanOf("flow"))),
		"@10:00 flow pump-2 - 3 -",
		"@10:05 flow pump-2 - NaN sensor fault",
		"@10:09 flow pump-2 - 7.5 -")
}

// The series of one entity are merged by time, at equal times by the text of the tags.
func TestNaturalOrder(t *testing.T) {
	want(t, run1(t, example(t), pick(scanOf("level"), plan.ScanTime, plan.ScanEntity, plan.ScanTags, valueColumn)),
		"@10:00 pump-1 side=left;tank=B 55",
		"@10:00 pump-1 tank=A 100",
		"@10:05 pump-1 side=left;tank=B 65",
		"@10:05 pump-1 tank=A 90",
		"@10:05 valve-9 - 7")
}

func TestMetricsInOrder(t *testing.T) {
	want(t, run1(t, example(t), pick(of("pump-2", scanOf("temp", "flow")), plan.ScanMetric, valueColumn)), "temp 30", "flow 3", "flow NaN", "flow 7.5")
}

func TestIntervals(t *testing.T) {
	s := within(of("pump-1", scanOf("flow")), at("10:00"), at("10:03"), at("10:10"), at("10:12"))
	n := more(s, plan.SourceInterval, "", column.Bigint)
	want(t, run1(t, example(t), pick(s, plan.ScanTime, valueColumn, n)), "@10:00 10 1", "@10:02 14 1", "@10:11 8 2")
	s.Intervals = nil
	want(t, run1(t, example(t), s))
}

func TestSeriesColumns(t *testing.T) {
	s := within(scanOf("flow"), at("10:00"), at("10:01"))
	var columns []int
	for _, c := range []struct {
		kind plan.SourceKind
		name string
		of   column.Type
	}{
		{plan.SourceEntity, "", column.String}, {plan.SourceEntityField, "label", column.String}, {plan.SourceEntityField, "timeZone", column.String},
		{plan.SourceEntityField, "groups", column.String}, {plan.SourceEntityField, "enabled", column.Boolean}, {plan.SourceEntityTag, "site", column.String},
		{plan.SourceEntityTags, "", column.String}, {plan.SourceEntityTagsJSON, "", column.String}, {plan.SourceMetricField, "label", column.String},
		{plan.SourceMetricField, "units", column.String}, {plan.SourceMetricField, "dataType", column.String}, {plan.SourceMetricTags, "", column.String},
		{plan.SourceMetricField, "minValue", column.Double}, {plan.SourceMetricField, "retentionIntervalDays", column.Integer}, {plan.SourceLastTime, "", column.Timestamp},
		{plan.SourceEntityField, "lastInsertTime", column.Timestamp}, {plan.SourceMetricField, "lastInsertTime", column.Timestamp}, {plan.SourceTag, "tank", column.String},
	} {
		columns = append(columns, more(s, c.kind, c.name, c.of))
	}
	want(t, run1(t, example(t), pick(s, columns...)),
		`pump-1 Pump One America/New_York north;pumps true North site=North;type=centrifugal {"site":"North","type":"centrifugal"} Flow rate l/min DOUBLE group=hydraulics - 0 @10:11 @10:11 @10:11 -`,
		`pump-2 - - pumps true South site=South {"site":"South"} Flow rate l/min DOUBLE group=hydraulics - 0 @10:09 @10:09 @10:11 -`)
}

func TestTagsJSON(t *testing.T) {
	s := scanOf("level")
	n, tag := more(s, plan.SourceTagsJSON, "", column.String), more(s, plan.SourceTag, "side", column.String)
	s.Intervals = []plan.Interval{{Range: core.Range{Start: at("10:05"), End: at("10:06")}}}
	want(t, run1(t, example(t), pick(s, n, tag)), `{"side":"left","tank":"B"} left`, `{"tank":"A"} -`, "- -")
}

// The condition on series looks at nothing that changes from row to row.
func TestSeriesCondition(t *testing.T) {
	s := scanOf("level")
	s.Series = function{column.Boolean, func(row func(int) column.Value) column.Value {
		if row(plan.ScanTags).IsNull() {
			return column.NullValue
		}
		return column.BoolValue(row(plan.ScanTags).Text != "tank=A")
	}}
	want(t, run1(t, example(t), pick(s, plan.ScanTags, valueColumn)), "side=left;tank=B 55", "side=left;tank=B 65")
}

func TestFilterInScan(t *testing.T) {
	s := scanOf("level")
	s.Filter = valueAbove{valueColumn, 60}
	want(t, run1(t, example(t), pick(s, plan.ScanEntity, valueColumn)), "pump-1 100", "pump-1 65", "pump-1 90")
}

func TestScope(t *testing.T) {
	s := scanOf("flow")
	s.Scope = core.Scope{}
	want(t, run1(t, example(t), s))
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		skip, count int64
		rows        []string
	}{
		{0, 2, []string{"10", "14"}},
		{1, 2, []string{"14", "20"}},
		{3, -1, []string{"8", "3", "NaN", "7.5"}},
		{5, 100, []string{"NaN", "7.5"}},
		{100, 1, nil},
		{0, 0, nil},
	} {
		l := &plan.Limit{In: pick(scanOf("flow"), valueColumn), Skip: c.skip, Count: c.count}
		want(t, run1(t, example(t), l), c.rows...)
	}
}

func TestDistinct(t *testing.T) {
	want(t, run1(t, example(t), &plan.Distinct{In: pick(scanOf("level"), plan.ScanEntity), Width: 1}), "pump-1", "valve-9")
}

func TestFetched(t *testing.T) {
	var n atomic.Int64
	run1(t, example(t), scanOf("flow"), func(c *Config) { c.Fetched = &n })
	if n.Load() != 7 {
		t.Errorf("%d samples were read, want 7", n.Load())
	}
}
