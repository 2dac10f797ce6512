package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Plugin is one registered plugin, loaded or not. It is safe for concurrent use.
type Plugin struct {
	name     string
	host     *Host
	load     func(context.Context) (maker, error)
	settings json.RawMessage
	log      *guestLog
	memory   atomic.Int64  // linear memory of all instances
	loading  chan struct{} // one token
	slots    chan struct{} // a token for each stateless call in work
	kept     kept          // names of what it remembers

	mu struct {
		sync.Mutex // after Host.mu; never held while a guest runs
		maker      maker
		manifest   *abi.Manifest // of the last load; outlives unloading
		idle       []*pooled
		using      int // calls and streams in work: nothing is unloaded under them
		streams    places
		instances  int
		used       time.Time // end of the last use
		retired    bool      // unload as soon as nothing is in work
		granted    []string  // capabilities that the manifest names and the operator granted
		breaker    breaker
		stats      Stats
	}
}

// pooled is a guest with what the pool knows about it.
type pooled struct {
	guest
	opened  string   // request of the last open, "" for none
	session *session // of the last open
	ticked  int64    // ticks already counted
}

// Stats are counters since the plugin was registered, and its state.
type Stats struct {
	Name, Version string
	Loaded        bool
	Instances     int   // alive
	Streams       int   // of them pinned
	MemoryBytes   int64 // linear memory of all instances
	Calls         int64 // into instances: chunks, batches and openings
	Failures      int64 // calls that returned an error, retries included
	Panics        int64 // recovered by the guest
	Kills         int64 // traps, exits and deadlines
	Retries       int64 // chunks tried again on a fresh instance
	Recycled      int64 // instances replaced for memory or age
	Ticks         int64 // CPU: one for 10,000 steps or a call of the host
	DroppedLines  int64 // of the log
	BlockedUntil  time.Time
}

// start makes p ready for use under h.
func (p *Plugin) start(h *Host) {
	if p.host != nil {
		return
	}
	p.host = h
	p.log = &guestLog{plugin: p.name, to: h.options.Log, now: h.options.Now}
	p.loading, p.slots = make(chan struct{}, 1), make(chan struct{}, poolSize())
}

// Name is that under which the plugin was registered.
func (p *Plugin) Name() string { return p.name }

// Stats returns a copy of the counters.
func (p *Plugin) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.stats
	s.Name, s.Loaded, s.Instances, s.Streams = p.name, p.mu.maker != nil, p.mu.instances, p.mu.streams.open
	if p.mu.manifest != nil {
		s.Version = p.mu.manifest.Version
	}
	s.MemoryBytes, s.DroppedLines, s.BlockedUntil = p.memory.Load(), p.log.droppedLines(), p.mu.breaker.until
	return s
}

// Manifest returns the plugin's own description, loading the plugin when it never was.
func (p *Plugin) Manifest(ctx context.Context) (*abi.Manifest, error) {
	p.mu.Lock()
	m := p.mu.manifest
	p.mu.Unlock()
	if m != nil {
		return m, nil
	}
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.manifest, nil
}

// begin declares a use and loads the plugin. Each begin without an error has an end.
func (p *Plugin) begin(ctx context.Context) error {
	p.mu.Lock()
	if wait := p.mu.breaker.until.Sub(p.host.options.Now()); wait > 0 {
		p.mu.Unlock()
		return &Error{Plugin: p.name, Fault: FaultBusy, Text: "stopped too often, it is paused", RetryAfter: wait}
	}
	p.mu.using++
	loaded := p.mu.maker != nil
	p.mu.Unlock()
	if loaded {
		return nil
	}
	if err := p.ensureLoaded(ctx); err != nil {
		p.end()
		return err
	}
	return nil
}

func (p *Plugin) end() {
	p.mu.Lock()
	p.mu.using--
	p.mu.used = p.host.options.Now()
	unload := p.mu.retired && p.mu.using == 0
	p.mu.Unlock()
	if unload {
		p.unload()
	}
}

// ensureLoaded compiles the module and starts the first instance, which tells the manifest.
func (p *Plugin) ensureLoaded(ctx context.Context) error {
	if err := p.host.enter(ctx, p.loading); err != nil {
		return err
	}
	defer p.host.leave(p.loading)
	p.mu.Lock()
	loaded := p.mu.maker != nil
	p.mu.Unlock()
	if loaded {
		return nil // by whoever held the token before
	}
	m, err := p.load(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.mu.manifest = nil // the source may have changed
	p.mu.Unlock()
	first, err := p.instantiate(ctx, m)
	if err != nil {
		m.release()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.maker = m
	p.mu.idle = append(p.mu.idle, first)
	return nil
}

// instantiate starts a guest within the init deadline.
func (p *Plugin) instantiate(ctx context.Context, m maker) (*pooled, error) {
	if err := p.host.enter(ctx, p.host.running); err != nil {
		return nil, err
	}
	defer p.host.leave(p.host.running)
	end := p.host.options.Now().Add(p.host.options.InitDeadline)
	c := func() callArgs {
		now := p.host.options.Now()
		return callArgs{Context: ctx, deadline: end.Sub(now), received: now.UnixMilli()}
	}
	g, err := m.make(c(), p)
	if errors.Is(err, errNoBudget) && p.host.evict() {
		g, err = m.make(c(), p)
	}
	if err != nil {
		p.failed(err)
		return nil, err
	}
	if err := p.introduce(c, g, m); err != nil {
		g.close()
		p.failed(err)
		return nil, err
	}
	p.mu.Lock()
	p.mu.instances++
	p.mu.Unlock()
	return &pooled{guest: g}, nil
}

// introduce reads the manifest of what m made, the first time, and hands over the settings.
func (p *Plugin) introduce(c func() callArgs, g guest, m maker) error {
	p.mu.Lock()
	known := p.mu.manifest
	p.mu.Unlock()
	if known == nil {
		text, err := g.describe(c())
		if err != nil {
			return err
		}
		if known, err = abi.ParseManifest(text); err != nil {
			return faultf(p.name, FaultModule, "%w", err)
		}
		for _, name := range m.imports() {
			if !slices.Contains(known.Capabilities, name) {
				return faultf(p.name, FaultModule, "it imports %s.%s, but its manifest does not name the capability", abi.HostModule, name)
			}
		}
		grants := p.host.grants(p.name)
		p.mu.Lock()
		p.mu.manifest = known
		p.mu.granted = slices.DeleteFunc(slices.Clone(known.Capabilities), func(c string) bool { return !slices.Contains(grants, c) })
		p.mu.Unlock()
	}
	return g.init(c(), p.settings)
}

// lowerMemoryMB is the manifest's own limit, 0 when it is not known yet or has none.
func (p *Plugin) lowerMemoryMB() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.manifest == nil {
		return 0
	}
	return p.mu.manifest.Limits.MemoryMB
}

// take returns an idle guest or starts one.
func (p *Plugin) take(ctx context.Context, fresh freshness) (*pooled, error) {
	p.mu.Lock()
	m := p.mu.maker
	if n := len(p.mu.idle); n > 0 && fresh == anyGuest {
		g := p.mu.idle[n-1]
		p.mu.idle = p.mu.idle[:n-1]
		p.mu.Unlock()
		return g, nil
	}
	p.mu.Unlock()
	return p.instantiate(ctx, m)
}

// freshness is what kind of guest a caller wants.
type freshness uint8

const (
	anyGuest freshness = iota
	freshGuest
)

// give returns a guest after a use that ended with err.
func (p *Plugin) give(g *pooled, err error) {
	broken := err != nil && faultOf(err).spoils()
	p.mu.Lock()
	worn := !broken && g.worn()
	if worn {
		p.mu.stats.Recycled++
	}
	if !broken && !worn && len(p.mu.idle) < cap(p.slots) {
		p.mu.idle = append(p.mu.idle, g)
		p.mu.Unlock()
		return
	}
	p.mu.instances--
	p.mu.Unlock()
	g.close()
}

// failed counts a failure and tells the breaker of kills.
func (p *Plugin) failed(err error) {
	fault := faultOf(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.stats.Failures++
	switch {
	case fault == FaultPanic:
		p.mu.stats.Panics++
	case fault.kills():
		p.mu.stats.Kills++
		p.mu.breaker.kill(p.host.options.Now())
	}
}

// faultOf classifies err; what is no *Error comes from a context.
func faultOf(err error) Fault {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Fault
	}
	return FaultBusy
}

// retire unloads p as soon as nothing uses it.
func (p *Plugin) retire() {
	p.mu.Lock()
	p.mu.retired = true
	p.mu.Unlock()
	p.unload()
}

// unload frees instances and code unless they are in use, and reports whether it did.
func (p *Plugin) unload() bool {
	p.mu.Lock()
	if p.mu.using > 0 || p.mu.maker == nil {
		p.mu.Unlock()
		return false
	}
	idle, m := p.mu.idle, p.mu.maker
	p.mu.idle, p.mu.maker = nil, nil
	p.mu.instances -= len(idle)
	p.mu.Unlock()
	for _, g := range idle {
		g.close()
	}
	m.release()
	return true
}

// breaker pauses a plugin that is killed again and again.
type breaker struct {
	kills   []time.Time // of the last killWindow
	last    time.Time
	backoff time.Duration // of the last pause
	until   time.Time
}

func (b *breaker) kill(now time.Time) {
	if now.Sub(b.last) > max(forgetAfter, 2*b.backoff) {
		b.backoff = 0
	}
	b.last = now
	recent := b.kills[:0]
	for _, t := range b.kills {
		if now.Sub(t) < killWindow {
			recent = append(recent, t)
		}
	}
	b.kills = append(recent, now)
	if len(b.kills) < killsToOpen {
		return
	}
	b.kills = b.kills[:0]
	b.backoff = min(max(2*b.backoff, time.Minute), maxBackoff)
	b.until = now.Add(b.backoff)
}
