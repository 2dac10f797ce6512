package network

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// accept takes connections until the listener is closed, and returns when the last of them has ended.
func (s *Server) accept(ctx context.Context, l net.Listener, serve func(context.Context, net.Conn)) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	wait := time.Duration(0)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // out of file descriptors, most likely: connections that end will give some back
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.complaints.warn("a connection cannot be accepted", "error", err)
			if !pause(ctx, wait) {
				return nil
			}
			continue
		}
		wait = 0
		if !s.admit(conn) {
			conn.Close()
			continue
		}
		sessions.Go(func() {
			defer s.release(conn)
			serve(ctx, conn)
		})
	}
}

// admit counts a connection in, unless there are too many.
func (s *Server) admit(conn net.Conn) bool {
	client := core.ClientName(addressOf(conn))
	s.conns.Lock()
	defer s.conns.Unlock()
	setting := ""
	switch {
	case !s.conns.until.IsZero(): // stopping
		return false
	case len(s.conns.open) >= s.opts.Limits.Connections:
		setting = "tcp.connections"
	case s.conns.byClient[client] >= s.opts.Limits.PerAddress:
		setting = "tcp.connections.address"
	}
	if setting != "" {
		s.stats.turnedAway.Add(1)
		s.complaints.warn("too many connections, one was turned away: see the setting "+setting, "client", client)
		return false
	}
	s.conns.open[conn] = client
	s.conns.byClient[client]++
	s.stats.accepted.Add(1)
	s.stats.open.Add(1)
	return true
}

// release closes a connection and counts it out.
func (s *Server) release(conn net.Conn) {
	conn.Close()
	s.conns.Lock()
	defer s.conns.Unlock()
	client := s.conns.open[conn]
	delete(s.conns.open, conn)
	if s.conns.byClient[client]--; s.conns.byClient[client] <= 0 {
		delete(s.conns.byClient, client)
	}
	s.stats.open.Add(-1)
}

// addressOf is the address of the peer, without port.
func addressOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

const (
	// lingerTime and lingerBytes bound what is read and thrown away of a connection that the server ends: closing it with unread bytes would
	// take the last reply from the client.
	lingerTime  = 250 * time.Millisecond
	lingerBytes = 1 << 20
	// writeTime is how long a client may take to read a reply.
	writeTime = 10 * time.Second
)

// hangUp ends a connection from this side so that the client still reads what was sent to it.
func (s *Server) hangUp(conn net.Conn) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if s.await(conn, s.opts.Clock().Add(lingerTime)) != nil {
		return
	}
	io.CopyN(io.Discard, conn, lingerBytes) // whatever ends it, the connection is closed next
}

// closedFor counts a connection that ran out of time.
func (s *Server) closedFor(err error, unfinished bool) {
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() || s.stopping() {
		return
	}
	if unfinished {
		s.stats.slow.Add(1)
		return
	}
	s.stats.idle.Add(1)
}
