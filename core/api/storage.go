package api

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Storage is what administrators ask of the storage engine. Texts of its errors may name paths of the server.
type Storage interface {
	Usage(ctx context.Context) (StorageUsage, error)
	// Backup copies the database to a directory, which is absolute, while everything else goes on.
	Backup(ctx context.Context, dir string) (Backup, error)
	// Compact writes what is in memory to files and merges the files of each kind.
	Compact(ctx context.Context) error
}

// StorageUsage is the answer of GET storage.
type StorageUsage struct {
	Position     core.Position   `json:"position"` // files hold everything up to it, the journal the rest
	End          core.Position   `json:"end"`      // of the log
	Series       int             `json:"series"`
	Files        []StorageFiles  `json:"files"`
	Bytes        int64           `json:"bytes"` // of the files
	Journal      StorageJournal  `json:"journal"`
	UploadBytes  int64           `json:"uploadBytes"`         // of uploads that wait to be processed, and of their results
	MemoryBytes  int64           `json:"memoryBytes"`         // of recent data that is in no file, estimated
	FreeBytes    *int64          `json:"freeBytes,omitempty"` // of the disk, where the system tells
	LastFlush    *StorageFlush   `json:"lastFlush,omitempty"` // since the start
	Failure      string          `json:"failure,omitempty"`   // of the last try to write files
	Refusal      string          `json:"refusal,omitempty"`   // why writes are refused
	SetAside     []string        `json:"setAside,omitempty"`  // damaged files that are out of use
	Faults       []StorageFault  `json:"faults,omitempty"`    // files in use of which a part could not be read since the start
	BackupActive bool            `json:"backupActive"`
	Recovery     StorageRecovery `json:"recovery"`
}

// StorageFiles are the files of one kind.
type StorageFiles struct {
	Kind  string `json:"kind"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	Rows  uint64 `json:"rows,omitempty"` // samples or messages
}

// StorageFault is a file of which a part cannot be read: queries that need it fail.
type StorageFault struct {
	File  string `json:"file"` // below the data directory
	Error string `json:"error"`
}

// StorageJournal is the journal on the disk.
type StorageJournal struct {
	Segments int   `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// StorageFlush is one time that memory was written to files.
type StorageFlush struct {
	Date   string `json:"date"` // ISO
	Millis int64  `json:"millis"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// StorageRecovery is what the last start found, in words.
type StorageRecovery struct {
	Recovery
	Files    int      `json:"files"`
	Samples  int      `json:"samples"` // that came from the journal
	Damage   []string `json:"damage,omitempty"`
	Frames   []string `json:"unreadableFrames,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Backup is the answer of a backup.
type Backup struct {
	Target      string        `json:"target"`
	Position    core.Position `json:"position"` // it holds everything up to it
	Files       int           `json:"files"`
	Bytes       int64         `json:"bytes"`
	Copied      int           `json:"copied"` // files that were not there yet
	CopiedBytes int64         `json:"copiedBytes"`
	Removed     int           `json:"removed"`
	Damaged     []string      `json:"damaged,omitempty"` // files whose bytes are not those that were written
	Millis      int64         `json:"millis"`
}

// compacted is the answer of a compaction.
type compacted struct {
	FilesBefore int   `json:"filesBefore"`
	FilesAfter  int   `json:"filesAfter"`
	BytesBefore int64 `json:"bytesBefore"`
	BytesAfter  int64 `json:"bytesAfter"`
	Millis      int64 `json:"millis"`
}

// Flush makes a StorageFlush.
func Flush(at core.Time, took time.Duration) *StorageFlush {
	return &StorageFlush{Date: dates.FormatISO(at), Millis: took.Milliseconds()}
}

// storageUsage shows what the storage engine takes and how it fares.
func (c *call) storageUsage() error {
	if c.server.Storage == nil {
		return c.missing()
	}
	u, err := c.server.Storage.Usage(c.reading())
	if err != nil {
		return err
	}
	if u.Files == nil {
		u.Files = []StorageFiles{}
	}
	return c.sendAs(u)
}

// sendAs answers with a small value as JSON.
func (c *call) sendAs(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return c.sendJSON(body)
}

// backup copies the database to a directory below backup.dir: {"target":"monday"}. It takes as long as it takes.
func (c *call) backup() error {
	if c.server.Storage == nil {
		return c.missing()
	}
	var target string
	if err := c.members("backup", fields{"target": into(&target, (*object).text)}); err != nil {
		return err
	}
	dir, err := c.server.backupDir(target)
	if err != nil {
		return err
	}
	if err := c.unhurried(); err != nil {
		return err
	}
	b, err := c.server.Storage.Backup(c.r.Context(), dir)
	if err != nil {
		return err
	}
	b.Target = dir
	c.server.Log.Info("backup made", "user", c.id.User.Name, "target", dir, "position", b.Position, "copied", b.Copied, "bytes", b.CopiedBytes)
	return c.sendAs(b)
}

// backupDir is the directory that a target names: one below backup.dir, by its path from there or as a whole.
func (s *Server) backupDir(target string) (string, error) {
	if s.BackupDir == "" {
		return "", core.Errorf(core.Invalid, "backups through this interface are off: set backup.dir to the directory that takes them")
	}
	if target == "" {
		return "", core.Errorf(core.Invalid, "IllegalArgumentException: target is required: the name of a directory below backup.dir")
	}
	below := target
	if filepath.IsAbs(target) {
		var err error
		if below, err = filepath.Rel(s.BackupDir, target); err != nil {
			below = ".."
		}
	}
	if below = filepath.Clean(below); !filepath.IsLocal(below) || below == "." {
		return "", core.Errorf(core.Invalid, "IllegalArgumentException: target '%s' does not lie below backup.dir (%s)", excerpt(target), s.BackupDir)
	}
	return filepath.Join(s.BackupDir, below), nil
}

// compact has files written and merged now.
func (c *call) compact() error {
	if c.server.Storage == nil {
		return c.missing()
	}
	if err := c.unhurried(); err != nil {
		return err
	}
	began, ctx := c.now(), c.r.Context()
	before, err := c.server.Storage.Usage(ctx)
	if err != nil {
		return err
	}
	if err := c.server.Storage.Compact(ctx); err != nil {
		return err
	}
	after, err := c.server.Storage.Usage(ctx)
	if err != nil {
		return err
	}
	return c.sendAs(compacted{before.FileCount(), after.FileCount(), before.Bytes, after.Bytes, int64(c.now() - began)})
}

// FileCount is the number of all files.
func (u *StorageUsage) FileCount() (n int) {
	for _, one := range u.Files {
		n += one.Files
	}
	return n
}
