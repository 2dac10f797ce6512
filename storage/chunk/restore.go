package chunk

// The last passes of a decoder. They handle eight or four values a turn, by index: the loop itself would take as long as the arithmetic, and slices that get
// shorter with each turn as long again.

// restore turns residuals in units above the base into values.
func (h *header) restore(dst []int64) {
	base, unit := h.base, h.unit
	switch h.transform {
	case transformNone:
		for i, q := range dst {
			dst[i] = base + unit*q
		}
	case transformDelta:
		dst[0] = h.first[0]
		accumulate(dst[1:], h.first[0], base, unit)
	case transformDeltaDelta:
		x, delta := h.first[0]+h.first[1], h.first[1]
		dst[0], dst[1] = h.first[0], x
		dst = dst[2:]
		for i, q := range dst {
			delta += base + unit*q
			x += delta
			dst[i] = x
		}
	case transformLine:
		at := base
		for i, q := range dst {
			dst[i] = at + unit*q
			at += h.param
		}
	case transformMean:
		dst[0] = h.first[0]
		h.means(dst[1:])
	}
}

// means adds to each residual the mean before it.
func (h *header) means(q []int64) {
	shift := uint(h.param) & 63
	m, base, unit := h.first[0]<<shift, h.base, h.unit
	for i, v := range q {
		r := base + unit*v
		q[i] = m>>shift + r
		m += r
	}
}

// accumulate replaces differences, in units above the base, by the sums of x and all up to them.
func accumulate(q []int64, x, base, unit int64) {
	i := 0
	for ; i < len(q)-3; i += 4 {
		x0 := x + (base + unit*q[i])
		x1 := x0 + (base + unit*q[i+1])
		x2 := x1 + (base + unit*q[i+2])
		x = x2 + (base + unit*q[i+3])
		q[i], q[i+1], q[i+2], q[i+3] = x0, x1, x2, x
	}
	for ; i < len(q); i++ {
		x += base + unit*q[i]
		q[i] = x
	}
}

// products is restore and the product with a reciprocal in one pass, for the transforms that most columns have. It reports whether it did that.
func (h *header) products(dst []float64, q []int64, by reciprocal) bool {
	switch h.transform {
	case transformNone:
		if h.kind == kindConstant && !h.patches {
			fill(dst, by.times(h.base))
			return true
		}
		h.scaleAll(dst, q, by)
	case transformDelta:
		dst[0] = by.times(h.first[0])
		h.scaleSums(dst[1:], q[1:], by)
	case transformMean:
		dst[0] = by.times(h.first[0])
		h.scaleMeans(dst[1:], q[1:], by)
	default:
		return false
	}
	return true
}

// scaleAll is the last step without a transform.
func (h *header) scaleAll(dst []float64, q []int64, by reciprocal) {
	base, unit := h.base, h.unit
	dst = dst[:len(q)]
	i := 0
	for ; i < len(q)-3; i += 4 {
		f0, f1, f2, f3 := float64(base+unit*q[i]), float64(base+unit*q[i+1]), float64(base+unit*q[i+2]), float64(base+unit*q[i+3])
		dst[i], dst[i+1] = float64(f0*by.high)+float64(f0*by.low), float64(f1*by.high)+float64(f1*by.low)
		dst[i+2], dst[i+3] = float64(f2*by.high)+float64(f2*by.low), float64(f3*by.high)+float64(f3*by.low)
	}
	for ; i < len(q); i++ {
		dst[i] = by.times(base + unit*q[i])
	}
}

// scaleSums is the last step of differences. The sum is what the processor waits for: one addition a value.
func (h *header) scaleSums(dst []float64, q []int64, by reciprocal) {
	x, base, unit := h.first[0], h.base, h.unit
	dst = dst[:len(q)]
	i := 0
	for ; i < len(q)-3; i += 4 {
		x0 := x + (base + unit*q[i])
		x1 := x0 + (base + unit*q[i+1])
		x2 := x1 + (base + unit*q[i+2])
		x = x2 + (base + unit*q[i+3])
		f0, f1, f2, f3 := float64(x0), float64(x1), float64(x2), float64(x)
		dst[i], dst[i+1] = float64(f0*by.high)+float64(f0*by.low), float64(f1*by.high)+float64(f1*by.low)
		dst[i+2], dst[i+3] = float64(f2*by.high)+float64(f2*by.low), float64(f3*by.high)+float64(f3*by.low)
	}
	for ; i < len(q); i++ {
		x += base + unit*q[i]
		dst[i] = by.times(x)
	}
}

// joint is symbols that belong above low bits, and what their sums are multiplied with.
type joint struct {
	symbols []byte
	low     uint
	by      reciprocal
}

// scaleJoined is joinSymbols and scaleSums in one pass.
func (h *header) scaleJoined(dst []float64, q []int64, j joint) {
	x, base, unit, low, by := h.first[0], h.base, h.unit, j.low&63, j.by
	dst, s := dst[:len(q)], j.symbols[:len(q)]
	i := 0
	for ; i < len(q)-3; i += 4 {
		x0 := x + (base + unit*(q[i]|int64(s[i])<<low))
		x1 := x0 + (base + unit*(q[i+1]|int64(s[i+1])<<low))
		x2 := x1 + (base + unit*(q[i+2]|int64(s[i+2])<<low))
		x = x2 + (base + unit*(q[i+3]|int64(s[i+3])<<low))
		f0, f1, f2, f3 := float64(x0), float64(x1), float64(x2), float64(x)
		dst[i], dst[i+1] = float64(f0*by.high)+float64(f0*by.low), float64(f1*by.high)+float64(f1*by.low)
		dst[i+2], dst[i+3] = float64(f2*by.high)+float64(f2*by.low), float64(f3*by.high)+float64(f3*by.low)
	}
	for ; i < len(q); i++ {
		x += base + unit*(q[i]|int64(s[i])<<low)
		dst[i] = by.times(x)
	}
}

// scaleMeans is the last step of transformMean. The mean, too, is one addition a value behind the one before.
func (h *header) scaleMeans(dst []float64, q []int64, by reciprocal) {
	shift := uint(h.param) & 63
	m, base, unit := h.first[0]<<shift, h.base, h.unit
	dst = dst[:len(q)]
	for i, v := range q {
		r := base + unit*v
		dst[i] = by.times(m>>shift + r)
		m += r
	}
}

// spreadSymbols makes integers of symbols.
func spreadSymbols(q []int64, symbols []byte) {
	s := symbols[:len(q)]
	i := 0
	for ; i < len(q)-7; i += 8 {
		q[i], q[i+1], q[i+2], q[i+3] = int64(s[i]), int64(s[i+1]), int64(s[i+2]), int64(s[i+3])
		q[i+4], q[i+5], q[i+6], q[i+7] = int64(s[i+4]), int64(s[i+5]), int64(s[i+6]), int64(s[i+7])
	}
	for ; i < len(q); i++ {
		q[i] = int64(s[i])
	}
}

// joinSymbols puts symbols above the low bits that are in q.
func joinSymbols(q []int64, symbols []byte, low uint) {
	low &= 63
	s := symbols[:len(q)]
	i := 0
	for ; i < len(q)-3; i += 4 {
		q[i] |= int64(s[i]) << low
		q[i+1] |= int64(s[i+1]) << low
		q[i+2] |= int64(s[i+2]) << low
		q[i+3] |= int64(s[i+3]) << low
	}
	for ; i < len(q); i++ {
		q[i] |= int64(s[i]) << low
	}
}

// fill sets all of dst, by copies that double.
func fill[T any](dst []T, v T) {
	if len(dst) == 0 {
		return
	}
	dst[0] = v
	for done := 1; done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}
