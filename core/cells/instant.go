package cells

import (
	"bytes"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Instants appends instants as ISO 8601 with three digits of fraction in one zone: 2021-05-03T10:00:00.000Z, and with the offset at the end where the zone is
// not UTC. The text of the last one is kept: those of the same day and offset differ from it in the clock alone. It serves one goroutine.
type Instants struct {
	zone          *time.Location
	before, after string
	from, until   core.Time // what text serves
	midnight      core.Time // of that day, when its offset held all day
	text          []byte
	clock         int // where hh:mm:ss.SSS begins in text
}

// NewInstants returns the Instants of a zone, nil for UTC, each of which stands between two texts: such as quotes, or what the next cell begins with.
func NewInstants(zone *time.Location, before, after string) Instants {
	if zone == nil {
		zone = time.UTC
	}
	return Instants{zone: zone, before: before, after: after}
}

// iso cannot fail to compile: it has a name.
var iso, _ = dates.CompilePattern("iso")

const (
	day     = core.Time(24 * 60 * 60 * 1000)
	distant = core.Time(1 << 52) // times further away than 140,000 years are not worth the care for overflow
)

// Append appends the text of t.
func (c *Instants) Append(b []byte, t core.Time) []byte {
	if t < c.from || t >= c.until {
		if t > distant || t < -distant {
			return c.whole(b, t)
		}
		c.fill(t)
	}
	at := len(b) + c.clock
	b = append(b, c.text...)
	d := b[at : at+len("hh:mm:ss.SSS")]
	millis := uint32(t - c.midnight)
	seconds := millis / 1000
	minutes := seconds / 60
	hour, minute, second, ms := minutes/60, minutes%60, seconds%60, millis%1000
	d[0], d[1] = pairs[2*hour], pairs[2*hour+1]
	d[3], d[4] = pairs[2*minute], pairs[2*minute+1]
	d[6], d[7] = pairs[2*second], pairs[2*second+1]
	d[9], d[10], d[11] = byte('0'+ms/100), pairs[2*(ms%100)], pairs[2*(ms%100)+1]
	return b
}

// fill makes the text for the day of t, or for the part of it in which the offset is that of t.
func (c *Instants) fill(t core.Time) {
	at := time.UnixMilli(int64(t)).In(c.zone)
	_, seconds := at.Zone()
	offset := core.Time(seconds) * 1000
	local := t + offset
	sinceMidnight := local % day
	if sinceMidnight < 0 {
		sinceMidnight += day
	}
	c.midnight = local - sinceMidnight - offset
	c.from, c.until = c.midnight, c.midnight+day
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		c.from = max(c.from, core.Time(start.UnixMilli()))
	}
	if !end.IsZero() {
		c.until = min(c.until, core.Time(end.UnixMilli()))
	}
	if c.text == nil {
		c.text = make([]byte, 0, len(c.before)+len("2021-05-03T10:00:00.000+02:00")+len(c.after))
	}
	c.text = c.whole(c.text[:0], t)
	c.clock = len(c.before) + bytes.IndexByte(c.text[len(c.before):], 'T') + 1
}

// whole prints any instant.
func (c *Instants) whole(b []byte, t core.Time) []byte {
	b = append(b, c.before...)
	return append(iso.Append(b, t, c.zone), c.after...)
}
