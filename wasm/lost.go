package wasm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// defaultLetter is what is kept of a lost input: four chunks.
const defaultLetter = 1 << 20

// Lost is the error of an upload whose plugin could not take a piece of it: of a stateless plugin one chunk, after which the iteration goes on
// if the caller wants; of a stateful one everything from there on. It carries the bytes as the plugin saw them, in UTF-8, for a dead letter.
type Lost struct {
	err       *core.Error
	plugin    string
	offset    int64  // of the file
	kept      []byte // head and lost piece
	skip      int    // bytes of the head
	headless  bool   // the plugin is stateful and has seen more than is kept
	truncated bool
}

func (l *Lost) Error() string { return l.err.Error() }

// Unwrap returns the error for the user.
func (l *Lost) Unwrap() error { return l.err }

// LostAt names the plugin and the byte of the file where the lost piece begins.
func (l *Lost) LostAt() (plugin string, offset int64) { return l.plugin, l.offset }

// LostInput returns what is kept. The first skip bytes of it were taken: a stateful plugin has to read them again before it can read the rest.
func (l *Lost) LostInput() (kept []byte, skip int64) { return l.kept, int64(l.skip) }

// LostParts says what is missing in LostInput: of a stateful plugin what it had taken, or the end.
func (l *Lost) LostParts() (headless, truncated bool) { return l.headless, l.truncated }

// tape keeps the head of a stream for a stateful plugin, and then what was lost.
type tape struct {
	limit int
	bytes []byte
	head  int64 // bytes taken so far, kept or not
	lost  *Lost // set when the stream is over
}

// took keeps a chunk that a stateful plugin took, as long as the head leaves a quarter of the limit for what may follow.
func (t *tape) took(data []byte) {
	if int64(len(t.bytes)) == t.head && len(t.bytes)+len(data) <= t.limit/4*3 {
		t.bytes = append(t.bytes, data...)
	} else {
		t.bytes = nil
	}
	t.head += int64(len(data))
}

// lose begins the letter of a stateful stream, which more then fills.
func (t *tape) lose(err error, data []byte) {
	t.lost = newLost(err, t.head)
	t.lost.skip = len(t.bytes)
	t.lost.headless = int64(len(t.bytes)) < t.head
	t.lost.kept = t.bytes
	t.more(data)
}

// more adds to the letter and reports whether there is room left.
func (t *tape) more(data []byte) bool {
	l := t.lost
	room := max(0, t.limit-len(l.kept))
	l.truncated = l.truncated || len(data) > room
	l.kept = append(l.kept, data[:min(room, len(data))]...)
	return !l.truncated
}

// newLost is called with an error of a plugin.
func newLost(err error, offset int64) *Lost {
	e := (*Error)(nil)
	errors.As(err, &e)
	e.Offset = offset
	l := &Lost{plugin: e.Plugin, offset: offset}
	errors.As(coreError(e), &l.err)
	return l
}

// loseChunk is the letter of one chunk of a stateless plugin.
func loseChunk(err error, offset int64, c chunk, limit int) *Lost {
	l := newLost(err, offset)
	var e *Error
	errors.As(err, &e)
	l.err.Text = fmt.Sprintf("%s; the %d bytes from byte %d on are not stored, what follows them is tried", e, len(c.data), offset)
	l.kept, l.truncated = slices.Clone(c.data[:min(len(c.data), limit)]), len(c.data) > limit
	return l
}

// isLost reports whether the plugin took nothing of the input of the call, and never will.
func isLost(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.DeadLetter
}
