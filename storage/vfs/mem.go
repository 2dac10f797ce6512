package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// SectorSize is the unit a power cut keeps or loses: disks promise that much and no more.
const SectorSize = 512

// Mem is a file system in memory that remembers which bytes and which names were synced, so that a test can cut the power (Crash) or stop the
// world after any operation (Prefix). Directories themselves are durable once made; the names in them are not.
type Mem struct {
	mu      sync.Mutex
	names   map[string]*inode // what a running process sees
	durable map[string]*inode // what SyncDir has made safe
	dirs    map[string]bool
	pending []dirChange // since the last SyncDir of their directory, in order
	locks   map[string]bool
	limit   int64 // bytes that files may take, 0 = no limit
	used    int64
	nextID  int
	log     []func(*Mem) // one entry per operation that changes something, when recording
	record  bool
}

// inode is one file: data is what the page cache holds, disk what a power cut is sure to leave.
type inode struct {
	id      int
	data    []byte
	disk    []byte
	pending []change
}

// change is one write or, when resize is set, a new length (off).
type change struct {
	off    int64
	b      []byte
	resize bool
}

// dirChange maps names to files at once; a nil file means that the name goes away.
type dirChange struct {
	dir string
	set map[string]*inode
}

// NewMem returns an empty file system with the root directories "/" and ".".
func NewMem() *Mem {
	return &Mem{
		names: map[string]*inode{}, durable: map[string]*inode{}, locks: map[string]bool{},
		dirs: map[string]bool{"/": true, ".": true},
	}
}

// SetLimit makes writes that need more than limit bytes in all files fail with ErrNoSpace after the part that fits; 0 lifts the limit.
func (m *Mem) SetLimit(limit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = limit
}

// Used returns the bytes in all named files.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Record makes m remember every operation from here on, for Ops and Prefix. Call it on an empty Mem.
func (m *Mem) Record() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = true
}

// Ops returns the number of recorded operations: create, write, truncate, rename, remove, mkdir, sync, syncdir.
func (m *Mem) Ops() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.log)
}

// Prefix returns a new Mem in the state after the first n recorded operations: what a process that died there leaves behind. Crash of the
// result is what a power cut at that moment leaves.
func (m *Mem) Prefix(n int) *Mem {
	m.mu.Lock()
	log := m.log[:n:n]
	m.mu.Unlock()
	p := NewMem()
	for _, op := range log {
		op(p)
	}
	return p
}

// Clone returns what the death of the process leaves: every completed operation, synced or not. Later operations on m do not show in it.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.limit, c.used, c.nextID = m.limit, m.used, m.nextID
	maps.Copy(c.dirs, m.dirs)
	copied := map[*inode]*inode{nil: nil}
	for _, f := range m.reachable() {
		if copied[f] == nil {
			copied[f] = &inode{id: f.id, data: slices.Clone(f.data), disk: slices.Clone(f.disk), pending: slices.Clone(f.pending)}
		}
	}
	names := func(from map[string]*inode) map[string]*inode {
		to := map[string]*inode{}
		for path, f := range from {
			to[path] = copied[f]
		}
		return to
	}
	c.names, c.durable = names(m.names), names(m.durable)
	for _, ch := range m.pending {
		c.pending = append(c.pending, dirChange{dir: ch.dir, set: names(ch.set)})
	}
	return c
}

// did records an operation for Prefix. Callers hold mu.
func (m *Mem) did(op func(*Mem)) {
	if m.record {
		m.log = append(m.log, op)
	}
}

// Crash returns what a power cut leaves: all that was synced, and of the rest whatever r decides. A write since the last Sync is kept, lost, or
// torn into sectors of which each is kept or lost; a change of a name is kept or lost, in order on some disks and out of order on others.
func (m *Mem) Crash(r *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.limit, c.nextID = m.limit, m.nextID
	maps.Copy(c.dirs, m.dirs)
	names := maps.Clone(m.durable)
	ordered, cut := r.IntN(2) == 0, r.IntN(len(m.pending)+1)
	for i, ch := range m.pending {
		if keep := ordered && i < cut || !ordered && r.IntN(2) == 0; keep {
			apply(names, ch.set)
		}
	}
	copied := map[*inode]*inode{}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		old := names[path]
		if copied[old] == nil {
			b := old.crash(r)
			copied[old] = &inode{id: old.id, data: b, disk: slices.Clone(b)}
		}
		c.names[path] = copied[old]
		c.durable[path] = copied[old]
		c.used += int64(len(copied[old].data))
	}
	return c
}

// crash returns the bytes of f after a power cut.
func (f *inode) crash(r *rand.Rand) []byte {
	b := slices.Clone(f.disk)
	for _, ch := range f.pending {
		fate := r.IntN(3) // 0 lost, 1 kept, 2 torn
		switch {
		case fate == 0:
		case fate == 1 || ch.resize:
			b = ch.apply(b)
		default:
			for _, s := range ch.sectors() {
				if r.IntN(2) == 0 {
					b = s.apply(b)
				}
			}
		}
	}
	return b
}

// sectors cuts a write at the borders of sectors.
func (ch change) sectors() []change {
	var out []change
	for len(ch.b) > 0 {
		n := min(SectorSize-int(ch.off%SectorSize), len(ch.b))
		out = append(out, change{off: ch.off, b: ch.b[:n]})
		ch.off, ch.b = ch.off+int64(n), ch.b[n:]
	}
	return out
}

func (ch change) apply(b []byte) []byte {
	if ch.resize {
		return resize(b, ch.off)
	}
	if end := ch.off + int64(len(ch.b)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[ch.off:], ch.b)
	return b
}

func resize(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		clear(b[n:]) // bytes that come back when the file grows again are zero
		return b[:n]
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

func apply(names map[string]*inode, set map[string]*inode) {
	for path, f := range set {
		if f == nil {
			delete(names, path)
		} else {
			names[path] = f
		}
	}
}

// change applies set to the running view and leaves it pending for SyncDir.
func (m *Mem) change(path string, set map[string]*inode) {
	m.pending = append(m.pending, dirChange{dir: filepath.Dir(path), set: set})
	before := m.total()
	apply(m.names, set)
	m.used += m.total() - before
}

func (m *Mem) total() (n int64) {
	for _, f := range m.names {
		n += int64(len(f.data))
	}
	return n
}

func notExist(op, path string) error { return &fs.PathError{Op: op, Path: path, Err: ErrNotExist} }

func (m *Mem) Open(path string, mode Mode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	f := m.names[path]
	switch {
	case mode != Create && f == nil || !m.dirs[filepath.Dir(path)]:
		return nil, notExist("open", path)
	case m.dirs[path]:
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	case mode == Create:
		f = m.create(path)
	}
	return &memFile{m: m, f: f, path: path, readOnly: mode == ReadOnly}, nil
}

// create makes or empties the file at path.
func (m *Mem) create(path string) *inode {
	m.did(func(m *Mem) { m.create(path) })
	if f := m.names[path]; f != nil {
		m.used -= int64(len(f.data))
		f.put(change{resize: true})
		return f
	}
	f := &inode{id: m.nextID}
	m.nextID++
	m.change(path, map[string]*inode{path: f})
	return f
}

func (f *inode) put(ch change) {
	f.data = ch.apply(f.data)
	f.pending = append(f.pending, ch)
}

func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rename(filepath.Clean(from), filepath.Clean(to))
}

func (m *Mem) rename(from, to string) error {
	f := m.names[from]
	if f == nil || !m.dirs[filepath.Dir(to)] {
		return notExist("rename", from)
	}
	m.did(func(m *Mem) { _ = m.rename(from, to) })
	if from != to {
		m.change(to, map[string]*inode{from: nil, to: f})
	}
	return nil
}

func (m *Mem) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remove(filepath.Clean(path))
}

func (m *Mem) remove(path string) error {
	switch {
	case m.dirs[path]:
		for other := range m.children(path) {
			return &fs.PathError{Op: "remove", Path: path, Err: fmt.Errorf("directory holds %s", other)}
		}
		delete(m.dirs, path)
	case m.names[path] != nil:
		m.change(path, map[string]*inode{path: nil})
	default:
		return notExist("remove", path)
	}
	m.did(func(m *Mem) { _ = m.remove(path) })
	return nil
}

// children returns the entries directly in dir.
func (m *Mem) children(dir string) map[string]Info {
	found := map[string]Info{}
	for path, f := range m.names {
		if filepath.Dir(path) == dir {
			found[path] = Info{Name: filepath.Base(path), Size: int64(len(f.data))}
		}
	}
	for path := range m.dirs {
		if path != dir && filepath.Dir(path) == dir {
			found[path] = Info{Name: filepath.Base(path), Dir: true}
		}
	}
	return found
}

func (m *Mem) List(dir string) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = filepath.Clean(dir)
	if !m.dirs[dir] {
		return nil, notExist("list", dir)
	}
	return slices.SortedFunc(maps.Values(m.children(dir)), func(a, b Info) int { return strings.Compare(a.Name, b.Name) }), nil
}

func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mkdirAll(filepath.Clean(dir))
}

func (m *Mem) mkdirAll(dir string) error {
	m.did(func(m *Mem) { _ = m.mkdirAll(dir) })
	for d := dir; !m.dirs[d]; d = filepath.Dir(d) {
		if m.names[d] != nil {
			return &fs.PathError{Op: "mkdir", Path: d, Err: fs.ErrExist}
		}
		m.dirs[d] = true
	}
	return nil
}

func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.syncDir(filepath.Clean(dir))
}

func (m *Mem) syncDir(dir string) error {
	if !m.dirs[dir] {
		return notExist("sync", dir)
	}
	m.did(func(m *Mem) { _ = m.syncDir(dir) })
	m.pending = slices.DeleteFunc(m.pending, func(ch dirChange) bool {
		if ch.dir == dir {
			apply(m.durable, ch.set)
		}
		return ch.dir == dir
	})
	return nil
}

func (m *Mem) Lock(path string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	if m.locks[path] {
		return nil, fmt.Errorf("lock %s: %w", path, ErrLocked)
	}
	if m.names[path] == nil {
		m.create(path)
	}
	m.locks[path] = true
	return memLock{m, path}, nil
}

type memLock struct {
	m    *Mem
	path string
}

func (l memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.locks, l.path)
	return nil
}

func (m *Mem) Stat(path string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	if m.dirs[path] {
		return Info{Name: filepath.Base(path), Dir: true}, nil
	}
	if f := m.names[path]; f != nil {
		return Info{Name: filepath.Base(path), Size: int64(len(f.data))}, nil
	}
	return Info{}, notExist("stat", path)
}

// memTotal is the size that a Mem without a limit claims to have.
const memTotal = 1 << 40

func (m *Mem) Free(string) (Space, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := m.limit
	if total == 0 {
		total = memTotal
	}
	return Space{Free: max(0, total-m.used), Total: total}, nil
}

// memFile is an open file of a Mem; m.mu guards everything.
type memFile struct {
	m        *Mem
	f        *inode
	path     string
	readOnly bool
	closed   bool
}

func (h *memFile) check(op string) error {
	if h.closed {
		return &fs.PathError{Op: op, Path: h.path, Err: ErrClosed}
	}
	if h.readOnly && op != "read" && op != "sync" && op != "map" && op != "size" {
		return &fs.PathError{Op: op, Path: h.path, Err: fs.ErrPermission}
	}
	return nil
}

func (h *memFile) ReadAt(p []byte, off int64) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("read"); err != nil {
		return 0, err
	}
	return h.f.readAt(p, off)
}

func (f *inode) readAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memFile) WriteAt(p []byte, off int64) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("write"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	grow := max(0, off+int64(len(p))-int64(len(h.f.data)))
	if over := h.m.over(grow); over > 0 {
		p = p[:max(0, int64(len(p))-over)]
		if len(p) > 0 {
			h.m.put(h.f, change{off: off, b: slices.Clone(p)})
		}
		return len(p), &fs.PathError{Op: "write", Path: h.path, Err: ErrNoSpace}
	}
	h.m.put(h.f, change{off: off, b: slices.Clone(p)})
	return len(p), nil
}

// over returns by how many bytes growing by grow would pass the limit.
func (m *Mem) over(grow int64) int64 {
	if m.limit == 0 || grow == 0 {
		return 0
	}
	return max(0, m.used+grow-m.limit)
}

func (m *Mem) put(f *inode, ch change) {
	before := len(f.data)
	f.put(ch)
	if m.named(f) {
		m.used += int64(len(f.data) - before)
	}
	m.on(f, func(_ *Mem, f *inode) { f.put(ch) })
}

func (m *Mem) named(f *inode) bool {
	for _, g := range m.names {
		if g == f {
			return true
		}
	}
	return false
}

// on records an operation on a file, which in another Mem is the one with the same id. A file that no name leads to any more cannot come
// back, so what happens to it is not replayed.
func (m *Mem) on(f *inode, op func(*Mem, *inode)) {
	id := f.id
	m.did(func(m *Mem) {
		for _, g := range m.reachable() {
			if g.id == id {
				op(m, g)
				return
			}
		}
	})
}

func (m *Mem) reachable() []*inode {
	var all []*inode
	for _, names := range []map[string]*inode{m.names, m.durable} {
		all = slices.AppendSeq(all, maps.Values(names))
	}
	for _, ch := range m.pending {
		for _, f := range ch.set {
			if f != nil {
				all = append(all, f)
			}
		}
	}
	return all
}

func (h *memFile) Truncate(size int64) error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("truncate"); err != nil {
		return err
	}
	if size < 0 {
		return fs.ErrInvalid
	}
	h.m.put(h.f, change{off: size, resize: true}) // growing makes a hole, which takes no space
	return nil
}

func (h *memFile) Size() (int64, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("size"); err != nil {
		return 0, err
	}
	return int64(len(h.f.data)), nil
}

func (h *memFile) Sync() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("sync"); err != nil {
		return err
	}
	h.f.sync()
	h.m.on(h.f, func(_ *Mem, f *inode) { f.sync() })
	return nil
}

func (f *inode) sync() {
	for _, ch := range f.pending {
		f.disk = ch.apply(f.disk)
	}
	f.pending = nil
}

// forget is what a failed fdatasync does on real kernels: the pages stay readable and are marked clean, so no later sync writes them.
func (h *memFile) forget() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.f.pending = nil
	h.m.on(h.f, func(_ *Mem, f *inode) { f.pending = nil })
}

func (h *memFile) Map(length int64) (Mapping, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("map"); err != nil {
		return nil, err
	}
	if length < 0 {
		return nil, fs.ErrInvalid
	}
	r := &memFile{m: h.m, f: h.f, path: h.path, readOnly: true}
	return &windows{r: r, close: r.Close, length: length}, nil
}

func (h *memFile) Close() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.check("size"); err != nil {
		return err
	}
	h.closed = true
	return nil
}
