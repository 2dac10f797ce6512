package api

import (
	"context"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/command"
)

// commandStream is one POST of text commands. It may stay open for hours.
type commandStream struct {
	c      *call
	parser command.Parser
	lines  *command.Splitter
	group  command.Group
	count  command.MarkerCount
	roles  core.Roles
	held   int64 // bytes of its buffer
}

// command stores text commands. Bad ones are counted and skipped; the answer is 200 all the same.
func (c *call) command() error {
	roles := c.id.Grants.Roles
	if !roles.Has(core.DataWrite) && !roles.Has(core.MetaWrite) {
		return auth.Denied()
	}
	commit, err := flagParameter(c.values, "commit", false)
	if err != nil {
		return err
	}
	if err := c.unhurried(); err != nil { // lines may be hours apart
		return err
	}
	stream, err := c.stream("", math.MaxInt64/2) // each line has its limit, the stream has none
	if err != nil {
		return err
	}
	s := &commandStream{c: c, roles: roles}
	s.parser.Transport = command.HTTP
	s.group = command.Group{New: s.newBatch, Parse: s.parser.Line, Store: c.server.Ingest.Ingest, Failed: c.server.countMalformed}
	var body io.Reader = stream
	if c.r.ContentLength < 0 { // an endless one: a line is stored as it arrives
		body = &flushingReader{stream, s.flush}
	}
	s.lines = command.NewSplitter(body, command.HTTP)
	s.lines.Reserve = s.reserve
	defer func() { c.server.unfinished.Add(-s.held) }()
	s.count = command.MarkerCount{Markers: c.server.Markers, User: c.id.User.Name, Lines: s.lines}
	if err := s.run(); err != nil {
		return err
	}
	if s.group.Stored > 0 {
		c.durability(s.group.Durability)
	}
	return c.sendJSON(s.answer(commit))
}

// streamShare is the part of limits.bodies that the buffers of all command streams may take: a stream may stop in the middle of a line for hours.
const streamShare = 4

// reserve counts the buffer of the stream. The first 4 KiB are there in any case, so that streams with short lines go on whatever others do.
func (s *commandStream) reserve(bytes int) bool {
	more, all := int64(bytes), &s.c.server.unfinished
	if all.Add(more) > s.c.server.Limits.Bodies/streamShare && more > 0 && s.held > 0 {
		all.Add(-more)
		return false
	}
	s.held += more
	return true
}

// errCrowded is the end of a stream with a long line for which there is no room.
var errCrowded = &core.Error{Code: core.Unavailable, Text: "the unfinished commands of all streams take a quarter of limits.bodies: send shorter lines, or try again", RetryAfter: time.Second}

// newBatch is batch for a group of commands.
func (c *call) newBatch(context.Context) (*core.Batch, error) { return c.batch(), nil }

// newBatch is batch with the rights as they are now, which may change while a stream is open.
func (s *commandStream) newBatch(ctx context.Context) (*core.Batch, error) {
	if err := s.c.renew(ctx); err != nil {
		return nil, err
	}
	s.roles = s.c.id.Grants.Roles
	return s.c.batch(), nil
}

// renew looks again who the caller of a long request is and what they may do.
func (c *call) renew(ctx context.Context) error {
	grants, err := c.server.Users.Renew(ctx, c.id)
	if err == nil {
		c.id.Grants = grants
	}
	return err
}

// flushingReader stores what is complete before it waits for more.
type flushingReader struct {
	r     io.Reader
	flush func() error
}

func (f *flushingReader) Read(p []byte) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.r.Read(p)
}

// run reads commands to the end of the body. A command that is too long is counted and skipped like any other bad one.
func (s *commandStream) run() error {
	for {
		line, err := s.lines.Next()
		s.count.Line(line)
		switch {
		case errors.Is(err, io.EOF):
			return s.flush()
		case errors.Is(err, command.ErrTooLong):
			s.group.Refuse(nil, err)
			continue
		case errors.Is(err, command.ErrCrowded):
			return errCrowded
		case err != nil:
			return err
		}
		if err := s.take(line); err != nil {
			return err
		}
	}
}

// take puts one line into the group, or acts on it when it is no record.
func (s *commandStream) take(line []byte) error {
	control, rest := command.Classify(line)
	switch control {
	case command.NoControl:
		if len(line) > s.c.server.Limits.Line {
			s.group.Refuse(line, command.ErrTooLong)
			return nil
		}
		if !s.allowed(line) {
			s.group.Refuse(line, auth.Denied())
			return nil
		}
		if s.group.Add(line) {
			return s.flush()
		}
	case command.Marker:
		if err := s.flush(); err != nil {
			return err
		}
		s.count.Start(string(rest))
	}
	return nil // the other control words talk to a connection; over HTTP they are accepted and ignored
}

// allowed checks the role of one command. A command that no role could save is refused later, by the parser.
func (s *commandStream) allowed(line []byte) bool {
	word := string(line[:min(len(line), len("property ")+1)])
	if end := strings.IndexAny(word, " \t\r\n"); end >= 0 {
		word = word[:end]
	}
	switch strings.ToLower(word) {
	case "metric", "entity":
		return s.roles.Has(core.MetaWrite)
	}
	return s.roles.Has(core.DataWrite)
}

// flush stores the group, and only then counts its lines for the marker: a client sends again what was not counted.
func (s *commandStream) flush() error {
	s.parser.Received = s.c.now()
	if err := s.group.Flush(s.c.r.Context()); err != nil {
		return err
	}
	s.count.Publish()
	return nil
}

// answer counts commands. Without commit the object has exactly three members: clients compare it.
func (s *commandStream) answer(commit bool) []byte {
	body := strconv.AppendInt([]byte(`{"fail":`), int64(s.group.Refused), 10)
	body = strconv.AppendInt(append(body, `,"success":`...), int64(s.group.Stored), 10)
	body = strconv.AppendInt(append(body, `,"total":`...), int64(s.group.Refused+s.group.Stored), 10)
	if commit {
		body = strconv.AppendInt(append(body, `,"stored":`...), int64(s.group.Stored), 10)
	}
	return append(body, '}')
}

// marker tells how many lines arrived after a marker of the caller, or of a door without a user. A client that reads less than it sent sends them again.
func (c *call) marker() error {
	id := c.values.Get("v")
	if id == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Parameter v is required")
	}
	body := appendString([]byte(`{"marker":`), id)
	body = append(body, `,"count":`...)
	count, ok := c.server.Markers.Get(c.id.User.Name, id)
	switch {
	case ok:
		body = strconv.AppendInt(body, int64(count), 10)
	case id == "check": // a probe of the clients: it must be answered as a marker that was just set
		body = append(body, '0')
	default:
		body = append(body, "null"...)
	}
	return c.sendJSON(append(body, '}'))
}
