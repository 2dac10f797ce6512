package parse

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// withoutPlaces compares nodes by what they say, not by where they stand.
var withoutPlaces = cmp.Options{cmpopts.IgnoreTypes(ast.Start{}), cmpopts.EquateNaNs()}

func column(parts ...string) *ast.Name {
	n := &ast.Name{}
	for _, p := range parts {
		n.Parts = append(n.Parts, ast.Ident{Text: p})
	}
	return n
}

func number(n int64, written string) *ast.Literal {
	return &ast.Literal{Kind: ast.Integer, Int: n, Float: float64(n), Written: written}
}

func str(s string) *ast.Literal {
	return &ast.Literal{Kind: ast.String, Text: s, Written: "'" + s + "'"}
}

func TestSelect(t *testing.T) {
	got := parseSelect(t, `SELECT DISTINCT tags.*, t.entity.tags.*, *, value v, max(value) AS "m" FROM disk.used AS t
		JOIN USING ENTITY "a""b" FULL OUTER JOIN (SELECT 1) x ON (x.time = t.time AND x.entity = t.entity)
		WHERE a GROUP BY entity, PERIOD(5 MINUTE, 'CET', VALUE NaN) HAVING b ORDER BY 2 DESC, time LIMIT 10, 20 OPTION (ROW_MEMORY_THRESHOLD 1)`)
	want := &ast.Select{
		Distinct: true,
		Items: []ast.Item{
			{Expr: &ast.Star{Parts: []ast.Ident{{Text: "tags"}}}},
			{Expr: &ast.Star{Parts: []ast.Ident{{Text: "t"}, {Text: "entity"}, {Text: "tags"}}}},
			{Expr: &ast.Star{}},
			{Expr: column("value"), Alias: &ast.Ident{Text: "v"}},
			{Expr: &ast.Call{Name: "max", Args: []ast.Expr{column("value")}}, Alias: &ast.Ident{Text: "m", Quoted: true}},
		},
		From: &ast.Source{Table: "disk.used", Alias: &ast.Ident{Text: "t"}},
		Joins: []ast.Join{
			{UsingEntity: true, Source: &ast.Source{Table: `a"b`, Quoted: true}},
			{
				Outer:  true,
				Source: &ast.Source{View: &ast.Select{Items: []ast.Item{{Expr: number(1, "1")}}}, Alias: &ast.Ident{Text: "x"}},
				On: []ast.Expr{
					&ast.Binary{Op: "=", Written: "=", L: column("x", "time"), R: column("t", "time")},
					&ast.Binary{Op: "=", Written: "=", L: column("x", "entity"), R: column("t", "entity")},
				},
			},
		},
		Where: column("a"),
		GroupBy: []ast.Expr{
			column("entity"),
			&ast.Period{Step: ast.Interval{Count: 5, Unit: "minute"}, Options: true, Zone: str("CET"), Fill: ast.FillValue, Number: math.NaN()},
		},
		Having:  column("b"),
		OrderBy: []ast.OrderItem{{Expr: number(2, "2"), Desc: true}, {Expr: column("time")}},
		Limit:   &ast.Limit{Skip: 10, Count: 20},
	}
	if diff := cmp.Diff(want, got, withoutPlaces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLimit(t *testing.T) {
	for text, want := range map[string]ast.Limit{
		"LIMIT 3":          {Count: 3},
		"LIMIT 1, 2":       {Skip: 1, Count: 2},
		"LIMIT 2 OFFSET 1": {Skip: 1, Count: 2},
		"limit 0":          {},
	} {
		if got := *parseSelect(t, "SELECT 1 "+text).Limit; got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func TestWith(t *testing.T) {
	got := parseSelect(t, `SELECT 1 FROM m WITH ROW_NUMBER(entity ORDER BY time) BETWEEN 5 MINUTE PRECEDING AND CURRENT ROW, TIMEZONE = 'CET'
		WITH time >= last_time - 2*HOUR WITH last_time < time GROUP BY a WITH ROW_NUMBER(a ORDER BY b DESC) <= 3 WITH WORKDAY_CALENDAR = "usa", VERSION = 5`).With
	want := ast.With{
		RowNumbers: []ast.RowNumber{
			{Partition: []ast.Expr{column("entity")}, Order: []ast.OrderItem{{Expr: column("time")}}, Preceding: &ast.Interval{Count: 5, Unit: "minute"}},
			{Partition: []ast.Expr{column("a")}, Order: []ast.OrderItem{{Expr: column("b"), Desc: true}}, Op: "<=", Number: 3, Grouped: true},
		},
		LastTime: []ast.LastTime{{Op: ">=", Offset: &ast.Interval{Count: -2, Unit: "hour"}}, {Op: ">"}},
		TimeZone: &ast.Ident{Text: "CET", Quoted: true},
		Calendar: &ast.Ident{Text: "usa", Quoted: true},
		Version:  number(5, "5"),
	}
	if diff := cmp.Diff(want, got, withoutPlaces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rows := parseSelect(t, "SELECT 1 FROM m WITH ROW_NUMBER(entity ORDER BY time) BETWEEN 2 PRECEDING AND CURRENT ROW").RowNumbers[0]
	if diff := cmp.Diff(&ast.Interval{Count: 2}, rows.Preceding, withoutPlaces); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestInterpolate(t *testing.T) {
	minute := ast.Interval{Count: 1, Unit: "minute"}
	for text, want := range map[string]ast.Interpolate{
		"1 MINUTE":                                 {Step: minute, Function: "auto", Boundary: "inner"},
		"1 minute, LINEAR":                         {Step: minute, Function: "linear", Boundary: "inner"},
		"1 MINUTE, PREVIOUS, OUTER, TRUE":          {Step: minute, Function: "previous", Boundary: "outer", Fill: ast.FillExtend},
		"1 MINUTE, AUTO, FULL, EXTEND":             {Step: minute, Function: "auto", Boundary: "full", Fill: ast.FillExtend},
		"1 MINUTE, AUTO, INNER, YES":               {Step: minute, Function: "auto", Boundary: "inner", Fill: ast.FillExtend},
		"1 MINUTE, AUTO, INNER, NO":                {Step: minute, Function: "auto", Boundary: "inner"},
		"1 MINUTE, AUTO, INNER, NaN":               {Step: minute, Function: "auto", Boundary: "inner", Fill: ast.FillValue, Number: math.NaN()},
		"1 MINUTE, AUTO, INNER, VALUE NaN":         {Step: minute, Function: "auto", Boundary: "inner", Fill: ast.FillValue, Number: math.NaN()},
		"1 MINUTE, AUTO, INNER, VALUE -1.5":        {Step: minute, Function: "auto", Boundary: "inner", Fill: ast.FillValue, Number: -1.5},
		"DETAIL":                                   {Detail: true, Function: "auto", Boundary: "inner"},
		"DETAIL, LINEAR, OUTER, VALUE 0":           {Detail: true, Function: "linear", Boundary: "outer", Fill: ast.FillValue},
		"1 MINUTE, AUTO, INNER, FALSE, START_TIME": {Step: minute, Function: "auto", Boundary: "inner", Align: ast.AlignStart},
		"1 MINUTE, AUTO, INNER, FALSE, CALENDAR, metric.timeZone": {Step: minute, Function: "auto", Boundary: "inner",
			Zone: column("metric", "timeZone")},
		"1 MINUTE, AUTO, INNER, FALSE, CALENDAR, 'CET'": {Step: minute, Function: "auto", Boundary: "inner", Zone: str("CET")},
	} {
		got := parseSelect(t, "SELECT 1 FROM m WITH INTERPOLATE("+text+")").Interpolate
		if diff := cmp.Diff(&want, got, withoutPlaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestPredicates(t *testing.T) {
	for text, want := range map[string]ast.Expr{
		"a NOT LIKE 'x' ESCAPE '!'": &ast.Like{Not: true, X: column("a"), Pattern: str("x"), Escape: str("!")},
		"a REGEX 'x'":               &ast.Regex{X: column("a"), Pattern: str("x")},
		"a IN metrics('e')":         &ast.In{X: column("a"), Set: &ast.Call{Name: "metrics", Args: []ast.Expr{str("e")}}},
		"'g' NOT IN entity.groups":  &ast.In{Not: true, X: str("g"), Set: column("entity", "groups")},
		"a IS NOT NULL":             &ast.IsNull{Not: true, X: column("a")},
		"a BETWEEN 1 EXCL AND 2 INCL": &ast.Between{X: column("a"), Low: number(1, "1"), High: number(2, "2"),
			LowExcl: true},
		"a NOT BETWEEN 1 AND 2 EXCL": &ast.Between{Not: true, X: column("a"), Low: number(1, "1"), High: number(2, "2"), HighExcl: true},
		"a BETWEEN (SELECT 1)":       &ast.Between{X: column("a"), View: &ast.Select{Items: []ast.Item{{Expr: number(1, "1")}}}},
		"a BETWEEN (1) AND (2)":      &ast.Between{X: column("a"), Low: number(1, "1"), High: number(2, "2")},
	} {
		if diff := cmp.Diff(want, parseExpr(t, text), withoutPlaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestModify(t *testing.T) {
	for sql, want := range map[string]ast.Statement{
		"INSERT INTO a.b (entity, tags.x, time) VALUES ('e', -1);": &ast.Insert{Table: "a.b", Set: []ast.Assignment{
			{Column: column("entity"), Value: str("e")}, {Column: column("tags", "x"), Value: &ast.Unary{Op: "-", X: number(1, "1")}}, {Column: column("time")}}},
		"UPDATE m SET value=1 WHERE a = 2": &ast.Update{Table: "m", Set: []ast.Assignment{{Column: column("value"), Value: number(1, "1")}},
			Where: &ast.Binary{Op: "=", Written: "=", L: column("a"), R: number(2, "2")}},
		"DELETE FROM m WHERE a": &ast.Delete{Table: &ast.Source{Table: "m"}, Where: column("a")},
		"EXPLAIN SELECT 1":      &ast.Explain{Select: &ast.Select{Items: []ast.Item{{Expr: number(1, "1")}}}},
	} {
		got, err := Parse(sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if diff := cmp.Diff(want, got, withoutPlaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sql, diff)
		}
	}
}

// accepted are statements of the contract, one a line.
func accepted(tb testing.TB) []string {
	data, err := os.ReadFile("testdata/accepted.sql")
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestAccepted(t *testing.T) {
	for _, sql := range accepted(t) {
		if _, err := Parse(sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
