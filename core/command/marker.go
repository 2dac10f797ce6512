package command

import (
	"slices"
	"sync"
)

// Markers remembers how many lines arrived after the latest markers, of all connections and doors. A client asks within seconds; 1,024 serve as many
// clients at once. The zero value is ready.
type Markers struct {
	mu     sync.Mutex // guards below
	counts map[string]int
	order  []string // oldest first
}

const (
	maxMarkers = 1024
	// maxMarker is the longest id that is remembered, in bytes; clients send random ones of some 40. Lines may be far longer, and so may what all of
	// them together would hold.
	maxMarker = 256
)

// set creates a marker or moves its count on; the oldest marker makes room. One that is too long stays unknown.
func (m *Markers) set(id string, count int) {
	if len(id) > maxMarker {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.counts[id]; !ok {
		if m.counts == nil {
			m.counts = map[string]int{}
		}
		if len(m.order) >= maxMarkers {
			delete(m.counts, m.order[0])
			m.order = slices.Delete(m.order, 0, 1)
		}
		m.order = append(m.order, id)
	}
	m.counts[id] = count
}

// Get returns the lines counted after a marker; false for an unknown one.
func (m *Markers) Get(id string) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count, ok := m.counts[id]
	return count, ok
}

// MarkerCount counts the lines of one connection after its latest marker. A client that reads less than it sent sends them again, so lines are published
// only once they are stored.
type MarkerCount struct {
	Markers *Markers
	Lines   *Splitter

	id      string
	counted int // lines since the marker
	seen    int // lines of the splitter that are in counted
}

// Line is called after every Next with what it returned. A marker is not a line of the marker before it.
func (m *MarkerCount) Line(text []byte) {
	if kind, _ := Classify(text); kind != Marker {
		m.counted += m.Lines.Lines() - m.seen
	}
	m.seen = m.Lines.Lines()
}

// Start begins to count for a new marker.
func (m *MarkerCount) Start(id string) {
	m.id, m.counted = id, 0
	m.Markers.set(id, 0)
}

// Publish makes the count visible.
func (m *MarkerCount) Publish() {
	if m.id != "" {
		m.Markers.set(m.id, m.counted)
	}
}
