package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// database is the open data directory: the store, what recovery found, and the uploads that wait to be worked off.
type database struct {
	*storage.DB
	report   storage.Report
	uploads  *spool
	follower atomic.Pointer[rules.Engine]
}

// openDatabase opens the data directory. The journal stays until somebody follows it, who says what it still needs.
func openDatabase(ctx context.Context, c Config, log *slog.Logger) (*database, error) {
	d := &database{uploads: newSpool(vfs.OS{}, c.Data)}
	options := storageOptions(c)
	options.Log = func(text string) { log.Info(text) }
	options.Others = d.uploads.bytes
	options.Hold = func() core.Position {
		if engine := d.follower.Load(); engine != nil {
			return engine.Needs()
		}
		return 0 // nobody knows yet: keep all
	}
	var err error
	if d.DB, d.report, err = openStorage(ctx, c.Data, options, log); err != nil {
		return nil, err
	}
	log.Info("storage: " + d.report.String())
	if err := d.uploads.tidy(); err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return d, nil
}

// maxSeconds is what a duration holds: 292 years.
const maxSeconds = int64(math.MaxInt64 / time.Second)

func storageOptions(c Config) storage.Options {
	o := storage.Options{FlushBytes: flushBytes(c), FlushAge: c.FlushAge, DiskBytes: c.Disk, DiskLow: c.DiskLow, RetentionBytes: c.Retention, Zone: c.Zone, Versions: int(c.Versions), MessageRetention: time.Duration(min(c.MessageTTL, maxSeconds)) * time.Second}
	if o.MergeRate = c.MergeRate; o.MergeRate == 0 {
		o.MergeRate = -1
	}
	switch c.Sync {
	case "always":
		o.Sync = journal.Always
	case "never":
		o.Sync = journal.Never
	default:
		o.Sync = journal.Interval
		o.SyncInterval, _ = time.ParseDuration(c.Sync) // checked with the settings
	}
	return o
}

// flushBytes is the share of recent data in the memory budget: up to three times as much waits while the disk is slow.
func flushBytes(c Config) int64 {
	if c.Flush > 0 {
		return c.Flush
	}
	return min(max(c.Memory/16, 4<<20), storage.DefaultFlushBytes)
}
