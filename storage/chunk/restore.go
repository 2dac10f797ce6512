package chunk

// The last passes of a decoder. They handle eight or four values a turn: the loop itself would take as long as the arithmetic.

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
	for len(q) >= 8 {
		a := (*[8]int64)(q)
		x0 := x + (base + unit*a[0])
		x1 := x0 + (base + unit*a[1])
		x2 := x1 + (base + unit*a[2])
		x3 := x2 + (base + unit*a[3])
		a[0], a[1], a[2], a[3] = x0, x1, x2, x3
		x4 := x3 + (base + unit*a[4])
		x5 := x4 + (base + unit*a[5])
		x6 := x5 + (base + unit*a[6])
		x = x6 + (base + unit*a[7])
		a[4], a[5], a[6], a[7] = x4, x5, x6, x
		q = q[8:]
	}
	for i, v := range q {
		x += base + unit*v
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
	for len(q) >= 4 && len(dst) >= 4 {
		a, d := (*[4]int64)(q), (*[4]float64)(dst)
		f0, f1, f2, f3 := float64(base+unit*a[0]), float64(base+unit*a[1]), float64(base+unit*a[2]), float64(base+unit*a[3])
		d[0], d[1] = f0*by.high+f0*by.low, f1*by.high+f1*by.low
		d[2], d[3] = f2*by.high+f2*by.low, f3*by.high+f3*by.low
		q, dst = q[4:], dst[4:]
	}
	for i, v := range q {
		dst[i] = by.times(base + unit*v)
	}
}

// scaleSums is the last step of differences. The sum is what the processor waits for: one addition a value.
func (h *header) scaleSums(dst []float64, q []int64, by reciprocal) {
	x, base, unit := h.first[0], h.base, h.unit
	for len(q) >= 4 && len(dst) >= 4 {
		a, d := (*[4]int64)(q), (*[4]float64)(dst)
		x0 := x + (base + unit*a[0])
		x1 := x0 + (base + unit*a[1])
		x2 := x1 + (base + unit*a[2])
		x = x2 + (base + unit*a[3])
		f0, f1, f2, f3 := float64(x0), float64(x1), float64(x2), float64(x)
		d[0], d[1] = f0*by.high+f0*by.low, f1*by.high+f1*by.low
		d[2], d[3] = f2*by.high+f2*by.low, f3*by.high+f3*by.low
		q, dst = q[4:], dst[4:]
	}
	for i, v := range q {
		x += base + unit*v
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
	for len(q) >= 8 && len(symbols) >= 8 {
		a, s := (*[8]int64)(q), (*[8]byte)(symbols)
		a[0], a[1], a[2], a[3] = int64(s[0]), int64(s[1]), int64(s[2]), int64(s[3])
		a[4], a[5], a[6], a[7] = int64(s[4]), int64(s[5]), int64(s[6]), int64(s[7])
		q, symbols = q[8:], symbols[8:]
	}
	for i, s := range symbols[:len(q)] {
		q[i] = int64(s)
	}
}

// joinSymbols puts symbols above the low bits that are in q.
func joinSymbols(q []int64, symbols []byte, low uint) {
	low &= 63
	for len(q) >= 8 && len(symbols) >= 8 {
		a, s := (*[8]int64)(q), (*[8]byte)(symbols)
		a[0] |= int64(s[0]) << low
		a[1] |= int64(s[1]) << low
		a[2] |= int64(s[2]) << low
		a[3] |= int64(s[3]) << low
		a[4] |= int64(s[4]) << low
		a[5] |= int64(s[5]) << low
		a[6] |= int64(s[6]) << low
		a[7] |= int64(s[7]) << low
		q, symbols = q[8:], symbols[8:]
	}
	for i, s := range symbols[:len(q)] {
		q[i] |= int64(s) << low
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
