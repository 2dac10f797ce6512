// Package filter is the boolean expression language of entity, metric, tag, message, property and row filters.
//
//	name LIKE 'pump-*' AND lower(tags.site) IN ('north', 'south') AND NOT tags.state = 'off'
//
// There is one grammar and a set of variables for each [Context]:
//
//	or      = and *( ("OR" / "||") and )
//	and     = not *( ("AND" / "&&") not )
//	not     = ("NOT" / "!") not / cmp
//	cmp     = sum [ op sum / ["NOT"] "LIKE" (sum / list) / ["NOT"] "IN" (list / sum) / ["NOT"] "BETWEEN" sum "AND" sum / ["NOT"] "REGEX" sum ]
//	sum     = + and - over products of * / % over unary minus over postfix
//	postfix = primary *( "." name [ "(" args ")" ] / "[" or "]" )
//	primary = number / string / true / false / null / name [ "(" args ")" ] / "(" or ")" / "[" args "]"
//
// A text passes through three steps, one file each: lex.go cuts it into tokens, parse.go builds a tree, compile.go turns the tree into closures that
// [Expr.Match] runs against an [Env]. Length and nesting are checked before the first step, so that no text can exhaust the stack.
//
// Comparisons follow a few rules that surprise: a missing tag is the empty text, null is false, a text compares with a number as a number when it is
// one, and nothing compares with NaN.
package filter
