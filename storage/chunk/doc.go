// Package chunk encodes the columns of one series' block: times, values, and the sparse side columns. Every column comes back bit for bit, NaN
// payloads and negative zeroes included, and every decoder is safe on any bytes: it returns an error that wraps ErrDamaged. A checksum is the
// business of the file around it.
//
// A column begins with a tag byte, knows neither its length nor how many samples it holds, and shares nothing with other columns. All numbers are
// little-endian; varint is the signed form (zigzag) of Go's encoding/binary, uvarint the unsigned one.
//
//	0x10        times          stream                                          ascending or equal, Unix ms
//	0x20..0x2f  times          uvarint start/unit | uvarint interval/unit      one interval; the unit is the tag's low half, see units
//	0x30        values         8 bytes each
//	0x31        values         8 bytes                                         all the same
//	0x32        values         u8 scale | stream | specials                    integers i; a value is the double nearest to i/10^scale.
//	                                                                           bit 7 of scale: all |i| < 2^31 and scale <= 5, or scale = 0
//	0x33        values         stream | specials                               ordered bits
//	0x34        values         u8 words-1 | stream(words) | stream             distinct values as ordered bits; the index of each value
//	0x40        texts          indexes | strings
//	0x50        decimals       indexes | stream significands | stream exponents
//	0x60        versions       indexes | strings sources | strings states | stream written
//
//	specials    uvarint m | stream(m) gaps | stream(m) ordered bits            values that do not fit; in the stream stands the integer before
//	indexes     uvarint m | stream(m) gaps                                     gap: index - index before - 1, the first index itself
//	strings     u8 0 | stream(m) lengths | byte string                         nothing when m is 0
//	            u8 1 | uvarint w | stream(w) lengths | byte string | stream(m) w words and the word of each entry
//
// Ordered bits are those of a double as an integer, the lower 63 inverted when it is negative: they sort as the numbers do.
//
// A stream is n integers of 64 bits, n known from outside, nothing at all when n is 0. A transform leaves residuals, which are base + unit*q:
//
//	u8 head | first values | [varint param] | varint base | [uvarint unit] | body | [uvarint m | stream(m) gaps | stream(m) q]
//
//	head        bit  0..1  body: 0 constant, 1 packed, 2 coded, 3 bytes
//	            bit  2..4  transform: 0 none, 1 delta, 2 delta of delta, 3 line, 4 mean
//	            bit  5     q of a packed body is zigzag: 0, -1, 1, -2 is stored as 0, 1, 2, 3
//	            bit  6     there is a unit, the greatest common divisor; otherwise it is 1
//	            bit  7     there are patches: they replace q at their indexes. Theirs have patches at most once more
//
//	none            x[i]
//	delta           x[i] - x[i-1]                                              varint x[0] before
//	delta of delta  differences of these                                       varint x[0], varint x[1]-x[0] before
//	line            x[i] - i*param
//	mean            x[i] - m>>param; m is x[0]<<param at first, and each       varint x[0] before
//	                residual is added to it. param 0..32
//
//	constant        nothing: all q are 0
//	packed          u8 width a group of 128 | groups: width bits a q, each group from a byte on. Widths 0..56 and 64
//	coded           u8 form | byte string | low bits, packed. form: bits 0..5 how many bits are low, bits 6..7 the bits of a symbol: 0 two,
//	                1 four (then no bits are low), 2 eight. q is symbol<<low | low bits. Small symbols share a byte, the first lowest
//	bytes           u8 width 1..8 | byte string of so many bytes a q
//
// A byte string of n bytes, n known from outside, is u8 method | uvarint length | contents:
//
//	0 raw    1 one byte, repeated    2 huff0, one stream    3 huff0, four streams    4 a zstd frame
//
// # Choice
//
// The encoder tries no combination to the end. It takes the scale from 64 values, the transform from four windows of 128 values by an estimate of
// their entropy, and the body by computing the size of each: that of packed groups from a histogram of bit lengths a group, that of coded ones from
// the histogram of the symbols, that of zstd by compressing 1,024 values when they repeat. Packed wins over coded when it is no more than 3 % larger:
// it decodes twice as fast. Fewer than 16 values are not estimated at all: they are packed as they are or as differences.
//
// # Sources
//
// Delta of delta for times: Pelkonen et al., Gorilla, VLDB 2015. Decimals in doubles, and cutting doubles in a part that compresses and a part that
// does not: Afroozeh, Kuffó, Boncz, ALP, SIGMOD 2023. Bit packing with patches: Zukowski et al., Super-Scalar RAM-CPU Cache Compression (PFOR), ICDE
// 2006; Afroozeh, Boncz, FastLanes, VLDB 2023. Huffman codes in four streams, and FSE, which stores their tables: Collet, zstd, RFC 8878.
package chunk
