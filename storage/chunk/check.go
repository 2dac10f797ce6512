package chunk

import "github.com/tidemark-db/tidemark/core"

// Check decodes a column of a block of n samples and forgets the result: an error says what is wrong with it.
func Check(src []byte, n int) error { return new(Decoder).Check(src, n) }

// Check is the function Check with the scratch memory of d.
func (d *Decoder) Check(src []byte, n int) error {
	if len(src) == 0 {
		return damaged("it is empty")
	}
	var err error
	switch tag := src[0]; {
	case tag == tagTimes || tag&0xf0 == tagRegular:
		_, err = d.Times(make([]core.Time, 0, min(max(n, 0), MaxSamples)), src, n)
	case tag == tagTexts:
		_, err = d.Texts(nil, src, n)
	case tag == tagDecimals:
		_, err = d.Decimals(nil, src, n)
	case tag == tagVersions:
		_, err = d.Versions(nil, src, n)
	default:
		if _, err = d.Values(nil, src, n); err == nil {
			err = d.checkSmall(src, n)
		}
	}
	return err
}

// checkSmall holds the integers of a column of decimals, which is sound otherwise, against what its scale says of them.
func (d *Decoder) checkSmall(src []byte, n int) error {
	if src[0] != tagDecimal || src[1]&scaleSmall == 0 {
		return nil
	}
	r := &reader{b: src[2:]}
	if x := d.column(r, n); !productsDo(x, int(src[1]&^scaleSmall)) {
		return damaged("an integer is not below 2^31")
	}
	return r.err
}
