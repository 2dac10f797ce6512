package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// connections bounds what is open of the HTTP and HTTPS doors together. A connection costs a descriptor and some 10 KB before anybody has said who they are,
// and without descriptors the storage could not open its files either.
type connections struct {
	most, perClient int // settings "http.connections" and "http.connections.address"
	log             *slog.Logger
	now             func() time.Time

	mu       sync.Mutex // guards below
	open     int
	byClient map[string]int // by core.ClientName
	told     time.Time      // of the last warning
}

// newConnections takes the bounds of the settings; 0, which no setting has, is the default.
func newConnections(c Config, log *slog.Logger) *connections {
	return &connections{most: int(cmp.Or(c.HTTPConnections, 4096)), perClient: int(cmp.Or(c.HTTPPerAddress, 2048)), log: log, now: time.Now, byClient: map[string]int{}}
}

// tellEvery is how often it is told that connections were turned away.
const tellEvery = time.Minute

// admit counts a connection in, unless there are too many.
func (c *connections) admit(client string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	setting := ""
	switch {
	case c.open >= c.most:
		setting = "http.connections"
	case c.byClient[client] >= c.perClient:
		setting = "http.connections.address"
	}
	if setting == "" {
		c.open++
		c.byClient[client]++
		return true
	}
	if now := c.now(); now.Sub(c.told) >= tellEvery {
		c.told = now
		c.log.Warn("http: too many connections, some were turned away: see the setting "+setting, "client", client)
	}
	return false
}

func (c *connections) release(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.byClient[client]--; c.byClient[client] <= 0 {
		delete(c.byClient, client)
	}
}

// of is a listener whose connections are counted.
func (c *connections) of(l net.Listener) net.Listener { return boundedListener{l, c} }

type boundedListener struct {
	net.Listener
	connections *connections
}

// Accept closes what is too much at once: whoever waits for a place would wait for strangers.
func (l boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err != nil {
			address = conn.RemoteAddr().String()
		}
		client := core.ClientName(address)
		if l.connections.admit(client) {
			return &boundedConn{Conn: conn, release: sync.OnceFunc(func() { l.connections.release(client) })}, nil
		}
		conn.Close() // it has nothing to lose yet
	}
}

type boundedConn struct {
	net.Conn
	release func()
}

// Close gives the place back, once.
func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// requestsAtOnce is how many requests a connection with HTTP/2 may have under way: what bounds connections bounds requests, too.
const requestsAtOnce = 100

// hurried sets the time that a request may take to arrive, and its answer to leave: who sends or reads a byte a minute holds a connection and, of a body or
// an answer, its memory. Handlers of streams lift both. The head of a request, which is read before anybody has said who they are, is bounded in bytes: a
// megabyte, as it would be otherwise, of thousands of connections is all the memory of a small machine.
func hurried(s *http.Server, c Config) {
	s.ReadTimeout = c.HTTPTime
	s.MaxHeaderBytes = int(c.HTTPHeader)
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: requestsAtOnce}
	s.WriteTimeout = c.HTTPTime + c.RequestTime + c.HTTPTime // from the end of the header on: the body, the work, the answer
}
