package plan

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/parse"
)

// FuzzBind plans whatever can be parsed: it never panics, what it refuses is the fault of the statement, and the expressions of a plan read columns that are there.
func FuzzBind(f *testing.F) {
	for _, test := range errorTests {
		f.Add(test.query, false)
	}
	for _, query := range []string{
		`SELECT entity, tags.*, max(value) FROM level WHERE entity LIKE 'p%' GROUP BY entity, tags, PERIOD(1 HOUR, LINEAR) HAVING max(value) > 3 ORDER BY 1 DESC LIMIT 3`,
		`SELECT f.value, LAG(t.value) FROM flow f OUTER JOIN temp t WHERE f.entity = 'a' OR t.value > 1 WITH ROW_NUMBER(f.entity ORDER BY time) > 0`,
		`SELECT tags, time, entity.label FROM (SELECT entity, tags.a, datetime FROM (SELECT * FROM level)) WHERE time > now - day`,
		`SELECT a.v FROM (SELECT value v, time, entity FROM flow) a JOIN (SELECT value v, time, entity FROM temp) b ON a.entity = b.entity`,
		`SELECT value FROM flow WHERE value > LAG(value) AND time BETWEEN (SELECT time FROM temp) WITH time > last_time - hour, INTERPOLATE(1 HOUR)`,
		`SELECT row_number(), avg(value) FROM flow WITH ROW_NUMBER(entity ORDER BY time) BETWEEN 1 HOUR PRECEDING AND CURRENT ROW`,
		`SELECT DISTINCT ?, case entity when 'a' or ? then 1 end FROM atsd_series WHERE metric IN metrics('pump-1') ORDER BY interval_number()`,
		`SELECT key.a, tags.b FROM atsd_property WHERE type = 'disk' AND entity.tags.x = 'y'`,
		`SELECT tags.*, count(*) FROM atsd_series WHERE metric IN ('level', 'flow') GROUP BY metric, tags`,
		`SELECT v.entity.*, v.metric.tags.*, v.tags.* FROM (SELECT entity.tags, * FROM (SELECT * FROM level)) v WHERE v.entity = 'pump-1' AND v.tags.tank LIKE 'a%'`,
		`SELECT tags.* FROM (SELECT name, tags FROM atsd_entity WHERE name = ?) WHERE tags.site = 'x'`,
		`DELETE FROM atsd_series WHERE metric LIKE 'f%' AND tags.a IS NULL`,
	} {
		f.Add(query, true)
	}
	store := plant(f)
	f.Fuzz(func(t *testing.T, text string, meta bool) {
		statement, err := parse.Parse(text)
		if err != nil {
			t.Skip()
		}
		o := optionsOf(store)
		o.Meta = meta
		var q *Query
		switch s := statement.(type) {
		case *ast.Select:
			q, err = Bind(context.Background(), s, o)
		case *ast.Delete:
			q, err = BindDelete(context.Background(), s, o)
		default:
			t.Skip()
		}
		var known *ast.Error
		switch {
		case err == nil:
			Explain(q)
			checkWidths(t, q)
		case !errors.As(err, &known):
			t.Fatalf("%s: %v is not an error of the statement", text, err)
		}
	})
}
