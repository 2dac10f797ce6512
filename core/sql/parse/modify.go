package parse

import (
	"fmt"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

func (p *parser) insert() ast.Statement {
	s := &ast.Insert{Start: p.at()}
	p.words("insert", "into")
	s.Table, _ = p.table()
	p.expect("(")
	for _, column := range list(p, p.column) {
		s.Set = append(s.Set, ast.Assignment{Column: column})
	}
	p.words(")", "values", "(")
	for i := 0; ; i++ {
		v := p.value()
		if i < len(s.Set) {
			s.Set[i].Value = v
		}
		if p.accept(",") {
			continue
		}
		if i >= len(s.Set) && p.err == nil {
			p.fail(ast.Errorf("IllegalArgumentException: %d values for %d columns", i+1, len(s.Set)))
		}
		break
	}
	p.expect(")")
	return s
}

func (p *parser) update() ast.Statement {
	s := &ast.Update{Start: p.at()}
	p.next()
	s.Table, _ = p.table()
	p.expect("set")
	s.Set = list(p, func() ast.Assignment {
		a := ast.Assignment{Column: p.column()}
		p.expect("=")
		a.Value = p.value()
		return a
	})
	if p.begin("where") {
		s.Where = p.expr()
	}
	return s
}

func (p *parser) delete() ast.Statement {
	d := &ast.Delete{Start: p.at()}
	p.words("delete", "from")
	d.Table = &ast.Source{Start: p.at()}
	d.Table.Table, d.Table.Quoted = p.table()
	if p.begin("where") {
		d.Where = p.expr()
	}
	return d
}

// column reads the name of a column that is written to; every word may be one.
func (p *parser) column() *ast.Name {
	if p.tok.kind != word && p.tok.kind != quoted {
		p.unexpected("IDENTIFIER", func(t *token) bool { return t.kind == word || t.kind == quoted })
		return &ast.Name{Parts: []ast.Ident{{}}}
	}
	return p.name()
}

// value reads what a column becomes.
func (p *parser) value() ast.Expr {
	if p.tok.kind == end || p.is(",") || p.is(")") {
		p.missingValue()
		return nothing
	}
	return p.expr()
}

// Clients compare the error of a missing value literally, so it lists what another parser would have taken.
var (
	valueTokens = strings.Fields(`+ - ? @ @@ ACTION ANY BYTE CASCADE CASE CAST CHAR COLUMN COLUMNS COMMENT COMMIT DO ENABLE END EXTRACT FIRST FOLLOWING
		GROUP_CONCAT INDEX INSERT INTERVAL ISNULL KEY LAST MATERIALIZED NO NULL NULLS OPEN OVER PARTITION PERCENT PRECISION PRIMARY PRIOR RANGE REPLACE
		ROW ROWS SEPARATOR SIBLINGS TABLE TEMP TEMPORARY TRUNCATE TYPE UNSIGNED VALUE VALUES XML ZONE {d {t {ts ~`)
	valueKinds = strings.Fields(`<K_DATETIMELITERAL> <K_TIME_KEY_EXPR> <S_CHAR_LITERAL> <S_DOUBLE> <S_HEX> <S_IDENTIFIER> <S_LONG> <S_QUOTED_IDENTIFIER>`)
)

func (p *parser) missingValue() {
	if p.err != nil {
		return
	}
	found, column := fmt.Sprintf(` "%[1]s" "%[1]s"`, p.tok.text), p.tok.column+1
	if p.tok.kind == end {
		found, column = "<EOF>", p.tok.column
	}
	var b strings.Builder
	fmt.Fprintf(&b, "net.sf.jsqlparser.parser.ParseException: Encountered unexpected token:%s\n    at line %d, column %d.\n\nWas expecting one of:\n\n",
		found, p.tok.line, column)
	for _, t := range valueTokens {
		fmt.Fprintf(&b, "    \"%s\"\n", t)
	}
	for _, t := range valueKinds {
		fmt.Fprintf(&b, "    %s\n", t)
	}
	p.fail(&ast.Error{Text: b.String()})
}
