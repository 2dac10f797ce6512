package wasm

import (
	"context"
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
