package chunk

import (
	"encoding/binary"
	"math"
)

// Residuals of kindCoded are cut in two: the low bits, in which neighbouring residuals are equally likely, are packed, and the rest becomes a
// symbol of a Huffman code. Residuals whose symbol would not fit are patched. When there are few symbols, two or four of them share a byte,
// which brings the code below one bit a value and nearer to the entropy.

// planCoded chooses how many bits are low, by the entropy of the symbols.
func (e *Encoder) planCoded(l *level, q []int64, r spread, depth int) plan {
	p := plan{kind: kindCoded, base: r.low, symbol: symbolBits}
	// The finest cut leaves 256 symbols. Coarser ones follow from its histogram.
	fine := max(0, bitLen(uint64(r.high-r.low))-symbolBits)
	if fine > maxWidth {
		return plan{size: math.Inf(1)}
	}
	var count [1 << symbolBits]uint32
	escaped := 0
	for _, v := range q {
		if u := uint64(v-p.base) >> fine; u < uint64(len(count)) {
			count[u]++
		} else {
			escaped++
		}
	}
	if depth == packedDepth && escaped > 0 {
		return plan{size: math.Inf(1)}
	}
	// Estimates too are rounded product by product, so that all processors choose the same plan.
	patches := float64(float64(escaped) * float64(12+bitLen(uint64(r.max-r.min))) / 8)
	// The Huffman code is longer than the entropy, so its real length is what counts in the end.
	low, bits := coarsen(&count, len(q), fine)
	p.low = uint8(low)
	p.size = patches + float64(bits/8) + 8
	l.fillSymbols(q, p)
	size := e.coder.estimate(l.symbols)
	if r.high-r.low < 1<<(symbolBits/2) && r.low == r.min && r.high == r.max && p.low == 0 {
		return e.planShared(l, q, p, size)
	}
	p.size = patches + float64(size) + float64(packedLen(len(q), uint(low))) + 8
	return p
}

// planShared puts several small symbols into a byte when that is smaller.
func (e *Encoder) planShared(l *level, q []int64, p plan, size int) plan {
	top := byte(0)
	for _, s := range l.symbols {
		top = max(top, s)
	}
	p.size = float64(size) + 8
	best := p
	for p.symbol = symbolBits / 2; p.symbol >= 2 && top>>p.symbol == 0; p.symbol /= 2 {
		l.fillSymbols(q, p)
		p.size = float64(e.coder.estimate(l.symbols)) + 8
		if p.size < best.size {
			best = p
		}
	}
	return best
}

// coarsen merges neighbouring counts while that makes the sum of symbols, table and low bits smaller, and returns that in bits.
func coarsen(count *[1 << symbolBits]uint32, n, fine int) (low int, bits float64) {
	low, bits = fine, math.Inf(1)
	size := len(count)
	for shift := fine; size >= 8; shift++ {
		sum, used := 0.0, 0
		for _, c := range count[:size] {
			if c > 0 {
				sum += float64(float64(c) * math.Log2(float64(n)/float64(c)))
				used++
			}
		}
		sum += float64(n*shift) + float64(4*used) // a symbol of the table takes half a byte
		if sum > bits*1.02 {
			break
		}
		if sum < bits {
			low, bits = shift, sum
		}
		size /= 2
		for i := range size {
			count[i] = count[2*i] + count[2*i+1]
		}
	}
	return low, bits
}

// fillSymbols fills the symbols of q. One that does not fit becomes that of its neighbour, which is likely to be cheap.
func (l *level) fillSymbols(q []int64, p plan) {
	l.symbols = resize(l.symbols, len(q))
	last := byte(0)
	for i, v := range q {
		if u := uint64(v-p.base) >> p.low; u < 1<<symbolBits {
			last = byte(u)
		}
		l.symbols[i] = last
	}
	if p.symbol < symbolBits {
		l.symbols = shareBytes(l.symbols, p.symbol)
	}
}

// shareBytes packs values below 1<<bits into bytes, the first lowest, in place.
func shareBytes(values []byte, bits uint8) []byte {
	each := 8 / int(bits)
	n := 0
	for i := 0; i < len(values); i += each {
		var b byte
		for j, v := range values[i:min(len(values), i+each)] {
			b |= v << (j * int(bits))
		}
		values[n] = b
		n++
	}
	return values[:n]
}

// appendCoded appends u8 low bits and symbol size, the symbols, and the low bits.
func (e *Encoder) appendCoded(dst []byte, q []int64, p plan, depth int) []byte {
	l := &e.levels[depth]
	l.fillSymbols(q, p)
	dst = append(dst, p.low|p.symbol/4<<6)
	dst = e.coder.append(dst, l.symbols)
	l.packed = resize(l.packed, len(q))
	mask := uint64(1)<<p.low - 1
	for i, v := range q {
		u := uint64(v - p.base)
		l.packed[i] = u & mask
		if u>>p.low >= 1<<symbolBits {
			l.patch(i, int64(u))
			l.packed[i] = 0
		}
	}
	return appendPacked(dst, l.packed, uint(p.low))
}

// planBytes finds runs and periods, which the other bodies do not see: it compresses some of the residuals and assumes that the rest is alike.
func (e *Encoder) planBytes(q []int64, r spread) plan {
	p := plan{kind: kindBytes, base: r.min, size: math.Inf(1)}
	some := q[:min(len(q), repeatTest)]
	if !repeats(some) {
		return p
	}
	width := p.width(r.max)
	e.wide = appendIntegers(e.wide[:0], some, p.base, width)
	e.test = e.coder.zip(e.test[:0], e.wide)
	p.size = float64(len(e.test)) * float64(len(q)) / float64(len(some))
	p.low = uint8(width)
	return p
}

// repeats reports whether a fourth of the values are behind the same three values as an earlier time.
func repeats(q []int64) bool {
	const buckets = 512
	var last [buckets]uint16
	found := 0
	for i := 3; i < len(q); i++ {
		const prime = 0x9e3779b97f4a7c15
		hash := ((uint64(q[i-3])*prime+uint64(q[i-2]))*prime + uint64(q[i-1])) * prime >> (64 - 9)
		if at := int(last[hash]); at > 0 && [4]int64(q[at-3:]) == [4]int64(q[i-3:]) {
			found++
		}
		last[hash] = uint16(i)
	}
	return 4*found > len(q)
}

func (p plan) width(top int64) int { return max(1, (bitLen(uint64(top-p.base))+7)/8) }

// appendWide appends u8 width and the integers in so many bytes each, compressed.
func (e *Encoder) appendWide(dst []byte, q []int64, p plan) []byte {
	dst = append(dst, p.low)
	e.wide = appendIntegers(e.wide[:0], q, p.base, int(p.low))
	return e.coder.appendRepeats(dst, e.wide)
}

func appendIntegers(dst []byte, q []int64, base int64, width int) []byte {
	for _, v := range q {
		n := len(dst)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v-base))[:n+width]
	}
	return dst
}

// A byte string is u8 method, uvarint length, contents.
const (
	bytesRaw     = 0
	bytesSame    = 1 // one byte, repeated
	bytesHuffOne = 2 // huff0, one stream
	bytesHuff    = 3 // huff0, four streams
	bytesZstd    = 4
)

// fourStreams is the length from which four interleaved Huffman streams are worth their jump table of six bytes.
const fourStreams = 512
