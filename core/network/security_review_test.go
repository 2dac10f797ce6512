package network

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
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
