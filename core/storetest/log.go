package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// LogBackend is a backend that is a log itself.
type LogBackend interface {
	Backend
	core.Log
}

// RunLog tests every promise of core.Log. open returns an empty log.
func RunLog(t *testing.T, open func(t *testing.T) LogBackend) {
	for _, one := range logTests {
		t.Run(one.name, func(t *testing.T) {
			l := open(t)
			one.run(&suite{T: t, Backend: l}, l)
		})
	}
}

// TailLines writes what Tail yields after p as a line a batch: position, receive time, and its records in short.
func TailLines(ctx context.Context, l core.Log, p core.Position) []string {
	var lines []string
	for e, err := range l.Tail(ctx, p) {
		lines = append(lines, lineOf(entryLine(e), err))
	}
	return lines
}

func entryLine(e core.Entry) string {
	b := e.Batch
	if b == nil {
		return ""
	}
	line := fmt.Sprintf("%d at %d by %s:", e.Position, b.Received, b.Origin.User)
	for i, ref := range b.Samples.Series {
		k := b.Keys[ref]
		line += fmt.Sprintf(" %s/%s%s %d=%v/%d", k.Metric, k.Entity, tagLine(k.Tags), b.Samples.Times[i], b.Samples.Values[i], b.Samples.Flags[i])
	}
	for _, at := range b.Samples.Texts {
		line += fmt.Sprintf(" text %d %q", at.Index, at.Text)
	}
	for _, m := range b.Messages {
		line += " " + messageLine(m)
	}
	for _, p := range b.Properties {
		line += fmt.Sprintf(" property %s %s %s %s", p.Entity, p.Type, tagLine(p.Key), tagLine(p.Tags))
	}
	for _, d := range b.Documents {
		line += fmt.Sprintf(" document %s %s %d %s", d.Kind, d.Key, d.Op, d.Body)
	}
	for _, c := range b.Alerts {
		line += " alert " + c.Event
	}
	return line + fmt.Sprintf(" deletes %v %v", b.Series, b.Removed)
}

// volatile is a batch of which nothing is to be stored.
func volatile(at core.Time) *core.Batch {
	b := numbers(&core.Batch{}, keyOf("live", "e"), float64(at), 1)
	b.Samples.Flags[0] &^= core.Stored
	return b
}

var logTests = []struct {
	name string
	run  func(s *suite, l core.Log)
}{
	{"PositionsAndEnd", func(s *suite, l core.Log) {
		if end := l.End(); end != 0 {
			s.Errorf("end of an empty log is %d", end)
		}
		last := core.Receipt{}
		for i := range 5 {
			b := numbers(&core.Batch{}, keyOf("m", "e"), float64(i), 1)
			if i%2 == 1 {
				b = volatile(core.Time(i))
			}
			r := s.append(b)
			if r.Position <= last.Position || r.Received < last.Received || l.End() != r.Position {
				s.Errorf("receipt %+v after %+v, end %d", r, last, l.End())
			}
			if (r.Durability == core.Volatile) != (i%2 == 1) {
				s.Errorf("batch %d is %v", i, r.Durability)
			}
			last = r
		}
	}},
	{"TailYieldsEveryBatchInOrder", func(s *suite, l core.Log) {
		s.want(TailLines(s.Context(), l, 0), nil)
		var want []string
		var at []core.Position
		for i := range 200 {
			b := numbers(&core.Batch{Origin: core.SystemOrigin(2)}, keyOf("m", "e", "i", fmt.Sprint(i%7)), float64(i), float64(i))
			if i%5 == 0 {
				b = volatile(core.Time(i))
			}
			b.Messages = append(b.Messages, event(core.Time(i), "e", "hello"))
			if i%5 == 0 {
				b.Messages[0].Flags = core.ForRules
			}
			r := s.append(b)
			b.Received = r.Received
			want = append(want, entryLine(core.Entry{Position: r.Position, Batch: b}))
			at = append(at, r.Position)
		}
		s.want(TailLines(s.Context(), l, 0), want)
		s.want(TailLines(s.Context(), l, at[150]), want[151:])
		s.want(TailLines(s.Context(), l, at[199]), nil)
		s.want(TailLines(s.Context(), l, at[199]+100), nil)
		for range l.Tail(s.Context(), 0) {
			break // leaving must not hurt
		}
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		s.want(TailLines(ctx, l, 0), []string{"error canceled"})
	}},
	{"TailSeesWhatIsAppendedMeanwhile", func(s *suite, l core.Log) {
		s.append(volatile(1))
		n := 0
		for _, err := range l.Tail(s.Context(), 0) {
			if err != nil {
				s.Fatal(err)
			}
			if n++; n < 10 {
				s.append(volatile(core.Time(n)))
			}
		}
		if n != 10 {
			s.Errorf("%d batches, want 10: Tail ends at the newest", n)
		}
	}},
	{"Wait", func(s *suite, l core.Log) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		done := make(chan error)
		for range 3 {
			p := l.End()
			go func() { done <- l.Wait(ctx, p) }()
			s.append(volatile(1))
			if err := <-done; err != nil {
				s.Errorf("wait: %v", err)
			}
			if err := l.Wait(ctx, p); err != nil {
				s.Errorf("wait for what is there: %v", err)
			}
		}
		go func() { done <- l.Wait(ctx, l.End()) }()
		cancel()
		if err := <-done; core.CodeOf(err) != core.Canceled {
			s.Errorf("wait of an ended context: %v", err)
		}
	}},
	{"ReplayIsNotInTheLog", func(s *suite, l core.Log) {
		batch := func() *core.Batch { return &core.Batch{Alerts: []core.AlertChange{opened("ev", nil)}} }
		first := s.append(batch())
		again := s.append(batch())
		if again.Position < first.Position || again.Position > l.End() {
			s.Errorf("replay acknowledged at %d, the first at %d, end %d", again.Position, first.Position, l.End())
		}
		if n := len(TailLines(s.Context(), l, 0)); n != 1 {
			s.Errorf("%d batches in the log, want 1", n)
		}
	}},
	{"RefusedIsNotInTheLog", func(s *suite, l core.Log) {
		s.refused(put(core.DocMetric, "m", `{`), core.Invalid)
		if l.End() != 0 || TailLines(s.Context(), l, 0) != nil {
			s.Error("a refused batch is in the log")
		}
	}},
}
