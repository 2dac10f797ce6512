package storage

import (
	"sync/atomic"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// TestUploadsCount: what others keep in the directory counts against the budget of the disk. When it is that which is too much, parsers may still write, or
// uploads that fill the budget would never be worked off.
func TestUploadsCount(t *testing.T) {
	var uploads atomic.Int64
	opts := small()
	opts.DiskBytes, opts.Others = 1<<20, uploads.Load
	db := open(t, vfs.NewMem(), opts)
	const taken = "taken"
	n := 0
	write := func(door core.Door) string {
		n++
		b := sample(n, core.Default|core.HasValue)
		b.Origin.Door = door
		db.disk.checked.Store(0) // a second later
		if _, err := db.Append(t.Context(), b); err != nil {
			return core.CodeOf(err).String()
		}
		return taken
	}
	full := core.NoSpace.String()
	for _, one := range []struct {
		uploads int64
		door    core.Door
		want    string
	}{
		{0, core.DoorHTTP, taken},
		{512 << 10, core.DoorHTTP, taken},
		{1 << 20, core.DoorHTTP, full},
		{1 << 20, core.DoorTCP, full},
		{1 << 20, core.DoorPlugin, taken},
		{0, core.DoorHTTP, taken}, // they are worked off
	} {
		uploads.Store(one.uploads)
		if got := write(one.door); got != one.want {
			t.Errorf("%d bytes of uploads, a batch by %s: %v, want %v", one.uploads, one.door, got, one.want)
		}
		if usage, err := db.Usage(); err != nil || usage.Others != one.uploads {
			t.Errorf("usage has %d bytes of others, %v, want %d", usage.Others, err, one.uploads)
		}
	}
	db.opts.DiskBytes = 1 // the files and the journal alone are too much
	if got := write(core.DoorPlugin); got != full {
		t.Errorf("a batch by a plugin: %v, want %v", got, full)
	}
}
