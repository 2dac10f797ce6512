package parse

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

const badTable = "Mismatched input or invalid table name. Identifiers containing special characters must be enclosed in double quotes."

// mistake is a statement and the whole text of its error: clients compare it.
type mistake struct{ sql, want string }

func checkMistakes(t *testing.T, mistakes []mistake) {
	t.Helper()
	for _, c := range mistakes {
		stmt, err := Parse(c.sql)
		if err == nil {
			t.Errorf("%s: no error, got %T", c.sql, stmt)
			continue
		}
		if _, ok := err.(*ast.Error); !ok {
			t.Errorf("%s: error of type %T", c.sql, err)
		}
		if err.Error() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, err, c.want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	checkMistakes(t, []mistake{
		// The catalogue of messages and the worked examples.
		{"SELECT value FROM flow; x", "Syntax error at line 1 position 22: token recognition error at: ';'"},
		{"SELECT value FROM flow; -- x", "Syntax error at line 1 position 22: token recognition error at: ';'"},
		{"SELECT value FROM flow;;", "Syntax error at line 1 position 22: token recognition error at: ';'"},
		{"SELECT value FROM flow WHERE value = 1 x;", "Syntax error at line 1 position 39: extraneous input 'x' expecting <EOF>"},
		{"SELECT value FROM flow WHERE value = 1 x", "Syntax error at line 1 position 39: extraneous input 'x' expecting <EOF>"},
		{"SELECT value FROM flow OFFSET 1", badTable},
		{"SELECT value FROM flow LIMIT -1", "Syntax error at line 1 position 29: extraneous input '-' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT -2, 5", "Syntax error at line 1 position 29: extraneous input '-' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT x, 5", "Syntax error at line 1 position 29: mismatched input 'x' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT 1 OFFSET -2", "Syntax error at line 1 position 38: extraneous input '-' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT 1 OFFSET x", "Syntax error at line 1 position 38: mismatched input 'x' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT", "Syntax error at line 1 position 28: mismatched input '<EOF>' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT ;", "Syntax error at line 1 position 29: mismatched input '<EOF>' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow LIMIT 1.5", "Syntax error at line 1 position 29: mismatched input '1.5' expecting INTEGER_LITERAL"},
		{"SELECT value FROM flow UNION SELECT value FROM temp", "Syntax error at line 1 position 29: extraneous input 'SELECT' expecting <EOF>"},
		{"SELECT value FROM flow WITH INTERPOLATE(DETAIL, LINEAR, INNER, FALSE, CALENDAR)",
			"Syntax error at line 1 position 68: no viable alternative at input 'WITH INTERPOLATE(DETAIL, LINEAR, INNER, FALSE,'"},
		{"SELECT value FROM flow\nWITH ROW_NUMBER(entity ORDER BY time) BETWEEN 1 HOUR PRECEDING AND 4 FOLLOWING",
			"Syntax error at line 2 position 67: no viable alternative at input 'WITH ROW_NUMBER(entity ORDER BY time) BETWEEN 1 HOUR PRECEDING AND 4'"},
		{"SELECT f.value FROM flow f JOIN temp t WITH INTERPOLATE(DETAIL, LINEAR, FULL)",
			`FULL boundary mode is not suitable for DETAILS interpolation at line 1 position 44 near "INTERPOLATE"`},
		{"SELECT 1 FROM m WHERE text LIKE 'a' ESCAPE 'ab'",
			`Invalid escape character: 'ab'. The escape character must be a character string of length 1 at line 1 position 43 near "'ab'"`},
		{"SELECT 1 FROM m WHERE text LIKE 'a' ESCAPE ''",
			`Invalid escape character: ''. The escape character must be a character string of length 1 at line 1 position 43 near "''"`},

		// Names of tables.
		{"SELECT 1 FROM 'm'", badTable},
		{"SELECT 1 FROM my-metric", badTable},
		{"SELECT 1 FROM m:cpu", badTable},
		{"SELECT 1 FROM cpu_1.5m", badTable},
		{"SELECT 1 FROM 5m", badTable},
		{"SELECT 1 FROM \"m", badTable},
		{"SELECT 1 FROM m BY", badTable},
		{"SELECT 1 FROM where", badTable},
		{"SELECT 1 FROM", "Syntax error at line 1 position 13: mismatched input '<EOF>' expecting IDENTIFIER"},
		{"SELECT 1 FROM m, n", "Syntax error at line 1 position 15: extraneous input ',' expecting <EOF>"},
		{"SELECT 1 FROM a LEFT JOIN b", "Syntax error at line 1 position 16: extraneous input 'LEFT' expecting JOIN"},
		{"SELECT 1 FROM a RIGHT OUTER JOIN b", "Syntax error at line 1 position 16: extraneous input 'RIGHT' expecting JOIN"},

		// Tokens.
		{"SELECT 'abc", "Syntax error at line 1 position 7: token recognition error at: ''abc'"},
		{"SELECT 1 /* a /* b */", "Syntax error at line 1 position 9: token recognition error at: '/* a /* b */'"},
		{"SELECT 1 |", "Syntax error at line 1 position 9: token recognition error at: '|'"},
		{"SELECT\n\t'é', é", `Syntax error at line 2 position 6: token recognition error at: 'é'`},
		{"SELECT 1 ! 2", "Syntax error at line 1 position 9: token recognition error at: '!'"},
	})
}

func TestMistakes(t *testing.T) {
	checkMistakes(t, []mistake{
		// Statements and expressions.
		{"", "Syntax error at line 1 position 0: mismatched input '<EOF>' expecting {SELECT, INSERT, UPDATE, DELETE}"},
		{"DROP TABLE m", "Syntax error at line 1 position 0: mismatched input 'DROP' expecting {SELECT, INSERT, UPDATE, DELETE}"},
		{"SELECT", "Syntax error at line 1 position 6: mismatched input '<EOF>' expecting EXPRESSION"},
		{"SELECT\nFROM m", `Syntax error at line 2 position 0: no viable alternative at input 'SELECT\nFROM'`},
		{"SELECT value FROM m WHERE value >", "Syntax error at line 1 position 33: mismatched input '<EOF>' expecting EXPRESSION"},
		{"SELECT value FROM m WHERE entity IN (SELECT entity FROM n)",
			"Syntax error at line 1 position 37: no viable alternative at input 'WHERE entity IN (SELECT'"},
		{"SELECT value FROM m WHERE entity IN 'a'", "Syntax error at line 1 position 36: mismatched input ''a'' expecting '('"},
		{"SELECT value FROM m WHERE entity IN tags.x", "Syntax error at line 1 position 36: mismatched input 'tags' expecting '('"},
		{"SELECT (1", "Syntax error at line 1 position 9: mismatched input '<EOF>' expecting ')'"},
		{"SELECT value AS day FROM m", "Syntax error at line 1 position 16: no viable alternative at input 'SELECT value AS day'"},
		{"SELECT CAST(1 AS thing)", "Syntax error at line 1 position 17: mismatched input 'thing' expecting {NUMBER, STRING, TIMESTAMP, INTEGER}"},
		{"SELECT 1 FROM m WHERE tags.* = 1", "Syntax error at line 1 position 27: no viable alternative at input 'WHERE tags.*'"},
		{"SELECT 1 FROM m GROUP entity", "Syntax error at line 1 position 22: mismatched input 'entity' expecting BY"},
		{"SELECT 1 FROM m GROUP BY PERIOD(5 MINUTES)", "Syntax error at line 1 position 34: no viable alternative at input 'GROUP BY PERIOD(5 MINUTES'"},
		{"SELECT 1 FROM m GROUP BY PERIOD(5 MINUTE, LINEAR, NEXT)", `PERIOD has more than one option of a kind at line 1 position 25 near "PERIOD"`},
		{"SELECT 1 FROM m GROUP BY PERIOD(1 DAY, later)", "Syntax error at line 1 position 39: no viable alternative at input 'GROUP BY PERIOD(1 DAY, later'"},
		{"SELECT 1 FROM m WITH ROW_NUMBER(a ORDER BY b) <> 1", "Syntax error at line 1 position 46: no viable alternative at input 'WITH ROW_NUMBER(a ORDER BY b) <>'"},
		{"SELECT 1 FROM m WITH ROW_NUMBER(a ORDER BY b) > -1", "Syntax error at line 1 position 48: extraneous input '-' expecting INTEGER_LITERAL"},
		{"SELECT 1 FROM m WITH time != last_time", "Syntax error at line 1 position 26: no viable alternative at input 'WITH time !='"},
		{"SELECT 1 FROM m GROUP BY PERIOD(0 MINUTE)", `The count of an interval must be greater than 0 at line 1 position 32 near "0"`},
		{"SELECT 1 FROM (m)", "Syntax error at line 1 position 15: mismatched input 'm' expecting SELECT"},
		{"SELECT 1 FROM m WITH TIMEZONE = 'a' WITH TIMEZONE = 'b'", "Syntax error at line 1 position 41: more than one TIMEZONE"},

		{"SELECT a" + strings.Repeat(".a", 100), "Syntax error at line 1 position 207: a name has more than 100 parts"},

		// Changes.
		{"INSERT INTO m (entity, value) VALUES ('e', 1, 2)", "IllegalArgumentException: 3 values for 2 columns"},
		{"INSERT INTO m (entity) VALUES ('e'", "Syntax error at line 1 position 34: mismatched input '<EOF>' expecting ')'"},
	})
}

func TestMissingValue(t *testing.T) {
	const list = "\n\nWas expecting one of:\n\n    \"+\"\n    \"-\"\n    \"?\"\n    \"@\"\n    \"@@\"\n    \"ACTION\"\n"
	const last = "    \"{ts\"\n    \"~\"\n    <K_DATETIMELITERAL>\n    <K_TIME_KEY_EXPR>\n    <S_CHAR_LITERAL>\n    <S_DOUBLE>\n    <S_HEX>\n" +
		"    <S_IDENTIFIER>\n    <S_LONG>\n    <S_QUOTED_IDENTIFIER>\n"
	for sql, want := range map[string]string{
		"INSERT INTO m (a, b) VALUES (1, )": "net.sf.jsqlparser.parser.ParseException: Encountered unexpected token: \")\" \")\"\n    at line 1, column 33." + list,
		"INSERT INTO m (a, b) VALUES (, 1)": "net.sf.jsqlparser.parser.ParseException: Encountered unexpected token: \",\" \",\"\n    at line 1, column 30." + list,
		"UPDATE m SET a=1, b=":              "net.sf.jsqlparser.parser.ParseException: Encountered unexpected token:<EOF>\n    at line 1, column 20." + list,
	} {
		_, err := Parse(sql)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), last) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
