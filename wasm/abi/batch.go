package abi

import (
	"fmt"
	"strings"
)

// A command batch, version 1. The header is followed by the sections, back to back, in the order of their directory entries:
//
//	+-----------+---------+-----------------+-----------+-------------+--------------+--------------------------------+
//	| version 1 | flags   | header size u16 | lines u32 | records u32 | rejected u32 | 8 x { count u32, bytes u32 }   |
//	| u8        | u8      | 80              |           |             |              | the directory                  |
//	+-----------+---------+-----------------+-----------+-------------+--------------+--------------------------------+
//
//	strings     count x { str }                                             the table that ref points into, from 0
//	series      count x { ref metric, ref entity, labels of ref }
//	samples     count x { u32 series | flags, i64 time, f64 value, str text if flagged, str decimal if flagged }
//	messages    count x { ref entity, ref type, ref source, u8 severity, u8 flags, i64 time, str text, pairs tags }
//	properties  count x { ref entity, ref type, u8 flags, i64 time, pairs keys, pairs tags }
//	entities    count x { ref name, pairs fields, pairs tags }
//	metrics     count x { ref name, pairs fields, pairs tags }
//	rejects     count x { uvarint line, uvarint column, str reason, str text }
//
// ref is a uvarint index of the string table; str is a uvarint length and that many bytes of UTF-8; labels is a uvarint
// count and that many { ref name, ref value }; pairs is a uvarint count and that many { ref name, str value }: values of
// series repeat, values of messages and properties seldom do.
const (
	BatchVersion    = 1
	batchHeaderSize = batchDirectory + sectionCount*sectionEntry
	batchDirectory  = 16
	sectionEntry    = 8
)

// The sections in order, and the fewest bytes that one item of each takes: a count is believed only up to bytes / least.
const (
	sectionStrings = iota
	sectionSeries
	sectionSamples
	sectionMessages
	sectionProperties
	sectionEntities
	sectionMetrics
	sectionRejects
	sectionCount
)

var sectionLeast = [sectionCount]int{1, 3, sampleSize, 15, 13, 3, 3, 4}

var sectionNames = [sectionCount]string{"strings", "series", "samples", "messages", "properties", "entities", "metrics", "rejects"}

// The head word of a sample: a series reference of 24 bits, the flags above it.
const (
	sampleSize       = 20
	sampleFlagsShift = 24
	sampleRefMask    = 1<<sampleFlagsShift - 1
)

// SampleFlags say what comes with a value.
type SampleFlags uint8

// The flags of a sample.
const (
	HasText    SampleFlags = 1 << iota // a text follows
	HasDecimal                         // the exact decimal text follows
	TextOnly                           // no number was sent: the value is NaN and means nothing
	AppendText                         // the text is added to a stored one instead of replacing it

	knownSampleFlags = HasText | HasDecimal | TextOnly | AppendText
)

// flagPersist in messages and properties: store the record. Without it only rules see it.
const flagPersist = 1 << 0

// flagStopped of a batch: the plugin reads no further, the last reject says why.
const flagStopped = 1 << 0

// Batch is a decoded command batch. Its strings alias the text it was decoded from; everything else belongs to the Batch
// and is overwritten when the Batch is decoded into again.
type Batch struct {
	Lines    uint32 // lines read, headers included
	Records  uint32 // data records seen, also those that were filtered out
	Rejected uint32 // records refused; Rejects holds the first of them
	Stopped  bool   // the plugin reads no further: the last reject ends the stream

	Series     []Series
	Samples    []Sample
	Texts      []SampleText // sparse, ordered by Index
	Decimals   []SampleText // sparse, ordered by Index
	Messages   []Message
	Properties []Property
	Entities   []Record
	Metrics    []Record
	Rejects    []Reject

	strings []string
	pairs   []Pair // backing of every Tags, Keys and Fields
}

// Pair is a name and a value: a tag, a property key or a field.
type Pair struct{ Name, Value string }

// Series identifies a time series.
type Series struct {
	Metric, Entity string
	Tags           []Pair
}

// SeriesRef points into the series table of one batch. It means nothing in the next batch.
type SeriesRef uint32

// Sample is one measurement.
type Sample struct {
	Series SeriesRef
	Flags  SampleFlags
	Time   int64 // Unix ms
	Value  float64
}

// SampleText is a text that belongs to Samples[Index].
type SampleText struct {
	Index int
	Text  string
}

// Message is an event with a text.
type Message struct {
	Entity, Type, Source string
	Severity             uint8 // 0 undefined .. 7 fatal
	Persist              bool
	Time                 int64 // Unix ms
	Text                 string
	Tags                 []Pair
}

// Property is a set of tags that belong to an entity, a type and keys.
type Property struct {
	Entity, Type string
	Persist      bool
	Time         int64 // Unix ms
	Keys, Tags   []Pair
}

// Record describes an entity or a metric. Fields are the fields of the text command of that name, spelled out: label,
// interpolation, zone, data_type, units and so on.
type Record struct {
	Name         string
	Fields, Tags []Pair
}

// Reject is a record that the plugin could not use.
type Reject struct {
	Line   uint32 // from 1; 0 when unknown
	Column uint32 // from 1; 0 when it is the whole line
	Reason string
	Text   string // the offending text
}

// maxStopText cuts the offending text in the error of a stream that a reject ended.
const maxStopText = 100

// String is what ends a stream: the place, the reason and the offending text.
func (r Reject) String() string {
	text := r.Reason
	if r.Line > 0 {
		place := fmt.Sprintf("Line %d", r.Line)
		if r.Column > 0 {
			place += fmt.Sprintf(", column %d", r.Column)
		}
		text = place + ": " + text
	}
	switch {
	case r.Text == "":
		return text
	case len(r.Text) > maxStopText:
		return fmt.Sprintf("%s: %q", text, strings.ToValidUTF8(r.Text[:maxStopText], "")+"...")
	}
	return fmt.Sprintf("%s: %q", text, r.Text)
}

// MaxSeverity is the highest severity of a message.
const MaxSeverity = 7

// Limits bound what a decoder accepts. The zero value stands for DefaultLimits.
type Limits struct {
	Bytes   int // of a whole batch
	Items   int // records of all sections together
	Strings int // entries of the string table
	Text    int // bytes of one string
	Pairs   int // tags, keys or fields of one record
}

// DefaultLimits fit a chunk of 256 KB: a batch is about as large as its input, a million samples would be 20 MB.
func DefaultLimits() Limits {
	return Limits{Bytes: 32 << 20, Items: 1 << 20, Strings: 1 << 20, Text: 1 << 20, Pairs: 1024}
}

func (l Limits) orDefault() Limits {
	if l == (Limits{}) {
		return DefaultLimits()
	}
	return l
}
