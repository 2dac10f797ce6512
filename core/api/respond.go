package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/cells"
)

const (
	jsonType  = "application/json;charset=UTF-8"
	csvType   = "text/csv;charset=UTF-8"
	plainType = "text/plain;charset=UTF-8"
)

// statuses is the one place where a core.Code becomes an HTTP status.
var statuses = map[core.Code]int{
	core.Internal:         http.StatusInternalServerError,
	core.Invalid:          http.StatusBadRequest,
	core.Unauthenticated:  http.StatusUnauthorized,
	core.Forbidden:        http.StatusForbidden,
	core.NotFound:         http.StatusNotFound,
	core.MethodNotAllowed: http.StatusMethodNotAllowed,
	core.TooLarge:         http.StatusRequestEntityTooLarge,
	core.Unsupported:      http.StatusUnsupportedMediaType,
	core.Unimplemented:    http.StatusNotImplemented,
	core.Unavailable:      http.StatusServiceUnavailable,
	core.NoSpace:          http.StatusInsufficientStorage,
	core.Canceled:         http.StatusServiceUnavailable, // ran out of time; whoever went away reads nothing
}

// fail answers with an error. The cause of an internal one goes to the log only, under an id that the user sees.
func (c *call) fail(err error) {
	if c.status != 0 {
		panic(http.ErrAbortHandler) // a 2xx is under way: cutting it is the only honest end
	}
	var e *core.Error
	code := core.CodeOf(err)
	if code == core.Internal || (!errors.As(err, &e) && code != core.Canceled) {
		id := requestID()
		c.server.Log.Error("request failed", "request", id, "method", c.r.Method, "route", c.route, "user", c.id.User.Name, "err", err)
		c.failText(http.StatusInternalServerError, internalText(id))
		return
	}
	text := "request canceled"
	switch {
	case code == core.Canceled && c.outOfTime():
		text = fmt.Sprintf("the request takes longer than limits.time (%s): narrow its queries or send it in parts", c.server.Limits.Time)
	case e != nil:
		text = e.Text
		if e.Cause != nil {
			c.server.Log.Warn("request refused", "method", c.r.Method, "route", c.route, "user", c.id.User.Name, "err", err)
		}
		if code == core.Unavailable || code == core.NoSpace {
			c.Header().Set("Retry-After", strconv.Itoa(max(1, int(e.RetryAfter.Seconds()))))
		}
	}
	if code == core.Forbidden && text != auth.AccessDenied {
		// The contract has one text for all of them; what is missing is told beside it.
		c.Header().Set("Tidemark-Reason", text)
		text = auth.AccessDenied
	}
	if code == core.Unauthenticated {
		c.Header().Set("WWW-Authenticate", `Basic realm="Tidemark"`)
	}
	c.failText(statuses[code], text)
}

// internalText is all that a user learns of a fault: the id leads to its cause in the log.
func internalText(id string) string { return "internal error, see the server log for request " + id }

// failText sends an error body: compact, complete JSON, never compressed, since clients compare it as text.
func (c *call) failText(status int, text string) {
	body := append([]byte(nil), `{"error":`...)
	body = append(appendString(body, text), '}')
	h := c.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.WriteHeader(status)
	c.Write(body)
}

// sendJSON answers 200 with a complete JSON text.
func (c *call) sendJSON(body []byte) error { return c.send(jsonType, body) }

// send answers 200 with a complete body.
func (c *call) send(contentType string, body []byte) error {
	if len(body) > c.server.Limits.Response {
		return core.Errorf(core.TooLarge, "the answer has %d bytes, limits.response allows %d: narrow the query or set a limit", len(body),
			c.server.Limits.Response)
	}
	h := c.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept-Encoding")
	if len(body) == 0 || !acceptsGzip(c.r.Header) {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		c.WriteHeader(http.StatusOK)
		c.Write(body) // fails only when the client is gone
		return nil
	}
	h.Set("Content-Encoding", "gzip")
	c.WriteHeader(http.StatusOK)
	zw := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(zw)
	zw.Reset(c)
	zw.Write(body)
	zw.Close() // both fail only when the client is gone
	return nil
}

// gzipWriters are reused: one holds some 800 KB of tables. Level 1 keeps a core free for the queries themselves.
var gzipWriters = sync.Pool{New: func() any {
	zw, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return zw
}}

// acceptsGzip reads Accept-Encoding; a weight of zero is a refusal.
func acceptsGzip(h http.Header) bool {
	for _, line := range h["Accept-Encoding"] {
		for item := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(strings.TrimSpace(item), ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			q, ok := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			if !ok {
				return true
			}
			value, err := strconv.ParseFloat(q, 64)
			return err == nil && value > 0
		}
	}
	return false
}

// stored answers a write that has no body. The header says what the data survives.
func (c *call) stored(receipt core.Receipt) error {
	c.durability(receipt.Durability)
	c.WriteHeader(http.StatusOK)
	return nil
}

// durability says what the acknowledged data survives.
func (c *call) durability(d core.Durability) {
	c.durable[0] = d.String()
	c.Header()["Tidemark-Durability"] = c.durable[:]
}

// appendString appends a JSON string. Bytes that are not UTF-8 become U+FFFD, so that every answer is valid JSON.
func appendString(dst []byte, s string) []byte { return cells.AppendJSON(dst, s) }
