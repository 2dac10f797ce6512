package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
)

// pickles serves one connection of Graphite's pickle protocol: a length of four bytes, big-endian, then a message.
func (s *Server) pickles(ctx context.Context, conn net.Conn) {
	c := s.newSender(core.DoorTCP, s.opts.Pickle.User, addressOf(conn))
	again := c.retry()
	for {
		message, err := s.frame(conn)
		if err != nil {
			if core.CodeOf(err) == core.TooLarge {
				c.failed(nil, err)
			}
			s.closedFor(err, message != nil)
			return
		}
		for {
			err = c.pickle(ctx, message)
			if err == nil || command.Refusal(err) || !again(ctx, err) {
				break
			}
		}
		switch {
		case err == nil:
		case !command.Refusal(err):
			c.lost(1, err)
			return
		default:
			c.failed(nil, err)
		}
		if c.failure != nil && !s.opts.KeepOnError {
			return
		}
		c.failure = nil
	}
}

// frame reads one message. The frame is not nil when it failed within one.
func (s *Server) frame(conn net.Conn) ([]byte, error) {
	if err := s.await(conn, s.opts.Clock().Add(s.opts.Limits.Idle)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > uint32(s.opts.Limits.Frame) {
		return nil, core.Wrap(core.TooLarge, command.ErrTooLong, "the message is longer than pickle.frame")
	}
	// No more is reserved than has arrived: a client that promises much and sends nothing holds nothing.
	var message bytes.Buffer
	if err := s.await(conn, s.opts.Clock().Add(s.opts.Limits.Command)); err != nil {
		return message.Bytes(), err
	}
	n, err := io.CopyN(&message, conn, int64(size))
	s.stats.bytes.Add(n + int64(len(head)))
	if err != nil {
		return append(message.Bytes(), 0), err
	}
	return message.Bytes(), nil
}

// pickle stores one message. When the pipeline refuses it, its samples are offered as commands, which finds those at fault.
func (c *sender) pickle(ctx context.Context, message []byte) error {
	b, err := c.batch(ctx)
	if err != nil {
		return err
	}
	var faults []error
	if err := c.foreign.Pickle(b, message, func(err error) { faults = append(faults, err) }); err != nil {
		return err
	}
	n := b.Len()
	if n > 0 {
		text, fault := printed(b, 16*c.server.opts.Limits.Frame) // before the batch changes hands
		_, err := c.store(ctx, b)
		switch {
		case err == nil:
			c.server.stats.commands.Add(int64(n))
		case !command.Refusal(err) || fault != nil:
			return err
		default:
			if err := c.oneByOne(ctx, text); err != nil {
				return err
			}
		}
	}
	for _, err := range faults {
		if errors.Is(err, line.ErrDropped) {
			c.server.stats.drop(Mapped, 1)
			continue
		}
		c.failed(nil, err)
	}
	return nil
}

// printed is a batch as commands. A pickle can name a long path once and refer to it thousands of times: what would become far longer than the message is
// not printed, and so not offered one by one.
func printed(b *core.Batch, limit int) ([]byte, error) {
	size := 0
	for _, ref := range b.Samples.Series {
		k := &b.Keys[ref]
		size += len(k.Metric) + len(k.Entity)
		for _, t := range k.Tags {
			size += len(t.Name) + len(t.Value)
		}
	}
	if size > limit {
		return nil, core.Errorf(core.TooLarge, "the message is longer than 16 times pickle.frame when it is unpacked")
	}
	return command.AppendBatch(nil, b)
}

// oneByOne offers printed commands.
func (c *sender) oneByOne(ctx context.Context, text []byte) error {
	lines := command.NewSplitter(bytes.NewReader(text), command.Exact)
	for {
		one, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return c.flush(ctx)
		}
		if err != nil {
			return err
		}
		c.group.Add(one)
	}
}
