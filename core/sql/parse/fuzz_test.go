package parse

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// FuzzParse checks that nothing panics, that every error is the statement's, and that the text of an expression, read again, has the same text and key.
func FuzzParse(f *testing.F) {
	for _, sql := range accepted(f) {
		f.Add(sql)
	}
	f.Add("SELECT -(-1) - - -1, NOT NOT a, (a = b) = c, a = (b = c), a - (b - c), 'a''\"\"\\\\', 1e5, CASE a WHEN (1 OR 2) OR 3 THEN 4 END")
	f.Fuzz(func(t *testing.T, sql string) {
		stmt, err := Parse(sql)
		if err != nil {
			if _, ok := err.(*ast.Error); !ok {
				t.Fatalf("error of type %T: %v", err, err)
			}
			return
		}
		s, ok := stmt.(*ast.Select)
		if !ok {
			return
		}
		for _, item := range s.Items {
			text, key := ast.Text(item.Expr), ast.Key(item.Expr)
			// A text has no quotes around names and no subqueries: then it is for eyes only.
			if strings.Contains(sql, `"`) || strings.Contains(sql, ".'") || strings.Contains(strings.ToLower(strings.Join(strings.Fields(text), "")), "(select...)") {
				continue
			}
			again, err := Parse("SELECT " + text)
			if err != nil {
				t.Fatalf("%q is the text of an expression of %q, but: %v", text, sql, err)
			}
			e := again.(*ast.Select).Items[0].Expr
			if got := ast.Text(e); got != text {
				t.Fatalf("%q reads back as %q", text, got)
			}
			if got := ast.Key(e); got != key {
				t.Fatalf("the key of %q is %q, read back %q", text, key, got)
			}
		}
	})
}
