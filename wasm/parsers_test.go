package wasm

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// At every instant of the years that the list covers, its offset is the zone's.
func TestOffsets(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Rome", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		list := offsets(zone)
		if len(list) > 4*(lastYear-firstYear) {
			t.Fatalf("%s: %d offsets", name, len(list))
		}
		at := 0
		for now := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC); now.Year() < lastYear; now = now.Add(time.Hour) {
			for at+1 < len(list) && list[at+1].From <= now.UnixMilli() {
				at++
			}
			if _, want := now.In(zone).Zone(); list[at].Seconds != want {
				t.Fatalf("%s at %v: %d s, want %d", name, now, list[at].Seconds, want)
			}
		}
	}
}
