package csv

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// loadZone finds a zone that a time names.
func (p *parser) loadZone(id string) (*time.Location, error) {
	if id == p.noZone {
		return nil, abi.Absent // the same fault in every row of a file must not cost a search each
	}
	offsets, err := p.host.Zone(id)
	if err != nil {
		p.noZone = strings.Clone(id)
		return nil, err
	}
	return location(offsets), nil
}

// location makes a time zone of the offsets that the host sends, since a guest has no zone data. It writes them in the form of zone files,
// version 2 (RFC 8536), the only one from which the standard library makes a zone with more than one offset.
func location(offsets []abi.ZoneOffset) *time.Location {
	if len(offsets) == 0 {
		return time.UTC
	}
	kinds, places := offsetKinds(offsets)
	header := func(b []byte, transitions, kinds int) []byte {
		b = append(b, "TZif2"...)
		b = append(b, make([]byte, 15)...)
		for _, n := range []int{0, 0, 0, transitions, kinds, 1} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return b
	}
	b := header(nil, 0, 1) // the 32-bit part, which readers of version 2 skip
	b = append(b, 0, 0, 0, 0, 0, 0, 0)
	b = header(b, len(offsets), len(kinds))
	for _, o := range offsets {
		b = binary.BigEndian.AppendUint64(b, uint64(o.From/1000))
	}
	b = append(b, places...)
	for _, seconds := range kinds {
		b = binary.BigEndian.AppendUint32(b, uint32(int32(seconds)))
		b = append(b, 0, 0)
	}
	b = append(b, 0, '\n', '\n')
	loc, err := time.LoadLocationFromTZData("file", b)
	if err != nil {
		return time.FixedZone("file", offsets[0].Seconds)
	}
	return loc
}

func offsetKinds(offsets []abi.ZoneOffset) (kinds []int, places []byte) {
	known := map[int]byte{}
	for _, o := range offsets {
		place, ok := known[o.Seconds]
		if !ok && len(kinds) < 255 {
			place = byte(len(kinds))
			known[o.Seconds] = place
			kinds = append(kinds, o.Seconds)
		}
		places = append(places, place)
	}
	return kinds, places
}
