package storage

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// message is a stored message; arrival orders those that have the same time, entity, type and source. All of its texts lie in one allocation, and its tags
// are packed: the thirty tags of a webhook would otherwise be sixty pointers, which the garbage collector follows in every message again and again.
type message struct {
	core.Message        // without tags
	tags         string // of each tag: length of the name, name, length of the value, value
	arrival      uint64
	received     core.Time // of the latest insert: retention counts from it
}

// compareMessages is the order in which messages are read: newest first.
func compareMessages(a, b *message) int {
	return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.arrival, b.arrival))
}

// messages keeps messages of one identity side by side; one that equals a stored message in every field takes its place, and only its age changes.
// What was received longer ago than the retention is not shown, whether it was swept or not.
type messages struct {
	sorted[message]
	arrivals  uint64        // written by the appender only
	packed    []byte        // scratch of the appender
	retention time.Duration // 0 = messages are kept
	now       func() core.Time
}

// live returns the receive time from which on messages are shown.
func (s *messages) live() core.Time {
	if s.retention <= 0 {
		return math.MinInt64
	}
	return s.now() - core.Time(s.retention.Milliseconds())
}

func (s *messages) add(m core.Message, received core.Time) {
	live := s.live()
	if received < live { // replay of what has expired since
		return
	}
	probe := message{Message: core.Message{Time: m.Time, Entity: m.Entity, Type: m.Type, Source: m.Source}}
	s.packed = packTags(s.packed[:0], m.Tags)
	for one := range s.from(&probe) {
		if one.Time != m.Time || one.Entity != m.Entity || one.Type != m.Type || one.Source != m.Source {
			break
		}
		if one.Severity == m.Severity && one.Text == m.Text && one.tags == string(s.packed) && one.received >= live {
			again := *one
			again.received = received
			s.put(&again)
			return
		}
	}
	s.arrivals++
	stored := newMessage(m, s.packed)
	stored.arrival, stored.received = s.arrivals, received
	s.put(stored)
}

// newMessage copies a message and its packed tags.
func newMessage(m core.Message, tags []byte) *message {
	var text strings.Builder
	text.Grow(len(m.Entity) + len(m.Type) + len(m.Source) + len(m.Text) + len(tags))
	parts := [...]*string{&m.Entity, &m.Type, &m.Source, &m.Text}
	for _, part := range parts {
		text.WriteString(*part)
	}
	text.Write(tags)
	rest := text.String()
	for _, part := range parts {
		*part, rest = rest[:len(*part)], rest[len(*part):]
	}
	m.Tags = nil
	return &message{Message: m, tags: rest}
}

func packTags(dst []byte, tags core.Tags) []byte {
	for _, tag := range tags {
		dst = append(binary.AppendUvarint(dst, uint64(len(tag.Name))), tag.Name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(tag.Value))), tag.Value...)
	}
	return dst
}

// unpackTags appends the tags of a message to dst. They are parts of its text.
func (m *message) unpackTags(dst core.Tags) core.Tags {
	for d := (decoder{rest: m.tags}); d.rest != ""; {
		dst = append(dst, core.Tag{Name: d.text(), Value: d.text()})
	}
	return dst
}

// sweep takes expired messages out of memory. It looks at all of them: their order is that of their own times, not of their arrival.
func (s *messages) sweep() {
	live := s.live()
	for one := range s.all() {
		if one.received < live {
			s.removeExactly(one)
		}
	}
}

// forget removes the messages of an entity.
func (s *messages) forget(entity string) {
	for one := range s.all() {
		if one.Entity == entity {
			s.remove(one)
		}
	}
}

// properties holds property records by entity, type and key. Records are replaced, never changed.
type properties struct{ sorted[core.PropertyRecord] }

func compareRecords(a, b *core.PropertyRecord) int { return a.PropertyKey.Compare(b.PropertyKey) }

// merge applies one update: it writes the tags it names, removes those with an empty value, and leaves the others, as well as tags that a later
// update has written.
func (s *properties) merge(p core.Property) {
	old := s.get(&core.PropertyRecord{PropertyKey: p.PropertyKey})
	next := &core.PropertyRecord{}
	if old != nil {
		next.PropertyKey, next.Tags = old.PropertyKey, slices.Clone(old.Tags)
	} else {
		next.PropertyKey = p.PropertyKey.Clone()
	}
	for _, tag := range p.Tags {
		i, found := slices.BinarySearchFunc(next.Tags, tag.Name, func(t core.PropertyTag, name string) int { return cmp.Compare(t.Name, name) })
		fresh := core.PropertyTag{Tag: tag, Time: p.Time}
		fresh.Value = strings.Clone(tag.Value)
		switch {
		case found && next.Tags[i].Time > p.Time:
		case found && tag.Value == "":
			next.Tags = slices.Delete(next.Tags, i, i+1)
		case found:
			fresh.Name = next.Tags[i].Name
			next.Tags[i] = fresh
		case tag.Value != "":
			fresh.Name = strings.Clone(tag.Name)
			next.Tags = slices.Insert(next.Tags, i, fresh)
		}
	}
	if len(next.Tags) == 0 {
		if old != nil {
			s.remove(old)
		}
		return
	}
	for _, tag := range next.Tags {
		next.Time = max(next.Time, tag.Time)
	}
	s.put(next)
}

// forget removes the records of an entity.
func (s *properties) forget(entity string) {
	for r := range s.of(entity, "") {
		s.remove(r)
	}
}

// of yields the records of one entity, and of one type unless that is empty.
func (s *properties) of(entity, propertyType string) iter.Seq[*core.PropertyRecord] {
	return func(yield func(*core.PropertyRecord) bool) {
		for r := range s.from(&core.PropertyRecord{PropertyKey: core.PropertyKey{Entity: entity, Type: propertyType}}) {
			if r.Entity != entity || propertyType != "" && r.Type != propertyType || !yield(r) {
				return
			}
		}
	}
}

// historyRow is a stored history row.
type historyRow struct {
	core.AlertRow
	arrival uint64
}

// compareRows is the order in which history is read: newest first, and of equal times what was stored last.
func compareRows(a, b *historyRow) int {
	return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.arrival, a.arrival))
}

// history keeps the rows of alert changes, and which changes were stored.
type history struct {
	rows     sorted[historyRow]
	arrivals uint64 // written by the appender only

	mu     sync.RWMutex
	events map[string]struct{}
}

// known reports whether the change was stored before. A change without an event never was.
func (h *history) known(event string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, ok := h.events[event]
	return ok && event != ""
}

// replayed reports whether the changes are those of a batch that was stored before.
func (h *history) replayed(changes []core.AlertChange) bool {
	for _, c := range changes {
		if !h.known(c.Event) {
			return false
		}
	}
	return len(changes) > 0
}

// add stores one change, unless it is known.
func (h *history) add(c core.AlertChange) {
	if h.known(c.Event) {
		return
	}
	if c.Event != "" {
		h.mu.Lock()
		h.events[strings.Clone(c.Event)] = struct{}{}
		h.mu.Unlock()
	}
	if c.Row != nil {
		h.arrivals++
		h.rows.put(&historyRow{cloneRow(*c.Row), h.arrivals})
	}
}

func cloneRow(r core.AlertRow) core.AlertRow {
	for _, text := range []*string{&r.Entity, &r.Metric, &r.Rule, &r.Text, &r.Condition, &r.Filter, &r.Window, &r.Schedule} {
		*text = strings.Clone(*text)
	}
	r.Type, r.Tags = core.Status(strings.Clone(string(r.Type))), r.Tags.Clone()
	return r
}
