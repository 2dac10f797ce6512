package network

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// Cause is why something that arrived was dropped.
type Cause uint8

// The causes begin with the reasons of package command.
const (
	Syntax  = Cause(command.BadSyntax) // malformed in any other way
	Name    = Cause(command.BadName)   // invalid entity, metric or tag name
	Time    = Cause(command.BadTime)   // out of range, or not a time
	Value   = Cause(command.BadValue)  // not a number
	Unknown = Cause(command.Unknown)   // no command, and no line of a protocol that is known
	Length  = Cause(command.TooLong)
)

const (
	Truncated   = Cause(command.Reasons) + iota // the last of several commands of a datagram without LF
	Refused                                     // by the pipeline, for its content
	Forbidden                                   // the user of the door may not write it
	Disabled                                    // samples of disabled metrics and entities
	Range                                       // samples outside the limits of their metric
	Overload                                    // datagrams that found the queue full, and commands beyond tcp.rate
	Unavailable                                 // the store could not take it in time
	Mapped                                      // the mapping of Graphite names says to drop it
	Control                                     // ping and the like over UDP, which has no replies
	causes
)

var causeNames = [causes]string{"syntax", "name", "time", "value", "unknown", "length", "truncated", "refused", "forbidden", "disabled", "range", "overload",
	"unavailable", "mapped", "control"}

func (c Cause) String() string { return causeNames[c] }

// Causes lists all causes, in a fixed order.
func Causes() []Cause {
	list := make([]Cause, causes)
	for i := range list {
		list[i] = Cause(i)
	}
	return list
}

// counters are what the doors count.
type counters struct {
	open, accepted, turnedAway, idle, slow atomic.Int64
	commands, datagrams, bytes             atomic.Int64
	dropped                                [causes]atomic.Int64
}

func (c *counters) drop(cause Cause, n int) { c.dropped[cause].Add(int64(n)) }

// Stats is what happened since the start.
type Stats struct {
	Connections int64 // open
	Accepted    int64 // connections
	TurnedAway  int64 // connections beyond tcp.connections or tcp.connections.address
	Idle        int64 // connections closed for silence: tcp.idle
	Slow        int64 // connections closed in the middle of a command: tcp.command
	Commands    int64 // taken: stored, or dropped by settings; lines of foreign protocols and pickled samples among them
	Datagrams   int64
	Bytes       int64
	Dropped     [causes]int64 // by Cause
}

// Stats returns the counts as they are.
func (s *Server) Stats() Stats {
	c := &s.stats
	out := Stats{Connections: c.open.Load(), Accepted: c.accepted.Load(), TurnedAway: c.turnedAway.Load(), Idle: c.idle.Load(), Slow: c.slow.Load(),
		Commands: c.commands.Load(), Datagrams: c.datagrams.Load(), Bytes: c.bytes.Load()}
	for i := range out.Dropped {
		out.Dropped[i] = c.dropped[i].Load()
	}
	return out
}

// Malformed is what the self-metric network_command_malformed counts: commands that are wrong by themselves.
func (s Stats) Malformed() int64 {
	var n int64
	for c := Syntax; c <= Refused; c++ {
		n += s.Dropped[c]
	}
	return n
}

// Ignored is what the self-metric network_command_ignored counts: commands that are right and were dropped all the same.
func (s Stats) Ignored() int64 {
	var n int64
	for c := Forbidden; c < causes; c++ {
		n += s.Dropped[c]
	}
	return n
}

// causeOf says why a command was refused.
func causeOf(err error) Cause {
	if core.CodeOf(err) == core.Forbidden {
		return Forbidden
	}
	if reason := command.ReasonOf(err); reason != command.BadSyntax {
		return Cause(reason)
	}
	return Syntax
}

// complaints writes what senders do wrong to the log, each kind once a minute: a sender must not be able to fill it.
type complaints struct {
	clock func() time.Time
	log   *slog.Logger

	mu   sync.Mutex // guards last
	last map[string]time.Time
}

func (c *complaints) warn(text string, args ...any) {
	now := c.clock()
	c.mu.Lock()
	last, known := c.last[text]
	quiet := known && now.Sub(last) < time.Minute
	if !quiet {
		if c.last == nil {
			c.last = map[string]time.Time{}
		}
		c.last[text] = now
	}
	c.mu.Unlock()
	if !quiet {
		c.log.Warn(text, args...)
	}
}
