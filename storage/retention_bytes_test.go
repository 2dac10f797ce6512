package storage

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// TestRetentionInSmallSteps writes several times what retention.bytes keeps, and has all of it merged on demand now and then: only old data goes, a little at a
// time, since no merge makes a file of a large part of all.
func TestRetentionInSmallSteps(t *testing.T) {
	const keep = 1 << 20
	opts := small()
	opts.RetentionBytes = keep
	db := open(t, vfs.NewMem(), opts)
	r := rand.New(rand.NewPCG(1, 1))
	full := false
	for n := range 120 {
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		ref := b.Ref(core.SeriesKey{Metric: "m", Entity: "e"})
		for i := range 5000 { // some 40 KB
			b.Add(ref, core.Time(n*5000+i)*1000, r.Float64())
		}
		if _, err := db.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		move := db.Flush
		if n%10 == 9 {
			move = db.Compact
		}
		if err := move(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := db.ask(t.Context(), func(ctx context.Context) error { // the worker has its turn
			db.work(ctx, false)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		size := db.disk.files.Load()
		full = full || size > keep*9/10
		if full && size < keep*3/4 {
			t.Fatalf("%d bytes are left after flush %d of the %d that are to be kept", size, n, keep)
		}
	}
	if size := db.disk.files.Load(); !full || size > keep*5/4 {
		t.Errorf("%d bytes are there in the end, and %d are to be kept", size, keep)
	}
	if files := len(db.views.current.Load().files); files > 40 {
		t.Errorf("%d files of samples", files)
	}
}
