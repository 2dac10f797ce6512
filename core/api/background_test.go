package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// memorySpool is a Spool that can fail.
type memorySpool struct {
	mu    sync.Mutex
	files map[string][]byte
	full  bool // Put fails once it has read everything
}

func newMemorySpool() *memorySpool { return &memorySpool{files: map[string][]byte{}} }

func (s *memorySpool) Put(name string, r io.Reader) (int64, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return 0, core.Errorf(core.NoSpace, "the disk is full")
	}
	s.files[name] = text
	return int64(len(text)), nil
}

func (s *memorySpool) Open(name string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

func (s *memorySpool) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, name)
	return nil
}

func (s *memorySpool) List() (map[string]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	for name, text := range s.files {
		out[name] = int64(len(text))
	}
	return out, nil
}

func (s *memorySpool) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.files))
}

func (w *world) spool() *memorySpool { return w.server.Spool.(*memorySpool) }

// restart gives the world a server that knows only what is in the spool and the log.
func (w *world) restart() { w.server.uploads = backlog{wake: make(chan struct{}, 1)} }

const (
	inBackground = "/api/v1/csv?config=lines&wait=false"
	twoLines     = "entity,metric,time,value\ne1,m,1620036000000,1\n"
	firstUpload  = "/api/v1/admin/uploads/1903910400000-0001"
)

func (w *world) mustAccept(t *testing.T, target, body string) {
	t.Helper()
	rec := w.do("eva", "POST", target, body)
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"taskStatus":"IN_PROGRESS"`) || rec.Header().Get("Tidemark-Durability") != "synced" {
		t.Fatalf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

func (w *world) wantUpload(t *testing.T, part string) {
	t.Helper()
	if rec := w.do("admin", "GET", firstUpload, ""); !strings.Contains(rec.Body.String(), part) {
		t.Errorf("the upload is %d %s, want %s", rec.Code, rec.Body, part)
	}
}

// An upload that was accepted is processed by the next server, with the time of its receipt, and shown by the one after that.
func TestBackgroundUploadSurvivesRestart(t *testing.T) {
	w := newWorld(t, Limits{})
	w.mustAccept(t, inBackground+"&t:site=n", twoLines)
	if got := w.spool().names(); !slices.Equal(got, []string{"1903910400000-0001.body", "1903910400000-0001.json"}) {
		t.Fatalf("spool %v", got)
	}
	notes := string(w.spool().files["1903910400000-0001.json"])
	for _, secret := range []string{password, passwordHash, "API_", "groups", "Authorization"} {
		if strings.Contains(strings.ToLower(notes), strings.ToLower(secret)) {
			t.Errorf("the notes hold %q: %s", secret, notes)
		}
	}
	w.restart()
	w.setClock(w.clock() + 1000)
	w.wantUpload(t, `"taskStatus":"IN_PROGRESS"`)
	if w.server.workWaiting(t.Context(), everyone) {
		t.Error("something is left")
	}
	want := `{"startTime":1903910400000,"endTime":1903910401000,"processed":2,"source":"192.0.2.1","parser":"lines","errorMessage":null,"taskStatus":"COMPLETED",` +
		`"type":"upload","fileName":"csv-upload-1903910400000.csv","fileCount":1,"fileSize":46,"samples":1,"records":1,"rejected":0,"rejects":[],"id":"1903910400000-0001","user":"eva"}`
	for range 2 {
		w.wantUpload(t, want)
		if got := w.spool().names(); !slices.Equal(got, []string{"1903910400000-0001.json"}) {
			t.Errorf("spool %v", got)
		}
		w.restart()
	}
	rec := w.do("eva", "GET", "/api/v1/series/csv/e1/m?startTime=0&endTime=1720036000000&columns=time,t:site,value", "")
	if rec.Body.String() != "time,site,value\n1620036000000,n,1\n" {
		t.Errorf("stored: %s", rec.Body)
	}
	if !strings.Contains(w.logged.String(), "a background upload has ended") {
		t.Errorf("log: %s", w.logged)
	}
	// Ids go on where those of the last server ended, whatever the clock says.
	w.setClock(0)
	w.mustAccept(t, inBackground, twoLines)
	if rec := w.do("admin", "GET", "/api/v1/admin/uploads", ""); !strings.Contains(rec.Body.String(), `"id":"1903910400000-0002"`) {
		t.Errorf("list: %s", rec.Body)
	}
}

// A start finds what a crash left between any two steps.
func TestBackgroundSpoolAfterCrash(t *testing.T) {
	w := newWorld(t, Limits{})
	w.mustAccept(t, inBackground, twoLines)
	files := w.spool()
	files.files["1903910400000-0002.body"] = []byte("x") // its notes were never written
	files.files["1903910400000-0003.json"] = []byte("{") // damaged: kept with its body
	files.files["1903910400000-0003.body"] = []byte("x")
	w.restart()
	w.server.workWaiting(t.Context(), everyone)
	if got := files.names(); !slices.Equal(got, []string{"1903910400000-0001.json", "1903910400000-0003.body", "1903910400000-0003.json"}) {
		t.Errorf("spool %v", got)
	}
	if rec := w.do("admin", "GET", "/api/v1/admin/uploads", ""); strings.Count(rec.Body.String(), `"id"`) != 1 {
		t.Errorf("list: %s", rec.Body)
	}
	files.files["1903910400000-0001.body"] = []byte(twoLines) // the result was stored, the body not yet removed
	appends := w.log.appends
	w.restart()
	w.server.workWaiting(t.Context(), everyone)
	if slices.Contains(files.names(), "1903910400000-0001.body") || w.log.appends != appends {
		t.Errorf("spool %v, %d appends", files.names(), w.log.appends-appends)
	}
}

// What the store cannot take now is tried again; what it refuses has failed.
func TestBackgroundUploadIsTriedAgain(t *testing.T) {
	w := newWorld(t, Limits{})
	w.mustAccept(t, inBackground, twoLines)
	for _, code := range []core.Code{core.NoSpace, core.Unavailable} {
		w.log.fail = core.Errorf(code, "not now")
		if !w.server.workWaiting(t.Context(), everyone) {
			t.Error("nothing is left")
		}
		w.wantUpload(t, `"taskStatus":"IN_PROGRESS"`)
	}
	w.log.fail = nil
	w.spool().full = true // the result cannot be stored
	if !w.server.workWaiting(t.Context(), everyone) {
		t.Error("nothing is left")
	}
	w.wantUpload(t, `"taskStatus":"IN_PROGRESS"`)
	w.spool().full = false
	if w.server.workWaiting(t.Context(), everyone) {
		t.Error("something is left")
	}
	w.wantUpload(t, `"taskStatus":"COMPLETED"`)

	w.mustAccept(t, inBackground, twoLines)
	w.log.fail = errors.New("a fault with a path /secret")
	w.server.workWaiting(t.Context(), everyone)
	rec := w.do("admin", "GET", "/api/v1/admin/uploads/1903910400000-0002", "")
	if !strings.Contains(rec.Body.String(), `"taskStatus":"FAILED"`) || !strings.Contains(rec.Body.String(), "internal error, see the server log for request") || strings.Contains(rec.Body.String(), "secret") {
		t.Errorf("%s", rec.Body)
	}
	if !strings.Contains(w.logged.String(), "/secret") {
		t.Error("the log does not tell the cause")
	}
}

// The sender's rights count as they are when the file is processed.
func TestBackgroundUploadRights(t *testing.T) {
	w := newWorld(t, Limits{})
	w.mustAccept(t, inBackground, twoLines)
	if rec := w.do("admin", "PATCH", "/api/v1/admin/users/eva", `{"enabled":false}`); rec.Code != 200 {
		t.Fatal(rec.Body)
	}
	w.server.workWaiting(t.Context(), everyone)
	w.wantUpload(t, `"errorMessage":"eva, who sent the upload, cannot log in any more","taskStatus":"FAILED"`)
	if _, exists := w.store.Entity("e1"); exists {
		t.Error("the entity exists")
	}
}

// The limits are named, and what is refused leaves nothing behind.
func TestBackgroundUploadLimits(t *testing.T) {
	w := newWorld(t, Limits{UploadQueue: 1, UploadSpool: 100, UploadResults: 2, Upload: 1000})
	refused := func(status int, body, text string) {
		t.Helper()
		rec := w.do("eva", "POST", inBackground, body)
		if rec.Code != status || !strings.Contains(rec.Body.String(), text) {
			t.Errorf("%d %s, want %d %s", rec.Code, rec.Body, status, text)
		}
		if status == 503 && rec.Header().Get("Retry-After") != "10" {
			t.Errorf("Retry-After %s", rec.Header().Get("Retry-After"))
		}
	}
	refused(413, strings.Repeat("x", 101), "upload.spool (100 bytes)")
	refused(413, strings.Repeat("x", 1001), "limits.upload (1000 bytes)")
	w.spool().full = true
	refused(507, "x", "the disk is full")
	w.spool().full = false
	if names := w.spool().names(); len(names) != 0 {
		t.Errorf("spool %v", names)
	}
	w.mustAccept(t, inBackground, strings.Repeat("x", 60))
	refused(503, "x", "as many as upload.queue allows")
	w.server.Limits.UploadQueue = 9
	refused(503, strings.Repeat("x", 41), "upload.spool (100)")
	for range 3 {
		w.mustAccept(t, inBackground, "a\n")
	}
	if waiting, bytes := w.server.uploadLoad(); waiting != 4 || bytes != 66 {
		t.Errorf("%d wait, %d bytes", waiting, bytes)
	}
	w.server.workWaiting(t.Context(), everyone)
	if waiting, bytes := w.server.uploadLoad(); waiting != 0 || bytes != 0 {
		t.Errorf("%d wait, %d bytes", waiting, bytes)
	}
	if names := w.spool().names(); len(names) != 2 {
		t.Errorf("results %v, want 2", names)
	}
}

// Without a spool the parameter is a part that is not built.
func TestBackgroundUploadWithoutSpool(t *testing.T) {
	w := newWorld(t, Limits{})
	w.server.Spool = nil
	if rec := w.do("eva", "POST", inBackground, twoLines); rec.Code != http.StatusNotImplemented {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := w.do("eva", "GET", "/api/v1/uploads", ""); rec.Body.String() != "[]" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// slowParser tells when it is at work, and ends with its context or when it may. The parser bomb panics.
type slowParser struct{ at, free chan struct{} }

func (p slowParser) Parse(ctx context.Context, r core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return func(yield func(core.Parsed, error) bool) {
		text, _ := io.ReadAll(body)
		if len(text) == 0 {
			return // of probe
		}
		if r.Parser == "bomb" {
			panic("boom")
		}
		if !yield(core.Parsed{Lines: 1}, nil) {
			return
		}
		p.at <- struct{}{}
		select {
		case <-ctx.Done():
			yield(core.Parsed{}, ctx.Err())
		case <-p.free:
			yield(core.Parsed{Lines: 1}, nil)
		}
	}
}

// A server that stops waits a moment for the upload in work, and then leaves it to the next start.
func TestBackgroundWorkerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Limits{})
		p := slowParser{make(chan struct{}), make(chan struct{})}
		w.server.Parser = p
		run := func() (stop func(), done chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			done = make(chan error)
			go func() { done <- w.server.WorkUploads(ctx) }()
			return cancel, done
		}
		stop, done := run()
		w.mustAccept(t, "/api/v1/csv?config=a&wait=false", "x") // wakes it
		<-p.at
		w.wantUpload(t, `"processed":1,`) // its progress is shown
		begin := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(begin) != uploadGrace {
			t.Errorf("stopped after %v, error %v", time.Since(begin), err)
		}
		w.wantUpload(t, `"taskStatus":"IN_PROGRESS"`)

		w.restart()
		stop, done = run()
		<-p.at
		stop()
		close(p.free)
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.wantUpload(t, `"taskStatus":"COMPLETED"`)
	})
}

// A busy store is asked again after a while, without a new upload to wake the worker.
func TestBackgroundWorkerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Limits{})
		w.mustAccept(t, inBackground, twoLines)
		w.log.mu.Lock()
		w.log.fail = core.Errorf(core.Unavailable, "not now")
		w.log.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.server.WorkUploads(ctx) }()
		time.Sleep(2500 * time.Millisecond) // of the bubble: it was tried at 0 and at 1 s, and will be at 3 s
		w.log.mu.Lock()
		w.log.fail = nil
		w.log.mu.Unlock()
		w.wantUpload(t, `"taskStatus":"IN_PROGRESS"`)
		time.Sleep(time.Second)
		w.wantUpload(t, `"taskStatus":"COMPLETED"`)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Deleting an upload ends it, whether it waits, is in work or has ended; a parser that panics ends only its upload.
func TestBackgroundUploadDelete(t *testing.T) {
	w := newWorld(t, Limits{})
	p := slowParser{make(chan struct{}), make(chan struct{})}
	w.server.Parser = p
	w.mustAccept(t, "/api/v1/csv?config=a&wait=false", "x")
	w.mustAccept(t, "/api/v1/csv?config=bomb&wait=false", "x")
	w.mustAccept(t, "/api/v1/csv?config=a&wait=false", "x")
	remove := func(user, target string, status int) {
		t.Helper()
		if rec := w.do(user, "DELETE", target, ""); rec.Code != status {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
	remove("admin", "/api/v1/admin/uploads/1903910400000-0003", 200)
	remove("tom", "/api/v1/uploads/1903910400000-0001", 404) // it is eva's
	done := make(chan bool)
	go func() { done <- w.server.workWaiting(t.Context(), everyone) }()
	<-p.at
	remove("eva", "/api/v1/uploads/1903910400000-0001", 200)
	if <-done {
		t.Error("something is left")
	}
	if names := w.spool().names(); !slices.Equal(names, []string{"1903910400000-0002.json"}) {
		t.Errorf("spool %v", names)
	}
	rec := w.do("eva", "GET", "/api/v1/uploads", "")
	if !strings.Contains(rec.Body.String(), `"taskStatus":"FAILED"`) || !strings.Contains(w.logged.String(), "boom") {
		t.Errorf("%s", rec.Body)
	}
	remove("eva", "/api/v1/uploads/1903910400000-0002", 200)
	remove("eva", "/api/v1/uploads/1903910400000-0002", 404)
	if names := w.spool().names(); len(names) != 0 {
		t.Errorf("spool %v", names)
	}
}

// A body that was cut off, or came too slowly, is not accepted.
func TestBackgroundUploadIsCut(t *testing.T) {
	w := newWorld(t, Limits{})
	r := httptest.NewRequest("POST", inBackground, io.MultiReader(strings.NewReader("a,b\n"), brokenReader{}))
	r.SetBasicAuth("eva", password)
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	if rec.Code != 400 || len(w.spool().names()) != 0 {
		t.Errorf("%d %s, spool %v", rec.Code, rec.Body, w.spool().names())
	}
	r = httptest.NewRequest("POST", inBackground, io.MultiReader(strings.NewReader("a,b\n"), lateReader{}))
	r.SetBasicAuth("eva", password)
	rec = httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	if rec.Code != 408 || !strings.Contains(rec.Body.String(), "nothing of it is kept") || !strings.Contains(rec.Body.String(), "upload.idle (30s)") || len(w.spool().names()) != 0 {
		t.Errorf("%d %s, spool %v", rec.Code, rec.Body, w.spool().names())
	}
	if waiting, bytes := w.server.uploadLoad(); waiting != 0 || bytes != 0 {
		t.Errorf("%d wait, %d bytes", waiting, bytes)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// lateReader says nothing until the deadline is over.
type lateReader struct{}

func (lateReader) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
