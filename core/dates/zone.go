package dates

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// shortZones are the only three-letter zone IDs that are not ambiguous between countries.
const shortZones = " GMT UTC UCT WET CET MET EET PRC ROK "

// LoadZone resolves a time zone ID: an IANA name, in its own spelling, or one of a few short IDs. Ambiguous abbreviations such as PST and EST are
// refused although the database knows some of them.
func LoadZone(id string) (*time.Location, error) {
	name := id
	switch {
	case id == "" || id == "Local" || id == "localtime" || strings.HasPrefix(id, "posix") || strings.HasPrefix(id, "right/"):
		return nil, fmt.Errorf("unknown time zone %q: use an IANA name such as Europe/Berlin", id)
	case len(id) == 3 && !strings.Contains(shortZones, " "+id+" "):
		if capitals := strings.ToUpper(id); strings.Contains(shortZones, " "+capitals+" ") {
			return nil, fmt.Errorf("unknown time zone %q: write it in capitals, %s", id, capitals)
		}
		return nil, fmt.Errorf("time zone %q is ambiguous: use an IANA name such as US/Pacific", id)
	case id == "US/Pacific-New": // this name and the next were dropped from the database
		name = "US/Pacific"
	case id == "Canada/East-Saskatchewan":
		name = "Canada/Saskatchewan"
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q: use an IANA name such as Europe/Berlin", id)
	}
	return zone, nil
}

// LoadZoneOrOffset is LoadZone where the contract also takes an offset: +hh:mm, -hh:mm, or the same after GMT or UTC.
func LoadZoneOrOffset(id string) (*time.Location, error) {
	text := id
	if len(id) > 3 && (id[:3] == "GMT" || id[:3] == "UTC") {
		text = id[3:]
	}
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
		if millis, ok := parseISOOffset(text); ok {
			return offsetZone(millis), nil
		}
	}
	return LoadZone(id)
}

// offsetZone returns the zone of a fixed offset, named as patterns print it.
func offsetZone(millis int64) *time.Location {
	if millis == 0 {
		return time.UTC
	}
	return time.FixedZone(string(appendOffset(nil, millis, offsetStyle{colon: true, minutes: always})), int(millis/secondMillis))
}

// ZoneCache keeps resolved zones, which costs a file and some 20 microseconds each otherwise. It holds valid IDs only, so their number bounds it. The
// zero ZoneCache is ready to use by many goroutines.
type ZoneCache struct {
	zones sync.Map
	load  func(id string) (*time.Location, error) // nil = LoadZoneOrOffset
}

// Load is LoadZoneOrOffset with memory.
func (c *ZoneCache) Load(id string) (*time.Location, error) {
	if zone, ok := c.zones.Load(id); ok {
		return zone.(*time.Location), nil
	}
	load := c.load
	if load == nil {
		load = LoadZoneOrOffset
	}
	zone, err := load(id)
	if err != nil {
		return nil, err
	}
	actual, _ := c.zones.LoadOrStore(strings.Clone(id), zone)
	return actual.(*time.Location), nil
}
