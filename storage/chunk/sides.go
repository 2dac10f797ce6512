package chunk

import (
	"encoding/binary"
	"math"

	"github.com/tidemark-db/tidemark/core"
)

// Side columns begin with their tag, uvarint count and the stream of gaps between the indexes.

// AppendTexts appends the texts of a block, ascending by index.
func (e *Encoder) AppendTexts(dst []byte, texts []core.TextAt) []byte {
	dst = appendIndexes(e, append(dst, tagTexts), texts, func(t *core.TextAt) uint32 { return t.Index })
	e.texts = e.texts[:0]
	for i := range texts {
		e.texts = append(e.texts, texts[i].Text)
	}
	return e.appendStrings(dst)
}

// AppendDecimals appends the exact decimals of a block, ascending by index.
func (e *Encoder) AppendDecimals(dst []byte, decimals []core.DecimalAt) []byte {
	dst = appendIndexes(e, append(dst, tagDecimals), decimals, func(d *core.DecimalAt) uint32 { return d.Index })
	dst = appendField(e, dst, decimals, func(d *core.DecimalAt) int64 { return d.Significand })
	return appendField(e, dst, decimals, func(d *core.DecimalAt) int64 { return int64(d.Exponent) })
}

// AppendVersions appends the versions of a block, ascending by index.
func (e *Encoder) AppendVersions(dst []byte, versions []core.VersionAt) []byte {
	dst = appendIndexes(e, append(dst, tagVersions), versions, func(v *core.VersionAt) uint32 { return v.Index })
	for _, field := range [...]func(*core.VersionAt) string{source, status} {
		e.texts = e.texts[:0]
		for i := range versions {
			e.texts = append(e.texts, field(&versions[i]))
		}
		dst = e.appendStrings(dst)
	}
	return appendField(e, dst, versions, func(v *core.VersionAt) int64 { return int64(v.Written) })
}

func source(v *core.VersionAt) string { return v.Source }
func status(v *core.VersionAt) string { return v.Status }

// appendIndexes appends the count of a side column and the gaps between its indexes.
func appendIndexes[T any](e *Encoder, dst []byte, entries []T, index func(*T) uint32) []byte {
	mustFit(len(entries))
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	last := int64(-1)
	return appendField(e, dst, entries, func(t *T) int64 {
		at := int64(index(t))
		gap := at - last - 1
		last = at
		return gap
	})
}

// appendField appends a stream of one integer an entry.
func appendField[T any](e *Encoder, dst []byte, entries []T, field func(*T) int64) []byte {
	e.integers = resize(e.integers, len(entries))
	for i := range entries {
		e.integers[i] = field(&entries[i])
	}
	return e.appendStream(dst, e.integers, 0)
}

// The strings of a column are u8 form, and lengths and bytes of the strings one behind the other; or uvarint words, those of the words, and the
// stream of their indexes.
const (
	stringsPlain = 0
	stringsWords = 1
)

// appendStrings appends e.texts, and lets go of them.
func (e *Encoder) appendStrings(dst []byte) []byte {
	if len(e.texts) == 0 {
		return dst
	}
	if e.wordIndex == nil {
		e.wordIndex = map[string]int{}
	}
	words := e.distinct[:0]
	for _, s := range e.texts {
		if _, ok := e.wordIndex[s]; !ok {
			e.wordIndex[s] = len(words)
			words = append(words, s)
		}
	}
	e.distinct = words
	// A dictionary, when entries repeat: an index is shorter than a length, and equal strings lie in memory once.
	if 2*len(words) <= len(e.texts) {
		dst = binary.AppendUvarint(append(dst, stringsWords), uint64(len(words)))
		dst = e.appendBlob(dst, words)
		e.integers = resize(e.integers, len(e.texts))
		for i, s := range e.texts {
			e.integers[i] = int64(e.wordIndex[s])
		}
		dst = e.appendStream(dst, e.integers, 0)
	} else {
		dst = e.appendBlob(append(dst, stringsPlain), e.texts)
	}
	clear(e.wordIndex)
	clear(e.distinct)
	clear(e.texts)
	return dst
}

// appendBlob appends the lengths of strings, and the strings behind each other as one byte string.
func (e *Encoder) appendBlob(dst []byte, texts []string) []byte {
	e.integers = resize(e.integers, len(texts))
	e.wide = e.wide[:0]
	for i, s := range texts {
		e.integers[i] = int64(len(s))
		e.wide = append(e.wide, s...)
	}
	dst = e.appendStream(dst, e.integers, 0)
	return e.coder.appendRepeats(dst, e.wide)
}

// Texts decodes the texts of a block of n samples into dst[:0]. They share one new string.
func (d *Decoder) Texts(dst []core.TextAt, src []byte, n int) ([]core.TextAt, error) {
	r := &reader{b: src}
	dst = indexes(d, r, dst, form{tagTexts, n}, func(t *core.TextAt, i uint32) { t.Index = i })
	readStrings(d, r, dst, func(t *core.TextAt, s string) { t.Text = s })
	return ended(r, dst)
}

// Decimals decodes the exact decimals of a block of n samples into dst[:0].
func (d *Decoder) Decimals(dst []core.DecimalAt, src []byte, n int) ([]core.DecimalAt, error) {
	r := &reader{b: src}
	dst = indexes(d, r, dst, form{tagDecimals, n}, func(t *core.DecimalAt, i uint32) { t.Index = i })
	field(d, r, dst, func(t *core.DecimalAt, v int64) { t.Significand = v })
	field(d, r, dst, func(t *core.DecimalAt, v int64) {
		if t.Exponent = int32(v); int64(t.Exponent) != v {
			r.fail("an exponent of %d", v)
		}
	})
	return ended(r, dst)
}

// Versions decodes the versions of a block of n samples into dst[:0]. Their sources share one new string, and their states another.
func (d *Decoder) Versions(dst []core.VersionAt, src []byte, n int) ([]core.VersionAt, error) {
	r := &reader{b: src}
	dst = indexes(d, r, dst, form{tagVersions, n}, func(t *core.VersionAt, i uint32) { t.Index = i })
	readStrings(d, r, dst, func(t *core.VersionAt, s string) { t.Source = s })
	readStrings(d, r, dst, func(t *core.VersionAt, s string) { t.Status = s })
	field(d, r, dst, func(t *core.VersionAt, v int64) { t.Written = core.Time(v) })
	return ended(r, dst)
}

// ended fails when bytes are left over, and lets go of the strings of a column that failed.
func ended[T any](r *reader, dst []T) ([]T, error) {
	if err := r.finish(); err != nil {
		clear(dst)
		return dst[:0], err
	}
	return dst, nil
}

// form is what a side column must be: its tag, and the samples that its indexes point to.
type form struct {
	tag     byte
	samples int
}

// indexes reads what side columns begin with.
func indexes[T any](d *Decoder, r *reader, dst []T, f form, set func(*T, uint32)) []T {
	if f.samples < 0 || f.samples > MaxSamples {
		r.fail("a block of %d samples is above %d", f.samples, MaxSamples)
		return dst[:0]
	}
	if tag := r.byte(); tag != f.tag {
		r.fail("a side column begins with %#x, not %#x", tag, f.tag)
	}
	n := r.count(f.samples)
	dst = resize(dst[:0], n)
	clear(dst)
	at, end := int64(-1), int64(f.samples)
	field(d, r, dst, func(t *T, gap int64) {
		if gap < 0 || gap >= end-at-1 {
			r.fail("an index lies outside")
			return
		}
		at += gap + 1
		set(t, uint32(at))
	})
	return dst
}

// field reads a stream of one integer an entry.
func field[T any](d *Decoder, r *reader, dst []T, set func(*T, int64)) {
	x := d.column(r, len(dst))
	for i := range dst {
		if r.err != nil {
			return
		}
		set(&dst[i], x[i])
	}
}

// readStrings reads one string an entry.
func readStrings[T any](d *Decoder, r *reader, dst []T, set func(*T, string)) {
	if len(dst) == 0 || r.err != nil {
		return
	}
	switch f := r.byte(); f {
	case stringsPlain:
		text := d.blob(r, len(dst))
		for i := range dst {
			if r.err != nil {
				return
			}
			n := d.words[i]
			set(&dst[i], text[:n])
			text = text[n:]
		}
	case stringsWords:
		n := r.count(len(dst))
		text := d.blob(r, n)
		ends := d.words
		for i := 1; i < len(ends); i++ {
			ends[i] += ends[i-1]
		}
		field(d, r, dst, func(t *T, index int64) {
			if uint64(index) >= uint64(len(ends)) {
				r.fail("word %d of %d", index, len(ends))
				return
			}
			from := int64(0)
			if index > 0 {
				from = ends[index-1]
			}
			set(t, text[from:ends[index]])
		})
	default:
		r.fail("strings have form %d", f)
	}
}

// blob reads n strings that lie behind each other, and leaves their lengths, which add up to its own, in d.words.
func (d *Decoder) blob(r *reader, n int) string {
	d.words = resize(d.words, n)
	d.stream(r, d.words, 0)
	total, limit := int64(0), min(max(maxBytes, int64(len(r.b))*maxRatio), math.MaxInt32)
	for _, length := range d.words {
		// Checked one by one, so that the sum cannot overflow.
		if length < 0 || length > limit-total {
			r.fail("strings are longer than their bytes allow")
		}
		if r.err != nil {
			return ""
		}
		total += length
	}
	b := d.byteString(r, int(total))
	if r.err != nil {
		return ""
	}
	return string(b)
}
