package chunk

import (
	"fmt"
	"strings"
)

var (
	kindNames      = [4]string{"constant", "packed", "coded", "bytes"}
	transformNames = [...]string{"", "delta ", "delta of delta ", "line ", "mean "}
	methodNames    = []string{"raw", "same byte", "huff0 1x", "huff0 4x", "zstd"}
)

// Describe says how a column is encoded, in one line, from its first bytes. It does not decode the column: see Check.
func Describe(src []byte) string {
	r := &reader{b: src}
	tag := r.byte()
	var text string
	switch {
	case r.err != nil:
		return "empty"
	case tag == tagTimes:
		text = "times, " + describeStream(r)
	case tag&0xf0 == tagRegular:
		unit := units[tag&15]
		start, step := r.uvarint(), r.uvarint()
		text = fmt.Sprintf("times, regular from %d by %d ms", start*uint64(unit), step*uint64(unit))
	case tag == tagRaw:
		text = "values, raw"
	case tag == tagConstant:
		text = "values, constant"
	case tag == tagDecimal:
		scale := r.byte() &^ scaleSmall
		text = fmt.Sprintf("values, decimal scale %d, %s", scale, describeStream(r))
	case tag == tagBits:
		text = "values, bits, " + describeStream(r)
	case tag == tagDictionary:
		text = fmt.Sprintf("values, dictionary of %d", int(r.byte())+1)
	case tag == tagTexts:
		text = fmt.Sprintf("texts, %d", r.uvarint())
	case tag == tagDecimals:
		text = fmt.Sprintf("decimals, %d", r.uvarint())
	case tag == tagVersions:
		text = fmt.Sprintf("versions, %d", r.uvarint())
	default:
		return fmt.Sprintf("unknown %#x, %d bytes", tag, len(src))
	}
	if r.err != nil {
		return fmt.Sprintf("%s, %v", text, r.err)
	}
	return fmt.Sprintf("%s, %d bytes", text, len(src))
}

// describeStream prints the head of a stream, whose length it does not know.
func describeStream(r *reader) string {
	if len(r.b) == 0 {
		return "no numbers"
	}
	h := r.header(MaxSamples)
	if r.err != nil {
		return "stream"
	}
	var b strings.Builder
	b.WriteString(transformNames[h.transform] + kindNames[h.kind])
	if h.zigzag {
		b.WriteString(" zigzag")
	}
	if h.kind == kindCoded {
		form := r.byte()
		method := int(r.byte())
		name := "?"
		if method < len(methodNames) {
			name = methodNames[method]
		}
		fmt.Fprintf(&b, " %s of %d-bit symbols, %d low bits", name, [4]int{2, 4, 8, 0}[form>>6], form&63)
	}
	switch h.transform {
	case transformLine:
		fmt.Fprintf(&b, ", slope %d", h.param)
	case transformMean:
		fmt.Fprintf(&b, ", weight 1/%d", int64(1)<<h.param)
	}
	fmt.Fprintf(&b, ", base %d", h.base)
	if h.unit != 1 {
		fmt.Fprintf(&b, ", unit %d", h.unit)
	}
	if h.patches {
		b.WriteString(", patched")
	}
	return b.String()
}
