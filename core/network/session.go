package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// session is one connection that sends commands. It belongs to one goroutine.
type session struct {
	*sender
	conn    net.Conn
	lines   *command.Splitter
	count   command.MarkerCount
	flushed func() error // flush with the context of the session
	began   time.Time    // of the first read of an unfinished command; zero when none has begun
	partial bool         // a command was unfinished at the last read
	held    int          // bytes of its buffer
	bad     bool         // a command was refused since the connection was opened
	begun   bool         // a command was taken
}

// errHangUp ends a session from this side.
var errHangUp = errors.New("the server ends the connection")

// commands serves one connection.
func (s *Server) commands(ctx context.Context, conn net.Conn) {
	c := &session{sender: s.newSender(core.DoorTCP, s.opts.TCP.User, addressOf(conn)), conn: conn}
	c.group.Again = c.retry()
	c.flushed = func() error { return c.flush(ctx) }
	c.lines = command.NewSplitter(c, command.TCP)
	c.lines.Reserve = c.reserve
	defer func() { s.held.Add(-int64(c.held)) }()
	c.count = command.MarkerCount{Markers: s.opts.Markers, User: s.opts.TCP.User, Lines: c.lines}
	err := c.run(ctx)
	s.closedFor(err, c.partial)
	if !errors.Is(err, io.EOF) {
		s.hangUp(conn)
	}
}

// Read is what the splitter reads from. Before it waits for the sender it stores what is complete: that makes one batch of all that arrived together.
func (c *session) Read(p []byte) (int, error) {
	if err := c.flushed(); err != nil {
		return 0, err
	}
	if c.hangsUp() {
		return 0, errHangUp
	}
	limits := &c.server.opts.Limits
	now := c.server.opts.Clock()
	until := now.Add(limits.Idle)
	if c.partial = c.lines.Unfinished(); c.partial {
		if c.began.IsZero() {
			c.began = now
		}
		until = c.began.Add(limits.Command) // however many bytes come one by one
	}
	if err := c.server.await(c.conn, until); err != nil {
		return 0, err
	}
	n, err := c.conn.Read(p)
	c.server.stats.bytes.Add(int64(n))
	return n, err
}

// reserve counts the buffer of the connection against tcp.memory. The first 4 KiB are there in any case, so that connections with short commands go on
// whatever others do; tcp.connections bounds them.
func (c *session) reserve(bytes int) bool {
	s := c.server
	if s.held.Add(int64(bytes)) > int64(s.opts.Limits.Memory) && bytes > 0 && c.held > 0 {
		s.held.Add(-int64(bytes))
		s.complaints.warn("the buffers of all connections take more than tcp.memory, they grow no further", "address", c.address)
		return false
	}
	c.held += bytes
	return true
}

// hangsUp reports whether a malformed command ends the connection.
func (c *session) hangsUp() bool {
	c.bad = c.bad || c.failure != nil
	c.failure = nil
	return c.bad && !c.server.opts.KeepOnError
}

// run reads commands until the sender closes, which is io.EOF, or something ends the session.
func (c *session) run(ctx context.Context) error {
	for {
		text, err := c.lines.Next()
		c.began = time.Time{}
		c.count.Line(text)
		switch {
		case errors.Is(err, command.ErrTooLong):
			c.group.Refuse(nil, err)
		case err != nil:
			if errors.Is(err, command.ErrCrowded) {
				c.server.stats.drop(Overload, 1)
			}
			if fault := c.flush(ctx); fault != nil {
				return fault
			}
			return err
		default:
			if err := c.take(ctx, text); err != nil {
				return err
			}
		}
		if c.failure != nil { // known before the flush: nothing more is taken
			if err := c.flush(ctx); err != nil {
				return err
			}
			if c.hangsUp() {
				return errHangUp
			}
		}
	}
}

// fromBrowser reports whether the first line of a connection begins an HTTP request: web pages can make a browser send such to any port, with lines of
// their own behind it, also to the ports of its own machine that ask nobody who they are.
func fromBrowser(text []byte) bool {
	line := bytes.TrimSpace(text)
	return bytes.HasSuffix(line, []byte(" HTTP/1.1")) || bytes.HasSuffix(line, []byte(" HTTP/1.0"))
}

// take acts on one command.
func (c *session) take(ctx context.Context, text []byte) error {
	if first := !c.begun; first && fromBrowser(text) {
		c.group.Refuse(text, unknownCommand(text))
		c.server.complaints.warn("an HTTP request came to the door of text commands, and was not read", "address", c.address)
		return errHangUp
	}
	c.begun = true
	control, rest := command.Classify(text)
	if control != command.NoControl {
		if err := c.flush(ctx); err != nil { // replies come in the order of the commands
			return err
		}
		if c.hangsUp() { // for a command before this one, whose fault must not be taken for that of this one either
			return errHangUp
		}
		return c.control(ctx, control, rest)
	}
	if len(text) > c.server.opts.Limits.Line {
		c.group.Refuse(text, command.ErrTooLong)
		return nil
	}
	stream, ok, err := command.ParseStream(text)
	switch {
	case err != nil:
		c.group.Refuse(text, err)
	case ok:
		if err := c.flush(ctx); err != nil {
			return err
		}
		return c.stream(ctx, stream)
	case c.group.Add(text):
		return c.flush(ctx)
	}
	return nil
}

// flush stores what waits, counts its lines for the marker, and keeps the sender to its rate.
func (c *session) flush(ctx context.Context) error {
	n := c.group.Len()
	err := c.sender.flush(ctx)
	if err != nil {
		return err
	}
	c.count.Publish()
	if rate := c.server.opts.Limits.Rate; rate > 0 && n > 0 && !c.server.stopping() {
		pause(ctx, time.Duration(n)*time.Second/time.Duration(rate))
	}
	return nil
}

// control acts on a control word.
func (c *session) control(ctx context.Context, control command.Control, rest []byte) error {
	switch control {
	case command.Ping:
		return c.reply("ok")
	case command.Version:
		return c.reply(c.server.opts.Version)
	case command.Time:
		return c.reply(strconv.FormatInt(int64(core.TimeOf(c.server.opts.Clock())), 10))
	case command.Exit:
		if err := c.reply("Goodbye"); err != nil {
			return err
		}
		return errHangUp
	case command.Marker:
		c.count.Start(string(rest))
		return nil
	}
	return c.debug(ctx, rest)
}

// debug executes one command and replies with its result. Control words reply as they do by themselves.
func (c *session) debug(ctx context.Context, text []byte) error {
	switch control, rest := command.Classify(text); control {
	case command.NoControl:
	case command.Marker:
		c.count.Start(string(rest))
		return c.reply("ok")
	case command.Debug:
		c.group.Refuse(text, unknownCommand(text))
		return c.reply(replyText(c.failure))
	default:
		return c.control(ctx, control, rest)
	}
	if len(text) == 0 {
		c.group.Refuse(text, unknownCommand(text))
		return c.reply(replyText(c.failure))
	}
	c.group.Add(text)
	if err := c.flush(ctx); err != nil {
		return errors.Join(c.reply(replyText(err)), err)
	}
	if c.failure != nil {
		return c.reply(replyText(c.failure))
	}
	return c.reply("ok")
}

func unknownCommand(text []byte) error {
	return core.Wrap(core.Invalid, command.Rejectf(command.Unknown, "unknown command"), "Invalid command: "+string(text))
}

// replyText is the text of an error for the sender.
func replyText(err error) string {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return "internal error"
}

// reply sends one line.
func (c *session) reply(text string) error {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if err := c.conn.SetWriteDeadline(c.server.opts.Clock().Add(writeTime)); err != nil {
		return err
	}
	_, err := io.WriteString(c.conn, text+"\n")
	return err
}
