package network

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// stream reads the rest of the connection as a file.
func (c *session) stream(ctx context.Context, s command.Stream) error {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = c.server.opts.Limits.Idle
	}
	// The splitter reads what it has, then this session, whose Read waits as text commands do: from here on it waits as the file says.
	file := &fileReader{server: c.server, conn: c.conn, timeout: timeout}
	return c.file(ctx, s, c.lines.Rest(file))
}

// file sends a file through its parser and stores what comes out, batch by batch.
func (c *sender) file(ctx context.Context, s command.Stream, body io.Reader) error {
	if c.server.opts.Parser == nil {
		err := core.Errorf(core.Unimplemented, "this server has no parsers")
		c.group.Refuse(nil, err)
		return errHangUp
	}
	origin, err := c.origin(ctx)
	if err != nil {
		c.lost(1, err)
		return err
	}
	request := core.ParseRequest{Parser: s.Parser, Format: s.Format, Params: s.Params, Tags: s.Tags, Zone: s.Zone, FileName: s.File, Source: c.address,
		Received: core.TimeOf(c.server.opts.Clock()), Origin: origin}
	for chunk, err := range c.server.opts.Parser.Parse(ctx, request, body) {
		if err != nil {
			c.group.Refuse(nil, err)
			return err
		}
		c.server.stats.drop(Syntax, len(chunk.Rejects)+chunk.Dropped)
		if err := c.chunk(ctx, chunk.Batch); err != nil {
			return err
		}
	}
	return io.EOF
}

// chunk stores what one chunk of a file gave. It is not tried again: a batch belongs to the pipeline once it was offered.
func (c *sender) chunk(ctx context.Context, b *core.Batch) error {
	if b == nil || b.Len() == 0 {
		return nil
	}
	origin, err := c.origin(ctx) // rights may change while a file grows for days
	if err != nil {
		c.lost(b.Len(), err)
		return err
	}
	b.Origin = origin
	n := b.Len()
	_, err = c.store(ctx, b)
	switch {
	case err == nil:
		c.server.stats.commands.Add(int64(n))
	case command.Refusal(err):
		c.failed(nil, err)
	default:
		c.lost(n, err)
	}
	return err
}

// fileReader waits for more of a file.
type fileReader struct {
	server  *Server
	conn    net.Conn
	timeout time.Duration
}

func (f *fileReader) Read(p []byte) (int, error) {
	if err := f.server.await(f.conn, f.server.opts.Clock().Add(f.timeout)); err != nil {
		return 0, err
	}
	n, err := f.conn.Read(p)
	f.server.stats.bytes.Add(int64(n))
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		f.server.closedFor(err, false)
		return n, io.EOF // silence ends a file as the end of its connection does: its last rows are complete
	}
	return n, err
}
