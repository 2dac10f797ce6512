package chunk

import (
	"encoding/binary"
	"math"

	"github.com/tidemark-db/tidemark/core"
)

// units of regular intervals, in milliseconds: an interval of ten seconds that starts at a multiple of it takes six bytes.
var units = [16]int64{1, 10, 100, 1000, 2000, 5000, 10_000, 15_000, 20_000, 30_000, 60_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000}

// AppendTimes appends the column of times. They ascend or are equal; there are at most MaxSamples.
func (e *Encoder) AppendTimes(dst []byte, times []core.Time) []byte {
	mustFit(len(times))
	if step, ok := interval(times); ok && times[0] >= 0 {
		start := int64(times[0])
		u := len(units) - 1
		for start%units[u] != 0 || step%units[u] != 0 {
			u--
		}
		dst = append(dst, tagRegular|byte(u))
		dst = binary.AppendUvarint(dst, uint64(start/units[u]))
		return binary.AppendUvarint(dst, uint64(step/units[u]))
	}
	dst = append(dst, tagTimes)
	e.integers = resize(e.integers, len(times))
	for i, t := range times {
		e.integers[i] = int64(t)
	}
	return e.appendStream(dst, e.integers, 0)
}

// interval returns the one difference between all times.
func interval(times []core.Time) (step int64, ok bool) {
	if len(times) == 0 {
		return 0, false
	}
	if len(times) == 1 {
		return 0, true
	}
	step = int64(times[1] - times[0])
	for i, t := range times[1:] {
		if int64(t-times[i]) != step {
			return 0, false
		}
	}
	// A difference that does not fit an int64 looks negative.
	return step, step >= 0
}

// Times decodes a column of n times into dst[:0]. Times that go back are an error: readers search in them.
func (d *Decoder) Times(dst []core.Time, src []byte, n int) ([]core.Time, error) {
	if n < 0 || n > MaxSamples {
		return dst[:0], damaged("a block of %d samples is above %d", n, MaxSamples)
	}
	dst = resize(dst[:0], n)
	r := &reader{b: src}
	switch tag := r.byte(); {
	case tag == tagTimes:
		x := d.column(r, n)
		if r.err == nil && copyTimes(dst, x) {
			r.fail("times go back")
		}
	case tag&0xf0 == tagRegular && n > 0:
		regular(r, dst, units[tag&15])
	default:
		r.fail("a column of %d times begins with %#x", n, tag)
	}
	if err := r.finish(); err != nil {
		return dst[:0], err
	}
	return dst, nil
}

// copyTimes reports whether any time is before the one in front of it.
func copyTimes(dst []core.Time, x []int64) (back bool) {
	if len(x) == 0 {
		return false
	}
	last, less := x[0], 0
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = core.Time(v)
		if v < last {
			less = 1
		}
		last = v
	}
	return less != 0
}

func regular(r *reader, dst []core.Time, unit int64) {
	start, step := r.uvarint(), r.uvarint()
	// Nothing may leave the integers, the last time included.
	limit := uint64(math.MaxInt64) / uint64(unit)
	if start > limit || step > limit {
		r.fail("an interval is out of range")
		return
	}
	t, by := int64(start)*unit, int64(step)*unit
	if rest := int64(len(dst) - 1); by > 0 && (math.MaxInt64-t)/by < rest {
		r.fail("an interval is out of range")
		return
	}
	for len(dst) >= 4 {
		four := (*[4]core.Time)(dst)
		four[0], four[1], four[2], four[3] = core.Time(t), core.Time(t+by), core.Time(t+2*by), core.Time(t+3*by)
		t += 4 * by
		dst = dst[4:]
	}
	for i := range dst {
		dst[i] = core.Time(t)
		t += by
	}
}
