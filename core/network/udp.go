package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
)

// queue holds datagrams between the socket, which must be emptied at once, and the store, which takes its time.
type queue struct {
	ready chan struct{} // has one element when there is something to take, and is closed at the end

	mu    sync.Mutex // guards below
	items []datagram
	bytes int
}

// datagram is one as it arrived, with the address of its sender.
type datagram struct {
	data    []byte
	address string
}

// datagramBytes is what a datagram takes in memory beside its data: an empty one is not for nothing.
const datagramBytes = 128

// put adds a datagram; false when there is no room.
func (q *queue) put(d datagram, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes+len(d.data)+datagramBytes > limit {
		return false
	}
	q.items = append(q.items, d)
	q.bytes += len(d.data) + datagramBytes
	select {
	case q.ready <- struct{}{}:
	default:
	}
	return true
}

// take takes everything.
func (q *queue) take() []datagram {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.bytes = nil, 0
	return items
}

// serveUDP reads datagrams until the socket is closed, and returns when those that were read are stored or dropped.
func (s *Server) serveUDP(ctx context.Context) error {
	q := &queue{ready: make(chan struct{}, 1)}
	var worker sync.WaitGroup
	worker.Go(func() { s.storeDatagrams(ctx, q) })
	defer worker.Wait()
	defer close(q.ready)
	limits := &s.opts.Limits
	buf := make([]byte, limits.Datagram+1) // one byte more tells that a datagram is too long
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // of one datagram, such as a rejection that an earlier send of ours caused
			s.complaints.warn("a datagram cannot be read", "error", err)
			if !pause(ctx, time.Millisecond) {
				return nil
			}
			continue
		}
		s.stats.datagrams.Add(1)
		s.stats.bytes.Add(int64(n))
		address := from.Addr().Unmap().String()
		switch {
		case n > limits.Datagram:
			s.stats.drop(Length, 1)
			s.complaints.warn("a datagram was dropped: it is longer than udp.datagram", "address", address)
		case !q.put(datagram{bytes.Clone(buf[:n]), address}, limits.Queue):
			s.stats.drop(Overload, 1)
			s.complaints.warn("a datagram was dropped: more wait for the store than udp.queue allows", "address", address)
		}
	}
}

// storeDatagrams makes one batch of all datagrams that wait.
func (s *Server) storeDatagrams(ctx context.Context, q *queue) {
	c := &receiver{sender: s.newSender(core.DoorUDP, s.opts.UDP.User, "")}
	for range q.ready {
		c.all(ctx, q.take())
	}
	c.all(ctx, q.take())
}

// receiver turns datagrams into batches.
type receiver struct {
	*sender
	second time.Time // for tcp.rate
	spent  int       // commands of that second
}

func (r *receiver) all(ctx context.Context, items []datagram) {
	r.address = ""
	if len(items) == 1 { // a batch of several senders names none
		r.address = items[0].address
	}
	for _, d := range items {
		r.datagram(ctx, d.data)
	}
	r.flush(ctx) // a fault is counted and told; there is nobody to tell it to
}

// datagram takes the commands of one datagram. Of several the last must end with LF: otherwise it may have been cut off. A StatsD line need not.
func (r *receiver) datagram(ctx context.Context, data []byte) {
	if s, ok, err := command.ParseStream(firstLine(data)); ok {
		if err != nil {
			r.group.Refuse(nil, err)
			return
		}
		r.flush(ctx)
		r.file(ctx, s, bytes.NewReader(data[min(len(data), len(firstLine(data))+1):])) // a fault is counted and told
		return
	}
	lines := command.NewSplitter(bytes.NewReader(data), command.TCP)
	complete := bytes.HasSuffix(data, []byte{'\n'})
	var waiting []byte // a command that is not known yet to be the last
	n := 0
	for {
		text, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			if n > 1 && !complete && !line.Whole(waiting) {
				r.server.stats.drop(Truncated, 1)
				return
			}
			if n > 0 {
				r.take(ctx, waiting)
			}
			return
		case err != nil:
			r.group.Refuse(nil, err)
			continue
		}
		if n > 0 {
			r.take(ctx, waiting)
		}
		waiting = append(waiting[:0], text...)
		n++
	}
}

func firstLine(data []byte) []byte {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[:i]
	}
	return data
}

// take puts one command into the group.
func (r *receiver) take(ctx context.Context, text []byte) {
	control, rest := command.Classify(text)
	if control == command.Debug { // without a reply it is the command
		text = rest
		control, _ = command.Classify(text)
	}
	switch {
	case control != command.NoControl:
		r.server.stats.drop(Control, 1)
	case len(text) > r.server.opts.Limits.Line:
		r.group.Refuse(text, command.ErrTooLong)
	case !r.inTime():
		r.server.stats.drop(Overload, 1)
	case r.group.Add(text):
		r.flush(ctx)
	}
}

// inTime keeps UDP to its rate.
func (r *receiver) inTime() bool {
	rate := r.server.opts.Limits.Rate
	if rate <= 0 {
		return true
	}
	if now := r.server.opts.Clock(); now.Sub(r.second) >= time.Second {
		r.second, r.spent = now, 0
	}
	if r.spent >= rate {
		r.server.complaints.warn("commands were dropped: UDP exceeds tcp.rate")
		return false
	}
	r.spent++
	return true
}
