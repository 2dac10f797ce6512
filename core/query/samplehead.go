package query

import (
	"strconv"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// sampleHead prints what stands before the value of a sample: `{"d":"2021-05-03T10:00:30.000Z","v":` or `{"t":1620036030000,"v":`. Times of neighbours
// mostly share all but their last five digits, those of a minute or of 100 seconds: the text of the last one is kept, and only these are written anew.
type sampleHead struct {
	format      TimeFormat
	from, until core.Time // the times that text serves; none at first
	text        []byte
	digits      int // index in text at which the last five digits of a time begin
}

// Lengths in milliseconds of what shares a text.
const (
	isoShare    = 60_000  // a minute: the digits are ss.SSS
	millisShare = 100_000 // five digits
)

func newSampleHead(f TimeFormat) sampleHead { return sampleHead{format: f, text: make([]byte, 0, 48)} }

func (h *sampleHead) append(b []byte, t core.Time) []byte {
	if t < h.from || t >= h.until {
		if t < millisShare || t > core.MaxTime { // the first seconds of 1970, and times that are not stored: few, and of other lengths
			return h.whole(b, t)
		}
		h.fill(t)
	}
	start := len(b) + h.digits
	b = append(b, h.text...)
	rest := uint32(t - h.from)
	if h.format == Millis {
		d := b[start : start+5]
		d[0] = byte('0' + rest/10_000)
		d[1] = byte('0' + rest/1000%10)
		d[2], d[3], d[4] = byte('0'+rest/100%10), byte('0'+rest/10%10), byte('0'+rest%10)
		return b
	}
	d := b[start : start+6] // ss.SSS
	second, ms := rest/1000, rest%1000
	d[0], d[1] = byte('0'+second/10), byte('0'+second%10)
	d[3], d[4], d[5] = byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)
	return b
}

// fill makes the text for the times around t.
func (h *sampleHead) fill(t core.Time) {
	share := core.Time(isoShare)
	if h.format == Millis {
		share = millisShare
	}
	h.from = t / share * share
	h.until = h.from + share
	h.text = h.whole(h.text[:0], h.from)
	tail := len(`00.000Z","v":`)
	if h.format == Millis {
		tail = len(`00000,"v":`)
	}
	h.digits = len(h.text) - tail
}

// whole prints any time.
func (h *sampleHead) whole(b []byte, t core.Time) []byte {
	if h.format == Millis {
		return append(strconv.AppendInt(append(b, `{"t":`...), int64(t), 10), `,"v":`...)
	}
	return append(dates.AppendISO(append(b, `{"d":"`...), t), `","v":`...)
}
