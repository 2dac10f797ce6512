package storage

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// retained is a database whose messages live for ten seconds, with a clock that the test sets.
type retained struct {
	t   *testing.T
	fs  vfs.FS
	now core.Time
	db  *DB
}

func (r *retained) options() Options {
	o := small()
	o.MessageRetention, o.Now = 10*time.Second, func() core.Time { return r.now }
	return o
}

func (r *retained) insert(texts ...string) {
	r.t.Helper()
	b := &core.Batch{}
	for _, text := range texts {
		b.Messages = append(b.Messages, core.Message{Time: 5, Entity: "e", Type: "t", Source: "s", Text: text, Flags: core.Default})
	}
	if _, err := r.db.Append(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
}

// want compares the texts that are shown, in order.
func (r *retained) want(texts ...string) {
	r.t.Helper()
	var got []string
	for m, err := range r.db.Messages(r.t.Context(), core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		if err != nil {
			r.t.Fatal(err)
		}
		got = append(got, m.Text)
	}
	if diff := cmp.Diff(texts, got); diff != "" {
		r.t.Errorf("at %d: messages (-want +got)\n%s", r.now, diff)
	}
}

func TestMessagesExpireByTheirReceipt(t *testing.T) {
	r := &retained{t: t, fs: vfs.NewMem(), now: 1_000_000}
	r.db = open(t, r.fs, r.options())
	r.insert("a", "b") // of the year 1970 by their own time: that does not matter
	r.now += 4_000
	r.insert("c")
	r.now += 6_000 // 10 s after the first: not older than the retention
	r.want("a", "b", "c")
	r.insert("b") // equal in every field: it takes the place of the first and is young again
	r.want("a", "b", "c")
	r.now++
	r.want("b", "c")
	if n := r.db.Status().Messages; n != 3 {
		t.Errorf("%d messages in memory before a sweep, want 3", n)
	}
	r.db.msgs.sweep()
	r.want("b", "c")
	if n := r.db.Status().Messages; n != 2 {
		t.Errorf("%d messages in memory after a sweep, want 2", n)
	}

	if err := r.db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.now += 4_000 // the replay leaves out what has expired meanwhile
	r.db = open(t, r.fs, r.options())
	r.want("b")
	if n := r.db.Status().Messages; n != 1 {
		t.Errorf("%d messages in memory after a restart, want 1", n)
	}
	if _, known := r.db.Entity("e"); !known {
		t.Error("the entity of expired messages is gone")
	}
	r.now += 6_001
	r.want()
	r.insert("b") // expired, though still in memory: it comes as a fresh one
	r.want("b")
}

func TestMessagesStayWithoutRetention(t *testing.T) {
	r := &retained{t: t, fs: vfs.NewMem(), now: 1_000_000}
	o := r.options()
	o.MessageRetention = 0
	r.db = open(t, r.fs, o)
	r.insert("a")
	r.now = core.MaxTime
	r.db.msgs.sweep()
	r.want("a")
}

// A message that is inserted again while a sweep has it in hand must stay.
func TestSweepSparesWhatWasReplaced(t *testing.T) {
	r := &retained{t: t, fs: vfs.NewMem(), now: 1_000_000}
	r.db = open(t, r.fs, r.options())
	r.insert("a")
	held := slices.Collect(r.db.msgs.views.current.Load().active.all())[0]
	r.now += 5_000
	r.insert("a")
	r.db.msgs.views.current.Load().active.removeExactly(held)
	r.want("a")
}

func TestExpireMessagesSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := func() core.Time { return core.TimeOf(time.Now()) }
		s := newMessages(Options{MessageRetention: 16 * time.Second, Now: now}, manifest{Generation: 1})
		s.add(core.Message{Entity: "e", Text: "a"}, now())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.expire(ctx) }()
		time.Sleep(17 * time.Second) // of the bubble's clock; sweeps come every 2 s
		synctest.Wait()
		if n := s.len(); n != 1 {
			t.Errorf("%d messages after 17 s, want 1: the sweep at 16 s is not past the retention", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := s.len(); n != 0 {
			t.Errorf("%d messages after 19 s, want 0", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestExpiryWritesNothing(t *testing.T) {
	r := &retained{t: t, fs: vfs.NewMem(), now: 1_000_000}
	r.db = open(t, r.fs, r.options())
	r.insert("a")
	before := r.db.Status()
	r.now += 60_000
	r.db.msgs.sweep()
	r.want()
	if after := r.db.Status(); after.End != before.End || !cmp.Equal(after.Journal, before.Journal) {
		t.Errorf("the sweep changed the journal: %+v, before %+v", after, before)
	}
}
