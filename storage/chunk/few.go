package chunk

import "encoding/binary"

// few is the count below which a stream is written without trying what is best: files of very many series hold blocks of some samples, and what a model
// would save of them is less than what it takes to say which one it is.
const few = 16

// appendFew appends fewer than few integers, at least one: as they are or as differences, whichever takes fewer bits, in one group without patches.
func (e *Encoder) appendFew(dst []byte, x []int64) []byte {
	var memory [few]int64
	m := model{}
	q := memory[:len(x)]
	m.residuals(q, x)
	plain := widthOf(q)
	if plain > 0 && len(x) > 2 {
		var differences [few]int64
		d := differences[:len(x)-1]
		delta := model{transform: transformDelta}
		delta.residuals(d, x)
		if w := widthOf(d); w*len(d)+8*uvarintLen(zigzag(x[0])) < plain*len(q) {
			m, q = delta, d
		}
	}
	origin := q[0]
	unit := divide(q)
	low, high := bounds(q)
	head := byte(m.transform) << headTransform
	if high != low {
		head |= kindPacked
	}
	if unit != 1 {
		head |= headUnit
	}
	dst = append(dst, head)
	if m.order() > 0 {
		dst = binary.AppendVarint(dst, x[0])
	}
	dst = binary.AppendVarint(dst, origin+int64(unit)*low)
	if unit != 1 {
		dst = binary.AppendUvarint(dst, unit)
	}
	if high == low {
		return dst
	}
	var packed [few]uint64
	for i, v := range q {
		packed[i] = uint64(v - low)
	}
	width := storedWidth(bitLen(uint64(high - low)))
	return appendPacked(append(dst, width), packed[:len(q)], uint(width))
}

// widthOf is how many bits a value of q takes above the lowest one.
func widthOf(q []int64) int {
	low, high := bounds(q)
	return bitLen(uint64(high - low))
}

func bounds(q []int64) (low, high int64) {
	low, high = q[0], q[0]
	for _, v := range q[1:] {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// uvarintLen is the length of v as a uvarint.
func uvarintLen(v uint64) int { return (bitLen(v|1) + 6) / 7 }
