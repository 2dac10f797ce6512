package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// described are the columns of a query: label|name|type|table|propertyUrl.
func described(q *Query) []string {
	var out []string
	for _, c := range q.Columns {
		kind := c.Type.String()
		if c.Unknown {
			kind = "null"
		}
		out = append(out, fmt.Sprintf("%s|%s|%s|%s|%s", c.Label, c.Name, kind, c.Table, strings.TrimPrefix(c.Property, "atsd:")))
	}
	return out
}

func TestColumns(t *testing.T) {
	for _, test := range []struct {
		query string
		want  []string
	}{
		{`SELECT value*60 AS "per_hour", datetime FROM flow`, []string{"per_hour|value * 60|double|flow|value", "datetime|datetime|xsd:dateTimeStamp|flow|datetime"}},
		{`SELECT time, text, metric, entity, tags, tags."a""b" FROM flow`, []string{"time|time|bigint|flow|time", "text|text|string|flow|text", "metric|metric|string|flow|metric",
			"entity|entity|string|flow|entity", "tags|tags|string|flow|seriesTag", `tags.a"b|tags.a"b|string|flow|seriesTag`}},
		{`SELECT entity.timezone, entity.tags.x, metric.tags, Metric.Units FROM flow`, []string{"entity.timezone|entity.timezone|string|flow|", "entity.tags.x|entity.tags.x|string|flow|entityTag",
			"metric.tags|metric.tags|string|flow|metricTag", "Metric.Units|Metric.Units|string|flow|"}},
		{`SELECT entity.enabled, entity.versionTime, metric.retentionIntervalDays, metric.minValue FROM flow`, []string{"entity.enabled|entity.enabled|boolean|flow|",
			"entity.versionTime|entity.versionTime|bigint|flow|", "metric.retentionIntervalDays|metric.retentionIntervalDays|integer|flow|", "metric.minValue|metric.minValue|double|flow|"}},
		{`SELECT AVG( value ),COUNT(*),Percentile(99.9,value) x, MAX(value)-MIN(value) FROM level`, []string{"avg(value)|avg(value)|decimal|level|avg", "count(*)|count(*)|bigint||count",
			"x|percentile(99.9, value)|decimal|level|percentile_999", "max(value) - min(value)|max(value) - min(value)|double|level|"}},
		{`SELECT min(datetime), max(time), first(text), delta(value), min_value_time(value), stddev(value), count(DISTINCT entity) FROM flow`, []string{
			"min(datetime)|min(datetime)|xsd:dateTimeStamp|flow|min", "max(time)|max(time)|bigint|flow|max", "first(text)|first(text)|decimal|flow|first",
			"delta(value)|delta(value)|double|flow|delta", "min_value_time(value)|min_value_time(value)|bigint|flow|minValueTime", "stddev(value)|stddev(value)|decimal|flow|standardDeviation",
			"count(distinct entity)|count(distinct entity)|bigint|flow|count"}},
		{`SELECT value > 1 AS "pos", 'it''s', 1.50, -1, NULL FROM short`, []string{"pos|value > 1|boolean|short|", "'it''s'|'it''s'|string||", "1.50|1.50|double||", "-1|-1|bigint||", "null|null|java_object||"}},
		{`SELECT value FROM short`, []string{"value|value|smallint|short|value"}},
		{`SELECT value FROM level`, []string{"value|value|bigint|level|value"}},
		{`SELECT value FROM "Disk.Used"`, []string{"value|value|decimal|disk.used|value"}},
		// Of several metrics: the widest of the whole or of the broken types, decimal of both.
		{`SELECT value FROM atsd_series WHERE metric IN ('short', 'level')`, []string{"value|value|bigint||value"}},
		{`SELECT value FROM atsd_series WHERE metric IN ('state', 'flow')`, []string{"value|value|double||value"}},
		{`SELECT value FROM atsd_series WHERE metric IN ('state', 'level')`, []string{"value|value|decimal||value"}},
		{`SELECT value FROM atsd_series WHERE metric = 'level'`, []string{"value|value|bigint|level|value"}},
		{`SELECT tags.* FROM atsd_series WHERE metric IN ('flow', 'level')`, []string{"tags.side|level.tags.side|string|level|seriesTag", "tags.tank|level.tags.tank|string|level|seriesTag"}},
		{`SELECT l.tags.*, f.value FROM flow f JOIN level l`, []string{"l.tags.side|l.tags.side|string|level|seriesTag", "l.tags.tank|l.tags.tank|string|level|seriesTag", "f.value|f.value|double|flow|value"}},
		{`SELECT flow.entity, f.value, f.value - t.value FROM flow f JOIN temp t`, []string{"flow.entity|flow.entity|string|flow|entity", "f.value|f.value|double|flow|value",
			"f.value - t.value|f.value - t.value|double||value"}},
		{`SELECT entity.tags.*, metric.tags.* FROM flow WHERE entity = 'pump-1'`, []string{"entity.tags.site|entity.tags.site|string|flow|entityTag",
			"entity.tags.type-pump-1|entity.tags.type-pump-1|string|flow|entityTag", "metric.tags.group|metric.tags.group|string|flow|metricTag"}},
		{`SELECT *, row_number() FROM flow WITH ROW_NUMBER(entity ORDER BY time) > 0`, []string{"time|time|bigint|flow|time", "datetime|datetime|xsd:dateTimeStamp|flow|datetime",
			"value|value|double|flow|value", "text|text|string|flow|text", "metric|metric|string|flow|metric", "entity|entity|string|flow|entity", "tags|tags|string|flow|seriesTag",
			"row_number()|row_number()|bigint||"}},
		{`SELECT * FROM (SELECT datetime, value v FROM flow)`, []string{"datetime|datetime|xsd:dateTimeStamp||datetime", "v|v|double||"}},
		{`SELECT time FROM (SELECT datetime FROM flow)`, []string{"time|time|bigint||time"}},
		{`SELECT LAG(datetime), LEAD(value, 1, 'x'), LAG(entity) FROM flow`, []string{"lag(datetime)|lag(datetime)|xsd:dateTimeStamp|flow|", "lead(value, 1, 'x')|lead(value, 1, 'x')|java_object|flow|",
			"lag(entity)|lag(entity)|string|flow|"}},
		{`SELECT period(1 day), datetime, count(*) FROM flow GROUP BY period(1 day)`, []string{"period(1 day)|period(1 day)|bigint||time", "datetime|datetime|xsd:dateTimeStamp|flow|datetime",
			"count(*)|count(*)|bigint||count"}},
	} {
		q, err := planned(t, test.query, optionsOf(plant(t)))
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
			continue
		}
		if diff := cmp.Diff(test.want, described(q)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.query, diff)
		}
	}
}

func TestStars(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT * FROM flow`:                "time datetime value text metric entity tags",
		`SELECT f.* FROM flow f`:            "time datetime value text metric entity tags",
		`SELECT * FROM flow f JOIN temp`:    "f.time f.datetime f.value f.text f.metric f.entity f.tags temp.time temp.datetime temp.value temp.text temp.metric temp.entity temp.tags",
		`SELECT temp.* FROM flow JOIN temp`: "temp.time temp.datetime temp.value temp.text temp.metric temp.entity temp.tags",
		`SELECT entity.* FROM flow`:         "entity.name entity.label entity.creationTime entity.timeZone entity.interpolate entity.groups entity.enabled entity.tags",
		`SELECT metric.* FROM flow`: "metric.name metric.label metric.timeZone metric.interpolate metric.lastInsertTime metric.creationTime metric.description metric.dataType metric.enabled " +
			"metric.persistent metric.filter metric.retentionIntervalDays metric.versioning metric.minValue metric.maxValue metric.invalidValueAction metric.units metric.tags",
		`SELECT * FROM atsd_entity`: "name label creationTime versionTime timeZone interpolate groups enabled tags",
		`SELECT * FROM atsd_metric`: "name label timeZone interpolate lastInsertTime creationTime description dataType enabled persistent filter retentionIntervalDays versioning minValue maxValue " +
			"invalidValueAction units tags",
		`SELECT * FROM atsd_message`:                     "time datetime entity type source severity message tags",
		`SELECT * FROM atsd_property`:                    "time datetime entity type key tags",
		`SELECT tags.* FROM atsd_entity`:                 "tags.site tags.type-pump-1 tags.type-pump-2",
		`SELECT tags.* FROM flow`:                        "",
		`SELECT tags.* FROM level WHERE entity = 'x'`:    "",
		`SELECT tags.* FROM level WHERE time < 1000`:     "tags.side tags.tank", // the time does not narrow
		`SELECT * FROM (SELECT entity, tags FROM level)`: "entity tags",
	} {
		q, err := planned(t, query, optionsOf(plant(t)))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		var labels []string
		for _, c := range q.Columns {
			labels = append(labels, c.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%s: %s\nwant %s", query, got, want)
		}
	}
}

// TestMeta binds what may not exist or is not known yet.
func TestMeta(t *testing.T) {
	o := optionsOf(plant(t))
	o.Meta = true
	o.Instants = func(context.Context, *ast.Select) ([]core.Time, error) {
		t.Error("a query runs")
		return nil, nil
	}
	for query, want := range map[string]string{
		`SELECT value FROM nosuch WHERE entity = ?`:                                       "value|value|float|nosuch|value",
		`SELECT tags.*, value FROM nosuch`:                                                "value|value|float|nosuch|value",
		`SELECT value FROM atsd_series`:                                                   "value|value|null||value",
		`SELECT value FROM atsd_series WHERE metric IN ('nosuch', 'state')`:               "value|value|float||value",
		`SELECT value * ? FROM flow`:                                                      "value * ?|value * ?|double|flow|value",
		`SELECT ? FROM flow`:                                                              "?|?|java_object||",
		`SELECT isnull(value, ?) FROM flow`:                                               "isnull(value, ?)|isnull(value, ?)|java_object|flow|",
		`SELECT value FROM flow JOIN temp`:                                                "value|value|double|flow|value",
		`SELECT entity, avg(value) FROM flow`:                                             "entity|entity|string|flow|entity avg(value)|avg(value)|decimal|flow|avg",
		`SELECT value FROM flow GROUP BY entity`:                                          "value|value|double|flow|value",
		`SELECT value FROM flow WHERE datetime > ? AND value IN (?, 1) AND tags.a LIKE ?`: "value|value|double|flow|value",
		`SELECT count(*) c FROM flow GROUP BY entity HAVING count(*) > ? ORDER BY ?`:      "c|count(*)|bigint||count",
		`SELECT value FROM flow WHERE datetime BETWEEN (SELECT datetime FROM nosuch)`:     "value|value|double|flow|value",
		`SELECT case when value > ? then ? else 'b' end x FROM flow`:                      "x|case when value > ? then ? else 'b' end|java_object|flow|",
	} {
		q, err := planned(t, query, o)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := strings.Join(described(q), " "); got != want {
			t.Errorf("%s: %s\nwant %s", query, got, want)
		}
	}
	for _, query := range []string{`SELECT nope FROM flow`, `SELECT x.value FROM flow`, `SELECT value FROM flow WHERE datetime > 'x'`, `SELECT value FROM flow WHERE 1`} {
		if _, err := planned(t, query, o); err == nil {
			t.Errorf("%s has columns", query)
		}
	}
}

// TestNeeds: what a query does not look at is not read.
func TestNeeds(t *testing.T) {
	for query, want := range map[string]Needs{
		`SELECT count(*) FROM flow`:                      {},
		`SELECT value FROM flow`:                         {Value: true},
		`SELECT entity FROM flow WHERE text = 'x'`:       {Text: true},
		`SELECT * FROM flow`:                             {Value: true, Text: true},
		`SELECT entity FROM flow ORDER BY value`:         {Value: true},
		`SELECT text FROM flow WITH INTERPOLATE(1 HOUR)`: {Value: true, Text: true}, // rows of the grid depend on values
		`SELECT v FROM (SELECT value v FROM flow)`:       {Value: true},
		`DELETE FROM flow WHERE entity = 'x'`:            {},
	} {
		q, err := planned(t, query, optionsOf(plant(t)))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := scanOf(q.Root).Needs; got != want {
			t.Errorf("%s needs %+v, want %+v", query, got, want)
		}
	}
}

// scanOf finds the first scan of a plan.
func scanOf(op Operator) *Scan {
	switch op := op.(type) {
	case *Scan:
		return op
	case *View:
		return scanOf(op.Query.Root)
	case *Join:
		return scanOf(op.Inputs[0].In)
	case *Filter:
		return scanOf(op.In)
	case *RowNumber:
		return scanOf(op.In)
	case *Group:
		return scanOf(op.In)
	case *Window:
		return scanOf(op.In)
	case *Project:
		return scanOf(op.In)
	case *Distinct:
		return scanOf(op.In)
	case *Sort:
		return scanOf(op.In)
	case *Limit:
		return scanOf(op.In)
	}
	return nil
}

// TestScope: what the caller may read goes into whatever reads, and bounds the columns of tags.*.
func TestScope(t *testing.T) {
	o := optionsOf(plant(t))
	o.Scope = core.Scope{Groups: []string{"none"}}
	q, err := planned(t, `SELECT value, tags.* FROM level`, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.Scope, scanOf(q.Root).Scope); diff != "" {
		t.Error(diff)
	}
	if len(q.Columns) != 1 {
		t.Errorf("the tags of series that the caller may not read are shown: %v", described(q))
	}
	q, err = planned(t, `SELECT name FROM atsd_entity`, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.Scope, q.Root.(*Project).In.(*Table).Scope); diff != "" {
		t.Error(diff)
	}
}

func TestEncodeTags(t *testing.T) {
	o := optionsOf(plant(t))
	o.EncodeTags = true
	q, err := planned(t, `SELECT tags, entity.tags, upper(tags), tags.tank FROM level ORDER BY tags`, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []Source{{SourceTagsJSON, "", column.String}, {SourceEntityTagsJSON, "", column.String}, {SourceTag, "tank", column.String}}
	if diff := cmp.Diff(want, scanOf(q.Root).Columns[ScanColumns:]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := Explain(q)[0]; got != "sort: by tags" {
		t.Errorf("%s: the order is not that of the text of tags", got)
	}
}

func TestCut(t *testing.T) {
	o := optionsOf(plant(t))
	for query, want := range map[string]string{
		`SELECT value FROM flow`:                                  "limit: 3",
		`SELECT value FROM flow LIMIT 2`:                          "limit: 2",
		`SELECT value FROM flow LIMIT 10 OFFSET 5`:                "limit: 3 after 5",
		`SELECT value FROM flow ORDER BY value LIMIT 10 OFFSET 5`: "limit: 3 after 5 / sort: by value; keep 8",
		`SELECT value FROM flow ORDER BY value`:                   "limit: 3 / sort: by value; keep 3",
		`SELECT value FROM flow LIMIT 0`:                          "limit: 0",
		`SELECT value FROM flow ORDER BY value LIMIT 1`:           "limit: 1 / sort: by value; keep 1",
	} {
		q, err := planned(t, query, o)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		q.Root = Cut(q.Root, 3)
		lines := Explain(q)
		got := lines[0]
		if sort := strings.TrimSpace(lines[1]); strings.HasPrefix(sort, "sort") {
			got += " / " + sort
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestWholeSeries(t *testing.T) {
	for query, want := range map[string]bool{
		`DELETE FROM flow`: true,
		`DELETE FROM flow WHERE entity = 'x' AND time < 5000`:      true,
		`DELETE FROM flow WHERE tags.a LIKE 'x_y'`:                 true,
		`DELETE FROM atsd_series WHERE metric IN ('flow', 'temp')`: true,
		`DELETE FROM flow WHERE value > 1`:                         false,
		`DELETE FROM flow WHERE time > 1000 OR text = 'x'`:         false,
		`DELETE FROM flow WHERE value > LAG(value)`:                false,
	} {
		q, err := planned(t, query, optionsOf(plant(t)))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if _, ok := WholeSeries(q); ok != want {
			t.Errorf("%s: whole series %v", query, ok)
		}
	}
}
