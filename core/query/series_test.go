package query_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/query"
)

func TestWorkedExamples(t *testing.T) {
	s := pump(t)
	flow := func(d query.DateFilter) query.Series {
		return query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "PUMP-3"}, Dates: d}
	}

	q := flow(between("2021-05-03T10:00:00Z", "2021-05-03T10:07:00Z"))
	q.Limit, q.TimeFormat = 2, "milliseconds"
	expect(t, "1 detail, last two", answer(t, s.source(), q),
		`{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY","data":[{"t":1620036240000,"v":8},{"t":1620036360000,"v":3}]}`)
	q.Direction = "asc"
	expect(t, "1 first two", answer(t, s.source(), q),
		`{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY","data":[{"t":1620036030000,"v":4},{"t":1620036090000,"v":10}]}`)

	q = flow(tenMinutes)
	q.Aggregate = &query.Aggregate{Types: []string{"MAX", "DELTA"}, Period: &query.Period{Count: 5, Unit: "MINUTE"}}
	object := `{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY","aggregate":{"type":"%s","period":{"count":5,"unit":"MINUTE","align":"CALENDAR"}},` +
		`"transformationOrder":["AGGREGATE"],"data":[%s]}`
	expect(t, "2 two functions", answer(t, s.source(), q),
		fmt.Sprintf(object, "MAX", `{"d":"2021-05-03T10:00:00.000Z","v":10.0},{"d":"2021-05-03T10:05:00.000Z","v":9.0}`)+"\n"+
			fmt.Sprintf(object, "DELTA", `{"d":"2021-05-03T10:00:00.000Z","v":4.0},{"d":"2021-05-03T10:05:00.000Z","v":1.0}`))
	q.Dates.StartDate = "2021-05-03T10:01:00Z"
	expect(t, "3 misaligned start", answer(t, s.source(), q),
		fmt.Sprintf(object, "MAX", `{"d":"2021-05-03T10:05:00.000Z","v":9.0}`)+"\n"+fmt.Sprintf(object, "DELTA", `{"d":"2021-05-03T10:05:00.000Z","v":6.0}`))

	q = flow(between("2021-05-03T10:00:00Z", "2021-05-03T10:08:00Z"))
	zero, yes := 0.0, true
	for _, tt := range []struct {
		fill   query.Interpolation
		values string
		echo   string
	}{
		{query.Interpolation{Type: "VALUE", Value: &zero, Extend: &yes}, "4.0 10.0 0.0 6.0 8.0 0.0 3.0 9.0", `{"type":"VALUE","value":0,"extend":true}`},
		{query.Interpolation{Type: "LINEAR"}, "4.0 10.0 8.0 6.0 8.0 5.5 3.0 9.0", `{"type":"LINEAR"}`},
	} {
		q.Aggregate = &query.Aggregate{Types: []string{"sum"}, Period: &query.Period{Count: 1, Unit: "minute"}, Interpolate: &tt.fill}
		var data []string
		for i, v := range strings.Fields(tt.values) {
			data = append(data, fmt.Sprintf(`{"d":"2021-05-03T10:0%d:00.000Z","v":%s}`, i, v))
		}
		expect(t, "4 "+tt.fill.Type, answer(t, s.source(), q),
			`{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY","aggregate":{"type":"SUM","period":{"count":1,"unit":"MINUTE","align":"CALENDAR"},`+
				`"interpolate":`+tt.echo+`},"transformationOrder":["AGGREGATE"],"data":[`+strings.Join(data, ",")+`]}`)
	}

	q = flow(query.DateFilter{StartDate: "now - 1 * hour", EndDate: "now"})
	q.Entities.Entity, q.RequestID = "Ghost", "r1"
	expect(t, "6 unknown names", answer(t, s.source(), q), `{"requestId":"r1","entity":"ghost","metric":"flow","tags":{},"type":"HISTORY",`+
		`"warning":"DictionaryNotFoundException: ENTITY not found for name: 'ghost'","data":[]}`)
}

// Example 5: text without a number.
func TestTextWithoutNumber(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	i := b.Add(b.Ref(seriesKey("flow pump-3")), 1620040000000, nan())
	b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: uint32(i), Text: "sensor \"off\"\n"})
	s.apply(&b)
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: query.DateFilter{StartDate: "2021-05-03T11:00:00Z", Interval: "1-HOUR"}}
	expect(t, "detail", answer(t, s.source(), q), `{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY",`+
		`"data":[{"d":"2021-05-03T11:06:40.000Z","v":null,"x":"sensor \"off\"\n"}]}`)
	q.Aggregate = &query.Aggregate{Types: []string{"AVG"}, Period: &query.Period{Count: 1, Unit: "HOUR"}}
	expect(t, "average of nothing", answer(t, s.source(), q), `{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY",`+
		`"aggregate":{"type":"AVG","period":{"count":1,"unit":"HOUR","align":"CALENDAR"}},"data":[]}`)
}

// Example 7.
func TestCSV(t *testing.T) {
	s := pump(t)
	s.sample(`flow pump-4 site=a,b`, "2021-05-03T10:00:00.5Z", nan())
	rows := func(entity string, columns, tags []string) string {
		t.Helper()
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: entity}, Dates: between("2021-05-03T10:00:00Z", "2021-05-03T10:02:00Z")}
		p, err := q.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		table, err := query.NewCSV(columns, tags)
		if err != nil {
			t.Fatal(err)
		}
		out := table.AppendHeader(nil)
		for r, err := range p.Run(t.Context(), s.source()) {
			if err != nil {
				t.Fatal(err)
			}
			out = table.AppendRows(out, r)
		}
		return string(out)
	}
	expect(t, "time and value", rows("pump-3", []string{"time", "value"}, nil), "time,value\n1620036030000,4\n1620036090000,10\n")
	expect(t, "date", rows("pump-3", []string{"date", "value", "entity"}, nil), "date,value,entity\n2021-05-03T10:00:30Z,4,pump-3\n2021-05-03T10:01:30Z,10,pump-3\n")
	expect(t, "default columns", rows("pump-4", nil, []string{"site"}), "time,entity,metric,site,value\n1620036000500,pump-4,flow,\"a,b\",NaN\n")
	expect(t, "tag column", rows("pump-4", []string{"t:Site", "date"}, nil), "site,date\n\"a,b\",2021-05-03T10:00:00.500Z\n")
	expect(t, "nothing", rows("ghost", []string{"value"}, nil), "value\n")
	if _, err := query.NewCSV([]string{"price"}, nil); core.CodeOf(err) != core.Invalid {
		t.Errorf("unknown column: %v", err)
	}
}

// The check set of section 12 through the whole path.
func TestFunctions(t *testing.T) {
	s := pump(t)
	seven := 7.0
	for name, want := range map[string][2]string{
		"COUNT": {"4.0", "2.0"}, "SUM": {"28.0", "12.0"}, "AVG": {"7.0", "6.0"}, "MIN": {"4.0", "3.0"}, "FIRST": {"4.0", "3.0"}, "LAST": {"8.0", "9.0"},
		"DELTA": {"4.0", "1.0"}, "COUNTER": {"14.0", "9.0"}, "PERCENTILE(25)": {"4.5", "3.0"}, "MEDIAN": {"7.0", "6.0"}, "PERCENTILE_75": {"9.5", "9.0"},
		"PERCENTILE( 90 )": {"10.0", "9.0"}, "STANDARD_DEVIATION": {"2.581988897471611", "4.242640687119285"}, "MEDIAN_ABS_DEV": {"2.0", "3.0"},
		"WAVG": {"7.4", "7.0"}, "WTAVG": {"7.566037735849057", "8.903225806451612"},
		"SLOPE": {"0.000009195402298850575", "0.0001"}, "INTERCEPT": {"6.0344827586206895", "3.0"}, "MIN_VALUE_TIME": {"1620036030000.0", "1620036360000.0"},
		"MAX_VALUE_TIME": {"1620036090000.0", "1620036420000.0"}, "THRESHOLD_COUNT": {"2.0", "1.0"}, "THRESHOLD_DURATION": {"187500.0", "200000.0"},
		"THRESHOLD_PERCENT": {"37.5", "33.333333333333336"},
	} {
		q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes,
			Aggregate: &query.Aggregate{Types: []string{name}, Period: &query.Period{Count: 5, Unit: "MINUTE"}, Threshold: &query.Threshold{Max: &seven}}}
		want := fmt.Sprintf(`"aggregate":{"type":"%s","period":{"count":5,"unit":"MINUTE","align":"CALENDAR"},"threshold":{"max":7}},`+
			`"transformationOrder":["AGGREGATE"],"data":[{"d":"2021-05-03T10:00:00.000Z","v":%s},{"d":"2021-05-03T10:05:00.000Z","v":%s}]}`, name, want[0], want[1])
		if got := answer(t, s.source(), q); !strings.HasSuffix(got, want) {
			t.Errorf("%s:\ngot  %s\nwant ...%s", name, got, want)
		}
	}
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes, Aggregate: &query.Aggregate{Types: []string{"COUNT"}}}
	if got, want := answer(t, s.source(), q), `"aggregate":{"type":"COUNT"},"transformationOrder":["AGGREGATE"],"data":[{"d":"2021-05-03T10:00:00.000Z","v":6.0}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("without period: got %s\nwant ...%s", got, want)
	}
	q.Aggregate.Types = []string{"DETAIL"}
	q.Limit = 1
	if got, want := answer(t, s.source(), q), `"data":[{"d":"2021-05-03T10:07:00.000Z","v":9}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("DETAIL prints stored numbers: got %s\nwant ...%s", got, want)
	}
}

// selected returns which of the series answer, as their entities and tags.
func selected(t *testing.T, src query.Source, q query.Series) string {
	t.Helper()
	q.Dates = query.DateFilter{StartDate: "2021-05-03T00:00:00Z", Interval: "1-DAY"}
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r, err := range p.Run(t.Context(), src) {
		if err != nil {
			t.Fatal(err)
		}
		name := r.Entity
		for _, tag := range r.Tags {
			name += "," + tag.Name + "=" + tag.Value
		}
		if r.Samples.Len() == 0 {
			name = "(" + name + ")"
		}
		if r.Warning != "" {
			name += "!"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// The tag filter table of section 4.1.
func TestTagFilter(t *testing.T) {
	s := newStore(t)
	for _, tags := range []string{"k1=a k2=b", "k1=a", "k2=b", ""} {
		s.sample("m e "+tags, "2021-05-03T10:00:00Z", 1)
	}
	s.sample("m other k9=x", "2021-05-03T10:00:00Z", 1)
	for _, tt := range []struct {
		tags           map[string][]string
		contains, same string
	}{
		{nil, "e e,k1=a e,k1=a,k2=b e,k2=b", "e"},
		{map[string][]string{}, "e e,k1=a e,k1=a,k2=b e,k2=b", "e"},
		{map[string][]string{"k1": {"a"}}, "e,k1=a e,k1=a,k2=b", "e,k1=a"},
		{map[string][]string{"K2": {"*"}}, "e,k1=a,k2=b e,k2=b", "e,k2=b"},
		{map[string][]string{"k1": {"a"}, "k9": nil}, "e,k1=a e,k1=a,k2=b", "e,k1=a"},
		{map[string][]string{"k1": {" a ", "z"}}, "e,k1=a e,k1=a,k2=b", "e,k1=a"},
		{map[string][]string{"k1": {"A"}}, "(e,k1=A)", "(e,k1=A)"},
		{map[string][]string{"k7": {"a"}}, "(e,k7=a)!", "(e,k7=a)!"},
	} {
		q := query.Series{Metric: "M", Entities: query.EntityFilter{Entity: "e"}, Tags: tt.tags}
		expect(t, fmt.Sprint(tt.tags), selected(t, s.source(), q), tt.contains)
		q.ExactMatch = true
		expect(t, fmt.Sprint(tt.tags, " exact"), selected(t, s.source(), q), tt.same)
	}
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}, TagExpression: "tags.k1 = '' and lower(tags.k2) != 'b'"}
	expect(t, "tag expression", selected(t, s.source(), q), "e other,k9=x")
	q.Dates, q.TagExpression = tenMinutes, "app lke 'x'"
	expect(t, "faulty tag expression", answer(t, s.source(), q), `{"entity":"*","metric":"m","tags":{},"type":"HISTORY",`+
		`"warning":"IllegalStateException: Syntax error at line 1 position 4: no viable alternative at input 'app lke'","data":[]}`)
}

func TestEntitySelection(t *testing.T) {
	s := newStore(t)
	for _, e := range []string{"a1", "a2", "b1", `w*d`, `back\slash`} {
		s.sample("m "+e, "2021-05-03T10:00:00Z", 1)
	}
	s.sample("other c1", "2021-05-03T10:00:00Z", 1)
	s.document(core.DocGroup, "list", `{"members":["b1","c1","gone"]}`)
	s.document(core.DocGroup, "rule", `{"expression":"name LIKE 'a*' OR name = 'c1'"}`)
	for _, tt := range []struct {
		filter query.EntityFilter
		want   string
	}{
		{query.EntityFilter{Entity: "A1"}, "a1"},
		{query.EntityFilter{Entity: "a?"}, "a1 a2"},
		{query.EntityFilter{Entity: "a1", Entities: []string{"b1"}, Group: "list"}, "a1"},
		{query.EntityFilter{Entities: []string{"b1", "a*", "A1"}}, "a1 a2 b1"},
		{query.EntityFilter{Entities: []string{"c1", "ghost", "a1"}}, "a1 (c1) (ghost)!"},
		{query.EntityFilter{Entities: []string{"x*", "b1"}}, "b1"},
		{query.EntityFilter{Group: "list"}, "b1 (c1) (gone)!"},
		{query.EntityFilter{Group: "rule"}, "a1 a2 (c1)"},
		{query.EntityFilter{Group: "unknown"}, "(*)"},
		{query.EntityFilter{Expression: "name LIKE '*1'"}, "a1 b1"},
		{query.EntityFilter{Entity: "a*", Expression: "name != 'a1'"}, "a2"},
		{query.EntityFilter{Entity: "X?"}, "(x?)"},
		{query.EntityFilter{Entity: `w\*d`}, `w*d`},
		{query.EntityFilter{Entity: `back\\slash`}, `back\slash`},
		{query.EntityFilter{Entity: `back\slash`}, `(back\slash)!`}, // the escape stands for `backslash`
		{query.EntityFilter{Entity: "*"}, `a1 a2 b1 back\slash w*d`},
	} {
		expect(t, fmt.Sprintf("%+v", tt.filter), selected(t, s.source(), query.Series{Metric: "m", Entities: tt.filter}), tt.want)
	}
	expect(t, "unknown metric", selected(t, s.source(), query.Series{Metric: "none", Entities: query.EntityFilter{Entities: []string{"a1", "a2"}}}), "(a1)! (a2)!")

	some := query.Source{Reader: s.Store, Catalog: s.Store, Scope: core.Scope{Groups: []string{"list"}}}
	expect(t, "scope", selected(t, some, query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}}), "b1")
	expect(t, "scope of a group", selected(t, some, query.Series{Metric: "m", Entities: query.EntityFilter{Group: "rule"}}), "(c1)")
	p, err := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "a1"}, Dates: tenMinutes}.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range p.Run(t.Context(), some) {
	}
	if core.CodeOf(err) != core.Forbidden {
		t.Errorf("a named entity outside the scope: %v, want code forbidden", err)
	}
}

func TestLimits(t *testing.T) {
	s := newStore(t)
	for _, e := range []string{"a", "b", "c"} {
		for i := range 5 {
			s.sample("m "+e, fmt.Sprintf("2021-05-03T10:0%d:00Z", i), float64(i))
		}
	}
	s.sample("m late", "2021-06-01T00:00:00Z", 1)
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}, SeriesLimit: 2}
	expect(t, "seriesLimit", selected(t, s.source(), q), "a b")

	q = query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}, MinInsertDate: "2021-05-03T10:05:00Z"}
	expect(t, "minInsertDate", selected(t, s.source(), q), "(*)")
	q.MinInsertDate, q.MaxInsertDate = "2021-05-03T10:04:00Z", "2021-05-03T10:04:00.001Z"
	expect(t, "newest sample between the insert dates", selected(t, s.source(), q), "a b c")
	q.MaxInsertDate = q.MinInsertDate
	expect(t, "empty insert range", selected(t, s.source(), q), "(*)")

	one := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "a"}, Dates: tenMinutes, Limit: 3, TimeFormat: "milliseconds"}
	pieces := query.Source{Reader: shredder{s.Store}, Catalog: s.Store, Scope: core.AllEntities}
	if got, want := answer(t, pieces, one), `"data":[{"t":1620036120000,"v":2},{"t":1620036180000,"v":3},{"t":1620036240000,"v":4}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("newest blocks first: got %s", got)
	}
	one.Direction = "ASC"
	if got, want := answer(t, pieces, one), `"data":[{"t":1620036000000,"v":0},{"t":1620036060000,"v":1},{"t":1620036120000,"v":2}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("oldest: got %s", got)
	}
	one.Direction, one.Aggregate = "", &query.Aggregate{Types: []string{"SUM"}, Period: &query.Period{Count: 2, Unit: "MINUTE"}}
	one.Limit = 2
	if got, want := answer(t, pieces, one), `"data":[{"t":1620036120000,"v":5.0},{"t":1620036240000,"v":4.0}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("limit after aggregation: got %s", got)
	}

	cached := query.Series{Metric: "m", Entities: query.EntityFilter{Entities: []string{"a", "late"}}, Dates: tenMinutes, Cache: true, TimeFormat: "milliseconds"}
	expect(t, "cache", answer(t, s.source(), cached), `{"entity":"a","metric":"m","tags":{},"type":"HISTORY","data":[{"t":1620036240000,"v":4}]}`+"\n"+
		`{"entity":"late","metric":"m","tags":{},"type":"HISTORY","data":[]}`)
}

func TestTooManySeries(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	for i := range 10_001 {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprintf("e%05d", i)}), 1620036000000, 1)
	}
	s.apply(&b)
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "*"}, Dates: tenMinutes}
	run := func() (count int, last error) {
		p, err := q.Validate(moment)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range p.Run(t.Context(), s.source()) {
			count, last = count+1, err
		}
		return count, last
	}
	if _, err := run(); core.CodeOf(err) != core.Invalid || err.Error() != "IllegalArgumentException: Series count exceeds 10000" {
		t.Errorf("unlimited: %v", err)
	}
	q.Limit = 1
	if n, err := run(); n != 10_001 || err != nil {
		t.Errorf("with a limit: %d results, %v", n, err)
	}
	q.Limit, q.SeriesLimit = 0, 7
	if n, err := run(); n != 7 || err != nil {
		t.Errorf("with a series limit: %d results, %v", n, err)
	}
}

func TestMeta(t *testing.T) {
	s := pump(t)
	s.document(core.DocEntity, "pump-3", `{"label":"P","tags":{"b":"2","a":"1"}}`)
	s.document(core.DocMetric, "flow", `{"units":"l/s","minValue":-1.5,"dataType":"DOUBLE"}`)
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: between("2021-05-03T10:00:00Z", "2021-05-03T10:01:00Z"), AddMeta: true}
	got := answer(t, s.source(), q)
	for _, want := range []string{
		`"type":"HISTORY","meta":{"metric":{"name":"flow","enabled":true,"dataType":"DOUBLE","units":"l/s","persistent":true,"tags":{},"retentionDays":0,` +
			`"seriesRetentionDays":0,"minValue":-1.5,"invalidAction":"NONE","versioned":false,"interpolate":"LINEAR","createdDate":"2030-01-01T00:00:00.000Z"},`,
		`"entity":{"name":"pump-3","enabled":true,"label":"P","tags":{"a":"1","b":"2"},"createdDate":"2030-01-01T00:00:00.000Z"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant part %s", got, want)
		}
	}
	q.Dates = between("1000-01-01T00:00:00Z", "1000-01-02T00:00:00Z")
	if got := answer(t, s.source(), q); !strings.Contains(got, `"meta":{"metric":{"name":"flow"`) || !strings.HasSuffix(got, `"data":[]}`) {
		t.Errorf("placeholder: got %s", got)
	}
	q.Entities.Entity, q.Metric = "ghost", "ghost"
	if got := answer(t, s.source(), q); strings.Contains(got, "meta") {
		t.Errorf("nothing known: got %s", got)
	}
}

func TestDecimalsAndNumbers(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	ref := b.Ref(seriesKey("m e"))
	for i, v := range []float64{0.1, 4294969199999, 61.0625, -3, 1e21, 1.2345678901234567} {
		b.Add(ref, 1620036000000+core.Time(i), v)
	}
	i := b.Add(ref, 1620036000006, 1234567890123456789)
	b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: uint32(i), Decimal: core.Decimal{Significand: 1234567890123456789, Exponent: -3}})
	i = b.Add(ref, 1620036000007, 0)
	b.Samples.Decimals = append(b.Samples.Decimals, core.DecimalAt{Index: uint32(i), Decimal: core.Decimal{Significand: 7, Exponent: -2147483647}})
	s.apply(&b)
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "e"}, Dates: tenMinutes, TimeFormat: "MILLISECONDS"}
	var want []string
	for i, v := range strings.Fields("0.1 4294969199999 61.0625 -3 1000000000000000000000 1.2345678901234567 1234567890123456.789 7e-2147483647") {
		want = append(want, fmt.Sprintf(`{"t":%d,"v":%s}`, 1620036000000+int64(i), v))
	}
	if got := answer(t, s.source(), q); !strings.HasSuffix(got, `"data":[`+strings.Join(want, ",")+`]}`) {
		t.Errorf("got %s\nwant %v", got, want)
	}
}

func TestSeriesErrors(t *testing.T) {
	good := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "e"}, Dates: tenMinutes}
	with := func(change func(q *query.Series)) query.Series {
		q := good
		change(&q)
		return q
	}
	ill := "IllegalArgumentException: "
	for _, tt := range []struct {
		q    query.Series
		code core.Code
		want string
	}{
		{query.Series{}, core.Invalid, ill + "Insufficient parameters. One of the following combinations is required: interval, interval + startDate, " +
			"interval + endDate, startDate + endDate"},
		{query.Series{Dates: tenMinutes}, core.Invalid, ill + "entity or entities or entityGroup or entityExpression must not be empty"},
		{with(func(q *query.Series) { q.Metric = " " }), core.Invalid, ill + "Empty metric"},
		{with(func(q *query.Series) { q.Dates.StartDate = "1620036000000" }), core.Invalid, ill + "Wrong startDate syntax: 1620036000000"},
		{with(func(q *query.Series) { q.Entities = query.EntityFilter{Expression: "name lke 'x'"} }), core.Invalid,
			"Syntax error at line 1 position 5: no viable alternative at input 'name lke'"},
		{with(func(q *query.Series) { q.MinInsertDate = "soon" }), core.Invalid, ill + "Wrong minInsertDate syntax: soon"},
		{with(func(q *query.Series) { q.Timezone = "PST" }), core.Invalid, ill + `time zone "PST" is ambiguous`},
		{with(func(q *query.Series) { q.Type = "FUTURE" }), core.Invalid, ill + "Unknown series type: FUTURE"},
		{with(func(q *query.Series) { q.Direction = "UP" }), core.Invalid, ill + "Unknown direction: UP"},
		{with(func(q *query.Series) { q.TimeFormat = "seconds" }), core.Invalid, ill + "Unknown timeFormat: seconds"},
		{with(func(q *query.Series) { q.TransformationOrder = []string{"AGGREGATE", "sort"} }), core.Invalid, ill + "Unknown transformation: sort"},
		{with(func(q *query.Series) { q.SampleFilter = "value >" }), core.Invalid, "Syntax error"},
		{with(func(q *query.Series) { q.VersionFilter = "value >" }), core.Invalid, "Syntax error"},
		{with(func(q *query.Series) { q.Aggregate = &query.Aggregate{} }), core.Invalid, ill + "Aggregation type is required"},
		{with(func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"AVERAGE"}} }), core.Invalid, ill + `unknown aggregate function "AVERAGE"`},
		{with(func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"PERCENTILE(101)"}} }), core.Invalid, ill},
		{with(func(q *query.Series) { q.Aggregate = &query.Aggregate{Types: []string{"THRESHOLD_COUNT"}} }), core.Invalid, ill + "Threshold with min or max is required"},
		{with(func(q *query.Series) {
			q.Aggregate = &query.Aggregate{Types: []string{"AVG"}, Interpolate: &query.Interpolation{}}
		}), core.Invalid, ill + "Interpolation type is required"},
		{with(func(q *query.Series) {
			q.Aggregate = &query.Aggregate{Types: []string{"AVG"}, Period: &query.Period{Count: 0, Unit: "DAY"}}
		}), core.Invalid, ill + "period count is 0"},
		{with(func(q *query.Series) {
			q.Aggregate = &query.Aggregate{Types: []string{"AVG"}, Period: &query.Period{Count: 1, Unit: "NANOSECOND"}}
		}), core.Invalid, ill},
	} {
		_, err := tt.q.Validate(moment)
		if core.CodeOf(err) != tt.code || err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.want)
		}
	}
}

// RECONSTRUCTED series are never stored.
func TestReconstructed(t *testing.T) {
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes, Type: "reconstructed"}
	expect(t, "placeholder", answer(t, pump(t).source(), q), `{"entity":"pump-3","metric":"flow","tags":{},"type":"RECONSTRUCTED","data":[]}`)
}

// A period is counted on the calendar of its own zone, else of the query.
func TestZones(t *testing.T) {
	s := newStore(t)
	s.sample("m e", "2021-05-03T23:30:00Z", 1)
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "e"}, Dates: between("2021-05-01T00:00:00Z", "2021-05-05T00:00:00Z"),
		Timezone: "Europe/Berlin", Aggregate: &query.Aggregate{Types: []string{"COUNT"}, Period: &query.Period{Count: 1, Unit: "DAY"}}}
	if got, want := answer(t, s.source(), q), `"data":[{"d":"2021-05-03T22:00:00.000Z","v":1.0}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant ...%s", got, want)
	}
	q.Aggregate.Period.Timezone = "UTC"
	if got, want := answer(t, s.source(), q), `"data":[{"d":"2021-05-03T00:00:00.000Z","v":1.0}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant ...%s", got, want)
	}
}

func TestEchoOfAggregate(t *testing.T) {
	s := pump(t)
	low, no := -1.5, false
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Dates: tenMinutes, Aggregate: &query.Aggregate{
		Types: []string{"threshold_duration"}, Period: &query.Period{Count: 1.5, Unit: "hours", Align: "start_time", Timezone: "Europe/Berlin"},
		Threshold: &query.Threshold{Min: &low}, WorkingMinutes: &query.WorkingMinutes{Start: 540, End: 1080},
		Interpolate: &query.Interpolation{Type: "previous", Extend: &no}}}
	expect(t, "everything sent", answer(t, s.source(), q), `{"entity":"pump-3","metric":"flow","tags":{},"type":"HISTORY","aggregate":{"type":"THRESHOLD_DURATION",`+
		`"period":{"count":1,"unit":"HOUR","align":"START_TIME","timezone":"Europe/Berlin"},"threshold":{"min":-1.5},"workingMinutes":{"start":540,"end":1080},`+
		`"interpolate":{"type":"PREVIOUS","extend":false}},"transformationOrder":["AGGREGATE"],"data":[{"d":"2021-05-03T10:00:00.000Z","v":0.0}]}`)
	q.Aggregate.Calendar = "mars"
	if _, err := q.Validate(moment); core.CodeOf(err) != core.Invalid {
		t.Errorf("unknown calendar: %v, want code invalid", err)
	}
	q.Aggregate.Calendar, q.Aggregate.WorkingMinutes = "", &query.WorkingMinutes{Start: 600, End: 600}
	if _, err := q.Validate(moment); core.CodeOf(err) != core.Invalid {
		t.Errorf("empty working day: %v, want code invalid", err)
	}
}

// A series for which one function gives values keeps the empty outputs of the others; interpolation over too long a range is an error, not a crash.
func TestAggregateEdges(t *testing.T) {
	s := newStore(t)
	s.sample("m e", "2021-05-03T10:00:00Z", 1)
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "e"}, Dates: between("2021-05-03T00:00:00Z", "9999-12-31T00:00:00Z"), TimeFormat: "milliseconds",
		Aggregate: &query.Aggregate{Types: []string{"DELTA"}, Period: &query.Period{Count: 1, Unit: "MINUTE"}}}
	if got, want := answer(t, s.source(), q), `"data":[{"t":1620036000000,"v":null}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("one sample has no delta: got %s\nwant ...%s", got, want)
	}
	yes := true
	q.Aggregate.Interpolate = &query.Interpolation{Type: "NONE", Extend: &yes}
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range p.Run(t.Context(), s.source()) {
	}
	if core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), "shorten the range") {
		t.Errorf("got %v, want code invalid with advice", err)
	}
}

func TestVersionedMetric(t *testing.T) {
	s := pump(t)
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Entity: "pump-3"}, Versioned: true, Dates: between("2021-05-03T10:00:00Z", "2021-05-03T10:01:00Z")}
	if got, want := answer(t, s.source(), q), `"data":[{"d":"2021-05-03T10:00:30.000Z","v":4}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("metric without versions: got %s", got)
	}
	s.document(core.DocMetric, "flow", `{"versioned":true}`)
	if got, want := answer(t, s.source(), q), `"data":[{"d":"2021-05-03T10:00:30.000Z","v":4}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("sample from before the metric kept versions: got %s", got)
	}
}

func TestAppendVersion(t *testing.T) {
	r := query.Result{Entity: "e", Metric: "m", Type: query.History, Versioned: true, Samples: query.Samples{Times: []core.Time{0, 1}, Values: []float64{1, 2},
		Versions: []core.VersionAt{{Index: 1, Source: "form", Written: 5}}}}
	expect(t, "iso", string(r.AppendJSON(nil)), `{"entity":"e","metric":"m","tags":{},"type":"HISTORY","data":[{"d":"1970-01-01T00:00:00.000Z","v":1},`+
		`{"d":"1970-01-01T00:00:00.001Z","v":2,"version":{"d":"1970-01-01T00:00:00.005Z","source":"form"}}]}`)
	r.Format, r.Samples.Versions[0].Status = query.Millis, "ok"
	expect(t, "milliseconds", string(r.AppendJSON(nil)), `{"entity":"e","metric":"m","tags":{},"type":"HISTORY","data":[{"t":0,"v":1},`+
		`{"t":1,"v":2,"version":{"t":5,"source":"form","status":"ok"}}]}`)
	r.Versioned = false
	expect(t, "not asked for", string(r.AppendJSON(nil)), `{"entity":"e","metric":"m","tags":{},"type":"HISTORY","data":[{"t":0,"v":1},{"t":1,"v":2}]}`)
}

// Texts follow their samples through blocks, newest blocks first, and the limit.
func TestTextsFollowTheirSamples(t *testing.T) {
	s := newStore(t)
	var b core.Batch
	ref := b.Ref(seriesKey("m e"))
	for i := range 5 {
		n := b.Add(ref, 1620036000000+core.Time(i), float64(i))
		b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: uint32(n), Text: fmt.Sprint("x", i)})
	}
	s.apply(&b)
	q := query.Series{Metric: "m", Entities: query.EntityFilter{Entity: "e"}, Dates: tenMinutes, TimeFormat: "milliseconds", Limit: 4}
	src := query.Source{Reader: shredder{s.Store}, Catalog: s.Store, Scope: core.AllEntities}
	want := `"data":[{"t":1620036000001,"v":1,"x":"x1"},{"t":1620036000002,"v":2,"x":"x2"},{"t":1620036000003,"v":3,"x":"x3"},{"t":1620036000004,"v":4,"x":"x4"}]}`
	if got := answer(t, src, q); !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant ...%s", got, want)
	}
	q.Aggregate = &query.Aggregate{Types: []string{"DETAIL"}} // the backend has no limit then, the query cuts
	q.Limit = 2
	if got, want := answer(t, src, q), `"data":[{"t":1620036000003,"v":3,"x":"x3"},{"t":1620036000004,"v":4,"x":"x4"}]}`; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant ...%s", got, want)
	}
}

// A backend that fails half way ends the answer with its error.
func TestReaderErrors(t *testing.T) {
	s := pump(t)
	q := query.Series{Metric: "flow", Entities: query.EntityFilter{Expression: "memberOf(collection('x')) and hasMetric('flow', 'much')  or hasMetric('flow', 'much')"},
		Dates: tenMinutes}
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, last = range p.Run(t.Context(), s.source()) {
	}
	if core.CodeOf(last) != core.Invalid {
		t.Errorf("got %v, want the error of the expression", last)
	}
}
