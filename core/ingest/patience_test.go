package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := &patience{Context: t.Context(), span: time.Second}
		derived, cancel := context.WithTimeout(p, time.Minute) // as an engine does that has a limit of its own
		defer cancel()
		<-derived.Done()
		if took := time.Since(begin); took != time.Second || !errors.Is(p.Err(), context.DeadlineExceeded) {
			t.Errorf("ended after %s with %v, want 1s and a deadline", took, p.Err())
		}
		p.end()
	})
}

func TestPatienceEnds(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	unasked := &patience{Context: parent, span: time.Hour}
	unasked.end()
	if err := unasked.Err(); err != nil {
		t.Errorf("without a question: %v, want the state of the insert", err)
	}
	asked, ended := &patience{Context: parent, span: time.Hour}, &patience{Context: parent, span: time.Hour}
	if asked.Err() != nil || ended.Err() != nil {
		t.Fatal("ended too early")
	}
	ended.end()
	if !errors.Is(ended.Err(), context.Canceled) {
		t.Error("the timer goes on after the wait")
	}
	cancel() // the client went away
	<-asked.Done()
	if !errors.Is(asked.Err(), context.Canceled) || !errors.Is(unasked.Err(), context.Canceled) {
		t.Error("does not follow the insert")
	}
	asked.end()
}
