package wasm

import (
	"fmt"

	"github.com/tidemark-db/tidemark/core"
)

// StreamLimits bound the instances of one plugin that are pinned by streams. Each holds memory for as long as its sender likes, and a sender over TCP may be
// silent for hours. The zero value of a field means its default; the names in quotes are those of the settings.
type StreamLimits struct {
	Most     int // "plugins.streams": at one time. Default 16.
	Reserved int // "plugins.streams.reserved": of them kept for each of two doors, HTTP and TCP with UDP, that the other one cannot take. Default 4.
	// "plugins.streams.sender": of one sender. That is a user over HTTP; over TCP and UDP, where all senders act as one user, it is an address. Default 8.
	Sender int
}

func (l *StreamLimits) setDefaults() error {
	if l.Most == 0 {
		l.Most = 16
	}
	if l.Reserved == 0 {
		l.Reserved = min(4, l.Most/2)
	}
	if l.Sender == 0 {
		l.Sender = max(1, min(8, l.Most/2))
	}
	if l.Most < 2 || l.Reserved < 0 || l.Sender < 1 || 2*l.Reserved > l.Most {
		return fmt.Errorf("wasm: plugins.streams is %d, plugins.streams.reserved %d, plugins.streams.sender %d: there must be at least 2 streams, 1 of a sender, and twice the reserved ones",
			l.Most, l.Reserved, l.Sender)
	}
	return nil
}

// side is one of the two that places are reserved for, or neither: what the server opens by itself.
type side uint8

const (
	ownSide side = iota
	webSide
	socketSide
	sides
)

// place says whose a stream is.
type place struct {
	side   side
	sender string
}

// placeOf goes by the door. The whole address counts, also of IPv6: the machines of one network, each with a stream, are not one sender, and whoever has many
// addresses has no more than the share of the door.
func placeOf(from core.Origin) place {
	switch from.Door {
	case core.DoorTCP, core.DoorUDP:
		return place{socketSide, from.Address}
	case core.DoorHTTP, core.DoorPlugin:
		return place{webSide, from.User}
	}
	return place{}
}

// places counts the streams of a plugin. Its plugin's mutex guards it.
type places struct {
	open   int
	bySide [sides]int
	by     map[place]int
}

// take counts a stream in, or says why there is no place for it and which setting is the bound.
func (p *places) take(at place, l StreamLimits) (refusal string) {
	switch share := l.Most - l.Reserved; {
	case p.open >= l.Most:
		return fmt.Sprintf("%d streams are open, the limit (plugins.streams)", l.Most)
	case at.side == ownSide:
	case p.bySide[at.side] >= share:
		return fmt.Sprintf("%d streams are open at this door, the rest is kept for others (plugins.streams.reserved)", share)
	case p.by[at] >= l.Sender:
		return fmt.Sprintf("%d streams of this sender are open, the limit (plugins.streams.sender)", l.Sender)
	}
	if p.by == nil {
		p.by = map[place]int{}
	}
	p.open++
	p.bySide[at.side]++
	p.by[at]++
	return ""
}

// give counts it out.
func (p *places) give(at place) {
	p.open--
	p.bySide[at.side]--
	if p.by[at]--; p.by[at] == 0 {
		delete(p.by, at)
	}
}
