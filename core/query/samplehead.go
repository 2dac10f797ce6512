package query

import (
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/cells"
)

// sampleHead prints what stands before the value of a sample: `{"d":"2021-05-03T10:00:30.000Z","v":` or `{"t":1620036030000,"v":`.
type sampleHead struct {
	format TimeFormat
	iso    cells.Instants

	// Of milliseconds, neighbours mostly share all but the last five digits: the text of the last one is kept, and only these are written anew.
	from, until core.Time // the times that text serves; none at first
	text        []byte
	digits      int // index in text at which the last five digits of a time begin
}

// millisShare is the length of what shares a text: five digits.
const millisShare = 100_000

func newSampleHead(f TimeFormat) sampleHead {
	if f == Millis {
		return sampleHead{format: f, text: make([]byte, 0, 32)}
	}
	return sampleHead{format: f, iso: cells.NewInstants(nil, `{"d":"`, `","v":`)}
}

func (h *sampleHead) append(b []byte, t core.Time) []byte {
	if h.format != Millis {
		return h.iso.Append(b, t)
	}
	if t < h.from || t >= h.until {
		if t < millisShare || t > core.MaxTime { // the first seconds of 1970, and times that are not stored: few, and of other lengths
			return h.whole(b, t)
		}
		h.fill(t)
	}
	start := len(b) + h.digits
	b = append(b, h.text...)
	rest := uint32(t - h.from)
	d := b[start : start+5]
	d[0] = byte('0' + rest/10_000)
	d[1] = byte('0' + rest/1000%10)
	d[2], d[3], d[4] = byte('0'+rest/100%10), byte('0'+rest/10%10), byte('0'+rest%10)
	return b
}

// fill makes the text for the times around t.
func (h *sampleHead) fill(t core.Time) {
	h.from = t / millisShare * millisShare
	h.until = h.from + millisShare
	h.text = h.whole(h.text[:0], h.from)
	h.digits = len(h.text) - len(`00000,"v":`)
}

// whole prints any time.
func (h *sampleHead) whole(b []byte, t core.Time) []byte {
	return append(strconv.AppendInt(append(b, `{"t":`...), int64(t), 10), `,"v":`...)
}
