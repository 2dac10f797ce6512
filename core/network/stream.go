package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"slices"
	"strings"
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
	file := &fileReader{server: c.server, conn: c.conn, timeout: timeout}
	// What the splitter has read already comes first; from here on the connection waits as the file says.
	var err error
	if file.waiting, err = io.ReadAll(c.lines.Rest(endless{})); !errors.Is(err, errEndless) {
		if file.fault = err; err == nil {
			file.fault = io.EOF
		}
	}
	if s.Format != "nmon" || c.server.opts.Parser == nil {
		return c.file(ctx, s, file)
	}
	return c.nmon(ctx, s, file)
}

// endless stands for the connection behind what was read of it: a reader that says so.
type endless struct{}

var errEndless = errors.New("the connection goes on")

func (endless) Read([]byte) (int, error) { return 0, errEndless }

// nmon goes on with a file of which only rows are sent, and keeps for the next connection what this one says of the file.
func (c *session) nmon(ctx context.Context, s command.Stream, file *fileReader) error {
	kept := &c.server.heads
	key := strings.ToLower(s.Params["e"]) + "\x00" + s.File
	reader := &headReader{fileReader: file}
	if isRow(file.firstLine()) {
		if reader.head = kept.find(ctx, c.server, key); reader.head.empty() {
			c.server.complaints.warn("rows of an nmon file came without its header, and none is kept of that name", "entity", s.Params["e"], "file", s.File, "address", c.address)
		}
	}
	reader.saved = func(h *head) { kept.keep(ctx, c.server, key, h) }
	if reader.lost = len(key) > maxHeadKey; reader.lost {
		c.server.complaints.warn("what a later connection needs of an nmon file is not kept: entity and file name are too long", "bytes", len(key), "limit", maxHeadKey)
	}
	err := c.file(ctx, s, reader)
	reader.save() // the time of its last snapshot
	return err
}

// continuer is what a core.Parser may be besides: one that reads the head of a file without giving what it makes of it.
type continuer interface {
	Continue(ctx context.Context, r core.ParseRequest, head []byte, body io.Reader) iter.Seq2[core.Parsed, error]
}

// file sends a file through its parser and stores what comes out, batch by batch.
func (c *sender) file(ctx context.Context, s command.Stream, body io.Reader) error {
	if c.server.opts.Parser == nil {
		err := core.Errorf(core.Unimplemented, "this server has no parsers")
		c.group.Refuse(nil, err)
		return errHangUp
	}
	again := c.retry()
	for {
		read := &countedReader{Reader: body}
		err := c.parsed(ctx, s, read)
		switch {
		case !c.busy(err, read):
			return err
		case c.group.Again == nil || !again(ctx, err):
			c.lost(1, err)
			return err
		}
	}
}

// busy reports a parser that has not begun: all its instances may be taken by other files, or it is being loaded.
func (c *sender) busy(err error, body *countedReader) bool {
	return !body.touched && core.CodeOf(err) == core.Unavailable
}

// parsed is one attempt of file.
func (c *sender) parsed(ctx context.Context, s command.Stream, body *countedReader) error {
	origin, err := c.origin(ctx)
	if err != nil {
		c.lost(1, err)
		return err
	}
	request := core.ParseRequest{Parser: s.Parser, Format: s.Format, Params: s.Params, Tags: s.Tags, Zone: s.Zone, FileName: s.File, Source: c.address,
		Received: core.TimeOf(c.server.opts.Clock()), Origin: origin}
	for chunk, err := range c.open(ctx, request, body) {
		if err != nil {
			return c.parseFault(err, body)
		}
		c.server.stats.drop(Syntax, len(chunk.Rejects)+chunk.Dropped)
		c.complain(s, chunk.Rejects)
		if err := c.chunk(ctx, chunk.Batch, origin); err != nil {
			return err
		}
		body.stored()
	}
	return io.EOF
}

// open begins with the kept head of the file, if there is one.
func (c *sender) open(ctx context.Context, r core.ParseRequest, body *countedReader) iter.Seq2[core.Parsed, error] {
	file, ok := body.Reader.(*headReader)
	parser, able := c.server.opts.Parser.(continuer)
	switch {
	case !ok && body.live() == nil: // a datagram
		return c.server.opts.Parser.Parse(ctx, r, body)
	case !ok || !able || file.head.empty():
		return c.server.opts.Parser.Parse(ctx, r, liveReader{body})
	}
	return parser.Continue(ctx, r, file.head.lines(), liveReader{body})
}

// parseFault counts what ended a file, unless it is its connection, which is counted where connections are.
func (c *sender) parseFault(err error, body *countedReader) error {
	switch live := body.live(); {
	case live != nil && live.broken() != nil && errors.Is(err, live.broken()):
	case c.busy(err, body):
	case command.Refusal(err):
		c.group.Refuse(nil, err)
	default: // a fault of the server
		c.lost(1, err)
	}
	return err
}

// complain logs that a file has rows without header: that one is a fault of how it is sent. Other reasons quote data.
func (c *sender) complain(s command.Stream, rejects []core.Reject) {
	for _, r := range rejects {
		if strings.HasPrefix(r.Reason, "Header not found") {
			c.server.complaints.warn("nmon: rows without a header are dropped", "entity", s.Params["e"], "first", r.Reason)
			return
		}
	}
}

// chunk stores what one chunk of a file gave. A batch belongs to the pipeline once it was offered: what may be tried again is a copy.
func (c *sender) chunk(ctx context.Context, b *core.Batch, first core.Origin) error {
	if b == nil || b.Len() == 0 {
		return nil
	}
	n, again := b.Len(), c.retry()
	for {
		origin, err := c.origin(ctx) // rights may change while a file grows for days
		if err != nil {
			c.lost(n, err)
			return err
		}
		if !first.Grants.Roles.Has(core.Admin) { // what the parser added to remember something is not the user's
			origin.Grants.Roles |= b.Origin.Grants.Roles & core.Admin
		}
		offered := b
		if c.group.Again != nil {
			offered = copyOf(b)
		}
		offered.Origin = origin
		_, err = c.store(ctx, offered)
		switch {
		case err == nil:
			c.server.stats.commands.Add(int64(n))
			return nil
		case command.Refusal(err):
			c.failed(nil, err)
			return err
		case c.group.Again == nil || !again(ctx, err):
			c.lost(n, err)
			return err
		}
	}
}

// copyOf copies what the pipeline may change. Texts are shared.
func copyOf(b *core.Batch) *core.Batch {
	s := &b.Samples
	out := &core.Batch{Origin: b.Origin, Received: b.Received, Keys: slices.Clone(b.Keys), Messages: slices.Clone(b.Messages), Properties: slices.Clone(b.Properties),
		Documents: slices.Clone(b.Documents),
		Samples: core.Samples{Series: slices.Clone(s.Series), Times: slices.Clone(s.Times), Values: slices.Clone(s.Values), Flags: slices.Clone(s.Flags),
			Texts: slices.Clone(s.Texts), Decimals: slices.Clone(s.Decimals), Versions: slices.Clone(s.Versions)}}
	for i := range out.Keys {
		out.Keys[i].Tags = slices.Clone(out.Keys[i].Tags)
	}
	for i := range out.Messages {
		out.Messages[i].Tags = slices.Clone(out.Messages[i].Tags)
	}
	for i := range out.Properties {
		p := &out.Properties[i]
		p.Key, p.Tags = slices.Clone(p.Key), slices.Clone(p.Tags)
	}
	return out
}

// countedReader is the body of one attempt to parse.
type countedReader struct {
	io.Reader
	touched bool // the parser has begun to read
}

func (r *countedReader) Read(p []byte) (int, error) {
	r.touched = true
	return r.Reader.Read(p)
}

// connected is a body that comes from a connection.
type connected interface {
	Ready() bool
	broken() error
}

// live is nil for a body that is complete.
func (r *countedReader) live() connected {
	c, _ := r.Reader.(connected)
	return c
}

// stored tells the body that what was read of it is stored, but for the last moment.
func (r *countedReader) stored() {
	if h, ok := r.Reader.(*headReader); ok {
		h.stored()
	}
}

// liveReader shows the parser that the body is written as things happen.
type liveReader struct{ *countedReader }

func (r liveReader) Ready() bool { return r.live().Ready() }

const (
	restTime = 100 * time.Millisecond // default of Limits.StreamRest
	latency  = time.Second            // default of Limits.StreamLatency

	// fileBuffer holds what arrives at once.
	fileBuffer = 32 << 10
)

// fileReader waits for more of a file.
type fileReader struct {
	server  *Server
	conn    net.Conn
	timeout time.Duration

	buf     []byte
	waiting []byte    // read from the connection, and not by the parser yet
	began   time.Time // of the first read since it was not ready; zero before
	fault   error     // what ended the connection; io.EOF also for silence
}

func (f *fileReader) Read(p []byte) (int, error) {
	if len(f.waiting) == 0 && f.fault == nil && !f.receive(f.server.opts.Clock().Add(f.timeout)) && f.fault == nil {
		f.server.closedFor(errSilence, false)
		f.fault = io.EOF // silence ends a file as the end of its connection does: its last rows are complete
	}
	if len(f.waiting) == 0 {
		return 0, f.fault
	}
	if f.began.IsZero() {
		f.began = f.server.opts.Clock()
	}
	n := copy(p, f.waiting)
	f.waiting = f.waiting[n:]
	return n, nil
}

// Ready waits a moment for more. See wasm.Live.
func (f *fileReader) Ready() bool {
	now := f.server.opts.Clock()
	limits := &f.server.opts.Limits
	late := f.began.Add(limits.StreamLatency)
	ready := now.Before(late) && (len(f.waiting) > 0 || f.fault != nil || f.receive(minTime(now.Add(limits.StreamRest), late)) || f.fault != nil)
	if !ready {
		f.began = time.Time{}
	}
	return ready
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// errSilence is the fault of a sender that says nothing.
var errSilence error = &net.OpError{Op: "read", Err: timeoutError{}}

type timeoutError struct{}

func (timeoutError) Error() string { return "silence" }
func (timeoutError) Timeout() bool { return true }

// receive waits for bytes until a time and reports whether some came. With neither bytes nor a fault the time is over.
func (f *fileReader) receive(until time.Time) bool {
	if f.fault = f.server.await(f.conn, until); f.fault != nil {
		return false
	}
	if f.buf == nil {
		f.buf = make([]byte, fileBuffer)
	}
	n, err := f.conn.Read(f.buf)
	f.server.stats.bytes.Add(int64(n))
	f.waiting = append(f.waiting, f.buf[:n]...)
	if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		f.fault = err
	}
	return n > 0
}

// firstLine waits for the beginning of a file, as much of it as tells what it is.
func (f *fileReader) firstLine() []byte {
	const enough = 64
	until := f.server.opts.Clock().Add(f.timeout)
	for f.fault == nil && len(f.waiting) < enough && bytes.IndexByte(f.waiting, '\n') < 0 {
		if !f.receive(until) {
			break
		}
	}
	line, _, _ := bytes.Cut(f.waiting, []byte{'\n'})
	return line
}

// broken is what ended the connection but for its regular end.
func (f *fileReader) broken() error {
	if errors.Is(f.fault, io.EOF) {
		return nil
	}
	return f.fault
}
