package parse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// TestNesting offers constructs that nest a million times. They must fail with a sentence, not with the stack.
func TestNesting(t *testing.T) {
	const n = 1_000_000
	const want = "more than 500 levels of nesting"
	for name, sql := range map[string]string{
		"parentheses": "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"signs":       "SELECT " + strings.Repeat("- ", n) + "1",
		"not":         "SELECT " + strings.Repeat("NOT ", n) + "1",
		"case":        "SELECT " + strings.Repeat("CASE WHEN ", n),
		"case else":   "SELECT " + strings.Repeat("CASE WHEN 1 THEN 1 ELSE ", n),
		"simple case": "SELECT " + strings.Repeat("CASE ", n),
		"calls":       "SELECT " + strings.Repeat("abs(", n),
		"casts":       "SELECT " + strings.Repeat("CAST(", n),
		"lists":       "SELECT " + strings.Repeat("1 IN (", n),
		"views":       strings.Repeat("SELECT 1 FROM (", n),
		"between":     strings.Repeat("SELECT 1 FROM m WHERE time BETWEEN (", n),
	} {
		if _, err := Parse(sql); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	if _, err := Parse("SELECT " + strings.Repeat("(", 490) + "1" + strings.Repeat(")", 490)); err != nil {
		t.Errorf("490 parentheses: %v", err)
	}
	if _, err := Parse("SELECT " + strings.Repeat("/*", n) + strings.Repeat("*/", n) + "1"); err != nil {
		t.Errorf("nested comments: %v", err)
	}
}

func height(e ast.Expr) int {
	if b, ok := e.(*ast.Binary); ok {
		return 1 + max(height(b.L), height(b.R))
	}
	return 1
}

func TestChains(t *testing.T) {
	const n = 100_000
	for _, op := range []string{" AND ", " OR "} {
		e := parseExpr(t, "a = 1"+strings.Repeat(op+"b", n-1))
		if h := height(e); h > 20 {
			t.Errorf("a chain of %d%s is a tree of height %d", n, op, h)
		}
		if got := strings.Count(ast.Text(e), "b"); got != n-1 {
			t.Errorf("the text of a chain of%shas %d of its terms, want %d", op, got, n-1)
		}
	}
	for _, op := range []string{" + ", " * ", " = "} {
		if _, err := Parse("SELECT 1" + strings.Repeat(op+"1", 1900)); err != nil {
			t.Errorf("1,900%s: %v", op, err)
		}
		_, err := Parse("SELECT 1" + strings.Repeat(op+"1", n))
		if err == nil || !strings.Contains(err.Error(), "more than 2000 operators in a row") {
			t.Errorf("%d%s: %.200v", n, op, err)
		}
	}
	// Operators that are nested into the operands of others count as well.
	sql := "SELECT 1"
	for range 400 {
		sql = "SELECT (" + strings.TrimPrefix(sql, "SELECT ") + strings.Repeat(" + 1", 10) + ")"
	}
	if _, err := Parse(sql); err == nil || !strings.Contains(err.Error(), "more than 2000 operators in a row") {
		t.Errorf("nested sums: %.200v", err)
	}
}

// TestLarge reads texts of half a megabyte. What is linear takes some hundredths of a second; anything quadratic takes minutes.
func TestLarge(t *testing.T) {
	const size = 1 << 19
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	for name, sql := range map[string]string{
		"columns":            "SELECT 1" + fill(", value") + " FROM m",
		"aliases":            "SELECT 1" + fill(", tags.'a' x") + " FROM m",
		"list":               "SELECT 1 FROM m WHERE entity IN ('x'" + fill(", 'x'") + ")",
		"text":               "SELECT '" + fill("''") + "'",
		"dots":               "SELECT a" + fill(".a") + " FROM m",
		"star":               "SELECT a" + fill(".a") + ".* FROM m",
		"comments":           "SELECT" + fill("/**/") + "1",
		"lines":              "SELECT" + fill("\n") + "1",
		"line comments":      "SELECT" + fill("--\n") + "1",
		"conjunction":        "SELECT 1 FROM m WHERE a" + fill(" AND a"),
		"whens":              "SELECT CASE" + fill(" WHEN a THEN 1") + " END",
		"alternatives":       "SELECT CASE a WHEN 1" + fill(" OR 1") + " THEN 1 END",
		"joins":              "SELECT 1 FROM m" + fill(" JOIN m"),
		"values":             "INSERT INTO m (a" + fill(", a") + ") VALUES (1)",
		"unclosed text":      "SELECT '" + fill("x"),
		"unclosed comments":  "SELECT " + fill("/* "),
		"many open comments": "SELECT 1" + fill(" /**/ ") + "/*",
		"unfinished":         "SELECT 1" + fill(", value") + " , ,",
		"period":             "SELECT a" + fill(".a") + ".PERIOD(1 DAY)",
		"wide":               "SELECT '" + fill("é") + "', é",
	} {
		start := time.Now()
		_, err := Parse(sql)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if err != nil && len(err.Error()) > 3*maxQuote {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	var columns []string
	for i := range 10_000 {
		columns = append(columns, fmt.Sprintf("avg(value + %d) AS c%d", i, i))
	}
	if s := parseSelect(t, "SELECT "+strings.Join(columns, ", ")+" FROM m"); len(s.Items) != 10_000 {
		t.Errorf("10,000 columns became %d", len(s.Items))
	}
}

func BenchmarkParse(b *testing.B) {
	const sql = "SELECT entity, datetime, avg(value), tags.* FROM \"flow\" t WHERE entity IN ('a', 'b') AND datetime >= '2024-03-04T10:00:00Z' AND value * 2 > 10 " +
		"GROUP BY entity, PERIOD(5 MINUTE, LINEAR) ORDER BY datetime DESC LIMIT 10"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(sql); err != nil {
			b.Fatal(err)
		}
	}
}
