package plan

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

var rewrite = flag.Bool("rewrite", false, "write the plans that are found into testdata/plans.txt, to be read before they are kept")

// explained is the plan of a statement, or its error.
func explained(t *testing.T, text string, o Options) string {
	q, err := planned(t, text, o)
	if err != nil {
		return "error: " + err.Error()
	}
	checkWidths(t, q)
	return strings.Join(Explain(q), "\n")
}

// TestPlans reads testdata/plans.txt: blocks of a statement, ---- and its plan, with an empty line between blocks. Lines that begin with # are comments.
func TestPlans(t *testing.T) {
	const file = "testdata/plans.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o := optionsOf(plant(t))
	var out []string
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		var comments, statement []string
		text, want, _ := strings.Cut(block, "\n----")
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "#") {
				comments = append(comments, line)
			} else {
				statement = append(statement, line)
			}
		}
		query := strings.Join(statement, "\n")
		if strings.TrimSpace(query) == "" {
			out = append(out, block)
			continue
		}
		got := explained(t, query, o)
		out = append(out, strings.Join(append(append(comments, statement...), "----", got), "\n"))
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" && !*rewrite {
			t.Errorf("%s\n(-want +got)\n%s", query, diff)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// errorTests are statements with the texts that the contract gives their errors.
var errorTests = []struct{ query, want string }{
	// Unknown names.
	{`SELECT value FROM nosuch`, `Metric 'nosuch' not found`},
	{`SELECT value FROM "No.Such"`, `Metric 'No.Such' not found`},
	{`SELECT value FROM flow JOIN nosuch`, `Metric 'nosuch' not found`},
	{`SELECT "nope" FROM flow`, `Unexpected expression: 'nope' at line 1 position 7 near ""nope""`},
	{`SELECT value FROM flow WHERE nope = 1`, `Unexpected expression: 'nope' at line 1 position 29 near "nope"`},
	{`SELECT value FROM flow ORDER BY nope`, `Unexpected expression: 'nope' at line 1 position 32 near "nope"`},
	{`SELECT entity FROM flow GROUP BY entity HAVING nope > 1`, `Unexpected expression: 'nope' at line 1 position 47 near "nope"`},
	{`SELECT entity.nope FROM flow`, `Unexpected expression: 'entity.nope' at line 1 position 7 near "entity"`},
	{`SELECT f.nope FROM flow f`, `Unexpected expression: 'f.nope' at line 1 position 7 near "f"`},
	{`SELECT value`, `Unexpected expression: 'value' at line 1 position 7 near "value"`},
	{`SELECT x.value FROM flow`, `Invalid identifier 'x'`},
	{`SELECT x.entity.tags.site FROM flow`, `Invalid identifier 'x'`},
	{`SELECT disk.free.entity FROM disk.used`, `Invalid identifier 'disk.free'`},
	{`SELECT f.value FROM flow f JOIN temp t WHERE t9.value > 1`, `Invalid identifier 't9'`},
	{`SELECT x.* FROM flow`, `Invalid identifier 'x'`},
	{`SELECT t9.tags.* FROM flow`, `Invalid identifier 't9'`},

	// Ambiguous names.
	{`SELECT value FROM flow JOIN temp`, `Column 'value' ambiguously defined at line 1 position 7 near "value"`},
	{`SELECT f.value FROM flow f JOIN temp t ORDER BY entity`, `Column 'entity' ambiguously defined at line 1 position 48 near "entity"`},
	{`SELECT upper(metric.tags.a) FROM flow f JOIN temp t`, `Column 'metric.tags.a' ambiguously defined at line 1 position 13 near "metric"`},
	{`SELECT f.value FROM flow f JOIN temp t WHERE tags.a = 'x'`, `Column 'tags.a' ambiguously defined at line 1 position 45 near "tags"`},
	{`SELECT tags.* FROM flow f JOIN temp t`, `Tags list ambiguously defined at line 1 position 7 near "tags"`},
	{`SELECT metric.tags.* FROM flow f JOIN temp t`, `Metric tags list ambiguously defined at line 1 position 7 near "metric"`},

	// Conditions.
	{`SELECT * FROM flow WHERE 1`, `Invalid WHERE clause expression: 1 at line 1 position 25 near "1"`},
	{`SELECT * FROM flow WHERE value`, `Invalid WHERE clause expression: value at line 1 position 25 near "value"`},
	{`SELECT value FROM flow WHERE value > 1 AND 'text'`, `Invalid expression: 'value > 1 and 'text'' at line 1 position 29 near "value"`},
	{`SELECT value FROM flow WHERE entity = 'a' AND value > 1 OR value`, `Invalid expression: 'entity = 'a' and value > 1 or value' at line 1 position 29 near "entity"`},
	{`SELECT value FROM flow WHERE datetime > 'x'`, `Invalid date value: 'x' at line 1 position 40 near "'x'"`},
	{`SELECT value FROM flow WHERE datetime > '2024-01-01 00:00:00.5'`, `Invalid date value: '2024-01-01 00:00:00.5' at line 1 position 40 near "'2024-01-01 00:00:00.5'"`},
	{`SELECT value FROM flow WHERE value > 1 OR datetime > 'x'`, `Invalid date value: 'x' at line 1 position 53 near "'x'"`},
	{`SELECT value FROM flow WHERE time > 5000 AND time < 1000`, `Start date must be less than end date at line 1 position 36 near "5000"`},
	{`SELECT f.value FROM flow f JOIN temp t WHERE f.time < 1000 AND t.time > 5000`, ` Invalid date conditions at line 1 position 72 near "5000"`},
	{`SELECT value FROM flow WHERE tags.a NOT IN collection('nosuch')`, ``}, // found out when it runs

	// The metrics of atsd_series.
	{`SELECT * FROM atsd_series WHERE entity = 'pump-1'`, `Missing metric expression in the where clause at line 1 position 32 near "entity"`},
	{`SELECT value FROM atsd_series WHERE metric = 'flow' OR entity = 'b'`, `Invalid metric expression`},
	{`SELECT value FROM atsd_series WHERE metric LIKE 'zz%'`, `No matching metrics found`},
	{`SELECT value FROM atsd_series WHERE metric LIKE '%'`, `Too many metrics found. Maximum: 3`},

	// Groups.
	{`SELECT datetime, avg(value) FROM flow GROUP BY entity`, `Invalid grouping for column "datetime". Remove the column from the SELECT clause, apply an aggregation function to the column, or add the column to the GROUP BY clause. Error at line 1 position 7 near "datetime"`},
	{`SELECT entity, f.tags.a FROM flow f GROUP BY entity`, `Invalid grouping for column "f.tags.a". Remove the column from the SELECT clause, apply an aggregation function to the column, or add the column to the GROUP BY clause. Error at line 1 position 15 near "f"`},
	{`SELECT value + 1 FROM flow GROUP BY value + 2`, `Invalid grouping for column "value". Remove the column from the SELECT clause, apply an aggregation function to the column, or add the column to the GROUP BY clause. Error at line 1 position 7 near "value"`},
	{`SELECT entity, avg(value) FROM flow`, `SELECT expression cannot include both an aggregation function and a column not referenced in GROUP BY clause. at line 1 position 7 near "entity"`},
	{`SELECT avg(value) FROM flow GROUP BY PERIOD(1 DAY, entity.timeZone)`, `entity.timezone in period function requires grouping by entity. Include "entity" column in the GROUP BY clause. Error at line 1 position 51 near "entity"`},

	// Row numbers.
	{`SELECT value, row_number() FROM flow`, `row_number function requires WITH ROW_NUMBER clause. at line 1 position 14 near "row_number"`},
	{`SELECT value FROM flow WITH ROW_NUMBER(entity ORDER BY row_number()) > 1`, `row_number() function is not allowed inside row_number clause at line 1 position 55 near "row_number"`},
	{`SELECT avg(value) FROM flow WITH ROW_NUMBER(entity ORDER BY value) BETWEEN 5 MINUTE PRECEDING AND CURRENT ROW`, `row_number with time window requires ordering by time or datetime ascending at line 1 position 33 near "ROW_NUMBER"`},
	{`SELECT avg(value) FROM flow WITH ROW_NUMBER(entity ORDER BY time DESC) BETWEEN 5 MINUTE PRECEDING AND CURRENT ROW`, `row_number with time window requires ordering by time or datetime ascending at line 1 position 33 near "ROW_NUMBER"`},

	// Joins.
	{`SELECT a.value FROM flow a JOIN temp b ON a.value = b.value`, `Unexpected ON clause expression: 'a.value = b.value' at line 1 position 42 near "a"`},
	{`SELECT a.value FROM flow a JOIN temp b ON a.time = b.time AND a.entity > b.entity`, `Unexpected ON clause expression: 'a.entity > b.entity' at line 1 position 62 near "a"`},
	{`SELECT a.value FROM flow a JOIN temp b ON a.time = a.time`, `Unexpected ON clause expression: 'a.time = a.time' at line 1 position 42 near "a"`},
	{`SELECT a.value FROM flow a JOIN temp b ON a.time = b.time JOIN level c ON b.entity = c.entity`, `Unexpected ON clause expression: 'b.entity = c.entity' at line 1 position 74 near "b"`},
	{`SELECT a.value FROM flow a JOIN temp b ON x.time = b.time`, `Invalid identifier 'x'`},
	{`SELECT flow.value FROM flow JOIN flow`, `Self join is not supported (metric: flow)`},

	// Inline views.
	{`SELECT v FROM (SELECT 1 AS v)`, `Invalid subquery at line 1 position 15 near "SELECT"`},
	{`SELECT value FROM (SELECT value, value FROM flow)`, `Duplicate column name: value at line 1 position 33 near "value"`},
	{`SELECT value FROM (SELECT value, 'x' AS "tags" FROM flow)`, `Invalid expression for tags column at line 1 position 33 near "'x'"`},
	{`SELECT value FROM (SELECT value, 'x' AS "entity" FROM flow)`, `Invalid expression for entity column at line 1 position 33 near "'x'"`},
	{`SELECT value FROM (SELECT entity FROM flow)`, `Unexpected expression: 'value' at line 1 position 7 near "value"`},
	{`SELECT tags.a FROM (SELECT entity FROM flow)`, `Unexpected expression: 'tags.a' at line 1 position 7 near "tags"`},
	{`SELECT v FROM (SELECT nope AS v FROM flow)`, `Unexpected expression: 'nope' at line 1 position 22 near "nope"`},
}

func TestErrors(t *testing.T) {
	o := optionsOf(plant(t))
	o.LikeLimit = 3
	for _, test := range errorTests {
		_, err := planned(t, test.query, o)
		got := ""
		if err != nil {
			got = err.Error()
			var statement *ast.Error
			if !errors.As(err, &statement) {
				t.Errorf("%s: %T is not an error of the statement", test.query, err)
			}
		}
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.query, got, test.want)
		}
	}
}

// TestRefusals looks at errors whose texts are our own: there must be one.
func TestRefusals(t *testing.T) {
	o := optionsOf(plant(t))
	for _, query := range []string{
		`SELECT avg(max(value)) FROM flow`,
		`SELECT value FROM flow WHERE avg(value) > 1`,
		`SELECT avg(lag(value)) FROM flow`,
		`SELECT ema(0.5, value) FROM flow GROUP BY entity`,
		`SELECT * FROM flow GROUP BY entity`,
		`SELECT percentile(101, value) FROM flow`,
		`SELECT percentile(value, value) FROM flow`,
		`SELECT lag(value, -1) FROM flow`,
		`SELECT avg(value, value) FROM flow`,
		`SELECT nosuch(value) FROM flow`,
		`SELECT value FROM flow WITH TIMEZONE = 'Nowhere/X'`,
		`SELECT value FROM flow WITH WORKDAY_CALENDAR = 'nosuch'`,
		`SELECT value FROM flow WITH VERSION = 'x'`,
		`SELECT avg(value) FROM flow GROUP BY PERIOD(1 DAY, 'Nowhere/X')`,
		`SELECT avg(value) FROM flow GROUP BY PERIOD(1 DAY), PERIOD(1 HOUR)`,
		`SELECT avg(value) FROM flow GROUP BY PERIOD(1 DAY, END_TIME)`,
		`SELECT value FROM flow ORDER BY 2`,
		`SELECT value FROM flow ORDER BY 0`,
		`SELECT period(1 day) FROM flow`,
		`SELECT name FROM atsd_entity GROUP BY name, period(1 day)`,
		`SELECT name FROM atsd_entity WITH INTERPOLATE(1 HOUR)`,
		`SELECT name FROM atsd_entity WITH time > last_time`,
		`SELECT a.name FROM atsd_entity a JOIN flow f`,
		`SELECT entity FROM flow WHERE value = ?`,
		`SELECT key.* FROM atsd_message`,
		`SELECT value FROM flow WITH INTERPOLATE(1 HOUR, LINEAR, INNER, TRUE)`,
		`SELECT entity FROM flow HAVING entity = 'a'`,
		`SELECT entity, count(*) FROM flow GROUP BY entity HAVING count(*)`,
		`DELETE FROM atsd_entity WHERE name = 'x'`,
		`DELETE FROM atsd_series`,
	} {
		if q, err := planned(t, query, o); err == nil {
			t.Errorf("%s is planned:\n%s", query, strings.Join(Explain(q), "\n"))
		}
	}
}

func TestHints(t *testing.T) {
	o := optionsOf(plant(t))
	for query, want := range map[string]string{
		`SELECT valeu FROM flow`:                              `did you mean "value"?`,
		`SELECT entity.lable FROM flow`:                       `did you mean "entity.label"?`,
		`SELECT value AS speed FROM flow ORDER BY sped`:       `did you mean "speed"?`,
		`SELECT value FROM flwo`:                              `did you mean "flow"?`,
		`SELECT lable FROM atsd_metric`:                       `did you mean "label"?`,
		`SELECT uper(entity) FROM flow`:                       `did you mean "upper"?`,
		`SELECT avrg(value) FROM flow`:                        `did you mean "avg"?`,
		`SELECT completely_different FROM flow`:               ``,
		`SELECT avrage FROM (SELECT value average FROM flow)`: `did you mean "average"?`,
	} {
		_, err := planned(t, query, o)
		var statement *ast.Error
		if !errors.As(err, &statement) {
			t.Fatalf("%s: %v", query, err)
		}
		if statement.Hint != want {
			t.Errorf("%s: hint %q, want %q", query, statement.Hint, want)
		}
	}
}
