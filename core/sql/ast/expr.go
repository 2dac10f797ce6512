package ast

// Expr is one of the expressions below.
type Expr interface {
	At() Start
	expr()
}

// LiteralKind says what a literal is.
type LiteralKind uint8

const (
	Null LiteralKind = iota
	True
	False
	NaN
	Integer // Int
	Number  // Float; a fraction or an exponent was written, or it exceeds 64 bits
	String  // Text
)

// Literal is a constant as written.
type Literal struct {
	Start
	Kind    LiteralKind
	Int     int64
	Float   float64 // of Integer as well
	Text    string  // of String: escapes resolved
	Written string  // the spelling, of strings with their quotes
}

// Name is a column: one to four parts such as value, tags.x, t.value, t.entity.tags.site, "a.b".value. Parts of an unquoted dotted table prefix stand apart.
type Name struct {
	Start
	Parts []Ident
}

// Star is an expansion: * has no parts; t.*, tags.*, t.entity.tags.* have those before the star.
type Star struct {
	Start
	Parts []Ident
}

// Unary is - or + before an expression.
type Unary struct {
	Start
	Op string
	X  Expr
}

// Binary is an arithmetic (+ - * / %), a comparison (= <> < <= > >=; != is <>) or a logical (and, or) operator.
type Binary struct {
	Start
	Op      string
	Written string // of the operator: != or <>
	L, R    Expr
}

// Not is NOT before a predicate.
type Not struct {
	Start
	X Expr
}

// Like is X [NOT] LIKE Pattern [ESCAPE Escape].
type Like struct {
	Start
	Not        bool
	X, Pattern Expr
	Escape     *Literal // nil = none
}

// Regex is X [NOT] REGEX Pattern.
type Regex struct {
	Start
	Not        bool
	X, Pattern Expr
}

// In is X [NOT] IN (List), or X [NOT] IN Set where Set is a call of metrics or collection, or the column entity.groups.
type In struct {
	Start
	Not  bool
	X    Expr
	List []Expr
	Set  Expr
}

// IsNull is X IS [NOT] NULL.
type IsNull struct {
	Start
	Not bool
	X   Expr
}

// Between is X [NOT] BETWEEN Low AND High, or X BETWEEN (View).
type Between struct {
	Start
	Not               bool
	X, Low, High      Expr
	LowExcl, HighExcl bool
	View              *Select
}

// When is one branch of a CASE. In the simple form Conditions are the alternatives of a OR b; in the searched form there is one.
type When struct {
	Conditions []Expr
	Then       Expr
}

// Case is CASE [X] WHEN ... END.
type Case struct {
	Start
	X     Expr // nil in the searched form
	Whens []When
	Else  Expr
}

// Cast is CAST(X AS Type); Type is number, string, timestamp or integer, in lower case.
type Cast struct {
	Start
	X       Expr
	Type    string
	Written string // the name of the type as written, in lower case: varchar; "" = none
}

// Extract is EXTRACT(Part FROM X [, Zone]).
type Extract struct {
	Start
	Part string // lower case
	X    Expr
	Zone Expr
}

// Call is a function. Bare words among the arguments (SAMPLE, AUTO, SECOND) are *Word, `15 MINUTE` is *Span.
type Call struct {
	Start
	Name     string // lower case
	Distinct bool
	Star     bool // count(*)
	Args     []Expr
}

// Word is a keyword that stands as an argument of a function.
type Word struct {
	Start
	Text string // lower case
}

// Span is a count and a unit as an argument of a function.
type Span struct{ Interval }

// Unit is a unit of time as a factor or term of a time expression: now - 2*day, now - minute.
type Unit struct {
	Start
	Name string // lower case, singular
}

// Calendar is a keyword for an instant: now, today, previous_month.
type Calendar struct {
	Start
	Name string // lower case, as written
}

// Period is PERIOD(...), as a key or, without options, in a SELECT list.
type Period struct {
	Start
	Table   *Ident // of t.PERIOD(...)
	Step    Interval
	Fill    Fill
	Number  float64 // of FillValue
	Extend  bool
	Align   Align
	Zone    Expr // *Literal or *Name; nil = of the query
	Options bool // it has any
}

// Placeholder is ?.
type Placeholder struct{ Start }

func (*Literal) expr()     {}
func (*Name) expr()        {}
func (*Star) expr()        {}
func (*Unary) expr()       {}
func (*Binary) expr()      {}
func (*Not) expr()         {}
func (*Like) expr()        {}
func (*Regex) expr()       {}
func (*In) expr()          {}
func (*IsNull) expr()      {}
func (*Between) expr()     {}
func (*Case) expr()        {}
func (*Cast) expr()        {}
func (*Extract) expr()     {}
func (*Call) expr()        {}
func (*Word) expr()        {}
func (*Span) expr()        {}
func (*Unit) expr()        {}
func (*Calendar) expr()    {}
func (*Period) expr()      {}
func (*Placeholder) expr() {}
