package rules

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// timerPeriods are the timer metrics, aligned to the clock, in milliseconds.
var timerPeriods = map[string]core.Time{"timer_15s": 15_000, "timer_1m": 60_000, "timer_15m": 900_000, "timer_1h": 3_600_000}

// ticks does the work of every whole second up to limit that has any. Tick T comes after all entries received before T and before all received at T or
// later, so that a replay, which has only the entries, does the same.
func (e *Engine) ticks(limit core.Time) {
	limit = limit / 1000 * 1000
	if e.tick == 0 {
		e.tick = limit
	}
	for {
		next := e.nextTick()
		if next == 0 || next > limit {
			break
		}
		e.tick = next
		for len(e.due) > 0 && e.due[0].due <= next {
			w := heap.Pop(&e.due).(*window)
			w.due = 0
			e.runDue(w, next)
			e.schedule(w)
		}
		e.runTimers(next)
		e.sweep(next)
		e.publish()
	}
	e.tick = max(e.tick, limit)
}

// nextTick is the next whole second after the last tick that has work, 0 for none.
func (e *Engine) nextTick() core.Time {
	var next core.Time
	if len(e.due) > 0 {
		next = max(e.due[0].due, e.tick+1000)
	}
	for _, l := range e.timers {
		period := timerPeriods[l.Filter.Metric]
		if t := (e.tick/period + 1) * period; next == 0 || t < next {
			next = t
		}
	}
	return next
}

// runDue does what w waits for: delayed Open actions, then the exit of old samples.
func (e *Engine) runDue(w *window, tick core.Time) {
	ev := w.rule.compiled.ev
	for i := range w.actions {
		st := &w.actions[i]
		if st.pending == 0 || st.pending > tick {
			continue
		}
		st.pending = 0
		ev.begin(w, &w.last, tick)
		ev.before, ev.status, ev.severity, ev.threshold, ev.delayed = w.status, core.StatusOpen, w.severity, w.openText, true
		c := cause{index: i + 1, tick: tick}
		fx := e.effects(e.eventID(w, c), c)
		e.fire(w, fx, i, OnOpen)
		e.emit(fx)
		e.traceEvaluation(w, c, fx)
	}
	if w.rule.Window.CheckOnExit && tick >= w.hold {
		e.expire(w, tick, cause{tick: tick})
	}
}

// expire drops what is older than the window. With check_on_exit it evaluates once, however many samples left.
func (e *Engine) expire(w *window, now core.Time, c cause) {
	last, removed := w.expire(now - w.rule.Window.Span())
	if !removed {
		return
	}
	e.count(w)
	w.removeTime = now
	if !w.rule.Window.CheckOnExit || w.hold > now {
		return
	}
	w.hold = 0
	w.commandTime = last / 1000 * 1000
	ev := w.rule.compiled.ev
	ev.begin(w, &w.last, now)
	ev.exiting = true
	if c.position != 0 {
		c.index = -1 - c.index // an exit just before an add is another event than the add
	}
	e.evaluate(w, c)
}

// runTimers gives a sample of each timer metric that is due to the rules on it.
func (e *Engine) runTimers(tick core.Time) {
	for i, l := range e.timers {
		if tick%timerPeriods[l.Filter.Metric] != 0 || !e.entityPasses(l, e.service) {
			continue
		}
		cmd := command{entity: e.service, metric: l.Filter.Metric, time: tick, received: tick}
		e.offer(&planEntry{rule: l}, &cmd, cause{index: i, tick: tick})
	}
}

// sweep frees what rules no longer look at: old samples of windows that nothing is sent to, and windows that are empty and quiet.
func (e *Engine) sweep(now core.Time) {
	if now-e.swept < sweepEvery {
		return
	}
	e.swept = now
	for _, name := range slices.Sorted(maps.Keys(e.windows)) {
		for key, w := range e.windows[name] {
			if w.rule.Window.Timed() && !w.rule.Window.CheckOnExit {
				w.expire(now - w.rule.Window.Span())
				e.count(w)
			}
			if w.len() == 0 && !w.open() && now-max(w.lastEvent, w.removeTime) > idleWindow {
				e.forget(w)
				delete(e.windows[name], key)
			}
		}
	}
}

// resume starts the silence timers of all windows over at now: the server was down, and nothing could have reached it. Samples that the pause made old
// leave a full window length after now, unless something arrives first.
func (e *Engine) resume(now core.Time) {
	for _, windows := range e.windows {
		for _, w := range windows {
			if w.rule.Window.CheckOnExit && w.len() > 0 {
				w.hold = now + w.rule.Window.Span()
				e.schedule(w)
			}
		}
	}
	e.tick = max(e.tick, now/1000*1000)
}
