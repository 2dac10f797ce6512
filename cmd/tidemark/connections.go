package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections bounds what is open of the HTTP and HTTPS doors together. A connection costs a descriptor and some 10 KB before anybody has said who they are,
// and without descriptors the storage could not open its files either.
type connections struct {
	most, perAddress int // settings "http.connections" and "http.connections.address"
	log              *slog.Logger
	now              func() time.Time

	mu        sync.Mutex // guards below
	open      int
	byAddress map[string]int
	told      time.Time // of the last warning
}

// newConnections takes the bounds of the settings; 0, which no setting has, is the default.
func newConnections(c Config, log *slog.Logger) *connections {
	return &connections{most: int(cmp.Or(c.HTTPConnections, 4096)), perAddress: int(cmp.Or(c.HTTPPerAddress, 2048)), log: log, now: time.Now, byAddress: map[string]int{}}
}

// tellEvery is how often it is told that connections were turned away.
const tellEvery = time.Minute

// admit counts a connection in, unless there are too many.
func (c *connections) admit(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	setting := ""
	switch {
	case c.open >= c.most:
		setting = "http.connections"
	case c.byAddress[address] >= c.perAddress:
		setting = "http.connections.address"
	}
	if setting == "" {
		c.open++
		c.byAddress[address]++
		return true
	}
	if now := c.now(); now.Sub(c.told) >= tellEvery {
		c.told = now
		c.log.Warn("http: too many connections, some were turned away: see the setting "+setting, "address", address)
	}
	return false
}

func (c *connections) release(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.byAddress[address]--; c.byAddress[address] <= 0 {
		delete(c.byAddress, address)
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
		if l.connections.admit(address) {
			return &boundedConn{Conn: conn, release: sync.OnceFunc(func() { l.connections.release(address) })}, nil
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

// hurried sets the time that a request may take to arrive, and its answer to leave: who sends or reads a byte a minute holds a connection and, of a body or
// an answer, its memory. Handlers of streams lift both.
func hurried(s *http.Server, c Config) {
	s.ReadTimeout = c.HTTPTime
	s.WriteTimeout = c.HTTPTime + c.RequestTime + c.HTTPTime // from the end of the header on: the body, the work, the answer
}
