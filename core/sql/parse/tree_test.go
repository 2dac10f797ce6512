package parse

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

func parseSelect(t *testing.T, sql string) *ast.Select {
	t.Helper()
	stmt, err := Parse(sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	s, ok := stmt.(*ast.Select)
	if !ok {
		t.Fatalf("%s: %T", sql, stmt)
	}
	return s
}

func parseExpr(t *testing.T, text string) ast.Expr {
	t.Helper()
	return parseSelect(t, "SELECT "+text).Items[0].Expr
}

// shape shows how a tree hangs together.
func shape(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Binary:
		return "(" + shape(e.L) + " " + e.Op + " " + shape(e.R) + ")"
	case *ast.Unary:
		return "(" + e.Op + shape(e.X) + ")"
	case *ast.Not:
		return "(not " + shape(e.X) + ")"
	case *ast.Between:
		return "(" + shape(e.X) + " between " + shape(e.Low) + " and " + shape(e.High) + ")"
	case *ast.IsNull:
		return "(" + shape(e.X) + " is null)"
	case *ast.Like:
		return "(" + shape(e.X) + " like " + shape(e.Pattern) + ")"
	case *ast.In:
		all := make([]string, len(e.List))
		for i, x := range e.List {
			all[i] = shape(x)
		}
		return "(" + shape(e.X) + " in [" + strings.Join(all, " ") + "])"
	case *ast.Case:
		s := "case"
		if e.X != nil {
			s += " " + shape(e.X)
		}
		for _, w := range e.Whens {
			s += " when"
			for _, c := range w.Conditions {
				s += " " + shape(c)
			}
			s += " then " + shape(w.Then)
		}
		if e.Else != nil {
			s += " else " + shape(e.Else)
		}
		return s + " end"
	case *ast.Literal:
		switch e.Kind {
		case ast.String:
			return e.Text
		case ast.Integer:
			return fmt.Sprint(e.Int)
		}
		return e.Written
	}
	return ast.Text(e)
}

func TestPrecedence(t *testing.T) {
	for text, want := range map[string]string{
		"2 + 3 * 4":                    "(2 + (3 * 4))",
		"8 - 3 - 2":                    "((8 - 3) - 2)",
		"8 - (3 - 2)":                  "(8 - (3 - 2))",
		"8 / 2 % 3 * -4":               "(((8 / 2) % 3) * (-4))",
		"- - 3":                        "(-(-3))",
		"-+3 - -4":                     "((-(+3)) - (-4))",
		"-9223372036854775808":         "-9223372036854775808",
		"-(9223372036854775808)":       "(-9223372036854775808)",
		"a = 1 OR b = 2 AND NOT c = 3": "((a = 1) or ((b = 2) and (not (c = 3))))",
		"NOT NOT a = 1":                "(not (not (a = 1)))",
		"NOT a IS NULL AND b":          "((not (a is null)) and b)",
		"1 + 1 BETWEEN 1 AND 1 + 2":    "((1 + 1) between 1 and (1 + 2))",
		"x BETWEEN 1 AND 2 AND y":      "((x between 1 and 2) and y)",
		"1 = 1 = TRUE":                 "((1 = 1) = TRUE)",
		"1 <> 1 OR NULL = 1":           "((1 <> 1) or (NULL = 1))",
		"1 != 2":                       "(1 <> 2)",
		"CASE 3 WHEN 1 OR 3 THEN 'h' ELSE 'm' END":  "case 3 when 1 3 then h else m end",
		"CASE x WHEN (1 OR 3) THEN 'h' END":         "case x when (1 or 3) then h end",
		"CASE WHEN a OR b THEN 1 WHEN c THEN 2 END": "case when (a or b) then 1 when c then 2 end",
		"a LIKE 'x' || b":                           "",
		"x IN (1, 2 + 3, (4))":                      "(x in [1 (2 + 3) 4])",
		"a AND b AND c AND d AND e":                 "(((a and b) and c) and (d and e))",
		`'it''s "" \\ \n \'`:                        `it's " \ \n \`,
		"now - 2*day + minute":                      "((now - (2 * day)) + minute)",
		"hour(time) + day(time)":                    "(hour(time) + day(time))",
	} {
		if want == "" {
			if _, err := Parse("SELECT " + text); err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if got := shape(parseExpr(t, text)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestText compares labels.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"AVG( value )":            "avg(value)",
		"Percentile(75,value)":    "percentile(75, value)",
		"MAX(value)-MIN(value)":   "max(value) - min(value)",
		"value*100":               "value * 100",
		"1/0":                     "1 / 0",
		"COUNT( * )":              "count(*)",
		"count(DISTINCT  entity)": "count(distinct entity)",
		"CASE WHEN value>0 THEN 'a' ELSE 'b' END": "case when value > 0 then 'a' else 'b' end",
		"case value when 1 or 2 then null end":    "case value when 1 or 2 then null end",
		"Date_Format(time,'yyyy')":                "date_format(time, 'yyyy')",
		"'it''s'":                                 "'it''s'",
		"1.50":                                    "1.50",
		"- Value":                                 "-Value",
		"- - 1":                                   "- -1",
		"-(-1)":                                   "-(-1)",
		`tags."a""b"`:                             `tags.a"b`,
		"tags.'tag-1'":                            "tags.tag-1",
		`"flow-1".Value`:                          "flow-1.Value",
		"entity.tags.step":                        "entity.tags.step",
		"(a+b)*c":                                 "(a + b) * c",
		"((a))":                                   "((a))",
		"a AND (b AND c) OR d":                    "a and (b and c) or d",
		"a and b and c and d":                     "a and b and c and d",
		"a!=1":                                    "a != 1",
		"a <>1":                                   "a <> 1",
		"NOT a":                                   "not a",
		"a NOT LIKE 'x%' ESCAPE '$'":              "a not like 'x%' escape '$'",
		"a Regex 'x'":                             "a regex 'x'",
		"a IN(1,2)":                               "a in (1, 2)",
		"a NOT IN Collection('x')":                "a not in collection('x')",
		"'g' IN entity.groups":                    "'g' in entity.groups",
		"a IS NOT NULL":                           "a is not null",
		"a BETWEEN 1 EXCL AND 2":                  "a between 1 excl and 2",
		"CAST(a AS Number)":                       "cast(a as number)",
		"CAST(a)":                                 "cast(a)",
		"EXTRACT(Month FROM datetime, 'PST')":     "extract(month from datetime, 'PST')",
		"date_round(time, 15 MINUTE)":             "date_round(time, 15 minute)",
		"DATEADD(MONTH, -1, time)":                "dateadd(month, -1, time)",
		"stddev(value, POPULATION)":               "stddev(value, population)",
		"Now - 2*Day":                             "now - 2 * day",
		"CURRENT_TIMESTAMP - 1*DAY":               "current_timestamp - 1 * day",
		"DBTIMEZONE":                              "dbtimezone",
		"PI()":                                    "pi()",
		"PERIOD(5 Minute)":                        "period(5 minute)",
		"t.PERIOD(1 HOUR, END_TIME, VALUE -1, 'CET', EXTEND)": "t.period(1 hour, value -1, extend, end_time, 'CET')",
		"NULL":                                 "null",
		"TRUE":                                 "true",
		"?":                                    "?",
		"30e4":                                 "30e4",
		"metric.Interpolate":                   "metric.Interpolate",
		"isnull(a,entity.timeZone)":            "isnull(a, entity.timeZone)",
		"endtime(current_day,'Asia/Tokyo')":    "endtime(current_day, 'Asia/Tokyo')",
		"lag( value , 1 , 0 )":                 "lag(value, 1, 0)",
		"/* c */ a -- d\n + /* e /* f */ */ b": "a + b",
		"is_workday(time, 'usa', entity.timezone) AND value IS NULL": "is_workday(time, 'usa', entity.timezone) and value is null",
	} {
		if got := ast.Text(parseExpr(t, text)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	for _, same := range [][2]string{
		{"(a + B)", "A+b"},
		{"tags.X", `TAGS."x"`},
		{"a != 1", "a <> 01"},
		{"a AND (b AND c)", "(a and b) and c"},
		{"cast(a)", "CAST(a AS number)"},
		{"((a * b)) + c", "a * b + c"},
		{"1.50", "1.5"},
		{"nan", "NaN"},
	} {
		if a, b := ast.Key(parseExpr(t, same[0])), ast.Key(parseExpr(t, same[1])); a != b {
			t.Errorf("%s has the key %s, %s has %s", same[0], a, same[1], b)
		}
	}
	for _, different := range [][2]string{
		{"'a'", "'A'"},
		{"a - (b - c)", "a - b - c"},
		{"a AND (b OR c)", "a AND b OR c"},
		{"(a = b) IS NULL", "a = (b IS NULL)"},
		{"NOT (a AND b)", "NOT a AND b"},
		{"-(a + b)", "-a + b"},
	} {
		if a, b := ast.Key(parseExpr(t, different[0])), ast.Key(parseExpr(t, different[1])); a == b {
			t.Errorf("%s and %s have the same key %s", different[0], different[1], a)
		}
	}
}

func TestLiterals(t *testing.T) {
	for text, want := range map[string]ast.Literal{
		"12":                  {Kind: ast.Integer, Int: 12, Float: 12},
		"9223372036854775807": {Kind: ast.Integer, Int: math.MaxInt64, Float: math.MaxInt64},
		"9223372036854775808": {Kind: ast.Number, Float: 9223372036854775808},
		"12.5":                {Kind: ast.Number, Float: 12.5},
		"30e4":                {Kind: ast.Number, Float: 300000},
		"5E-2":                {Kind: ast.Number, Float: 0.05},
		"1e999":               {Kind: ast.Number, Float: math.Inf(1)},
		"NaN":                 {Kind: ast.NaN, Float: math.NaN()},
		"null":                {Kind: ast.Null},
		"True":                {Kind: ast.True},
		"FALSE":               {Kind: ast.False},
		"'2024'":              {Kind: ast.String, Text: "2024"},
	} {
		want.Start = ast.Start{Line: 1, Column: 7, Token: text}
		want.Written = text
		if diff := cmp.Diff(ast.Expr(&want), parseExpr(t, text), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestStarts checks where nodes say that they start.
func TestStarts(t *testing.T) {
	s := parseSelect(t, "SELECT 'é',\n (tags.\"a b\" + 1) * 2 FROM m\nWHERE NOT (value) > ROW_NUMBER() AND a")
	product := s.Items[1].Expr.(*ast.Binary)
	condition := s.Where.(*ast.Binary)
	for _, c := range []struct {
		node ast.Expr
		want string
	}{
		{s.Items[0].Expr, ` at line 1 position 7 near "'é'"`},
		{product, ` at line 2 position 1 near "("`},
		{product.L, ` at line 2 position 2 near "tags"`},
		{product.R, ` at line 2 position 20 near "2"`},
		{condition, ` at line 3 position 6 near "NOT"`},
		{condition.L.(*ast.Not).X.(*ast.Binary).L, ` at line 3 position 11 near "value"`},
		{condition.L.(*ast.Not).X.(*ast.Binary).R, ` at line 3 position 20 near "ROW_NUMBER"`},
	} {
		if got := c.node.At().String(); got != c.want {
			t.Errorf("%s: got%s, want%s", ast.Text(c.node), got, c.want)
		}
	}
	if got := parseSelect(t, `SELECT "nope" FROM flow`).Items[0].Expr.At().String(); got != ` at line 1 position 7 near ""nope""` {
		t.Errorf("quoted name:%s", got)
	}
}
