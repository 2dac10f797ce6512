// Package ast is what a SQL statement says, before anybody knows what its names mean. Every node keeps where it starts, for errors.
//
//	statement.go   SELECT, INSERT, UPDATE, DELETE, EXPLAIN and their clauses
//	expr.go        expressions
//	text.go        the normal form of an expression, which labels and comparisons use
package ast

// Start is where a node starts in the text of its statement.
type Start struct {
	Line   int    // from 1
	Column int    // from 0, in characters
	Token  string // the first token as written, with its quotes: what errors show as near "..."
	Parens int    // of an expression: how many pairs of parentheses enclose it, which only its text shows
}

// At returns where the node starts. It makes Start, embedded, the half of Expr that is the same for all.
func (s Start) At() Start { return s }

// Ident is one identifier.
type Ident struct {
	Start
	Text   string // without quotes, inner quotes single
	Quoted bool
}
