package chunk

import (
	"encoding/binary"
	"math"
)

// The first byte of every column says how it is encoded, and of which column it is.
const (
	tagTimes   = 0x10 // a stream
	tagRegular = 0x20 // .. 0x2f: an interval, in units[tag&15]

	tagRaw        = 0x30 // 8 bytes a value
	tagConstant   = 0x31 // 8 bytes
	tagDecimal    = 0x32 // integers, to be divided by a power of ten
	tagBits       = 0x33 // the bits of the values as integers
	tagDictionary = 0x34 // distinct values and a stream of their indexes

	tagTexts    = 0x40
	tagDecimals = 0x50
	tagVersions = 0x60
)

// AppendValues appends the column of values, bit for bit. There are at most MaxSamples.
func (e *Encoder) AppendValues(dst []byte, values []float64) []byte {
	mustFit(len(values))
	if len(values) == 0 {
		return append(dst, tagRaw)
	}
	if first := math.Float64bits(values[0]); same(values, first) {
		return e.appendConstant(dst, values, first)
	}
	// Decimals, unless the values are none; bits, if they are none or many of them; words, if there are few. Raw, if none of these gains 3 %.
	at := len(dst)
	size := 8*len(values) + 1
	scale, exact := e.findScale(values)
	if exact {
		dst = e.appendDecimal(dst, values, scale)
	}
	if !exact || len(e.special.index) > len(values)/8 {
		dst = e.keepSmaller(dst, at, func(b []byte) []byte { return e.appendBits(b, values) })
	}
	if e.findWords(values) && !(exact && e.dense(scale)) {
		dst = e.keepSmaller(dst, at, func(b []byte) []byte { return e.appendDictionary(b, values) })
	}
	if float64(len(dst)-at)*preferPacked > float64(size) {
		dst = append(dst[:at], tagRaw)
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst
}

// keepSmaller replaces dst[at:] by what encode appends, when that is smaller or nothing is there.
func (e *Encoder) keepSmaller(dst []byte, at int, encode func([]byte) []byte) []byte {
	middle := len(dst)
	dst = encode(dst)
	if middle > at && len(dst)-middle >= middle-at {
		return dst[:middle]
	}
	return append(dst[:at], dst[middle:]...)
}

func same(values []float64, bits uint64) bool {
	for _, v := range values {
		if math.Float64bits(v) != bits {
			return false
		}
	}
	return true
}

// appendConstant writes a repeated value as a decimal when that is shorter than eight bytes.
func (e *Encoder) appendConstant(dst []byte, values []float64, bits uint64) []byte {
	if scale, ok := scaleOf(values[0]); ok {
		at := len(dst)
		x, _ := toInteger(values[0], scale)
		dst = append(dst, tagDecimal, scaleByte([]int64{x}, scale), kindConstant)
		dst = binary.AppendVarint(dst, x)
		if dst = append(dst, 0); len(dst)-at <= 9 { // no specials
			return dst
		}
		dst = dst[:at]
	}
	return binary.LittleEndian.AppendUint64(append(dst, tagConstant), bits)
}

// scaleSmall is set in the scale of a column whose integers can be scaled by products instead of division.
const scaleSmall = 1 << 7

// specials are values that do not fit the encoding of their column.
type specials struct {
	index  []int64
	values []int64 // ordered bits
}

func (s *specials) reset() { s.index, s.values = s.index[:0], s.values[:0] }

func (s *specials) add(i int, v float64) {
	s.index = append(s.index, int64(i))
	s.values = append(s.values, orderedBits(v))
}

// appendSpecials appends uvarint count, the gaps between the indexes, and the bits.
func (e *Encoder) appendSpecials(dst []byte) []byte {
	s := &e.special
	dst = binary.AppendUvarint(dst, uint64(len(s.index)))
	last := int64(-1)
	for i, index := range s.index {
		s.index[i] = index - last - 1
		last = index
	}
	dst = e.appendStream(dst, s.index, 0)
	return e.appendStream(dst, s.values, 0)
}

// appendDecimal appends u8 scale, the integers, and the values that are none.
func (e *Encoder) appendDecimal(dst []byte, values []float64, scale int) []byte {
	e.integers = resize(e.integers, len(values))
	e.special.reset()
	toIntegers(e.integers, values, scale, &e.special)
	dst = append(dst, tagDecimal, scaleByte(e.integers, scale))
	dst = e.appendStream(dst, e.integers, 0)
	return e.appendSpecials(dst)
}

// scaleByte is how the scale of integers is written.
func scaleByte(x []int64, scale int) byte {
	if productsDo(x, scale) {
		return byte(scale) | scaleSmall
	}
	return byte(scale)
}

// appendBits appends the ordered bits of the values, and the NaN and infinite ones.
func (e *Encoder) appendBits(dst []byte, values []float64) []byte {
	e.integers = resize(e.integers, len(values))
	e.special.reset()
	last := int64(0)
	for i, v := range values {
		// NaN and infinities lie far from numbers, and would be two outliers each where differences are stored.
		if math.Float64bits(v)&infinite == infinite {
			e.special.add(i, v)
		} else {
			last = orderedBits(v)
		}
		e.integers[i] = last
	}
	dst = append(dst, tagBits)
	dst = e.appendStream(dst, e.integers, 0)
	return e.appendSpecials(dst)
}

// infinite is the exponent of NaN and infinities.
const infinite = 0x7ff << 52

// orderedBits maps a double to an integer such that neighbours differ by one and the order is that of the numbers.
func orderedBits(v float64) int64 {
	b := int64(math.Float64bits(v))
	return b ^ b>>63&math.MaxInt64
}

// fromOrderedBits is the inverse of orderedBits.
func fromOrderedBits(b int64) float64 { return math.Float64frombits(uint64(b ^ b>>63&math.MaxInt64)) }

// Values decodes a column of n values into dst[:0].
func (d *Decoder) Values(dst []float64, src []byte, n int) ([]float64, error) {
	if n < 0 || n > MaxSamples {
		return dst[:0], damaged("a block of %d samples is above %d", n, MaxSamples)
	}
	dst = resize(dst[:0], n)
	r := &reader{b: src}
	d.places = -1
	tag := r.byte()
	switch tag {
	case tagRaw:
		rawValues(r, dst)
	case tagConstant:
		if b := r.bytes(8); b != nil {
			fill(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	case tagDecimal:
		d.decimal(r, dst)
	case tagBits:
		if x := d.column(r, n); r.err == nil {
			for i, b := range x {
				dst[i] = fromOrderedBits(b)
			}
			d.specials(r, dst)
		}
	case tagDictionary:
		d.dictionary(r, dst)
	default:
		r.fail("a column of values begins with %#x", tag)
	}
	if err := r.finish(); err != nil {
		return dst[:0], err
	}
	return dst, nil
}

// decimal reads u8 scale, the integers, and the values that are none.
func (d *Decoder) decimal(r *reader, dst []float64) {
	head := r.byte()
	scale := int(head &^ scaleSmall)
	if scale > maxScale || head&scaleSmall != 0 && scale > maxProductScale {
		r.fail("a scale of %#x", head)
	}
	if r.err != nil || len(dst) == 0 {
		return
	}
	d.integers = resize(d.integers, len(dst))
	h := r.header(len(dst))
	switch {
	case r.err != nil:
		return
	case head&scaleSmall != 0 && h.kind == kindCoded && h.transform == transformDelta && !h.patches:
		d.codedProducts(r, &h, dst, reciprocalOf(scale))
	default:
		d.body(r, &h, d.integers, 0)
		if r.err == nil && (head&scaleSmall == 0 || !h.products(dst, d.integers, reciprocalOf(scale))) {
			h.restore(d.integers)
			divideAll(dst, d.integers, scale)
		}
	}
	if r.err == nil && d.specials(r, dst) == 0 && head&scaleSmall != 0 {
		d.places = scale
	}
}

// Places tells of the values that were read last that each is i/10^k, rounded to a double, with a whole i below 2^31, of any size where k is 0. None is NaN then.
func (d *Decoder) Places() (k int, ok bool) { return d.places, d.places >= 0 }

// codedProducts reads coded differences, the body that most columns have, without a pass that puts symbols and low bits together.
func (d *Decoder) codedProducts(r *reader, h *header, dst []float64, by reciprocal) {
	q := d.integers[1:]
	symbols, low := d.symbols(r, q)
	switch {
	case r.err != nil:
		return
	case symbols != nil && low > 0:
		dst[0] = by.times(h.first[0])
		h.scaleJoined(dst[1:], q, joint{symbols, low, by})
		return
	case symbols != nil:
		spreadSymbols(q, symbols)
	}
	h.products(dst, d.integers, by)
}

func rawValues(r *reader, dst []float64) {
	b := r.bytes(8 * len(dst))
	if r.err != nil {
		return
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// column reads a stream of n integers into scratch memory.
func (d *Decoder) column(r *reader, n int) []int64 {
	d.integers = resize(d.integers, n)
	d.stream(r, d.integers, 0)
	return d.integers
}

// specials puts the values that do not fit the encoding in their places, and returns how many there are.
func (d *Decoder) specials(r *reader, dst []float64) (n int) {
	if n = r.count(len(dst)); n == 0 {
		return 0
	}
	d.integers, d.words = resize(d.integers, n), resize(d.words, n)
	d.stream(r, d.integers, 0)
	d.stream(r, d.words, 0)
	if r.err != nil {
		return n
	}
	for i, gap := range d.integers {
		if uint64(gap) >= uint64(len(dst)) {
			r.fail("a special value lies outside")
			return n
		}
		dst[gap] = fromOrderedBits(d.words[i])
		dst = dst[gap+1:]
	}
	return n
}
