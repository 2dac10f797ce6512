// Package expr evaluates expressions over batches of rows: operators, CASE, CAST and every scalar function. Expressions are typed; package plan makes them of
// what the parser read.
//
//	node.go        columns, constants, and what nodes tell about themselves; what is always the same is folded into a constant, but not an error
//	vectors.go     the memory of results, columns read as numbers and as texts
//	arithmetic.go  + - * / %            compare.go   comparison and BETWEEN       logic.go  AND, OR, NOT, IS NULL
//	match.go       LIKE                 regex.go     REGEX                        in.go     IN, and sets that the database knows
//	choose.go      CASE, COALESCE       cast.go      CAST                         bounds.go what a condition says about a column
//	function.go    Call and its table   math.go, trig.go, text.go                 database.go LOOKUP, ENTITY_TAG and others
//	instant.go     dates as arguments   datefunc.go, dateformat.go, workday.go    zone.go   time zones
//
// A node computes one row where its operands are constants. AND, OR, CASE and COALESCE evaluate an operand only on the rows that need it, which matters where
// evaluation is expensive or can fail: they copy these rows and put the results in their places.
package expr

import (
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Node is an expression over the columns of a batch. A Node belongs to one goroutine at a time: Clone it for others.
type Node interface {
	Type() column.Type
	// Eval returns the values for the rows of in. The vector is valid until the next Eval of the same node.
	Eval(env *Env, in *column.Batch) (*column.Vector, error)
	// Clone returns a copy with buffers of its own.
	Clone() Node
}

// Env is what expressions know of the query and the world.
type Env struct {
	Now        core.Time      // at the start of the query
	Zone       *time.Location // of the query: WITH TIMEZONE, otherwise ServerZone
	ServerZone *time.Location
	Calendars  *dates.Calendars // with the default calendar of the query
	Version    *core.Time       // WITH VERSION; nil = the latest
	Facts      Facts

	// Of the query: what functions ask for that make long texts, and those that take long within a batch. nil = there is enough of both.
	Room func(bytes int64) error // takes memory
	Halt func() error            // why the query is to end
}

// Facts answers what functions ask of the database. Answers are the same for the whole query.
type Facts interface {
	Lookup(table, key string) (value string, found, exists bool, err error) // exists: there is such a table
	Collection(name string) (values []string, exists bool, err error)
	Entity(name string, version *core.Time) (core.Entity, bool, error) // as of version, nil = the latest; only what the caller may read
	Groups(entity string) ([]string, error)                            // sorted
	Metrics(entity string) ([]string, error)                           // for which the entity has series
	Property(entity, search string, since core.Time, merge bool) (string, error)
}

// When is one branch of a CASE: any of Conditions.
type When struct {
	Conditions []Node
	Then       Node
}
