package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// window is the memory of one rule for one grouping key.
type window struct {
	rule   *Rule
	key    string
	metric string
	entity string    // "" when the rule does not group by entity
	tags   core.Tags // grouping tags

	// Samples by ascending command time, equal times in order of arrival, from head on: what lies before head was dropped and is reclaimed when it
	// outgrows the rest.
	times  []core.Time
	values []float64
	head   int

	status    core.Status
	repeat    int // true evaluations after the opening one
	severity  core.Severity
	alert     uint64 // id, while open
	acked     bool
	nodata    bool // opened because the window ran empty
	openValue float64
	lastEvent core.Time // receive time of the last command
	openText  string    // threshold that opened it, for delayed actions

	openTime, repeatTime, cancelTime, changeTime            core.Time
	addTime, previousAdd, removeTime, commandTime, received core.Time // received: of the first command

	last        command
	current     core.Tags // property rules: all tags known, and what they were before the last command
	previous    core.Tags
	before      core.Tags      // property rules: what the command before the last one held
	recorded    *historyRecord // last history row of type OPEN or REPEAT, for last_open()
	recordedAt  core.Time
	unconfirmed bool   // opened in a replay, where the log knows no such event
	fresh       bool   // last opened or closed by what the log does not know yet
	dropped     bool   // no longer in the engine: caches must look it up again
	touched     bool   // in the list of what the board is to show
	shown       uint64 // id of its alert on the board, 0 = none
	counted     int    // samples that the engine's total has of it

	actions []actionState
	hold    core.Time // check_on_exit: nothing expires before this time, because the server was down
	due     core.Time // tick at which something is to be done, 0 = none
	place   int       // index in the schedule, -1 = not in it
}

// actionState is what one action remembers of a window.
type actionState struct {
	lastFired core.Time
	pending   core.Time // when a delayed Open is due, 0 = none
	opened    bool      // fired, or would have fired, on the Open of this alert
}

func newWindow(r *Rule, key string) *window {
	return &window{rule: r, key: key, status: core.StatusCancel, place: -1, actions: make([]actionState, len(r.Actions))}
}

func (w *window) len() int { return len(w.times) - w.head }

func (w *window) sampleTimes() []core.Time { return w.times[w.head:] }
func (w *window) samples() []float64       { return w.values[w.head:] }

func (w *window) firstTime() core.Time {
	if w.len() == 0 {
		return 0
	}
	return w.times[w.head]
}

func (w *window) lastTime() core.Time {
	if w.len() == 0 {
		return 0
	}
	return w.times[len(w.times)-1]
}

// open reports whether the window has an open alert.
func (w *window) open() bool { return w.status != core.StatusCancel }

// add inserts a sample at its place by time and evicts the oldest ones beyond the cap.
func (w *window) add(t core.Time, v float64, most int) {
	if n := len(w.times); n == w.head || w.times[n-1] <= t {
		w.times = append(w.times, t)
		w.values = append(w.values, v)
	} else {
		i := w.head + searchAfter(w.times[w.head:], t)
		w.times = slices.Insert(w.times, i, t)
		w.values = slices.Insert(w.values, i, v)
	}
	for w.len() > most {
		w.head++
	}
	w.reclaim()
}

// searchAfter returns the index of the first time after t.
func searchAfter(times []core.Time, t core.Time) int {
	i, _ := slices.BinarySearchFunc(times, t, func(e, target core.Time) int {
		if e <= target {
			return -1
		}
		return 1
	})
	return i
}

// expire drops samples earlier than start and returns the time of the last one dropped.
func (w *window) expire(start core.Time) (last core.Time, removed bool) {
	for w.head < len(w.times) && w.times[w.head] < start {
		last, removed = w.times[w.head], true
		w.head++
	}
	w.reclaim()
	return last, removed
}

// smallWindow is a size below which the dropped part is not worth moving for.
const smallWindow = 16

func (w *window) reclaim() {
	if w.head < smallWindow || w.head < len(w.times)-w.head {
		return
	}
	n := copy(w.times, w.times[w.head:])
	copy(w.values, w.values[w.head:])
	w.times, w.values, w.head = w.times[:n], w.values[:n], 0
	if cap(w.times) > 4*n+4*smallWindow {
		w.times, w.values = slices.Clip(slices.Clone(w.times)), slices.Clip(slices.Clone(w.values))
	}
}

// close puts the window back to CANCEL without a trigger.
func (w *window) close() {
	w.status, w.alert, w.acked, w.nodata = core.StatusCancel, 0, false, false
	for i := range w.actions {
		w.actions[i].pending, w.actions[i].opened = 0, false
	}
}

// key is the grouping key text: `<type>-<metric>[-<entity>][-<tag>=<value>...]`. Parts are escaped, so that different keys never read alike.
func (r *Rule) windowKey(metric, entity string, tags core.Tags) string {
	var b strings.Builder
	b.WriteString(string(r.Kind) + "-")
	writeKeyPart(&b, metric)
	if r.Group.Entity {
		b.WriteByte('-')
		writeKeyPart(&b, entity)
	}
	for _, t := range tags {
		b.WriteByte('-')
		writeKeyPart(&b, t.Name)
		b.WriteByte('=')
		writeKeyPart(&b, t.Value)
	}
	return b.String()
}

var keyEscapes = strings.NewReplacer(`\`, `\\`, `-`, `\-`, `=`, `\=`)

func writeKeyPart(b *strings.Builder, s string) {
	if !strings.ContainsAny(s, `\-=`) {
		b.WriteString(s)
		return
	}
	_, _ = keyEscapes.WriteString(b, s) // a strings.Builder takes everything
}

// groupTags returns the tags of c that are part of the key. A listed tag that c lacks contributes nothing.
func (r *Rule) groupTags(c *command) core.Tags {
	source := c.tags
	switch r.Kind {
	case KindMessage:
		source = withFields(c.tags, core.Tag{Name: "source", Value: c.source}, core.Tag{Name: "type", Value: c.typ})
	case KindProperty:
		source = withFields(c.keys, core.Tag{Name: "type", Value: c.typ})
	}
	if r.Group.AllTags {
		if r.Kind == KindMessage {
			return c.tags
		}
		return source
	}
	var out core.Tags
	for _, name := range r.Group.Tags {
		if v, ok := source.Get(name); ok {
			out = append(out, core.Tag{Name: name, Value: v})
		}
	}
	return out
}

// withFields adds record fields to tags where no tag has their name.
func withFields(tags core.Tags, fields ...core.Tag) core.Tags {
	out := slices.Clone(tags)
	for _, f := range fields {
		if _, ok := tags.Get(f.Name); !ok {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b core.Tag) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// schedule is a heap of windows by the tick they wait for; equal ticks in order of rule and key, so that a replay runs them alike.
type schedule []*window

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	a, b := s[i], s[j]
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.rule.Name, b.rule.Name), cmp.Compare(a.key, b.key)) < 0
}
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push and Pop implement heap.Interface.
func (s *schedule) Push(x any) {
	w := x.(*window)
	w.place = len(*s)
	*s = append(*s, w)
}

func (s *schedule) Pop() any {
	old := *s
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	w.place = -1
	return w
}
