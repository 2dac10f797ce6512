package wasm

import (
	"context"
	"errors"
	"slices"
	"time"
)

// watchEvery is how often Run looks; a plugin stays loaded that much longer at most.
const watchEvery = 30 * time.Second

// Run unloads plugins that were idle for five minutes, until ctx ends. A server calls it once; without it everything works,
// but nothing is unloaded.
func (h *Host) Run(ctx context.Context) error {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.closed:
			return nil
		case <-t.C:
			h.unloadIdle(h.options.Now().Add(-idleUnload))
		}
	}
}

// Warm loads every plugin once and unloads it again, so that its code lies in the cache folder when it is needed: compiling a Go plugin
// takes seconds, loading it from the cache 0.1 s. It returns the faults of all plugins.
func (h *Host) Warm(ctx context.Context) error {
	var faults []error
	for _, p := range h.Plugins() {
		if _, err := p.Manifest(ctx); err != nil {
			faults = append(faults, err)
			continue
		}
		p.unload()
	}
	return errors.Join(faults...)
}

// unloadIdle unloads what was last used before t.
func (h *Host) unloadIdle(t time.Time) {
	for _, p := range h.Plugins() {
		p.mu.Lock()
		idle := p.mu.used.Before(t)
		p.mu.Unlock()
		if idle {
			p.unload()
		}
	}
}

// evict unloads the plugin that has been idle for the longest time, and reports whether there was one.
func (h *Host) evict() bool {
	type candidate struct {
		plugin *Plugin
		used   time.Time
	}
	var cs []candidate
	for _, p := range h.Plugins() {
		p.mu.Lock()
		if p.mu.using == 0 && p.mu.maker != nil {
			cs = append(cs, candidate{p, p.mu.used})
		}
		p.mu.Unlock()
	}
	slices.SortFunc(cs, func(a, b candidate) int { return a.used.Compare(b.used) })
	for _, c := range cs {
		if c.plugin.unload() {
			return true
		}
	}
	return false
}

// makeRoom takes n bytes of the budget, at the cost of idle plugins.
func (h *Host) makeRoom(n int64) bool {
	for !h.budget.take(n) {
		if !h.evict() {
			return false
		}
	}
	return true
}
