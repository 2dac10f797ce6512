package ast

// Statement is *Select, *Insert, *Update, *Delete or *Explain.
type Statement interface{ statement() }

func (*Select) statement()  {}
func (*Insert) statement()  {}
func (*Update) statement()  {}
func (*Delete) statement()  {}
func (*Explain) statement() {}

// Explain asks for the plan of a SELECT instead of its rows.
type Explain struct{ Select *Select }

// Select is one SELECT. Clauses that are absent are nil.
type Select struct {
	Start
	Distinct bool
	Items    []Item
	From     *Source // nil: one row without columns
	Joins    []Join
	Where    Expr
	GroupBy  []Expr // with *Period among them
	Having   Expr
	OrderBy  []OrderItem
	Limit    *Limit
	With
}

// With holds what the WITH clauses of a SELECT ask for.
type With struct {
	Interpolate *Interpolate
	RowNumbers  []RowNumber // in the order of the text
	LastTime    []LastTime
	TimeZone    *Ident // the text of the literal or quoted identifier
	Calendar    *Ident
	Version     Expr // a string, an integer or a calendar expression
}

// Item is one item of a SELECT list: a *Star, or an expression with or without an alias.
type Item struct {
	Expr  Expr
	Alias *Ident
}

// Source is what FROM or JOIN names: a table or a SELECT in parentheses.
type Source struct {
	Start
	Table  string // dotted names joined, quotes removed; "" for a view
	Quoted bool
	View   *Select
	Alias  *Ident
}

// Join is one JOIN. On is nil without ON.
type Join struct {
	Start
	Outer       bool // FULL OUTER
	UsingEntity bool
	Source      *Source
	On          []Expr // the terms, each an expression as written; the planner judges them
}

// OrderItem is an expression, or a number of a column.
type OrderItem struct {
	Expr Expr
	Desc bool
}

// Limit is LIMIT Skip, Count.
type Limit struct{ Skip, Count int64 }

// Fill is how missing points or periods get values.
type Fill uint8

const (
	FillNone Fill = iota
	FillPrevious
	FillNext
	FillLinear
	FillValue  // FillNumber, which may be NaN
	FillExtend // INTERPOLATE only: TRUE, YES or EXTEND
)

// Align is where a grid begins.
type Align uint8

const (
	AlignCalendar Align = iota
	AlignStart
	AlignEnd
	AlignFirst // FIRST_VALUE_TIME
)

// Interval is a count of a unit; the unit is in lower case, singular: millisecond to year.
type Interval struct {
	Start
	Count int64
	Unit  string
}

// Interpolate is WITH INTERPOLATE.
type Interpolate struct {
	Start         // of INTERPOLATE
	Detail   bool // DETAIL; then Step is zero
	Step     Interval
	Function string  // linear, previous or auto
	Boundary string  // inner, outer or full
	Fill     Fill    // FillNone, FillExtend or FillValue
	Number   float64 // of FillValue
	Align    Align
	Zone     Expr // *Literal or *Name (entity.timeZone, metric.timeZone); nil = of the query
}

// RowNumber is WITH ROW_NUMBER(Partition ORDER BY Order) condition.
type RowNumber struct {
	Start
	Partition []Expr
	Order     []OrderItem
	Op        string // < <= > >= =; "" with Preceding
	Number    int64
	Preceding *Interval // BETWEEN n [unit] PRECEDING AND CURRENT ROW; Unit "" counts rows
	Grouped   bool      // it stands after GROUP BY
}

// LastTime is WITH time Op last_time + Offset.
type LastTime struct {
	Start
	Op     string
	Offset *Interval // nil = none; Count is negative for a minus
}

// Assignment is a column and its value in INSERT and UPDATE. Value is nil where INSERT has fewer values than columns.
type Assignment struct {
	Column *Name
	Value  Expr
}

// Insert is INSERT INTO Table (columns) VALUES (values).
type Insert struct {
	Start
	Table string
	Set   []Assignment
}

// Update is UPDATE Table SET ... WHERE.
type Update struct {
	Start
	Table string
	Set   []Assignment
	Where Expr
}

// Delete is DELETE FROM Table WHERE.
type Delete struct {
	Start
	Table *Source
	Where Expr
}
