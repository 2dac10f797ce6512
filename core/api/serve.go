package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// route is one row of the table in routes.go.
type route struct {
	method string
	path   string // httprouter pattern over the encoded path
	role   core.Roles
	handle func(*call) error
}

// call is one request on its way. It is the http.ResponseWriter that the router passes through, so that a bound route finds it again.
type call struct {
	http.ResponseWriter
	r       *http.Request
	server  *Server
	id      auth.Identity
	params  httprouter.Params
	values  url.Values // of the query string
	route   string     // pattern, for metrics
	status  int        // sent; 0 = nothing was sent yet
	held    int64      // bytes of its body and its answer that count against limits.bodies
	charged int64      // of them those of its body that count against limits.bodies.user
	answer  int64      // of them those of its answer
	durable [1]string  // value of a header of the answer, kept here to save writes an allocation

	// As in http.Request, the context of one request: made when something is read first, so that writes pay nothing for it.
	queries context.Context
	stop    context.CancelFunc
}

// errTime is the cause of a context that limits.time has ended.
var errTime = errors.New("limits.time is over")

// reading is the context of everything that the request reads: it ends when the client goes away, or when limits.time is over.
func (c *call) reading() context.Context {
	if c.queries == nil {
		c.queries, c.stop = context.WithTimeoutCause(c.r.Context(), c.server.Limits.Time, errTime)
	}
	return c.queries
}

// outOfTime reports whether limits.time has ended the request.
func (c *call) outOfTime() bool { return c.queries != nil && context.Cause(c.queries) == errTime }

// WriteHeader notes the status on its way out.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// ServeHTTP takes a request through the steps that the package comment names.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{ResponseWriter: w, r: r, server: s, route: "none"}
	begin := s.Clock()
	defer func() {
		if c.stop != nil {
			c.stop()
		}
		c.release()
		s.stats.done(c, s.Clock()-begin)
	}()
	defer c.recover()
	allowOrigins(w.Header())
	if r.Method == http.MethodOptions {
		c.WriteHeader(http.StatusOK)
		return
	}
	if err := s.dispatch(c); err != nil {
		c.fail(err)
	}
}

// allowOrigins sets the three headers that the contract wants on every response, errors included.
func allowOrigins(h http.Header) {
	// One array for the three values. Each slice is full: adding a value to one does not touch its neighbour.
	v := [...]string{"*", "GET, HEAD, POST, PUT, PATCH, DELETE", "Origin, X-Requested-With, Content-Type, Accept, Authorization"}
	h["Access-Control-Allow-Origin"] = v[0:1:1]
	h["Access-Control-Allow-Methods"] = v[1:2:2]
	h["Access-Control-Allow-Headers"] = v[2:3:3]
}

// dispatch authenticates and finds the route. Credentials come first: a bad one is a 401 on every path, existing or not.
func (s *Server) dispatch(c *call) error {
	path := encodedPath(c.r.URL)
	if !s.public[path] || auth.BearsToken(c.r) {
		adoptCredentials(c.r, path)
		id, err := s.Users.Authenticate(c.r)
		if err != nil {
			return err
		}
		if id.Cookie != nil {
			http.SetCookie(c, id.Cookie)
			c.Header().Set("Expires", "Thu, 01 Jan 1970 00:00:00 GMT") // an answer that carries a cookie is not for a cache
		}
		c.id = id
	}
	method := c.r.Method
	if method == http.MethodHead && !strings.HasPrefix(path, webhookPath) { // whose GET writes, which a HEAD may not
		method = http.MethodGet // net/http drops the body
	}
	if path == "/api/v1/entity-groups/" { // as one client asks for the list
		path = strings.TrimSuffix(path, "/")
	}
	handle, params, _ := s.router.Lookup(method, path)
	if handle == nil {
		if c.id.Means == auth.ByGuest { // who may read, and is no user: an unknown path asks for credentials as for everybody else
			return c.id.Denied()
		}
		return s.unrouted(c, path)
	}
	handle(c, c.r, params)
	return nil
}

// bind makes a row of the table a handle of the router. The role is checked before the body is looked at.
func (s *Server) bind(rt route) httprouter.Handle {
	return func(w http.ResponseWriter, _ *http.Request, params httprouter.Params) {
		c := w.(*call) // dispatch is the only caller
		c.route, c.params = rt.path, params
		if err := c.admit(rt); err != nil {
			c.fail(err)
			return
		}
		if err := rt.handle(c); err != nil {
			c.fail(err)
		}
	}
}

// admit checks the role and the origin of a request, and decodes its path parameters, each once.
func (c *call) admit(rt route) error {
	if rt.role != core.Public && !c.id.Grants.Roles.Has(rt.role) {
		return c.id.Denied()
	}
	// The webhook is the one GET that writes: an image tag on a foreign page must not be able to send a message.
	writes := rt.method != http.MethodGet || strings.HasPrefix(rt.path, webhookPath)
	if writes && rt.role != core.Public && !c.id.MayWrite(c.r) {
		return core.Errorf(core.Forbidden, "a request from another site needs credentials of its own, those that a browser remembers are not enough")
	}
	for i := range c.params {
		value, err := url.PathUnescape(c.params[i].Value)
		if err != nil {
			return core.Errorf(core.Invalid, "path: %s", err)
		}
		c.params[i].Value = value
	}
	if c.r.URL.RawQuery == "" || strings.HasPrefix(rt.path, webhookPath) { // which reads what foreign services send by itself
		return nil
	}
	var err error
	if c.values, err = parseQuery(c.r.URL.RawQuery); err != nil {
		return core.Errorf(core.Invalid, "query string: %s", err)
	}
	return nil
}

// parseQuery takes a query string apart at `&` alone: unlike in net/url a semicolon is data, and nothing is left out silently.
func parseQuery(raw string) (url.Values, error) {
	values := url.Values{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return values, err
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return values, err
		}
		values.Add(name, value)
	}
	return values, nil
}

// encodedPath is the path as it was sent, so that %2F inside a segment is data.
func encodedPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// unrouted tells a known path with a wrong verb from an unknown path. SQL answers 404 to a wrong verb: its clients look for that.
func (s *Server) unrouted(c *call, path string) error {
	if !strings.HasPrefix(path, "/api/sql") {
		var allow []string
		for _, method := range s.methods {
			if handle, _, _ := s.router.Lookup(method, path); handle != nil {
				allow = append(allow, method)
			}
		}
		if allow != nil {
			c.Header().Set("Allow", strings.Join(allow, ", "))
			return core.Errorf(core.MethodNotAllowed, "HttpRequestMethodNotSupportedException: Request method '%s' not supported", c.r.Method)
		}
	}
	return core.Errorf(core.NotFound, "not found: %s", c.r.URL.Path)
}

// recover turns a panic of a handler into a 500 of this request; the server goes on.
func (c *call) recover() {
	fault := recover()
	if fault == nil {
		return
	}
	if fault == http.ErrAbortHandler {
		panic(fault) // net/http cuts the connection: the answer was under way and cannot be completed
	}
	id := requestID()
	c.server.Log.Error("panic in a request", "request", id, "method", c.r.Method, "route", c.route, "panic", fault, "stack", string(debug.Stack()))
	if c.status != 0 {
		panic(http.ErrAbortHandler)
	}
	c.failText(http.StatusInternalServerError, internalText(id))
}

// requestID is what a user quotes and the log knows.
func requestID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// param returns a path parameter, decoded.
func (c *call) param(name string) string { return c.params.ByName(name) }

// now is the clock of this request. Handlers read it once.
func (c *call) now() core.Time { return c.server.Clock() }
