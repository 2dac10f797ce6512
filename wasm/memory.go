package wasm

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// budget counts bytes against a limit.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// linearMemory is the memory of one instance: a reservation that grows in place and is charged as it grows. The runtime
// frees it when it closes the instance.
type linearMemory struct {
	block   []byte
	limit   uint64
	freed   bool
	charged int64
	budget  *budget
	plugin  *atomic.Int64 // bytes of all instances of the plugin
}

// memorySize is what a module begins with, and what it may grow to, in bytes.
type memorySize struct{ least, limit int64 }

// newLinearMemory reserves the limit and charges what the module begins with, so that the runtime's first request cannot fail: it has no way to
// refuse it but a panic.
func newLinearMemory(p *Plugin, size memorySize) (*linearMemory, error) {
	if !p.host.budget.take(size.least) {
		return nil, errNoBudget
	}
	block, err := reserve(int(size.limit))
	if err != nil {
		p.host.budget.give(size.least)
		return nil, err
	}
	p.memory.Add(size.least)
	return &linearMemory{block: block, limit: uint64(size.limit), charged: size.least, budget: &p.host.budget, plugin: &p.memory}, nil
}

// Allocate hands the reservation to the runtime; a module has one memory.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate grows the memory; nil tells the guest that there is no more.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit || m.freed {
		return nil
	}
	if more := int64(size) - m.charged; more > 0 {
		if !m.budget.take(more) {
			return nil
		}
		m.charged += more
		m.plugin.Add(more)
	}
	m.block = grow(m.block, int(size))
	return m.block
}

// Free gives the memory back. It may be called again.
func (m *linearMemory) Free() {
	if m.freed {
		return
	}
	m.freed = true
	unreserve(m.block)
	m.budget.give(m.charged)
	m.plugin.Add(-m.charged)
	m.block, m.charged = nil, 0
}
