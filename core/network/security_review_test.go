package network

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// TestRequestsOfBrowsers: a web page can make a browser post text to the port of text commands on its own machine, where nobody is asked who they are. The
// lines of the body must not be taken.
func TestRequestsOfBrowsers(t *testing.T) {
	for _, begin := range []string{"POST / HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nContent-Type: text/plain\r\n\r\n", "GET /series HTTP/1.0\r\n\r\n"} {
		w := start(t, nil)
		c := w.dial("tcp")
		c.send(begin + "series e:a m:b=1 s:1\nmetric m:b b:false\n")
		c.closed()
		if lines, _, _ := w.sink.taken(); len(lines) > 0 {
			t.Errorf("%.20q: stored %q", begin, lines)
		}
	}
	// It is the first line that counts: later ones may be about requests.
	w := start(t, nil)
	w.dial("tcp").send("series e:a m:b=1 s:1\nmessage e:a s:1 m:\"GET / HTTP/1.1\"\n")
	w.until("stored", func(s Stats) bool { return s.Commands == 2 })
}

// TestEmptyDatagrams: what waits for the store is bounded also when it has no bytes.
func TestEmptyDatagrams(t *testing.T) {
	q := &queue{ready: make(chan struct{}, 1)}
	n := 0
	for n < 100_000 && q.put(datagram{}, 1<<20) {
		n++
	}
	if n > 1<<20/datagramBytes {
		t.Errorf("%d empty datagrams wait in a queue of 1 MiB", n)
	}
}

// TestPicklesDoNotGrow: a message that names a long path once and refers to it often must not be printed as often.
func TestPicklesDoNotGrow(t *testing.T) {
	for _, c := range []struct {
		metric  string
		printed bool
	}{{"load", true}, {strings.Repeat("x", 28_000), false}} {
		var b core.Batch
		for i := range 3000 {
			b.Add(b.Ref(core.SeriesKey{Metric: c.metric, Entity: "e"}), core.Time(i), 1)
		}
		text, err := printed(&b, 1<<20)
		if (err == nil) != c.printed || len(text) > 1<<20 {
			t.Errorf("a name of %d bytes: %d bytes of text, %v", len(c.metric), len(text), err)
		}
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (f *from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.address), 4711))
}

func (f *from) Close() error { return nil }

// TestConnectionsOfANetwork: who has one IPv6 address has 2^64 of them, and must not be counted as so many clients.
func TestConnectionsOfANetwork(t *testing.T) {
	s := &Server{opts: Options{Clock: time.Now, Limits: Limits{Connections: 10, PerAddress: 2}}}
	s.conns.open, s.conns.byClient = map[net.Conn]string{}, map[string]int{}
	s.complaints.clock, s.complaints.log = time.Now, slogTo(io.Discard)
	first := &from{address: "2001:db8:1:2::1"}
	for _, c := range []struct {
		conn *from
		want bool
	}{
		{first, true}, {&from{address: "2001:db8:1:2:ffff::2"}, true}, {&from{address: "2001:db8:1:2::3"}, false}, // one network
		{&from{address: "2001:db8:1:3::1"}, true}, // another one
		{&from{address: "192.0.2.1"}, true}, {&from{address: "192.0.2.2"}, true}, {&from{address: "192.0.2.3"}, true},
	} {
		if got := s.admit(c.conn); got != c.want {
			t.Errorf("%s: admitted %v, want %v", c.conn.address, got, c.want)
		}
	}
	s.release(first)
	if !s.admit(&from{address: "2001:db8:1:2::4"}) {
		t.Error("a place that was given back is not free")
	}
}

// TestMarkersOfADoor: the markers of a door with a user are those of the user, also where HTTP asks for them.
func TestMarkersOfADoor(t *testing.T) {
	markers := new(command.Markers)
	w := start(t, func(o *Options) {
		o.Markers, o.TCP.User = markers, "collector"
	})
	c := w.dial("tcp")
	c.send("marker one\nping\n")
	if got := c.reply(); got != "ok" {
		t.Fatalf("ping: %q", got)
	}
	c.send("ping\n") // what came before is published
	c.reply()
	for user, want := range map[string]bool{"collector": true, "tom": false, "": false} {
		if _, known := markers.Get(user, "one"); known != want {
			t.Errorf("%q knows the marker: %v", user, known)
		}
	}
}
