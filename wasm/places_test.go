package wasm

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// upload and socket are the places of a user over HTTP and of an address over TCP.
func upload(user string) place {
	return placeOf(core.Origin{Door: core.DoorPlugin, User: user, Address: "192.0.2.1"})
}

func socket(address string) place {
	return placeOf(core.Origin{Door: core.DoorTCP, User: "collector", Address: address})
}

// TestSecurityReviewShares: neither door takes all streams of a plugin, and no sender all of a door.
func TestSecurityReviewShares(t *testing.T) {
	var limits StreamLimits
	if err := limits.setDefaults(); err != nil || limits != (StreamLimits{Most: 16, Reserved: 4, Sender: 8}) {
		t.Fatalf("%+v, %v", limits, err)
	}
	var p places
	take := func(n int, at place) {
		t.Helper()
		for i := range n {
			if refusal := p.take(at, limits); refusal != "" {
				t.Fatalf("stream %d: %s", i+1, refusal)
			}
		}
	}
	refused := func(at place, setting string) {
		t.Helper()
		if refusal := p.take(at, limits); !strings.Contains(refusal, "("+setting+")") {
			t.Errorf("refused with %q, want %s", refusal, setting)
		}
	}
	take(8, upload("eva"))
	refused(upload("eva"), "plugins.streams.sender")
	take(4, upload("tom"))
	refused(upload("ann"), "plugins.streams.reserved") // 12 of 16
	take(4, socket("192.0.2.7"))
	refused(socket("192.0.2.8"), "plugins.streams")
	refused(place{}, "plugins.streams")
	for range 8 {
		p.give(upload("eva"))
	}
	take(4, socket("192.0.2.7"))
	refused(socket("192.0.2.7"), "plugins.streams.sender")
	take(4, socket("2001:db8::1"))
	p.give(upload("tom"))
	refused(socket("2001:db8::2"), "plugins.streams.reserved")
	for range 3 {
		p.give(upload("tom"))
	}
	for range 4 {
		p.give(socket("2001:db8::1"))
	}
	for range 8 {
		p.give(socket("192.0.2.7"))
	}
	if p.open != 0 || p.bySide != [sides]int{} || len(p.by) != 0 {
		t.Errorf("left: %+v", p)
	}
}

func TestStreamLimits(t *testing.T) {
	for _, l := range []StreamLimits{{Most: 1}, {Most: 4, Reserved: 3}, {Sender: -1}, {Reserved: -1}} {
		if err := l.setDefaults(); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	small := StreamLimits{Most: 2}
	if err := small.setDefaults(); err != nil || small != (StreamLimits{2, 1, 1}) {
		t.Errorf("%+v, %v", small, err)
	}
}
