package chunk

import (
	"encoding/binary"
	"math"
	"slices"
)

// level is the scratch memory of one depth of streams.
type level struct {
	residuals []int64  // in units, from their first one
	sample    []int64  // some of them, for estimates
	widths    []byte   // of the groups
	packed    []uint64 // what is packed next
	symbols   []byte
	gaps      []int64 // patches so far
	patches   []int64
	last      int // index of the newest patch, -1 for none
}

// plan says how the residuals of a stream are stored.
type plan struct {
	kind   byte
	zigzag byte  // headZigzag or 0
	base   int64 // what is subtracted from every residual
	low    uint8 // of kindCoded: how many low bits are packed
	symbol uint8 // of kindCoded: bits of a symbol, 8, 4 or 2
	size   float64
}

// appendStream appends the integers as one stream, which knows neither its count nor its end.
func (e *Encoder) appendStream(dst []byte, x []int64, depth int) []byte {
	if len(x) == 0 {
		return dst
	}
	if len(x) < few && depth == 0 { // patches are few of many, and unlike each other
		return e.appendFew(dst, x)
	}
	l := &e.levels[depth]
	m := l.chooseModel(x)
	order := m.order()
	l.residuals = resize(l.residuals, len(x)-order)
	q := l.residuals
	m.residuals(q, x)
	// From here on q counts units from the first residual. The base that is stored lies in the middle or at the low end of q.
	origin := q[0]
	unit := divide(q)
	l.gaps, l.patches, l.last = l.gaps[:0], l.patches[:0], -1

	p := e.plan(l, q, depth)
	at := len(dst)
	dst = append(dst, p.kind|byte(m.transform)<<headTransform|p.zigzag)
	for i := range order {
		dst = binary.AppendVarint(dst, x[i]-int64(i)*x[0]) // the second as a difference
	}
	if m.hasParam() {
		dst = binary.AppendVarint(dst, m.param)
	}
	dst = binary.AppendVarint(dst, origin+int64(unit)*p.base)
	if unit != 1 {
		dst[at] |= headUnit
		dst = binary.AppendUvarint(dst, unit)
	}
	dst = e.appendBody(dst, q, p, depth)
	if len(l.gaps) > 0 {
		// Both streams are of the next depth, whose scratch memory is free.
		dst[at] |= headPatches
		dst = binary.AppendUvarint(dst, uint64(len(l.gaps)))
		dst = e.appendStream(dst, l.gaps, depth+1)
		dst = e.appendStream(dst, l.patches, depth+1)
	}
	return dst
}

func (e *Encoder) appendBody(dst []byte, q []int64, p plan, depth int) []byte {
	l := &e.levels[depth]
	switch p.kind {
	case kindPacked:
		return l.appendGroups(dst, q, p)
	case kindCoded:
		return e.appendCoded(dst, q, p, depth)
	case kindBytes:
		return e.appendWide(dst, q, p)
	default:
		for i, v := range q {
			if v != p.base {
				l.patch(i, v-p.base)
			}
		}
		return dst
	}
}

// patch notes that residual i is v units above the base, which the body does not hold.
func (l *level) patch(i int, v int64) {
	l.gaps = append(l.gaps, int64(i-l.last-1))
	l.patches = append(l.patches, v)
	l.last = i
}

// divide replaces residuals by their differences to the first, divided by the greatest common divisor of these: sizes in pages, times in seconds and
// doubles that were singles all have one. Of anything else it is found to be 1 after a few values.
func divide(q []int64) (unit uint64) {
	first := q[0]
	for _, v := range q {
		a := magnitude(v - first)
		if unit != 0 && a%unit == 0 {
			continue
		}
		for a != 0 { // Euclid; the divisor of 0 and a is a
			unit, a = a, unit%a
		}
		if unit == 1 {
			break
		}
	}
	unit = max(unit, 1)
	if unit == 1 || unit > math.MaxInt64 {
		for i := range q {
			q[i] -= first
		}
		return 1
	}
	for i := range q {
		q[i] = (q[i] - first) / int64(unit)
	}
	return unit
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// chooseModel compares models on a few windows of x.
func (l *level) chooseModel(x []int64) model {
	if len(x) < 4 {
		return model{}
	}
	models := [...]model{{transformNone, 0}, {transformDelta, 0}, {transformDeltaDelta, 0}, {transformLine, slopeOf(x)}, {transformMean, 1}, {transformMean, 3}}
	candidates := models[:]
	if len(x) < 2*estimateWindow {
		candidates = models[:3]
	}
	best, bits := model{}, math.Inf(1)
	for _, m := range candidates {
		l.sample = l.sample[:0]
		for from, to := range windowsOf(len(x)) {
			at := len(l.sample)
			l.sample = resize(l.sample, at+to-from-m.order())
			part := l.sample[at:]
			m.residuals(part, x[from:to])
			// The line of a window begins at 0, that of the stream does not.
			if m.transform == transformLine {
				for i := range part {
					part[i] -= int64(from) * m.param
				}
			}
		}
		// A further model must gain something: it spreads outliers, and takes time.
		if b := classBits(l.sample); b+modelGain < bits {
			best, bits = m, b
		}
	}
	return best
}

// Choices are made by estimates, from windows of a stream.
const (
	estimateWindow = 128
	windows        = 4
	modelGain      = 0.04 // bits a value
)

// windowsOf yields the windows of a run of n values: all of it when it is short.
func windowsOf(n int) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		if n <= estimateWindow*windows {
			yield(0, n)
			return
		}
		for i := range windows {
			from := i * (n - estimateWindow) / (windows - 1)
			if !yield(from, from+estimateWindow) {
				return
			}
		}
	}
}

// classBits estimates the entropy of values in bits a value: that of their sign and number of bits, seen from the middle, and the bits below the
// highest one. A sign costs nothing where all lie on one side.
func classBits(values []int64) float64 {
	if len(values) == 0 {
		return 0
	}
	var few [65]int64
	step := max(1, len(values)/len(few))
	n := 0
	for i := 0; i < len(values) && n < len(few); i += step {
		few[n] = values[i]
		n++
	}
	slices.Sort(few[:n])
	middle := few[n/2]
	var count [2 * 65]int // above the middle, below it
	for _, v := range values {
		v -= middle
		sign := v >> 63
		count[bitLen(uint64(v^sign))+int(sign&65)]++
	}
	bits, total := 0.0, float64(len(values))
	for class, c := range count {
		if c > 0 {
			bits += float64(float64(c) * (math.Log2(total/float64(c)) + float64(max(class%65-1, 0))))
		}
	}
	return bits / total
}

const (
	minCoded     = 64   // a table of symbols does not pay for fewer values
	minRepeats   = 128  // nor does a search for repetition
	repeatTest   = 1024 // values that are compressed to see whether they repeat
	preferPacked = 1.03 // packed values decode twice as fast as coded ones, and may take that much more
	preferCoded  = 1.2  // and these several times as fast as zstd
)

// plan chooses the body of a stream.
func (e *Encoder) plan(l *level, q []int64, depth int) plan {
	// What costs least is asked first: the sizes of packed and coded bodies need several passes.
	mode, count := majority(q)
	if count == len(q) {
		return plan{kind: kindConstant, base: mode}
	}
	if depth < packedDepth && 8*count >= 7*len(q) {
		return l.planSparse(q, mode, count)
	}
	r := l.spread(q)
	best := l.planPacked(q, r, depth)
	if len(q) >= minCoded && r.high-r.low > 0 {
		if coded := e.planCoded(l, q, r, depth); coded.size*preferPacked < best.size {
			best = coded
		}
	}
	if depth < packedDepth && 2*count >= len(q) {
		if sparse := l.planSparse(q, mode, count); sparse.size < best.size {
			best = sparse
		}
	}
	if depth == 0 && len(q) >= minRepeats {
		if repeats := e.planBytes(q, r); repeats.size*preferCoded < best.size {
			best = repeats
		}
	}
	return best
}

// majority finds the value that more than half of q are, by the vote of Boyer and Moore, and how many.
func majority(q []int64) (mode int64, count int) {
	votes := 0
	for _, v := range q {
		switch {
		case votes == 0:
			mode, votes = v, 1
		case v == mode:
			votes++
		default:
			votes--
		}
	}
	for _, v := range q {
		if v == mode {
			count++
		}
	}
	return mode, count
}

// spread says where residuals lie.
type spread struct {
	min, max  int64
	low, high int64 // without outliers
	middle    int64
}

// spread looks at all residuals for the extremes, and at 256 of them for the rest.
func (l *level) spread(q []int64) spread {
	r := spread{min: q[0], max: q[0]}
	for _, v := range q {
		r.min, r.max = min(r.min, v), max(r.max, v)
	}
	// The bulk is all but a 64th at either end of the sample.
	step := max(1, len(q)/256)
	l.sample = l.sample[:0]
	for i := 0; i < len(q); i += step {
		l.sample = append(l.sample, q[i])
	}
	slices.Sort(l.sample)
	s := l.sample
	r.middle = s[len(s)/2]
	r.low, r.high = s[len(s)/64], s[len(s)-1-len(s)/64]
	// What lies within a span of the bulk is no outlier. A span that overflows leaves the bulk as it is.
	if span := r.high - r.low; span >= 0 {
		if low := r.low - span; low > r.low || r.min >= low {
			r.low = r.min
		} else {
			r.low = low
		}
		if high := r.high + span; high < r.high || r.max <= high {
			r.high = r.max
		} else {
			r.high = high
		}
	}
	return r
}

// planPacked compares the two ways to make residuals positive.
func (l *level) planPacked(q []int64, r spread, depth int) plan {
	offset := plan{kind: kindPacked, base: r.low}
	if depth == packedDepth {
		offset.base = r.min // without patches nothing may lie below
	}
	signed := plan{kind: kindPacked, base: r.middle, zigzag: headZigzag}
	groups := (len(q) + groupSize - 1) / groupSize
	l.widths = resize(l.widths, 2*groups)
	offset.size = groupWidths(l.widths[:groups], q, offset, depth)
	signed.size = groupWidths(l.widths[groups:], q, signed, depth)
	if signed.size*1.01 < offset.size {
		copy(l.widths, l.widths[groups:])
		return signed
	}
	return offset
}

// groupWidths chooses the width of each group and returns the size of all of them in bytes, patches included.
func groupWidths(widths []byte, q []int64, p plan, depth int) float64 {
	bits := 0
	for g := range widths {
		group := q[g*groupSize : min(len(q), (g+1)*groupSize)]
		var count [65]int32
		if p.zigzag != 0 {
			for _, v := range group {
				count[bitLen(zigzag(v-p.base))]++
			}
		} else {
			for _, v := range group {
				count[bitLen(uint64(v-p.base))]++
			}
		}
		width, cost := bestWidth(&count, len(group), depth)
		widths[g] = width
		bits += cost
	}
	return float64(float64(bits)/8) + float64(len(widths))
}

// bestWidth weighs a smaller width against patches. A patch costs its index, about 10 bits, and its value.
func bestWidth(count *[65]int32, n, depth int) (width uint8, bits int) {
	const index = 12
	top := 64
	for top > 0 && count[top] == 0 {
		top--
	}
	width = storedWidth(top)
	bits = n * int(width)
	if depth == packedDepth {
		return width, bits
	}
	above, values := 0, 0
	for w := top - 1; w >= 0; w-- {
		above += int(count[w+1])
		values += int(count[w+1]) * (w + 2)
		if above > n/8 { // so many are no exceptions
			break
		}
		if cost := n*int(storedWidth(w)) + above*index + values; cost < bits {
			width, bits = storedWidth(w), cost
		}
	}
	return width, bits
}

// appendGroups appends the widths that planPacked has left, and the groups.
func (l *level) appendGroups(dst []byte, q []int64, p plan) []byte {
	groups := (len(q) + groupSize - 1) / groupSize
	dst = append(dst, l.widths[:groups]...)
	l.packed = resize(l.packed, groupSize)
	for g, width := range l.widths[:groups] {
		group := q[g*groupSize : min(len(q), (g+1)*groupSize)]
		packed := l.packed[:len(group)]
		for i, v := range group {
			v -= p.base
			u := uint64(v)
			if p.zigzag != 0 {
				u = zigzag(v)
			}
			if width < 64 && u>>width != 0 {
				l.patch(g*groupSize+i, v)
				u = 0
			}
			packed[i] = u
		}
		dst = appendPacked(dst, packed, uint(width))
	}
	return dst
}

// planSparse estimates a constant with patches: the entropy of which are patched, and that of the patches.
func (l *level) planSparse(q []int64, mode int64, count int) plan {
	l.sample = l.sample[:0]
	for _, v := range q {
		if v != mode {
			l.sample = append(l.sample, v)
			if len(l.sample) == estimateWindow*windows {
				break
			}
		}
	}
	n, m := float64(len(q)), float64(len(q)-count)
	which := float64(m*math.Log2(n/m)) + float64((n-m)*math.Log2(n/(n-m)))
	const overhead = 12
	return plan{kind: kindConstant, base: mode, size: overhead + float64(1.02*(which+float64(m*classBits(l.sample)))/8)}
}

// resize returns s with n elements, in a larger array when it has to. Elements beyond the length of s are undefined.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return slices.Grow(s, n-len(s))[:n]
}
