package samples

import (
	"bytes"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
)

// A walk with a window meets the same blocks as the directory and single reads: tiny ones, of which a window holds many, and one that is larger than it.
func TestWalk(t *testing.T) {
	var series []run
	for id := ID(1); id <= 3*pageEntries; id++ {
		series = append(series, numbers(id, core.Time(id), 1+int(id%3)))
	}
	large := numbers(3*pageEntries+1, 0, chunk.MaxSamples)
	for i := range large.Values {
		large.Values[i] = 1 / float64(i+3) // does not compress
	}
	series = append(series, large, numbers(3*pageEntries+2, 5, 2))
	f := mustOpen(t, write(t, series...))
	walker := f.Walk()
	var window Window
	var d chunk.Decoder
	var got, want core.Block
	for e, err := range f.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		at, err := walker.Next()
		if err != nil || at == nil || *at != *e {
			t.Fatalf("the walk is at %v, the directory at %v: %v", at, e, err)
		}
		raw, err := window.Raw(f, at)
		if err != nil {
			t.Fatal(err)
		}
		if single, err := f.Raw(e, nil); err != nil || !bytes.Equal(raw, single) {
			t.Fatalf("block of series %d: other bytes, %v", e.ID, err)
		}
		if err := window.Read(f, at, &d, &got); err != nil {
			t.Fatal(err)
		}
		if err := f.Read(e, &d, &want); err != nil || !equalBlocks(&got, &want) {
			t.Fatalf("block of series %d reads differently, %v", e.ID, err)
		}
	}
	if e, err := walker.Next(); e != nil || err != nil {
		t.Errorf("behind the end is %v, %v", e, err)
	}
}

// Damage costs what it hits: of a block its own bytes, of a page the blocks before it.
func TestWalkOverDamage(t *testing.T) {
	var series []run
	for id := ID(1); id <= 2*pageEntries; id++ {
		series = append(series, numbers(id, 0, 1))
	}
	whole := write(t, series...)
	sound := mustOpen(t, whole)
	damaged := bytes.Clone(whole)
	damaged[sound.pages[0].offset+9]++ // the first page
	damaged[sound.pages[1].offset-1]++ // the last block
	f := mustOpen(t, damaged)
	walker := f.Walk()
	if _, err := walker.Next(); err == nil {
		t.Fatal("a damaged page is read")
	}
	var window Window
	for id := ID(pageEntries + 1); id <= 2*pageEntries; id++ {
		e, err := walker.Next()
		if err != nil || e == nil || e.ID != id {
			t.Fatalf("series %d: %v, %v", id, e, err)
		}
		if _, err := window.Raw(f, e); (err != nil) != (id == 2*pageEntries) {
			t.Errorf("block of series %d: %v", id, err)
		}
	}
}
