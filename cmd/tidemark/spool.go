package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// spoolDir is the folder of the data directory where uploads wait that are processed in the background.
const spoolDir = "uploads"

const (
	spoolBlock = 256 << 10 // bytes of a write: large enough that system calls do not count
	spoolTmp   = ".tmp"    // ends the name of a file that is not complete
)

// spool is an api.Spool. Its folder is made with the first file: a server without such uploads has none.
type spool struct {
	fs  vfs.FS
	dir string
}

// newSpool is the spool of a data directory. It is tidied when the directory is locked, and before it is used.
func newSpool(fs vfs.FS, data string) *spool { return &spool{fs, filepath.Join(data, spoolDir)} }

// tidy removes what a crash has left incomplete.
func (s *spool) tidy() error {
	files, err := s.files()
	for _, f := range files {
		if strings.HasSuffix(f.Name, spoolTmp) {
			err = errors.Join(err, s.fs.Remove(s.path(f.Name)))
		}
	}
	if err != nil {
		return fmt.Errorf("uploads in the background: %w", err)
	}
	return nil
}

// bytes is what the folder takes on the disk, files that are on their way into it included. A folder that cannot be listed counts for nothing: the disk says
// itself when it is full.
func (s *spool) bytes() (n int64) {
	files, err := s.files()
	if err != nil {
		return 0
	}
	for _, f := range files {
		n += f.Size
	}
	return n
}

func (s *spool) path(name string) string { return filepath.Join(s.dir, name) }

func (s *spool) files() ([]vfs.Info, error) {
	files, err := s.fs.List(s.dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// Put writes the file under another name, makes it durable, and only then gives it its name. See api.Spool.
func (s *spool) Put(name string, r io.Reader) (size int64, err error) {
	if err := s.make(); err != nil {
		return 0, spoolFault(err)
	}
	tmp := s.path(name + spoolTmp)
	f, err := s.fs.Open(tmp, vfs.Create)
	if err != nil {
		return 0, spoolFault(err)
	}
	size, err = s.fill(f, r)
	if err == nil {
		err = spoolFault(f.Sync())
	}
	if closed := f.Close(); err == nil {
		err = spoolFault(closed)
	}
	if err == nil {
		err = spoolFault(s.fs.Rename(tmp, s.path(name)))
	}
	if err == nil {
		err = spoolFault(s.fs.SyncDir(s.dir))
	}
	if err != nil {
		_ = s.fs.Remove(tmp) // the next start removes it too
	}
	return size, err
}

// make makes the folder, and makes it durable.
func (s *spool) make() error {
	if _, err := s.fs.Stat(s.dir); err == nil {
		return nil
	}
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	return s.fs.SyncDir(filepath.Dir(s.dir))
}

// fill copies r into f. A file may take half of the disk that was free when it came: the log needs the rest, not least for what is in the file.
func (s *spool) fill(f vfs.File, r io.Reader) (size int64, err error) {
	space, err := s.fs.Free(s.dir)
	if err != nil {
		return 0, spoolFault(err)
	}
	block := make([]byte, spoolBlock)
	for {
		n, err := readBlock(r, block)
		if size+int64(n) > space.Free/2 {
			return size, core.Errorf(core.NoSpace, "the disk has %d bytes left, of which an upload with wait=false may take half: send it without", space.Free)
		}
		if n > 0 {
			if _, err := f.WriteAt(block[:n], size); err != nil {
				return size, spoolFault(err)
			}
			size += int64(n)
		}
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// readBlock fills block. Unlike io.ReadFull it does not hide that r itself ended with io.ErrUnexpectedEOF, as a body does that was cut off.
func readBlock(r io.Reader, block []byte) (n int, err error) {
	for n < len(block) && err == nil {
		var more int
		more, err = r.Read(block[n:])
		n += more
	}
	return n, err
}

// spoolFault is a fault of the disk, nil for none.
func spoolFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vfs.ErrNoSpace):
		return core.Wrap(core.NoSpace, err, "the disk is full")
	}
	return core.Wrap(core.Unavailable, err, "an upload cannot be kept on the disk: see the server log, or send it without wait=false")
}

func (s *spool) Open(name string) (io.ReadCloser, error) {
	f, err := s.fs.Open(s.path(name), vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, size), f}, nil
}

// Remove is durable: an upload that was deleted does not come back after a power cut.
func (s *spool) Remove(name string) error {
	switch err := s.fs.Remove(s.path(name)); {
	case errors.Is(err, vfs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return s.fs.SyncDir(s.dir)
}

func (s *spool) List() (map[string]int64, error) {
	files, err := s.files()
	sizes := make(map[string]int64, len(files))
	for _, f := range files {
		if !f.Dir && !strings.HasSuffix(f.Name, spoolTmp) {
			sizes[f.Name] = f.Size
		}
	}
	return sizes, err
}
