package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// backgroundUpload is one in memory.
type backgroundUpload struct {
	background // does not change, but for Result, which backlog.mu guards as it does the rest

	shown   []byte                  // JSON of how far it is; replaced as a whole, never written to
	cancel  context.CancelCauseFunc // while it is in work
	dropped bool                    // it was deleted while it was in work
	tried   bool                    // by this server; of the worker
}

// backlog is all background uploads: those that wait, the one in work, and the latest that have ended.
type backlog struct {
	wake chan struct{} // of the worker, which waits for it; holds one

	mu       sync.Mutex // guards below; innermost, held while notes are read or removed but not while a body is
	loaded   bool
	all      []*backgroundUpload // by id
	arriving int                 // bodies that are not complete
	bytes    int64               // of all bodies, those that are arriving included
	newest   letterID
}

// load reads the spool, once. It is called with mu held.
func (q *backlog) load(s *Server) error {
	if q.loaded || s.Spool == nil {
		return nil
	}
	files, err := s.Spool.List()
	if err != nil {
		return fmt.Errorf("background uploads: %w", err)
	}
	for name, size := range files {
		id, isNotes := strings.CutSuffix(name, notesFile)
		if isNotes {
			q.recall(s, id, files[id+bodyFile])
			continue
		}
		id, isBody := strings.CutSuffix(name, bodyFile)
		if _, accepted := files[id+notesFile]; isBody && !accepted {
			s.Log.Info("background uploads: a body that was not acknowledged is removed", "id", id, "bytes", size)
			s.removeFile(name)
		}
	}
	slices.SortFunc(q.all, byID)
	q.loaded = true
	return nil
}

func byID(a, b *backgroundUpload) int { return strings.Compare(a.ID, b.ID) }

// recall reads the notes of an upload. Damaged ones stay where they are, with their body.
func (q *backlog) recall(s *Server, id string, size int64) {
	b := &backgroundUpload{}
	text, err := s.readFile(id + notesFile)
	if err == nil {
		err = json.Unmarshal(text, &b.background)
	}
	if err == nil && b.ID != id {
		err = fmt.Errorf("they are those of %q", b.ID)
	}
	if err != nil {
		s.Log.Error("background uploads: the notes of one cannot be read, it is left out", "id", id, "err", err)
		return
	}
	var at letterID
	if _, err := fmt.Sscanf(id, "%d-%d", &at.at, &at.n); err == nil && at.String() > q.newest.String() {
		q.newest = at
	}
	if b.Result != nil {
		b.shown = b.Result
		s.removeFile(id + bodyFile) // the last start may have ended between the two
	} else {
		q.bytes += size
		b.shown = b.upload(s).shown(inProgress, 0)
	}
	q.all = append(q.all, b)
}

// waiting counts the uploads that have not ended, those that are arriving included. It is called with mu held.
func (q *backlog) waiting() int {
	n := q.arriving
	for _, b := range q.all {
		if b.Result == nil {
			n++
		}
	}
	return n
}

// reserve takes a place for an upload that begins to arrive, and names it.
func (q *backlog) reserve(s *Server) (id string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.load(s); err != nil {
		return "", err
	}
	if n := q.waiting(); n >= s.Limits.UploadQueue {
		return "", crowded("%d uploads wait in the background, as many as upload.queue allows", n)
	}
	q.arriving++
	q.newest = q.newest.after(s.Clock())
	return q.newest.String(), nil
}

// crowded is the refusal of an upload that there is no room for now.
func crowded(format string, args ...any) error {
	return &core.Error{Code: core.Unavailable, Text: fmt.Sprintf(format, args...) + ": try again, or send it without wait=false", RetryAfter: 10 * time.Second}
}

// arrived ends what reserve began. With nil nothing came of it, and its bytes are given back.
func (q *backlog) arrived(b *backgroundUpload, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arriving--
	if b == nil {
		q.bytes -= bytes
		return
	}
	at, _ := slices.BinarySearchFunc(q.all, b, byID)
	q.all = slices.Insert(q.all, at, b)
	select {
	case q.wake <- struct{}{}:
	default: // it is woken already
	}
}

// begin marks an upload as the one in work. It reports false when it was deleted.
func (q *backlog) begin(b *backgroundUpload, cancel context.CancelCauseFunc) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.cancel = cancel
	return slices.Contains(q.all, b)
}

func (q *backlog) show(b *backgroundUpload, shown []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.shown = shown
}

// finish keeps the result of an upload, whose body goes, at the cost of the oldest results.
func (q *backlog) finish(s *Server, b *backgroundUpload, result []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.removeFile(b.ID + bodyFile)
	q.bytes -= b.Size
	b.Result, b.shown = result, result
	var done []*backgroundUpload
	for _, one := range q.all {
		if one.Result != nil {
			done = append(done, one)
		}
	}
	for _, old := range done[:max(0, len(done)-s.Limits.UploadResults)] {
		q.remove(s, old)
	}
}

// rest marks an upload as not in work any more. One that was deleted meanwhile goes.
func (q *backlog) rest(s *Server, b *backgroundUpload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.cancel = nil
	if b.dropped {
		q.remove(s, b)
	}
}

// remove forgets an upload, its notes first: a body without notes was never acknowledged. It is called with mu held.
func (q *backlog) remove(s *Server, b *backgroundUpload) {
	s.removeFile(b.ID + notesFile)
	if b.Result == nil {
		s.removeFile(b.ID + bodyFile)
		q.bytes -= b.Size
	}
	q.all = slices.DeleteFunc(q.all, func(one *backgroundUpload) bool { return one == b })
}

// uploadLoad is how many background uploads have not ended, and the bytes of their bodies.
func (s *Server) uploadLoad() (waiting int, bytes int64) {
	s.uploads.mu.Lock()
	defer s.uploads.mu.Unlock()
	return s.uploads.waiting(), s.uploads.bytes
}
