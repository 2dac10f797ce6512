package core

import (
	"context"
	"hash/maphash"
	"io"
	"iter"
	"math"
	"slices"
)

// Position orders everything that was ever appended. It starts at 1; gaps are allowed.
type Position uint64

// Durability is what an acknowledged batch survives.
type Durability uint8

const (
	Volatile  Durability = iota // nothing of it was to be stored
	Journaled                   // survives the end of the process; a power cut may lose it until the next sync
	Synced                      // survives a power cut
)

func (d Durability) String() string { return [...]string{"volatile", "journaled", "synced"}[d] }

// Receipt acknowledges a batch.
type Receipt struct {
	Position   Position
	Durability Durability
	Received   Time
}

// Flags say what is to happen to one record.
type Flags uint8

const (
	Stored     Flags = 1 << iota // keep it
	ForRules                     // show it to rules
	HasValue                     // a sample that carries a number (NaN included); without it only its text was sent
	AppendText                   // a sample whose text is added to a stored text rather than replacing it
)

// Default are the flags of an ordinary record.
const Default = Stored | ForRules

// Samples are parallel arrays, one element a sample, in the order of the request; side columns hold an entry for some.
type Samples struct {
	Series   []uint32 // index into Batch.Keys
	Times    []Time
	Values   []float64
	Flags    []Flags
	Texts    []TextAt
	Decimals []DecimalAt
	Versions []VersionAt
}

// Len returns the number of samples.
func (s *Samples) Len() int { return len(s.Times) }

// Batch is the one form in which anything enters the database: HTTP, TCP, plugin output, rule output and SQL all build one. It is
// taken as a whole or not at all. Its strings may point into the request: whoever keeps one clones it.
type Batch struct {
	Origin     Origin
	Received   Time // set by the log: never decreases from one position to the next
	Keys       []SeriesKey
	Samples    Samples
	Messages   []Message
	Properties []Property
	Series     []SeriesDelete
	Removed    []PropertyKey // property records to delete
	Alerts     []AlertChange
	Documents  []DocChange

	refs refTable // of Keys, as far as Ref has added them
	key  []byte
}

// SeriesDelete removes the samples of one series in a range.
type SeriesDelete struct {
	Key   SeriesKey
	Range Range
}

// Ref returns the index of k in Keys and adds it when it is not there.
func (b *Batch) Ref(k SeriesKey) uint32 {
	b.key = k.Append(b.key[:0])
	t := &b.refs
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	slot := t.find(uint32(maphash.Bytes(refSeed, b.key)), func(ref uint32) bool { return b.Keys[ref].same(&k) })
	if slot.next == 0 {
		b.Keys = append(b.Keys, k)
		slot.next = uint32(len(b.Keys))
		t.used++
	}
	return slot.next - 1
}

// refTable finds keys by their hash. A Go map of their texts takes six times the memory, and most of what a batch of many series allocates.
type refTable struct {
	slots []refSlot // a power of two, at least half of them empty
	used  int
}

type refSlot struct {
	hash uint32
	next uint32 // index into Keys plus one, 0 for an empty slot
}

var refSeed = maphash.MakeSeed()

// find returns the slot of a key, or the empty one where it belongs, with its hash. There is always an empty one.
func (t *refTable) find(hash uint32, same func(ref uint32) bool) *refSlot {
	for at := int(hash) & (len(t.slots) - 1); ; at = (at + 1) & (len(t.slots) - 1) {
		slot := &t.slots[at]
		switch {
		case slot.next == 0:
			slot.hash = hash
			return slot
		case slot.hash == hash && same(slot.next-1):
			return slot
		}
	}
}

func (t *refTable) grow() {
	old := t.slots
	t.slots = make([]refSlot, max(16, 2*len(old)))
	for _, s := range old {
		if s.next != 0 {
			t.find(s.hash, func(uint32) bool { return false }).next = s.next
		}
	}
}

// Grow makes room for so many more keys and samples.
func (b *Batch) Grow(keys, samples int) {
	b.Keys = slices.Grow(b.Keys, keys)
	s := &b.Samples
	s.Series, s.Times = slices.Grow(s.Series, samples), slices.Grow(s.Times, samples)
	s.Values, s.Flags = slices.Grow(s.Values, samples), slices.Grow(s.Flags, samples)
}

// Add appends a sample and returns its index. Its flags are Default and HasValue.
func (b *Batch) Add(ref uint32, t Time, v float64) int {
	s := &b.Samples
	s.Series = append(s.Series, ref)
	s.Times = append(s.Times, t)
	s.Values = append(s.Values, v)
	s.Flags = append(s.Flags, Default|HasValue)
	return len(s.Times) - 1
}

// AddText appends a sample that only carries a text and returns its index.
func (b *Batch) AddText(ref uint32, t Time, text string) int {
	i := b.Add(ref, t, math.NaN())
	b.Samples.Flags[i] &^= HasValue
	b.Samples.Texts = append(b.Samples.Texts, TextAt{uint32(i), text})
	return i
}

// HideFromRules takes every record out of sight of the rule engine.
func (b *Batch) HideFromRules() {
	for i := range b.Samples.Flags {
		b.Samples.Flags[i] &^= ForRules
	}
	for i := range b.Messages {
		b.Messages[i].Flags &^= ForRules
	}
	for i := range b.Properties {
		b.Properties[i].Flags &^= ForRules
	}
}

// Len returns the number of records of all kinds.
func (b *Batch) Len() int {
	return b.Samples.Len() + len(b.Messages) + len(b.Properties) + len(b.Series) + len(b.Removed) + len(b.Alerts) + len(b.Documents)
}

// Entry is a batch with its place in the log.
type Entry struct {
	Position Position
	Batch    *Batch // Batch.Received is its clock
}

// Ingester is the only way in: accept, authorise, append. Errors are of code Invalid, Forbidden, TooLarge, NoSpace or Unavailable, and
// then nothing of the batch was taken. The batch belongs to the callee from the call on.
type Ingester interface {
	Ingest(ctx context.Context, b *Batch) (Receipt, error)
}

// Passer lets a client that inserts and then asks for alerts see them: Passed returns when the rule engine is past p, at once when
// nothing in the batch can matter to a rule, and after a bounded time anyway.
type Passer interface {
	Passed(ctx context.Context, p Position, b *Batch) error
}

// ParseRequest is one upload for a parser plugin.
type ParseRequest struct {
	Parser   string            // plugin or named configuration
	Format   string            // "csv" or "nmon"
	Params   map[string]string // request parameters that the format knows
	Tags     Tags              // default tags
	FileName string
	Source   string // client address
	Encoding string // charset of the text; "" = UTF-8
	Zone     string // "" = the server's
	Received Time
	Origin   Origin
	Settings map[string]string
}

// Reject is one part of an upload that was not stored.
type Reject struct {
	Line   int    `json:"line"` // 1-based, 0 = not tied to a line
	Column int    `json:"column,omitempty"`
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"` // start of the offending text
}

// Parsed is what one chunk of an upload gave.
type Parsed struct {
	Batch   *Batch
	Lines   int // lines read in this chunk
	Rejects []Reject
	Dropped int // rejects that were counted but not listed
}

// Parser turns bytes into batches. An error ends the upload: what was yielded before stays.
type Parser interface {
	Parse(ctx context.Context, r ParseRequest, body io.Reader) iter.Seq2[Parsed, error]
}

// QueryFunc runs one SQL query: all that rules know of SQL. The first row is the header.
type QueryFunc func(ctx context.Context, query string, limit int) ([][]string, error)
