package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OS is the disk of the machine. Its zero value is ready for use.
type OS struct {
	// Windows makes mappings read through bounded buffers, as they always do on 32-bit, where mapping a store would exhaust the address space.
	Windows bool
}

// Files and directories belong to the server's user alone: the data directory holds credentials.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

func (o OS) Open(path string, mode Mode) (File, error) {
	flag := os.O_RDONLY
	switch mode {
	case ReadWrite:
		flag = os.O_RDWR
	case Create:
		flag = os.O_RDWR | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flag, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{File: f, mmap: strconv.IntSize == 64 && !o.Windows}, nil
}

func (OS) Rename(from, to string) error { return os.Rename(from, to) }
func (OS) Remove(path string) error     { return os.Remove(path) }
func (OS) MkdirAll(dir string) error    { return os.MkdirAll(dir, dirPerm) }

func (OS) List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		fi, err := e.Info()
		if errors.Is(err, ErrNotExist) {
			continue // removed since the directory was read
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, infoOf(fi))
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (OS) Stat(path string) (Info, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return infoOf(fi), nil
}

func infoOf(fi os.FileInfo) Info {
	if fi.IsDir() {
		return Info{Name: fi.Name(), Dir: true}
	}
	return Info{Name: fi.Name(), Size: fi.Size()}
}

func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (OS) Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}

func (OS) Free(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(filepath.Clean(path), &s); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	unit := int64(s.Bsize)
	return Space{Free: int64(s.Bavail) * unit, Total: int64(s.Blocks) * unit}, nil
}

type osFile struct {
	*os.File
	mmap bool
}

func (f osFile) Sync() error { return datasync(f.File) }

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (f osFile) Map(length int64) (Mapping, error) {
	if length < 0 {
		return nil, fmt.Errorf("map %s: negative length %d", f.Name(), length)
	}
	if !f.mmap {
		return f.window(length)
	}
	if length == 0 { // mmap refuses an empty range
		return newMemory(nil, func([]byte) error { return nil }), nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(length), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return newMemory(b, unix.Munmap), nil
}

// window needs a descriptor of its own, as the mapping outlives the File and must follow a rename of it.
func (f osFile) window(length int64) (Mapping, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "dup", Path: f.Name(), Err: err}
	}
	dup := os.NewFile(uintptr(fd), f.Name())
	return &windows{r: dup, close: dup.Close, length: length}, nil
}
