package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// server is a database that is reached over HTTP: what is particular to it, as data.
type server struct {
	title     string
	version   string
	format    string                                  // of the text it takes, as `tidemark bench devops` names it
	command   func(dir, addr string, m mode) []string // program and arguments
	env       func(dir, addr string) []string
	authorize func(*http.Request)
	ready     string // path that answers 2xx when the server is up
	prepare   []request
	write     request   // text is posted there
	settle    []request // what makes it flush and merge; a request it does not know is reported
	rest      time.Duration
	questions map[string][]question // by measure; the fastest of several ways to ask counts
}

// mode is how a server is run.
type mode int

const (
	lazy   mode = iota // writes reach the disk within a second
	synced             // writes wait for the disk, where the system can do that
	small              // lazy, within the memory budget of a small box, where the system has one
)

// request is one call; a body makes it a POST.
type request struct{ path, body, contentType, accept string }

// question is a request with what its answer means.
type question struct {
	request
	parse func([]byte) (digest, error)
	want  func(reference) digest // nil: nothing to compare with
}

// errUnknown is the answer of a server that does not know the question.
var errUnknown = errors.New("not known to this server")

func (s *server) name() string { return s.title }

// instance is a server that runs.
type instance struct {
	*server
	*process
	dir    string
	addr   string
	client *http.Client
	m      mode
}

// open starts the server and waits until it is ready and has calmed down.
func (s *server) open(ctx context.Context, b *bench, m mode) (*instance, error) {
	dir, err := os.MkdirTemp(b.work, s.title+"-")
	if err != nil {
		return nil, err
	}
	i := &instance{server: s, dir: dir, m: m, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true, WriteBufferSize: 256 << 10, ReadBufferSize: 256 << 10}}}
	i.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if err := i.start(ctx); err != nil {
		return nil, err
	}
	if err := i.getReady(ctx); err != nil {
		return nil, errors.Join(err, i.close())
	}
	return i, nil
}

// getReady waits until the server answers, prepares it, and lets it calm down.
func (i *instance) getReady(ctx context.Context) error {
	for {
		if _, err := i.call(ctx, request{path: i.ready}); err == nil {
			break
		}
		if err := i.wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	for _, r := range i.prepare {
		if _, err := i.call(ctx, r); err != nil {
			return err
		}
	}
	return i.quiet(ctx, i.data())
}

// start runs the program, for the first time or again.
func (i *instance) start(ctx context.Context) (err error) {
	if i.addr, err = freePort(); err != nil {
		return err
	}
	args := i.command(i.dir, i.addr, i.m)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = i.dir
	cmd.Env = os.Environ()
	if i.env != nil {
		cmd.Env = append(cmd.Env, i.env(i.dir, i.addr)...)
	}
	i.process, err = launch(cmd, filepath.Join(i.dir, "log"))
	return err
}

// wait pauses before another try, and fails when the process has ended.
func (i *instance) wait(ctx context.Context, d time.Duration) error {
	select {
	case err := <-i.done:
		return fmt.Errorf("it ended: %v\n%s", err, i.tail())
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// data is the directory of the database.
func (i *instance) data() string { return filepath.Join(i.dir, "data") }

// close stops the server and removes its data.
func (i *instance) close() error {
	err := i.end(syscall.SIGTERM)
	i.client.CloseIdleConnections()
	return errors.Join(err, os.RemoveAll(i.dir))
}

// call sends a request and returns the body of a 2xx or 3xx answer.
func (i *instance) call(ctx context.Context, r request) ([]byte, error) {
	var body bytes.Buffer
	_, err := i.send(ctx, r, nil, &body)
	return body.Bytes(), err
}

// send posts text, or the body of r when it is nil, and copies the answer. It returns how long both took together.
func (i *instance) send(ctx context.Context, r request, text []byte, answer io.Writer) (time.Duration, error) {
	if text == nil && r.body != "" {
		text = []byte(r.body)
	}
	method, body := http.MethodGet, io.Reader(nil)
	if text != nil {
		method, body = http.MethodPost, bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://"+i.addr+r.path, body)
	if err != nil {
		return 0, err
	}
	if r.contentType != "" {
		q.Header.Set("Content-Type", r.contentType)
	}
	if r.accept != "" {
		q.Header.Set("Accept", r.accept)
	}
	if i.authorize != nil {
		i.authorize(q)
	}
	start := time.Now()
	a, err := i.client.Do(q)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	switch {
	case a.StatusCode == http.StatusNotImplemented || a.StatusCode == http.StatusNotFound:
		return 0, fmt.Errorf("%s: %w", a.Status, errUnknown)
	case a.StatusCode >= 400:
		text, _ := io.ReadAll(io.LimitReader(a.Body, 500))
		return 0, fmt.Errorf("%s%.100s: %s: %s", i.addr, r.path, a.Status, text)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{answer}, a.Body, make([]byte, 256<<10))
	return time.Since(start), err
}

// compact lets the server flush and merge all it has.
func (i *instance) compact(ctx context.Context) error {
	for _, r := range i.settle {
		if _, err := i.call(ctx, r); errors.Is(err, errUnknown) {
			progress("  %s %s: %v", i.title, r.path, err)
		} else if err != nil {
			return err
		}
	}
	if err := sleep(ctx, i.rest); err != nil {
		return err
	}
	return i.quiet(ctx, i.data())
}
