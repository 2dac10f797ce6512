package outbox_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules/outbox"
)

// inLane is the nth notification of a lane, made with the others in one millisecond. Its id sorts against the order, as hashes may.
func inLane(lane string, nth int) outbox.Notification {
	n := post(fmt.Sprintf("%s-%02d", lane, 99-nth))
	n.Lane, n.Order = lane, outbox.Order{Position: 7, Event: nth}
	n.Request.Body = fmt.Sprintf("%s %d", lane, nth)
	return n
}

// sent are the bodies that arrived from one lane.
func (b *bench) sent(lane string) []string {
	var out []string
	for _, body := range b.bodies {
		if strings.HasPrefix(body, lane+" ") {
			out = append(out, body)
		}
	}
	return out
}

func TestLaterWaitsForEarlierOfItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 503}, response{status: 200})
		o := outbox.New(b.options)
		stop := b.start(t, o)
		for i := 1; i <= 3; i++ {
			b.store(t, inLane("a", i))
			o.Notify([]outbox.Notification{inLane("a", i)})
			time.Sleep(time.Second)
		}
		b.store(t, inLane("b", 1))
		o.Notify([]outbox.Notification{inLane("b", 1)})
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := b.bodies, []string{"a 1", "b 1"}; !slices.Equal(got, want) || o.Status().Pending != 3 {
			t.Errorf("sent %q, want %q while the first of lane a waits for its second attempt; status %+v", got, want, o.Status())
		}
		time.Sleep(time.Minute)
		stop()
		if got, want := b.sent("a"), []string{"a 1", "a 1", "a 2", "a 3"}; !slices.Equal(got, want) {
			t.Errorf("lane a got %q, want %q", got, want)
		}
	})
}

// A restart at every point of the life of a lane: while the first waits for another attempt, and between deliveries.
func TestLaneKeepsItsOrderOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 503}, response{status: 503}, response{status: 200})
		for _, lane := range []string{"a", "b"} {
			for i := 3; i >= 1; i-- {
				b.store(t, inLane(lane, i))
			}
		}
		for range 2000 {
			if b.run(t, 200*time.Millisecond); len(b.documents(t, core.DocOutbox)) == 0 {
				break
			}
		}
		for _, lane := range []string{"a", "b"} {
			if got, want := slices.Compact(b.sent(lane)), []string{lane + " 1", lane + " 2", lane + " 3"}; !slices.Equal(got, want) {
				t.Errorf("lane %s got %q, want %q", lane, got, want)
			}
		}
	})
}

func TestNextOfALaneGoesWhenOneIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 500}, response{status: 200})
		first := inLane("a", 1)
		first.Request.Retries = 0
		b.store(t, inLane("a", 2))
		b.store(t, first)
		b.run(t, time.Second)
		if got, want := b.sent("a"), []string{"a 1", "a 2"}; !slices.Equal(got, want) || len(b.documents(t, core.DocOutbox)) != 0 {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

// What the engine hands over before the outbox has read what an earlier process left still goes after that.
func TestEarlierProcessGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 200})
		b.store(t, inLane("a", 1))
		b.store(t, inLane("a", 2))
		o := outbox.New(b.options)
		o.Notify([]outbox.Notification{inLane("a", 2)})
		b.start(t, o)()
		if got, want := b.sent("a"), []string{"a 1", "a 2"}; !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

// Each delivery must not look at all that wait: with a scan over them this takes minutes.
func TestManyLanesTakeLinearTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes = 20_000
		b := newBench(response{status: 200})
		o := outbox.New(b.options)
		var list []outbox.Notification
		for i := range lanes {
			for nth := 1; nth <= 3; nth++ {
				n := inLane(fmt.Sprint("lane", i), nth)
				n.Request.URL = fmt.Sprintf("https://h%d.example/", i%3)
				list = append(list, n)
			}
		}
		o.Notify(list)
		b.start(t, o)()
		if got := o.Status(); got.Delivered != 3*lanes || got.Pending != 0 {
			t.Errorf("status %+v, want %d delivered", got, 3*lanes)
		}
	})
}

func TestFailureIsLoggedAndStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{err: fmt.Errorf("dial tcp 127.0.0.1:9: connect: connection refused")})
		var log strings.Builder
		b.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b.options.Service = "own"
		n := post("msg-1")
		n.Request.URL = "https://u:pass@h.example/bot123:t0k/send?token=t0k"
		n.Request.Bearer = outbox.Mark("TOKEN")
		b.store(t, n)
		b.run(t, time.Second)
		check := func(when string, want int) {
			t.Helper()
			var texts []string
			for m := range b.box.Messages(t.Context(), core.MessageQuery{Type: "notification", Range: core.AllTime}) {
				if m.Severity != core.Critical || m.Entity != "own" || m.Tags.Value("rule") != "r" || m.Tags.Value("action") != "a" {
					t.Errorf("%s: message %+v", when, m)
				}
				texts = append(texts, m.Text)
			}
			lines := strings.Count(log.String(), "level=ERROR")
			if all := log.String() + strings.Join(texts, "\n"); len(texts) != want || lines != want || strings.Contains(all, "t0k") || strings.Contains(all, "pass") {
				t.Errorf("%s: want %d lines and messages without secrets, got messages %q, log\n%s", when, want, texts, log.String())
			}
			if !strings.Contains(texts[0], "connection refused") || !strings.Contains(texts[0], "https://h.example") {
				t.Errorf("%s: text %q does not say what failed where", when, texts[0])
			}
		}
		check("after the first attempt", 1)
		b.run(t, time.Minute)
		if len(b.requests) != 2 {
			t.Fatalf("%d attempts, want 2", len(b.requests))
		}
		check("after the second", 1)
		b.run(t, time.Hour)
		check("when it is given up", 2)
	})
}

func TestDeliveryIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(response{status: 204})
		b.store(t, post("msg-1"))
		b.run(t, time.Second)
		var got []string
		for m := range b.box.Messages(t.Context(), core.MessageQuery{Type: "notification", Range: core.AllTime}) {
			got = append(got, m.Severity.String()+" "+m.Source+" "+m.Text)
		}
		if want := []string{"NORMAL webhook POST https://h.example: 204"}; !slices.Equal(got, want) {
			t.Errorf("messages %q, want %q", got, want)
		}
	})
}
