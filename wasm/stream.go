package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// job is one call with the stream that it belongs to.
type job struct {
	kind     abi.Kind
	open     string // JSON of the OpenRequest, "" for none
	in       []byte
	flags    uint32
	received int64
	deadline time.Duration
	openOnly bool
	session  *session
}

// Stream feeds one input to a plugin. It is used by one goroutine and must be closed.
type Stream struct {
	plugin   *Plugin
	manifest *abi.Manifest
	job      job
	place    place
	pinned   *pooled // of a stateful plugin
	failed   error   // a stateful stream ends with its first error
	offset   int64
	batch    abi.Batch
	closed   bool
}

// Open begins a stream: the plugin checks the configuration. A stateful plugin gives it an instance of its own. Capabilities are not
// available in it.
func (p *Plugin) Open(ctx context.Context, r abi.OpenRequest) (*Stream, error) {
	return p.open(ctx, r, place{}, func() *session { return nil })
}

// OpenAs is OpenFrom for the server itself, with the given rights.
func (p *Plugin) OpenAs(ctx context.Context, uploader core.Grants, r abi.OpenRequest) (*Stream, error) {
	return p.OpenFrom(ctx, core.Origin{Grants: uploader}, r)
}

// OpenFrom is Open for an uploader, with whose rights the capabilities of the plugin read, and who counts against Options.Streams. Whoever writes the output
// of a call writes Stream.Remembered with it, in one batch.
func (p *Plugin) OpenFrom(ctx context.Context, uploader core.Origin, r abi.OpenRequest) (*Stream, error) {
	return p.open(ctx, r, placeOf(uploader), func() *session { return p.newSession(uploader.Grants) })
}

// open asks for the session when the plugin is loaded: only then it is known what was granted.
func (p *Plugin) open(ctx context.Context, r abi.OpenRequest, at place, uploader func() *session) (*Stream, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("wasm: open request for %s: %w", p.name, err)
	}
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	s := &Stream{plugin: p, place: at, job: job{kind: r.Kind, open: string(text), received: r.Received, openOnly: true, session: uploader()}}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.job.openOnly = false
	return s, nil
}

func (s *Stream) start(ctx context.Context) error {
	p := s.plugin
	p.mu.Lock()
	s.manifest = p.mu.manifest
	p.mu.Unlock()
	if !s.manifest.Has(s.job.kind) {
		return faultf(p.name, FaultUnsupported, "it is no %s, but %v", s.job.kind, s.manifest.Kinds)
	}
	s.job.deadline = p.host.options.deadline(s.job.kind, s.manifest)
	if !s.manifest.Stateful {
		_, err := p.try(ctx, &s.job)
		return err
	}
	p.mu.Lock()
	refusal := p.mu.streams.take(s.place, p.host.options.Streams)
	p.mu.Unlock()
	if refusal != "" {
		return &Error{Plugin: p.name, Fault: FaultBusy, Text: refusal, RetryAfter: time.Second}
	}
	g, err := p.take(ctx, anyGuest)
	if err == nil {
		g.opened = ""
		if _, err = p.run(ctx, g, &s.job); err == nil {
			s.pinned = g
			return nil
		}
		p.give(g, err)
	}
	p.mu.Lock()
	p.mu.streams.give(s.place)
	p.mu.Unlock()
	return err
}

// Manifest is that of the plugin.
func (s *Stream) Manifest() *abi.Manifest { return s.manifest }

// Write hands a chunk over and returns the commands it gave, valid until the next Write. The last chunk, which may be empty,
// has abi.FlagLast. After an error a stateful stream is over: Error.Offset says how many bytes had been taken.
func (s *Stream) Write(ctx context.Context, chunk []byte, flags uint32) (*abi.Batch, error) {
	text, err := s.Call(ctx, chunk, flags)
	if err != nil {
		return nil, err
	}
	if err := decode(&s.batch, text, s.plugin.host.options.Limits); err != nil {
		err := faultf(s.plugin.name, FaultOutput, "%w", err)
		err.DeadLetter, err.Offset = true, s.offset-int64(len(chunk))
		s.plugin.failed(err)
		if s.pinned != nil {
			s.failed = err
		}
		return nil, err
	}
	return &s.batch, nil
}

// Remembered is what the plugin remembers by the last call, to be written in one batch with the output of that call. It is valid until the
// next call.
func (s *Stream) Remembered() []core.DocChange { return s.job.session.changes() }

// Call is Write for the raw result, which is still to be decoded.
func (s *Stream) Call(ctx context.Context, in []byte, flags uint32) (string, error) {
	if s.failed != nil {
		return "", s.failed
	}
	s.job.in, s.job.flags = in, flags
	var text string
	var err error
	if s.pinned == nil {
		text, err = s.plugin.try(ctx, &s.job)
	} else {
		text, err = s.plugin.run(ctx, s.pinned, &s.job)
	}
	if e, ok := err.(*Error); ok {
		e.Offset = s.offset
		e.DeadLetter = e.Fault.loses()
	}
	if err != nil {
		if s.pinned != nil {
			s.failed = err
		}
		return "", err
	}
	s.offset += int64(len(in))
	return text, nil
}

// Close gives the instance back. A stream that did not reach its last chunk is dropped by the guest when it is opened anew.
func (s *Stream) Close() {
	if s.closed {
		return
	}
	s.closed = true
	p := s.plugin
	if s.pinned != nil {
		s.pinned.opened = ""
		p.give(s.pinned, s.failed)
		p.mu.Lock()
		p.mu.streams.give(s.place)
		p.mu.Unlock()
	}
	s.job.session.end()
	s.failed = errStreamClosed
	p.end()
}

var errStreamClosed = errors.New("wasm: the stream is closed")

// openAlert opens renderers, which have no stream.
const openAlert = `{"kind":"alert"}`

// Alert renders events, the flat form of abi.AppendEvents, and returns the renderings in binary form.
func (p *Plugin) Alert(ctx context.Context, events []byte) ([]byte, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.end()
	p.mu.Lock()
	m := p.mu.manifest
	p.mu.Unlock()
	now := p.host.options.Now().UnixMilli()
	text, err := p.try(ctx, &job{kind: abi.KindAlert, open: openAlert, in: events, received: now, deadline: p.host.options.deadline(abi.KindAlert, m)})
	return []byte(text), err
}

// try runs a job on any guest, and once more on a fresh one when that guest broke. The caller is between begin and end.
func (p *Plugin) try(ctx context.Context, j *job) (string, error) {
	if err := p.host.enter(ctx, p.slots); err != nil {
		return "", err
	}
	defer p.host.leave(p.slots)
	text, err := p.once(ctx, j, anyGuest)
	if err == nil {
		return text, nil
	}
	if faultOf(err).again() {
		p.mu.Lock()
		p.mu.stats.Retries++
		p.mu.Unlock()
		text, err = p.once(ctx, j, freshGuest)
	}
	return text, err
}

func (p *Plugin) once(ctx context.Context, j *job, fresh freshness) (string, error) {
	g, err := p.take(ctx, fresh)
	if err != nil {
		return "", err
	}
	text, err := p.run(ctx, g, j)
	p.give(g, err)
	return text, err
}

// run does a job on g and counts it.
func (p *Plugin) run(ctx context.Context, g *pooled, j *job) (string, error) {
	if err := p.host.enter(ctx, p.host.running); err != nil {
		return "", err
	}
	text, err := g.do(ctx, j)
	p.host.leave(p.host.running)
	if err != nil {
		j.session.explain(err)
		j.session.reset()
		p.failed(err)
	}
	p.mu.Lock()
	p.mu.stats.Calls++
	p.mu.stats.Ticks += g.ticks() - g.ticked
	p.mu.Unlock()
	g.ticked = g.ticks()
	return text, err
}

// do opens g for the job's stream, unless it is, and does the job.
func (g *pooled) do(ctx context.Context, j *job) (string, error) {
	c := callArgs{Context: ctx, deadline: j.deadline, received: j.received, session: j.session}
	j.session.begin(ctx)
	// What a guest read while it was opened is for the eyes of that uploader.
	if j.open != "" && (g.opened != j.open || g.session != j.session) {
		g.opened = ""
		if err := g.open(c, []byte(j.open)); err != nil {
			return "", err
		}
		g.opened, g.session = j.open, j.session
	}
	if j.openOnly {
		return "", nil
	}
	j.session.remember()
	return g.call(c, j.kind, j.in, j.flags)
}
