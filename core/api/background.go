package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// Spool is a folder of files that outlive the process: what background uploads wait in. Its methods may be called concurrently.
type Spool interface {
	// Put stores a file, in the place of one of the same name, and returns its size in bytes. Once it returns without an error the file survives a power cut; with one
	// nothing has changed. Faults of r are returned as they are; a full disk is of code NoSpace.
	Put(name string, r io.Reader) (int64, error)
	Open(name string) (io.ReadCloser, error)
	// Remove is as durable as Put, and no error for a file that is not there.
	Remove(name string) error
	// List returns the sizes of all files, by name.
	List() (map[string]int64, error)
}

// The two files of a background upload are named by its id. The body comes first and goes first: an upload is accepted once its notes are there, and done once they hold its
// result. A body without notes was never acknowledged.
const (
	bodyFile  = ".body"
	notesFile = ".json"
)

const (
	// uploadGrace is how long a server that stops lets the upload in work go on: most end within it, and need not begin again.
	uploadGrace = 3 * time.Second
	// An upload that the store or its parser cannot take now is tried again after the first of these waits; they double up to the second.
	firstRetry, lastRetry = time.Second, time.Minute
)

// background is an upload that was sent with wait=false. Its JSON form are its notes. Of the sender they hold the name and the address: no rights, no credentials.
type background struct {
	ID       string            `json:"id"` // time of receipt and a number: ids sort by age
	User     string            `json:"user"`
	Source   string            `json:"source"` // client address
	Received core.Time         `json:"received"`
	Parser   string            `json:"parser"`
	Format   string            `json:"format"`
	Params   map[string]string `json:"params,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	FileName string            `json:"fileName,omitempty"`
	Encoding string            `json:"encoding,omitempty"` // charset of the file
	Zone     string            `json:"zone,omitempty"`
	Hidden   bool              `json:"hiddenFromRules,omitempty"`
	Test     bool              `json:"test,omitempty"`

	ContentType string `json:"contentType,omitempty"` // of the body as it was sent
	Coding      string `json:"contentEncoding,omitempty"`
	Size        int64  `json:"size"` // bytes of the body

	Result json.RawMessage `json:"result,omitempty"` // what the endpoints show of an upload that has ended; absent before
}

var (
	errDropped  = errors.New("the upload was deleted")
	errStopping = errors.New("the server is stopping")
)

func (s *Server) readFile(name string) ([]byte, error) {
	f, err := s.Spool.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// removeFile removes a file that nobody needs; one that stays is found again by the next start.
func (s *Server) removeFile(name string) {
	if err := s.Spool.Remove(name); err != nil {
		s.Log.Warn("background uploads: a file cannot be removed", "file", name, "err", err)
	}
}

// spooled counts the bytes of a body on its way into the spool.
type spooled struct {
	r io.Reader
	s *Server
	n int64
}

func (r *spooled) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.n += int64(n)
	q, limit := &r.s.uploads, r.s.Limits.UploadSpool
	q.mu.Lock()
	q.bytes += int64(n)
	others := q.bytes - r.n
	q.mu.Unlock()
	switch {
	case r.n > limit:
		return n, core.Errorf(core.TooLarge, "the body exceeds upload.spool (%d bytes), which all uploads with wait=false share: send it without", limit)
	case others+r.n > limit:
		return n, crowded("background uploads take %d bytes, and all of them together may take upload.spool (%d)", others+r.n, limit)
	}
	return n, err
}

// accept stores the upload for the worker and answers at once. What is wrong with the request itself is refused as it is with wait=true.
func (u *upload) accept() error {
	c, s := u.c, u.c.server
	if s.Spool == nil {
		return c.missing()
	}
	if err := u.probe(); err != nil {
		return err
	}
	if err := c.unhurried(); err != nil {
		return err
	}
	limit := s.Limits.Upload
	if c.r.ContentLength > limit {
		return core.Errorf(core.TooLarge, "the body exceeds limits.upload (%d bytes)", limit)
	}
	u.pace = c.paced(c.r.Body)
	u.pace.outcome = "nothing of it is kept"
	id, err := s.uploads.reserve(s)
	if err != nil {
		return err
	}
	body := &spooled{r: &bounded{r: clientReader{u.pace}, left: limit, limit: limit, name: "limits.upload"}, s: s}
	var b *backgroundUpload
	defer func() { s.uploads.arrived(b, body.n) }()
	accepted, err := u.spool(id, body)
	if u.pace.late {
		u.size.n = body.n
		u.fail(u.pace.fault())
		return u.answer()
	}
	if err != nil {
		return err
	}
	b = accepted
	s.Log.Info("an upload waits in the background", "id", id, "user", b.User, "parser", b.Parser, "bytes", b.Size)
	c.durability(core.Synced)
	return c.sendJSON(b.shown)
}

// spool writes the two files of an upload.
func (u *upload) spool(id string, body io.Reader) (*backgroundUpload, error) {
	s, r, header := u.c.server, &u.request, u.c.r.Header
	size, err := s.Spool.Put(id+bodyFile, body)
	if err != nil {
		return nil, err
	}
	b := &backgroundUpload{background: background{ID: id, User: u.c.id.User.Name, Source: r.Source, Received: r.Received, Parser: r.Parser, Format: r.Format, Params: r.Params,
		Tags: r.Tags.Map(), FileName: r.FileName, Encoding: r.Encoding, Zone: r.Zone, Hidden: !u.rules, Test: u.test,
		ContentType: header.Get("Content-Type"), Coding: header.Get("Content-Encoding"), Size: size}}
	b.shown = b.upload(s).shown(inProgress, 0)
	if err := s.putNotes(&b.background); err != nil {
		s.removeFile(id + bodyFile)
		return nil, err
	}
	return b, nil
}

func (s *Server) putNotes(b *background) error {
	notes, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("notes of background upload %s: %w", b.ID, err)
	}
	_, err = s.Spool.Put(b.ID+notesFile, bytes.NewReader(notes))
	return err
}

// probe opens the parser without a file: a parser or a parameter that is wrong is told now. Whether the parser is free does not matter yet.
func (u *upload) probe() error {
	switch coding := strings.ToLower(strings.TrimSpace(u.c.r.Header.Get("Content-Encoding"))); coding {
	case "", "identity", "gzip", "x-gzip":
	default:
		return core.Errorf(core.Unsupported, "Content-Encoding %q is not supported: send gzip or none", coding)
	}
	for _, err := range u.c.server.Parser.Parse(u.c.r.Context(), u.request, strings.NewReader("")) {
		switch core.CodeOf(err) {
		case core.Invalid, core.Unsupported, core.TooLarge, core.Forbidden, core.NotFound:
			return err
		}
		break
	}
	return nil
}

// WorkUploads processes background uploads, the oldest first, one at a time, until ctx ends. The one in work then has a moment to end; what is left is processed after the next
// start, from its beginning: what it had stored is stored again, with the same times.
func (s *Server) WorkUploads(ctx context.Context) error {
	if s.Spool == nil {
		<-ctx.Done()
		return nil
	}
	pause, round := firstRetry, fresh
	var retry <-chan time.Time
	for {
		switch left := s.workWaiting(ctx, round); {
		case !left:
			pause, retry = firstRetry, nil
		case retry == nil:
			retry = time.After(pause)
			pause = min(2*pause, lastRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.uploads.wake:
			round = fresh
		case <-retry:
			retry, round = nil, everyone
		}
	}
}

// round is which of the waiting uploads have their turn.
type round uint8

const (
	everyone round = iota
	fresh          // those that were not tried yet: the others have their time to wait
)

// workWaiting tries the uploads that wait, and reports whether some have to wait longer.
func (s *Server) workWaiting(ctx context.Context, which round) (left bool) {
	q := &s.uploads
	q.mu.Lock()
	err := q.load(s)
	waiting := slices.DeleteFunc(slices.Clone(q.all), func(b *backgroundUpload) bool { return b.Result != nil })
	q.mu.Unlock()
	if err != nil {
		s.Log.Error("background uploads cannot be read", "err", err)
		return true
	}
	for _, b := range waiting {
		if ctx.Err() != nil {
			return true
		}
		if b.tried && which == fresh {
			left = true
			continue
		}
		b.tried = true
		left = !s.work(ctx, b) || left
	}
	return left
}

// work processes one upload, and reports whether that is the end of it.
func (s *Server) work(stopping context.Context, b *backgroundUpload) (ended bool) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(stopping))
	defer cancel(nil)
	defer s.uploads.rest(s, b)
	defer context.AfterFunc(stopping, func() { time.AfterFunc(uploadGrace, func() { cancel(errStopping) }) })()
	if !s.uploads.begin(b, cancel) {
		return true
	}
	log := s.Log.With("id", b.ID, "user", b.User, "parser", b.Parser)
	u := b.upload(s)
	err := s.try(ctx, u, b)
	code := core.CodeOf(err)
	switch cause := context.Cause(ctx); {
	case cause == errDropped:
		log.Warn("a background upload was deleted while it was processed: what it had stored stays", "records", u.records)
		return true
	case cause != nil:
		log.Info("a background upload begins again with the next start", "records", u.records)
		return false
	case err != nil && (code == core.Unavailable || code == core.NoSpace):
		log.Warn("a background upload has to wait", "err", err)
		s.uploads.show(b, u.shown(inProgress, 0))
		return false
	case err != nil && code == core.Internal:
		id := requestID()
		log.Error("a background upload failed", "request", id, "err", err)
		err = core.Errorf(core.Internal, "%s", internalText(id))
	}
	if err != nil && !errors.Is(err, errFileFailed) {
		u.fail(err)
	}
	done := b.background
	done.Result = u.shown(u.state(), s.Clock())
	if err := s.putNotes(&done); err != nil { // without them nobody would know: it is processed again
		log.Error("the result of a background upload cannot be stored", "err", err)
		return false
	}
	log.Info("a background upload has ended", "status", u.state(), "lines", u.lines, "samples", u.samples, "records", u.records, "rejected", u.rejected, "error", userTextOf(u.failure))
	s.uploads.finish(s, b, done.Result)
	return true
}

// userTextOf is userText of a failure that may be none.
func userTextOf(err error) string {
	if err == nil {
		return ""
	}
	return userText(err)
}

// try sends the body of an upload through its parser. A panic is a fault of this upload: a server that died of it would die again with each start.
func (s *Server) try(ctx context.Context, u *upload, b *backgroundUpload) (err error) {
	body, err := s.Spool.Open(b.ID + bodyFile)
	if err != nil {
		return err
	}
	c := u.c
	c.r = c.r.WithContext(ctx)
	c.r.Body = body
	u.progress = func() { s.uploads.show(b, u.shown(inProgress, 0)) }
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		}
		c.release()
		body.Close() // it was only read
	}()
	if u.request.Origin.Grants, err = u.rights(); err != nil {
		return err
	}
	c.id.Grants = u.request.Origin.Grants
	return u.read()
}

// upload makes the upload that the notes are of.
func (b *background) upload(s *Server) *upload {
	r := &http.Request{Method: http.MethodPost, Header: http.Header{}, Body: http.NoBody, ContentLength: b.Size}
	if b.ContentType != "" {
		r.Header.Set("Content-Type", b.ContentType)
	}
	if b.Coding != "" {
		r.Header.Set("Content-Encoding", b.Coding)
	}
	c := &call{ResponseWriter: discarded{http.Header{}}, r: r, server: s, id: auth.Identity{User: auth.User{Name: b.User}, Address: b.Source}}
	u := &upload{c: c, id: b.ID, test: b.Test, rules: !b.Hidden, started: b.Received, durability: core.Synced}
	u.size.n = b.Size
	u.rights = func() (core.Grants, error) { // what the sender may do now, not what they could do then
		grants, err := s.Users.Grants(c.r.Context(), b.User)
		if core.CodeOf(err) == core.Unauthenticated {
			err = core.Errorf(core.Invalid, "%s, who sent the upload, cannot log in any more", b.User)
		}
		return grants, err
	}
	u.request = core.ParseRequest{Parser: b.Parser, Format: b.Format, Params: b.Params, Tags: tagsOf(b.Tags), FileName: b.FileName, Source: b.Source,
		Encoding: b.Encoding, Zone: b.Zone, Received: b.Received, Origin: c.id.Origin(core.DoorPlugin)}
	return u
}

// discarded is the answer to nobody.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}
