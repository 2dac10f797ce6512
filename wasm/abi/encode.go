package abi

import (
	"encoding/binary"
	"math"
	"strings"
)

// maxRejects is how many rejects one batch carries; the rest is only counted. A file of the wrong format has one per line.
const maxRejects = 1000

// maxRejectText cuts the offending text of a reject.
const maxRejectText = 256

// maxInterned bounds the names an Encoder remembers over the batches of a long stream: past it all are forgotten.
const maxInterned = 1 << 16

// Encoder writes command batches. It reuses its buffers from batch to batch, and remembers names and series so that a
// stream which repeats them allocates nothing. The zero value is ready. It is not safe for concurrent use.
type Encoder struct {
	lines, records, rejected uint32
	flags                    byte // of the batch
	counts                   [sectionCount]uint32
	sections                 [sectionCount][]byte
	out                      []byte
	key                      []byte // scratch for map look-ups

	batch  uint32 // generation: an interned entry of another batch has no place in this one's tables
	names  map[string]*interned
	series map[string]*interned
	recent [recentSize]*interned // series by a cheap hash of their names; a guest hashes a map key some 10 times slower than a host
}

// recentSize slots of a pointer each: a few thousand series is what one file has.
const recentSize = 1 << 12

// interned is the place of a name or series in the tables of one batch.
type interned struct {
	batch, ref     uint32
	metric, entity string // of a series that SeriesBytes added
}

// Reset begins a batch.
func (e *Encoder) Reset() {
	e.lines, e.records, e.rejected, e.flags = 0, 0, 0, 0
	e.counts = [sectionCount]uint32{}
	for i := range e.sections {
		e.sections[i] = e.sections[i][:0]
	}
	e.batch++
	if e.names == nil || len(e.names)+len(e.series) > maxInterned || e.batch == 0 {
		e.names, e.series = make(map[string]*interned), make(map[string]*interned)
		clear(e.recent[:])
		e.batch = 1
	}
}

// AddLines counts lines read.
func (e *Encoder) AddLines(n int) { e.lines += uint32(n) }

// AddRecords counts data records seen.
func (e *Encoder) AddRecords(n int) { e.records += uint32(n) }

// Len returns the size of the batch so far in bytes, for parsers that bound their output.
func (e *Encoder) Len() int {
	n := batchHeaderSize
	for _, s := range e.sections {
		n += len(s)
	}
	return n
}

// Series returns the place of a series in this batch, adding it when it is the first time. Tags are part of the identity
// in the order given.
func (e *Encoder) Series(metric, entity string, tags ...Pair) SeriesRef {
	k := append(append(e.key[:0], metric...), 0)
	k = append(append(k, entity...), 0)
	for _, t := range tags {
		k = append(append(k, t.Name...), 1)
		k = append(append(k, t.Value...), 0)
	}
	e.key = k
	in, fresh := e.intern(&e.series, k, sectionSeries)
	if fresh {
		e.ref(sectionSeries, metric)
		e.ref(sectionSeries, entity)
		e.uvarint(sectionSeries, uint64(len(tags)))
		for _, t := range tags {
			e.ref(sectionSeries, t.Name)
			e.ref(sectionSeries, t.Value)
		}
	}
	return SeriesRef(in.ref)
}

// SeriesBytes is Series for names that lie in a chunk: it allocates only when the series is one that the Encoder never saw.
func (e *Encoder) SeriesBytes(metric, entity []byte) SeriesRef {
	slot := &e.recent[(cheapHash(metric)*31+cheapHash(entity))%recentSize]
	if in := *slot; in != nil && in.batch == e.batch && in.entity == string(entity) && in.metric == string(metric) {
		return SeriesRef(in.ref)
	}
	in := e.seriesBytes(metric, entity)
	*slot = in
	return SeriesRef(in.ref)
}

func (e *Encoder) seriesBytes(metric, entity []byte) *interned {
	e.key = append(append(e.key[:0], metric...), 0)
	e.key = append(append(e.key, entity...), 0)
	in, fresh := e.intern(&e.series, e.key, sectionSeries)
	if in.metric == "" && in.entity == "" { // never seen, or only by Series
		in.metric, in.entity = string(metric), string(entity)
	}
	if fresh {
		e.ref(sectionSeries, in.metric)
		e.ref(sectionSeries, in.entity)
		e.uvarint(sectionSeries, 0)
	}
	return in
}

// cheapHash mixes the length with the first and the last eight bytes, where names differ. Collisions cost a look-up in the map.
func cheapHash(b []byte) uint64 {
	h := uint64(len(b))
	if len(b) >= 8 {
		h ^= binary.LittleEndian.Uint64(b) ^ binary.LittleEndian.Uint64(b[len(b)-8:])*0x9e3779b97f4a7c15
	} else {
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
	}
	h *= 0x9e3779b97f4a7c15
	return h >> 32
}

// intern returns the place of key in the table of a section, and whether the caller must write it there.
func (e *Encoder) intern(m *map[string]*interned, key []byte, section int) (*interned, bool) {
	in := (*m)[string(key)]
	if in != nil && in.batch == e.batch {
		return in, false
	}
	if in == nil {
		if *m == nil {
			*m = make(map[string]*interned)
		}
		in = new(interned)
		(*m)[string(key)] = in
	}
	in.batch, in.ref = e.batch, e.counts[section]
	e.counts[section]++
	return in, true
}

// Sample adds a value.
func (e *Encoder) Sample(s SeriesRef, t int64, v float64) { e.sample(uint32(s), t, v) }

func (e *Encoder) sample(head uint32, t int64, v float64) {
	b := e.sections[sectionSamples]
	n := len(b)
	if cap(b)-n < sampleSize {
		b = append(b, make([]byte, max(sampleSize, cap(b)))...)
	}
	b = b[:n+sampleSize]
	binary.LittleEndian.PutUint32(b[n:], head)
	binary.LittleEndian.PutUint64(b[n+4:], uint64(t))
	binary.LittleEndian.PutUint64(b[n+12:], math.Float64bits(v))
	e.sections[sectionSamples] = b
	e.counts[sectionSamples]++
}

// SampleText adds a value that comes with a text.
func (e *Encoder) SampleText(s SeriesRef, t int64, v float64, text string) {
	e.sample(uint32(s)|uint32(HasText)<<sampleFlagsShift, t, v)
	e.text(sectionSamples, text)
}

// Text adds a text without a value. Of flags only AppendText has a meaning.
func (e *Encoder) Text(s SeriesRef, t int64, text string, flags SampleFlags) {
	flags = flags&AppendText | HasText | TextOnly
	e.sample(uint32(s)|uint32(flags)<<sampleFlagsShift, t, math.NaN())
	e.text(sectionSamples, text)
}

// SampleDecimal adds a value whose decimal text must survive beyond what a float64 holds.
func (e *Encoder) SampleDecimal(s SeriesRef, t int64, v float64, decimal string) {
	e.sample(uint32(s)|uint32(HasDecimal)<<sampleFlagsShift, t, v)
	e.text(sectionSamples, decimal)
}

// Message adds a message.
func (e *Encoder) Message(m *Message) {
	const sec = sectionMessages
	e.counts[sec]++
	e.ref(sec, m.Entity)
	e.ref(sec, m.Type)
	e.ref(sec, m.Source)
	e.sections[sec] = append(e.sections[sec], m.Severity, persistFlag(m.Persist))
	e.time(sec, m.Time)
	e.text(sec, m.Text)
	e.pairs(sec, m.Tags)
}

// Property adds a property.
func (e *Encoder) Property(p *Property) {
	const sec = sectionProperties
	e.counts[sec]++
	e.ref(sec, p.Entity)
	e.ref(sec, p.Type)
	e.sections[sec] = append(e.sections[sec], persistFlag(p.Persist))
	e.time(sec, p.Time)
	e.pairs(sec, p.Keys)
	e.pairs(sec, p.Tags)
}

// Entity adds the description of an entity.
func (e *Encoder) Entity(r *Record) { e.record(sectionEntities, r) }

// Metric adds the description of a metric.
func (e *Encoder) Metric(r *Record) { e.record(sectionMetrics, r) }

func (e *Encoder) record(sec int, r *Record) {
	e.counts[sec]++
	e.ref(sec, r.Name)
	e.pairs(sec, r.Fields)
	e.pairs(sec, r.Tags)
}

// Reject reports a record that cannot be used; text is cut and repaired as needed, since it comes from bad input.
func (e *Encoder) Reject(line, column int, reason, text string) {
	const sec = sectionRejects
	e.rejected++
	if e.counts[sec] >= maxRejects {
		return
	}
	e.counts[sec]++
	e.uvarint(sec, uint64(uint32(line)))
	e.uvarint(sec, uint64(uint32(column)))
	e.text(sec, excerpt(reason))
	e.text(sec, excerpt(text))
}

// Stop ends the stream with this batch, for the reason that its last reject gives: there is no call after it.
func (e *Encoder) Stop() { e.flags |= flagStopped }

func excerpt(s string) string {
	if len(s) > maxRejectText {
		s = s[:maxRejectText]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Finish returns the batch, valid until the next Reset.
func (e *Encoder) Finish() []byte {
	b := append(e.out[:0], BatchVersion, e.flags)
	b = binary.LittleEndian.AppendUint16(b, batchHeaderSize)
	b = binary.LittleEndian.AppendUint32(b, e.lines)
	b = binary.LittleEndian.AppendUint32(b, e.records)
	b = binary.LittleEndian.AppendUint32(b, e.rejected)
	for i, s := range e.sections {
		b = binary.LittleEndian.AppendUint32(b, e.counts[i])
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	}
	for _, s := range e.sections {
		b = append(b, s...)
	}
	e.out = b
	return b
}

// ref writes a reference to a name. It may be called while another section is being written, never for the string table.
func (e *Encoder) ref(sec int, name string) {
	in := e.names[name]
	if in == nil || in.batch != e.batch {
		if in == nil {
			if e.names == nil {
				e.names = make(map[string]*interned)
			}
			in = new(interned)
			e.names[strings.Clone(name)] = in // the caller's string may alias a chunk
		}
		in.batch, in.ref = e.batch, e.counts[sectionStrings]
		e.counts[sectionStrings]++
		e.text(sectionStrings, name)
	}
	e.uvarint(sec, uint64(in.ref))
}

func (e *Encoder) pairs(sec int, ps []Pair) {
	e.uvarint(sec, uint64(len(ps)))
	for _, p := range ps {
		e.ref(sec, p.Name)
		e.text(sec, p.Value)
	}
}

func (e *Encoder) uvarint(sec int, v uint64) {
	e.sections[sec] = binary.AppendUvarint(e.sections[sec], v)
}

func (e *Encoder) text(sec int, s string) { e.sections[sec] = appendText(e.sections[sec], s) }

func (e *Encoder) time(sec int, t int64) {
	e.sections[sec] = binary.LittleEndian.AppendUint64(e.sections[sec], uint64(t))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func persistFlag(on bool) byte {
	if on {
		return flagPersist
	}
	return 0
}
