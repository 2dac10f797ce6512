package abi

import (
	"encoding/binary"
	"math"
)

// Evaluation events, input of kind alert. Records are flat: a guest reads a field by one load, without decoding the rest.
// Offsets of a record are relative to its first byte; records begin at multiples of 8.
//
//	+-----------+--------------------------+---------+
//	| count u32 | count x { u32 offset }   | records |
//	+-----------+--------------------------+---------+
//
//	record:  0 header size u32 (160) | 4 record size u32 | 8 time i64 | 16 received i64 | 24 opened i64 | 32 value f64
//	        40 open value f64 | 48 repeat u32 | 52 severity u8 | 53 status u8 | 54 0 u16
//	        56 10 x { offset u32, length u32 } for every text of EventField
//	       136 3 x { offset u32, count u32 } for tags, entity tags, variables: entries of name offset, name length,
//	           value offset, value length, u32 each
//
// A later minor version adds fields at the end of the header and raises its size: a guest tests the header size before it
// reads a field that its own version did not have.
const (
	eventHeaderSize = eventLists + listCount*8
	eventTexts      = 56
	eventLists      = eventTexts + int(eventFieldCount)*8
	listCount       = 3
)

// EventField names a text of an event.
type EventField int

// The texts of an event, in the order of the record.
const (
	EventRule EventField = iota
	EventWindow
	EventEntity
	EventMetric
	EventType
	EventSource
	EventMessage
	EventCondition
	EventText // what the server would send by itself
	EventID   // of the notification, stable over retries
	eventFieldCount
)

// Status is the transition that an event reports.
type Status uint8

// The transitions.
const (
	StatusOpen Status = iota
	StatusRepeat
	StatusCancel
)

// Event is one transition of an alert, as the host writes it.
type Event struct {
	Time       int64 // of the command, Unix ms
	Received   int64 // by the server, Unix ms
	Opened     int64 // when the alert opened, Unix ms
	Value      float64
	OpenValue  float64
	Repeat     uint32
	Severity   uint8
	Status     Status
	Texts      [eventFieldCount]string // by EventField
	Tags       []Pair                  // of the command
	EntityTags []Pair                  // of the entity
	Variables  []Pair                  // of the rule, rendered
}

// AppendEvents appends the flat form of events to dst, which must be empty or hold nothing that the guest would read.
func AppendEvents(dst []byte, events []Event) []byte {
	base := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(events)))
	table := len(dst)
	dst = append(dst, make([]byte, 4*len(events))...)
	for i := range events {
		for (len(dst)-base)%8 != 0 {
			dst = append(dst, 0)
		}
		binary.LittleEndian.PutUint32(dst[table+4*i:], uint32(len(dst)-base))
		dst = appendEvent(dst, &events[i])
	}
	return dst
}

func appendEvent(dst []byte, e *Event) []byte {
	start := len(dst)
	lists := [listCount][]Pair{e.Tags, e.EntityTags, e.Variables}
	pairs := eventHeaderSize
	for _, l := range lists {
		pairs += 16 * len(l)
	}
	dst = append(dst, make([]byte, pairs)...)
	put := func(at, v int) { binary.LittleEndian.PutUint32(dst[start+at:], uint32(v)) }
	put64 := func(at int, v uint64) { binary.LittleEndian.PutUint64(dst[start+at:], v) }
	text := func(at int, s string) {
		put(at, len(dst)-start)
		put(at+4, len(s))
		dst = append(dst, s...)
	}
	put(0, eventHeaderSize)
	put64(8, uint64(e.Time))
	put64(16, uint64(e.Received))
	put64(24, uint64(e.Opened))
	put64(32, math.Float64bits(e.Value))
	put64(40, math.Float64bits(e.OpenValue))
	put(48, int(e.Repeat))
	dst[start+52], dst[start+53] = e.Severity, byte(e.Status)
	for i, s := range e.Texts {
		text(eventTexts+8*i, s)
	}
	at := eventHeaderSize
	for i, l := range lists {
		put(eventLists+8*i, at)
		put(eventLists+8*i+4, len(l))
		for _, p := range l {
			text(at, p.Name)
			text(at+8, p.Value)
			at += 16
		}
	}
	put(4, len(dst)-start)
	return dst
}

// Events is the flat form, checked: accessors of its records cannot leave their bytes.
type Events struct {
	data []byte
	n    int
}

// EventView reads one record. Byte slices that it returns alias the input, which lives until the call ends.
type EventView struct{ rec []byte }

// ParseEvents checks every offset of data.
func ParseEvents(data []byte) (Events, error) {
	if len(data) < 4 {
		return Events{}, formatErrorf("events of %d bytes end in their header of 4", len(data))
	}
	n := uint64(binary.LittleEndian.Uint32(data))
	if n*uint64(4+eventHeaderSize) > uint64(len(data)-4) {
		return Events{}, formatErrorf("%d events cannot fit in %d bytes", n, len(data))
	}
	es := Events{data: data, n: int(n)}
	for i := range es.n {
		at := uint64(binary.LittleEndian.Uint32(data[4+4*i:]))
		if at+uint64(eventHeaderSize) > uint64(len(data)) {
			return Events{}, formatErrorf("event %d begins at byte %d of %d", i, at, len(data))
		}
		if !(EventView{data[at:]}).valid() {
			return Events{}, formatErrorf("event %d points outside its record", i)
		}
	}
	return es, nil
}

func (v EventView) word(at int) uint32 { return binary.LittleEndian.Uint32(v.rec[at:]) }
func (v EventView) long(at int) uint64 { return binary.LittleEndian.Uint64(v.rec[at:]) }

func (v EventView) valid() bool {
	size := v.word(4)
	if v.word(0) < uint32(eventHeaderSize) || v.word(0) > size || uint64(size) > uint64(len(v.rec)) {
		return false
	}
	inside := func(at int, width uint64) bool {
		return uint64(v.word(at))+uint64(v.word(at+4))*width <= uint64(size)
	}
	for f := range int(eventFieldCount) {
		if !inside(eventTexts+8*f, 1) {
			return false
		}
	}
	for l := range listCount {
		at := eventLists + 8*l
		if !inside(at, 16) {
			return false
		}
		for i := range int(v.word(at + 4)) {
			p := int(v.word(at)) + 16*i
			if !inside(p, 1) || !inside(p+8, 1) {
				return false
			}
		}
	}
	return true
}

// Len returns the number of events.
func (es Events) Len() int { return es.n }

// At returns the event i, from 0 to Len-1.
func (es Events) At(i int) EventView {
	rec := es.data[binary.LittleEndian.Uint32(es.data[4+4*i:]):]
	return EventView{rec[:binary.LittleEndian.Uint32(rec[4:])]}
}

// Time is that of the command, Unix ms.
func (v EventView) Time() int64 { return int64(v.long(8)) }

// Received is when the server took the command, Unix ms.
func (v EventView) Received() int64 { return int64(v.long(16)) }

// Opened is when the alert opened, Unix ms.
func (v EventView) Opened() int64 { return int64(v.long(24)) }

// Value is that of the command.
func (v EventView) Value() float64 { return math.Float64frombits(v.long(32)) }

// OpenValue is the value that opened the alert.
func (v EventView) OpenValue() float64 { return math.Float64frombits(v.long(40)) }

// Repeat counts evaluations since the alert opened.
func (v EventView) Repeat() uint32 { return v.word(48) }

// Severity is 0 undefined .. 7 fatal.
func (v EventView) Severity() uint8 { return v.rec[52] }

// Status is the transition.
func (v EventView) Status() Status { return Status(v.rec[53]) }

// Text returns a text, aliasing the input.
func (v EventView) Text(f EventField) []byte { return v.text(eventTexts + 8*int(f)) }

func (v EventView) text(at int) []byte {
	from, n := v.word(at), v.word(at+4)
	return v.rec[from : from+n : from+n]
}

// Tags yields the tags of the command.
func (v EventView) Tags(yield func(name, value []byte) bool) { v.list(0, yield) }

// EntityTags yields the tags of the entity.
func (v EventView) EntityTags(yield func(name, value []byte) bool) { v.list(1, yield) }

// Variables yields the variables of the rule.
func (v EventView) Variables(yield func(name, value []byte) bool) { v.list(2, yield) }

func (v EventView) list(l int, yield func(name, value []byte) bool) {
	at := eventLists + 8*l
	p := int(v.word(at))
	for range v.word(at + 4) {
		if !yield(v.text(p), v.text(p+8)) {
			return
		}
		p += 16
	}
}
