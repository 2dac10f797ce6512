package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// paced is the body of an upload, whose sender has to keep going: an upload holds an instance of its plugin, of which there are few.
//
// A sender has upload.idle of patience. Waiting uses it up, and each byte gives back the time that it may take at upload.rate, up to the whole. So a pause
// ends an upload, and so does a trickle, but not a slow line; what the plugin and the store take is not the sender's.
type paced struct {
	r        io.Reader
	c        *call
	conn     *http.ResponseController
	patience time.Duration // left
	late     bool          // it is used up
	outcome  string        // what that means for the upload
}

// paced must follow unhurried, which lifts the deadline that it sets.
func (c *call) paced(r io.Reader) *paced {
	return &paced{r: r, c: c, conn: http.NewResponseController(c), patience: c.server.Limits.UploadIdle,
		outcome: "what was processed before is stored"}
}

func (p *paced) Read(b []byte) (int, error) {
	if p.late || p.patience <= 0 {
		p.late = true
		return 0, p.fault()
	}
	begin := p.c.now()
	p.until(begin.Std().Add(p.patience))
	n, err := p.r.Read(b)
	p.until(time.Time{}) // while nobody reads it must not pass: HTTP/2 would drop what comes then
	p.waited(time.Duration(p.c.now()-begin)*time.Millisecond, n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.late = true
		return n, p.fault()
	}
	return n, err
}

// waited takes from the patience, and gives back for n bytes. A clock that was set forward takes no more than there is.
func (p *paced) waited(d time.Duration, n int) {
	limits := &p.c.server.Limits
	p.patience -= min(max(0, d), p.patience)
	p.patience += time.Duration(float64(n) / float64(limits.UploadRate) * float64(time.Second))
	p.patience = min(p.patience, limits.UploadIdle)
}

// until sets the deadline of the next read; the zero time is none. A connection that has none is measured all the same, after the fact; one that is gone says
// so when it is read.
func (p *paced) until(t time.Time) { _ = p.conn.SetReadDeadline(t) }

// fault is the refusal of a sender that is late. Its status is 408, which uploads alone have.
func (p *paced) fault() error {
	limits := &p.c.server.Limits
	return core.Errorf(core.Invalid, "the upload is too slow: it may pause for upload.idle (%s) and has to bring upload.rate (%d bytes/s) on average; %s",
		limits.UploadIdle, limits.UploadRate, p.outcome)
}
