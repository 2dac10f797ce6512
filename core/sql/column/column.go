// Package column holds rows as columns of values: what expressions read and make, and what operators pass on.
//
//	column.go   types, vectors, batches      value.go    single values
//	builder.go  making and taking rows       compare.go  the order of ORDER BY
//	exact.go    decimals that are no doubles text.go     numbers as texts, the text of results
package column

import "github.com/tidemark-db/tidemark/core"

// Type is a type of SQL.
type Type uint8

const (
	Null Type = iota // of the literal NULL: nothing else is known
	Boolean
	Smallint
	Integer
	Bigint
	Float
	Double
	Decimal
	String
	Timestamp
	Object // values of several types
)

var typeNames = [...]string{"java_object", "boolean", "smallint", "integer", "bigint", "float", "double", "decimal", "string", "xsd:dateTimeStamp", "java_object"}

// String returns the name of the type in the metadata of results.
func (t Type) String() string { return typeNames[t] }

// Numeric reports whether values of the type are numbers. Timestamps are not.
func (t Type) Numeric() bool { return t >= Smallint && t <= Decimal }

// Vector is one column of a batch. The values lie in exactly one of Ints, Floats, Strings and Values:
//
//	Boolean                    Ints, 0 or 1
//	Timestamp                  Ints, Unix milliseconds
//	numeric types              Ints or Floats, whatever the type: ask which one is not nil. NaN is a value, not NULL
//	String                     Strings
//	Object                     Values
//	Null                       none; every row is NULL
//
// A vector that does not change from row to row is Const: its slices have one element, that of all rows. Vectors that an expression returns are
// valid until it is evaluated again, and must not be changed by others; batches that an operator yields are valid until its next one.
type Vector struct {
	Type    Type
	Const   bool
	Len     int // rows
	Ints    []int64
	Floats  []float64
	Strings []string
	Values  []Value
	Nulls   []bool           // nil: no row is NULL. What the other slices hold for a row that is NULL is undefined
	Exact   []core.DecimalAt // of the plain value column: numbers that Floats do not give exactly; nil = none. May be dropped by whatever computes
}

// Value is one value of any type, for constants, keys and columns of mixed types.
type Value struct {
	Type  Type // Null for NULL
	Int   int64
	Float float64
	Text  string
	Whole bool // of a number: it is in Int, not in Float
}

// Batch is a run of rows.
type Batch struct {
	Len     int
	Columns []*Vector
}

// Index returns the place of row i in the slices of v.
func (v *Vector) Index(i int) int {
	if v.Const {
		return 0
	}
	return i
}

// IsNull reports whether row i is NULL.
func (v *Vector) IsNull(i int) bool {
	return v.Type == Null || v.Nulls != nil && v.Nulls[v.Index(i)]
}

// Size is how many rows a batch has at most, unless it is a block of the reader: enough to hide the cost of a call, few enough to stay in the cache.
const Size = 4096
