package exec

import (
	"context"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

func tableOf(kind string, columns ...plan.Source) *plan.Table {
	return &plan.Table{Kind: kind, Scope: core.AllEntities, Columns: columns, Range: core.AllTime}
}

func recordField(name string, of column.Type) plan.Source {
	return plan.Source{Kind: plan.SourceRecord, Name: name, Type: of}
}

var (
	recordTime   = plan.Source{Kind: plan.SourceTime, Type: column.Timestamp}
	recordEntity = plan.Source{Kind: plan.SourceEntity, Type: column.String}
	recordTags   = plan.Source{Kind: plan.SourceTags, Type: column.String}
)

// events is the example with messages, properties and alerts.
func events(t *testing.T) *memstore.Store {
	t.Helper()
	s := example(t)
	b := &core.Batch{Origin: core.SystemOrigin(0),
		Messages: []core.Message{
			{Time: at("10:00"), Entity: "pump-1", Type: "log", Source: "app", Severity: core.Warning, Text: "started", Tags: core.Tags{{Name: "user", Value: "ann"}}, Flags: core.Stored},
			{Time: at("10:05"), Entity: "pump-2", Type: "audit", Source: "app", Severity: core.Normal, Text: "changed", Flags: core.Stored},
		},
		Properties: []core.Property{
			{PropertyKey: core.PropertyKey{Entity: "pump-1", Type: "disk", Key: core.Tags{{Name: "id", Value: "sda"}}}, Time: at("10:00"), Tags: core.Tags{{Name: "size", Value: "10"}}, Flags: core.Stored},
			{PropertyKey: core.PropertyKey{Entity: "pump-2", Type: "system"}, Time: at("10:01"), Tags: core.Tags{{Name: "os", Value: "linux"}}, Flags: core.Stored},
		},
		Alerts: []core.AlertChange{{Event: "1", Kind: core.AlertOpened, Row: &core.AlertRow{AlertID: 7, Time: at("10:02"), Received: at("10:03"), OpenTime: at("10:02"), Entity: "pump-1",
			Metric: "flow", Rule: "high", Type: core.StatusOpen, Value: 14, Text: "14", Severity: core.Major, Condition: "value > 12", RepeatCount: 0}}},
	}
	if err := s.Apply(t.Context(), core.Entry{Position: 2, Batch: b}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEntityTable(t *testing.T) {
	op := tableOf("entity", recordEntity, plan.Source{Kind: plan.SourceEntityField, Name: "label", Type: column.String}, plan.Source{Kind: plan.SourceEntityTag, Name: "site", Type: column.String},
		plan.Source{Kind: plan.SourceEntityField, Name: "groups", Type: column.String}, plan.Source{Kind: plan.SourceEntityField, Name: "lastInsertTime", Type: column.Timestamp})
	want(t, run1(t, example(t), op), "plant - - - 2024-03-01T00:00", "pump-1 Pump One North north;pumps @10:11", "pump-2 - South pumps @10:09", "valve-9 - - - @10:05")
	op.Names = []string{"pump-2", "nobody"}
	want(t, run1(t, example(t), op), "pump-2 - South pumps @10:09")
	op.Names = []string{}
	want(t, run1(t, example(t), op))
}

func TestMetricTable(t *testing.T) {
	op := tableOf("metric", plan.Source{Kind: plan.SourceMetric, Type: column.String}, plan.Source{Kind: plan.SourceMetricField, Name: "units", Type: column.String},
		plan.Source{Kind: plan.SourceMetricTags, Type: column.String}, plan.Source{Kind: plan.SourceMetricField, Name: "lastInsertTime", Type: column.Timestamp})
	op.Names = []string{"temp", "flow"}
	want(t, run1(t, example(t), op), "flow l/min group=hydraulics @10:11", "temp - - @10:10")
}

func TestMessageTable(t *testing.T) {
	op := tableOf("message", recordTime, recordEntity, recordTags, recordField("type", column.String), recordField("source", column.String), recordField("severity", column.String),
		recordField("message", column.String), plan.Source{Kind: plan.SourceEntityTag, Name: "site", Type: column.String})
	want(t, run1(t, events(t), op), "@10:05 pump-2 - audit app NORMAL changed South", "@10:00 pump-1 user=ann log app WARNING started North")
	op.Types = []string{"log", "other"}
	want(t, run1(t, events(t), op), "@10:00 pump-1 user=ann log app WARNING started North")
	op.Types, op.Range = nil, core.Range{Start: at("10:01"), End: at("10:10")}
	want(t, run1(t, events(t), pick(op, 1)), "pump-2")
	op.Range = core.AllTime
	op.Filter = function{column.Boolean, func(row func(int) column.Value) column.Value { return column.BoolValue(row(3).Text == "log") }}
	want(t, run1(t, events(t), pick(op, 1)), "pump-1")
}

func TestPropertyTable(t *testing.T) {
	op := tableOf("property", recordTime, recordEntity, recordTags, recordField("type", column.String), recordField("key", column.String), recordField("key.id", column.String))
	want(t, run1(t, events(t), op), "@10:00 pump-1 size=10 disk id=sda sda", "@10:01 pump-2 os=linux system - -")
	op.Types, op.Names = []string{"disk"}, []string{"pump-1"}
	want(t, run1(t, events(t), pick(op, 2)), "size=10")
}

func TestHistoryTable(t *testing.T) {
	op := tableOf("history", recordTime, recordEntity, recordField("rule", column.String), recordField("metric", column.String), recordField("type", column.String),
		recordField("severity", column.String), recordField("value", column.Double), recordField("condition", column.String), recordField("receivedTime", column.Timestamp), recordField("id", column.Bigint))
	want(t, run1(t, events(t), op), "@10:02 pump-1 high flow OPEN MAJOR 14 value > 12 @10:03 7")
}

// openAlerts are alerts that are open.
type openAlerts struct {
	core.OpenAlerts
	list []core.Alert
}

func (o openAlerts) Query(context.Context, core.AlertFilter) ([]core.Alert, error) {
	return o.list, nil
}

func TestAlertTable(t *testing.T) {
	op := tableOf("alert", recordTime, recordEntity, recordField("rule", column.String), recordField("severity", column.String), recordField("value", column.Double),
		recordField("openTime", column.Timestamp), recordField("acknowledged", column.Boolean), recordField("id", column.Bigint))
	want(t, run1(t, example(t), op)) // nobody knows of alerts
	open := openAlerts{list: []core.Alert{{ID: 3, Rule: "high", Entity: "pump-1", Severity: core.Fatal, Value: 20, OpenTime: at("10:02"), LastEvent: at("10:05")}}}
	want(t, run1(t, example(t), op, func(c *Config) { c.Alerts = open }), "@10:05 pump-1 high FATAL 20 @10:02 false 3")
}

func TestUnknownTable(t *testing.T) {
	if _, err := tryRun(t.Context(), example(t), tableOf("chair")); err == nil {
		t.Error("no error")
	}
}

// view is the rows of another query.
func viewOf(s *memstore.Store, root plan.Operator, columns int) *plan.View {
	return &plan.View{Query: &plan.Query{Root: root, Columns: make([]plan.Column, columns), Env: environment(s)}, Time: 0, Value: 1, Text: -1, Metric: -1, Entity: -1, Tags: -1}
}

func TestView(t *testing.T) {
	s := example(t)
	inner := by(groupBy(of("pump-1", scanOf("flow")), periodOnly, "max", "sum"), 5, dates.Minute)
	v := viewOf(s, inner, 2)
	want(t, run1(t, s, v), "@10:00 14", "@10:05 20", "@10:10 8") // without what is hidden behind its columns
	v.Intervals = []plan.Interval{{Range: core.Range{Start: at("10:05"), End: at("10:06")}}, {Range: core.Range{Start: at("10:10"), End: at("10:11")}}}
	want(t, run1(t, s, v), "@10:05 20", "@10:10 8")
	v.Filter = valueAbove{1, 10}
	want(t, run1(t, s, v), "@10:05 20")
	outer := &plan.Group{In: viewOf(s, inner, 2), Keys: []expr.Node{expr.Input(0, column.Timestamp)}, PeriodKey: 0, TagsKey: -1,
		Period:     &plan.Period{Step: dates.Interval{Count: 1, Unit: dates.Hour}, Zone: plan.Zone{Location: environment(s).Zone}, ZoneKey: -1, Interval: -1, Fill: ast.FillNone},
		Aggregates: []plan.Aggregate{{Func: "avg", Args: []expr.Node{expr.Input(1, column.Double)}, Time: expr.Input(0, column.Timestamp), Type: column.Decimal}}}
	want(t, run1(t, s, outer), "@10:00 14")
}
