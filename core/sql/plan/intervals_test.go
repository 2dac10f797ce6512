package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/parse"
)

// sources are what tests know of columns. Names with the prefix f. are of table 0, with t. of table 1, others of all tables.
func source(path string) (Source, bool) {
	switch path {
	case "time", "datetime":
		return Source{Kind: SourceTime, Type: column.Bigint}, true
	case "value":
		return Source{Kind: SourceValue, Type: column.Double}, true
	case "entity":
		return Source{Kind: SourceEntity, Type: column.String}, true
	case "metric":
		return Source{Kind: SourceMetric, Type: column.String}, true
	case "tags":
		return Source{Kind: SourceTags, Type: column.String}, true
	}
	if name, ok := strings.CutPrefix(path, "tags."); ok {
		return Source{Kind: SourceTag, Name: name, Type: column.String}, true
	}
	if name, ok := strings.CutPrefix(path, "entity.tags."); ok {
		return Source{Kind: SourceEntityTag, Name: name, Type: column.String}, true
	}
	return Source{}, false
}

func resolveTest(n *ast.Name) (ref, bool) {
	path, table := ast.NameText(n.Parts), joined
	if rest, ok := strings.CutPrefix(path, "f."); ok {
		path, table = rest, 0
	} else if rest, ok := strings.CutPrefix(path, "t."); ok {
		path, table = rest, 1
	}
	s, ok := source(path)
	return ref{table: table, source: s}, ok
}

// whereOf parses a condition. Positions count from its first character.
func whereOf(t *testing.T, condition string) []ast.Expr {
	t.Helper()
	stmt, err := parse.Parse("SELECT 1 FROM m WHERE\n" + condition)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return conjuncts(stmt.(*ast.Select).Where, nil)
}

// instantTest reads integers and texts of digits.
func instantTest(e ast.Expr) (core.Time, bool, error) {
	switch e := e.(type) {
	case *ast.Literal:
		if e.Kind == ast.Integer {
			return core.Time(e.Int), true, nil
		}
		n, err := strconv.ParseInt(e.Text, 10, 64)
		if err != nil {
			return 0, false, e.Errorf("Invalid date value: '%s'", e.Text)
		}
		return core.Time(n), true, nil
	case *ast.Unary:
		t, ok, err := instantTest(e.X)
		return -t, ok, err
	}
	return 0, false, nil
}

func showIntervals(list []Interval) string {
	texts := []string{}
	for _, i := range list {
		from, to := "-", "-"
		if i.HasFrom {
			from = fmt.Sprint(i.Start)
		} else if i.Start != core.MinTime {
			from = "wrong"
		}
		if i.HasTo {
			to = fmt.Sprint(i.End)
		} else if i.End != core.MaxTime+1 {
			to = "wrong"
		}
		texts = append(texts, from+":"+to)
	}
	return strings.Join(texts, " ")
}

func showTerms(terms []ast.Expr) string {
	texts := []string{}
	for _, t := range terms {
		texts = append(texts, ast.Text(t))
	}
	return strings.Join(texts, " | ")
}

func testConditions(times ...core.Time) timeConditions {
	return timeConditions{resolve: resolveTest, instant: instantTest, instants: func(*ast.Select) ([]core.Time, error) { return times, nil }}
}

func TestIntervals(t *testing.T) {
	for _, c := range []struct{ where, want, rest string }{
		{"entity = 'a'", "-:-", "entity = 'a'"},
		{"time >= 5", "5:-", ""},
		{"time > 5", "6:-", ""},
		{"5 < datetime", "6:-", ""},
		{"5 >= time", "-:6", ""},
		{"time < 5", "-:5", ""},
		{"time <= 5", "-:6", ""},
		{"time = 5", "5:6", ""},
		{"datetime >= '5' AND value > 1 AND time < 9", "5:9", "value > 1"},
		{"time >= 5 AND time <= 5", "5:6", ""},
		{"time > 5 AND time < 6", "", ""},
		{"time > 3 AND time >= 5 AND time < 100 AND time <= 50", "5:51", ""},
		{"time BETWEEN 3 AND 5", "3:6", ""},
		{"time BETWEEN 3 EXCL AND 5 EXCL", "4:5", ""},
		{"time BETWEEN 3 INCL AND 5 EXCL", "3:5", ""},
		{"time NOT BETWEEN 3 AND 5", "-:-", "time not between 3 and 5"},
		{"time IN (7, 3, 7)", "3:4 7:8", ""},
		{"time NOT IN (7, 3)", "-:-", "time not in (7, 3)"},
		{"time IN (7, value)", "-:-", "time in (7, value)"},
		{"time <> 5 AND time < 9", "-:9", "time <> 5"},
		{"NOT time > 5", "-:-", "not time > 5"},

		// Unions: what overlaps is merged, what touches is not.
		{"time BETWEEN 1 AND 3 OR time BETWEEN 10 AND 12", "1:4 10:13", ""},
		{"time BETWEEN 10 AND 12 OR time BETWEEN 1 AND 3", "1:4 10:13", ""},
		{"time BETWEEN 1 AND 5 OR time BETWEEN 5 AND 7", "1:8", ""},
		{"time BETWEEN 1 AND 9 OR time BETWEEN 3 AND 4", "1:10", ""},
		{"(time >= 1 AND time < 5) OR (time >= 5 AND time < 7)", "1:5 5:7", ""},
		{"time < 5 OR time > 3", "-:-", ""},
		{"time < 5 OR time > 8", "-:5 9:-", ""},
		{"(time < 5 OR time > 8) AND time BETWEEN 3 AND 20", "3:5 9:21", ""},
		{"(time < 5 OR time > 8) AND time > 6", "9:-", ""},
		{"(time < 5 OR time > 8) AND (time < 3 OR time BETWEEN 4 AND 9 OR time = 20)", "-:3 4:5 9:10 20:21", ""},
		{"(time < 5 OR value > 1) AND time < 9", "-:9", "(time < 5 or value > 1)"},
		{"time > 5 OR entity = 'a'", "-:-", "time > 5 or entity = 'a'"},

		// What is not constant, or not of the time column itself.
		{"time > value", "-:-", "time > value"},
		{"time = datetime", "-:-", "time = datetime"},
		{"time + 1 > 5", "-:-", "time + 1 > 5"},
		{"5 BETWEEN time AND 9", "-:-", "5 between time and 9"},
		{"hour(time) > 5", "-:-", "hour(time) > 5"},
		{"time IS NOT NULL", "-:-", "time is not null"},

		// Beyond what can be stored.
		{"time > -100", "0:-", ""},
		{"time < -100", "", ""},
		{"time > 99999999999999", "", ""},
		{"time < 99999999999999", "-:99999999999999", ""},
		{"time > 9223372036854775807", "", ""},
		{"time <= 9223372036854775807", "-:9223372036854775807", ""},

		// Joins.
		{"f.time >= 5 AND t.time <= 5", "5:6", ""},
		{"f.time > 5 AND time < 9 AND t.value > 1", "6:9", "t.value > 1"},
		{"f.time = t.time", "-:-", "f.time = t.time"},
		{"f.time > 5 OR t.time < 3", "-:3 6:-", ""},
	} {
		list, rest, err := testConditions().intervals(whereOf(t, c.where))
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
			continue
		}
		if got := showIntervals(list); got != c.want {
			t.Errorf("%s: got %s, want %s", c.where, got, c.want)
		}
		if list == nil {
			t.Errorf("%s: nil instead of no intervals", c.where)
		}
		if got := showTerms(rest); got != c.rest {
			t.Errorf("%s: rest %s, want %s", c.where, got, c.rest)
		}
	}
}

func TestIntervalErrors(t *testing.T) {
	const start = "Start date must be less than end date at line 2 position "
	const across = " Invalid date conditions at line 2 position "
	for where, want := range map[string]string{
		"time > 9 AND time < 5":                                       start + `7 near "9"`,
		"time < 5 AND datetime > '9'":                                 start + `24 near "'9'"`,
		"time > 5 AND time < 5":                                       start + `7 near "5"`,
		"time >= 5 AND time < 5":                                      start + `8 near "5"`,
		"time > 1 AND time > 9 AND time < 5":                          start + `20 near "9"`,
		"time > 9 AND time > 1 AND time < 5":                          start + `7 near "9"`,
		"time = 5 AND time = 6":                                       start + `20 near "6"`,
		"time BETWEEN 9 AND 5":                                        start + `13 near "9"`,
		"time BETWEEN 9 AND 5 OR entity = 'a'":                        start + `13 near "9"`,
		"(time BETWEEN 1 AND 2 OR time BETWEEN 3 AND 4) AND time > 9": start + `58 near "9"`,
		"time > 'x'":                                                  `Invalid date value: 'x' at line 2 position 7 near "'x'"`,
		"f.time < 1000 AND t.time > 5000":                             across + `27 near "5000"`,
		"f.time > 5000 AND t.time < 1000":                             across + `9 near "5000"`,
		"f.time > 9 AND f.time < 5 AND t.time > 100":                  start + `9 near "9"`,
		"f.time > 9 AND time < 5":                                     start + `9 near "9"`,
	} {
		list, _, err := testConditions().intervals(whereOf(t, where))
		if err == nil {
			t.Errorf("%s: got %s, want an error", where, showIntervals(list))
		} else if err.Error() != want {
			t.Errorf("%s:\n got %s\nwant %s", where, err, want)
		}
	}
}

// TestSubqueryIntervals: two and two times are the ends of an interval.
func TestSubqueryIntervals(t *testing.T) {
	for _, c := range []struct {
		times []core.Time
		want  string
	}{
		{nil, ""},
		{[]core.Time{5}, "5:-"},
		{[]core.Time{5, 9}, "5:10"},
		{[]core.Time{5, 5}, "5:6"},
		{[]core.Time{5, 9, 20}, "5:10 20:-"},
		{[]core.Time{20, 30, 5, 9}, "5:10 20:31"},
		{[]core.Time{5, 9, 9, 12}, "5:13"},
	} {
		const where = "datetime BETWEEN (SELECT datetime FROM m)"
		list, rest, err := testConditions(c.times...).intervals(whereOf(t, where))
		if err != nil || len(rest) > 0 {
			t.Errorf("%v: rest %s, error %v", c.times, showTerms(rest), err)
		}
		if got := showIntervals(list); got != c.want {
			t.Errorf("%v: got %s, want %s", c.times, got, c.want)
		}
	}
	_, _, err := testConditions(9, 5).intervals(whereOf(t, "time BETWEEN (SELECT time FROM m)"))
	if want := `Start date must be less than end date at line 2 position 14 near "SELECT"`; err == nil || err.Error() != want {
		t.Errorf("a pair in the wrong order: %v, want %s", err, want)
	}
	list, _, err := testConditions(5, 9).intervals(whereOf(t, "time BETWEEN (SELECT time FROM m) AND time > 7"))
	if got := showIntervals(list); got != "8:10" || err != nil {
		t.Errorf("with another condition: %s, %v", got, err)
	}
	none := testConditions()
	none.instants = nil
	if _, rest, err := none.intervals(whereOf(t, "time BETWEEN (SELECT time FROM m)")); len(rest) != 1 || err != nil {
		t.Errorf("without a way to run it: rest %s, error %v", showTerms(rest), err)
	}
}

// TestManyIntervals: intersections of long unions take linear time.
func TestManyIntervals(t *testing.T) {
	const n = 50_000
	var even, third []string
	for i := range n {
		even = append(even, fmt.Sprint(2*i))
		third = append(third, fmt.Sprint(3*i))
	}
	list, _, err := testConditions().intervals(whereOf(t, "time IN ("+strings.Join(even, ",")+") AND time IN ("+strings.Join(third, ",")+")"))
	// Multiples of six below twice n.
	if want := (2*n + 5) / 6; len(list) != want || err != nil {
		t.Errorf("%d intervals, want %d; %v", len(list), want, err)
	}
}
