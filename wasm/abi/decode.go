package abi

import (
	"math"
	"unicode/utf8"
)

// Decode reads a command batch into b, reusing what b has allocated. Everything is checked before Decode returns nil:
// version, counts, lengths, references, UTF-8, times, severities and limits; no count is believed before the bytes that
// it needs are known to be there. After an error b holds rubbish.
//
// The text is a string since a batch keeps pointing into it: a host that copies a guest's memory makes one anyway.
func (b *Batch) Decode(text string, limits Limits) error {
	b.reset()
	if text == "" {
		return nil // an empty result is an empty batch
	}
	limits = limits.orDefault()
	if len(text) > limits.Bytes {
		return formatErrorf("batch of %d bytes, the limit is %d", len(text), limits.Bytes)
	}
	sections, counts, err := b.header(text, limits)
	if err != nil {
		return err
	}
	for i, read := range sectionReaders {
		r := reader{text: sections[i], limits: limits, batch: b}
		read(&r, counts[i])
		if r.fault == "" && r.pos != len(r.text) {
			r.fail("bytes are left over")
		}
		if r.fault != "" {
			return formatErrorf("section %s, byte %d: %s", sectionNames[i], r.pos, r.fault)
		}
	}
	return nil
}

// sectionReaders in the order of the sections; the string table comes first since all others refer to it.
var sectionReaders = [sectionCount]func(*reader, int){
	(*reader).strings, (*reader).series, (*reader).samples, (*reader).messages,
	(*reader).properties, (*reader).entities, (*reader).metrics, (*reader).rejects,
}

func (b *Batch) reset() {
	b.Lines, b.Records, b.Rejected, b.Stopped = 0, 0, 0, false
	b.Series, b.Samples, b.Texts, b.Decimals = b.Series[:0], b.Samples[:0], b.Texts[:0], b.Decimals[:0]
	b.Messages, b.Properties, b.Entities, b.Metrics = b.Messages[:0], b.Properties[:0], b.Entities[:0], b.Metrics[:0]
	b.Rejects, b.strings, b.pairs = b.Rejects[:0], b.strings[:0], b.pairs[:0]
}

// header splits text into its sections. The counts it returns fit their sections and the limits.
func (b *Batch) header(text string, limits Limits) (sections [sectionCount]string, counts [sectionCount]int, err error) {
	if text[0] != BatchVersion {
		return sections, counts, formatErrorf("batch version %d, this side reads %d", text[0], BatchVersion)
	}
	if len(text) < batchHeaderSize {
		return sections, counts, formatErrorf("batch of %d bytes ends in its header of %d", len(text), batchHeaderSize)
	}
	size := int(text[2]) | int(text[3])<<8
	if text[1]&^flagStopped != 0 || size < batchHeaderSize || size > len(text) {
		return sections, counts, formatErrorf("batch flags %#x, header size %d: expected at most %#x and at least %d", text[1], size, flagStopped, batchHeaderSize)
	}
	b.Stopped = text[1]&flagStopped != 0
	b.Lines, b.Records, b.Rejected = word(text, 4), word(text, 8), word(text, 12)
	rest, items := text[size:], 0
	for i := range sections {
		at := batchDirectory + i*sectionEntry
		count, length := word(text, at), word(text, at+4)
		if uint64(length) > uint64(len(rest)) {
			return sections, counts, formatErrorf("section %s: %d bytes, but only %d are left", sectionNames[i], length, len(rest))
		}
		if uint64(count)*uint64(sectionLeast[i]) > uint64(length) {
			return sections, counts, formatErrorf("section %s: %d items cannot fit in %d bytes", sectionNames[i], count, length)
		}
		sections[i], rest, counts[i] = rest[:length], rest[length:], int(count)
		if i == sectionStrings {
			if counts[i] > limits.Strings {
				return sections, counts, formatErrorf("%d names, the limit is %d", count, limits.Strings)
			}
		} else if items += counts[i]; items > limits.Items {
			return sections, counts, formatErrorf("%d records, the limit is %d", items, limits.Items)
		}
	}
	if rest != "" {
		return sections, counts, formatErrorf("%d bytes after the last section", len(rest))
	}
	return sections, counts, nil
}

func word(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16 | uint32(s[at+3])<<24
}

func long(s string, at int) uint64 { return uint64(word(s, at)) | uint64(word(s, at+4))<<32 }

// reader walks one section. After the first fault it returns zero values, so that callers check once.
type reader struct {
	text   string
	pos    int
	fault  string
	limits Limits
	batch  *Batch
}

func (r *reader) fail(fault string) {
	if r.fault == "" {
		r.fault = fault
	}
}

// take returns n bytes.
func (r *reader) take(n int) string {
	if r.fault != "" || n > len(r.text)-r.pos {
		r.fail("ends early")
		return ""
	}
	r.pos += n
	return r.text[r.pos-n : r.pos]
}

func (r *reader) byte() byte {
	if s := r.take(1); s != "" {
		return s[0]
	}
	return 0
}

// uvarint returns a number of at most 32 bits: nothing in a batch is larger.
func (r *reader) uvarint() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("number is too large")
	return 0
}

const badTime = "time is outside 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z"

func (r *reader) time() int64 {
	s := r.take(8)
	if s == "" {
		return 0
	}
	t := int64(long(s, 0))
	if t < MinTime || t > MaxTime {
		r.fail(badTime)
	}
	return t
}

func (r *reader) str() string {
	n := r.uvarint()
	if uint64(n) > uint64(r.limits.Text) {
		r.fail("text is longer than the limit")
		return ""
	}
	s := r.take(int(n))
	if !utf8.ValidString(s) {
		r.fail("text is not UTF-8")
	}
	return s
}

func (r *reader) ref() string {
	i := r.uvarint()
	if r.fault != "" {
		return ""
	}
	if uint64(i) >= uint64(len(r.batch.strings)) {
		r.fail("reference is outside the string table")
		return ""
	}
	return r.batch.strings[i]
}

// pairs reads names with values that value reads.
func (r *reader) pairs(value func(*reader) string) []Pair {
	n := int(min(r.uvarint(), math.MaxInt32))
	if n > r.limits.Pairs || n > len(r.text)-r.pos {
		r.fail("too many tags, keys or fields")
	}
	if n == 0 || r.fault != "" {
		return nil
	}
	b := r.batch
	start := len(b.pairs)
	for range n {
		b.pairs = append(b.pairs, Pair{Name: r.ref(), Value: value(r)})
	}
	return b.pairs[start:len(b.pairs):len(b.pairs)] // earlier slices stay valid when the backing array moves
}

func (r *reader) strings(n int) {
	for range n {
		r.batch.strings = append(r.batch.strings, r.str())
	}
}

func (r *reader) series(n int) {
	for range n {
		s := Series{Metric: r.ref(), Entity: r.ref(), Tags: r.pairs((*reader).ref)}
		if r.fault != "" {
			return
		}
		r.batch.Series = append(r.batch.Series, s)
	}
}

func (r *reader) samples(n int) {
	b := r.batch
	for range n {
		s := r.take(sampleSize)
		if s == "" {
			return
		}
		head, t := word(s, 0), int64(long(s, 4))
		ref, flags := head&sampleRefMask, SampleFlags(head>>sampleFlagsShift)
		if int(ref) >= len(b.Series) {
			r.fail("sample of a series that is not in the table")
			return
		}
		if flags&^knownSampleFlags != 0 || flags&(TextOnly|AppendText) != 0 && flags&HasText == 0 {
			r.fail("sample has flags that are unknown or need a text")
			return
		}
		if t < MinTime || t > MaxTime {
			r.fail(badTime)
			return
		}
		if flags&HasText != 0 {
			b.Texts = append(b.Texts, SampleText{Index: len(b.Samples), Text: r.str()})
		}
		if flags&HasDecimal != 0 {
			b.Decimals = append(b.Decimals, SampleText{Index: len(b.Samples), Text: r.decimal()})
		}
		if r.fault != "" {
			return
		}
		b.Samples = append(b.Samples, Sample{Series: SeriesRef(ref), Flags: flags, Time: t, Value: math.Float64frombits(long(s, 12))})
	}
}

// maxDecimal bounds the text of an exact decimal: 19 digits, sign, point and exponent are what storage can hold.
const maxDecimal = 64

func (r *reader) decimal() string {
	s := r.str()
	if !isDecimal(s) {
		r.fail("exact decimal is not a decimal number of at most 64 characters")
	}
	return s
}

// isDecimal accepts [+-] digits [. digits] [e [+-] digits], with a digit before the exponent.
func isDecimal(s string) bool {
	if len(s) > maxDecimal {
		return false
	}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	whole := digits(s)
	s, fraction := s[whole:], 0
	if s != "" && s[0] == '.' {
		fraction = digits(s[1:])
		s = s[1+fraction:]
	}
	if whole+fraction == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && digits(s) == len(s)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func (r *reader) messages(n int) {
	for range n {
		m := Message{Entity: r.ref(), Type: r.ref(), Source: r.ref(), Severity: r.byte()}
		m.Persist = r.persist()
		m.Time, m.Text = r.time(), r.str()
		m.Tags = r.pairs((*reader).str)
		if m.Severity > MaxSeverity {
			r.fail("severity is above 7")
		}
		if r.fault != "" {
			return
		}
		r.batch.Messages = append(r.batch.Messages, m)
	}
}

func (r *reader) persist() bool {
	flags := r.byte()
	if flags&^flagPersist != 0 {
		r.fail("unknown flags")
	}
	return flags&flagPersist != 0
}

func (r *reader) properties(n int) {
	for range n {
		p := Property{Entity: r.ref(), Type: r.ref(), Persist: r.persist(), Time: r.time()}
		p.Keys = r.pairs((*reader).str)
		p.Tags = r.pairs((*reader).str)
		if r.fault != "" {
			return
		}
		r.batch.Properties = append(r.batch.Properties, p)
	}
}

func (r *reader) entities(n int) { r.batch.Entities = r.records(r.batch.Entities, n) }

func (r *reader) metrics(n int) { r.batch.Metrics = r.records(r.batch.Metrics, n) }

func (r *reader) records(into []Record, n int) []Record {
	for range n {
		rec := Record{Name: r.ref()}
		rec.Fields = r.pairs((*reader).str)
		rec.Tags = r.pairs((*reader).str)
		if r.fault != "" {
			return into
		}
		into = append(into, rec)
	}
	return into
}

func (r *reader) rejects(n int) {
	for range n {
		j := Reject{Line: r.uvarint(), Column: r.uvarint(), Reason: r.str(), Text: r.str()}
		if r.fault != "" {
			return
		}
		r.batch.Rejects = append(r.batch.Rejects, j)
	}
}

// Encode writes b with e, for the kinds that take a batch as input.
func (b *Batch) Encode(e *Encoder) []byte {
	e.Reset()
	e.lines, e.records = b.Lines, b.Records
	refs := make([]SeriesRef, len(b.Series))
	for i, s := range b.Series {
		refs[i] = e.Series(s.Metric, s.Entity, s.Tags...)
	}
	texts, decimals := b.Texts, b.Decimals
	for _, s := range b.Samples {
		e.sample(uint32(refs[s.Series])|uint32(s.Flags)<<sampleFlagsShift, s.Time, s.Value)
		if s.Flags&HasText != 0 {
			e.text(sectionSamples, texts[0].Text)
			texts = texts[1:]
		}
		if s.Flags&HasDecimal != 0 {
			e.text(sectionSamples, decimals[0].Text)
			decimals = decimals[1:]
		}
	}
	for i := range b.Messages {
		e.Message(&b.Messages[i])
	}
	for i := range b.Properties {
		e.Property(&b.Properties[i])
	}
	for i := range b.Entities {
		e.Entity(&b.Entities[i])
	}
	for i := range b.Metrics {
		e.Metric(&b.Metrics[i])
	}
	for _, j := range b.Rejects {
		e.Reject(int(j.Line), int(j.Column), j.Reason, j.Text)
	}
	e.rejected = b.Rejected
	if b.Stopped {
		e.Stop()
	}
	return e.Finish()
}
