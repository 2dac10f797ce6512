package command

import (
	"slices"
	"sync"
)

// Markers remembers how many lines arrived after the latest markers of each user, of all connections and doors. A client asks within seconds; 4,096 serve as
// many clients at once. The zero value is ready.
//
// Users do not see the markers of each other, and cannot move their counts: a client that is told of more lines than were stored does not send the others
// again. Those of a door without a user are for everybody, since nobody knows who sends there.
type Markers struct {
	mu     sync.Mutex // guards below
	counts map[marker]int
	order  map[string][]string // ids by user, oldest first
}

type marker struct{ user, id string }

const (
	maxMarkers = 4096
	// maxMarker is the longest id that is remembered, in bytes; clients send random ones of some 40. Lines may be far longer, and so may what all of
	// them together would hold.
	maxMarker = 256
)

// set creates a marker or moves its count on. One that is too long stays unknown.
func (m *Markers) set(user, id string, count int) {
	if len(id) > maxMarker {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := marker{user, id}
	if _, ok := m.counts[key]; !ok {
		if m.counts == nil {
			m.counts, m.order = map[marker]int{}, map[string][]string{}
		}
		if len(m.counts) >= maxMarkers {
			m.makeRoom()
		}
		m.order[user] = append(m.order[user], id)
	}
	m.counts[key] = count
}

// makeRoom drops the oldest marker of the user who has most of them, so that who sends too many loses their own. The caller holds the lock.
func (m *Markers) makeRoom() {
	most := ""
	for user, ids := range m.order {
		if n := len(m.order[most]); len(ids) > n || len(ids) == n && user < most {
			most = user
		}
	}
	ids := m.order[most]
	delete(m.counts, marker{most, ids[0]})
	if m.order[most] = slices.Delete(ids, 0, 1); len(ids) == 1 {
		delete(m.order, most)
	}
}

// Get returns the lines counted after a marker of a user, or else of a door without a user; false for an unknown one.
func (m *Markers) Get(user, id string) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count, ok := m.counts[marker{user, id}]
	if !ok {
		count, ok = m.counts[marker{"", id}]
	}
	return count, ok
}

// MarkerCount counts the lines of one connection after its latest marker. A client that reads less than it sent sends them again, so lines are published
// only once they are stored.
type MarkerCount struct {
	Markers *Markers
	User    string // whose markers they are; "" = of a door without a user
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
	m.Markers.set(m.User, id, 0)
}

// Publish makes the count visible.
func (m *MarkerCount) Publish() {
	if m.id != "" {
		m.Markers.set(m.User, m.id, m.counted)
	}
}
