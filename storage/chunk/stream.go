package chunk

// A stream is a run of 64-bit integers. All arithmetic wraps around, so any integers come back. See the package documentation for the bytes.
const (
	kindConstant = 0 // all residuals are the base
	kindPacked   = 1 // bit-packed, a width a group
	kindCoded    = 2 // high bits entropy coded, low bits packed
	kindBytes    = 3 // little-endian integers of a few bytes through zstd
	kindMask     = 3

	headTransform = 2 // bits 2 to 4 of the head
	headZigzag    = 1 << 5
	headUnit      = 1 << 6
	headPatches   = 1 << 7
)

const (
	groupSize   = 128        // values that share a width: groups end at a multiple of 16 bytes, and 1 bit in 16 values says how wide
	depths      = 3          // a stream, its patches, and theirs, which have none
	packedDepth = depths - 1 // the depth without patches
	symbolBits  = 8
)

// transform says what the residuals of a stream are.
type transform byte

const (
	transformNone       transform = 0 // x[i]
	transformDelta      transform = 1 // x[i] - x[i-1], from the second on
	transformDeltaDelta transform = 2 // the difference of differences, from the third on
	transformLine       transform = 3 // x[i] - i*param
	transformMean       transform = 4 // x[i] - m>>param, from the second on, where m begins as x[0]<<param and every residual is added to it
	transformMask                 = 7
)

// maxMeanShift bounds the parameter of transformMean. Encoders use 1 and 3.
const maxMeanShift = 32

// order is how many values a transform stores as they are.
func (t transform) order() int {
	switch t {
	case transformDelta, transformMean:
		return 1
	case transformDeltaDelta:
		return 2
	default:
		return 0
	}
}

// hasParam reports whether a transform has a parameter.
func (t transform) hasParam() bool { return t == transformLine || t == transformMean }

// model is a transform with its parameter: the slope of a line, or the shift of a mean, which weighs each value with 2^-shift.
type model struct {
	transform
	param int64
}

// residuals writes what the model leaves of x to dst, which is len(x)-order long.
func (m model) residuals(dst, x []int64) {
	switch m.transform {
	case transformNone:
		copy(dst, x)
	case transformDelta:
		last := x[0]
		for i, v := range x[1:] {
			dst[i] = v - last
			last = v
		}
	case transformDeltaDelta:
		last, delta := x[1], x[1]-x[0]
		for i, v := range x[2:] {
			d := v - last
			dst[i] = d - delta
			last, delta = v, d
		}
	case transformLine:
		at := int64(0)
		for i, v := range x {
			dst[i] = v - at
			at += m.param
		}
	case transformMean:
		shift := uint(m.param)
		mean := x[0] << shift
		for i, v := range x[1:] {
			r := v - mean>>shift
			dst[i] = r
			mean += r
		}
	}
}

// slopeOf is the slope of the straight line from the first to the last value, rounded: exact for a fixed interval with jitter.
func slopeOf(x []int64) int64 {
	if len(x) < 2 {
		return 0
	}
	n := int64(len(x) - 1)
	d := x[n] - x[0]
	if d < 0 {
		return (d - n/2) / n
	}
	return (d + n/2) / n
}
