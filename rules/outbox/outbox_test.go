package outbox_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules/outbox"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is a transport that answers from a list of statuses and keeps what it got.
type target struct {
	mu       sync.Mutex
	answers  []response // the last one repeats
	requests []*http.Request
	bodies   []string
	times    []time.Time
}

type response struct {
	status int
	header http.Header
	err    error
}

func (t *target) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	a := t.answers[min(len(t.requests), len(t.answers)-1)]
	t.requests, t.bodies, t.times = append(t.requests, r), append(t.bodies, string(body)), append(t.times, time.Now())
	if a.err != nil {
		return nil, a.err
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Header: a.header, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func clock() core.Time { return core.TimeOf(time.Now()) }

// bench is an outbox over a sandbox, with the notification n stored.
type bench struct {
	box *rulestest.Sandbox
	*target
	options outbox.Options
}

func newBench(answers ...response) *bench {
	b := &bench{box: rulestest.NewSandbox(clock()), target: &target{answers: answers}}
	b.options = outbox.Options{Reader: b.box, Ingest: b.box, Clock: clock, Transport: b.target, Backoff: []time.Duration{5 * time.Second, 5 * time.Minute},
		Secrets: func(name string) (string, bool) {
			v, ok := map[string]string{"TOKEN": "t0k", "KEY": "whsec_" + base64.StdEncoding.EncodeToString([]byte("signing key"))}[name]
			return v, ok
		}}
	return b
}

func (b *bench) store(t *testing.T, n outbox.Notification) {
	t.Helper()
	if _, err := b.box.Append(t.Context(), &core.Batch{Documents: []core.DocChange{n.Document()}}); err != nil {
		t.Fatal(err)
	}
}

// run serves the outbox until nothing moves any more after wait.
func (b *bench) run(t *testing.T, wait time.Duration) *outbox.Outbox {
	t.Helper()
	o := outbox.New(b.options)
	stop := b.start(t, o)
	time.Sleep(wait) // inside a synctest bubble: the clock jumps
	stop()
	return o
}

// start serves o. The function returned stops it when nothing moves any more.
func (b *bench) start(t *testing.T, o *outbox.Outbox) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	return func() {
		t.Helper()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) documents(t *testing.T, kind core.DocKind) map[string]outbox.Notification {
	t.Helper()
	out := map[string]outbox.Notification{}
	for d, err := range b.box.Documents(t.Context(), core.DocumentQuery{Kind: kind}) {
		if err != nil {
			t.Fatal(err)
		}
		n, err := outbox.Decode(d.Body)
		if err != nil {
			t.Fatal(err)
		}
		out[d.Key] = n
	}
	return out
}

func post(id string) outbox.Notification {
	return outbox.Notification{ID: id, Rule: "r", Action: "a", Created: clock(), Request: outbox.Request{Method: "POST", URL: "https://h.example/x?token=1",
		Body: `{"a":1}`, ContentType: "application/json", Retries: -1}}
}

func TestDeliversWhatAnEarlierProcessLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 204})
		n := post("msg-1")
		n.Request.Headers = []outbox.Header{{Name: "Authorization", Value: "Bearer " + outbox.Mark("TOKEN")}}
		n.Request.Secret = outbox.Mark("KEY")
		b.store(t, n)
		o := b.run(t, time.Second)
		if len(b.requests) != 1 || b.bodies[0] != `{"a":1}` {
			t.Fatalf("requests %d, bodies %q", len(b.requests), b.bodies)
		}
		h := b.requests[0].Header
		mac := hmac.New(sha256.New, []byte("signing key"))
		io.WriteString(mac, "msg-1."+h.Get("webhook-timestamp")+`.{"a":1}`)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if h.Get("webhook-id") != "msg-1" || h.Get("webhook-signature") != want || h.Get("authorization") != "Bearer t0k" {
			t.Errorf("headers %v, want signature %s", h, want)
		}
		if h.Get("content-type") != "application/json; charset=UTF-8" {
			t.Errorf("content type %q", h.Get("content-type"))
		}
		if len(b.documents(t, core.DocOutbox)) != 0 || o.Status().Delivered != 1 {
			t.Errorf("left in the queue: %v, status %+v", b.documents(t, core.DocOutbox), o.Status())
		}
	})
}

func TestRetriesWithBackoffAndOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 500}, response{err: errors.New("connection refused")}, response{status: 200})
		b.store(t, post("msg-1"))
		b.run(t, time.Hour)
		if len(b.requests) != 3 {
			t.Fatalf("%d attempts, want 3", len(b.requests))
		}
		for i, want := range []time.Duration{5 * time.Second, 5 * time.Minute} {
			got := b.times[i+1].Sub(b.times[i])
			if got < want*8/10 || got > want*12/10+time.Millisecond {
				t.Errorf("wait %d is %s, want %s give or take a fifth", i, got, want)
			}
		}
		for _, r := range b.requests {
			if r.Header.Get("webhook-id") != "msg-1" {
				t.Errorf("id %q changed", r.Header.Get("webhook-id"))
			}
		}
	})
}

func TestFailedAttemptIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 503, header: http.Header{"Retry-After": {"120"}}})
		b.store(t, post("msg-1"))
		b.run(t, time.Second)
		n := b.documents(t, core.DocOutbox)["msg-1"]
		if n.Attempts != 1 || n.Next < clock()+118_000 || !strings.Contains(n.Error, "Service Unavailable") {
			t.Errorf("stored %+v: want one attempt, and the next after the 120 s that the target asked for", n)
		}
		// A second process waits for the rest of it.
		before := len(b.requests)
		b.run(t, time.Minute)
		if len(b.requests) != before {
			t.Error("sent before Retry-After")
		}
		b.run(t, 2*time.Minute)
		if len(b.requests) == before {
			t.Error("not sent after Retry-After")
		}
	})
}

func TestGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer  response
		retries int
		edit    func(*outbox.Request)
		want    string
		tries   int
	}{
		"attempts exhausted": {answer: response{status: 500}, retries: -1, want: "attempt 3: Internal Server Error", tries: 3},
		"no retries":         {answer: response{status: 500}, retries: 0, want: "attempt 1", tries: 1},
		"redirect of a POST": {answer: response{status: 302, header: http.Header{"Location": {"https://other.example/"}}}, retries: 0, want: "Found", tries: 1},
		"unknown secret": {answer: response{status: 200}, retries: -1, edit: func(r *outbox.Request) { r.Bearer = outbox.Mark("NOPE") },
			want: `secret "NOPE" is not set`},
		"bad scheme": {answer: response{status: 200}, retries: -1, edit: func(r *outbox.Request) { r.URL = "file:///etc/passwd" }, want: `scheme "file"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(c.answer)
				n := post("msg-1")
				n.Request.Retries = c.retries
				if c.edit != nil {
					c.edit(&n.Request)
				}
				b.store(t, n)
				o := b.run(t, time.Hour)
				dead := b.documents(t, core.DocDeadLetter)["msg-1"]
				if !strings.Contains(dead.Error, c.want) || len(b.documents(t, core.DocOutbox)) != 0 || len(b.requests) != c.tries || o.Status().Dead != 1 {
					t.Errorf("reason %q after %d requests, queue %v", dead.Error, len(b.requests), b.documents(t, core.DocOutbox))
				}
			})
		})
	}
}

func TestGoneDisablesTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 410}, response{status: 200})
		b.store(t, post("msg-1"))
		b.run(t, time.Second)
		b.store(t, post("msg-2"))
		o := b.run(t, time.Second) // another process: the state is stored
		if len(b.requests) != 1 || len(b.documents(t, core.DocDeadLetter)) != 3 {
			t.Fatalf("%d requests, dead letters %v: want one request, two letters and the mark", len(b.requests), b.documents(t, core.DocDeadLetter))
		}
		if err := o.Enable(t.Context(), "https://h.example/x"); err != nil {
			t.Fatal(err)
		}
		b.store(t, post("msg-3"))
		b.run(t, time.Second)
		if len(b.requests) != 2 {
			t.Error("still disabled")
		}
	})
}

func TestNotDeletedWhileTheLogRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 200})
		b.store(t, post("msg-1"))
		b.box.Fail(core.Errorf(core.NoSpace, "disk full"))
		time.AfterFunc(3*time.Minute, func() { b.box.Fail(nil) })
		b.run(t, 10*time.Minute)
		if len(b.requests) != 1 || len(b.documents(t, core.DocOutbox)) != 0 {
			t.Errorf("%d requests, queue %v: want it sent once and deleted when there is space", len(b.requests), b.documents(t, core.DocOutbox))
		}
	})
}

// slow holds every request until released.
type slow struct {
	mu      sync.Mutex
	flying  map[string]int
	most    map[string]int
	release chan struct{}
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.flying[r.URL.Host]++
	s.most[r.URL.Host] = max(s.most[r.URL.Host], s.flying[r.URL.Host])
	s.mu.Unlock()
	select {
	case <-s.release:
	case <-r.Context().Done():
	}
	s.mu.Lock()
	s.flying[r.URL.Host]--
	s.mu.Unlock()
	return &http.Response{StatusCode: 200, Status: "OK", Body: http.NoBody, Request: r}, r.Context().Err()
}

func TestSlowTargetDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		s := &slow{flying: map[string]int{}, most: map[string]int{}, release: make(chan struct{})}
		b.options.Transport = s
		for _, id := range []string{"1", "2", "3", "4"} {
			b.store(t, post("slow-"+id))
		}
		other := post("other")
		other.Request.URL = "https://other.example/"
		b.store(t, other)
		b.run(t, time.Second)
		if s.most["h.example"] != 2 || s.most["other.example"] != 1 {
			t.Errorf("most at once %v, want 2 to the slow host and 1 to the other", s.most)
		}
		if n := b.documents(t, core.DocOutbox); len(n) != 5 || n["slow-1"].Attempts != 0 {
			t.Errorf("queue after shutdown %v: attempts that were cut off must not count", n)
		}
	})
}
