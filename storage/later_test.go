package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// laterFrames are frames as only a later release writes them, and what the error says of each.
var laterFrames = []struct {
	kind    uint8
	payload []byte
	says    string
}{
	{3, []byte("anything"), "has kind 3, and this program knows those up to 2"},
	{0, nil, "has kind 0, and this program knows those up to 2"},
	{frameBatch, []byte{2, 0, 0}, "has version 2, and this program knows those up to 1"},
	{frameBatch, []byte{1, 4, 0}, "has flags 4, and this program knows those up to 1"},
}

// writeFrames appends frames to the journal of a closed database, behind what is in it.
func writeFrames(t *testing.T, fs vfs.FS, frames ...journal.Frame) {
	t.Helper()
	j, _, err := journal.Open(fs, filepath.Join("/data", journalDir), journal.Options{Inline: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		f.Position, f.Received = j.End()+1, 1_900_000_000_000
		if _, err := j.Append(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLaterFrames has one frame of a later release among those that no file holds yet. Passed over it would be gone with the next flush, so the server does not start, says
// where the frame is, and changes nothing, although there is what a start would repair: a torn tail, a file that nobody names, and one that is damaged.
func TestLaterFrames(t *testing.T) {
	for _, later := range laterFrames {
		mem, _ := settledStore(t)
		writeFrames(t, mem, journal.Frame{Kind: later.kind, Payload: later.payload}, journal.Frame{Kind: frameBatch, Payload: encoded(t, sample(5, core.Default|core.HasValue))})
		for _, name := range []string{"9999999999.samples", "9999999998.table.tmp"} {
			f, err := mem.Open(filepath.Join("/data", dataDir, name), vfs.Create)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		overwrite(t, mem, ofKind(t, mem, ".samples")[0], func(b []byte) []byte { return b[:len(b)-1] })
		before := onDisk(t, mem)
		_, _, err := Open(mem, "/data", crashOptions())
		var version *vfs.VersionError
		if !errors.As(err, &version) || filepath.Ext(version.Path) != ".seg" || !strings.Contains(err.Error(), version.Path) || !strings.Contains(err.Error(), later.says+": it was written by a later release") {
			t.Errorf("%s: %v", later.says, err)
			continue
		}
		if after := onDisk(t, mem); !slices.Equal(before, after) {
			t.Errorf("%s: the directory was %v and is %v", later.says, before, after)
		}
		var out bytes.Buffer
		if err := Check(t.Context(), mem, "/data", Checking{Out: &out}); err == nil || !strings.Contains(out.String(), later.says) {
			t.Errorf("%s: check says %v:\n%s", later.says, err, out.String())
		}
	}
}

// TestLaterParts has a record whose head is of this release, with a part that is not: it is known when the body is unpacked, and refused as well.
func TestLaterParts(t *testing.T) {
	mem, _ := settledStore(t)
	writeFrames(t, mem, journal.Frame{Kind: frameBatch, Payload: append([]byte{recordVersion, 0, 0x80, 0x01}, make([]byte, 9)...)})
	_, _, err := Open(mem, "/data", crashOptions())
	var later *vfs.VersionError
	if !errors.As(err, &later) || later.Found != 128 || later.Known != 127 || !strings.Contains(err.Error(), "parts 128") {
		t.Error(err)
	}
}

// TestLaterFramesInFiles has frames of a later release that files hold as well: nothing would be lost, and the server starts.
func TestLaterFramesInFiles(t *testing.T) {
	for _, later := range laterFrames {
		mem, _ := settledStore(t)
		writeFrames(t, mem, journal.Frame{Kind: later.kind, Payload: later.payload})
		m, err := readManifest(mem, "/data", manifestFile)
		if err != nil {
			t.Fatal(err)
		}
		found, err := journal.Check(mem, filepath.Join("/data", journalDir))
		if err != nil {
			t.Fatal(err)
		}
		m.Position = core.Position(found.Last)
		if err := m.write(mem, "/data"); err != nil {
			t.Fatal(err)
		}
		db, report, err := Open(mem, "/data", crashOptions())
		if err != nil || report.Damaged() {
			t.Errorf("%s: %v %v", later.says, err, report)
			continue
		}
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestLaterFramesTorn has a frame of a later release behind a hole in what was never acknowledged: it is cut, as any other there.
func TestLaterFramesTorn(t *testing.T) {
	mem := vfs.NewMem()
	j, _, err := journal.Open(mem, filepath.Join("/data", journalDir), journal.Options{Mode: journal.Never, Inline: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []journal.Frame{{Kind: frameBatch, Payload: encoded(t, sample(5, core.Default|core.HasValue))}, {Kind: frameBatch, Payload: encoded(t, sample(6, core.Default|core.HasValue))}, {Kind: 3}} {
		f.Position, f.Received = journal.Position(i+1), int64(1000*(i+1))
		if _, err := j.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	left := mem.Clone() // as the death of the process leaves it
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("/data", journalDir, segmentName(t, left))
	overwrite(t, left, path, func(b []byte) []byte {
		at := bytes.Index(b[8192+8:], []byte{2, 0, 0, 0, 0, 0, 0, 0, 0xd0, 7, 0, 0}) // position 2, received at 2000
		if at < 0 {
			t.Fatal("the second frame is not there")
		}
		b[8192+8+at+30] ^= 1
		return b
	})
	db, report, err := Open(left, "/data", small())
	if err != nil || report.TornBytes == 0 || report.Samples != 1 {
		t.Fatal(err, report)
	}
	if err := db.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestRenameThereAndBack renames while older samples are on their way to a file, and back again: what is written then counts for the name that is there.
func TestRenameThereAndBack(t *testing.T) {
	for _, kind := range []core.DocKind{core.DocMetric, core.DocEntity} {
		mem := vfs.NewMem()
		db, _, err := Open(mem, "/data", small())
		if err != nil {
			t.Fatal(err)
		}
		write := func(at core.Time) {
			b := &core.Batch{}
			b.Add(b.Ref(core.SeriesKey{Metric: "a", Entity: "a"}), at, 1)
			appendTo(t, db, b)
		}
		rename := func(from, to string) {
			appendTo(t, db, &core.Batch{Documents: []core.DocChange{{Kind: kind, Key: from, Op: core.DocRename, Body: fmt.Appendf(nil, `{"name":%q}`, to)}}})
		}
		write(1000)
		shelf := sampleShelf{db}
		db.mu.Lock()
		froze := shelf.freeze()
		db.mu.Unlock()
		if !froze {
			t.Fatal("nothing to freeze")
		}
		rename("a", "b")
		rename("b", "a")
		write(2000)
		var last []core.Time
		for m, err := range db.Metrics(t.Context(), core.MetaQuery{}) {
			if err != nil || m.Name != "a" {
				t.Error(m.Name, err)
			}
			last = append(last, m.Last)
		}
		for e, err := range db.Entities(t.Context(), core.MetaQuery{}) {
			if err != nil || e.Name != "a" {
				t.Error(e.Name, err)
			}
			last = append(last, e.Last)
		}
		if !slices.Equal(last, []core.Time{2000, 2000}) {
			t.Errorf("%s: the newest samples are of %v", kind, last)
		}
		lines := storetest.Lines(t.Context(), db)
		if err := db.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if db, _, err = Open(mem, "/data", small()); err != nil {
			t.Fatal(err)
		}
		if after := storetest.Lines(t.Context(), db); !slices.Equal(lines, after) {
			t.Errorf("%s: %q, and after a start %q", kind, lines, after)
		}
		if err := db.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
