package vfs

import (
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// memory is a Mapping over mapped memory. The memory is released when the last view ends after Close.
type memory struct {
	b       []byte
	release func([]byte) error
	refs    atomic.Int64 // 1 for the owner until Close, 1 for each running view
	closed  atomic.Bool
}

func newMemory(b []byte, release func([]byte) error) *memory {
	m := &memory{b: b, release: release}
	m.refs.Store(1)
	return m
}

func (m *memory) Len() int64 { return int64(len(m.b)) }

func (m *memory) acquire() bool {
	for {
		n := m.refs.Load()
		if n == 0 || m.closed.Load() {
			return false
		}
		if m.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (m *memory) drop() error {
	if m.refs.Add(-1) > 0 {
		return nil
	}
	return m.release(m.b)
}

func (m *memory) Close() error {
	if m.closed.Swap(true) {
		return ErrClosed
	}
	return m.drop()
}

// View is the one place where a fault in mapped memory turns from a signal into an error. A panic that is not a fault inside this mapping is a
// bug of the caller and goes on.
func (m *memory) View(off, n int64, f func([]byte) error) (err error) {
	if err := checkView(off, n, m.Len()); err != nil {
		return err
	}
	if !m.acquire() {
		return ErrClosed
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if dropped := m.drop(); err == nil {
			err = dropped
		}
		if r == nil {
			return
		}
		fault, ok := r.(interface{ Addr() uintptr }) // runtime.Error of a memory fault, see debug.SetPanicOnFault
		if !ok || !m.contains(fault.Addr()) {
			panic(r)
		}
		err = fmt.Errorf("byte %d: %w", fault.Addr()-m.base(), ErrFault)
	}()
	return f(m.b[off : off+n : off+n])
}

func (m *memory) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.b))) }

func (m *memory) contains(addr uintptr) bool {
	return addr >= m.base() && addr-m.base() < uintptr(len(m.b))
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) { return readView(m, p, off) }

// readView is ReadAt in terms of View.
func readView(m Mapping, p []byte, off int64) (int, error) {
	if off < 0 || off > m.Len() {
		return 0, checkView(off, 0, m.Len())
	}
	n := min(int64(len(p)), m.Len()-off)
	err := m.View(off, n, func(b []byte) error { copy(p, b); return nil })
	switch {
	case err != nil:
		return 0, err
	case n < int64(len(p)):
		return int(n), io.EOF
	}
	return int(n), nil
}

// windows is a Mapping that reads each view into a buffer: for address spaces too small to map a store, and for file systems without memory
// to map.
type windows struct {
	r      io.ReaderAt
	close  func() error
	length int64
	// mu is held shared by running views so that Close does not pull the file from under them.
	mu     sync.RWMutex
	closed bool
}

// windowPool holds *[]byte of mixed sizes. Buffers above maxPooled are left to the collector, so a single huge frame does not stay resident.
var windowPool = sync.Pool{New: func() any { return new([]byte) }}

const maxPooled = 1 << 20

func (w *windows) Len() int64 { return w.length }

func (w *windows) View(off, n int64, f func([]byte) error) error {
	if err := checkView(off, n, w.length); err != nil {
		return err
	}
	buf := windowPool.Get().(*[]byte)
	if int64(cap(*buf)) < n {
		*buf = make([]byte, n)
	}
	b := (*buf)[:n]
	defer func() {
		if cap(*buf) <= maxPooled {
			windowPool.Put(buf)
		}
	}()
	if err := w.fill(b, off); err != nil {
		return err
	}
	return f(b)
}

// fill holds the lock only while it reads: f may take as long as it likes, and may view again.
func (w *windows) fill(b []byte, off int64) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return ErrClosed
	}
	n, err := w.r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	return fmt.Errorf("byte %d: %w (%w)", off+int64(n), ErrFault, err)
}

func (w *windows) ReadAt(p []byte, off int64) (int, error) { return readView(w, p, off) }

func (w *windows) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.closed = true
	return w.close()
}
