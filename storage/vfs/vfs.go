// Package vfs is the only door between Tidemark and a disk. Everything that stores bytes goes through FS and File, so that one suite of tests
// can make a disk forget what was not synced (Mem), fail (Fault) or tell what was asked of it (Trace), while production uses OS.
//
// The contract is that of a POSIX disk and no kinder:
//
//   - a completed WriteAt survives the death of the process, not a power cut;
//   - Sync makes the bytes and the length of one file survive a power cut, not its name;
//   - SyncDir makes creations, renames and removals in one directory survive it;
//   - after a failed Sync nothing is known about the bytes written since the last good one, and a second Sync that succeeds proves nothing.
//
// Reading through a Mapping never kills the process: a truncated file or a bad sector comes back as ErrFault.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// Errors that callers act upon; test with errors.Is.
var (
	ErrNotExist = fs.ErrNotExist
	ErrClosed   = fs.ErrClosed
	// ErrLocked says that another process, or another Lock of this one, holds the lock file.
	ErrLocked = errors.New("locked by another process")
	// ErrFault says that mapped bytes could not be read: the file was cut short or the medium failed.
	ErrFault = errors.New("mapped bytes cannot be read: the file is shorter than it was, or the disk failed")
	// ErrNoSpace is the full disk; ErrIO the failing one.
	ErrNoSpace error = syscall.ENOSPC
	ErrIO      error = syscall.EIO
)

// Mode says how Open opens a file.
type Mode uint8

const (
	ReadOnly  Mode = iota // the file must exist
	ReadWrite             // the file must exist
	Create                // made when absent, emptied when present; readable and writable
)

// Info describes one directory entry.
type Info struct {
	Name string // base name
	Size int64  // bytes; 0 for a directory
	Dir  bool
}

// Space is the room of the file system that holds a path, in bytes. Free is what an unprivileged process may still take.
type Space struct{ Free, Total int64 }

// FS is a file system. Paths are those of package path/filepath; all methods may be called concurrently.
type FS interface {
	Open(path string, mode Mode) (File, error)
	Rename(from, to string) error // replaces to
	Remove(path string) error     // a file or an empty directory
	// List returns the entries of dir in order of name.
	List(dir string) ([]Info, error)
	MkdirAll(dir string) error
	SyncDir(dir string) error
	// Lock takes the exclusive lock at path, creating the file, until the closer is closed or the process ends. It does not wait: ErrLocked.
	Lock(path string) (io.Closer, error)
	Stat(path string) (Info, error)
	Free(path string) (Space, error)
}

// File is an open file. ReadAt and WriteAt follow io.ReaderAt and io.WriterAt and may run concurrently on disjoint ranges.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Size() (int64, error)
	// Sync is fdatasync: bytes and length, not times.
	Sync() error
	// Map makes the first length bytes readable through a Mapping, which outlives the File. Writes below length through any File of the
	// same path become visible in it. The file may be shorter than length: reading past its end is an error at that time.
	Map(length int64) (Mapping, error)
}

// Mapping reads a file without a copy where the address space allows it (64-bit: mmap) and through bounded reads where it does not (32-bit).
type Mapping interface {
	io.ReaderAt
	// Close ends the mapping. Views that are running finish on intact memory; later ones get ErrClosed.
	io.Closer
	Len() int64
	// View calls f with the n bytes at off. They are valid until f returns and must not be written. A fault while f reads them makes View
	// return ErrFault; f may then have stopped at any of its reads, so it must publish results only by returning nil, and it must not call
	// back into code that holds locks without defer.
	View(off, n int64, f func(b []byte) error) error
}

// zeroes is the unit of Preallocate: large enough that system calls do not count, small enough to sit in the program's zero pages.
var zeroes [256 << 10]byte

// Preallocate writes zeroes from the end of f up to size. Written zeroes, unlike a sparse or fallocated range, leave fdatasync no metadata
// to write when the range is overwritten later, and they make a full disk show itself here and not in the middle of a commit.
func Preallocate(f File, size int64) error {
	at, err := f.Size()
	if err != nil {
		return err
	}
	for at < size {
		n, err := f.WriteAt(zeroes[:min(int64(len(zeroes)), size-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// checkView reports a range that does not lie in a mapping of length bytes.
func checkView(off, n, length int64) error {
	if off < 0 || n < 0 || off > length || n > length-off {
		return fmt.Errorf("vfs: view of %d bytes at %d of a mapping of %d bytes", n, off, length)
	}
	return nil
}
