package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/journal"
)

// Options of a database. The zero value is the default.
type Options struct {
	Sync         journal.Mode  // when a batch is durable: always, at an interval, never
	SyncInterval time.Duration // of mode Interval; 0 is one second
	SegmentBytes int64         // of a journal file; 0 is 16 MiB
	CacheBytes   int           // of hot series keys, off the Go heap; 0 is 32 MiB, which is also the least
	Versions     int           // of an entity that are kept, the creation among them; 0 is core.MaxEntityVersions, the least is 2
	RingBytes    int           // of recent batches in memory, for those who follow the log; 0 is DefaultRingBytes

	// MessageRetention is how long after their receipt messages are shown; 0 keeps them. See ExpireMessages.
	MessageRetention time.Duration

	FlushBytes int64         // of recent state in memory, from which on it is written to files; 0 is DefaultFlushBytes
	FlushAge   time.Duration // after which it is written whatever its size; 0 is DefaultFlushAge

	MergeRate int64 // bytes a second that merges write; 0 is DefaultMergeRate, below 0 there is no bound

	DiskBytes      int64 // that files and journal may take: above it writes are refused; 0 = no bound
	DiskLow        int64 // free bytes of the disk below which writes are refused; 0 is DefaultDiskLow
	RetentionBytes int64 // of files, above which the oldest samples and messages go, a file at a time; 0 keeps them
	Reserve        int64 // bytes kept aside for what makes room on a full disk; 0 is DefaultReserve, below 0 none

	// Hold returns the position up to which followers of the log have come, so that the journal behind it stays; nil: nobody needs it after a restart.
	Hold func() core.Position
	// Others returns the bytes that others keep in the data directory, which count against DiskBytes; nil: nobody does. It is called about once a second.
	Others func() int64
	Log    func(text string) // of what the worker does; nil: nowhere

	Now  func() core.Time // the clock; nil is the system's
	Zone *time.Location   // of dates in expressions; nil is UTC

	inline bool // make segments when they are needed and not ahead: tests that count operations want the same every time
}

// DefaultRingBytes holds some seconds of a busy edge box, or a rule engine's pause for one large query, in 3 % of 512 MB.
const DefaultRingBytes = 16 << 20

// DefaultFlushBytes is some two million samples, which are replayed in half a second at the next start; while they are written, as much again may come in.
const DefaultFlushBytes = 32 << 20

// DefaultDiskLow is room for a flush and for the journal meanwhile.
const DefaultDiskLow = 64 << 20

// DefaultReserve is room for the manifest, and for a merge of small files or the flush of a small box.
const DefaultReserve = 16 << 20

// DefaultFlushAge keeps the journal of a box with little traffic short. Nothing is written when nothing came in.
const DefaultFlushAge = time.Hour

// Validate reports every fault of o.
func (o Options) Validate() error {
	var errs []error
	if err := o.journal().Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.CacheBytes != 0 && o.CacheBytes < index.MinCacheBytes {
		errs = append(errs, fmt.Errorf("storage: cache of %d bytes: at least %d are needed", o.CacheBytes, index.MinCacheBytes))
	}
	if o.Versions < 0 || o.Versions == 1 {
		errs = append(errs, fmt.Errorf("storage: %d versions of an entity: at least 2 are needed, the creation and the latest", o.Versions))
	}
	if o.MessageRetention < 0 {
		errs = append(errs, fmt.Errorf("storage: messages kept for %s: must not be negative", o.MessageRetention))
	}
	if o.DiskBytes < 0 || o.DiskLow < 0 || o.RetentionBytes < 0 {
		errs = append(errs, fmt.Errorf("storage: disk of %d bytes, %d kept free, %d kept: must not be negative", o.DiskBytes, o.DiskLow, o.RetentionBytes))
	}
	if o.FlushBytes < 0 || o.FlushAge < 0 {
		errs = append(errs, fmt.Errorf("storage: flush at %d bytes or after %s: must not be negative", o.FlushBytes, o.FlushAge))
	}
	if o.RingBytes < 0 {
		errs = append(errs, fmt.Errorf("storage: ring of %d bytes: must not be negative", o.RingBytes))
	}
	return errors.Join(errs...)
}

func (o Options) journal() journal.Options {
	return journal.Options{Mode: o.Sync, Interval: o.SyncInterval, SegmentSize: o.SegmentBytes, Inline: o.inline}
}

func (o Options) withDefaults() Options {
	if o.RingBytes == 0 {
		o.RingBytes = DefaultRingBytes
	}
	if o.FlushBytes == 0 {
		o.FlushBytes = DefaultFlushBytes
	}
	if o.FlushAge == 0 {
		o.FlushAge = DefaultFlushAge
	}
	if o.MergeRate == 0 {
		o.MergeRate = DefaultMergeRate
	}
	if o.DiskLow == 0 {
		o.DiskLow = DefaultDiskLow
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	if o.Others == nil {
		o.Others = func() int64 { return 0 }
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Versions == 0 {
		o.Versions = core.MaxEntityVersions
	}
	if o.Now == nil {
		o.Now = func() core.Time { return core.TimeOf(time.Now()) }
	}
	return o
}
