package vfs

import (
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// Kind names an operation of FS, File or Mapping.
type Kind string

const (
	OpOpen     Kind = "open"
	OpCreate   Kind = "create"
	OpRename   Kind = "rename"
	OpRemove   Kind = "remove"
	OpList     Kind = "list"
	OpMkdir    Kind = "mkdir"
	OpSyncDir  Kind = "syncdir"
	OpLock     Kind = "lock"
	OpStat     Kind = "stat"
	OpFree     Kind = "free"
	OpRead     Kind = "read" // ReadAt of a file, or ReadAt and View of a mapping
	OpWrite    Kind = "write"
	OpTruncate Kind = "truncate"
	OpSize     Kind = "size"
	OpSync     Kind = "sync"
	OpMap      Kind = "map"
	OpClose    Kind = "close"
)

// Changes reports whether operations of the kind can alter what is on the disk.
func (k Kind) Changes() bool {
	switch k {
	case OpCreate, OpRename, OpRemove, OpMkdir, OpSyncDir, OpWrite, OpTruncate, OpSync:
		return true
	}
	return false
}

// Op is one call on its way to the file system.
type Op struct {
	Kind Kind
	Path string
	To   string // of a rename
	Off  int64  // of a read, write, truncate (the new size) or map (0)
	Len  int64
}

// String is the line that Trace writes: `write 7.seg 0+4096`, `sync 7.seg`, `rename 7.tmp 7.seg`, `syncdir .`. Only base names are shown, and
// the directory of a syncdir is a dot, so that traces do not depend on where a test runs.
func (o Op) String() string {
	s := string(o.Kind) + " " + filepath.Base(o.Path)
	switch o.Kind {
	case OpSyncDir, OpList, OpMkdir:
		s = string(o.Kind) + " ."
	case OpRename:
		s += " " + filepath.Base(o.To)
	case OpRead, OpWrite:
		s += " " + strconv.FormatInt(o.Off, 10) + "+" + strconv.FormatInt(o.Len, 10)
	case OpTruncate:
		s += " " + strconv.FormatInt(o.Off, 10)
	}
	return s
}

// ShortWrite makes Fault write the first N bytes and then return Err.
type ShortWrite struct {
	N   int
	Err error
}

func (s ShortWrite) Error() string { return "short write: " + s.Err.Error() }
func (s ShortWrite) Unwrap() error { return s.Err }

// Fault returns fs with every operation shown to inject first; an error from it is returned in place of the operation. On a write it may be a
// ShortWrite. A sync of a Mem file that is made to fail forgets the unsynced bytes, as kernels do.
func Fault(fs FS, inject func(Op) error) FS { return hook{fs: fs, before: inject} }

// Trace returns fs with emit called for every operation that succeeded, in order per goroutine.
func Trace(fs FS, emit func(Op)) FS { return hook{fs: fs, after: emit} }

// FailAt is an injector that fails the n-th operation (from 0) among those that match, once.
type FailAt struct {
	N     int64
	Err   error
	Match func(Op) bool // nil: all
	seen  atomic.Int64
	fired atomic.Bool
}

// Inject is the function to give to Fault.
func (f *FailAt) Inject(op Op) error {
	if f.Match != nil && !f.Match(op) {
		return nil
	}
	if f.seen.Add(1)-1 != f.N {
		return nil
	}
	f.fired.Store(true)
	return f.Err
}

// Fired reports whether the failure has happened: a loop over N ends when it has not.
func (f *FailAt) Fired() bool { return f.fired.Load() }

// hook is FS with a function before and one after each operation.
type hook struct {
	fs     FS
	before func(Op) error
	after  func(Op)
}

func (h hook) do(op Op, call func() error) error {
	if h.before != nil {
		if err := h.before(op); err != nil {
			return err
		}
	}
	err := call()
	if err == nil && h.after != nil {
		h.after(op)
	}
	return err
}

func (h hook) Open(path string, mode Mode) (f File, err error) {
	op := Op{Kind: OpOpen, Path: path}
	if mode == Create {
		op.Kind = OpCreate
	}
	err = h.do(op, func() error { f, err = h.fs.Open(path, mode); return err })
	if err != nil {
		return nil, err
	}
	return hookFile{h, f, path}, nil
}

func (h hook) Rename(from, to string) error {
	return h.do(Op{Kind: OpRename, Path: from, To: to}, func() error { return h.fs.Rename(from, to) })
}

func (h hook) Remove(path string) error {
	return h.do(Op{Kind: OpRemove, Path: path}, func() error { return h.fs.Remove(path) })
}

func (h hook) List(dir string) (infos []Info, err error) {
	err = h.do(Op{Kind: OpList, Path: dir}, func() error { infos, err = h.fs.List(dir); return err })
	return infos, err
}

func (h hook) MkdirAll(dir string) error {
	return h.do(Op{Kind: OpMkdir, Path: dir}, func() error { return h.fs.MkdirAll(dir) })
}

func (h hook) SyncDir(dir string) error {
	return h.do(Op{Kind: OpSyncDir, Path: dir}, func() error { return h.fs.SyncDir(dir) })
}

func (h hook) Lock(path string) (c io.Closer, err error) {
	err = h.do(Op{Kind: OpLock, Path: path}, func() error { c, err = h.fs.Lock(path); return err })
	return c, err
}

func (h hook) Stat(path string) (i Info, err error) {
	err = h.do(Op{Kind: OpStat, Path: path}, func() error { i, err = h.fs.Stat(path); return err })
	return i, err
}

func (h hook) Free(path string) (s Space, err error) {
	err = h.do(Op{Kind: OpFree, Path: path}, func() error { s, err = h.fs.Free(path); return err })
	return s, err
}

type hookFile struct {
	h    hook
	f    File
	path string
}

func (f hookFile) ReadAt(p []byte, off int64) (n int, err error) {
	op := Op{Kind: OpRead, Path: f.path, Off: off, Len: int64(len(p))}
	err = f.h.do(op, func() error { n, err = f.f.ReadAt(p, off); return err })
	return n, err
}

func (f hookFile) WriteAt(p []byte, off int64) (n int, err error) {
	op := Op{Kind: OpWrite, Path: f.path, Off: off, Len: int64(len(p))}
	err = f.h.do(op, func() error { n, err = f.f.WriteAt(p, off); return err })
	var short ShortWrite
	if n > 0 || !errors.As(err, &short) {
		return n, err
	}
	n, werr := f.f.WriteAt(p[:min(short.N, len(p))], off)
	if werr != nil {
		err = werr
	}
	return n, err
}

func (f hookFile) Truncate(size int64) error {
	return f.h.do(Op{Kind: OpTruncate, Path: f.path, Off: size}, func() error { return f.f.Truncate(size) })
}

func (f hookFile) Size() (n int64, err error) {
	err = f.h.do(Op{Kind: OpSize, Path: f.path}, func() error { n, err = f.f.Size(); return err })
	return n, err
}

func (f hookFile) Sync() error {
	tried := false
	err := f.h.do(Op{Kind: OpSync, Path: f.path}, func() error { tried = true; return f.f.Sync() })
	if err != nil && !tried {
		f.forget()
	}
	return err
}

// forget reaches the Mem file below any number of hooks.
func (f hookFile) forget() {
	if file, ok := f.f.(interface{ forget() }); ok {
		file.forget()
	}
}

func (f hookFile) Map(length int64) (m Mapping, err error) {
	op := Op{Kind: OpMap, Path: f.path, Len: length}
	err = f.h.do(op, func() error { m, err = f.f.Map(length); return err })
	if err != nil {
		return nil, err
	}
	return hookMapping{f.h, m, f.path}, nil
}

// Close always closes the file below, so that an injected failure does not leak it.
func (f hookFile) Close() error {
	err := f.f.Close()
	return f.h.do(Op{Kind: OpClose, Path: f.path}, func() error { return err })
}

type hookMapping struct {
	h hook
	Mapping
	path string
}

func (m hookMapping) View(off, n int64, f func([]byte) error) error {
	return m.h.do(Op{Kind: OpRead, Path: m.path, Off: off, Len: n}, func() error { return m.Mapping.View(off, n, f) })
}

func (m hookMapping) ReadAt(p []byte, off int64) (int, error) { return readView(m, p, off) }
