package api

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/command"
)

const (
	// A group of commands becomes one batch. Of a body with a known length the bounds below decide; of an endless one also every wait for
	// more bytes, so that a line is stored as it arrives.
	groupCommands = 10_000
	groupBytes    = 4 << 20
)

// commandStream is one POST of text commands. It may stay open for hours.
type commandStream struct {
	c      *call
	parser command.Parser
	lines  *command.Splitter
	roles  core.Roles

	// The commands of the group that is not stored yet, one after another. Their text is kept because a batch belongs to the pipeline once it
	// was offered: a refused group is parsed again.
	text  []byte
	group []span

	fail, success int
	durability    core.Durability
	marker        string // id of the last marker line
	counted       int    // lines since the marker
	seen          int    // lines of the splitter that are in counted
}

// command stores text commands. Bad ones are counted and skipped; the answer is 200 all the same.
func (c *call) command() error {
	roles := c.id.Grants.Roles
	if !roles.Has(core.DataWrite) && !roles.Has(core.MetaWrite) {
		return auth.Denied()
	}
	commit := strings.EqualFold(c.values.Get("commit"), "true")
	if err := c.unhurried(); err != nil { // lines may be hours apart
		return err
	}
	stream, err := c.stream("", math.MaxInt64/2) // each line has its limit, the stream has none
	if err != nil {
		return err
	}
	s := &commandStream{c: c, roles: roles, durability: core.Synced}
	s.parser = command.Parser{Received: c.now(), Transport: command.HTTP}
	var body io.Reader = stream
	if c.r.ContentLength < 0 {
		body = &flushingReader{stream, s.flush}
	}
	s.lines = command.NewSplitter(body, command.HTTP)
	if err := s.run(); err != nil {
		return err
	}
	if s.success > 0 {
		c.durability(s.durability)
	}
	return c.sendJSON(s.answer(commit))
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
		s.counted += s.lines.Lines() - s.seen
		s.seen = s.lines.Lines()
		switch {
		case errors.Is(err, io.EOF):
			return s.flush()
		case errors.Is(err, command.ErrTooLong):
			s.fail++
			continue
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
		if len(line) > s.c.server.Limits.Line || !s.allowed(line) {
			s.fail++
			return nil
		}
		start := len(s.text)
		s.text = append(s.text, line...)
		s.group = append(s.group, span{start, len(s.text)})
		if len(s.group) >= groupCommands || len(s.text) >= groupBytes {
			return s.flush()
		}
	case command.Marker:
		if err := s.flush(); err != nil {
			return err
		}
		s.marker, s.counted = string(rest), 0
		s.c.server.markers.set(s.marker, 0)
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
	if len(s.group) > 0 {
		s.parser.Received = s.c.now()
		err := s.store(s.group)
		s.text, s.group = s.text[:0], s.group[:0]
		if err != nil {
			return err
		}
	}
	if s.marker != "" {
		s.c.server.markers.set(s.marker, s.counted)
	}
	return nil
}

// span is where one command stands in the text of the group.
type span struct{ start, end int }

// store offers commands as one batch. When the pipeline refuses it, each half is offered by itself, down to the command that is at fault:
// that costs log2 of the group for a bad command, and good groups cost nothing. Commands that do not parse are left out and counted.
func (s *commandStream) store(group []span) error {
	b := s.c.batch()
	parsed := make([]span, 0, len(group))
	for _, one := range group {
		if err := s.parser.Line(b, s.text[one.start:one.end]); err != nil {
			s.fail++
			continue
		}
		parsed = append(parsed, one)
	}
	if len(parsed) == 0 {
		return nil
	}
	receipt, err := s.c.submit(b)
	switch {
	case err == nil:
		s.success += len(parsed)
		s.durability = min(s.durability, receipt.Durability)
		return nil
	case !refusal(err):
		return err
	case len(parsed) == 1:
		s.fail++
		return nil
	}
	middle := len(parsed) / 2
	if err := s.store(parsed[:middle]); err != nil {
		return err
	}
	return s.store(parsed[middle:])
}

// refusal reports whether an error is the fault of a record in the batch, so that the others can still be stored.
func refusal(err error) bool {
	switch core.CodeOf(err) {
	case core.Invalid, core.Forbidden, core.TooLarge, core.NotFound:
		return true
	}
	return false
}

// answer counts commands. Without commit the object has exactly three members: clients compare it.
func (s *commandStream) answer(commit bool) []byte {
	body := strconv.AppendInt([]byte(`{"fail":`), int64(s.fail), 10)
	body = strconv.AppendInt(append(body, `,"success":`...), int64(s.success), 10)
	body = strconv.AppendInt(append(body, `,"total":`...), int64(s.fail+s.success), 10)
	if commit {
		body = strconv.AppendInt(append(body, `,"stored":`...), int64(s.success), 10)
	}
	return append(body, '}')
}

// marker tells how many lines arrived after a marker. A client that reads less than it sent sends them again.
func (c *call) marker() error {
	id := c.values.Get("v")
	if id == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Parameter v is required")
	}
	body := appendString([]byte(`{"marker":`), id)
	body = append(body, `,"count":`...)
	count, ok := c.server.markers.get(id)
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

// markers remembers the counts of the latest markers. A client asks within seconds; 1,024 serve as many clients at once.
type markers struct {
	mu     sync.Mutex // guards below
	counts map[string]int
	order  []string // oldest first
}

const maxMarkers = 1024

func newMarkers() *markers { return &markers{counts: map[string]int{}} }

// set creates a marker or moves its count on; the oldest marker makes room.
func (m *markers) set(id string, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.counts[id]; !ok {
		if len(m.order) >= maxMarkers {
			delete(m.counts, m.order[0])
			m.order = slices.Delete(m.order, 0, 1)
		}
		m.order = append(m.order, id)
	}
	m.counts[id] = count
}

func (m *markers) get(id string) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count, ok := m.counts[id]
	return count, ok
}
