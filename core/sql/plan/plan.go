// Package plan turns a parsed statement into operators whose expressions are bound to columns by their number.
//
// Operators form a tree; each yields batches whose columns are described below. Expressions of an operator refer to the columns of its input. Rows come in
// the natural order (metric as selected, entity, time, tags), unless said otherwise, down to the Sort.
//
//	plan.go        the operators
//	bind.go        Options, Bind, BindDelete: what a statement goes through
//	from.go        FROM, JOIN and ON; the zone, calendar and version of WITH
//	table.go       tables and their columns
//	view.go        inline views, which can be asked for columns that follow from theirs
//	names.go       names: columns, aliases, and what is said of unknown ones (hint.go)
//	rewrite.go     expressions in canonical names, which are compared by their text
//	expand.go      *, tags.* and the like; of other rows than samples in records.go, of views in view_lists.go
//	where.go       WHERE: where each term is checked
//	intervals.go   the times that it selects
//	selection.go   the metrics that it selects
//	pushdown.go    the entities and tags that a reader selects
//	assemble.go    operators from the tables up to groups
//	group.go       GROUP BY
//	function.go    aggregates and functions of windows
//	select.go      the SELECT list, ORDER BY, LIMIT, and what is told of columns
//	scope.go       expressions over the columns of an operator; tests in predicate.go
//	explain.go     plans as text
package plan

import (
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// Query is a bound SELECT.
type Query struct {
	Columns []Column // of the result; Root yields these first, in this order, and perhaps hidden ones behind them
	Root    Operator
	Env     *expr.Env

	notes notes // of the expressions of its operators, for Explain
}

// Column describes a column of the result, as headers and metadata show it.
type Column struct {
	Label    string      // the alias, otherwise Name
	Name     string      // the expression in its normal form
	Type     column.Type // Null: not known
	Table    string      // metric; "" for none or several
	Property string      // propertyUrl; "" for none
	About    string      // dc:description; "" for none
	Unknown  bool        // the data type is not known at all: null in the metadata
	Fraction bool        // JSON shows whole numbers with a fraction, 1.0
}

// Operator is one of the structs below.
type Operator interface{ operator() }

// Row yields one row without columns.
type Row struct{}

// SourceKind says where a column of a Scan comes from.
type SourceKind uint8

const (
	SourceTime        SourceKind = iota // Bigint
	SourceValue                         // Floats; Type of the metric
	SourceText                          // String, NULL for none
	SourceMetric                        // name
	SourceEntity                        // name
	SourceTags                          // name1=value1;name2=value2, NULL for none
	SourceTagsJSON                      // the same as a JSON object
	SourceTag                           // Name
	SourceEntityField                   // Name: name label timeZone interpolate enabled creationTime versionTime lastInsertTime groups
	SourceEntityTags
	SourceEntityTagsJSON
	SourceEntityTag   // Name
	SourceMetricField // Name: name label description timeZone interpolate filter invalidValueAction units dataType enabled persistent versioning creationTime lastInsertTime retentionIntervalDays minValue maxValue
	SourceMetricTags
	SourceMetricTagsJSON
	SourceMetricTag // Name
	SourceInterval  // INTERVAL_NUMBER(), Bigint
	SourceLastTime  // time of the newest sample of the series, Bigint
	SourceRecord    // of tables of messages, properties, alerts: the field Name; tags are SourceTags, SourceTag
)

// Source is a column of a Scan or Table.
type Source struct {
	Kind SourceKind
	Name string // of tags: lower case
	Type column.Type
}

// The first columns of every Scan. Others follow as needed.
const (
	ScanTime = iota
	ScanMetric
	ScanEntity
	ScanTags
	ScanColumns // how many these are
)

// Interval is one range of time that a query selects; From is inclusive, To exclusive. Bounds that the query does not give are those of core.
type Interval struct {
	core.Range
	HasFrom, HasTo bool
}

// Scan yields the samples of series.
type Scan struct {
	Metrics   []string // in the natural order; exact, lower case
	Entities  core.EntityFilter
	Tags      []core.TagFilter
	Scope     core.Scope
	Series    expr.Node  // over the columns of the scan that do not change within a series; nil = none. Rows of series for which it is not true do not exist
	Intervals []Interval // ascending, disjoint; empty: none matches, no rows
	Columns   []Source   // ScanTime, ScanMetric, ScanEntity, ScanTags first
	Fill      *Interpolate
	Filter    expr.Node // on rows, after Fill; nil = none
	Unordered bool      // the order of rows does not matter to what follows
	Needs     Needs
}

// Needs says which parts of the samples are looked at at all.
type Needs struct{ Value, Text bool }

// Interpolate makes a regular grid of the samples of each series.
type Interpolate struct {
	Detail   bool
	Step     dates.Interval
	Function string // linear, previous or auto: of the entity, otherwise of the metric
	Boundary string // inner, outer or full
	Fill     ast.Fill
	Number   float64
	Align    ast.Align
	Zone     Zone
}

// Zone is a time zone that may depend on the series.
type Zone struct {
	Location *time.Location // nil: of Field
	Field    string         // entity or metric: its own zone, the one of the query when it has none
}

// Table yields rows that are not samples: kind entity, metric, message, property, alert or history.
type Table struct {
	Kind    string
	Scope   core.Scope
	Columns []Source
	Filter  expr.Node // on rows; nil = none

	// What the filter implies, to read less.
	Names []string // exact names (entity, metric) or entities (others); nil = all
	Types []string // of messages and properties; nil = all
	Range core.Range
}

// View yields the rows of another query. Order is the order of its rows.
type View struct {
	Query *Query
	// Columns of the inner query that stand for those of a table; -1 = it has none.
	Time, Value, Text, Metric, Entity, Tags int
	Fill                                    *Interpolate // over series that Entity and Tags tell apart
	Intervals                               []Interval   // that the outer query selects; empty = all
	Filter                                  expr.Node
}

// Join joins rows of equal time, entity and tags. Its columns are those of the inputs, one after another, then the coalesced time, entity and tags.
// A Scan or View as an input; Time, Entity and Tags are the columns there that are compared.
type Join struct {
	Inputs []JoinInput
	Detail *Interpolate // INTERPOLATE(DETAIL): values at the times of the other tables
	// ByMetric: the first input holds several metrics, each of which is joined separately.
	ByMetric bool
}

// JoinInput is one side of a Join.
type JoinInput struct {
	In                 Operator
	Width              int // columns of In
	Time, Entity, Tags int
	Value, Text        int  // for Detail; -1 = not selected
	Outer              bool // unmatched rows of either side appear; of the first input: as of the second
	UseEntity, UseTags bool // what must be equal beside the time
}

// Filter keeps rows for which Condition is true.
type Filter struct {
	In        Operator
	Condition expr.Node
}

// Key is what rows are sorted by. NULL sorts lowest, NaN above all numbers.
type Key struct {
	Expr expr.Node
	Desc bool
}

// RowNumber numbers rows in partitions and keeps some. Rows come partition by partition, in the order of Order. Its columns are those of In,
// then row_number, rank and dense_rank.
type RowNumber struct {
	In        Operator
	Partition []expr.Node
	Order     []Key
	Op        string // < <= > >= =; "" keeps all
	Number    int64
}

// Group makes one row of the rows with equal keys. Its columns are Keys, Aggregates, Carried. Groups come in ascending order of the keys, the one at TagsKey first
// when that is not -1.
type Group struct {
	In         Operator
	Keys       []expr.Node
	Period     *Period // of the key at PeriodKey, whose node is the time of the row; the key becomes the start of its period
	PeriodKey  int     // -1 = none
	TagsKey    int
	Aggregates []Aggregate
	Carried    []expr.Node // of the first row of the group
	Whole      bool        // no GROUP BY: one group; none when there is no row
}

// Period is how rows are grouped by time.
type Period struct {
	Step      dates.Interval
	Fill      ast.Fill
	Number    float64
	Extend    bool
	Align     ast.Align
	Zone      Zone
	ZoneKey   int        // the column of the input that holds the zone of the row, when Zone.Field is set; -1 = none
	Intervals []Interval // of the query
	Interval  int        // the column of the input that says in which of the Intervals a row lies; -1: it follows from the time of the row
}

// Aggregate is one aggregate function. Func is its name in lower case: count sum avg min max product first last min_value_time max_value_time median percentile
// stddev median_abs_dev delta counter wavg wtavg correl covar regr_slope regr_intercept; count without Args is count(*).
type Aggregate struct {
	Func       string
	Args       []expr.Node
	Time       expr.Node // the time of the row, Bigint; nil in inputs without time
	Distinct   bool
	Percent    float64 // of percentile
	Population bool
	Factor     float64 // of ema, in windows only
	Type       column.Type
}

// Window computes analytic functions. Its columns are those of In, then one for each function.
type Window struct {
	In        Operator
	Partition []expr.Node // rows of a partition follow each other; empty = all rows are one
	Functions []Analytic
	Time      expr.Node // for Frame.Span
	Frame     Frame
}

// Frame is which rows up to the current one an aggregate sees: all from the first of the partition; the last Rows; or those later than the current time minus Span.
type Frame struct {
	Rows int64
	Span *dates.Interval
}

// Analytic is a function of a Window: an Aggregate or ema over the Frame, or lag, lead and first_value over the partition.
type Analytic struct {
	Aggregate
	Offset  int64     // of lag and lead
	Default expr.Node // nil = NULL
}

// Project computes columns.
type Project struct {
	In    Operator
	Exprs []expr.Node
}

// Distinct drops rows whose first Width columns equal those of an earlier row.
type Distinct struct {
	In    Operator
	Width int
}

// Sort sorts, and is stable. Keep > 0: only so many rows are needed.
type Sort struct {
	In   Operator
	Keys []Key
	Keep int64
}

// Limit skips and then yields at most Count rows; Count < 0 = all.
type Limit struct {
	In          Operator
	Skip, Count int64
}

func (*Row) operator()       {}
func (*Scan) operator()      {}
func (*Table) operator()     {}
func (*View) operator()      {}
func (*Join) operator()      {}
func (*Filter) operator()    {}
func (*RowNumber) operator() {}
func (*Group) operator()     {}
func (*Window) operator()    {}
func (*Project) operator()   {}
func (*Distinct) operator()  {}
func (*Sort) operator()      {}
func (*Limit) operator()     {}
