package storage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// manifest names the files of a database, and says up to which position they hold everything. What is in no file is in the journal behind that position.
// It is replaced whole, and there is a copy of it: FORMAT.md draws it.
type manifest struct {
	Position   core.Position `json:"position"` // everything up to it is in the files
	Reserved   core.Position `json:"reserved"` // positions up to it may have been given to batches that are not journaled
	Received   core.Time     `json:"received"` // of the newest batch in the files
	NextFile   uint64        `json:"nextFile"` // numbers of files are given once
	NextSeries index.ID      `json:"nextSeries"`
	Generation uint64        `json:"generation"`        // of the first samples that are in no file
	Unknown    index.ID      `json:"unknown,omitempty"` // series below it may be missing in the index, since a run of it was lost: their samples are kept
	Files      []fileEntry   `json:"files"`             // of each kind from old to new
	Graves     []graveEntry  `json:"graves,omitempty"`
	Edits      []edit        `json:"edits,omitempty"`
	Counters   counters      `json:"counters"`
}

// fileEntry is one live file.
type fileEntry struct {
	Kind   fileKind `json:"kind"`
	Number uint64   `json:"number"`
	Size   int64    `json:"size"`          // so that a file that was cut short is known without reading it
	Sum    uint32   `json:"sum"`           // CRC-32C of the whole file, for who copies it
	End    uint32   `json:"end,omitempty"` // CRC-32C of its last endBytes, by which Open knows it; 0: not kept
}

// fileKind says what is in a file. Tables are several, so their kind has the name of one behind it.
type fileKind string

const (
	kindSamples  fileKind = "samples"
	kindIndex    fileKind = "index"
	kindMessages fileKind = "messages"
	kindTable    fileKind = "table" // "table/" and the name
)

// counters go on where they were.
type counters struct {
	Messages uint64 `json:"messages"`
	History  uint64 `json:"history"`
}

// graveEntry is a grave, see there.
type graveEntry struct {
	Series index.ID  `json:"series"`
	Start  core.Time `json:"start"`
	End    core.Time `json:"end"`
	Before uint64    `json:"before"`
}

const (
	manifestFile    = "MANIFEST"
	manifestCopy    = "MANIFEST.copy"
	manifestMagic   = "tidemnfs"
	manifestVersion = 1
	manifestHeader  = 20 // magic, version u32, length u32, CRC-32C u32 of the body
	maxManifest     = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// namedError says that a manifest could not be made durable, and that the next start may find it nevertheless.
type namedError struct{ error }

func (e *namedError) Unwrap() error { return e.error }

// write replaces the manifest in dir: the old one is there until the new one is durable. Of which of them is there after an error, see namedError.
func (m *manifest) write(fs vfs.FS, dir string) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("storage: manifest: %w", err)
	}
	b := append(make([]byte, 0, manifestHeader+len(body)), manifestMagic...)
	b = binary.LittleEndian.AppendUint32(b, manifestVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	b = append(b, body...)
	named := false
	for _, name := range [...]string{manifestFile, manifestCopy} {
		path := filepath.Join(dir, name)
		err := writeFile(fs, path+".tmp", func(f vfs.File) error {
			_, err := f.WriteAt(b, 0)
			return err
		})
		if err == nil {
			named = true
			err = fs.Rename(path+".tmp", path)
		}
		if err == nil {
			err = fs.SyncDir(dir)
		}
		if err != nil && named {
			return &namedError{fmt.Errorf("storage: %s: %w", name, err)}
		}
		if err != nil {
			return fmt.Errorf("storage: %s: %w", name, err)
		}
	}
	return nil
}

// writeFile makes a file, has it written, and makes it durable but for its name.
func writeFile(fs vfs.FS, path string, write func(vfs.File) error) error {
	f, err := fs.Open(path, vfs.Create)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Sync()); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// readManifest returns the manifest of a name in dir; with an error it is that of a database without files.
func readManifest(fs vfs.FS, dir, name string) (m manifest, err error) {
	empty := manifest{NextFile: 1, NextSeries: 1, Generation: 1}
	b, err := readAll(fs, filepath.Join(dir, name), maxManifest)
	if err != nil {
		return empty, fmt.Errorf("storage: %s: %w", name, err)
	}
	le := binary.LittleEndian
	if len(b) < manifestHeader || string(b[:8]) != manifestMagic {
		return empty, errManifest
	}
	body := b[manifestHeader:]
	if uint64(le.Uint32(b[12:])) != uint64(len(body)) || le.Uint32(b[16:]) != crc32.Checksum(body, castagnoli) {
		return empty, errManifest
	}
	switch v := le.Uint32(b[8:]); {
	case v > manifestVersion:
		return empty, fmt.Errorf("storage: %w", &laterManifest{vfs.VersionError{Path: filepath.Join(dir, name), Found: v, Known: manifestVersion}, body})
	case v < manifestVersion:
		return empty, errManifest
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return empty, errManifest
	}
	for _, e := range m.Files { // a backup may come from anywhere: names must not lead elsewhere
		if base := e.base(); e.Size < 0 || strings.ContainsAny(base, "/\\") || !filepath.IsLocal(base) {
			return empty, errManifest
		}
	}
	return m, nil
}

// manifestOf reads the manifest in dir, or its copy, and says which one it is. Neither is vfs.ErrNotExist.
func manifestOf(fs vfs.FS, dir string) (m manifest, used string, err error) {
	m, err = readManifest(fs, dir, manifestFile)
	if err == nil {
		return m, manifestFile, nil
	}
	copied, copyErr := readManifest(fs, dir, manifestCopy)
	switch {
	case copyErr == nil:
		return copied, manifestCopy, nil
	case errors.Is(err, vfs.ErrNotExist):
		err = copyErr
	}
	return m, "", err
}

var errManifest = errors.New("storage: the manifest is damaged")

// laterManifest is a vfs.VersionError for a manifest whose checksum is right. The version is not in the checksum: a bit that turned over in it is told by a copy
// with the same body.
type laterManifest struct {
	vfs.VersionError
	body []byte
}

func (e *laterManifest) Unwrap() error { return &e.VersionError }

// isLater reports whether err says that something was written by a later release.
func isLater(err error) bool {
	var later *vfs.VersionError
	return errors.As(err, &later) || errors.Is(err, errKind)
}

// readAll returns a whole file of at most limit bytes.
func readAll(fs vfs.FS, path string, limit int64) ([]byte, error) {
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, size, limit)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && size > 0 {
		return nil, err
	}
	return b, nil
}
