package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// disk watches how much room there is. Writes are refused before it is gone, so that what is in memory can still be written, and come back by themselves.
type disk struct {
	checked atomic.Int64 // Unix nanoseconds of the last look
	refusal atomic.Pointer[core.Error]
	crowded atomic.Bool  // refusal is only about what others keep in the directory
	files   atomic.Int64 // bytes of the files in the manifest
}

// diskEvery is how often a busy server looks at the disk: a fast card takes some 100 MB in that time, and an idle server does not look at all.
const diskEvery = time.Second

// reserveFile keeps room for what makes room: it is given up when a flush or a merge finds the disk full, and made again when there is room.
const reserveFile = "reserve"

// scarce is how many times disk.low may be free for a reserve to be worth its bytes.
const scarce = 8

// roomOnDisk refuses writes while the disk has no room, or the budget is used up. What parsers write goes on when it is uploads that use it up: they go only by
// being written.
func (db *DB) roomOnDisk(door core.Door) error {
	now := time.Now().UnixNano()
	if last := db.disk.checked.Load(); now-last > int64(diskEvery) && db.disk.checked.CompareAndSwap(last, now) {
		refusal, crowded := db.measureDisk()
		db.disk.crowded.Store(crowded)
		db.disk.refusal.Store(refusal)
	}
	if refusal := db.disk.refusal.Load(); refusal != nil && !(door == core.DoorPlugin && db.disk.crowded.Load()) {
		return refusal
	}
	return nil
}

// measureDisk returns why nothing can be stored, nil when it can, and whether there would be room but for what others keep in the directory.
func (db *DB) measureDisk() (refusal *core.Error, crowded bool) {
	space, err := db.fs.Free(db.dir)
	if err == nil && space.Free < db.opts.DiskLow {
		return &core.Error{Code: core.NoSpace, RetryAfter: retryAfter, Text: fmt.Sprintf("the disk is nearly full: %d bytes are free, and %d are kept free "+
			"(setting disk.low): nothing can be stored until there is room, reading goes on", space.Free, db.opts.DiskLow)}, false
	}
	if db.opts.DiskBytes <= 0 {
		return nil, false
	}
	used, others := db.disk.files.Load()+db.journal.Status().Bytes, db.opts.Others()
	switch {
	case used > db.opts.DiskBytes:
		return &core.Error{Code: core.NoSpace, RetryAfter: retryAfter, Text: fmt.Sprintf("the database takes %d bytes and may take %d (setting disk): "+
			"nothing can be stored until old data goes, see retention.bytes; reading goes on", used, db.opts.DiskBytes)}, false
	case used+others > db.opts.DiskBytes:
		return &core.Error{Code: core.NoSpace, RetryAfter: retryAfter, Text: fmt.Sprintf("the database takes %d bytes, uploads that wait take %d, and together they may take "+
			"%d (setting disk): nothing else can be stored until the uploads are processed; reading goes on", used, others, db.opts.DiskBytes)}, true
	}
	return nil, false
}

// count notes the size of the files in a manifest.
func (d *disk) count(m *manifest) {
	n := int64(0)
	for _, e := range m.Files {
		n += e.Size
	}
	d.files.Store(n)
	d.checked.Store(0) // look again with the next write
}

// reserve sees to it that the reserve is there, when room becomes scarce and it would not take the last of it.
func (db *DB) reserve() error {
	path := filepath.Join(db.dir, reserveFile)
	if info, err := db.fs.Stat(path); err == nil && info.Size >= db.opts.Reserve {
		return nil
	}
	space, err := db.fs.Free(db.dir)
	if err != nil || space.Free > scarce*db.opts.DiskLow || space.Free < db.opts.DiskLow+2*db.opts.Reserve {
		return err
	}
	err = writeFile(db.fs, path, func(f vfs.File) error { return vfs.Preallocate(f, db.opts.Reserve) })
	if err != nil {
		return errors.Join(fmt.Errorf("storage: %s: %w", path, err), db.removeIfThere(path))
	}
	return nil
}

// giveReserve makes room for the worker. It reports whether there was some to give.
func (db *DB) giveReserve() bool { return db.fs.Remove(filepath.Join(db.dir, reserveFile)) == nil }

// oldest picks what goes first when the files take more than Options.RetentionBytes: the file of samples or messages whose newest record is the oldest.
func (db *DB) oldest() (s shelf, m merge, ok bool) {
	if db.opts.RetentionBytes <= 0 || db.disk.files.Load() <= db.opts.RetentionBytes {
		return nil, merge{}, false
	}
	end := core.MaxTime + 1
	for _, f := range db.views.current.Load().files {
		if last := f.file.Range().End; last < end {
			end, s, m, ok = last, sampleShelf{db}, mergeOf(&db.views, []*sampleFile{f}), true
		}
	}
	for _, f := range db.msgs.views.current.Load().files {
		if last := f.file.Newest() + 1; last < end {
			end, s, m, ok = last, messageShelf{db}, mergeOf(&db.msgs.views, []*messageFile{f}), true
		}
	}
	return s, m, ok
}
