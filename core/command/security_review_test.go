package command

import (
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
		if _, known := m.Get(id); known != c.known {
			t.Errorf("marker of %d bytes: known %v", c.length, known)
		}
	}
}
