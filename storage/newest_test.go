package storage

import (
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// unasked fails the test when a time that is certain is looked for.
func unasked(t *testing.T) func() (core.Time, bool) {
	return func() (core.Time, bool) {
		t.Helper()
		t.Error("looked at the series although nothing was in doubt")
		return 0, false
	}
}

func wantTime(t *testing.T, n *newest, look func() (core.Time, bool), want core.Time, some bool) {
	t.Helper()
	if got, ok := n.get(look); got != want || ok != some {
		t.Errorf("newest %d, %v, want %d, %v", got, ok, want, some)
	}
}

func TestNewest(t *testing.T) {
	var n newest
	wantTime(t, &n, unasked(t), 0, false)
	n.raise(0)
	wantTime(t, &n, unasked(t), 0, true)
	n.raise(core.MaxTime)
	n.raise(7)
	wantTime(t, &n, unasked(t), core.MaxTime, true)
	n.doubt(7) // not the newest
	wantTime(t, &n, unasked(t), core.MaxTime, true)
	n.doubt(core.MaxTime)
	wantTime(t, &n, func() (core.Time, bool) { return 7, true }, 7, true)
	wantTime(t, &n, unasked(t), 7, true)
	n.raise(9)
	wantTime(t, &n, unasked(t), 9, true)
	n.doubt(9)
	wantTime(t, &n, func() (core.Time, bool) { return 0, false }, 0, false)
	wantTime(t, &n, unasked(t), 0, false)
}

// What happens while a reader looks is not lost: its answer holds for that reader, and the next one looks again.
func TestNewestChangesWhileLooking(t *testing.T) {
	for name, change := range map[string]func(n *newest){
		"a write":         func(n *newest) { n.raise(5) },
		"a later write":   func(n *newest) { n.raise(50) },
		"another removal": func(n *newest) { n.doubt(3) },
	} {
		var n newest
		n.raise(10)
		n.doubt(10)
		wantTime(t, &n, func() (core.Time, bool) {
			change(&n)
			return 3, true
		}, 3, true)
		asked := false
		n.get(func() (core.Time, bool) {
			asked = true
			return 5, true
		})
		if !asked {
			t.Errorf("%s while a reader looked is forgotten", name)
		}
	}
}

func TestVersionsOption(t *testing.T) {
	for versions, ok := range map[int]bool{0: true, 1: false, 2: true, -1: false, 5000: true} {
		if err := (Options{Versions: versions}).Validate(); (err == nil) != ok {
			t.Errorf("%d versions: %v", versions, err)
		}
	}
}
