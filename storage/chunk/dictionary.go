package chunk

import "slices"

// maxWords bounds the dictionary: more words mean that values are measured, not chosen.
const maxWords = 256

// findWords reports whether there are few distinct values, and leaves them in e.words, ascending.
func (e *Encoder) findWords(values []float64) bool {
	const minValues, probes, fewProbes = 64, 64, 24
	if len(values) < minValues {
		return false
	}
	e.words = e.words[:0]
	step := len(values) / probes
	for i := 0; i < len(values); i += step {
		e.words = append(e.words, orderedBits(values[i]))
	}
	slices.Sort(e.words)
	if e.words = slices.Compact(e.words); len(e.words) > fewProbes {
		return false
	}
	for _, v := range values {
		b := orderedBits(v)
		i, ok := slices.BinarySearch(e.words, b)
		if ok {
			continue
		}
		if len(e.words) == min(maxWords, len(values)/16) {
			return false
		}
		e.words = slices.Insert(e.words, i, b)
	}
	return true
}

// dense reports whether the words are most of the decimals between the first and the last: an index of them is then no shorter.
func (e *Encoder) dense(scale int) bool {
	first, ok1 := toInteger(fromOrderedBits(e.words[0]), scale)
	last, ok2 := toInteger(fromOrderedBits(e.words[len(e.words)-1]), scale)
	return ok1 && ok2 && last-first < int64(2*len(e.words))
}

// appendDictionary appends u8 words - 1, the words, and the index of each value.
func (e *Encoder) appendDictionary(dst []byte, values []float64) []byte {
	e.integers = resize(e.integers, len(values))
	last, index := e.words[0], 0
	for i, v := range values {
		if b := orderedBits(v); b != last {
			last = b
			index, _ = slices.BinarySearch(e.words, b)
		}
		e.integers[i] = int64(index)
	}
	dst = append(dst, tagDictionary, byte(len(e.words)-1))
	dst = e.appendStream(dst, e.words, 0)
	return e.appendStream(dst, e.integers, 0)
}

// dictionary reads u8 words - 1, the words, and the index of each value.
func (d *Decoder) dictionary(r *reader, dst []float64) {
	d.words = resize(d.words, int(r.byte())+1)
	d.stream(r, d.words, 0)
	x := d.column(r, len(dst))
	if r.err != nil {
		return
	}
	var words [maxWords]float64
	for i, w := range d.words {
		words[i] = fromOrderedBits(w)
	}
	known := uint64(len(d.words))
	for i, index := range x {
		if uint64(index) >= known {
			r.fail("word %d of %d", index, known)
			return
		}
		dst[i] = words[index&(maxWords-1)]
	}
}
