package core

import (
	"context"
	"iter"
)

// EntityFilter selects entities. Names and Patterns are a union, Group and Expression narrow it; the zero filter selects all.
type EntityFilter struct {
	Names      []string // exact, lower case
	Patterns   []string // glob syntax, lower case
	Group      string
	Expression string // core/filter over the entity
}

// All reports whether f selects every entity.
func (f EntityFilter) All() bool {
	return len(f.Names) == 0 && len(f.Patterns) == 0 && f.Group == "" && f.Expression == ""
}

// TagFilter selects records whose tag Name matches any of the glob patterns.
type TagFilter struct {
	Name     string
	Patterns []string
}

// SeriesQuery selects samples. It is plain data: it can cross a wire.
type SeriesQuery struct {
	Scope         Scope
	Metric        string // exact, lower case; "" = every metric
	Entities      EntityFilter
	Tags          []TagFilter
	ExactTags     bool   // the series has the tag names of Tags and no others
	TagExpression string // core/filter over the tags
	Range         Range
	NewestFirst   bool   // the blocks of a series come newest first; samples inside a block always ascend
	Limit         int    // rows a series, from the end that comes first; 0 = all
	Versions      bool   // every version of a sample is a row; otherwise only the latest is
	Kind          Kind   // the zero Kind is what was measured
	Forecast      string // name of the forecast, "" = the default one; only with Kind Predicted or Deviation
}

// KeyInfo is one series without its samples.
type KeyInfo struct {
	Key    SeriesKey
	Last   Time   // time of the newest sample
	Serial uint64 // ascends in the order in which series were created, with gaps
}

// MessageQuery selects messages. Empty fields select all.
type MessageQuery struct {
	Scope       Scope
	Entities    EntityFilter
	Type        string
	Source      string
	Tags        []TagFilter
	Severities  []Severity
	MinSeverity Severity
	Expression  string // core/filter over the message
	Range       Range
	Limit       int // 0 = all
}

// PropertyQuery selects property records.
type PropertyQuery struct {
	Scope    Scope
	Entities EntityFilter
	Type     string // exact, lower case; "" = every type
	Key      Tags
	ExactKey bool  // the record key equals Key; otherwise it contains Key
	Range    Range // of the record time
}

// AlertHistoryQuery selects history rows.
type AlertHistoryQuery struct {
	Scope    Scope
	Entities EntityFilter
	Rules    []string // glob patterns; empty = all
	Metrics  []string
	Range    Range // of the row time
	Limit    int   // 0 = all
}

// DocumentQuery selects documents of one kind.
type DocumentQuery struct {
	Kind DocKind
	Key  string // exact; "" = all
}

// Reader is what queries read. Order and completeness are promises: a backend that cannot answer wholly yields an error of code
// Unavailable, never less. Leaving the loop releases what a yielded value pins.
//
//	Series, Keys   by key: metric, entity, tags
//	Messages       newest first; equal times by entity, type, source
//	Properties     by entity, type, key
//	AlertHistory   newest first
//	Documents      by key
type Reader interface {
	Series(ctx context.Context, q SeriesQuery) iter.Seq2[Block, error]
	Keys(ctx context.Context, q SeriesQuery) iter.Seq2[KeyInfo, error]
	Messages(ctx context.Context, q MessageQuery) iter.Seq2[Message, error]
	Properties(ctx context.Context, q PropertyQuery) iter.Seq2[PropertyRecord, error]
	AlertHistory(ctx context.Context, q AlertHistoryQuery) iter.Seq2[AlertRow, error]
	Documents(ctx context.Context, q DocumentQuery) iter.Seq2[Document, error]
}

// Stats sums up the numbers of a run of samples; NaN are none. Sum adds from left to right. MinTime and MaxTime are those of the first occurrence.
type Stats struct {
	Count                                 int64
	Sum, Min, Max, First, Last            float64
	FirstTime, LastTime, MinTime, MaxTime Time

	Rows     int64 // samples, NaN among them; 0: not known
	Decimals int8  // every number is a whole multiple of 10^-Decimals, as far as doubles are; -1: not known
}

// Piece is a run of samples of a series that a Parallel reader offers: what is known of it, and the samples for those whom that does not help.
type Piece struct {
	Stats *Stats                 // of all samples of the piece; nil: not known
	Rows  func() (*Block, error) // without key; valid until the next piece
	// Values are those of Rows alone, for those who need no more; nil: to read them is not cheaper.
	Values func() ([]float64, error)
}

// Parallel is an optional ability of a Reader: to read several series at once.
type Parallel interface {
	// Select finds the series of a query, which has no Limit and no Versions, as they are now. The caller closes the selection.
	Select(ctx context.Context, q SeriesQuery) (Selection, error)
}

// Selection is series that were found, to be read once.
type Selection interface {
	// Keys yields the keys in their order.
	Keys() iter.Seq[SeriesKey]
	// Scan calls visit for each series, for several at a time, and returns when all are done, or with the first error. n is the place of the series in key
	// order. The pieces of a series ascend, whatever the direction of the query. A series without samples in the range is visited as well. Visits begin so that
	// one may wait for those of smaller n to return.
	Scan(ctx context.Context, visit Visit) error
	Close()
}

// Visit looks at series n of a selection. Key and pieces are valid until it returns.
type Visit func(n int, key SeriesKey, pieces iter.Seq2[Piece, error]) error

// Scan visits the series of a query, as Selection says.
func Scan(ctx context.Context, from Parallel, q SeriesQuery, visit Visit) error {
	s, err := from.Select(ctx, q)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Scan(ctx, visit)
}

// Catalog answers the questions that every inserted record asks. It never blocks on a disk.
type Catalog interface {
	Metric(name string) (Metric, bool)
	Entity(name string) (Entity, bool)
	// TagKnown reports whether any series has a tag of this name.
	TagKnown(name string) bool
	// Member reports whether the entity belongs to the enabled group.
	Member(entity, group string) bool
}

// Store is what queries read, and what a second backend implements: it is fed from the Log, in order, each position once.
type Store interface {
	Reader
	Catalog
	Metadata
	Apply(ctx context.Context, e Entry) error
}

// Log is always the local journal. Append takes the whole batch or nothing, and returns when the batch is as durable as the sync
// mode promises and visible to readers.
type Log interface {
	Append(ctx context.Context, b *Batch) (Receipt, error)
	// Tail yields every batch appended after p, in order, and ends at the newest. Recent batches come from memory.
	Tail(ctx context.Context, p Position) iter.Seq2[Entry, error]
	// Wait returns when something is appended after p, or with the error of ctx.
	Wait(ctx context.Context, p Position) error
	// End is the position of the newest batch, 0 for none.
	End() Position
}
