package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestLongMarkers: ids of markers are kept until others make room, so that long ones must not be.
func TestLongMarkers(t *testing.T) {
	var m Markers
	for _, c := range []struct {
		length int
		known  bool
	}{{1, true}, {256, true}, {257, false}, {500_000, false}} {
		count := MarkerCount{Markers: &m}
		id := strings.Repeat("x", c.length)
		count.Start(id)
		if _, known := m.Get("", id); known != c.known {
			t.Errorf("marker of %d bytes: known %v", c.length, known)
		}
	}
}

// TestMarkersAreOfTheirUser: nobody sees the markers of another user, moves their counts, or pushes them out.
func TestMarkersAreOfTheirUser(t *testing.T) {
	var m Markers
	start := func(user, id string, count int) { m.set(user, id, count) }
	start("eva", "one", 5)
	start("tom", "one", 7)
	start("", "open", 3)
	for _, c := range []struct {
		user, id string
		count    int
		known    bool
	}{
		{"eva", "one", 5, true}, {"tom", "one", 7, true}, {"lone", "one", 0, false}, {"", "one", 0, false},
		{"eva", "open", 3, true}, {"", "open", 3, true}, // of a door without a user
	} {
		if count, known := m.Get(c.user, c.id); count != c.count || known != c.known {
			t.Errorf("%s asks for %s: %d %v, want %d %v", c.user, c.id, count, known, c.count, c.known)
		}
	}
	for i := range 2 * maxMarkers {
		start("tom", fmt.Sprint(i), 1)
	}
	if count, known := m.Get("eva", "one"); count != 5 || !known {
		t.Errorf("the marker of eva was pushed out by those of tom: %d %v", count, known)
	}
	if _, known := m.Get("tom", "0"); known || len(m.counts) > maxMarkers {
		t.Errorf("tom has them all: %d", len(m.counts))
	}
	if _, known := m.Get("tom", fmt.Sprint(2*maxMarkers-1)); !known {
		t.Error("the latest marker of tom is unknown")
	}
}
