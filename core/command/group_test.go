package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

func TestMarkersAreBounded(t *testing.T) {
	var m Markers
	for i := range maxMarkers + 5 {
		m.set("", fmt.Sprint(i), i)
	}
	if _, ok := m.Get("", "4"); ok || len(m.counts) != maxMarkers {
		t.Errorf("%d markers are kept, the oldest among them: %v", len(m.counts), ok)
	}
	if n, _ := m.Get("", "5"); n != 5 {
		t.Errorf("marker 5 has count %d", n)
	}
}

// A refused group is offered again in halves: the order stays, the good ones are stored, and each bad one is told with its reason.
func TestGroupBisects(t *testing.T) {
	var p Parser
	var stored, failed []string
	batches := 0
	g := Group{
		New:   func(context.Context) (*core.Batch, error) { return &core.Batch{}, nil },
		Parse: p.Line,
		Store: func(_ context.Context, b *core.Batch) (core.Receipt, error) {
			batches++
			for _, k := range b.Keys {
				if k.Metric == "bad" {
					return core.Receipt{}, core.Errorf(core.Invalid, "bad metric")
				}
			}
			for _, ref := range b.Samples.Series {
				stored = append(stored, b.Keys[ref].Entity)
			}
			return core.Receipt{Durability: core.Journaled}, nil
		},
		Failed: func(line []byte, err error) { failed = append(failed, string(line)+": "+ReasonOf(err).String()) },
	}
	for _, line := range []string{"series e:1 m:a=1", "series e:2 m:bad=1", "drop", "series e:3 m:a=1", "series e:4 m:a=1 s:x"} {
		g.Add([]byte(line))
	}
	if err := g.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(stored, failed), "[1 3] [drop: unknown series e:4 m:a=1 s:x: time series e:2 m:bad=1: syntax]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if g.Stored != 2 || g.Refused != 3 || g.Durability != core.Journaled || g.Len() != 0 {
		t.Errorf("stored %d, refused %d, %s, %d wait", g.Stored, g.Refused, g.Durability, g.Len())
	}
	if batches != 5 { // all, {1,2}, {1}, {2}, {3}
		t.Errorf("%d batches were offered", batches)
	}
}

func TestGroupStopsAtAFaultOfTheServer(t *testing.T) {
	var p Parser
	g := Group{New: func(context.Context) (*core.Batch, error) { return &core.Batch{}, nil }, Parse: p.Line,
		Store: func(context.Context, *core.Batch) (core.Receipt, error) {
			return core.Receipt{}, core.Errorf(core.NoSpace, "the disk is full")
		}}
	g.Add([]byte("series e:1 m:a=1"))
	if err := g.Flush(t.Context()); core.CodeOf(err) != core.NoSpace || g.Stored+g.Refused != 0 {
		t.Errorf("%v, stored %d, refused %d", err, g.Stored, g.Refused)
	}
}

func TestReasons(t *testing.T) {
	for line, want := range map[string]Reason{
		"series e:a": BadSyntax, `series e:"a b" m:a=1`: BadName, `series e:a "m b":1`: BadSyntax, `series e:a t:"a b"=1 m:a=1`: BadName,
		"series e:a m:a=x": BadValue, "series e:a m:a=1 ms:-1": BadTime, "series e:a m:a=1 d:today": BadTime, "message e:a t:type=\"a b\" m:a": BadName,
		"drop": Unknown, "series e:a m:a=1 ms:4294969200000": BadTime, "property e:a t:b v:c=\"\"": BadSyntax,
	} {
		var p Parser
		err := p.Line(&core.Batch{}, []byte(line))
		if got := ReasonOf(err); err == nil || got != want {
			t.Errorf("%s: %v, %s, want %s", line, err, got, want)
		}
	}
	if ReasonOf(ErrTooLong) != TooLong {
		t.Error("ErrTooLong")
	}
}

// The buffer of a connection follows its stream: thousands of quiet ones must not cost what a busy one is worth.
func TestSplitterBufferFollowsTheStream(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	feed, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 40 {
			io.WriteString(w, strings.Repeat(line, 1000))
		}
		for range 40 {
			io.WriteString(w, line)
		}
		w.Close()
	}()
	s := NewSplitter(feed, TCP)
	// A write of 100,000 bytes never fills a buffer of 131,072, half of what it may grow to.
	most, n := 0, 0
	for {
		if _, err := s.Next(); err != nil {
			break
		}
		n++
		most = max(most, cap(s.buf))
	}
	<-done
	if n != 40_040 || most != mostRead/2 || cap(s.buf) >= 4*leastRead {
		t.Errorf("%d lines, buffer %d at most and %d at last", n, most, cap(s.buf))
	}
}

func TestRest(t *testing.T) {
	r := strings.NewReader("csv p:x\na,b\n1,2")
	s := NewSplitter(r, TCP)
	if line, err := s.Next(); string(line) != "csv p:x" || err != nil {
		t.Fatal(string(line), err)
	}
	if !s.Unfinished() {
		t.Error("nothing seems to wait")
	}
	if rest, err := io.ReadAll(s.Rest(r)); string(rest) != "a,b\n1,2" || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

// A change of settings begins a batch where it comes behind data that it would apply to. What agents send, the same settings before each sample, stays together.
func TestGroupKeepsOrder(t *testing.T) {
	for _, test := range []struct{ lines, want string }{
		{"metric m:a p:integer\nseries e:1 m:a=1\nmetric m:a p:integer\nseries e:1 m:a=2", "4"},
		{"metric m:a p:integer\nseries e:1 m:a=1\nmetric m:b p:integer\nseries e:1 m:b=2", "4"},
		{"series e:1 m:a=1\nmetric m:a b:false\nseries e:1 m:a=2", "1 2"},
		{"series e:1 m:a=1\nseries e:2 m:b=1\nmetric m:a b:false\nmetric m:b b:false\nseries e:1 m:a=2\nmetric m:a b:true\nmetric m:b b:false", "2 3 2"},
		{"message e:1 m:x\nentity e:2 b:false\nentity e:1 b:false\nentity e:3 b:false", "2 2"},
		{"metric m:a b:true\nmetric m:a b:false\nmetric m:a b:true\nseries e:1 m:a=1", "4"},
		{"entity e:1 t:a=1\nproperty e:1 t:$entity_tags v:a=2\nentity e:1 t:a=1\nproperty e:1 t:p v:a=2\nentity e:1 t:a=1", "2 3"},
	} {
		var p Parser
		var batches []string
		g := Group{New: func(context.Context) (*core.Batch, error) { return &core.Batch{}, nil }, Parse: p.Line,
			Store: func(_ context.Context, b *core.Batch) (core.Receipt, error) {
				batches = append(batches, fmt.Sprint(b.Len()))
				return core.Receipt{}, nil
			}}
		for line := range strings.SplitSeq(test.lines, "\n") {
			g.Add([]byte(line))
		}
		if err := g.Flush(t.Context()); err != nil || strings.Join(batches, " ") != test.want || g.Stored != strings.Count(test.lines, "\n")+1 {
			t.Errorf("%q: batches of %v, %d stored, want %s", test.lines, batches, g.Stored, test.want)
		}
	}
}
