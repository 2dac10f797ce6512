package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A batch record is the payload of a journal frame of kind frameBatch. FORMAT.md draws every byte; in short:
//
//	+------------+----------+-------------------------------+------+
//	| version u8 | flags u8 | raw length uvarint, if packed | body |   body: parts uvarint, origin, then the parts named by its bits
//	+------------+----------+-------------------------------+------+
//
// Only what is to be stored is in it. The checksum is that of the frame.
const (
	recordVersion = 1

	recordPacked = 1 << 0 // the body is one zstd frame

	// packAbove spares short bodies the 30 microseconds that zstd costs: a frame of up to a page takes that page of the disk anyway.
	packAbove = 4096
	// maxPackRatio bounds what a reader allocates for a body of a given packed length. A body that packs better is written as it is up to this ratio.
	maxPackRatio = 256
	// maxRecord bounds a body: four times the 64 MiB that an upload may unpack to.
	maxRecord = 256 << 20
	// maxKeyBytes bounds the canonical keys of one record before front coding, which can shrink them without limit.
	maxKeyBytes = 64 << 20
)

// Bits of the parts word, in the order in which the parts follow.
const (
	partSamples = 1 << iota
	partMessages
	partProperties
	partSeries
	partRemoved
	partAlerts
	partDocuments
	partsEnd
)

// How the values of a record are written.
const (
	valuesRaw = 0 // 8 bytes each, little-endian
	valuesXor = 1 // uvarint of the XOR with the value before, bytes reversed: equal values take one byte, round decimals few
)

// packer holds the compressor; it is safe for concurrent use.
type packer struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(256<<10))
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "zstd encoder")
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxRecord),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "zstd decoder")
	}
	return &packer{enc, dec}, nil
}

// encoder turns one batch into a record. It is reused: every slice keeps its memory.
type encoder struct {
	arena   []byte   // canonical keys of the batch, one after the other, in batch order
	ends    []int    // where each key ends
	order   []place  // used keys in order of their canonical form
	rank    []uint32 // by batch key: its place in order, unused = noRank
	sorted  []uint32 // the refs of order; empty when they are not known
	grouped []place  // scratch of groupByMetric, as are those up to metrics
	sizes   []int    // of the groups in order
	starts  []int    // of the groups in grouped, by their numbers
	names   []string // of the metrics
	metrics map[string]int
	body    []byte
	payload []byte

	// The series of the keys, each of them, when they are known from a batch with the same keys and none was removed since.
	series   []*series
	removals uint64 // of the state at that time
}

const noRank = math.MaxUint32

// laterRecord is a vfs.VersionError for a frame of the journal whose checksum is right: a later release wrote it.
type laterRecord struct {
	vfs.VersionError // the path is that of the segment, where it is known; the versions are those of what
	what             string
	position         journal.Position // 0: not known
}

func (e *laterRecord) Error() string {
	text := "a record of the journal"
	if e.position > 0 {
		text = fmt.Sprintf("the record at position %d", e.position)
	}
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	return fmt.Sprintf("%s has %s %d, and this program knows those up to %d: it was written by a later release: start that release, or restore a backup", text, e.what, e.Found, e.Known)
}

func (e *laterRecord) Unwrap() error { return &e.VersionError }

// laterThan returns the error for a frame that only a later release can have written, as far as that can be told from its first bytes; nil for any other.
func laterThan(f journal.Frame) error {
	what, found, known := "", uint32(0), uint32(0)
	switch {
	case f.Kind != frameBatch && f.Kind != frameReserve:
		what, found, known = "kind", uint32(f.Kind), frameReserve
	case f.Kind == frameBatch && len(f.Payload) > 0 && f.Payload[0] > recordVersion:
		what, found, known = "version", uint32(f.Payload[0]), recordVersion
	case f.Kind == frameBatch && len(f.Payload) > 1 && f.Payload[0] == recordVersion && f.Payload[1]&^recordPacked != 0:
		what, found, known = "flags", uint32(f.Payload[1]), recordPacked
	default:
		return nil
	}
	return &laterRecord{vfs.VersionError{Found: found, Known: known}, what, f.Position}
}

// acceptFrom refuses frames of a later release, but for those below a position, which files hold as well.
func acceptFrom(first core.Position) func(journal.Frame) error {
	return func(f journal.Frame) error {
		if core.Position(f.Position) < first {
			return nil
		}
		return laterThan(f)
	}
}

// encode sets payload. Every record of b must be one to be stored.
func (e *encoder) encode(p *packer, b *core.Batch) error {
	e.body = e.body[:0]
	e.uvarint(partsOf(b))
	e.origin(b.Origin)
	e.samples(b)
	e.messages(b.Messages)
	e.properties(b.Properties)
	e.deletes(b)
	e.alerts(b.Alerts)
	e.documents(b.Documents)
	if len(e.body) > maxRecord || len(e.arena) > maxKeyBytes {
		return core.Errorf(core.TooLarge, "batch of %d bytes, %d of them series keys, is above the limit of %d and %d: send it in parts",
			len(e.body), len(e.arena), maxRecord, maxKeyBytes)
	}
	e.pack(p)
	return nil
}

func (e *encoder) pack(p *packer) {
	e.payload = append(e.payload[:0], recordVersion, 0)
	if len(e.body) > packAbove {
		e.payload[1] = recordPacked
		e.payload = binary.AppendUvarint(e.payload, uint64(len(e.body)))
		e.payload = p.enc.EncodeAll(e.body, e.payload)
		// It pays when an eighth is saved.
		if n := len(e.payload); n < len(e.body)-len(e.body)/8 && len(e.body) <= maxPackRatio*n {
			return
		}
		e.payload = append(e.payload[:0], recordVersion, 0)
	}
	e.payload = append(e.payload, e.body...)
}

func partsOf(b *core.Batch) uint64 {
	var parts uint64
	for i, n := range [...]int{b.Samples.Len(), len(b.Messages), len(b.Properties), len(b.Series), len(b.Removed), len(b.Alerts), len(b.Documents)} {
		if n > 0 {
			parts |= partSamples << i
		}
	}
	return parts
}

func (e *encoder) uvarint(v uint64) { e.body = binary.AppendUvarint(e.body, v) }
func (e *encoder) varint(v int64)   { e.body = binary.AppendVarint(e.body, v) }
func (e *encoder) byte(v byte)      { e.body = append(e.body, v) }
func (e *encoder) count(n int)      { e.uvarint(uint64(n)) }

func (e *encoder) float(v float64) {
	e.body = binary.LittleEndian.AppendUint64(e.body, math.Float64bits(v))
}

func (e *encoder) text(s string) {
	e.count(len(s))
	e.body = append(e.body, s...)
}

func (e *encoder) tags(t core.Tags) {
	e.count(len(t))
	for _, tag := range t {
		e.text(tag.Name)
		e.text(tag.Value)
	}
}

// Bits of the rights byte of an origin.
const (
	originReadAll  = 1 << 0
	originWriteAll = 1 << 1
)

func (e *encoder) origin(o core.Origin) {
	e.text(o.User)
	e.text(o.Address)
	e.text(string(o.Door))
	e.byte(o.Depth)
	e.uvarint(uint64(o.Grants.Roles))
	var rights byte
	if o.Grants.ReadAll {
		rights |= originReadAll
	}
	if o.Grants.WriteAll {
		rights |= originWriteAll
	}
	e.byte(rights)
	for _, groups := range [2][]string{o.Grants.ReadGroups, o.Grants.WriteGroups} {
		e.count(len(groups))
		for _, g := range groups {
			e.text(g)
		}
	}
}

// prepareKeys lays out the canonical keys of b, which the index wants as well.
func (e *encoder) prepareKeys(b *core.Batch) {
	size := 0
	for i := range b.Keys {
		k := &b.Keys[i]
		size += len(k.Metric) + len(k.Entity) + 2
		for _, t := range k.Tags {
			size += len(t.Name) + len(t.Value) + 2
		}
	}
	e.arena, e.ends, e.sorted = slices.Grow(e.arena[:0], size), slices.Grow(e.ends[:0], len(b.Keys)), e.sorted[:0]
	for i := range b.Keys {
		e.arena = b.Keys[i].Append(e.arena)
		e.ends = append(e.ends, len(e.arena))
	}
}

func (e *encoder) key(i uint32) []byte {
	start := 0
	if i > 0 {
		start = e.ends[i-1]
	}
	return e.arena[start:e.ends[i]]
}

// samples writes the key table and the columns.
func (e *encoder) samples(b *core.Batch) {
	e.prepareKeys(b)
	s := &b.Samples
	if s.Len() == 0 {
		return
	}
	e.sortKeys(b)
	e.count(len(e.order))
	var before []byte
	for _, p := range e.order {
		key := e.key(p.ref)
		shared := commonPrefix(before, key)
		e.count(shared)
		e.count(len(key) - shared)
		e.body = append(e.body, key[shared:]...)
		before = key
	}
	e.count(s.Len())
	last := int64(0)
	for _, ref := range s.Series {
		r := int64(e.rank[ref])
		e.varint(r - last)
		last = r
	}
	last = 0
	for _, t := range s.Times {
		e.varint(int64(t) - last)
		last = int64(t)
	}
	for i := 0; i < s.Len(); {
		j := i + 1
		for j < s.Len() && s.Flags[j] == s.Flags[i] {
			j++
		}
		e.byte(byte(s.Flags[i]))
		e.count(j - i)
		i = j
	}
	e.values(s)
	e.sides(s)
}

// place is a key with the eight bytes, as a big-endian number, that follow what all keys of its metric share: the order of most keys is that
// of these numbers.
type place struct {
	head uint64
	ref  uint32
}

// sortKeys fills order and rank with the keys that a sample refers to.
func (e *encoder) sortKeys(b *core.Batch) {
	e.order = slices.Grow(e.order[:0], len(b.Keys))
	e.rank = slices.Grow(e.rank[:0], len(b.Keys))[:len(b.Keys)]
	for i := range e.rank {
		e.rank[i] = noRank
	}
	for _, ref := range b.Samples.Series {
		if e.rank[ref] == noRank {
			e.rank[ref] = 0
			e.order = append(e.order, place{ref: ref})
		}
	}
	e.groupByMetric(b)
	rest := e.order
	for _, n := range e.sizes {
		e.sortPlaces(rest[:n])
		rest = rest[n:]
	}
	e.sorted = slices.Grow(e.sorted, len(e.order))
	for i, p := range e.order {
		e.rank[p.ref] = uint32(i)
		e.sorted = append(e.sorted, p.ref)
	}
}

// groupByMetric puts the places of one metric beside each other, the metrics in their order, and fills sizes with how many each has: collectors send all metrics of
// one host after the other, so that the hosts of a metric are in order already.
func (e *encoder) groupByMetric(b *core.Batch) {
	if e.metrics == nil {
		e.metrics = map[string]int{}
	}
	e.starts, e.names = e.starts[:0], e.names[:0]
	for i, p := range e.order {
		name := b.Keys[p.ref].Metric
		group, known := e.metrics[name]
		if !known {
			group = len(e.names)
			e.metrics[name] = group
			e.names, e.starts = append(e.names, name), append(e.starts, 0)
		}
		e.starts[group]++
		e.order[i].head = uint64(group)
	}
	slices.Sort(e.names)
	e.sizes = e.sizes[:0]
	at := 0
	for _, name := range e.names {
		group := e.metrics[name]
		size := e.starts[group]
		e.sizes, e.starts[group] = append(e.sizes, size), at
		at += size
	}
	e.grouped = slices.Grow(e.grouped[:0], len(e.order))[:len(e.order)]
	for _, p := range e.order {
		e.grouped[e.starts[p.head]] = p
		e.starts[p.head]++
	}
	e.order, e.grouped = e.grouped, e.order
	// The names may be those of a request. A large map takes long to clear, and small batches need none.
	clear(e.names)
	if clear(e.metrics); cap(e.names) > manyMetrics {
		e.names, e.metrics = nil, nil
	}
}

// manyMetrics is more than nearly all batches have.
const manyMetrics = 1 << 10

// sortPlaces sorts places, some of which may have the same head.
func (e *encoder) sortPlaces(list []place) {
	first := e.key(list[0].ref)
	shared := len(first)
	for _, p := range list {
		shared = commonPrefix(first[:shared], e.key(p.ref))
	}
	for i, p := range list {
		var head [8]byte
		copy(head[:], e.key(p.ref)[shared:])
		list[i].head = binary.BigEndian.Uint64(head[:])
	}
	compare := func(a, b place) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(e.key(a.ref)[shared:], e.key(b.ref)[shared:])
	}
	if !slices.IsSortedFunc(list, compare) {
		slices.SortFunc(list, compare)
	}
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// values writes the numbers of the samples that have one, in the shorter of both ways.
func (e *encoder) values(s *core.Samples) {
	var before uint64
	raw, xored := 0, 0
	for i, v := range s.Values {
		if s.Flags[i]&core.HasValue != 0 {
			x := math.Float64bits(v)
			xored += uvarintLen(bits.ReverseBytes64(x ^ before))
			raw += 8
			before = x
		}
	}
	mode := byte(valuesRaw)
	if xored < raw {
		mode = valuesXor
	}
	e.byte(mode)
	before = 0
	for i, v := range s.Values {
		switch {
		case s.Flags[i]&core.HasValue == 0:
		case mode == valuesRaw:
			e.float(v)
		default:
			x := math.Float64bits(v)
			e.uvarint(bits.ReverseBytes64(x ^ before))
			before = x
		}
	}
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// sides writes the sparse columns; indexes as differences.
func (e *encoder) sides(s *core.Samples) {
	last := uint32(0)
	index := func(i uint32) {
		e.uvarint(uint64(i - last))
		last = i
	}
	e.count(len(s.Texts))
	for _, at := range s.Texts {
		index(at.Index)
		e.text(at.Text)
	}
	last = 0
	e.count(len(s.Decimals))
	for _, at := range s.Decimals {
		index(at.Index)
		e.varint(at.Significand)
		e.varint(int64(at.Exponent))
	}
	last = 0
	e.count(len(s.Versions))
	for _, at := range s.Versions {
		index(at.Index)
		e.text(at.Source)
		e.text(at.Status)
		e.varint(int64(at.Written))
	}
}

func (e *encoder) messages(all []core.Message) {
	if len(all) == 0 {
		return
	}
	e.count(len(all))
	last := core.Time(0)
	for _, m := range all {
		e.varint(int64(m.Time - last))
		last = m.Time
		e.text(m.Entity)
		e.text(m.Type)
		e.text(m.Source)
		e.byte(byte(m.Severity))
		e.byte(byte(m.Flags))
		e.text(m.Text)
		e.tags(m.Tags)
	}
}

func (e *encoder) propertyKey(k core.PropertyKey) {
	e.text(k.Entity)
	e.text(k.Type)
	e.tags(k.Key)
}

func (e *encoder) properties(all []core.Property) {
	if len(all) == 0 {
		return
	}
	e.count(len(all))
	last := core.Time(0)
	for _, p := range all {
		e.propertyKey(p.PropertyKey)
		e.varint(int64(p.Time - last))
		last = p.Time
		e.byte(byte(p.Flags))
		e.tags(p.Tags)
	}
}

func (e *encoder) deletes(b *core.Batch) {
	if len(b.Series) > 0 {
		e.count(len(b.Series))
		for _, d := range b.Series {
			e.text(d.Key.Metric)
			e.text(d.Key.Entity)
			e.tags(d.Key.Tags)
			e.varint(int64(d.Range.Start))
			e.varint(int64(d.Range.End))
		}
	}
	if len(b.Removed) > 0 {
		e.count(len(b.Removed))
		for _, k := range b.Removed {
			e.propertyKey(k)
		}
	}
}

// Bits of the byte that stands before an alert.
const (
	alertHasRow       = 1 << 0
	alertAcknowledged = 1 << 1
)

func (e *encoder) alerts(all []core.AlertChange) {
	if len(all) == 0 {
		return
	}
	e.count(len(all))
	for _, c := range all {
		var marks byte
		if c.Row != nil {
			marks |= alertHasRow
		}
		if c.Alert.Acknowledged {
			marks |= alertAcknowledged
		}
		e.text(c.Event)
		e.byte(byte(c.Kind))
		e.byte(marks)
		a := &c.Alert
		e.uvarint(a.ID)
		for _, s := range [...]string{a.Rule, a.Window, a.Metric, a.Entity, a.TextValue, a.Message, a.State} {
			e.text(s)
		}
		e.tags(a.Tags)
		e.byte(byte(a.Severity))
		e.varint(int64(a.RepeatCount))
		e.float(a.Value)
		e.float(a.OpenValue)
		e.varint(int64(a.OpenTime))
		e.varint(int64(a.LastEvent))
		if c.Row != nil {
			e.row(c.Row)
		}
	}
}

func (e *encoder) row(r *core.AlertRow) {
	e.uvarint(r.AlertID)
	e.varint(int64(r.Time))
	e.varint(int64(r.Received))
	e.varint(int64(r.OpenTime))
	for _, s := range [...]string{r.Entity, r.Metric, r.Rule, string(r.Type), r.Text, r.Condition, r.Filter, r.Window, r.Schedule} {
		e.text(s)
	}
	e.tags(r.Tags)
	e.float(r.Value)
	e.byte(byte(r.Severity))
	e.varint(int64(r.RepeatCount))
}

func (e *encoder) documents(all []core.DocChange) {
	if len(all) == 0 {
		return
	}
	e.count(len(all))
	for _, c := range all {
		e.text(string(c.Kind))
		e.text(c.Key)
		e.byte(byte(c.Op))
		e.count(len(c.Body))
		e.body = append(e.body, c.Body...)
	}
}
