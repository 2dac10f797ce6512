package plan

import (
	"fmt"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// joined stands for the table in a ref that means the common time, entity or tags of joined rows.
const joined = -1

// ref is what a column of the statement is.
type ref struct {
	table    int // in the order of FROM; joined = of all tables
	source   Source
	datetime bool // the time, as a timestamp
}

// canonical is the text by which columns are compared: two names of one column have the same.
func (r ref) canonical() string {
	kind := "column"
	if r.datetime {
		kind = "datetime"
	}
	return fmt.Sprintf("#%d %s %d %x", r.table, kind, r.source.Kind, r.source.Name)
}

// nameOf returns the canonical name of a column. Names that clauses contain are replaced by these, which makes expressions comparable by their text.
func (b *binder) nameOf(r ref, at ast.Start) *ast.Name {
	text := r.canonical()
	b.refs[text] = r
	return &ast.Name{Start: at, Parts: []ast.Ident{{Start: at, Text: text}}}
}

// resolve returns what a canonical name stands for; ok is false for other names.
func (b *binder) resolve(n *ast.Name) (r ref, ok bool) {
	if len(n.Parts) != 1 {
		return ref{}, false
	}
	r, ok = b.refs[n.Parts[0].Text]
	return r, ok
}

// pathOf joins the parts of a name as clients know it.
func pathOf(parts []ast.Ident) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, ".")
}

// column finds the column that a name means. It returns nil without an error when there is none: then the name may be an alias.
func (b *binder) column(parts []ast.Ident, at ast.Start) (*ref, error) {
	if len(b.tables) == 1 {
		if source, datetime, ok := b.tables[0].find(parts); ok {
			return &ref{0, source, datetime}, nil
		}
	} else if r, err := b.common(parts, at); r != nil || err != nil {
		return r, err
	}
	// The longest prefix wins: a table may be called disk while another is called disk.used.
	for n := len(parts) - 1; n > 0; n-- {
		i, ok := b.tableNamed(pathOf(parts[:n]))
		if !ok {
			continue
		}
		if source, datetime, ok := b.tables[i].find(parts[n:]); ok {
			return &ref{i, source, datetime}, nil
		}
	}
	return nil, nil
}

// common finds a column of joined tables by a name without prefix: only the time may have none.
func (b *binder) common(parts []ast.Ident, at ast.Start) (*ref, error) {
	for _, t := range b.tables {
		source, datetime, ok := t.find(parts)
		switch {
		case !ok:
			continue
		case source.Kind == SourceTime, source.Kind == SourceEntity && b.unprefixed:
			return &ref{joined, source, datetime}, nil
		case b.Meta || b.only(t, parts):
			return &ref{b.index(t), source, datetime}, nil
		}
		return nil, at.Errorf("Column '%s' ambiguously defined", pathOf(parts))
	}
	return nil, nil
}

// only reports whether of the joined views and tables only t has a column of this name: then it is not ambiguous. Series all have the same columns.
func (b *binder) only(t *table, parts []ast.Ident) bool {
	if t.kind != viewTable {
		return false
	}
	for _, other := range b.tables {
		if _, _, ok := other.find(parts); ok && other != t {
			return false
		}
	}
	return true
}

func (b *binder) index(t *table) int {
	for i, other := range b.tables {
		if other == t {
			return i
		}
	}
	return joined
}

// tableNamed finds a table by what stands before its columns: its alias or its own name.
func (b *binder) tableNamed(prefix string) (int, bool) {
	for i, t := range b.tables {
		if strings.EqualFold(prefix, t.alias) {
			return i, true
		}
	}
	for i, t := range b.tables {
		if t.name != "" && strings.EqualFold(prefix, t.name) {
			return i, true
		}
	}
	return 0, false
}

// unknown is the error of a name that is neither a column nor an alias.
func (b *binder) unknown(n *ast.Name) error {
	if len(n.Parts) > 1 && len(b.tables) > 0 {
		first := lower(n.Parts[0].Text)
		field := first == "tags" || first == "entity" || first == "metric"
		named := false
		for k := range n.Parts[1:] {
			_, ok := b.tableNamed(pathOf(n.Parts[:k+1]))
			named = named || ok
		}
		if !field && !named {
			return ast.Errorf("Invalid identifier '%s'", pathOf(b.prefix(n.Parts)))
		}
	}
	return hint(n.Errorf("Unexpected expression: '%s'", pathOf(n.Parts)), b.suggest(n))
}

// prefix cuts off what could be the column of a series.
func (b *binder) prefix(parts []ast.Ident) []ast.Ident {
	for k := 1; k < len(parts); k++ {
		if _, _, ok := seriesColumn(parts[k:], column.Float); ok {
			return parts[:k]
		}
	}
	return parts[:1]
}

// clause says how a name is looked up first.
type clause uint8

const (
	columnFirst clause = iota // WHERE, the SELECT list, arguments of aggregates
	aliasFirst                // what follows the SELECT list
)

// name returns the column or the expression that a name stands for, in canonical names.
func (b *binder) name(n *ast.Name, c clause) (ast.Expr, error) {
	if c == aliasFirst {
		if e, err := b.alias(n); e != nil || err != nil {
			return e, err
		}
	}
	r, err := b.column(n.Parts, n.Start)
	if err != nil && c == columnFirst {
		if e, aliasErr := b.alias(n); e != nil || aliasErr != nil {
			return e, aliasErr
		}
	}
	if err != nil {
		return nil, err
	}
	if r != nil {
		return b.nameOf(*r, n.Start), nil
	}
	if c == columnFirst {
		if e, err := b.alias(n); e != nil || err != nil {
			return e, err
		}
	}
	return nil, b.unknown(n)
}

// alias returns the item of that alias, nil when there is none. An item does not see its own alias.
func (b *binder) alias(n *ast.Name) (ast.Expr, error) {
	for _, it := range b.aliases[lower(pathOf(n.Parts))] {
		if it.busy {
			continue
		}
		if err := b.resolveItem(it); err != nil {
			return nil, err
		}
		return it.expr, nil
	}
	return nil, nil
}

// resolveItem makes the names of an item canonical.
func (b *binder) resolveItem(it *item) (err error) {
	if it.done {
		return nil
	}
	it.busy = true
	it.expr, err = b.canonical(it.ast, columnFirst)
	it.busy, it.done = false, err == nil
	return err
}
