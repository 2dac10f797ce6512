package api

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/tidemark-db/tidemark/core"
)

// testStorage is a storage engine that merges two files into one, and makes backups in all directories but those named busy.
type testStorage struct {
	mu     sync.Mutex
	merged bool
}

func (s *testStorage) Usage(context.Context) (StorageUsage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := int64(1 << 30)
	u := StorageUsage{Position: 41, End: 42, Series: 3, Bytes: 1000, Journal: StorageJournal{1, 65536}, UploadBytes: 5, MemoryBytes: 77, FreeBytes: &free,
		Files:    []StorageFiles{{"index", 1, 100, 0}, {"samples", 2, 900, 5000}},
		Recovery: StorageRecovery{Recovery: Recovery{Segments: 1, Frames: 2, Damaged: 1, Millis: 12}, Files: 3, Samples: 9, Damage: []string{"0000000004.samples: too short"}}}
	if s.merged {
		u.Files[1] = StorageFiles{"samples", 1, 500, 5000}
		u.Bytes = 600
		u.LastFlush = Flush(1903910400000, 1500_000_000)
		u.LastFlush.Files, u.LastFlush.Bytes = 1, 500
	}
	return u, nil
}

func (s *testStorage) Backup(_ context.Context, dir string) (Backup, error) {
	if filepath.Base(dir) == "busy" {
		return Backup{}, core.Errorf(core.Unavailable, "a backup is running: wait for its end")
	}
	return Backup{Position: 42, Files: 3, Bytes: 1000, Copied: 2, CopiedBytes: 900, Removed: 1, Millis: 5}, nil
}

func (s *testStorage) Compact(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.merged = true
	return nil
}
