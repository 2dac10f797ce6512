package network

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
)

// sender turns what one source sends into batches. Everything it reads passes its group.
type sender struct {
	server  *Server
	door    core.Door
	user    string
	address string
	parser  command.Parser
	foreign line.Parser
	group   command.Group
	failure error // of the last refused command since it was set to nil
}

func (s *Server) newSender(door core.Door, user, address string) *sender {
	c := &sender{server: s, door: door, user: user, address: address}
	c.parser.Transport = command.TCP
	c.group = command.Group{New: c.batch, Parse: c.parse, Store: c.store, Failed: c.failed}
	return c
}

// openGrants are the rights of a sender on loopback when no user is configured: to write data and settings of everything, and to read nothing.
var openGrants = core.Grants{Roles: core.DataWrite | core.MetaWrite | core.Authenticated, WriteAll: true}

// origin resolves the rights of the door's user as they are now.
func (c *sender) origin(ctx context.Context) (core.Origin, error) {
	o := core.Origin{User: c.user, Address: c.address, Door: c.door, Grants: openGrants}
	if c.user == "" {
		return o, nil
	}
	var err error
	o.Grants, err = c.server.opts.Grants(ctx, c.user)
	return o, err
}

func (c *sender) batch(ctx context.Context) (*core.Batch, error) {
	origin, err := c.origin(ctx)
	if err != nil {
		return nil, err
	}
	now := core.TimeOf(c.server.opts.Clock())
	c.parser.Received, c.foreign.Received = now, now
	c.foreign.Mapping = c.server.mapping.Load()
	return &core.Batch{Origin: origin}, nil
}

// parse reads a text command, or a line of another protocol.
func (c *sender) parse(b *core.Batch, text []byte) error {
	if command.Native(text) {
		return c.parser.Line(b, text)
	}
	foreign, err := c.foreign.Line(b, text)
	switch {
	case errors.Is(err, line.ErrDropped):
		c.server.stats.drop(Mapped, 1)
		return nil // no fault: whoever wrote the mapping wants it so
	case foreign:
		return err
	}
	return c.parser.Line(b, text) // which says that it knows no such command
}

// store offers a batch, and counts what settings will drop of it.
func (c *sender) store(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	disabled, outside := c.server.ignored(b)
	receipt, err := c.server.opts.Ingest.Ingest(ctx, b)
	if err == nil {
		c.server.stats.drop(Disabled, disabled)
		c.server.stats.drop(Range, outside)
	}
	return receipt, err
}

// failed counts a refused command.
func (c *sender) failed(_ []byte, err error) {
	c.failure = err
	cause := causeOf(err)
	if cause == Syntax && errors.Unwrap(err) == nil {
		cause = Refused // the parsers always say why; the pipeline has a text alone
	}
	c.server.stats.drop(cause, 1)
	// The text of a command is data: it does not belong into a log.
	c.server.complaints.warn("a command was dropped: "+cause.String(), "door", c.door, "address", c.address)
}

// flush stores what waits. An error means that the rest of the group is lost, and is counted.
func (c *sender) flush(ctx context.Context) error {
	waiting := c.group.Len()
	if waiting == 0 {
		return nil
	}
	stored, refused := c.group.Stored, c.group.Refused
	err := c.group.Flush(ctx)
	done := c.group.Stored - stored
	c.server.stats.commands.Add(int64(done))
	if err != nil {
		c.lost(waiting-done-(c.group.Refused-refused), err)
	}
	return err
}

// lost counts what could not be stored.
func (c *sender) lost(n int, err error) {
	cause := Unavailable
	if code := core.CodeOf(err); code == core.Unauthenticated || code == core.Forbidden {
		cause = Forbidden
	}
	c.server.stats.drop(cause, n)
	c.server.complaints.warn("input was lost", "door", c.door, "address", c.address, "user", c.user, "error", err)
}

// maxBackoff is the longest wait between two attempts to store a batch.
const maxBackoff = 5 * time.Second

// retry returns a function that waits after a fault of the store, longer each time, and says whether there is patience left. It is of one connection.
func (c *sender) retry() func(context.Context, error) bool {
	var wait time.Duration
	var since time.Time
	last := -1
	return func(ctx context.Context, err error) bool {
		if code := core.CodeOf(err); code != core.Unavailable && code != core.NoSpace {
			return false
		}
		if done := c.group.Stored + c.group.Refused; done != last { // the first fault of this batch
			last, wait, since = done, c.server.backoff, c.server.opts.Clock()
		}
		if c.server.opts.Clock().Sub(since) >= c.server.opts.Limits.Patience {
			return false
		}
		c.server.complaints.warn("the store does not take input, senders wait", "door", c.door, "error", err)
		if !pause(ctx, wait) {
			return false
		}
		wait = min(2*wait, maxBackoff)
		return true
	}
}

// pause waits; false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// ignored counts the samples of a batch that settings of their metric or entity will drop: those of disabled ones, and those that the action DISCARD
// throws away.
func (s *Server) ignored(b *core.Batch) (disabled, outside int) {
	if s.opts.Catalog == nil {
		return 0, 0
	}
	type verdict struct {
		off    bool
		limits *core.Metric
	}
	var odd map[uint32]verdict // the keys that need a look; nearly always none
	var ofMetric verdict
	entityOff := false
	for i, k := range b.Keys {
		if i == 0 || k.Metric != b.Keys[i-1].Metric {
			ofMetric = verdict{}
			if m, known := s.opts.Catalog.Metric(k.Metric); known {
				ofMetric.off = !m.Enabled
				if m.InvalidAction == core.InvalidDiscard {
					ofMetric.limits = &m
				}
			}
		}
		if i == 0 || k.Entity != b.Keys[i-1].Entity {
			e, known := s.opts.Catalog.Entity(k.Entity)
			entityOff = known && !e.Enabled
		}
		if entityOff || ofMetric != (verdict{}) {
			if odd == nil {
				odd = map[uint32]verdict{}
			}
			odd[uint32(i)] = verdict{ofMetric.off || entityOff, ofMetric.limits}
		}
	}
	if odd == nil {
		return 0, 0
	}
	for i, ref := range b.Samples.Series {
		v, value := odd[ref], b.Samples.Values[i]
		switch m := v.limits; {
		case v.off:
			disabled++
		case m != nil && (m.MinValue != nil && value < *m.MinValue || m.MaxValue != nil && value > *m.MaxValue):
			outside++
		}
	}
	return disabled, outside
}
