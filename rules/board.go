package rules

import (
	"sync"

	"github.com/tidemark-db/tidemark/core"
)

// board is what other goroutines see of the engine. An evaluation may take seconds, when it reads stored data or calls a plugin, and nobody who asks for
// alerts shall wait for it: so readers never touch the engine's own state. It changes after every entry and tick, by what the entry or tick changed.
type board struct {
	mu     sync.RWMutex           // held to copy, never while something is computed
	alerts map[uint64]*core.Alert // by id; an alert on the board is replaced, never changed
	counts Status
	cursor core.Position
}

// list returns all open alerts, which the caller must not change.
func (b *board) list() []*core.Alert {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make([]*core.Alert, 0, len(b.alerts))
	for _, a := range b.alerts {
		out = append(out, a)
	}
	return out
}

// named returns those of the alerts that are open.
func (b *board) named(ids []uint64) []*core.Alert {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*core.Alert
	for _, id := range ids {
		if a := b.alerts[id]; a != nil {
			out = append(out, a)
		}
	}
	return out
}

func (b *board) numbers() (Status, core.Position) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.counts, b.cursor
}

// touch notes that the alert of w changed.
func (e *Engine) touch(w *window) {
	if !w.touched {
		w.touched = true
		e.touched = append(e.touched, w)
	}
}

// shut ends the alert of w, without a trigger.
func (e *Engine) shut(w *window) {
	delete(e.open, w.alert)
	w.close()
	e.touch(w)
}

// publish shows what has changed since the last time, all of it at once.
func (e *Engine) publish() {
	if e.replaying {
		return
	}
	alerts := make([]*core.Alert, len(e.touched))
	for i, w := range e.touched {
		if w.open() {
			a := alertOf(w)
			alerts[i] = &a
		}
	}
	e.board.mu.Lock()
	defer e.board.mu.Unlock()
	for i, w := range e.touched {
		delete(e.board.alerts, w.shown)
		w.shown, w.touched = 0, false
		if a := alerts[i]; a != nil {
			e.board.alerts[a.ID] = a
			w.shown = a.ID
		}
	}
	clear(e.touched)
	e.touched = e.touched[:0]
	e.board.cursor = e.cursor
	e.board.counts = Status{Rules: len(e.rules), Disabled: e.disabled, Kept: e.kept, Windows: e.total.windows, Samples: e.total.samples, OpenAlerts: len(e.open),
		Evaluations: e.stats.evaluations, Expired: e.stats.expired, Forward: e.stats.forward, Actions: e.stats.actions,
		Skipped: e.stats.skipped, Waiting: len(e.queue)}
}
