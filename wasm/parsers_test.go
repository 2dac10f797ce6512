package wasm

import (
	"errors"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// The offsets of a zone cross the border unchanged, and a buffer without room for them learns their size.
func TestZoneCrossesTheBorder(t *testing.T) {
	h := &Host{options: Options{Zone: time.LoadLocation}}
	buf := make([]byte, 1<<16)
	for _, id := range []string{"Europe/Berlin", "America/St_Johns", "Asia/Tokyo"} {
		zone, _ := time.LoadLocation(id)
		n := h.zone(id, buf)
		if small := h.zone(id, buf[:0]); n <= 0 || small != n {
			t.Fatalf("%s: %d bytes, %d without room", id, n, small)
		}
		if got, err := abi.DecodeZone(buf[:n]); err != nil || !slices.Equal(got, offsets(zone)) {
			t.Errorf("%s: %v, %v, want %v", id, got, err, offsets(zone))
		}
	}
	if got := h.zone("Europe/Nowhere", buf); got != int32(abi.Absent) {
		t.Errorf("an unknown zone: %d, want %d", got, abi.Absent)
	}
	if _, err := abi.DecodeZone(buf[:13]); !errors.Is(err, abi.ErrFormat) {
		t.Errorf("half an offset: %v", err)
	}
}

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
