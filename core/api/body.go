package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
)

// bounded fails with TooLarge once more than left bytes were read.
type bounded struct {
	r     io.Reader
	left  int64
	limit int64
	name  string // of the limit
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.exceeded()
	}
	// One byte more than allowed is asked for, to tell a body of exactly the limit from a longer one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, b.exceeded()
	}
	return n, err
}

// exceeded names the limit, so that its owner knows what to change.
func (b *bounded) exceeded() error {
	return core.Errorf(core.TooLarge, "the body exceeds %s (%d bytes after decompression)", b.name, b.limit)
}

// stream returns the body as a reader: decompressed when it says so, and bounded. An I/O fault of the client is Invalid.
func (c *call) stream(name string, limit int64) (*bounded, error) {
	var r io.Reader = clientReader{c.r.Body}
	switch coding := strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(r)
		if err != nil {
			return nil, badGzip(err)
		}
		r = gzipReader{zr}
	default:
		return nil, core.Errorf(core.Unsupported, "Content-Encoding %q is not supported: send gzip or none", coding)
	}
	return &bounded{r: r, left: limit, limit: limit, name: name}, nil
}

// clientReader marks faults of the connection as the client's.
type clientReader struct{ r io.Reader }

func (c clientReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	var e *core.Error // of paced
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &e) {
		err = core.Wrap(core.Invalid, err, "the body could not be read to its end")
	}
	return n, err
}

type gzipReader struct{ r io.Reader }

func (g gzipReader) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badGzip(err)
	}
	return n, err
}

// badGzip is the refusal of a body whose compression is damaged.
func badGzip(err error) error {
	var e *core.Error
	if errors.As(err, &e) {
		return e // the connection, not the compression, failed
	}
	return core.Wrap(core.Invalid, err, "Content-Encoding is gzip but the body is not valid gzip")
}

// body reads the whole body. Its bytes count against limits.bodies until the request ends. The caller may keep strings into it: it is
// never reused.
func (c *call) body() (string, error) {
	limits := &c.server.Limits
	r, err := c.stream("limits.body", limits.Body)
	if err != nil {
		return "", err
	}
	if c.r.ContentLength > limits.Body {
		return "", r.exceeded()
	}
	return c.readAll(r)
}

// onTrust is how many bytes are reserved for a body before any of them is there. Nearly all bodies fit, and 4096 connections that announce one and send nothing
// hold a quarter of limits.bodies together.
const onTrust = 16 << 10

// bufferFor is how many bytes a body gets of which all that fit into have are there: twice of them, or what was announced if that is less. The announced length
// is only a promise. One byte more than it finds the end without growing.
func bufferFor(have, announced int64) int64 {
	if have == 0 {
		return min(max(announced+1, 512), onTrust)
	}
	if announced >= have && announced < 2*have {
		return announced + 1
	}
	return 2 * have
}

// readAll reads r to its end. Its bytes count against limits.bodies as they arrive.
func (c *call) readAll(r io.Reader) (string, error) {
	var text []byte
	for {
		if len(text) == cap(text) {
			size := bufferFor(int64(cap(text)), c.r.ContentLength)
			if err := c.charge(size); err != nil {
				return "", err
			}
			if err := c.hold(size); err != nil {
				return "", err
			}
			grown := make([]byte, len(text), size)
			copy(grown, text)
			text = grown
		}
		n, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			// Nobody writes to these bytes again, so that the text needs no copy of them.
			return unsafe.String(unsafe.SliceData(text), len(text)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// smallShare is the part of limits.bodies that is kept besides for bodies of up to onTrust: large ones, and answers that nobody reads, must not stop all writes.
const smallShare = 8

// hold counts the bytes of this request's body against the bound of all.
func (c *call) hold(total int64) error {
	more, limit := total-c.held, c.server.Limits.Bodies
	if total <= onTrust {
		limit += limit / smallShare
	}
	if c.server.held.Add(more) > limit {
		c.server.held.Add(-more)
		return &core.Error{Code: core.Unavailable, Text: "too many large requests at once (limits.bodies), try again", RetryAfter: time.Second}
	}
	c.held = total
	return nil
}

// shares are the bytes of bodies by the user who sends them.
type shares struct {
	sync.Mutex // guards by
	by         map[string]int64
}

// charge counts the bytes of a body against what one user may have of limits.bodies: who stops in the middle of a few large ones takes that alone.
func (c *call) charge(total int64) error {
	if total <= onTrust {
		return nil
	}
	limit, s := c.server.Limits.UserBodies, &c.server.shares
	s.Lock()
	defer s.Unlock()
	switch {
	case total > limit:
		return core.Errorf(core.TooLarge, "the body exceeds limits.bodies.user (%d bytes)", limit)
	case s.by[c.id.User.Name]+total-c.charged > limit:
		text := fmt.Sprintf("the requests of this user take more than limits.bodies.user (%d bytes) at once, try again", limit)
		return &core.Error{Code: core.Unavailable, Text: text, RetryAfter: time.Second}
	}
	if s.by == nil {
		s.by = map[string]int64{}
	}
	s.by[c.id.User.Name] += total - c.charged
	c.charged = total
	return nil
}

// release gives back what the request has reserved, at its end.
func (c *call) release() {
	c.server.held.Add(-c.held)
	if c.charged == 0 {
		return
	}
	s, user := &c.server.shares, c.id.User.Name
	s.Lock()
	defer s.Unlock()
	if s.by[user] -= c.charged; s.by[user] == 0 {
		delete(s.by, user)
	}
}

// json reads the whole body as JSON that is safe to hand to gjson: valid, and no deeper than limits.depth.
func (c *call) json() (string, error) {
	body, err := c.body()
	if err != nil {
		return "", err
	}
	if err := checkCharset(c.r.Header); err != nil {
		return "", err
	}
	body = strings.TrimPrefix(body, "\ufeff")
	if !utf8.ValidString(body) {
		return "", core.Errorf(core.Invalid, "JsonParseException: the body is not valid UTF-8")
	}
	if err := scanJSON(body, c.server.Limits.Depth); err != nil {
		return "", err
	}
	return body, nil
}

// checkCharset refuses a JSON text in anything but UTF-8 (or its subset).
func checkCharset(h http.Header) error {
	_, params, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), "charset=")
	charset, _, _ := strings.Cut(params, ";")
	charset = strings.Trim(strings.TrimSpace(charset), `"`)
	switch charset {
	case "", "utf-8", "utf8", "us-ascii", "iso-8859-1": // some clients always name Latin-1 and send UTF-8
		return nil
	}
	return core.Errorf(core.Unsupported, "charset %q is not supported: send UTF-8", charset)
}

// unhurried lifts the deadlines of the connection, for requests that may take longer than those that are read as a whole.
func (c *call) unhurried() error {
	conn := http.NewResponseController(c)
	for _, lift := range [...]func(time.Time) error{conn.SetReadDeadline, conn.SetWriteDeadline} {
		if err := lift(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("lift the deadline of a connection: %w", err)
		}
	}
	return nil
}
